package analysis

import (
	"cmp"
	"slices"
	"sort"

	"haul/internal/doctor/trace"
)

const (
	// widestGaps is the number of gaps that a report shows.
	widestGaps = 5
	// shownShare is the fraction of a step from which an interval is shown.
	shownShare = 0.001
)

// shows reports whether an interval is long enough to be shown.
func (a *Analysis) shows(s trace.Span) bool {
	return float64(s.End-s.Start) >= shownShare*float64(a.Wall)/float64(len(a.Steps))
}

// hold stores a piece of idle time that may be shown, or that a place in the Python code is found
// for: a loop over values consists of many pieces, each too short to be shown.
func (a *Analysis) hold(p *Piece) {
	if a.shows(p.Span) {
		a.Held = append(a.Held, *p)
	}
	if (p.Kind == IdlePython || p.Kind == IdleBetween) && len(a.InPython) < maxPython {
		a.InPython = append(a.InPython, pythonPiece{Place{p.Span, p.Thread}, p.Kind})
	}
}

// maxPython limits the pieces that a place in the code is found from.
const maxPython = 1 << 18

func (a *Analysis) findWidest() {
	for _, g := range a.Gaps {
		width := g.End - g.Start
		if !a.shows(g) || len(a.Widest) == widestGaps && width <= a.Widest[widestGaps-1].End-a.Widest[widestGaps-1].Start {
			continue
		}
		step, _ := trace.Within(a.Steps, g.Start)
		a.Widest = append(a.Widest, gap{Span: g, Step: step})
		slices.SortStableFunc(a.Widest, func(x, y gap) int { return cmp.Compare(y.End-y.Start, x.End-x.Start) })
		a.Widest = a.Widest[:min(len(a.Widest), widestGaps)]
	}
	for i := range a.Widest {
		a.Widest[i].Doing = a.doing(a.Widest[i].Span)
		a.Widest[i].Where = a.Where([]Place{{Span: a.Widest[i].Span}})
	}
}

// doing returns the largest cause of a gap, according to the attribution.
func (a *Analysis) doing(g trace.Span) string {
	var byKind [IdleKinds]int64
	byName := map[uint32]int64{}
	i := sort.Search(len(a.Held), func(i int) bool { return a.Held[i].End > g.Start })
	for ; i < len(a.Held) && a.Held[i].Start < g.End; i++ {
		p := &a.Held[i]
		ns := trace.Overlap(g, p.Span)
		byKind[p.Kind] += ns
		if p.Op != nil {
			byName[p.Op.Name] += ns
		}
	}
	kind, most := IdleBetween, int64(0)
	var inOps int64
	for _, ns := range byName {
		inOps += ns
	}
	for k, ns := range byKind {
		if ns > most {
			kind, most = IdleKind(k), ns
		}
	}
	switch {
	case most == 0: // each piece is too short to have been stored
		return "operators and Python, in short turns"
	case kind == IdleLoader:
		return "the data loader"
	case kind == IdleBetween, kind == IdlePython && 2*inOps < most:
		return "Python, outside any operator"
	}
	switch kind {
	case IdleComm:
		return "a collective on the host"
	case IdleUnrecorded, idleQueued:
		return "nothing: the work was issued already"
	case idlePeer:
		return "nothing: another GPU works"
	case IdleCompile:
		return "torch.compile, compiling"
	case IdleCapture:
		return "the capture of a graph"
	case idleEnd:
		return "nothing: no more work came"
	}
	best, busiest := "driver calls", int64(0)
	for id, ns := range byName {
		if name := a.Names.List[id].Text; ns > busiest || ns == busiest && name < best {
			best, busiest = trace.ShortName(name), ns
		}
	}
	return best
}

// MiddleHeld returns the idle time of a kind in the median step, ns.
func (a *Analysis) MiddleHeld(kind IdleKind) float64 {
	by := make([]float64, len(a.Steps))
	for _, p := range a.Held {
		if step, ok := trace.Within(a.Steps, p.Start); ok && p.Kind == kind {
			by[step] += float64(p.End - p.Start)
		}
	}
	return Median(by)
}
