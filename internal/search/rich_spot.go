package search

import (
	"math"

	"haul/internal/vrp"
)

// The cost of a position, and whether the route allows it. What a reader could break: distance
// is checked first, then order, load and time, each only if the cost so far is below the best.

// spot is a place in the routes for a task, and what it adds to their cost.
type spot struct {
	cost       float64
	route      int32 // -1: none; the number of routes: a route of its own
	kind       int32 // the vehicle's kind with it
	node       int32 // the customer inserted
	at         int32 // the index that it takes
	then       int32 // the index before which its shipment's delivery goes, counted without the pickup
	reload     int32 // a depot visited beside it, plus 1; 0: none
	reloadLast bool  // the depot follows the customer
}

func none() spot { return spot{cost: math.Inf(1), route: -1} }

// enter is whether a route may get v at all: the kind that its vehicle must have, -1 for none, and
// what that change of kind costs.
func (c *rchain) enter(r, v int32) (int32, float64) {
	if c.entered[r] == c.asked {
		return c.verdict[r], c.extra[r]
	}
	c.entered[r] = c.asked
	c.verdict[r], c.extra[r] = c.evaluateRoute(&c.slots[c.slot[r]], v)
	return c.verdict[r], c.extra[r]
}

// evaluateRoute is enter, unless it was asked for this insertion before.
func (c *rchain) evaluateRoute(s *rslot, v int32) (int32, float64) {
	if s.count == 0 || int(s.lock) >= len(s.stops)-1 && s.lock > 0 {
		return -1, 0
	}
	best, extra := int32(-1), math.Inf(1)
	now := &c.kinds[s.kind]
	if more, ok := c.takes(s, s.kind, v); ok {
		best, extra = s.kind, float64(float64(more)*c.toll)
	}
	if extra == 0 || len(c.kinds) == 1 || s.lock > 0 {
		return best, extra
	}
	if c.simple && !c.soft {
		if !s.priced {
			c.price(s)
		}
		a := c.amounts[v]
		for _, u := range s.ups {
			if k := &c.kinds[u.kind]; a.del <= u.del && a.pick <= u.pick && c.used[u.kind] < k.count && c.mayServe(k, v) {
				return u.kind, u.extra
			}
		}
		return best, extra
	}
	for i := range c.kinds {
		k := &c.kinds[i]
		if k.family != now.family || int32(i) == s.kind || c.used[i] >= k.count {
			continue
		}
		more, ok := c.takes(s, int32(i), v)
		if !ok {
			continue
		}
		d := c.turn(s, k) + float64(float64(more)*c.toll)
		if d < extra && c.takesAll(s, int32(i)) {
			best, extra = int32(i), d
		}
	}
	return best, extra
}

// turn is what a route costs more with another kind of the same family.
func (c *rchain) turn(s *rslot, k *kind) float64 {
	now := &c.kinds[s.kind]
	return k.fixed - now.fixed + float64(float64(s.dist)*(k.perDist-now.perDist)) + float64(float64(s.dur)*(k.perDur-now.perDur))
}

// price lists the kinds that a route may change to for one more customer, the cheapest first.
func (c *rchain) price(s *rslot) {
	s.priced = true
	s.ups = s.ups[:0]
	family := c.kinds[s.kind].family
	for i := range c.kinds {
		k := &c.kinds[i]
		if k.family != family || int32(i) == s.kind || s.count >= k.maxStops || !c.takesAll(s, int32(i)) {
			continue
		}
		room := c.room(k, 0, 0)
		u := up{c.turn(s, k), int32(i), room - s.load[0].del, room - s.load[0].pick}
		j := len(s.ups)
		s.ups = append(s.ups, u)
		for ; j > 0 && s.ups[j-1].extra > u.extra; j-- {
			s.ups[j] = s.ups[j-1]
		}
		s.ups[j] = u
	}
}

// takes is whether a vehicle of a kind may have v beside what the route holds, and by how much more
// it is overloaded then.
func (c *rchain) takes(s *rslot, kind, v int32) (int64, bool) {
	k := &c.kinds[kind]
	if s.count >= k.maxStops || !c.mayServe(k, v) {
		return 0, false
	}
	if c.pairs || c.mixed || c.trips {
		return 0, true // evaluated where it goes
	}
	if c.soft {
		more := -s.over
		for d, a := range c.amountsOf(v) {
			l := s.load[d]
			more += c.excess(max(l.del+a.del, l.pick+a.pick), k, 0, d)
		}
		return more, more <= 0 || s.over+more <= tollMost
	}
	for d, a := range c.amountsOf(v) {
		l, room := s.load[d], c.room(k, 0, d)
		if l.del+a.del > room || l.pick+a.pick > room {
			return 0, false
		}
	}
	return 0, true
}

