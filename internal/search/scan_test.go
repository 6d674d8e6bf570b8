package search

import (
	"context"
	"math"
	"testing"

	"haul/internal/search/model"
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
		m := compileNear(context.Background(), set.Problems[0])
		c := newCandidate(m, model.NewStream(3, 1))
		if c.Traits.Store < model.RoutesOnly || c.Traits.Scan != model.ScanSimple {
			t.Fatalf("%s: the quick look is not taken", name)
		}
		c.set(nil, nil, nil)
		c.build(t.Context())
		c.typicalLeg()
		found := 0
		for range 400 {
			c.scheduleOverload(10)
			for range 10 {
				c.iterate(c.Leg / 2)
			}
			for r, id := range c.routes {
				for _, at := range c.states[id].stops {
					if v := int(at.node); v >= c.Depots && v < c.Nodes && c.links[v].route != int32(r) {
						t.Fatalf("%s: customer %d of route %d is taken for one of route %d", name, v, r, c.links[v].route)
					}
				}
			}
			c.begin()
			v := int32(c.Depots + c.IntN(c.Nodes-c.Depots))
			if !c.served(v) {
				continue
			}
			c.mark(v)
			c.compactAll()
			wait := c.untilSkip
			c.untilSkip = math.MaxInt // none is overlooked
			lean, quick, plain := none(), none(), none()
			c.asked++
			c.scanSimple(v, &lean)
			c.asked++
			c.scanTable(v, &quick)
			c.asked++
			c.scan(v, &plain)
			c.untilSkip = wait
			if math.Abs(quick.cost-plain.cost) > 1e-9 || (quick.route < 0) != (plain.route < 0) {
				t.Fatalf("%s: customer %d costs %g at %d of route %d, and %g at %d of route %d", name, v, quick.cost, quick.at, quick.route, plain.cost, plain.at, plain.route)
			}
			if math.Abs(lean.cost-plain.cost) > 1e-9 || (lean.route < 0) != (plain.route < 0) {
				t.Fatalf("%s: customer %d costs %g at %d of route %d, and %g at %d of route %d", name, v, lean.cost, lean.at, lean.route, plain.cost, plain.at, plain.route)
			}
			if found++; c.overload > 0 {
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
	for _, places := range []int{model.NearMost - 1, model.NearMost, model.NearMost + 1} {
		m := compileNear(t.Context(), windows(places-1))
		c := newCandidate(m, model.NewStream(1, 1))
		c.set(nil, nil, nil)
		c.build(t.Context())
		const v = 7
		c.begin()
		c.mark(v)
		c.compactAll()
		c.most = len(c.routes) // no route of its own
		for i := range c.Near {
			c.Near[i] = v // who is on no route
		}
		for r := range c.routes {
			c.ends[r].in, c.ends[r].out = -1<<28, -1<<28 // nor at an end
		}
		for _, x := range []struct {
			cost float64
			some bool
		}{{m.Upper - 1, places < model.NearMost}, {m.Upper, true}, {math.Inf(1), true}} {
			best := none()
			best.cost = x.cost
			if c.find(v, &best); (best.route >= 0) != x.some {
				t.Errorf("%d places, %g to spend: route %d", places, x.cost, best.route)
			}
		}
	}
}
