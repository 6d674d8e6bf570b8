package trace

import (
	"cmp"
	"slices"
)

// A trace without marked steps is measured from its first to its last event, without outliers.

// Extent returns the interval from the first to the last event: the single step of a trace that
// marks none. It leaves out an event that is far from all others, such as an event of another
// clock.
func (t *Trace) Extent() (Window, bool) {
	var all []Span
	for _, th := range t.Threads {
		for i := range th.Ops.Len() {
			o := th.Ops.At(i)
			all = append(all, Span{o.Start, o.End()})
		}
		for i := range th.Calls.Len() {
			c := th.Calls.At(i)
			all = append(all, Span{c.Start, c.End()})
		}
	}
	for i := range t.GPU.Len() {
		g := t.GPU.At(i)
		all = append(all, Span{g.Start, g.End()})
	}
	all = append(all, t.Loader...)
	if len(all) == 0 {
		return Window{}, false
	}
	slices.SortFunc(all, func(x, y Span) int { return cmp.Compare(x.Start, y.Start) })
	// An event is an outlier if its distance to its neighbour is a hundred times the span of the
	// others.
	stray := func(gap, rest float64) bool { return len(all) > 2 && gap > strayTimes*max(1, rest) }
	for range min(maxStrays, len(all)/3) {
		first, next, last := all[0], all[1], all[len(all)-1]
		if !stray(float64(next.Start)-float64(first.End), float64(last.Start)-float64(next.Start)) {
			break
		}
		all = all[1:]
		t.strays++
	}
	for range min(maxStrays, len(all)/3) {
		first, before, last := all[0], all[len(all)-2], all[len(all)-1]
		if !stray(float64(last.Start)-float64(before.End), float64(before.Start)-float64(first.Start)) {
			break
		}
		all = all[:len(all)-1]
		t.strays++
	}
	w := Window(all[0])
	for _, s := range all {
		w.End = max(w.End, s.End)
	}
	return w, w.End > w.Start
}

const (
	strayTimes = 100
	maxStrays  = 8
)
