package search

import (
	"math"
)

// Inserting a customer where it costs least. What a reader could break: a position is first
// compared with the best so far by its distance only, which rejects nearly all positions
// (rich_spot.go does the rest).

// fullMost is the number of customers up to which an insertion looks at every position; beyond it,
// it looks beside the nearest customers and at the ends of routes.
const fullMost = 150

// fullGroups is the same in groups, where most of the nearest customers are on no route.
const fullGroups = 320

// insertNear is how many of the nearest customers an insertion looks beside, and as many times more
// where customers of groups stand for each other.
const insertNear = 40

// nearMost is the number of places from which on an insertion that may cost no more than a limit
// looks nowhere else.
const nearMost = 300

// overlook is how seldom a new route's cheapest kind of vehicle is passed over, so that one which
// pays off with more customers gets its chance.
const overlook = 64

// overlookMissed is the same where required tasks are left out: one of them may only fit behind
// another in a vehicle that costs more.
const overlookMissed = 4

// find is the best spot of a customer that is no shipment's.
func (c *rchain) find(v int32, best *spot) {
	c.asked++
	// A limit of cost that no position near keeps is hardly kept far away, except by another size of
	// vehicle or between two trips, and among few customers.
	anywhere := c.places[v].required && (best.cost+c.loss[v] >= c.upper || (!c.lone || c.trips || c.nodes < nearMost) && !c.vast)
	switch {
	case c.hasty:
		c.findHasty(v, best)
		return
	case c.lean:
		c.sweepLean(v, best)
	case c.full && c.swift:
		c.sweep(v, best)
	case c.full:
		c.scan(v, best)
	case c.vast:
		c.findVast(v, best)
	default:
		c.findNear(v, best)
	}
	if c.trips {
		c.findTrip(v, best)
	}
	c.findNew(v, best)
	switch {
	case best.route >= 0 || c.full || !anywhere:
	case !c.vast:
		c.scan(v, best)
	case c.built || c.below(vastAll) == 0:
		c.findFar(v, best)
	}
}

// findNear looks beside the nearest customers and at the ends of routes.
func (c *rchain) findNear(v int32, best *spot) {
	to, from := c.rows(v) // distances to v and from it
	least := c.leastPerDist
	c.moves += int64(2 * len(c.slot))
	near := c.nearOf(v)
	for _, w := range near[:min(len(near), c.reach)] {
		l := &c.link[w]
		if l.route < 0 {
			continue
		}
		c.moves += 2
		before, after := to[l.prev]+from[w]-l.in, to[w]+from[l.next]-l.out
		if float64(float64(before)*least) < best.cost {
			c.try(l.route, v, int(l.pos), l.prev, w, before, best)
		}
		if float64(float64(after)*least) < best.cost {
			c.try(l.route, v, int(l.pos)+1, w, l.next, after, best)
		}
	}
	for r := range c.slot {
		e := &c.ends[r]
		before, after := to[e.start]+from[e.first]-e.in, to[e.last]+from[e.end]-e.out
		if float64(float64(before)*e.rate) < best.cost {
			c.try(int32(r), v, 1, e.start, e.first, before, best)
		}
		if float64(float64(after)*e.rate) < best.cost {
			c.try(int32(r), v, int(e.size)-1, e.last, e.end, after, best)
		}
	}
}

// rows is the distances to and from a customer, by place.
func (c *rchain) rows(v int32) (to, from []int32) {
	g := c.kinds[0].dist
	if g.cell != nil {
		from = g.cell[int(v)*g.n:][:g.n]
		to = from
		if g.back != nil {
			to = g.back[int(v)*g.n:][:g.n]
		}
		return to, from
	}
	c.rowTo, c.rowFrom = resize(c.rowTo, c.nodes+1), resize(c.rowFrom, c.nodes+1)
	need := func(w int32) { c.rowTo[w], c.rowFrom[w] = g.f(w, v), g.f(v, w) }
	near := c.nearOf(v)
	for _, w := range near[:min(len(near), c.reach)] {
		if l := &c.link[w]; l.route >= 0 {
			need(w)
			need(l.prev)
			need(l.next)
		}
	}
	for depot := range c.depots {
		need(int32(depot))
	}
	need(int32(c.nodes)) // nowhere
	for r := range c.slot {
		e := &c.ends[r]
		need(e.first)
		need(e.last)
	}
	return c.rowTo, c.rowFrom
}

