package search

import (
	"context"
	"math"
	"slices"
	"testing"

	"haul/internal/search/model"
	"haul/internal/vrp"
)

// Three half-empty routes become two full ones, the books agree with the routes, and where there is
// no vehicle for a cut it is not made.
func TestRoutesAreCutAnew(t *testing.T) {
	small, large := vrp.NewVehicleType(4), vrp.NewVehicleType(6)
	small.FixedCost, large.FixedCost = 100, 120
	n := 12
	p := &vrp.Problem{Demand: make([]int32, n+1), X: make([]float64, n+1), Y: make([]float64, n+1), Metric: vrp.Exact,
		Fleet: []vrp.VehicleType{small, large}}
	for v := 1; v <= n; v++ {
		p.Demand[v], p.X[v], p.Y[v] = 1, float64(20+v%3), float64(v)
	}
	m := compileNear(context.Background(), p)
	routes := [][]int32{{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 10, 11, 12}}
	for seed := range uint64(20) {
		c := newCandidate(m, model.NewStream(seed, 1))
		if c.Traits.Fleet != model.SplitsAnew || !c.set(routes, []int32{0, 0, 0}, nil) {
			t.Fatal("the routes are not cut anew, or break a limit")
		}
		was := c.cost
		c.begin()
		for r := range routes {
			c.touch(int32(r))
		}
		c.resplit()
		c.keep()
		// At worst the middle route is turned round: two of six in a row are still cheaper.
		if len(c.routes) != 2 || c.used[0] != 0 || c.used[1] != 2 || c.cost > was-40 {
			t.Fatalf("seed %d: %d routes, vehicles %v, cost %g of %g", seed, len(c.routes), c.used, c.cost, was)
		}
		cost := c.cost
		c.remember()
		var all []int32
		for _, r := range c.best {
			all = append(all, r...)
		}
		if slices.Sort(all); len(all) != n || all[0] != 1 || all[n-1] != int32(n) {
			t.Errorf("seed %d: served are %v", seed, all)
		}
		if !c.set(c.best, c.bestKind, nil) || math.Abs(c.cost-cost) > 1e-6 {
			t.Errorf("seed %d: the routes cost %g, the books say %g", seed, c.cost, cost)
		}
	}
	m.Types[1].Count = 1
	c := newCandidate(m, model.NewStream(1, 1))
	c.set(routes, []int32{0, 0, 0}, nil)
	c.begin()
	for r := range routes {
		c.touch(int32(r))
	}
	c.resplit()
	c.keep()
	if c.used[1] > 1 {
		t.Errorf("one large vehicle drives %d routes", c.used[1])
	}
}
