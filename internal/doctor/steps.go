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
// An event that stands far from all the others, as one with a clock of its own does, is not part of
// it.
func (t *Trace) extent() (window, bool) {
	var all []span
	for _, th := range t.threads {
		for i := range th.ops.len() {
			o := th.ops.at(i)
			all = append(all, span{o.start, o.end()})
		}
		for i := range th.calls.len() {
			c := th.calls.at(i)
			all = append(all, span{c.start, c.end()})
		}
	}
	for i := range t.gpu.len() {
		g := t.gpu.at(i)
		all = append(all, span{g.start, g.end()})
	}
	all = append(all, t.loader...)
	if len(all) == 0 {
		return window{}, false
	}
	slices.SortFunc(all, func(x, y span) int { return cmp.Compare(x.start, y.start) })
	// A stray is told by the distance to its neighbour: a hundred times what all the others span.
	stray := func(gap, rest float64) bool { return len(all) > 2 && gap > strayTimes*max(1, rest) }
	for range min(maxStrays, len(all)/3) {
		first, next, last := all[0], all[1], all[len(all)-1]
		if !stray(float64(next.start)-float64(first.end), float64(last.start)-float64(next.start)) {
			break
		}
		all = all[1:]
		t.strays++
	}
	for range min(maxStrays, len(all)/3) {
		first, before, last := all[0], all[len(all)-2], all[len(all)-1]
		if !stray(float64(last.start)-float64(before.end), float64(before.start)-float64(first.start)) {
			break
		}
		all = all[:len(all)-1]
		t.strays++
	}
	w := window(all[0])
	for _, s := range all {
		w.end = max(w.end, s.end)
	}
	return w, w.end > w.start
}

const (
	strayTimes = 100
	maxStrays  = 8
)