// scan looks at every position.
func (c *rchain) scan(v int32, best *spot) {
	for r := range c.slot {
		s := &c.slots[c.slot[r]]
		c.scanRoute(int32(r), v, 1+int(s.lock), len(s.stops), best)
	}
}

// scanRoute looks at the positions of a route from lo to before hi.
func (c *rchain) scanRoute(r, v int32, lo, hi int, best *spot) {
	s := &c.slots[c.slot[r]]
	if s.count == 0 || lo >= hi {
		return
	}
	least, g := c.leastPerDist, c.kinds[s.kind].dist
	c.moves += int64(len(s.stops) - 1)
	last := g.at(s.stops[lo-1].node, v)
	for i := lo; i < hi; i++ {
		at := s.stops[i]
		if delta := last + g.at(v, at.node) - at.leg; float64(float64(delta)*least) < best.cost {
			kind, extra := c.enter(r, v)
			if kind < 0 {
				return
			}
			if c.wait == 0 {
				c.wait = c.blink()
			} else {
				c.wait--
				c.evaluate(r, v, i, s.stops[i-1].node, at.node, c.detour(kind, s.stops[i-1].node, v, at), kind, extra, best)
			}
		}
		last = g.at(at.node, v)
	}
}

// sweep is scan where one table has all distances and a vehicle makes one trip. It begins with the
// route of the nearest customer, so that most of the others fail by their distance.
func (c *rchain) sweep(v int32, best *spot) {
	to, from := c.rows(v)
	first := int32(-1)
	for _, w := range c.nearOf(v) {
		if first = c.link[w].route; first >= 0 {
			c.sweepRoute(first, v, to, from, best)
			break
		}
	}
	for r := range c.slot {
		if int32(r) != first {
			c.sweepRoute(int32(r), v, to, from, best)
		}
	}
}

// sweepRoute looks at every position of a route that the order of deliveries and pickups allows.
// Windows leave a run of them: those behind a stop that is left by the time that v closes, and
// before one that may wait until v is served.
func (c *rchain) sweepRoute(r, v int32, to, from []int32, best *spot) {
	e := &c.ends[r]
	if e.size == 0 {
		return
	}
	kind, extra := e.kind, 0.0
	a := &c.amounts[v]
	if !c.easy || a.del > e.del || a.pick > e.pick || !c.mayServe(&c.kinds[kind], v) {
		switch {
		case c.easy && c.lone && e.del != shut:
			if !c.soft || !c.mayServe(&c.kinds[kind], v) {
				return
			}
			over := int64(max(a.del-e.del, a.pick-e.pick)) * c.weights[0]
			if over > tollMost && over > c.slots[c.slot[r]].over {
				return
			}
			extra = float64(float64(over+int64(min(0, e.del, e.pick))*c.weights[0]) * c.toll)
		case c.simple && !c.soft && len(c.kinds) == 1 && c.slots[c.slot[r]].lock == 0:
			return
		default:
			if kind, extra = c.enter(r, v); kind < 0 {
				return
			}
		}
		if extra >= best.cost {
			return
		}
	}
	s := &c.slots[c.slot[r]]
	lo, hi := 1+int(s.lock), len(s.stops)
	if c.sided {
		side := c.side[v]
		if side&2 != 0 {
			hi = int(e.firstOut) + 1
		}
		if side&1 != 0 {
			lo = max(lo, int(e.lastIn)+1)
		}
	}
	if lo >= hi {
		return
	}
	at := &c.places[v]
	done, late := at.early+at.service, at.late // v is served at the soonest, and begun at the latest
	windows := c.timed && !c.clocked && !c.prompt
	if windows && (s.suf[hi-1].late < done || s.pre[lo-1].early+s.pre[lo-1].dur > late) {
		return
	}
	if c.prompt {
		if s.due[hi-1] < done || s.ready[lo-1] > late {
			return
		}
		c.moves += int64(hi - lo)
		if lo, hi = max(lo, under(s.due, done)), min(hi, 1+under(s.ready, late+1)); lo >= hi {
			return
		}
	} else {
		c.moves += int64(hi - lo)
	}
	rate := c.perRate[kind]
	limit := below((best.cost - extra) * rate)
	last := to[s.stops[lo-1].node]
	for i := lo; i < hi; i++ {
		at := s.stops[i]
		next := from[at.node]
		delta := last + next - at.leg
		last = next
		if !c.even {
			last = to[at.node]
		}
		if delta >= limit {
			continue
		}
		if windows {
			if s.suf[i].late < done {
				continue
			}
			if s.pre[i-1].early+s.pre[i-1].dur > late {
				return // and those behind it are left later still
			}
		}
		if c.wait == 0 {
			c.wait = c.blink()
			continue
		}
		c.wait--
		c.evaluate(r, v, i, s.stops[i-1].node, at.node, int64(delta), kind, extra, best)
		limit = below((best.cost - extra) * rate)
	}
}

