package search

import (
	"math"
	"slices"
	"testing"

	"haul/internal/search/model"
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

// TestBarredWays: a matrix bars ways by a length that nobody means to go. The others keep their
// digits: they were rounded to what such a length left of 28 bits, down as well as up, so that
// routes broke windows and the search ended with an error.
func TestBarredWays(t *testing.T) {
	const n = 16
	usual := 0.0
	for _, barred := range []float64{1e5, 1e7, 1e9, 1e10, 1e12} {
		p := &vrp.Problem{Capacity: 6, Demand: make([]int32, n), Metric: vrp.Explicit, Weights: make([]float64, n*n), Windows: make([][]vrp.Window, n)}
		s := model.NewStream(7, 1)
		x, y := make([]float64, n), make([]float64, n)
		for i := range n {
			x[i], y[i] = 100*s.Float(), 100*s.Float()
			if i > 0 {
				from := 250 * s.Float()
				p.Demand[i], p.Windows[i] = 1, []vrp.Window{{From: from, To: from + 60}}
			}
		}
		for i := range n {
			for j := range n {
				if p.Weights[i*n+j] = math.Hypot(x[i]-x[j], y[i]-y[j]); i != 0 && j != 0 && i != j && s.Float() < 0.1 {
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
