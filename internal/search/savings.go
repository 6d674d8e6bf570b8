package search

import (
	"haul/internal/search/construct"
	"haul/internal/search/model"
	"haul/internal/search/neighbour"
	"haul/internal/vrp"

	"context"
	"fmt"
)

// Clarke and Wright's savings. The method is deterministic. Equal savings are taken in order of
// customer numbers, so problem and budget fix the routes; no map range and no clock may be used
// here.

// Budget of Savings, in iterations: perturbPairs times N², and perturbAtMost.
const (
	perturbPairs  = 2
	perturbAtMost = 30000
)

// Savings builds routes with the parallel savings of Clarke and Wright (1964) and improves them by
// ruin and recreate. Customers at the depot's place join routes with room (Gather). The fleet is
// unbounded. The same problem always gives the same routes.
func Savings(ctx context.Context, p *vrp.Problem) (vrp.Solution, error) {
	n := p.N()
	return savingsFor(ctx, p, min(perturbPairs*n*min(n, perturbAtMost), perturbAtMost))
}

// savingsFor is Savings with a budget of iterations; 0: the joined routes.
func savingsFor(ctx context.Context, p *vrp.Problem, iterations int) (vrp.Solution, error) {
	if err := p.Check(); err != nil {
		return vrp.Solution{}, fmt.Errorf("savings: %w", err)
	}
	if err := p.Plain(); err != nil {
		return vrp.Solution{}, fmt.Errorf("savings knows no limit but the capacity, and %s is not such a problem: %w; use the search", named(p), err)
	}
	t := model.NewMetricTable(p)
	var near *neighbour.Neighbours
	if p.N() > model.AllPairs {
		var err error
		if near, err = neighbour.NewNeighbours(ctx, t, model.SavingsNear); err != nil {
			return vrp.Solution{}, err
		}
	}
	s, whole := construct.Savings(ctx, t, near)
	if !whole {
		return vrp.Solution{}, ctx.Err()
	}
	s = p.MergeAtDepot(s)
	if iterations <= 0 || p.N() < 3 {
		return s, nil
	}
	r, err := Solve(ctx, p, Options{Iterations: iterations, Start: &s})
	if err != nil {
		return vrp.Solution{}, err
	}
	if r.Interrupted {
		return vrp.Solution{}, ctx.Err()
	}
	return p.MergeAtDepot(r.Solution), nil
}

func named(p *vrp.Problem) string {
	if p.Name == "" {
		return "this"
	}
	return p.Name
}
