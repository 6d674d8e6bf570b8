package doctor

import (
	"cmp"
	"slices"
	"sort"
)

// idleShare is part of the time in which the GPU had nothing to do, by what the CPU did meanwhile.
type idleShare struct {
	What string  `json:"what"`
	MS   float64 `json:"ms"`
}

// gap is one stretch of idle GPU.
type gap struct {
	span
	step  int
	doing string
}

// widestGaps is how many gaps a report shows.
const widestGaps = 5

// explainGaps splits the idle time by what the CPU did. A moment with several answers goes to the
// first of the list: a loader that runs operators is still a loader.
func (a *analysis) explainGaps() {
	if a.gpu.len() == 0 {
		return
	}
	rest := a.gaps
	take := func(what string, list []span) {
		var ns int64
		rest, ns = without(rest, union(list))
		if ns > 0 {
			a.idle = append(a.idle, idleShare{what, a.ms(float64(ns))})
		}
	}
	take("in the data loader", slices.Clone(a.loader))
	take("in waits for the GPU", a.spansOf(callWait))
	take("in driver allocations", a.spansOf(callAlloc))
	take("in copies being issued", a.spansOf(callCopy))
	take("in kernels being launched", a.spansOf(callLaunch))
	var ops []span
	a.eachOp(func(_ *thread, _, _ int, o *op) { ops = append(ops, span{o.start, o.end()}) })
	take("in operators, on the way to a launch", ops)
	if ns := total(rest); ns > 0 {
		a.idle = append(a.idle, idleShare{"outside any operator, in Python", a.ms(float64(ns))})
	}
	slices.SortStableFunc(a.idle, func(x, y idleShare) int { return cmp.Compare(y.MS, x.MS) })
	a.findWidest()
}

func (a *analysis) spansOf(kind callKind) []span {
	var out []span
	for _, th := range a.threads {
		for i := range th.calls.len() {
			if c := th.calls.at(i); c.kind == kind {
				out = append(out, span{c.start, c.end()})
			}
		}
	}
	return out
}

func (a *analysis) findWidest() {
	for _, g := range a.gaps {
		width := g.end - g.start
		if len(a.widest) == widestGaps && width <= a.widest[widestGaps-1].end-a.widest[widestGaps-1].start {
			continue
		}
		step, _ := within(a.steps, g.start)
		a.widest = append(a.widest, gap{span: g, step: step})
		slices.SortStableFunc(a.widest, func(x, y gap) int { return cmp.Compare(y.end-y.start, x.end-x.start) })
		a.widest = a.widest[:min(len(a.widest), widestGaps)]
	}
	for i := range a.widest {
		a.widest[i].doing = a.doing(a.widest[i].span)
	}
}

// doing says what the CPU spent most of a gap on.
func (a *analysis) doing(g span) string {
	for _, l := range a.loader {
		if overlap(g, l) > (g.end-g.start)/2 {
			return "the data loader"
		}
	}
	best, busiest := "Python, outside any operator", int64(0)
	byName := map[uint32]int64{}
	var inside int64
	for _, th := range a.threads {
		n := th.ops.len()
		for i := sort.Search(n, func(i int) bool { return th.ops.at(i).end() > g.start }); i < n && th.ops.at(i).start < g.end; i++ {
			o := th.ops.at(i)
			ns := overlap(g, span{o.start, o.end()})
			inside += ns
			if byName[o.name] += ns; byName[o.name] > busiest {
				busiest, best = byName[o.name], shortName(a.names.list[o.name].text)
			}
		}
	}
	if inside < (g.end-g.start)/2 {
		return "Python, outside any operator"
	}
	return best
}

func overlap(a, b span) int64 { return max(0, min(a.end, b.end)-max(a.start, b.start)) }
