package search

import (
	"context"
	"math"
	"testing"

	"haul/internal/vrp"
	"haul/internal/vrp/testset"
)

// A proof does not depend on where it begins: other seeds, other first routes, the same cost. It is
// the same routes for the same seed, and what the search finds without it is never better.
func TestProofsAgree(t *testing.T) {
	for _, name := range []string{"vrptw", "mdvrpmbltw", "ovrpbtw"} {
		set, err := testset.RouteFinder(name, 50)
		if err != nil {
			t.Fatal(err)
		}
		p := set.Problems[2]
		var costs []float64
		for _, seed := range []uint64{1, 2, 1} {
			r, err := Solve(context.Background(), p, Options{Iterations: 15_000, Seed: seed, Workers: int(1 + seed)})
			if err != nil {
				t.Fatal(err)
			}
			if !r.Proven || r.Iterations >= 15_000 || vrp.Validate(p, r.Solution) != nil {
				t.Errorf("%s: proven %v after %d iterations, %v", name, r.Proven, r.Iterations, vrp.Validate(p, r.Solution))
			}
			costs = append(costs, r.Cost)
		}
		if math.Abs(costs[0]-costs[1]) > 1e-5 || costs[0] != costs[2] {
			t.Errorf("%s: %v", name, costs)
		}
		c := flatten(t, p)
		for range 4000 {
			c.step(generalEnd * c.Leg)
		}
		if c.bestCost < costs[0]-1e-5 {
			t.Errorf("%s: %g is below a proven %g", name, c.bestCost, costs[0])
		}
	}
}
