package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
)

// An operator is charged with the idle time of the GPU that it holds (see attribute.go), not with
// its own length, and to one cause at most: operators carry the cause that took them, and a rule
// that comes later finds only what is left. So the costs of all findings never add up to more than
// the idle time and the GPU time they waste, and a general cause (too many launches) does not hide
// a particular one (the same work nine times over) by counting it too.

// cause is a rule's position in the table, counted from 1; 0 is no cause yet.
type cause uint8

// charge collects what one cause costs.
type charge struct {
	a      *analysis
	ops    []*op
	ns     float64 // idle time charged, Python on the way to its operators included
	own    float64 // of that, inside the operators
	cpu    float64 // the operators' own time
	n      int
	byName map[uint32]*named
	places [100]float64 // ns by percent of the step
	steps  map[int]int  // operators by step
}

type named struct {
	name uint32
	n    int
	ns   float64 // on the CPU
	idle float64 // in which the GPU waited for them
	lead float64 // and for Python on the way to them
}

// measures of what a name's operators cost.
func (v *named) onCPU() float64  { return v.ns }
func (v *named) inside() float64 { return v.idle }
func (v *named) waited() float64 { return v.idle + v.lead }

func (a *analysis) newCharge() *charge {
	return &charge{a: a, byName: map[uint32]*named{}, steps: map[int]int{}}
}

// add charges an operator, which must be free.
func (c *charge) add(o *op, step int) {
	c.ops = append(c.ops, o)
	c.n++
	c.ns += float64(o.idle) + float64(o.lead)
	c.own += float64(o.idle)
	c.cpu += float64(o.dur)
	c.place(o.start, step, float64(o.dur))
	c.steps[step]++
	c.count(o)
}

// count adds an operator to its name's sum.
func (c *charge) count(o *op) { c.countFor(o, float64(o.dur)) }

// countFor adds part of an operator's time to its name's sum.
func (c *charge) countFor(o *op, ns float64) {
	by := c.byName[o.name]
	if by == nil {
		by = &named{name: o.name}
		c.byName[o.name] = by
	}
	by.n++
	by.ns += ns
	by.idle += float64(o.idle)
	by.lead += float64(o.lead)
}

// addCalls charges calls that no operator holds.
func (c *charge) addCalls(list []orphan) {
	for _, o := range list {
		step, _ := within(c.a.cpuSteps, o.start)
		c.n++
		c.cpu += o.ns
		c.steps[step]++
		c.place(o.start, step, o.ns)
	}
}

func (c *charge) place(at int64, step int, ns float64) {
	w := c.a.cpuSteps[step]
	c.places[max(0, min(99, int(100*(float64(at)-float64(w.start))/(float64(w.end)-float64(w.start)))))] += ns
}

// collect charges every free operator that holds any of the calls.
func (a *analysis) collect(any holds) *charge {
	c := a.newCharge()
	a.eachOp(func(_ *thread, _, step int, o *op) {
		if o.cause == 0 && o.holds&any != 0 {
			c.add(o, step)
		}
	})
	return c
}

// take marks the operators as this cause's, and with them the backward of each: autograd runs it
// only because the forward ran.
func (c *charge) take(who cause) {
	for _, o := range c.ops {
		o.cause = who
	}
	if len(c.ops) == 0 {
		return
	}
	c.a.indexForward()
	c.a.eachOp(func(_ *thread, _, step int, o *op) {
		if f := c.a.forwardOf(o); f != nil && o.cause == 0 && f.cause == who {
			o.cause = who
			c.add(o, step)
		}
	})
}

// where says which part of the step holds nine tenths of the cost.
func (c *charge) where() string {
	var sum float64
	for _, ns := range c.places {
		sum += ns
	}
	from, to := 0, 99
	for low := c.places[0]; low < sum*0.05 && from < 99; low += c.places[from] {
		from++
	}
	for high := c.places[99]; high < sum*0.05 && to > from; high += c.places[to] {
		to--
	}
	return fmt.Sprintf("in the step: from %d %% to %d %% of its time", from, to+1)
}

// ranked lists the names by a measure, the costliest first.
func (c *charge) ranked(of func(*named) float64) []*named {
	text := func(v *named) string { return c.a.names.list[v.name].text }
	return slices.SortedFunc(maps.Values(c.byName), func(x, y *named) int {
		return cmp.Or(cmp.Compare(of(y), of(x)), cmp.Compare(text(x), text(y)))
	})
}

// top names the operators that the GPU waited for most.
func (c *charge) top(n int) string { return c.topBy(n, (*named).waited) }

// topBy names the operators that cost most by a measure.
func (c *charge) topBy(n int, of func(*named) float64) string {
	var parts []string
	for _, v := range c.ranked(of)[:min(n, len(c.byName))] {
		parts = append(parts, fmt.Sprintf("%s %s ms (%s)", shortName(c.a.names.list[v.name].text),
			figure(c.a.ms(of(v))), perStepCount(c.a.perStep(float64(v.n)))))
	}
	return strings.Join(parts, ", ")
}

// placed is where the charged operators ran.
func (c *charge) placed() []place {
	var out []place
	for _, o := range c.ops[:min(len(c.ops), 20000)] {
		out = append(out, place{span: span{o.start, o.end()}})
	}
	return out
}

// backwardPrefix starts the operators of autograd's engine.
const backwardPrefix = "autograd::engine::evaluate_function"

// indexForward lists the numbered operators once, when the first cause asks.
func (a *analysis) indexForward() {
	if a.forward != nil {
		return
	}
	n := 0
	numbered := func(o *op) bool {
		return o.sequence != 0 && !strings.HasPrefix(a.names.list[o.name].text, backwardPrefix)
	}
	a.eachOp(func(_ *thread, _, _ int, o *op) {
		if numbered(o) {
			n++
		}
	})
	a.forward = make([]*op, 0, n)
	a.eachOp(func(_ *thread, _, _ int, o *op) {
		if numbered(o) {
			a.forward = append(a.forward, o)
		}
	})
	slices.SortStableFunc(a.forward, func(x, y *op) int {
		return cmp.Or(cmp.Compare(x.sequence, y.sequence), cmp.Compare(x.start, y.start))
	})
}

// forwardOf finds the operator whose backward o is. Numbers are given as nodes are made, so a node
// made anywhere inside an operator has the number that operator started with or a later one, and
// less than the next operator's.
func (a *analysis) forwardOf(o *op) *op {
	if o.sequence == 0 || !strings.HasPrefix(a.names.list[o.name].text, backwardPrefix) {
		return nil
	}
	i := sort.Search(len(a.forward), func(i int) bool {
		f := a.forward[i]
		return f.sequence > o.sequence || f.sequence == o.sequence && f.start > o.start
	})
	if i == 0 || a.forward[i-1].start > o.start {
		return nil
	}
	return a.forward[i-1]
}
