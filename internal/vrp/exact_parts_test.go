package vrp

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
)

// randomParts draws a problem of n customers with a random mix of parts.
func randomParts(r *rand.Rand, n int) *Problem {
	has := func() bool { return r.IntN(3) == 0 }
	depots := 1 + r.IntN(2)
	places := depots + n
	p := &Problem{Demand: make([]int32, places), X: make([]float64, places), Y: make([]float64, places), Metric: Rounded}
	if depots > 1 {
		p.Depots = depots
	}
	for v := range places {
		p.X[v], p.Y[v] = float64(r.IntN(40)), float64(r.IntN(40))
		if v >= depots {
			p.Demand[v] = int32(1 + r.IntN(5))
		}
	}
	each := func(set func(v int)) {
		for v := depots; v < places; v++ {
			if r.IntN(2) == 0 {
				set(v)
			}
		}
	}
	if has() {
		p.Service = make([]float64, places)
		each(func(v int) { p.Service[v] = float64(r.IntN(9)) })
	}
	if has() {
		p.Windows = make([][]Window, places)
		each(func(v int) {
			from := float64(r.IntN(80))
			p.Windows[v] = []Window{{from, from + float64(10+r.IntN(60))}}
		})
	}
	if has() {
		p.Release = make([]float64, places)
		each(func(v int) { p.Release[v] = float64(r.IntN(50)) })
	}
	if has() {
		p.Prize, p.Optional = make([]float64, places), make([]bool, places)
		each(func(v int) { p.Prize[v], p.Optional[v] = float64(r.IntN(60)), true })
	}
	if has() && n >= 3 {
		p.Groups = []Group{{Members: []int32{int32(depots), int32(depots + 1)}, Required: r.IntN(2) == 0}}
	}
	switch r.IntN(4) {
	case 0:
		p.Pickup = make([]int32, places)
		each(func(v int) { p.Pickup[v] = int32(1 + r.IntN(4)) })
		if r.IntN(2) == 0 {
			p.Backhauls = BackhaulRule(1 + r.IntN(2))
			for v := range p.Pickup {
				if p.Pickup[v] > 0 {
					p.Demand[v] = 0
				}
			}
		}
	case 1:
		if v := int32(places - 2); n >= 4 || p.Groups == nil && n >= 2 {
			p.Shipments = []Shipment{{Pickup: v, Delivery: v + 1, Amount: []int32{int32(1 + r.IntN(6))}}}
			if p.Optional != nil {
				p.Optional[v+1] = p.Optional[v]
			}
		}
	}
	for k := range 1 + r.IntN(2) {
		t := NewVehicleType(int32(6 + r.IntN(8)))
		t.Count = r.IntN(3)
		t.Start = r.IntN(depots)
		t.End = t.Start
		if has() {
			t.End = None
		}
		if has() {
			t.Start = None
		}
		if has() {
			t.MaxDuration = float64(60 + r.IntN(100))
		}
		if has() {
			t.MaxDistance = float64(60 + r.IntN(100))
		}
		if has() {
			t.Shift = Window{float64(r.IntN(20)), float64(100 + r.IntN(100))}
		}
		if has() {
			t.LatestStart = t.Shift.From + float64(r.IntN(40))
		}
		if has() {
			t.FixedCost, t.DurationCost = float64(r.IntN(40)), float64(r.IntN(2))
		}
		if has() {
			t.MaxStops = 1 + r.IntN(3)
		}
		if has() && k > 0 {
			t.Allowed = []int32{int32(depots)}
		}
		if has() {
			p.Needs = make([][]int32, places)
			p.Needs[places-1] = []int32{1}
			t.Skills = []int32{1}
		}
		if has() {
			t.InitialLoad = []int32{2}
		}
		p.Fleet = append(p.Fleet, t)
	}
	if r.IntN(6) == 0 {
		p.Objective = FewestVehicles
	}
	return p
}

// TestOptimalPartsByTrying: labels find what trying every route finds, for every mix of parts.
func TestOptimalPartsByTrying(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	solved, none := 0, 0
	for i := range 600 {
		p := randomParts(r, 2+r.IntN(4))
		if err := p.Check(); err != nil {
			t.Fatalf("%d: %v", i, err)
		}
		s, cost, err := OptimalParts(t.Context(), p)
		x := &partsSolver{evaluator: newEvaluator(p), ctx: context.Background(), n: p.N(), first: p.DepotCount()}
		for kind := range x.types {
			x.try(kind)
		}
		tried, want, wantErr := x.choose()
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%d: %v by labels, %v by trying: %v", i, err, wantErr, tried)
		}
		if err != nil {
			none++
			continue
		}
		solved++
		if all := Violations(p, s); len(all) > 0 {
			t.Fatalf("%d: %v", i, all[0])
		}
		if math.Abs(cost-want) > 1e-9 && !(p.Objective == FewestVehicles && len(s.Routes) == len(tried.Routes) && math.Abs(cost-want) < 1e-4) {
			t.Fatalf("%d: %g by labels (%v), %g by trying (%v)\n%+v", i, cost, s, want, tried, p)
		}
	}
	if solved < 100 || none < 20 {
		t.Errorf("%d solved, %d without routes", solved, none)
	}
}

// TestOptimalPartsOfPlainProblems: it finds the dynamic programme's optimum.
func TestOptimalPartsOfPlainProblems(t *testing.T) {
	src := Source{Seed: 3, Distribution: Grid, N: 8, Capacity: 20, DemandMin: 1, DemandMax: 9, CoordRange: 100}
	for i := range uint64(5) {
		p := src.FileProblem(i)
		costs, _, err := OptimalSolutions(t.Context(), []*Problem{p}, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		if s, cost, err := OptimalParts(t.Context(), p); err != nil || cost != costs[0] || Validate(p, s) != nil {
			t.Errorf("%g, want %g (%v)", cost, costs[0], err)
		}
	}
	if _, _, err := OptimalParts(t.Context(), Source{Distribution: Grid, N: 13, Capacity: 20, DemandMin: 1, DemandMax: 9, CoordRange: 100}.FileProblem(0)); err == nil {
		t.Error("13 customers")
	}
}

// TestOptimalPartsOfFewestVehicles: of two routes that cost less and one that costs more, the one.
func TestOptimalPartsOfFewestVehicles(t *testing.T) {
	p := &Problem{Demand: []int32{0, 1, 1}, Weights: []float64{0, 10, 10, 10, 0, 50, 10, 50, 0}, Metric: Explicit}
	p.Fleet = []VehicleType{NewVehicleType(2)}
	for objective, routes := range map[Objective]int{MinCost: 2, FewestVehicles: 1} {
		p.Objective = objective
		s, cost, err := OptimalParts(t.Context(), p)
		if err != nil || len(s.Routes) != routes {
			t.Errorf("%v: %v, cost %g, %v", objective, s.Routes, cost, err)
		}
	}
}
