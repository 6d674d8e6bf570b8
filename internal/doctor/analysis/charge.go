package analysis

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"

	"haul/internal/doctor/phrase"
	"haul/internal/doctor/trace"
)

// An operator's cost is the idle GPU time that it causes (attribute.go), not its own length. It is
// charged to at most one cause: operators store the cause that took them, and later rules see only
// free operators. So the costs of all findings add up to at most the idle time and the wasted GPU
// time, and a general cause (too many launches) does not count the cost of a specific one (the same
// work nine times over) again.

// Charge sums the cost of one cause.
type Charge struct {
	a      *Analysis
	ops    []*trace.Op
	Ns     float64 // idle time charged, including Python before its operators
	Own    float64 // the part of Ns inside the operators
	Cpu    float64 // the operators' own time
	n      int
	named  []Named
	byName map[uint32]int32 // indices in named
	places [100]float64     // ns by percent of the step
	steps  map[int]int      // operators by step
}

type Named struct {
	Name uint32
	N    int
	Ns   float64 // on the CPU
	idle float64 // in which the GPU waited for them
	lead float64 // and for Python before them
}

// OnCPU returns the operators' time on the CPU.
func (v *Named) OnCPU() float64 { return v.Ns }

func (v *Named) Inside() float64 { return v.idle }

func (v *Named) waited() float64 { return v.idle + v.lead }

func (a *Analysis) NewCharge() *Charge {
	return &Charge{a: a, byName: map[uint32]int32{}, steps: map[int]int{}}
}

// Add charges an operator, which must not have a cause yet.
func (c *Charge) Add(o *trace.Op, step int) {
	c.ops = append(c.ops, o)
	c.n++
	c.Ns += float64(o.Idle) + float64(o.Lead)
	c.Own += float64(o.Idle)
	c.Cpu += float64(o.Dur)
	c.Place(o.Start, step, float64(o.Dur))
	c.steps[step]++
	c.Count(o)
}

// Count adds an operator to its name's sum.
func (c *Charge) Count(o *trace.Op) { c.CountFor(o, float64(o.Dur)) }

// CountFor adds part of an operator's time to its name's sum.
func (c *Charge) CountFor(o *trace.Op, ns float64) {
	at, ok := c.byName[o.Name]
	if !ok {
		at = int32(len(c.named))
		c.byName[o.Name] = at
		c.named = append(c.named, Named{Name: o.Name})
	}
	by := &c.named[at]
	by.N++
	by.Ns += ns
	by.idle += float64(o.Idle)
	by.lead += float64(o.Lead)
}

// AddCalls charges calls outside any operator.
func (c *Charge) AddCalls(list []orphan) {
	for _, o := range list {
		step, _ := trace.Within(c.a.CPUSteps, o.start)
		c.n++
		c.Cpu += o.ns
		c.steps[step]++
		c.Place(o.start, step, o.ns)
	}
}

func (c *Charge) Place(at int64, step int, ns float64) {
	w := c.a.CPUSteps[step]
	c.places[max(0, min(99, int(100*(float64(at)-float64(w.Start))/(float64(w.End)-float64(w.Start)))))] += ns
}

// Collect charges every free operator that contains any of the calls.
func (a *Analysis) Collect(any trace.Holds) *Charge {
	c := a.NewCharge()
	a.EachOp(func(_ *trace.Thread, _, step int, o *trace.Op) {
		if o.Cause == 0 && o.Holds&any != 0 {
			c.Add(o, step)
		}
	})
	return c
}

// Take assigns the operators to a cause, with the backward of each, since autograd runs it only
// because of the forward.
func (c *Charge) Take(who trace.Cause) {
	for _, o := range c.ops {
		o.Cause = who
	}
	if len(c.ops) == 0 {
		return
	}
	c.a.indexForward()
	c.a.EachOp(func(_ *trace.Thread, _, step int, o *trace.Op) {
		if f := c.a.forwardOf(o); f != nil && o.Cause == 0 && f.Cause == who {
			o.Cause = who
			c.Add(o, step)
		}
	})
}

// Where returns a description of the part of the step with nine tenths of the cost.
func (c *Charge) Where() string {
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

// Empty reports whether no operator was charged or counted.
func (c *Charge) Empty() bool { return len(c.named) == 0 }

// Ranked returns the n names with the largest values of `of`, largest first.
func (c *Charge) Ranked(n int, of func(*Named) float64) []*Named {
	text := func(v *Named) string { return c.a.Names.List[v.Name].Text }
	before := func(x, y *Named) int {
		if c := cmp.Compare(of(y), of(x)); c != 0 { // compares names only if needed, because that is slow
			return c
		}
		return cmp.Compare(text(x), text(y))
	}
	var out []*Named
	for i := range c.named {
		v := &c.named[i]
		if len(out) == n && before(out[n-1], v) <= 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(out, v, before)
		out = slices.Insert(out, at, v)
		out = out[:min(len(out), n)]
	}
	return out
}

// Top returns the names of the operators that the GPU waited for most.
func (c *Charge) Top(n int) string { return c.TopBy(n, (*Named).waited) }

// TopBy returns the names of the operators with the largest values of `of`.
func (c *Charge) TopBy(n int, of func(*Named) float64) string {
	var parts []string
	for _, v := range c.Ranked(n, of) {
		parts = append(parts, fmt.Sprintf("%s %s ms (%s)", trace.ShortName(c.a.Names.List[v.Name].Text),
			phrase.Figure(c.a.Ms(of(v))), phrase.PerStepCount(c.a.PerStep(float64(v.N)))))
	}
	return strings.Join(parts, ", ")
}

// Placed returns the places of the charged operators.
func (c *Charge) Placed() []Place {
	var out []Place
	for _, o := range c.ops[:min(len(c.ops), 20000)] {
		out = append(out, Place{Span: trace.Span{Start: o.Start, End: o.End()}})
	}
	return out
}

// indexForward lists the numbered operators, when the first cause needs them.
func (a *Analysis) indexForward() {
	if a.forward != nil {
		return
	}
	n := 0
	numbered := func(o *trace.Op) bool {
		return o.Sequence != 0 && !strings.HasPrefix(a.Names.List[o.Name].Text, trace.BackwardPrefix)
	}
	a.EachOp(func(_ *trace.Thread, _, _ int, o *trace.Op) {
		if numbered(o) {
			n++
		}
	})
	a.forward = make([]*trace.Op, 0, n)
	a.EachOp(func(_ *trace.Thread, _, _ int, o *trace.Op) {
		if numbered(o) {
			a.forward = append(a.forward, o)
		}
	})
	slices.SortStableFunc(a.forward, func(x, y *trace.Op) int {
		return cmp.Or(cmp.Compare(x.Sequence, y.Sequence), cmp.Compare(x.Start, y.Start))
	})
}

// forwardOf returns the operator whose backward o is, or nil. A node made inside an operator has at
// least the number that the operator started with, and less than the next operator's.
func (a *Analysis) forwardOf(o *trace.Op) *trace.Op {
	if o.Sequence == 0 || !strings.HasPrefix(a.Names.List[o.Name].Text, trace.BackwardPrefix) {
		return nil
	}
	i := sort.Search(len(a.forward), func(i int) bool {
		f := a.forward[i]
		return f.Sequence > o.Sequence || f.Sequence == o.Sequence && f.Start > o.Start
	})
	if i == 0 || a.forward[i-1].Start > o.Start {
		return nil
	}
	return a.forward[i-1]
}