// takesAll is whether a kind may serve all customers of a route, and hold its present load.
func (c *rchain) takesAll(s *rslot, kind int32) bool {
	k := &c.kinds[kind]
	if k.allowed != nil {
		for _, at := range s.stops[1 : len(s.stops)-1] {
			if int(at.node) >= c.depots && !c.mayServe(k, at.node) {
				return false
			}
		}
	}
	for i, l := range s.load {
		if !c.soft && l.peak > c.room(k, i/c.dims, i%c.dims) {
			return false
		}
	}
	return s.dist <= k.maxDist && s.dur <= k.maxDur && s.count <= k.maxStops
}

// try evaluates one position that distance finds better: v before stop i of route r, which is
// between prev and next and adds delta to the route's distance.
func (c *rchain) try(r, v int32, i int, prev, next, delta int32, best *spot) {
	e := &c.ends[r]
	if float64(float64(delta)*e.rate) >= best.cost {
		return
	}
	var kind int32
	var extra float64
	if c.simple && e.size > 0 && c.amounts[v].del <= e.del && c.amounts[v].pick <= e.pick && c.mayServe(&c.kinds[e.kind], v) {
		kind = e.kind
	} else {
		if e.size == 0 || c.simple && !c.soft && len(c.kinds) == 1 {
			return
		}
		s := &c.slots[c.slot[r]]
		if kind, extra = c.enter(r, v); kind < 0 || i <= int(s.lock) && s.lock > 0 {
			return
		}
	}
	if c.wait == 0 {
		c.wait = c.blink()
		return
	}
	c.wait--
	c.evaluate(r, v, i, prev, next, int64(delta), kind, extra, best)
}

// evaluate is try where the route's vehicle is known to take v, of that kind and at that extra
// cost.
func (c *rchain) evaluate(r, v int32, i int, prev, next int32, delta int64, kind int32, extra float64, best *spot) {
	k := &c.kinds[kind]
	cost := extra + float64(float64(delta)*k.perDist)
	if cost >= best.cost {
		return
	}
	if c.sided && !c.slow && !c.inTurn(prev, next, v) {
		return
	}
	if c.bare {
		*best = spot{cost: cost, route: r, kind: kind, node: v, at: int32(i)}
		return
	}
	s := &c.slots[c.slot[r]]
	if s.dist+delta > k.maxDist {
		return
	}
	if c.slow {
		c.evaluateWhole(spot{route: r, kind: kind, node: v, at: int32(i)}, best)
		return
	}
	trip := 0
	if len(s.cuts) > 2 {
		for int(s.cuts[trip+1]) < i {
			trip++
		}
	}
	if c.mixed || c.trips || c.sorted {
		if c.sorted && !c.sided && !c.inOrder(s, trip, i, v) {
			return
		}
		if c.mixed || c.trips {
			more, ok := c.holds(s, k, trip, i, v)
			if !ok {
				return
			}
			if cost += float64(float64(more) * c.toll); cost >= best.cost {
				return
			}
		}
	}
	if c.timed {
		dur, ok := c.lasts(s, k, trip, i, prev, v, next)
		if !ok {
			return
		}
		if c.perDur {
			cost += float64(float64(dur-s.dur) * k.perDur)
			if cost >= best.cost {
				return
			}
		}
	}
	*best = spot{cost: cost, route: r, kind: kind, node: v, at: int32(i)}
}

// holds is by how much more the route is overloaded with v before stop i; false where it may not
// be.
func (c *rchain) holds(s *rslot, k *kind, trip, i int, v int32) (int64, bool) {
	dims := c.dims
	var more int64
	if !c.mixed {
		for d, a := range c.amountsOf(v) {
			l := s.load[trip*dims+d]
			more += c.excess(max(l.del+a.del, l.pick+a.pick), k, trip, d) - c.excess(l.peak, k, trip, d)
		}
		return more, more <= 0 || c.soft && s.over+more <= tollMost
	}
	first, last := i-1 == int(s.cuts[trip]), i == int(s.cuts[trip+1])
	for d := range dims {
		x := c.amounts[int(v)*dims+d]
		if !first {
			x = s.lpre[(i-1)*dims+d].join(x)
		}
		if !last {
			x = x.join(s.lsuf[i*dims+d])
		}
		more += c.excess(x.peak, k, trip, d) - c.excess(s.load[trip*dims+d].peak, k, trip, d)
	}
	return more, more <= 0 || c.soft && s.over+more <= tollMost
}

// inOrder is whether v before stop i keeps deliveries and pickups in their order.
func (c *rchain) inOrder(s *rslot, trip, i int, v int32) bool {
	first, last := i-1 == int(s.cuts[trip]), i == int(s.cuts[trip+1])
	side := c.side[v]
	if side&2 != 0 && !first && s.order[i-1]&1 != 0 || side&1 != 0 && !last && s.order[i]&2 != 0 {
		return false
	}
	return c.ordered != vrp.LinehaulFirst || !first || side != 1
}

