package search

import (
	"context"
	"math"
	"slices"
	"testing"

	"haul/internal/search/model"
	"haul/internal/vrp"
)

// full is a problem of linehauls before backhauls whose vehicles have no room to spare.
func full(n int) *vrp.Problem {
	s := model.NewStream(7, uint64(n))
	p := &vrp.Problem{Demand: make([]int32, n+1), Pickup: make([]int32, n+1), X: make([]float64, n+1), Y: make([]float64, n+1),
		Metric: vrp.Rounded, Capacity: 10, Backhauls: vrp.BackhaulsLast}
	for v := range n + 1 {
		p.X[v], p.Y[v] = float64(s.IntN(1000)), float64(s.IntN(1000))
		if v > n/2 {
			p.Pickup[v] = 1
		} else if v > 0 {
			p.Demand[v] = 1
		}
	}
	return p
}

// Full vehicles take customers of each other's at a price, and nobody is overloaded in the end. One
// seed may be luck: the costs of four add up.
func TestOverloadHasItsPrice(t *testing.T) {
	p := full(120)
	p.Capacity = 15
	m := compileNear(context.Background(), p)
	const seeds, iterations = 4, 10_000
	search := func(soft bool) (cost float64, seen int) {
		for seed := range uint64(seeds) {
			c := newCandidate(m, model.NewStream(seed, 1))
			c.set(nil, nil, nil)
			c.build(t.Context())
			c.typicalLeg()
			for i := range iterations {
				if soft {
					c.scheduleOverload(1)
				}
				c.iterate(c.Leg * (0.5 - float64(i)/(2.5*iterations)))
				if c.overload > 0 {
					seen++
				}
			}
			cost += c.bestCost
			if !c.set(c.best, c.bestKind, nil) {
				t.Errorf("the best routes of seed %d break a limit, over %d", seed, c.overload)
			}
		}
		return cost, seen
	}
	strict, never := search(false)
	priced, seen := search(true)
	if all := seeds * iterations; never != 0 || seen < all/10 || seen > all*9/10 {
		t.Errorf("%d of %d iterations end with overload, and %d where it is forbidden", seen, all, never)
	}
	if priced >= strict {
		t.Errorf("%g with a price of overload, %g without", priced, strict)
	}
	t.Logf("%g with a price of overload in %d iterations, %g without", priced, seen, strict)
}

// The accounts of cost and overload agree with routes that are counted anew.
func TestTollsAreBooked(t *testing.T) {
	m := compileNear(context.Background(), full(60))
	c := newCandidate(m, model.NewStream(1, 1))
	c.set(nil, nil, nil)
	c.build(t.Context())
	c.typicalLeg()
	c.scheduleOverload(1)
	for i := range 3000 {
		c.iterate(c.Leg / 3)
		var cost float64
		var over int64
		for _, id := range c.routes {
			cost += c.penalizedCost(&c.states[id])
			over += c.states[id].over
		}
		if d := cost - c.cost; over != c.overload || d > 1e-3 || d < -1e-3 {
			t.Fatalf("iteration %d: routes cost %g with overload %d, the books say %g and %d", i, cost, over, c.cost, c.overload)
		}
	}
}

// Two vehicles that must be filled to the last unit take the most that can be had, by good routes:
// which tasks fit is a matter of all of them, and full vehicles exchange none without overload.
func TestScarceRoomIsFilled(t *testing.T) {
	p := full(30)
	k := vrp.NewVehicleType(14)
	k.Count, k.Shift = 2, vrp.Window{To: 28800}
	p.Service = make([]float64, 31)
	p.Pickup, p.Backhauls = nil, vrp.Mixed
	p.Fleet, p.Capacity, p.Vehicles, p.Priority = []vrp.VehicleType{k}, 0, 0, make([]int, 31)
	for v := 1; v <= 30; v++ {
		p.Demand[v], p.Service[v] = []int32{1, 1, 2, 2, 2, 3}[v%6], 3000
		switch {
		case v <= 6:
			p.Priority[v] = 50
		case v <= 14:
			p.Priority[v] = 10
		}
	}
	p.Demand[13], p.Demand[14] = 3, 3 // those of priority fill both
	var least float64
	for seed := range uint64(4) {
		r, err := Solve(t.Context(), p, Options{Iterations: 2_500, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Unserved) != 16 || r.Unserved[0] != 15 {
			t.Errorf("seed %d leaves out %v", seed, r.Unserved)
		}
		if seed == 0 {
			least = r.Cost
		}
		if math.Abs(r.Cost-least) > 1e-6 {
			t.Errorf("seed %d costs %g, seed 0 %g", seed, r.Cost, least)
		}
	}
}

// While overload has its price in spite of tasks that are left out, those stay out; afterwards
// nobody is overloaded.
func TestLeftOutStayOutForASpell(t *testing.T) {
	p := full(60)
	p.Vehicles = 2
	m := compileNear(t.Context(), p)
	c := newCandidate(m, model.NewStream(1, 1))
	c.set(nil, nil, nil)
	c.build(t.Context())
	c.typicalLeg()
	out := slices.Sorted(slices.Values(c.absent))
	if c.scheduleOverload(overloadPhaseIters - 1); len(out) == 0 || c.overloads != noOverload || c.overloads == overloadAlone {
		t.Fatalf("%d are left out, soft %v, closed %v before the spell", len(out), c.overloads != noOverload, c.overloads == overloadAlone)
	}
	seen := 0
	for c.scheduleOverload(1); c.overloads == overloadAlone; c.scheduleOverload(1) {
		c.iterate(c.Leg / 2)
		if c.overload > 0 {
			seen++
		}
		if !slices.Equal(out, slices.Sorted(slices.Values(c.absent))) {
			t.Fatalf("%v were left out, now %v", out, c.absent)
		}
	}
	if seen == 0 || c.overload > 0 || c.overloads != noOverload {
		t.Errorf("%d iterations with overload, %d left of it, soft %v", seen, c.overload, c.overloads != noOverload)
	}
}

// Backhauls that need more routes than linehauls do are all served: a linehaul goes into a route of
// its own for them, though it would cost less in another.
func TestBackhaulsGetRoutes(t *testing.T) {
	p := full(200)
	p.Backhauls = vrp.LinehaulFirst
	for v := range p.Pickup {
		p.Pickup[v] *= 3 // 34 routes, where linehauls need 10
	}
	r, err := Solve(t.Context(), p, Options{Iterations: 4000, Seed: 1})
	if err != nil || len(r.Unserved) > 0 {
		t.Errorf("%d customers are left out, %v", len(r.Unserved), err)
	}
}
