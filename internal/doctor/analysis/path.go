package analysis

import (
	"cmp"
	"maps"
	"slices"
	"sort"

	"haul/internal/doctor/trace"
)

// The critical path in order describes the median step from its start to its end: work by the part
// of the step that issued it, pauses by their cause, and exposed communication. Its segments are
// contiguous and add up to the step.

// PathLeg is one segment of the critical path of the median step.
type PathLeg struct {
	AtMS   float64    `json:"at_ms"` // since the step's start
	MS     float64    `json:"ms"`
	Share  float64    `json:"share"`         // of the step
	Part   string     `json:"part"`          // forward, backward, optimizer, communication, or wait
	Busy   float64    `json:"busy_share"`    // fraction of the segment in which the GPU or, without one, the main thread works
	Pieces int        `json:"pieces"`        // kernels and copies, or operators
	Top    []LegShare `json:"top,omitempty"` // the largest kinds of work
	Waits  string     `json:"waits_for,omitempty"`
	Where  string     `json:"where,omitempty"`

	start, end int64
	labels     map[string]float64
}

// LegShare is one kind of work in a segment.
type LegShare struct {
	What  string  `json:"what"`
	Share float64 `json:"share"` // of the segment's work
}

const (
	// legShare is the fraction of a step from which a pause, or another part of the step, is a
	// segment.
	legShare = 0.02
	legTop   = 2
)

// pieceOfPath is one piece of work on the path.
type pieceOfPath struct {
	trace.Span
	part, label string
	comm        bool
}

// pathInOrder returns the median step's path.
func (a *Analysis) pathInOrder() []PathLeg {
	step := a.middleStep()
	w := a.Steps[step]
	var list []pieceOfPath
	var pauses, bare []trace.Span
	wide := legShare * float64(w.End-w.Start)
	if len(a.Devices) > 0 {
		list, pauses = a.gpuPath(w), a.Gaps
		bare = bareComm(list, wide)
	} else if a.Main != nil {
		list, pauses = a.hostPath(w)
	}
	alone := map[int64]bool{} // starts of the intervals with communication only
	for _, b := range bare {
		alone[b.Start] = true
	}
	first := sort.Search(len(pauses), func(i int) bool { return pauses[i].End > w.Start })
	pauses = append(slices.Clone(pauses[first:]), bare...)
	slices.SortStableFunc(pauses, func(x, y trace.Span) int { return cmp.Compare(x.Start, y.Start) })
	var legs []PathLeg
	from, at := w.Start, 0
	work := func(to int64) {
		n := at
		for n < len(list) && list[n].Start < to {
			n++
		}
		if to > from {
			legs = append(legs, legsOf(trace.Span{Start: from, End: to}, list[at:n], wide)...)
		}
		at = n
	}
	for _, p := range pauses {
		if p.Start >= w.End {
			break
		}
		p = trace.Span{Start: max(p.Start, w.Start), End: min(p.End, w.End)}
		if float64(p.End-p.Start) < wide || p.Start < from {
			continue
		}
		work(p.Start)
		if alone[p.Start] {
			legs = append(legs, PathLeg{Part: "communication", start: p.Start, end: p.End})
		} else {
			legs = append(legs, PathLeg{Part: "wait", Waits: a.doing(p), Where: a.Where([]Place{{Span: p}}), start: p.Start, end: p.End})
		}
		from = p.End
	}
	work(w.End)
	fill(legs, list)
	for i := range legs {
		legs[i].finish(w)
	}
	return legs
}

// bareComm returns the wide intervals in which only communication runs. It merges two that have
// only a short piece between them.
func bareComm(list []pieceOfPath, wide float64) []trace.Span {
	var comm, other []trace.Span
	for _, p := range list {
		if p.comm {
			comm = append(comm, p.Span)
		} else {
			other = append(other, p.Span)
		}
	}
	if len(comm) == 0 {
		return nil
	}
	bare, _ := trace.Without(trace.Union(comm), trace.Union(other))
	var out []trace.Span
	for _, s := range bare {
		switch last := len(out) - 1; {
		case float64(s.End-s.Start) < wide:
		case last >= 0 && float64(s.Start-out[last].End) < wide:
			out[last].End = s.End
		default:
			out = append(out, s)
		}
	}
	return out
}

