package search

import (
	"context"
	"fmt"
	"math"
	"math/bits"

	"haul/internal/search/model"
	"haul/internal/vrp"
)

// Objectives other than the cost: fewer vehicles, and a shorter longest route. Both are limits that
// are tightened as long as all required customers fit. Annealing then starts from the last routes
// that served all of them.

// fewest gives up route after route.
func (d *generalDriver) fewest(ctx context.Context, c *candidate) {
	until := generalShare
	if !d.squeeze(ctx, c, until/2) {
		return // not even the whole fleet serves all: the annealing may find more room
	}
	c.remember()
	d.take(c)
	for least := max(1, d.m.FewestVehicles()); d.spent() < until && !d.over(ctx) && len(c.routes) > least; {
		kept := vrp.Solution{Routes: clone(c.best), Types: append([]int32(nil), c.bestKind...)}
		if !c.giveUpRoute() {
			break
		}
		c.most = len(c.routes)
		if !d.squeeze(ctx, c, until) {
			c.set(kept.Routes, kept.Types, d.locksOf(kept))
			break
		}
		c.remember()
		d.take(c)
		d.notify(true)
	}
	d.most = max(1, len(c.routes))
	if len(c.routes) <= d.m.FewestVehicles() {
		d.priceAlone(c)
	}
}

// priceAlone goes on by the cost alone, where no vehicle can be saved. What a vehicle costs by the
// objective would pay for any overload: the chain would give up a route that it needs.
func (d *generalDriver) priceAlone(c *candidate) {
	for i := range d.m.Types {
		d.m.Types[i].Fixed = d.m.Types[i].Own
	}
	c.set(d.best.Routes, d.best.Types, d.locksOf(d.best))
	d.bestCost = c.bestCost
	leg := c.Leg
	c.typicalLeg()
	c.Leg = leg // of the greedy start, as with other objectives
}

// shorten lowers the limit of every route's duration: in large steps first, which halve where they
// fail. Each has an equal part of what is left: two best routes may differ by one unit.
func (d *generalDriver) shorten(ctx context.Context, c *candidate) {
	if !d.squeeze(ctx, c, generalShare/4) {
		return
	}
	c.remember()
	d.take(c)
	longest := c.longestRoute()
	for step := max(1, longest/20); step >= 1 && longest > 0 && c.longestFree() == longest && d.spent() < generalShare && !d.over(ctx); {
		kept := vrp.Solution{Routes: clone(c.best), Types: append([]int32(nil), c.bestKind...)}
		c.longest = longest - step
		c.dropLong()
		if !d.squeeze(ctx, c, d.spent()+(generalShare-d.spent())/float64(1+bits.Len64(uint64(step)))) {
			c.longest = model.Endless
			c.set(kept.Routes, kept.Types, d.locksOf(kept))
			step /= 2
			continue
		}
		c.remember()
		d.best.Routes = nil // a shorter longest route is better at any cost
		d.take(c)
		d.notify(true)
		longest = c.longestRoute()
		step = max(1, min(2*step, longest/20))
	}
	c.longest = model.Endless
	d.longest = max(1, c.longestRoute())
	c.longest = d.longest
}

func (c *candidate) longestRoute() int64 {
	var out int64
	for _, k := range c.routes {
		out = max(out, c.states[k].dur)
	}
	return out
}

// longestFree is the duration of the longest route that is not locked: a locked one cannot be
// shortened by taking it apart.
func (c *candidate) longestFree() int64 {
	var out int64
	for _, k := range c.routes {
		if s := &c.states[k]; s.lock == 0 {
			out = max(out, s.dur)
		}
	}
	return out
}

// giveUpRoute takes the route with the fewest customers apart.
func (c *candidate) giveUpRoute() bool {
	least := -1
	for r, k := range c.routes {
		if c.states[k].lock == 0 && (least < 0 || c.states[k].count < c.states[c.routes[least]].count) {
			least = r
		}
	}
	if least < 0 {
		return false
	}
	c.dissolveRoute(int32(least))
	return true
}

