package routing

import (
	"context"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"haul/internal/env/cvrp"
	"haul/internal/rng"
)

// TestBeamSearch: the search is never worse than the starts that it begins with, better on some, the same in batches of any size, and with
// a beam that holds every beginning of a small problem it ends at the optimum.
func TestBeamSearch(t *testing.T) {
	p := loadSaved(t)
	problems := some(t, p)
	costs := map[string][]Routed{}
	for _, name := range []string{"pomo", "sgbs:1,2", "sgbs:4,4", "pomo8", "sgbs8:2,3"} {
		d, err := ParseDecode(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, batch := range []int{0, 1, 4} {
			routed, err := p.RouteMany(t.Context(), problems, ManyOptions{Decode: d, Batch: batch})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if batch == 0 {
				costs[name] = routed
			}
			if diff := cmp.Diff(costs[name], routed); diff != "" {
				t.Errorf("%s in batches of %d: %s", name, batch, diff)
			}
		}
	}
	for _, pair := range [][2]string{{"pomo", "sgbs:1,2"}, {"pomo", "sgbs:4,4"}, {"pomo8", "sgbs8:2,3"}} {
		better := 0
		for i, prob := range problems {
			before, after := costs[pair[0]][i].Cost, costs[pair[1]][i].Cost
			if after > before {
				t.Errorf("%s: %s costs %g, %s %g", prob.Name, pair[0], before, pair[1], after)
			}
			if after < before {
				better++
			}
			if err := cvrp.Validate(prob, costs[pair[1]][i].Solution); err != nil {
				t.Errorf("%s by %s: %v", prob.Name, pair[1], err)
			}
		}
		if better == 0 {
			t.Errorf("%s improved nothing over %s", pair[1], pair[0])
		}
	}

	small := p.Source(rng.TestInstances)
	small.N = 4
	b := cvrp.NewBatch(12, small.N, small.Capacity)
	small.Fill(b, 0)
	var few []*cvrp.Problem
	for i := range b.B {
		few = append(few, b.Problem(i))
	}
	best, _, err := cvrp.OptimalSolutions(t.Context(), few, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	routed, err := p.RouteMany(t.Context(), few, ManyOptions{Decode: Decode{Starts: true, Beam: 64, Expand: 5}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range few {
		if math.Abs(routed[i].Cost/best[i]-1) > 1e-6 {
			t.Errorf("instance %d of four customers costs %g, the optimum is %g", i, routed[i].Cost, best[i])
		}
	}
}

// TestBeamSearchElsewhere: by eval of generated instances, by solve with a metric that rounds, and interrupted.
func TestBeamSearchElsewhere(t *testing.T) {
	p := loadSaved(t)
	d, err := ParseDecode("sgbs")
	if err != nil {
		t.Fatal(err)
	}
	src := p.Source(rng.TestInstances)
	e, err := p.Evaluate(t.Context(), EvalOptions{Source: src, First: 3, Count: 7, Decode: d, Judge: true, KeepTours: true})
	if err != nil {
		t.Fatal(err)
	}
	plain, err := p.Evaluate(t.Context(), EvalOptions{Source: src, First: 3, Count: 7, Decode: Decode{Starts: true}, Judge: true})
	if err != nil {
		t.Fatal(err)
	}
	for i := range e.Lengths {
		if e.Lengths[i] > plain.Lengths[i]*(1+1e-6) || e.Tours[i][0] != 0 {
			t.Errorf("instance %d: %g, by starts alone %g", i, e.Lengths[i], plain.Lengths[i])
		}
	}
	prob := some(t, p)[12]
	prob.Metric = cvrp.Rounded
	for j := range prob.X {
		prob.X[j], prob.Y[j] = 100*prob.X[j], 100*prob.Y[j]
	}
	_, before, err := p.Solve(t.Context(), prob, Decode{Starts: true, Symmetries: 8})
	if err != nil {
		t.Fatal(err)
	}
	d.Symmetries = 8
	sol, cost, err := p.Solve(t.Context(), prob, d)
	if err != nil || cost != prob.Cost(sol) || cost > before || cost != math.Trunc(cost) {
		t.Errorf("%v: %g after %g", err, cost, before)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := p.Solve(ctx, prob, d); err == nil {
		t.Error("it went on")
	}
}
