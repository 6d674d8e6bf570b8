package trace

import (
	"cmp"
	"slices"
	"sort"
)

// Lists of spans are in time order and their spans do not touch. Union makes such lists. The other
// functions here take and return only such lists.

// Covered returns the length of g that the list covers.
func Covered(list []Span, g Span) int64 {
	var ns int64
	for i := sort.Search(len(list), func(i int) bool { return list[i].End > g.Start }); i < len(list) && list[i].Start < g.End; i++ {
		ns += Overlap(list[i], g)
	}
	return ns
}

func Overlap(a, b Span) int64 { return max(0, min(a.End, b.End)-max(a.Start, b.Start)) }

// Clip clips spans to the steps.
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

// Without returns a without b, and the length that was removed.
func Without(a, b []Span) (rest []Span, taken int64) {
	return withoutEach(a, len(b), func(i int) Span { return b[i] })
}

// withoutEach is Without for a second list whose elements are computed by b.
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

// tidySteps sorts the steps and drops any step that overlaps an earlier one, as in traces of
// several threads or repeated recordings. Each time then belongs to at most one step.
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

// Within returns the step that contains a time.
func Within(steps []Window, at int64) (int, bool) {
	i := sort.Search(len(steps), func(i int) bool { return steps[i].End > at })
	return i, i < len(steps) && steps[i].Start <= at
}

// Window is one profiler step. Span is any half-open interval of time.
type (
	Window struct{ Start, End int64 }
	Span   struct{ Start, End int64 }
)