// dissolveRoute takes a route apart; its tasks are absent.
func (c *candidate) dissolveRoute(r int32) {
	c.begin()
	stops := c.states[c.routes[r]].stops
	for _, at := range stops[1 : len(stops)-1] {
		if int(at.node) >= c.Depots {
			c.mark(at.node)
		}
	}
	c.compactAll()
	for _, lead := range c.removed {
		c.failed = append(c.failed, lead)
		c.costChange += c.Locations[lead].Price
	}
	c.keep()
}

// dropLong takes apart the routes over the limit of duration.
func (c *candidate) dropLong() {
	for r := 0; r < len(c.routes); r++ {
		if s := &c.states[c.routes[r]]; s.dur > c.longest && s.lock == 0 {
			c.dissolveRoute(int32(r))
			r = -1
		}
	}
}

// squeeze searches until every required task has a place, weighing one by how often it was left out
// (the fleet minimisation of Christiaens and Vanden Berghe, 2020). It is false where the budget's
// part is spent before.
func (d *generalDriver) squeeze(ctx context.Context, c *candidate, until float64) bool {
	c.weight = model.Resize(c.weight, c.Nodes)
	clear(c.weight)
	// The cheapest insertion may keep together what only fits apart, as where a backhaul needs a
	// linehaul before it.
	c.apart = true
	defer func() { c.apart = false }()
	sum := func(list []int32, fresh bool) (total float64) {
		for _, lead := range list {
			if c.Locations[lead].Required && (!fresh || c.removedAt[lead] == c.tick) {
				total += 1 + c.weight[lead]
			}
		}
		return total
	}
	for i := 0; c.leavesOutRequired(); i++ {
		if i%clockEach == 0 && (d.spent() >= until || d.over(ctx)) {
			return false
		}
		d.iterations++
		c.begin()
		c.ruin(c)
		for _, lead := range c.absent {
			if c.Locations[lead].Required && c.removedAt[lead] != c.tick {
				c.removedAt[lead], c.removedFrom[lead] = c.tick, -1
				c.removed = append(c.removed, lead)
				c.costChange -= c.Locations[lead].Price
			}
		}
		was := sum(c.absent, true)
		c.recreate(c, math.Inf(1), 0)
		if sum(c.failed, false) <= was {
			c.keep()
		} else {
			for _, lead := range c.failed {
				c.weight[lead]++
			}
			c.undo()
			continue
		}
		for _, lead := range c.failed {
			c.weight[lead]++
		}
	}
	return true
}

// fleetShare is the part of the budget, at most, to bring first routes within a fleet.
const fleetShare = 0.5

// fleetLeast is a budget of iterations that is enough to bring a small problem within its fleet.
const fleetLeast = 2000

// withinLimits makes first routes of a plain problem that keep to its fleet and its limit.
func (d *driver) withinLimits(ctx context.Context) (vrp.Solution, error) {
	g := &generalDriver{search: search{p: d.p, o: d.o, begun: d.begun}, most: d.most, longest: model.Endless}
	if g.o.Iterations > 0 {
		g.o.Iterations = max(g.o.Iterations, fleetLeast)
	}
	soon, cancel := d.startContext(ctx)
	defer cancel()
	g.m = compileNear(soon, d.p)
	c := newCandidate(g.m, model.NewStream(d.o.Seed, 1<<62))
	c.most = d.most
	c.set(nil, nil, nil)
	c.build(soon)
	served := g.squeeze(ctx, c, fleetShare)
	c.remember()
	s := vrp.Solution{Routes: clone(c.best)}
	if !served && len(s.Routes)+len(c.absent) > d.most {
		return s, &FleetError{fmt.Sprintf("no routes for %d vehicles were found: with %d, customers without a place: %d; give it more time, or more vehicles",
			d.most, len(s.Routes), len(c.absent))}
	}
	// Routes that use up a limit to the last digit are none to the model, which rounds.
	for _, v := range c.absent {
		s.Routes = append(s.Routes, []int32{v})
	}
	return s, nil
}
