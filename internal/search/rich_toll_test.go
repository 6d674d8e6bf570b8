package search

import (
	"context"
	"testing"

	"haul/internal/vrp"
)

// full is a problem of linehauls before backhauls whose vehicles have no room to spare.
func full(n int) *vrp.Problem {
	s := newStream(7, uint64(n))
	p := &vrp.Problem{Demand: make([]int32, n+1), Pickup: make([]int32, n+1), X: make([]float64, n+1), Y: make([]float64, n+1),
		Metric: vrp.Rounded, Capacity: 10, Backhauls: vrp.BackhaulsLast}
	for v := range n + 1 {
		p.X[v], p.Y[v] = float64(s.below(1000)), float64(s.below(1000))
		if v > n/2 {
			p.Pickup[v] = 1
		} else if v > 0 {
			p.Demand[v] = 1
		}
	}
	return p
}

// Full vehicles take customers of each other's at a price, and nobody is overloaded in the end.
func TestOverloadHasItsPrice(t *testing.T) {
	m, err := compile(context.Background(), full(120))
	if err != nil {
		t.Fatal(err)
	}
	search := func(soft bool) (*rchain, int) {
		c := newRichChain(m, newStream(1, 1))
		c.set(nil, nil, nil)
		c.build()
		c.typicalLeg()
		seen := 0
		for i := range 20_000 {
			if soft {
				c.ease()
			}
			c.iterate(c.leg * (0.5 - float64(i)/50_000))
			if c.over > 0 {
				seen++
			}
		}
		return c, seen
	}
	strict, never := search(false)
	priced, seen := search(true)
	if never != 0 || seen < 5_000 || seen > 18_000 {
		t.Errorf("%d of 20000 iterations end with overload, and %d where it is forbidden", seen, never)
	}
	if priced.bestCost >= strict.bestCost || !priced.set(priced.best, priced.bestKind, nil) {
		t.Errorf("%g with a price of overload, %g without, over %d", priced.bestCost, strict.bestCost, priced.over)
	}
}

// The accounts of cost and overload agree with routes that are counted anew.
func TestTollsAreBooked(t *testing.T) {
	m, err := compile(context.Background(), full(60))
	if err != nil {
		t.Fatal(err)
	}
	c := newRichChain(m, newStream(1, 1))
	c.set(nil, nil, nil)
	c.build()
	c.typicalLeg()
	c.ease()
	for i := range 3000 {
		c.iterate(c.leg / 3)
		var cost float64
		var over int64
		for _, id := range c.slot {
			cost += c.tolled(&c.slots[id])
			over += c.slots[id].over
		}
		if d := cost - c.cost; over != c.over || d > 1e-3 || d < -1e-3 {
			t.Fatalf("iteration %d: routes cost %g with overload %d, the books say %g and %d", i, cost, over, c.cost, c.over)
		}
	}
}
