package model

import (
	"slices"
	"testing"
)

// TestUnits: lengths stay within their limit and points within theirs, and only where points are
// far beyond lengths do they leave the limit of both. Lengths that nobody means to go take no
// digits from the others, unless a limit is above them.
func TestUnits(t *testing.T) {
	for _, c := range []struct {
		lengths, points, limits []float64
		unit                    float64
		whole                   bool
	}{
		{[]float64{3}, []float64{1 << 28}, nil, 1, true},
		{[]float64{3}, []float64{1<<28 + 1}, nil, 1, true},
		{[]float64{3}, []float64{1 << 44}, nil, 1, true},
		{[]float64{3}, []float64{1<<44 + 2}, nil, 0.5, false},
		{[]float64{1 << 28}, nil, nil, 1, true},
		{[]float64{1<<28 + 1}, nil, nil, 0.5, false},
		{[]float64{0.5}, []float64{3}, nil, 10, true},
		{[]float64{0.125}, []float64{3}, nil, 1000, true},
		{[]float64{0.1, 1. / 3}, []float64{300}, nil, 1 << 19, false}, // one limit for both
		// points of their own, and the lengths' limit
		{[]float64{0.1, 1. / 3}, []float64{3000}, nil, 1 << 29, false},
		{nil, []float64{1. / 3}, nil, 1 << 29, false},
		{nil, nil, nil, 1, true},
		{[]float64{1, 2, 1e9}, nil, nil, 1, true},
		{[]float64{0.1, 0.3, 1e9}, nil, nil, 10, true},
		{[]float64{1. / 3, 0.3, 1e9}, nil, nil, 1 << 23, false},
		{[]float64{1. / 3, 0.3, 1e9}, nil, []float64{300}, 1 << 19, false},
		{[]float64{1. / 3, 0.3, 1e9}, nil, []float64{1e9}, 0.25, false}, // a route may go it
		{[]float64{1. / 3, 0.3, 1e9}, []float64{30}, []float64{30}, 1 << 23, false},
		{[]float64{1. / 3, 1e9, 1e9}, nil, nil, 0.25, false},        // most are so long
		{[]float64{1. / 3, 0.3, 1 << 16}, nil, nil, 1 << 12, false}, // not so far away
	} {
		all := func(list []float64) values {
			return func(yield func(float64)) {
				for _, x := range list {
					yield(x)
				}
			}
		}
		of := &numbers{}
		of.read(all(c.lengths))
		unit, whole := unitOf(of, all(c.points), all(c.limits))
		if unit != c.unit || whole != c.whole || slices.ContainsFunc(c.points, func(x float64) bool { return x*unit > mostPoint }) {
			t.Errorf("%v %v %v: %g %v, want %g %v", c.lengths, c.points, c.limits, unit, whole, c.unit, c.whole)
		}
	}
}
