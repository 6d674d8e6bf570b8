package search

import (
	"testing"

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
		{"nothing to carry", problem(ten, 0, 0), 1},
		{"the large vehicles first", problem([]vrp.VehicleType{one(5, 9), one(12, 1)}, 5, 5, 5), 2},
		{"large ones are used up", problem([]vrp.VehicleType{one(5, 9), one(12, 1)}, 5, 5, 5, 3), 3},
		{"pickups count apart", pickups, 3},
		{"who may stay out needs none", optional, 2},
		{"the dimension that asks for most", kilos, 3},
		{"of a group one is served", grouped, 1},
		{"reloads carry any amount", trips, 1},
	} {
		if err := c.p.Check(); err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		m, err := compile(t.Context(), c.p)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.fewestVehicles(); got != c.want {
			t.Errorf("%s: %d, want %d", c.what, got, c.want)
		}
	}
}
