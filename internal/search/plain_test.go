package search

import (
	"context"
	"testing"

	"haul/internal/search/model"
	"haul/internal/vrp"
)

// fleetOf is a problem of one vehicle type with a limit of length, as a fleet says it.
func fleetOf(n int, open bool) *vrp.Problem {
	s := model.NewStream(8, uint64(n))
	p := &vrp.Problem{Demand: make([]int32, n+1), X: make([]float64, n+1), Y: make([]float64, n+1), Metric: vrp.Exact}
	for v := range n + 1 {
		p.X[v], p.Y[v], p.Demand[v] = s.Float(), s.Float(), int32(1+s.IntN(9))
	}
	p.Demand[0] = 0
	k := vrp.NewVehicleType(40)
	k.MaxDistance = 2.9
	if open {
		k.End = vrp.None
	}
	p.Fleet = []vrp.VehicleType{k}
	return p
}

// A fleet that says no more than a plain problem takes the plain path, and its routes keep the
// limit in the fleet's words.
func TestFleetAsPlain(t *testing.T) {
	for _, open := range []bool{false, true} {
		n := 40
		if open {
			n = model.FullMost + 1 // smaller ones are searched flat
		}
		p := fleetOf(n, open)
		plain := plainOf(p)
		if plain == nil || plain.MaxDuration != 2.9 || plain.Capacity != 40 || plain.Open != open {
			t.Fatalf("open %v: %+v", open, plain)
		}
		told := false
		r, err := Solve(t.Context(), p, Options{Iterations: 3000, Seed: 1, Progress: func(at Progress) {
			told = told || len(at.Best.Types) == len(at.Best.Routes)
		}})
		if err != nil {
			t.Fatal(err)
		}
		same, err := Solve(t.Context(), plain, Options{Iterations: 3000, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		if vrp.Validate(p, r.Solution) != nil || r.Cost != same.Cost || len(r.Solution.Types) != len(r.Solution.Routes) || !told {
			t.Errorf("open %v: cost %g, plain %g, %d types: %v", open, r.Cost, same.Cost, len(r.Solution.Types), vrp.Validate(p, r.Solution))
		}
	}
}

// Whatever else a vehicle type says keeps the general path.
func TestFleetIsNotPlain(t *testing.T) {
	for name, edit := range map[string]func(p *vrp.Problem, k *vrp.VehicleType){
		"a number":         func(_ *vrp.Problem, k *vrp.VehicleType) { k.Count = 30 },
		"an open start":    func(_ *vrp.Problem, k *vrp.VehicleType) { k.Start = vrp.None },
		"a shift":          func(_ *vrp.Problem, k *vrp.VehicleType) { k.Shift.To = 99 },
		"a latest start":   func(_ *vrp.Problem, k *vrp.VehicleType) { k.LatestStart = 9 },
		"a duration too":   func(_ *vrp.Problem, k *vrp.VehicleType) { k.MaxDuration = 9 },
		"stops":            func(_ *vrp.Problem, k *vrp.VehicleType) { k.MaxStops = 9 },
		"a fixed cost":     func(_ *vrp.Problem, k *vrp.VehicleType) { k.FixedCost = 9 },
		"a cost per way":   func(_ *vrp.Problem, k *vrp.VehicleType) { k.DistanceCost = 2 },
		"a cost per time":  func(_ *vrp.Problem, k *vrp.VehicleType) { k.DurationCost = 1 },
		"customers":        func(_ *vrp.Problem, k *vrp.VehicleType) { k.Allowed = []int32{1, 2} },
		"reloads":          func(_ *vrp.Problem, k *vrp.VehicleType) { k.Reloads = []int{0} },
		"a break":          func(_ *vrp.Problem, k *vrp.VehicleType) { k.Breaks = []vrp.Break{{Duration: 1}} },
		"a load":           func(_ *vrp.Problem, k *vrp.VehicleType) { k.InitialLoad = []int32{3} },
		"no capacity":      func(_ *vrp.Problem, k *vrp.VehicleType) { k.Capacity = nil },
		"a second type":    func(p *vrp.Problem, k *vrp.VehicleType) { p.Fleet = append(p.Fleet, *k) },
		"a window":         func(p *vrp.Problem, _ *vrp.VehicleType) { p.Windows = make([][]vrp.Window, len(p.Demand)) },
		"somebody too far": func(_ *vrp.Problem, k *vrp.VehicleType) { k.MaxDistance = 0.5 },
		"too much":         func(p *vrp.Problem, _ *vrp.VehicleType) { p.Demand[3] = 41 },
	} {
		p := fleetOf(12, false)
		edit(p, &p.Fleet[0])
		if plainOf(p) != nil {
			t.Errorf("%s: the plain path would not keep it", name)
		}
	}
	// A limit of duration counts services; one of length does not.
	p := fleetOf(12, false)
	p.Service = make([]float64, 13)
	if q := plainOf(p); q == nil || q.Service != nil {
		t.Errorf("services count in a length: %+v", q)
	}
	p.Fleet[0].MaxDuration, p.Fleet[0].MaxDistance = p.Fleet[0].MaxDistance, p.Fleet[0].MaxDuration
	if q := plainOf(p); q == nil || q.Service == nil {
		t.Errorf("services do not count in a duration: %+v", q)
	}
}

// Small problems of open routes take the general path, which counts its moves; larger ones, and
// those with a limit that it does not keep in flat routes, the plain one.
func TestSmallOpenRoutesAreSearchedFlat(t *testing.T) {
	for _, c := range []struct {
		name      string
		customers int
		ask       func(p *vrp.Problem)
		flat      bool
	}{
		{"open", model.FullMost, func(p *vrp.Problem) { p.Open = true }, true},
		{"one more", model.FullMost + 1, func(p *vrp.Problem) { p.Open = true }, false},
		{"closed", 50, func(p *vrp.Problem) {}, false},
		{"vehicles", 50, func(p *vrp.Problem) { p.Open, p.Vehicles = true, 40 }, false},
		{"duration", 50, func(p *vrp.Problem) { p.Open, p.MaxDuration = true, 4 }, false},
		{"fleet", 50, func(p *vrp.Problem) {
			kind := vrp.NewVehicleType(p.Capacity)
			kind.End, kind.MaxDistance = vrp.None, 3
			p.Capacity, p.Fleet = 0, []vrp.VehicleType{kind}
		}, true},
	} {
		s := model.NewStream(5, 1)
		p := &vrp.Problem{Name: c.name, Capacity: 50, Metric: vrp.Exact}
		for i := range c.customers + 1 {
			p.X, p.Y, p.Demand = append(p.X, s.Float()), append(p.Y, s.Float()), append(p.Demand, int32(min(i, 1)*(1+s.IntN(9))))
		}
		c.ask(p)
		r, err := Solve(context.Background(), p, Options{Iterations: 200, Seed: 1})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if flat := r.Moves > 0; flat != c.flat {
			t.Errorf("%s: the general path %v, want %v", c.name, flat, c.flat)
		}
	}
}
