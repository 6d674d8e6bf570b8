package policy

import (
	"math"
	"testing"

	"haul/internal/vrp"
)

// TestJoinTakesRoutesOfSeveralTours: two routes are replaced by two others from different
// solutions, though no two solutions have a group in common.
func TestJoinTakesRoutesOfSeveralTours(t *testing.T) {
	p := &vrp.Problem{Capacity: 2, Demand: []int32{0, 1, 1, 1, 1, 1, 1}, X: []float64{0, 1, -1, 1.1, -1.1, 0, 0}, Y: []float64{0, 0, 0, 0, 0, 1, 1.1}}
	tours := [][]int32{{1, 2, 0, 3, 4, 0, 5, 6, 0}, {1, 3, 0, 2, 5, 0, 4, 6, 0}, {2, 4, 0, 1, 6, 0, 3, 5, 0}}
	got, want := newRecombiner(p).join(tours), vrp.FromTour([]int32{5, 6, 0, 1, 3, 0, 2, 4, 0})
	if got.Routes == nil || vrp.Validate(p, got) != nil || math.Abs(p.Cost(got)-p.Cost(want)) > 1e-12 {
		t.Errorf("%v costs %g, %v %g", got, p.Cost(got), want, p.Cost(want))
	}
	for k := range tours {
		if got := newRecombiner(p).join(append(tours[:k:k], tours[k+1:]...)); got.Routes != nil && p.Cost(got) <= p.Cost(want) {
			t.Errorf("without tour %d: %v", k, got)
		}
	}
}

// TestJoinOfManyCustomers: above maxPooled only pairs of solutions are recombined.
func TestJoinOfManyCustomers(t *testing.T) {
	for _, n := range []int{maxPooled - 1, maxPooled, maxPooled + 1} {
		p := &vrp.Problem{Capacity: 2, Demand: make([]int32, n+1), X: make([]float64, n+1), Y: make([]float64, n+1)}
		var tours [2][]int32
		for v := 1; v <= n; v++ {
			p.Demand[v], p.X[v], p.Y[v] = 1, math.Cos(float64(v)), math.Sin(float64(v))
			for k := range tours {
				if tours[k] = append(tours[k], int32(v)); (v+k)%2 == 0 {
					tours[k] = append(tours[k], 0)
				}
			}
		}
		// the first two routes of a solution as four of one customer: longer, otherwise equal
		worse := append([]int32{1, 0, 2, 0, 3, 0, 4, 0}, tours[0][6:]...)
		got := newRecombiner(p).join([][]int32{worse, tours[0], tours[1]})
		if got.Routes != nil && vrp.Validate(p, got) != nil {
			t.Errorf("%d customers: %v", n, vrp.Validate(p, got))
		}
		if got = newRecombiner(p).join([][]int32{worse, tours[1], append([]int32{1, 2, 0, 3, 4, 0}, worse[8:]...)}); got.Routes != nil && p.Cost(got) > p.Cost(vrp.FromTour(tours[0]))+1e-9 {
			t.Errorf("%d customers: %g, one of the tours has %g", n, p.Cost(got), p.Cost(vrp.FromTour(tours[0])))
		}
	}
}
