package doctor

import (
	"cmp"
	"slices"
	"sort"
)

// Lists of spans are in time order and do not touch each other; union makes them so, and the other
// functions here neither accept nor return anything else.

// union merges spans that overlap or touch.
func union(list []span) []span {
	slices.SortFunc(list, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	out := list[:0]
	for _, s := range list {
		if s.end <= s.start {
			continue
		}
		if n := len(out); n > 0 && s.start <= out[n-1].end {
			out[n-1].end = max(out[n-1].end, s.end)
			continue
		}
		out = append(out, s)
	}
	return out
}

// without returns what is left of a when b is taken away, and how much that took.
func without(a, b []span) (rest []span, taken int64) {
	return withoutEach(a, len(b), func(i int) span { return b[i] })
}

// withoutEach is without for a second list that exists only an element at a time.
func withoutEach(a []span, n int, b func(i int) span) (rest []span, taken int64) {
	j := 0
	for _, s := range a {
		for j > 0 && b(j-1).end > s.start {
			j--
		}
		for ; j < n; j++ {
			take := b(j)
			if take.start >= s.end {
				break
			}
			if take.end <= s.start {
				continue
			}
			cut := span{max(s.start, take.start), min(s.end, take.end)}
			taken += cut.end - cut.start
			if cut.start > s.start {
				rest = append(rest, span{s.start, cut.start})
			}
			s.start = cut.end
		}
		if s.start < s.end {
			rest = append(rest, s)
		}
	}
	return rest, taken
}

func total(list []span) int64 {
	var ns int64
	for _, s := range list {
		ns += s.end - s.start
	}
	return ns
}

// tidySteps orders the steps and drops one that overlaps an earlier one, as a second thread or a
// repeated recording leaves them: a moment belongs to one step.
func tidySteps(list []window) []window {
	slices.SortFunc(list, func(a, b window) int { return cmp.Compare(a.start, b.start) })
	out := list[:0]
	for _, w := range list {
		if w.end > w.start && (len(out) == 0 || w.start >= out[len(out)-1].end) {
			out = append(out, w)
		}
	}
	return out
}

// within finds the step that holds a moment.
func within(steps []window, at int64) (int, bool) {
	i := sort.Search(len(steps), func(i int) bool { return steps[i].end > at })
	return i, i < len(steps) && steps[i].start <= at
}

// extent is the stretch from the first to the last event: the one step of a trace that marks none.
func (t *Trace) extent() (window, bool) {
	w, any := window{}, false
	grow := func(start, end int64) {
		if !any {
			w, any = window{start, end}, true
		}
		w.start, w.end = min(w.start, start), max(w.end, end)
	}
	for _, th := range t.threads {
		for i := range th.ops.len() {
			o := th.ops.at(i)
			grow(o.start, o.end())
		}
		for i := range th.calls.len() {
			c := th.calls.at(i)
			grow(c.start, c.end())
		}
	}
	for i := range t.gpu.len() {
		g := t.gpu.at(i)
		grow(g.start, g.end())
	}
	for _, s := range t.loader {
		grow(s.start, s.end)
	}
	return w, any && w.end > w.start
}
