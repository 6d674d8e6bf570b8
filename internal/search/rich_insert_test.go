package search

import (
	"context"
	"math"
	"testing"

	"haul/internal/vrp/testset"
)

// The quick look at every position finds what the plain one finds, from routes that were changed
// and given back many times, and every customer is known to be in the route that has it.
func TestSweepFindsWhatScanFinds(t *testing.T) {
	overloads := 0
	for _, name := range []string{"vrpb", "mdvrpbl", "vrpmb", "ovrpmbtw", "vrptw", "mdovrpbltw"} {
		set, err := testset.RouteFinder(name, 50)
		if err != nil {
			t.Fatal(err)
		}
		m := compile(context.Background(), set.Problems[0])
		c := newRichChain(m, newStream(3, 1))
		if !c.full || !c.swift || !c.spare || !c.lean {
			t.Fatalf("%s: the quick look is not taken", name)
		}
		c.set(nil, nil, nil)
		c.build(t.Context())
		c.typicalLeg()
		found := 0
		for range 400 {
			c.ease(10)
			for range 10 {
				c.iterate(c.leg / 2)
			}
			for r, id := range c.slot {
				for _, at := range c.slots[id].stops {
					if v := int(at.node); v >= c.depots && v < c.nodes && c.link[v].route != int32(r) {
						t.Fatalf("%s: customer %d of route %d is taken for one of route %d", name, v, r, c.link[v].route)
					}
				}
			}
			c.begin()
			v := int32(c.depots + c.below(c.nodes-c.depots))
			if !c.served(v) {
				continue
			}
			c.mark(v)
			c.compactAll()
			wait := c.wait
			c.wait = math.MaxInt // none is overlooked
			lean, quick, plain := none(), none(), none()
			c.asked++
			c.sweepLean(v, &lean)
			c.asked++
			c.sweep(v, &quick)
			c.asked++
			c.scan(v, &plain)
			c.wait = wait
			if math.Abs(quick.cost-plain.cost) > 1e-9 || (quick.route < 0) != (plain.route < 0) {
				t.Fatalf("%s: customer %d costs %g at %d of route %d, and %g at %d of route %d", name, v, quick.cost, quick.at, quick.route, plain.cost, plain.at, plain.route)
			}
			if math.Abs(lean.cost-plain.cost) > 1e-9 || (lean.route < 0) != (plain.route < 0) {
				t.Fatalf("%s: customer %d costs %g at %d of route %d, and %g at %d of route %d", name, v, lean.cost, lean.at, lean.route, plain.cost, plain.at, plain.route)
			}
			if found++; c.over > 0 {
				overloads++
			}
			c.undo()
		}
		if found < 300 {
			t.Errorf("%s: %d customers were looked for", name, found)
		}
	}
	if overloads < 100 {
		t.Errorf("%d customers were looked for beside overloaded routes", overloads)
	}
}

// TestLimitedInsertionStaysNear: whoever may cost no more than a limit is looked for beside the
// nearest customers alone, unless customers are few; whoever may cost anything goes wherever there
// is room.
func TestLimitedInsertionStaysNear(t *testing.T) {
	for _, places := range []int{nearMost - 1, nearMost, nearMost + 1} {
		m := compile(t.Context(), windows(places-1))
		c := newRichChain(m, newStream(1, 1))
		c.set(nil, nil, nil)
		c.build(t.Context())
		const v = 7
		c.begin()
		c.mark(v)
		c.compactAll()
		c.most = len(c.slot) // no route of its own
		for i := range c.near {
			c.near[i] = v // who is on no route
		}
		for r := range c.slot {
			c.ends[r].in, c.ends[r].out = -1<<28, -1<<28 // nor at an end
		}
		for _, x := range []struct {
			cost float64
			some bool
		}{{m.upper - 1, places < nearMost}, {m.upper, true}, {math.Inf(1), true}} {
			best := none()
			best.cost = x.cost
			if c.find(v, &best); (best.route >= 0) != x.some {
				t.Errorf("%d places, %g to spend: route %d", places, x.cost, best.route)
			}
		}
	}
}