// inTurn is the same where every customer gives or gets: its neighbours tell.
func (c *rchain) inTurn(prev, next, v int32) bool {
	side := c.side[v]
	if side&2 != 0 && c.side[prev]&1 != 0 || side&1 != 0 && c.side[next]&2 != 0 {
		return false
	}
	return c.ordered != vrp.LinehaulFirst || int(prev) >= c.depots && int(prev) < c.nodes || side != 1
}

// lasts is the route's duration with v before stop i; false where a limit of time breaks.
func (c *rchain) lasts(s *rslot, k *kind, trip, i int, prev, v, next int32) (int64, bool) {
	if c.clocked {
		return 0, c.inTime(s, k, i, v)
	}
	if c.prompt {
		return 0, c.admits(s, k, i, prev, v, next)
	}
	x, ok := c.left(s, i-1).join(c.seg[v], int64(k.dur.at(prev, v)))
	if !ok {
		return 0, false
	}
	x, ok = x.join(c.right(s, i), int64(k.dur.at(v, next)))
	if !ok {
		return 0, false
	}
	return c.whole(s, k, trip, x)
}

// whole is the route's duration where a trip of it is replaced by x.
func (c *rchain) whole(s *rslot, k *kind, trip int, x tseg) (int64, bool) {
	x, ok := x.trip()
	if !ok {
		return 0, false
	}
	if trips := len(s.cuts) - 1; trips > 1 {
		if trip > 0 {
			if x, ok = s.ptrip[trip].join(x, 0); !ok {
				return 0, false
			}
		}
		if trip+1 < trips {
			if x, ok = x.join(s.strip[trip+1], 0); !ok {
				return 0, false
			}
		}
	}
	return x.dur, x.dur <= min(k.maxDur, c.longest)
}

// detour is the distance that v adds before a stop, for a kind that may have other distances.
func (c *rchain) detour(kind, prev, v int32, at stop) int64 {
	g := c.kinds[kind].dist
	return int64(g.at(prev, v)) + int64(g.at(v, at.node)) - int64(at.leg)
}

// alone is what a route with v alone costs.
func (c *rchain) alone(kind, v int32, dist int64) (float64, bool) {
	k := &c.kinds[kind]
	if dist > k.maxDist {
		return 0, false
	}
	cost := k.fixed + float64(float64(dist)*k.perDist)
	if c.slow {
		to := none()
		c.evaluateWhole(spot{route: int32(len(c.slot)), kind: kind, node: v, at: 1}, &to)
		return to.cost, to.route >= 0
	}
	for d, a := range c.amountsOf(v) {
		if a.peak > c.room(k, 0, d) {
			return 0, false
		}
	}
	at := &c.places[v]
	if c.ordered == vrp.LinehaulFirst && at.delivery == 0 && at.pick > 0 {
		return 0, false
	}
	if c.clocked {
		var h hours
		if int(k.start) < c.nodes {
			var ok bool
			if h, ok = c.leave(k, k.start); !ok {
				return 0, false
			}
		}
		return cost, c.serve(&h, k, k.start, v) && c.finish(&h, k, v)
	}
	if c.timed {
		x, ok := k.startSeg.join(c.seg[v], int64(k.dur.at(k.start, v)))
		if !ok {
			return 0, false
		}
		if x, ok = x.join(k.endSeg, int64(k.dur.at(v, k.end))); !ok {
			return 0, false
		}
		if x, ok = x.trip(); !ok || x.dur > min(k.maxDur, c.longest) {
			return 0, false
		}
		cost += float64(float64(x.dur) * k.perDur)
	}
	return cost, true
}

// evaluateWhole evaluates a spot by the route that it makes.
func (c *rchain) evaluateWhole(to spot, best *spot) {
	id := c.take()
	t := &c.slots[id]
	k := &c.kinds[to.kind]
	was := 0.0
	if int(to.route) < len(c.slot) {
		s := &c.slots[c.slot[to.route]]
		t.stops, t.lock = append(t.stops[:0], s.stops...), s.lock
		was = c.tolled(s)
	} else {
		t.stops, t.lock = append(t.stops[:0], stop{k.start, 0}, stop{k.end, k.dist.at(k.start, k.end)}), 0
	}
	t.kind = to.kind
	t.stops = c.with(t.stops, to)
	ok := c.refresh(t, 0, len(t.stops)-1)
	to.cost = c.tolled(t) - was
	c.free = append(c.free, id)
	if ok && to.cost < best.cost {
		*best = to
	}
}

// with is stops with a task at its spot.
func (c *rchain) with(stops []stop, at spot) []stop {
	k := &c.kinds[at.kind]
	if mate := c.places[at.node].mate; mate != 0 && !c.places[at.node].second {
		stops = insertStop(stops, int(at.then), mate, k)
	}
	stops = insertStop(stops, int(at.at), at.node, k)
	if at.reload > 0 {
		j := int(at.at)
		if at.reloadLast {
			if j++; c.places[at.node].mate != 0 {
				j++ // a shipment on a trip of its own: its delivery is right behind
			}
		}
		stops = insertStop(stops, j, at.reload-1, k)
	}
	return stops
}
