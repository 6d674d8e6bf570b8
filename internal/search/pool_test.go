package search

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"haul/internal/search/model"
	"haul/internal/vrp"
)

// triangle is a region of a depot and two customers whose legs depend on the direction.
func triangle() *region {
	return &region{nodes: 3, node: []int32{0, 1, 2}, out: []int32{
		0, 1, 9,
		9, 0, 2,
		4, 9, 0,
	}}
}

// A route costs its legs in the order of the visit, the way back among them, and of one set the
// cheapest order is kept.
func TestThePoolKeepsTheCheapestOrder(t *testing.T) {
	p := newPool()
	p.add(triangle(), [][]int32{{2, 1}, {}})
	p.add(triangle(), [][]int32{{1, 2}})
	p.add(triangle(), [][]int32{{2, 1}})
	if len(p.routes) != 1 || p.routes[0].cost != 7 || !slices.Equal(p.routes[0].customers, []int32{1, 2}) {
		t.Errorf("%+v", p.routes)
	}
	other := newPool()
	other.add(triangle(), [][]int32{{2, 1}, {1}})
	p.take(other)
	if len(p.routes) != 2 || p.routes[0].cost != 7 || p.routes[1].cost != 10 {
		t.Errorf("after a dearer one: %+v", p.routes)
	}
	cheap := newPool()
	cheap.routes = []plainRoute{{customers: []int32{2, 1}, cost: 3, seen: 9}}
	p.take(cheap)
	if len(p.routes) != 2 || p.routes[0].cost != 3 || p.routes[0].customers[0] != 2 {
		t.Errorf("after a cheaper one: %+v", p.routes)
	}
}

// A full pool drops what was not seen for the longest time, and knows what it kept.
func TestThePoolShedsTheOldest(t *testing.T) {
	p := newPool()
	for i := range 10 {
		p.byKey[setKey([]int32{int32(i)})] = int32(i)
		p.routes = append(p.routes, plainRoute{customers: []int32{int32(i)}, cost: 5, seen: 10 - i})
	}
	p.shed()
	var seen []int
	for i, r := range p.routes {
		seen = append(seen, r.seen)
		if p.byKey[setKey(r.customers)] != int32(i) {
			t.Errorf("route %d is known as %d", i, p.byKey[setKey(r.customers)])
		}
	}
	if !slices.Equal(seen, []int{10, 9, 8, 7}) || len(p.byKey) != 4 {
		t.Errorf("kept %v", seen)
	}
}

// A cover uses no more routes than there are vehicles, however much cheaper more would be.
func TestACoverHeedsTheFleet(t *testing.T) {
	p := newPool()
	for _, r := range []plainRoute{
		{customers: []int32{1}, cost: 1}, {customers: []int32{2}, cost: 1}, {customers: []int32{3}, cost: 1}, {customers: []int32{4}, cost: 1},
		{customers: []int32{1, 2}, cost: 20}, {customers: []int32{3, 4}, cost: 20}, {customers: []int32{1, 2, 3}, cost: 50},
	} {
		p.byKey[setKey(r.customers)] = int32(len(p.routes))
		p.routes = append(p.routes, r)
	}
	for most, want := range map[int]int64{4: 4, 3: 22, 2: 40, 1: 0} {
		routes, cost := p.cover(5, 1000, most, 1000, func() bool { return false })
		if cost != want || len(routes) > most {
			t.Errorf("with %d vehicles %v costs %d, want %d", most, routes, cost, want)
		}
	}
}

// The time that a search has used is counted in seconds of its budget.
func TestSpentIsCountedByTheClock(t *testing.T) {
	d := &driver{o: Options{Time: 10 * time.Second}, begun: time.Now().Add(-5 * time.Second)}
	if x := d.spent(); x < 0.5 || x > 0.9 {
		t.Errorf("5 s of 10 are %v", x)
	}
	d = &driver{o: Options{Time: time.Second, Iterations: 8}, iterations: 2, begun: time.Now().Add(-time.Hour)}
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
		d := &driver{p: p, o: Options{Iterations: 10}, begun: time.Now()}
		if err := d.prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
		if c := d.part([][]int32{{1, 2, 3}, {4, 5, 6}}, make([]int32, d.m.nodes), model.Stream{}); c.most != want {
			t.Errorf("of %d vehicles a part of two routes has %d, want %d", vehicles, c.most, want)
		}
	}
}
