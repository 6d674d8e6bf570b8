package policy

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/rng"
	"haul/internal/vrp"
)

// tours returns settings of the travelling salesman problem.
func tours(t *testing.T, n int) *config.Config {
	t.Helper()
	c, err := config.Load("quick", []string{"problem.single_tour=true", fmt.Sprintf("problem.num_customers=%d", n)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestSingleToursHaveNoLimits: settings that would limit a tour are refused.
func TestSingleToursHaveNoLimits(t *testing.T) {
	for _, set := range []string{"problem.max_route_length=2.8", "problem.attributes=ovrp", "problem.capacity_range=[12, 40]"} {
		if _, err := config.Load("quick", []string{"problem.single_tour=true", set}); err == nil || !strings.Contains(err.Error(), "problem.single_tour has one vehicle without limits") {
			t.Errorf("%s: %v", set, err)
		}
	}
}

// TestSingleTours: the validator accepts one tour of all customers and no second vehicle, for any
// capacity in the settings. The reference of validation is the optimal tour.
func TestSingleTours(t *testing.T) {
	c := tours(t, 6)
	c.Problem.VehicleCapacity, c.Problem.DemandRange = 3, [2]int{1, 3} // single tours ignore demands
	src := SourceOf(c, rng.TestInstances)
	if rulesOf(src) != kernel.TSP || ReferenceMethod(src) != Optimum || !slices.Equal(variantsOf(src), []string{"tsp"}) || Learned(src, "cvrp") {
		t.Errorf("rules %v by %s, variants %v, learned %v", rulesOf(src), ReferenceMethod(src), variantsOf(src), Learned(src, "cvrp"))
	}
	b := vrp.NewBatch(3, src.N, src.Capacity)
	src.Fill(b, 40)
	optimal := make([]float64, b.B)
	if err := vrp.OptimalCosts(t.Context(), src, 40, b.B, 1, optimal, nil); err != nil {
		t.Fatal(err)
	}
	var broken *vrp.Violation
	if err := b.Validate(0, []int32{0, 1, 2, 3, 4, 5, 6, 0}); err != nil {
		t.Errorf("one tour: %v", err)
	}
	if err := b.Validate(0, []int32{0, 1, 2, 3, 0, 4, 5, 6, 0}); !errors.As(err, &broken) || broken.Rule != vrp.WithinFleet {
		t.Errorf("two tours: %v", err)
	}
	for i := range b.B {
		p, best := b.Problem(i), math.Inf(1)
		if p.Vehicles != 1 || p.Check() != nil {
			t.Fatalf("%+v, %v", p, p.Check())
		}
		everyOrder(6, func(order []int32) { best = min(best, p.Cost(vrp.Solution{Routes: [][]int32{order}})) })
		if math.Abs(best-optimal[i]) > 1e-9 {
			t.Errorf("instance %d: the best of all tours is %v, the optimum %v", i, best, optimal[i])
		}
	}
}

// everyOrder calls f with every order of n customers.
func everyOrder(n int, f func([]int32)) {
	order := make([]int32, n)
	for i := range order {
		order[i] = int32(i + 1)
	}
	var walk func(at int)
	walk = func(at int) {
		if at == n {
			f(order)
			return
		}
		for i := at; i < n; i++ {
			order[at], order[i] = order[i], order[at]
			walk(at + 1)
			order[at], order[i] = order[i], order[at]
		}
	}
	walk(0)
}

// TestSingleToursOfGivenProblems: a policy of single tours takes problems that one vehicle can
// carry, also if they state the number of vehicles, and refuses a load of one more. A policy of
// CVRP refuses problems that state a number of vehicles.
func TestSingleToursOfGivenProblems(t *testing.T) {
	c := tours(t, 3)
	for _, x := range []struct {
		name     string
		vehicles int
		capacity int32
		says     string
	}{
		{"one vehicle", 1, 6, ""}, {"any number", 0, 6, ""}, {"room to spare", 2, 7, ""},
		{"one too many", 1, 5, "its customers demand 6, more than one vehicle carries (5)"},
	} {
		p := &vrp.Problem{Metric: vrp.Exact, Vehicles: x.vehicles, Capacity: x.capacity, Demand: []int32{0, 1, 2, 3}, X: []float64{10, 30, 14, 22}, Y: []float64{5, 9, 25, 11}}
		if err := Takes(c, p); (err == nil) != (x.says == "") || err != nil && !strings.Contains(err.Error(), x.says) {
			t.Errorf("%s: %v", x.name, err)
		}
		p.MaxDuration = 9
		if err := Takes(c, p); err == nil {
			t.Errorf("%s: a limit of duration is taken", x.name)
		}
	}
}

// TestVariantsThatWereNotLearnedAreRefused: a policy of some variants takes problems of these, and
// names the variant of any other problem.
func TestVariantsThatWereNotLearnedAreRefused(t *testing.T) {
	c, err := config.Load("quick", []string{"problem.attributes=cvrp,ovrp"})
	if err != nil {
		t.Fatal(err)
	}
	p := &vrp.Problem{Metric: vrp.Exact, Capacity: 9, Demand: []int32{0, 1, 2, 3}, X: []float64{10, 30, 14, 22}, Y: []float64{5, 9, 25, 11}}
	for _, open := range []bool{false, true} {
		p.Open = open
		if err := Takes(c, p); err != nil {
			t.Errorf("learned, open %v: %v", open, err)
		}
	}
	p.Windows = [][]vrp.Window{{{From: 0, To: 99}}, {{From: 0, To: 50}}, {{From: 0, To: 50}}, {{From: 0, To: 50}}}
	if err := Takes(c, p); err == nil || !strings.Contains(err.Error(), "it is of the variant ovrptw, and the policy has learned cvrp") {
		t.Errorf("not learned: %v", err)
	}
}
