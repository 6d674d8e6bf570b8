package search

import (
	"context"
	"slices"
	"testing"

	"haul/internal/vrp"
)

// line is customers at 1, 2, ... on a line from the depot, each with a demand of 1.
func line(customers int, capacity int32) *vrp.Problem {
	n := customers + 1
	p := &vrp.Problem{Demand: make([]int32, n), X: make([]float64, n), Y: make([]float64, n), Metric: vrp.Exact, Fleet: []vrp.VehicleType{vrp.NewVehicleType(capacity)}}
	for v := 1; v < n; v++ {
		p.Demand[v], p.X[v] = 1, float64(v)
	}
	return p
}

// TestLockedRouteTakesIn: where there is one vehicle type and one load, a route of which the first
// stops are fixed takes in further customers behind them.
func TestLockedRouteTakesIn(t *testing.T) {
	p := line(6, 6)
	p.Fleet[0].Count = 1
	start := vrp.Solution{Routes: [][]int32{{2, 1}}, Types: []int32{0}}
	r, err := Solve(t.Context(), p, Options{Iterations: 300, Seed: 1, Start: &start, Fixed: []int32{2}})
	if err != nil || len(r.Unserved) > 0 || len(r.Solution.Routes) != 1 || !slices.Equal(r.Solution.Routes[0][:2], []int32{2, 1}) || r.Cost != 14 {
		t.Errorf("%+v, %v: the vehicle drives to 2, 1 and on to 6", r, err)
	}
}

// TestLockedRouteIsFull: a route of which all stops are fixed takes in nothing.
func TestLockedRouteIsFull(t *testing.T) {
	p := line(6, 6)
	start := vrp.Solution{Routes: [][]int32{{1, 2}, {3, 4, 5, 6}}, Types: []int32{0, 0}}
	r, err := Solve(t.Context(), p, Options{Iterations: 300, Seed: 1, Start: &start, Fixed: []int32{-1, 0}})
	if err != nil || !slices.ContainsFunc(r.Solution.Routes, func(route []int32) bool { return slices.Equal(route, []int32{1, 2}) }) || r.Cost != 16 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestLockedRoutesBeginAlike: two locked routes may begin with the same depot.
func TestLockedRoutesBeginAlike(t *testing.T) {
	p := line(6, 3)
	p.Depots, p.Demand[1] = 2, 0
	p.Fleet[0].Reloads, p.Fleet[0].Count = []int{1}, 2
	start := vrp.Solution{Routes: [][]int32{{1, 2, 3, 4}, {1, 5, 6}}, Types: []int32{0, 0}}
	for _, fixed := range [][]int32{{1, 1}, {3, 1}, {1, 3}, {2, -1}} {
		r, err := Solve(t.Context(), p, Options{Iterations: 300, Seed: 1, Start: &start, Fixed: fixed})
		if err != nil {
			t.Fatalf("%v: %v", fixed, err)
		}
		for i, route := range start.Routes {
			begin := route[:min(len(route), int(uint32(fixed[i])))]
			if !slices.ContainsFunc(r.Solution.Routes, func(o []int32) bool { return len(o) >= len(begin) && slices.Equal(o[:len(begin)], begin) }) {
				t.Errorf("%v: no route of %v begins with %v", fixed, r.Solution.Routes, begin)
			}
		}
	}
}

// TestShortestRouteWithLocks: the search for a shorter longest route ends where the longest is
// locked.
func TestShortestRouteWithLocks(t *testing.T) {
	p := line(6, 6)
	p.Objective = vrp.ShortestRoute
	start := vrp.Solution{Routes: [][]int32{{6, 1, 5}, {2, 3, 4}}, Types: []int32{0, 0}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := Solve(ctx, p, Options{Iterations: 300, Seed: 1, Start: &start, Fixed: []int32{-1, 0}})
	if err != nil || r.Iterations > 300 || !slices.ContainsFunc(r.Solution.Routes, func(o []int32) bool { return slices.Equal(o, []int32{6, 1, 5}) }) {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestGoodsStayAboardThroughReload: a shipment's two halves may lie in different trips of a route,
// and the room that it takes is missing in both.
func TestGoodsStayAboardThroughReload(t *testing.T) {
	for i, room := range []int32{5, 4} {
		// The depot lies between the shipment's halves: with room for both the vehicle reloads
		// there.
		p := &vrp.Problem{Metric: vrp.Exact, X: []float64{0, -4, -2, 2, 4}, Y: make([]float64, 5), Demand: []int32{0, 0, 4, 4, 0},
			Shipments: []vrp.Shipment{{Pickup: 1, Delivery: 4, Amount: []int32{1}}}, Fleet: []vrp.VehicleType{vrp.NewVehicleType(room)}}
		p.Fleet[0].Count, p.Fleet[0].Reloads = 1, []int{0}
		_, best, err := vrp.OptimalParts(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Solve(t.Context(), p, Options{Iterations: 500, Seed: 1})
		if err != nil || len(r.Unserved) > 0 || r.Cost != best || r.Cost != []float64{16, 20}[i] {
			t.Errorf("capacity %d: %+v, %v; the best is %g", room, r, err, best)
		}
	}
}

// TestLocksOfRoutes: every lock of the start is one of the routes of a solution that keeps it.
func TestLocksOfRoutes(t *testing.T) {
	start := &vrp.Solution{Routes: [][]int32{{1, 2, 3}, {1, 5}, nil, {6, 7}, {1, 8}}, Types: []int32{0, 0, 0, 0, 1}}
	d := &generalDriver{start: start, locks: []int32{1, 2, 1, 3, 1}}
	s := vrp.Solution{Routes: [][]int32{{1, 9}, {6, 7}, {1, 5, 3}, {1, 8, 2}, {4}}, Types: []int32{1, 0, 0, 0, 0}}
	if got := d.locksOf(s); !slices.Equal(got, []int32{1, 3, 2, 1, 0}) {
		t.Errorf("%v", got)
	}
}

// TestBackhaulsOfFurtherDimensions: pickups come last, whichever dimension the deliveries are of.
func TestBackhaulsOfFurtherDimensions(t *testing.T) {
	for _, slow := range []bool{false, true} {
		p := line(3, 9)
		p.Backhauls, p.Demand, p.Pickup = vrp.LinehaulFirst, []int32{0, 0, 0, 0}, []int32{0, 1, 0, 2}
		p.Dimensions = []vrp.Dimension{{Delivery: []int32{0, 0, 2, 0}}}
		p.Fleet[0].Count, p.LIFO = 1, slow
		r, err := Solve(t.Context(), p, Options{Iterations: 200, Seed: 1})
		if err != nil || len(r.Unserved) > 0 || r.Solution.Routes[0][0] != 2 {
			t.Errorf("walked: %v: %+v, %v", slow, r, err)
		}
	}
}
