package trace

import (
	"cmp"
	"slices"
	"sort"
)

// Lists of spans are in time order and do not touch each other; union makes them so, and the other
// functions here neither accept nor return anything else.

// Covered is how much of a span lies in a list.
func Covered(list []Span, g Span) int64 {
	var ns int64
	for i := sort.Search(len(list), func(i int) bool { return list[i].End > g.Start }); i < len(list) && list[i].Start < g.End; i++ {
		ns += Overlap(list[i], g)
	}
	return ns
}

func Overlap(a, b Span) int64 { return max(0, min(a.End, b.End)-max(a.Start, b.Start)) }

// Clip cuts spans to the steps.
func Clip(list []Span, steps []Window) []Span {
	var out []Span
	for _, s := range list {
		first, _ := Within(steps, s.Start)
		for _, w := range steps[first:] {
			if w.Start >= s.End {
				break
			}
			out = append(out, Span{max(s.Start, w.Start), min(s.End, w.End)})
		}
	}
	return Union(out)
}

// Union merges spans that overlap or touch.
func Union(list []Span) []Span {
	slices.SortFunc(list, func(a, b Span) int { return cmp.Compare(a.Start, b.Start) })
	out := list[:0]
	for _, s := range list {
		if s.End <= s.Start {
			continue
		}
		if n := len(out); n > 0 && s.Start <= out[n-1].End {
			out[n-1].End = max(out[n-1].End, s.End)
			continue
		}
		out = append(out, s)
	}
	return out
}

// Without returns what is left of a when b is taken away, and how much that took.
func Without(a, b []Span) (rest []Span, taken int64) {
	return withoutEach(a, len(b), func(i int) Span { return b[i] })
}

// withoutEach is without for a second list that exists only an element at a time.
func withoutEach(a []Span, n int, b func(i int) Span) (rest []Span, taken int64) {
	j := 0
	for _, s := range a {
		for j > 0 && b(j-1).End > s.Start {
			j--
		}
		for ; j < n; j++ {
			take := b(j)
			if take.Start >= s.End {
				break
			}
			if take.End <= s.Start {
				continue
			}
			cut := Span{max(s.Start, take.Start), min(s.End, take.End)}
			taken += cut.End - cut.Start
			if cut.Start > s.Start {
				rest = append(rest, Span{s.Start, cut.Start})
			}
			s.Start = cut.End
		}
		if s.Start < s.End {
			rest = append(rest, s)
		}
	}
	return rest, taken
}

func Total(list []Span) int64 {
	var ns int64
	for _, s := range list {
		ns += s.End - s.Start
	}
	return ns
}

// tidySteps orders the steps and drops one that overlaps an earlier one, as a second thread or a
// repeated recording leaves them: a moment belongs to one step.
func tidySteps(list []Window) []Window {
	slices.SortFunc(list, func(a, b Window) int { return cmp.Compare(a.Start, b.Start) })
	out := list[:0]
	for _, w := range list {
		if w.End > w.Start && (len(out) == 0 || w.Start >= out[len(out)-1].End) {
			out = append(out, w)
		}
	}
	return out
}

// Within finds the step that holds a moment.
func Within(steps []Window, at int64) (int, bool) {
	i := sort.Search(len(steps), func(i int) bool { return steps[i].End > at })
	return i, i < len(steps) && steps[i].Start <= at
}

// Window is one profiler step; span any stretch of time, its end left out.
type (
	Window struct{ Start, End int64 }
	Span   struct{ Start, End int64 }
)
