package doctor

import (
	"cmp"
	"slices"
	"sort"
)

// gap is one stretch of idle GPU.
type gap struct {
	span
	step  int
	doing string
	where string
}

const (
	// widestGaps is how many gaps a report shows.
	widestGaps = 5
	// shownShare is the part of a step from which a stretch is worth a line or a mark.
	shownShare = 0.001
)

// shows tells a stretch that is long enough to be shown.
func (a *analysis) shows(s span) bool {
	return float64(s.end-s.start) >= shownShare*float64(a.wall)/float64(len(a.steps))
}

// hold keeps a piece of idle time for what is shown of it, and for Python's place in the code: a
// loop over values is many pieces, each too short to be shown.
func (a *analysis) hold(p *piece) {
	if a.shows(p.span) {
		a.held = append(a.held, *p)
	}
	if (p.kind == idlePython || p.kind == idleBetween) && len(a.inPython) < maxPython {
		a.inPython = append(a.inPython, pythonPiece{place{p.span, p.thread}, p.kind})
	}
}

// pythonPiece is a stretch of Python, or of the host's own work.
type pythonPiece struct {
	place
	kind idleKind
}

// maxPython bounds the pieces that a place in the code is looked for in.
const maxPython = 1 << 18

func (a *analysis) findWidest() {
	for _, g := range a.gaps {
		width := g.end - g.start
		if !a.shows(g) || len(a.widest) == widestGaps && width <= a.widest[widestGaps-1].end-a.widest[widestGaps-1].start {
			continue
		}
		step, _ := within(a.steps, g.start)
		a.widest = append(a.widest, gap{span: g, step: step})
		slices.SortStableFunc(a.widest, func(x, y gap) int { return cmp.Compare(y.end-y.start, x.end-x.start) })
		a.widest = a.widest[:min(len(a.widest), widestGaps)]
	}
	for i := range a.widest {
		a.widest[i].doing = a.doing(a.widest[i].span)
		a.widest[i].where = a.where([]place{{span: a.widest[i].span}})
	}
}

// doing says what the CPU spent most of a gap on, as the attribution has it.
func (a *analysis) doing(g span) string {
	var byKind [idleKinds]int64
	byName := map[uint32]int64{}
	i := sort.Search(len(a.held), func(i int) bool { return a.held[i].end > g.start })
	for ; i < len(a.held) && a.held[i].start < g.end; i++ {
		p := &a.held[i]
		ns := overlap(g, p.span)
		byKind[p.kind] += ns
		if p.op != nil {
			byName[p.op.name] += ns
		}
	}
	kind, most := idleBetween, int64(0)
	var inOps int64
	for _, ns := range byName {
		inOps += ns
	}
	for k, ns := range byKind {
		if ns > most {
			kind, most = idleKind(k), ns
		}
	}
	switch {
	case most == 0: // each of them too short to be held
		return "operators and Python, in short turns"
	case kind == idleLoader:
		return "the data loader"
	case kind == idleBetween, kind == idlePython && 2*inOps < most:
		return "Python, outside any operator"
	}
	switch kind {
	case idleComm:
		return "a collective on the host"
	case idleUnrecorded, idleQueued:
		return "nothing: the work was issued already"
	case idlePeer:
		return "nothing: another GPU works"
	case idleCompile:
		return "torch.compile, compiling"
	case idleCapture:
		return "the capture of a graph"
	case idleEnd:
		return "nothing: no more work came"
	}
	best, busiest := "driver calls", int64(0)
	for id, ns := range byName {
		if name := a.names.list[id].text; ns > busiest || ns == busiest && name < best {
			best, busiest = shortName(name), ns
		}
	}
	return best
}

func overlap(a, b span) int64 { return max(0, min(a.end, b.end)-max(a.start, b.start)) }
