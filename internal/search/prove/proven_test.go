package prove_test

import (
	"context"
	"math"
	"testing"

	"haul/internal/search"
	"haul/internal/search/prove"
	"haul/internal/vrp"
)

// A search that says so has found the least cost of all solutions, and says so of every problem as
// small as these.
func TestProvenIsTheOptimum(t *testing.T) {
	for i, name := range []string{"vrptw", "vrpbltw", "mdvrpmbtw", "ovrptw", "mdovrpbltw", "vrpmbltw"} {
		p := prove.Few(t, name, 20+i, 7, 0.4)
		depots := p.DepotCount()
		// The cheapest route of every set of customers, then the cheapest sets.
		least := make([]float64, 1<<7)
		for set := range least {
			least[set] = math.Inf(1)
		}
		for kind := range p.Types() {
			for key, way := range prove.AllRoutes(t, p, int32(kind)) {
				set := 0
				for _, v := range prove.Ints(t, key) {
					set |= 1 << (int(v) - depots)
				}
				least[set] = min(least[set], way)
			}
		}
		best := make([]float64, 1<<7)
		for set := 1; set < len(best); set++ {
			best[set] = math.Inf(1)
			for part := set; part > 0; part = (part - 1) & set {
				best[set] = min(best[set], least[part]+best[set&^part])
			}
		}
		var first *search.Result
		for _, workers := range []int{1, 3} {
			r, err := search.Solve(context.Background(), p, search.Options{Iterations: 2000, Seed: 2, Workers: workers})
			if err != nil {
				t.Fatal(err)
			}
			if !r.Proven || math.Abs(r.Cost-best[len(best)-1]) > 1e-5 || vrp.Validate(p, r.Solution) != nil {
				t.Errorf("%s: %g (proven: %v) of %g, %v", name, r.Cost, r.Proven, best[len(best)-1], vrp.Validate(p, r.Solution))
			}
			if first == nil {
				first = r
			} else if r.Iterations != first.Iterations || r.Cost != first.Cost {
				t.Errorf("%s: %d workers find %g in %d iterations, one %g in %d", name, workers, r.Cost, r.Iterations, first.Cost, first.Iterations)
			}
		}
	}
}

// Where a route might come back to a customer, where vehicles are few, or where routes are fixed,
// nothing is proven.
func TestNothingIsProven(t *testing.T) {
	for what, ask := range map[string]func(p *vrp.Problem, o *search.Options){
		"wide windows": func(p *vrp.Problem, o *search.Options) {
			for v := 1; v < len(p.Windows); v++ {
				p.Windows[v][0].To += 0.5
			}
		},
		"few vehicles": func(p *vrp.Problem, o *search.Options) { p.Fleet[0].Count = 2 },
		"fixed routes": func(p *vrp.Problem, o *search.Options) {
			r, err := search.Solve(context.Background(), p, search.Options{Iterations: 100})
			if err != nil {
				t.Fatal(err)
			}
			o.Start, o.Fixed = &r.Solution, make([]int32, len(r.Solution.Routes))
		},
	} {
		p := prove.Few(t, "vrptw", 5, 9, 0)
		o := search.Options{Iterations: 300, Partial: true}
		ask(p, &o)
		if r, err := search.Solve(context.Background(), p, o); err != nil || r.Proven || r.Iterations != 300 {
			t.Errorf("%s: %+v, %v", what, r, err)
		}
	}
}
