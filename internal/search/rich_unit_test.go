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
		{[]float64{0.1, 1. / 3}, []float64{300}, nil, 1 << 19, false},  // one limit for both
		{[]float64{0.1, 1. / 3}, []float64{3000}, nil, 1 << 29, false}, // points of their own, and the lengths' limit
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

// TestBarredWays: a matrix bars ways by a length that nobody means to go. The others keep their
// digits: they were rounded to what such a length left of 28 bits, down as well as up, so that
// routes broke windows and the search ended with an error.
func TestBarredWays(t *testing.T) {
	const n = 16
	usual := 0.0
	for _, barred := range []float64{1e5, 1e7, 1e9, 1e10, 1e12} {
		p := &vrp.Problem{Capacity: 6, Demand: make([]int32, n), Metric: vrp.Explicit, Weights: make([]float64, n*n), Windows: make([][]vrp.Window, n)}
		s := newStream(7, 1)
		x, y := make([]float64, n), make([]float64, n)
		for i := range n {
			x[i], y[i] = 100*s.unit(), 100*s.unit()
			if i > 0 {
				from := 250 * s.unit()
				p.Demand[i], p.Windows[i] = 1, []vrp.Window{{From: from, To: from + 60}}
			}
		}
		for i := range n {
			for j := range n {
				if p.Weights[i*n+j] = math.Hypot(x[i]-x[j], y[i]-y[j]); i != 0 && j != 0 && i != j && s.unit() < 0.1 {
					p.Weights[i*n+j] = barred
				}
			}
		}
		r, err := Solve(t.Context(), p, Options{Iterations: 4000, Workers: 1})
		if err != nil {
			t.Errorf("%g: %v", barred, err)
			continue
		}
		if barred == 1e5 {
			usual = r.Cost
		}
		if len(r.Unserved) > 0 || math.Abs(r.Cost-usual) > 0.01*usual {
			t.Errorf("%g: cost %g, %g where ways are 100,000 long, %v on no route", barred, r.Cost, usual, r.Unserved)
		}
	}
}

// TestWaysAreNoShorterInUnits: where a long way leaves units in which no way is whole, lengths of
// time are rounded up. They shared the table of distances, which rounds to the nearest.
func TestWaysAreNoShorterInUnits(t *testing.T) {
	p := &vrp.Problem{Capacity: 6, Demand: []int32{0, 1, 1}, Metric: vrp.Explicit, Windows: [][]vrp.Window{nil, {{From: 0, To: 10.001}}, nil},
		Weights: []float64{0, 10.003, 10, 10.003, 0, 2e6, 10, 2e6, 0}}
	r, err := Solve(t.Context(), p, Options{Iterations: 200, Workers: 1})
	if err != nil || !slices.Equal(r.Unserved, []int32{1}) {
		t.Errorf("%v: %+v", err, r)
	}
}
