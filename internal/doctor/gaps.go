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
	say := func(what string, ns int64) {
		if ns > 0 {
			a.idle = append(a.idle, idleShare{what, a.ms(float64(ns))})
		}
	}
	rest, ns := without(rest, a.loader)
	say("in the data loader", ns)
	for _, k := range []struct {
		kind callKind
		what string
	}{
		{callWait, "in waits for the GPU"}, {callAlloc, "in driver allocations"},
		{callCopy, "in copies being issued"}, {callLaunch, "in kernels being launched"},
	} {
		var sum int64
		for _, th := range a.threads {
			rest, ns = withoutEach(rest, th.calls.len(), func(i int) span {
				c := th.calls.at(i)
				if c.kind != k.kind {
					return span{c.start, c.start}
				}
				return span{c.start, c.end()}
			})
			sum += ns
		}
		say(k.what, sum)
	}
	var sum int64
	for _, th := range a.threads {
		rest, ns = withoutEach(rest, th.ops.len(), func(i int) span { return span{th.ops.at(i).start, th.ops.at(i).end()} })
		sum += ns
	}
	say("in operators, on the way to a launch", sum)
	say("outside any operator, in Python", total(rest))
	slices.SortStableFunc(a.idle, func(x, y idleShare) int { return cmp.Compare(y.MS, x.MS) })
	a.findWidest()
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
