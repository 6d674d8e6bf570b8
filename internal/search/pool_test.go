package search

import (
	"math/rand/v2"
	"testing"
	"time"

	"haul/internal/search/cover"
	"haul/internal/search/model"
	"haul/internal/vrp"
)

// A pooled route costs its legs in the order of the visit, the way back among them.
func TestAPooledRouteCostsItsLegs(t *testing.T) {
	g := &region{nodes: 3, node: []int32{0, 1, 2}, out: []int32{
		0, 1, 9,
		9, 0, 2,
		4, 9, 0,
	}}
	p := cover.NewPool()
	g.pool(p, [][]int32{{2, 1}, {}})
	g.pool(p, [][]int32{{1, 2}})
	if len(p.Routes) != 1 || p.Routes[0].Cost != 7 {
		t.Errorf("%+v", p.Routes)
	}
}

// The time that a search has used is counted in seconds of its budget.
func TestSpentIsCountedByTheClock(t *testing.T) {
	d := &driver{search: search{o: Options{Time: 10 * time.Second}, begun: time.Now().Add(-5 * time.Second)}}
	if x := d.spent(); x < 0.5 || x > 0.9 {
		t.Errorf("5 s of 10 are %v", x)
	}
	d = &driver{search: search{o: Options{Time: time.Second, Iterations: 8}, iterations: 2, begun: time.Now().Add(-time.Hour)}}
	if x := d.spent(); x != 0.25 {
		t.Errorf("2 iterations of 8 are %v", x)
	}
}

// A part of a problem with a fleet has the vehicles of its own routes; without one, any number.
func TestAPartHasItsOwnVehicles(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for vehicles, want := range map[int]int{0: 6, 9: 2} {
		p := &vrp.Problem{Capacity: 100, Vehicles: vehicles}
		for i := range 21 {
			p.X, p.Y = append(p.X, r.Float64()), append(p.Y, r.Float64())
			p.Demand = append(p.Demand, int32(min(i, 1)))
		}
		d := &driver{search: search{p: p, o: Options{Iterations: 10}, begun: time.Now()}}
		if err := d.prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
		if c := d.part([][]int32{{1, 2, 3}, {4, 5, 6}}, make([]int32, d.m.nodes), model.Stream{}); c.most != want {
			t.Errorf("of %d vehicles a part of two routes has %d, want %d", vehicles, c.most, want)
		}
	}
}
