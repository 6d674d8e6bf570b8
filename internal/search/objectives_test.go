package search

import (
	"math"
	"testing"

	"haul/internal/search/model"
	"haul/internal/vrp"
)

// TestFewestVehicles: the bound below which no search for fewer vehicles begins, at its edges.
func TestFewestVehicles(t *testing.T) {
	problem := func(fleet []vrp.VehicleType, demand ...int32) *vrp.Problem {
		p := &vrp.Problem{Metric: vrp.Exact, Fleet: fleet, Objective: vrp.FewestVehicles, Demand: append([]int32{0}, demand...)}
		for v := range p.Demand {
			p.X, p.Y = append(p.X, float64(v)), append(p.Y, 1)
		}
		return p
	}
	one := func(size int32, count int) vrp.VehicleType {
		v := vrp.NewVehicleType(size)
		v.Count = count
		return v
	}
	ten := []vrp.VehicleType{one(10, 9)}
	pickups := problem(ten, 1, 1, 1)
	pickups.Pickup = []int32{0, 9, 9, 3}
	optional := problem(ten, 9, 9, 9)
	optional.Optional, optional.Prize = []bool{false, true, false, false}, []float64{0, 5, 0, 0}
	kilos := problem([]vrp.VehicleType{{Capacity: []int32{10, 4}, Count: 9, DistanceCost: 1}}, 1, 1, 1)
	kilos.Dimensions = []vrp.Dimension{{Name: "kg", Delivery: []int32{0, 4, 4, 1}}}
	grouped := problem(ten, 9, 9, 9)
	grouped.Groups = []vrp.Group{{Members: []int32{1, 2}, Required: true}}
	trips := problem([]vrp.VehicleType{one(10, 9)}, 9, 9, 9)
	trips.Fleet[0].Reloads, trips.Fleet[0].MaxReloads = []int{0}, 3
	for _, c := range []struct {
		what string
		p    *vrp.Problem
		want int
	}{
		{"one below two vehicles", problem(ten, 9, 10), 2},
		{"two vehicles to the last unit", problem(ten, 10, 10), 2},
		{"one above", problem(ten, 10, 10, 1), 3},
		{"nothing to carry", problem(ten, 0, 0), 0},
		{"the large vehicles first", problem([]vrp.VehicleType{one(5, 9), one(12, 1)}, 5, 5, 5), 2},
		{"large ones are used up", problem([]vrp.VehicleType{one(5, 9), one(12, 1)}, 5, 5, 5, 3), 3},
		{"pickups count apart", pickups, 3},
		{"who may stay out needs none", optional, 2},
		{"the dimension that asks for most", kilos, 3},
		{"of a group one is served", grouped, 1},
		{"reloads carry any amount", trips, 0},
	} {
		if err := c.p.Check(); err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		m := compileNear(t.Context(), c.p)
		if got := m.FewestVehicles(); got != c.want {
			t.Errorf("%s: %d, want %d", c.what, got, c.want)
		}
	}
}

// TestFullFleetByCost: where no vehicle can be saved, the chain's cost is that of the routes alone,
// and the annealing keeps the number of vehicles.
func TestFullFleetByCost(t *testing.T) {
	p := windows(60)
	p.Objective = vrp.FewestVehicles
	d := &generalDriver{search: search{p: p, o: Options{Iterations: 20000, Workers: 1, Seed: 1}}, most: len(p.Demand), longest: model.Endless}
	d.m = compileNear(t.Context(), p)
	c := newCandidate(d.m, model.NewStream(1, 1))
	if err := d.begin(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	d.fewest(t.Context(), c)
	if least := d.m.FewestVehicles(); len(d.best.Routes) != least || d.most != least {
		t.Fatalf("%d routes, at most %d, want %d", len(d.best.Routes), d.most, least)
	}
	if cost := p.Cost(d.best); !alike(cost, d.bestCost) || !alike(cost, c.cost) {
		t.Errorf("the routes cost %v, to the search %v, to its chain %v", cost, d.bestCost, c.cost)
	}
	d.anneal(t.Context(), c)
	if len(d.best.Routes) != d.most || broken(p, d.best) != nil {
		t.Errorf("%d routes after annealing, %v", len(d.best.Routes), broken(p, d.best))
	}
}

func alike(a, b float64) bool { return math.Abs(a-b) < 0.1 }
