package search

import (
	"cmp"
	"context"
	"math"
	"math/bits"
	"slices"

	"haul/internal/vrp"
)

// Objectives other than the cost: fewer vehicles, and a shorter longest route. What a reader
// could break: both are limits that are tightened as long as all required customers fit.
// Annealing then starts from the last routes that served all of them.

// fewest gives up route after route.
func (d *richDriver) fewest(ctx context.Context, c *rchain) {
	until := richShare
	if !d.squeeze(ctx, c, until/2) {
		return // not even the whole fleet serves all: the annealing may find more room
	}
	c.remember()
	d.take(c)
	for least := max(1, d.m.fewestVehicles()); d.spent() < until && !d.over(ctx) && len(c.slot) > least; {
		kept := vrp.Solution{Routes: clone(c.best), Types: append([]int32(nil), c.bestKind...)}
		if !c.giveUpRoute() {
			break
		}
		c.most = len(c.slot)
		if !d.squeeze(ctx, c, until) {
			c.set(kept.Routes, kept.Types, d.locksOf(kept))
			break
		}
		c.remember()
		d.take(c)
		d.tell(true)
	}
	d.most = max(1, len(c.slot))
	if len(c.slot) <= d.m.fewestVehicles() {
		d.priceAlone(c)
	}
}

// priceAlone goes on by the cost alone, where no vehicle can be saved. What a vehicle costs by the
// objective would pay for any overload: the chain would give up a route that it needs.
func (d *richDriver) priceAlone(c *rchain) {
	for i := range d.m.kinds {
		d.m.kinds[i].fixed = d.m.kinds[i].own
	}
	c.set(d.best.Routes, d.best.Types, d.locksOf(d.best))
	d.bestCost = c.bestCost
	leg := c.leg
	c.typicalLeg()
	c.leg = leg // of the greedy start, as with other objectives
}

// fewestVehicles is a number of vehicles below which the required tasks exceed all capacities: to
// search for fewer would be in vain.
func (m *model) fewestVehicles() int {
	least := 0
	if m.trips || m.pairs {
		return 0 // a vehicle may carry more than its capacity, in turn
	}
	for d := range m.dims {
		var del, pick int64
		for _, v := range m.tasks {
			if m.places[v].required && m.members[v] == nil {
				a := m.amountsOf(v)[d]
				del, pick = del+int64(a.del), pick+int64(a.pick)
			}
		}
		order := make([]int, len(m.kinds))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(m.kinds[j].cap[d], m.kinds[i].cap[d]) })
		need, count := max(del, pick), int64(0)
		for _, i := range order {
			size := int64(m.kinds[i].cap[d])
			if need <= 0 || size <= 0 {
				break
			}
			n := min(int64(m.kinds[i].count), (need+size-1)/size)
			need, count = need-n*size, count+n
		}
		least = max(least, int(count))
	}
	return least
}

// shorten lowers the limit of every route's duration: in large steps first, which halve where they
// fail. Each has an equal part of what is left: two best routes may differ by one unit.
func (d *richDriver) shorten(ctx context.Context, c *rchain) {
	if !d.squeeze(ctx, c, richShare/4) {
		return
	}
	c.remember()
	d.take(c)
	longest := c.longestRoute()
	for step := max(1, longest/20); step >= 1 && longest > 0 && c.longestFree() == longest && d.spent() < richShare && !d.over(ctx); {
		kept := vrp.Solution{Routes: clone(c.best), Types: append([]int32(nil), c.bestKind...)}
		c.longest = longest - step
		c.dropLong()
		if !d.squeeze(ctx, c, d.spent()+(richShare-d.spent())/float64(1+bits.Len64(uint64(step)))) {
			c.longest = endless
			c.set(kept.Routes, kept.Types, d.locksOf(kept))
			step /= 2
			continue
		}
		c.remember()
		d.best.Routes = nil // a shorter longest route is better at any cost
		d.take(c)
		d.tell(true)
		longest = c.longestRoute()
		step = max(1, min(2*step, longest/20))
	}
	c.longest = endless
	d.longest = max(1, c.longestRoute())
	c.longest = d.longest
}

func (c *rchain) longestRoute() int64 {
	var out int64
	for _, k := range c.slot {
		out = max(out, c.slots[k].dur)
	}
	return out
}

// longestFree is the duration of the longest route that is not locked: a locked one cannot be
// shortened by taking it apart.
func (c *rchain) longestFree() int64 {
	var out int64
	for _, k := range c.slot {
		if s := &c.slots[k]; s.lock == 0 {
			out = max(out, s.dur)
		}
	}
	return out
}

// giveUpRoute takes the route with the fewest customers apart.
func (c *rchain) giveUpRoute() bool {
	least := -1
	for r, k := range c.slot {
		if c.slots[k].lock == 0 && (least < 0 || c.slots[k].count < c.slots[c.slot[least]].count) {
			least = r
		}
	}
	if least < 0 {
		return false
	}
	c.dismiss(int32(least))
	return true
}

// dismiss takes a route apart; its tasks are absent.
func (c *rchain) dismiss(r int32) {
	c.begin()
	stops := c.slots[c.slot[r]].stops
	for _, at := range stops[1 : len(stops)-1] {
		if int(at.node) >= c.depots {
			c.mark(at.node)
		}
	}
	c.compactAll()
	for _, lead := range c.removed {
		c.failed = append(c.failed, lead)
		c.change += c.places[lead].price
	}
	c.keep()
}

// dropLong takes apart the routes over the limit of duration.
func (c *rchain) dropLong() {
	for r := 0; r < len(c.slot); r++ {
		if s := &c.slots[c.slot[r]]; s.dur > c.longest && s.lock == 0 {
			c.dismiss(int32(r))
			r = -1
		}
	}
}

// squeeze searches until every required task has a place, weighing one by how often it was left out
// (the fleet minimisation of Christiaens and Vanden Berghe, 2020). It is false where the budget's
// part is spent before.
func (d *richDriver) squeeze(ctx context.Context, c *rchain, until float64) bool {
	c.weight = resize(c.weight, c.nodes)
	clear(c.weight)
	// The cheapest spot may keep together what only fits apart, as where a backhaul needs a linehaul
	// before it.
	c.apart = true
	defer func() { c.apart = false }()
	sum := func(list []int32, fresh bool) (total float64) {
		for _, lead := range list {
			if c.places[lead].required && (!fresh || c.taken[lead] == c.tick) {
				total += 1 + c.weight[lead]
			}
		}
		return total
	}
	for i := 0; c.short(); i++ {
		if i%clockEach == 0 && (d.spent() >= until || d.over(ctx)) {
			return false
		}
		d.iterations++
		c.begin()
		c.ruin()
		for _, lead := range c.absent {
			if c.places[lead].required && c.taken[lead] != c.tick {
				c.taken[lead], c.home[lead] = c.tick, -1
				c.removed = append(c.removed, lead)
				c.change -= c.places[lead].price
			}
		}
		was := sum(c.absent, true)
		c.recreate(math.Inf(1), 0)
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
