package search

import (
	"math"
	"slices"
	"testing"

	"haul/internal/vrp"
)

// TestFarTimesKeepTheirDigits: windows that count seconds or milliseconds since 1970, and an end
// that stands for none, leave lengths of time as they are. They were rounded up to what such
// numbers left of 28 bits, and customers whose windows fit exactly were on no route.
func TestFarTimesKeepTheirDigits(t *testing.T) {
	for _, from := range []float64{0, 1_700_000_000, 1_700_000_000_000} {
		for _, due := range []float64{50, 9_999_999_999, 99_999_999_999, 1e15, math.Inf(1)} {
			p := &vrp.Problem{Capacity: 9, Demand: []int32{0, 1, 1, 1, 1}, X: []float64{0, 7, 14, 21, 28}, Y: make([]float64, 5), Metric: vrp.Exact,
				Service: []float64{0, 0, 3, 0, 0}}
			p.Windows = [][]vrp.Window{nil, {{From: from + 7, To: from + 7}}, {{From: from + 14, To: from + 14}}, {{From: from + 24, To: from + 24}}, {{From: from, To: from + due}}}
			s, err := Solve(t.Context(), p, Options{Iterations: 300, Workers: 1})
			if err != nil {
				t.Fatal(err)
			}
			if len(s.Solution.Routes) != 1 || len(s.Solution.Routes[0]) != 4 || s.Cost != 56 {
				t.Errorf("from %g, due %g: cost %g, routes %v", from, due, s.Cost, s.Solution.Routes)
			}
		}
	}
}

// TestUnits: lengths stay within their limit and points within theirs, and only where points are
// far beyond lengths do they leave the limit of both.
func TestUnits(t *testing.T) {
	for _, c := range []struct {
		lengths, points []float64
		want            float64
	}{
		{[]float64{3}, []float64{1 << 28}, 1},
		{[]float64{3}, []float64{1<<28 + 1}, 1},
		{[]float64{3}, []float64{1 << 44}, 1},
		{[]float64{3}, []float64{1<<44 + 2}, 0.5},
		{[]float64{1 << 28}, nil, 1},
		{[]float64{1<<28 + 1}, nil, 0.5},
		{[]float64{0.5}, []float64{3}, 10},
		{[]float64{0.125}, []float64{3}, 1000},
		{[]float64{0.1, 1. / 3}, []float64{300}, 1 << 19},  // one limit for both
		{[]float64{0.1, 1. / 3}, []float64{3000}, 1 << 29}, // points of their own, and the lengths' limit
		{nil, []float64{1. / 3}, 1 << 29},
		{nil, nil, 1},
	} {
		all := func(list []float64) func(func(float64)) {
			return func(yield func(float64)) {
				for _, x := range list {
					yield(x)
				}
			}
		}
		got := unitOf(all(c.lengths), all(c.points), mostLength, mostPoint)
		if got != c.want || slices.ContainsFunc(c.lengths, func(x float64) bool { return x*got > mostLength }) || slices.ContainsFunc(c.points, func(x float64) bool { return x*got > mostPoint }) {
			t.Errorf("%v %v: %g, want %g", c.lengths, c.points, got, c.want)
		}
	}
}