// below is a whole number that every smaller detour is under, and hardly any other. evaluate looks
// again.
func below(detour float64) int32 {
	if detour >= math.MaxInt32-1 {
		return math.MaxInt32
	}
	if detour <= math.MinInt32 {
		return math.MinInt32
	}
	return int32(detour) + 1
}

// findNew looks at a route of its own, with each kind of vehicle that is left.
func (c *rchain) findNew(v int32, best *spot) {
	if c.routes() >= c.most {
		return
	}
	seldom := overlook
	if c.missed {
		seldom = overlookMissed
	}
	for i := range c.kinds {
		k := &c.kinds[i]
		dist := int64(k.dist.at(k.start, v)) + int64(k.dist.at(v, k.end))
		cost := k.fixed + float64(float64(dist)*k.perDist)
		if cost >= best.cost || c.used[i] >= k.count || !c.mayServe(k, v) || len(c.kinds) > 1 && c.below(seldom) == 0 {
			continue
		}
		if cost, ok := c.alone(int32(i), v, dist); ok && cost < best.cost {
			*best = spot{cost: cost, route: int32(len(c.slot)), kind: int32(i), node: v, at: 1}
		}
	}
}

// routes counts the vehicles in use.
func (c *rchain) routes() int {
	n := 0
	for _, u := range c.used {
		n += u
	}
	return n
}

// put inserts a task at its spot.
func (c *rchain) put(at spot) {
	r := at.route
	if int(r) == len(c.slot) {
		r = c.open(at.kind)
	}
	s := c.touch(r)
	was, over := s.cost, s.over
	if s.kind != at.kind {
		c.used[s.kind]--
		c.used[at.kind]++
		s.kind = at.kind
	}
	i, last := int(at.at), int(at.at)
	if mate := c.places[at.node].mate; mate != 0 && !c.places[at.node].second {
		last = int(at.then) + 1
		c.shift(s, int(at.then))
	}
	c.shift(s, i)
	leg := s.stops[i].leg
	s.stops = c.with(s.stops, at)
	if c.simple && !c.clocked {
		c.grow(s, i, leg)
	} else {
		c.refresh(s, i, last)
	}
	c.link[at.node].route = r
	c.settle(r, i)
	c.book(s.cost-was, s.over-over)
}

// grow is refresh where one customer came in as stop i, which took the place of a leg, and one load
// in whatever order is all that a route carries.
func (c *rchain) grow(s *rslot, i int, leg int32) {
	n := len(s.stops)
	t := &c.kinds[s.kind]
	s.dist += int64(s.stops[i].leg) + int64(s.stops[i+1].leg) - int64(leg)
	s.count++
	s.cuts[1] = int32(n - 1)
	a, sum := c.amounts[s.stops[i].node], &s.load[0]
	sum.del, sum.pick = sum.del+a.del, sum.pick+a.pick
	sum.peak = max(sum.del, sum.pick)
	s.over, s.priced = c.excess(sum.peak, t, 0, 0), false
	if !c.sided {
		c.orders(s)
	}
	if c.prompt {
		c.prompts(s, t, i, i)
	} else if c.timed {
		s.pre, s.suf = resize(s.pre, n), resize(s.suf, n)
		c.times(s, t, i, i)
	}
	s.cost = t.fixed + float64(float64(s.dist)*t.perDist) + float64(float64(s.dur)*t.perDur)
}

// shift makes room in the segments that begin at a stop, of which those behind it stay.
func (c *rchain) shift(s *rslot, i int) {
	if c.prompt {
		n := len(s.stops)
		s.due = resize(s.due, lots(n+1))
		copy(s.due[i+1:n+1], s.due[i:n])
	} else if c.timed && !c.slow && !c.clocked {
		s.suf = append(s.suf, tseg{})
		copy(s.suf[i+1:], s.suf[i:])
	}
}

// insertStop puts a node before stop i and sets the legs around it.
func insertStop(stops []stop, i int, v int32, k *kind) []stop {
	stops = append(stops, stop{})
	copy(stops[i+1:], stops[i:])
	stops[i] = stop{v, k.dist.at(stops[i-1].node, v)}
	stops[i+1].leg = k.dist.at(v, stops[i+1].node)
	return stops
}