// fill sums the work in each segment. A piece counts its time in every segment that it overlaps,
// and its number in the segment in which it starts.
func fill(legs []PathLeg, list []pieceOfPath) {
	for i := range legs {
		l := &legs[i]
		if l.Part == "wait" {
			continue
		}
		l.labels = map[string]float64{}
		var spans []trace.Span
		for _, p := range list {
			if p.Start >= l.end {
				break
			}
			s := trace.Span{Start: max(p.Start, l.start), End: min(p.End, l.end)}
			if s.End < s.Start || s.End == s.Start && p.Start < l.start {
				continue
			}
			if p.Start >= l.start {
				l.Pieces++
			}
			l.labels[p.label] += float64(s.End - s.Start)
			spans = append(spans, s)
		}
		l.Busy = float64(trace.Total(trace.Union(spans)))
	}
}

// middleStep returns the first step of median length.
func (a *Analysis) middleStep() int {
	order := make([]int, len(a.Steps))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int {
		return cmp.Compare(a.Steps[x].End-a.Steps[x].Start, a.Steps[y].End-a.Steps[y].Start)
	})
	return order[(len(order)-1)/2]
}

// gpuPath returns the work of the first device inside a window, by the part that issued it.
func (a *Analysis) gpuPath(w trace.Window) []pieceOfPath {
	var out []pieceOfPath
	for _, i := range a.Devices[0].Works {
		g := a.GPU.At(int(i))
		if g.End() <= w.Start || g.Start >= w.End {
			continue
		}
		p := pieceOfPath{Span: trace.Span{Start: max(g.Start, w.Start), End: min(g.End(), w.End)}, part: "forward", label: "copies"}
		if g.Kind == trace.CatKernel {
			p.label = a.Names.List[g.Name].Family.String()
			if g.Comm {
				p.label, p.comm = trace.FamilyComm.String(), true
			}
		}
		if th, k, ok := a.callOf(g); ok {
			p.part = a.phase(th, th.Calls.At(k).Start)
		}
		out = append(out, p)
	}
	return out
}

// hostPath returns the operators of the main thread inside a window, and the pauses between them.
func (a *Analysis) hostPath(w trace.Window) ([]pieceOfPath, []trace.Span) {
	var out []pieceOfPath
	var pauses []trace.Span
	from := w.Start
	th := a.Main
	for i := range th.Ops.Len() {
		o := th.Ops.At(i)
		if o.End() <= w.Start || o.Start >= w.End {
			continue
		}
		s := trace.Span{Start: max(o.Start, w.Start), End: min(o.End(), w.End)}
		if s.Start > from {
			pauses = append(pauses, trace.Span{Start: from, End: s.Start})
		}
		from = max(from, s.End)
		out = append(out, pieceOfPath{Span: s, part: a.phaseOf(o, o.Start), label: trace.ShortName(a.Names.List[o.Name].Text)})
	}
	if from < w.End {
		pauses = append(pauses, trace.Span{Start: from, End: w.End})
	}
	return out, pauses
}

// legsOf splits an interval without a wide pause where the part of the step changes for long.
func legsOf(s trace.Span, list []pieceOfPath, wide float64) []PathLeg {
	legs := []PathLeg{{start: s.Start, end: s.End}}
	for i := range list {
		p := &list[i]
		if p.comm { // communication overlaps the other parts
			continue
		}
		if last := &legs[len(legs)-1]; last.Part != p.part {
			switch {
			case last.Part == "" || float64(p.Start-last.start) < wide && len(legs) == 1:
				last.Part = p.part
			case lasts(list[i:], s.End) >= wide:
				last.end = p.Start
				legs = append(legs, PathLeg{Part: p.part, start: p.Start, end: s.End})
			}
		}
	}
	return legs
}

// lasts returns the time for which the first piece's part of the step continues.
func lasts(list []pieceOfPath, end int64) float64 {
	for i := range list {
		if list[i].part != list[0].part {
			end = list[i].Start
			break
		}
	}
	return float64(end - list[0].Start)
}

// finish converts a segment's sums to shares.
func (l *PathLeg) finish(w trace.Window) {
	ns := float64(l.end - l.start)
	l.AtMS, l.MS, l.Share = float64(l.start-w.Start)/1e6, ns/1e6, ns/float64(w.End-w.Start)
	l.Busy = min(1, l.Busy/max(1, ns))
	var sum float64
	most := slices.SortedFunc(maps.Keys(l.labels), func(x, y string) int { return cmp.Or(cmp.Compare(l.labels[y], l.labels[x]), cmp.Compare(x, y)) })
	for i, what := range most {
		x := l.labels[what]
		if sum += x; i < legTop {
			l.Top = append(l.Top, LegShare{what, x})
		}
	}
	for i := range l.Top {
		l.Top[i].Share /= max(1, sum)
	}
	if l.Part == "" {
		l.Part = "forward"
	}
}
