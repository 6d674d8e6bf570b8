package search

import (
	"haul/internal/search/model"
)

const (
	scanNodes  = 300 // nodes of a region up to which a customer is tried in every route
	routesNear = 32  // nearest customers whose routes it is tried in otherwise
)

// ruin removes strings around a random customer.
func (c *chain) ruin() {
	n := c.nodes - 1
	longest := min(stringMax, float64(n)/float64(len(c.load)))
	count := stringCount(&c.Stream, longest, removedMean)
	seed := int32(1 + c.IntN(n))
	removeStrings(c, seed, c.near[c.nearAt[seed]:c.nearAt[seed+1]], count, longest, false)
}

// mayCut is as stringStore has it.
func (c *chain) mayCut(v int32, _ bool) bool {
	r := c.route[v]
	return r >= 0 && c.cut[r] != c.tick
}

// cutString takes a run of customers around v out of its route; sometimes a longer run from which a
// few in the middle stay.
func (c *chain) cutString(v int32, longest float64) {
	r := c.route[v]
	if r < 0 {
		return // it waits for a place
	}
	s := c.touch(r)
	c.cut[r] = c.tick
	stops := s.stops
	at := 1
	for stops[at].node != v {
		at++
	}
	lo, span, hole, kept := drawString(&c.Stream, at-1, len(stops)-2, longest, splitDeeper)
	lo++
	hole++
	hi := lo + span // the first stop after the string
	var gone, load int32
	last, end := stops[lo-1].node, lo
	var came int32
	for i := lo; i < hi; i++ {
		gone += stops[i].leg
		w := stops[i].node
		if i >= hole && i < hole+kept {
			leg := c.leg(last, w)
			came += leg
			stops[end] = stop{w, leg}
			end++
			last = w
			continue
		}
		c.route[w], c.home[w] = -1, r
		load += c.demand[w]
		c.removed = append(c.removed, w)
		if c.service != nil {
			s.length -= int64(c.service[w])
		}
	}
	gone += stops[hi].leg
	leg := c.leg(last, stops[hi].node)
	came += leg
	stops[hi].leg = leg
	s.stops = append(stops[:end], stops[hi:]...)
	c.load[r] -= load
	c.change += int64(came) - int64(gone)
	s.length += int64(came) - int64(gone)
	if len(s.stops) == 2 {
		c.emptied = true
	}
}

// recreate puts every removed customer back at its cheapest position. It gives up, with false, as
// soon as the change passes the limit: an insertion that makes routes shorter is too rare to wait
// for.
func (c *chain) recreate(limit int64) bool {
	c.order.sort(&c.Stream, c.IntN(11), c.removed)
	for _, v := range c.removed {
		if !c.insert(v, limit) {
			return false
		}
	}
	return c.change < limit
}

// insert puts v where it costs least: in a large region among the routes of its nearest customers,
// and among all if none of those has room.
func (c *chain) insert(v int32, limit int64) bool {
	in := c.in[int(v)*c.nodes:][:c.nodes]
	out := c.out[int(v)*c.nodes:][:c.nodes]
	best, at, to := int32(1<<31-1), 0, int32(-1)
	room := c.capacity - c.demand[v]
	if c.nodes > model.ScanMost || c.nodes > scanNodes && len(c.load) > model.ScanRoutes {
		c.probe++
		near := c.near[c.nearAt[v]:c.nearAt[v+1]]
		for _, w := range near[:min(len(near), routesNear)] {
			r := c.route[w]
			if r < 0 || c.probed[r] == c.probe || c.load[r] > room {
				continue
			}
			c.probed[r] = c.probe
			if d, k := c.place(int(r), v, in, out, best); k > 0 {
				best, at, to = d, k, r
			}
		}
	}
	if to < 0 {
		for r, load := range c.load {
			if load > room {
				continue
			}
			if d, k := c.place(r, v, in, out, best); k > 0 {
				best, at, to = d, k, int32(r)
			}
		}
	}
	if alone := out[0] + in[0]; (to < 0 || alone < best) && len(c.load) < c.most {
		best, at, to = alone, 1, c.open()
	}
	if to < 0 {
		return false
	}
	c.change += int64(best)
	if c.change >= limit {
		return false
	}
	s := c.touch(to)
	stops := append(s.stops, stop{})
	copy(stops[at+1:], stops[at:])
	stops[at] = stop{v, in[stops[at-1].node]}
	stops[at+1].leg = out[stops[at+1].node]
	s.stops = stops
	s.length += int64(best)
	if c.service != nil {
		s.length += int64(c.service[v])
	}
	c.load[to] += c.demand[v]
	c.route[v] = to
	return true
}

// place finds the cheapest position for v in a route that has room for it: the least cost below
// best, and the index it would take; index 0 for none.
func (c *chain) place(r int, v int32, in, out []int32, best int32) (int32, int) {
	s := &c.slots[c.slot[r]]
	if c.limit > 0 {
		best = c.within(s, v, best)
	}
	if stops := s.stops; len(stops)-1 <= c.untilSkip && &in[0] == &out[0] {
		c.untilSkip -= len(stops) - 1
		return cheapest(stops, out, best)
	}
	return c.skipping(s.stops, in, out, best)
}

// within is the bound under which an insertion of v keeps the route's limit.
func (c *chain) within(s *routeBuffer, v, best int32) int32 {
	left := c.limit - s.length + 1
	if c.service != nil {
		left -= int64(c.service[v])
	}
	return int32(max(min(left, int64(best)), -1<<31+1))
}

// cheapest finds the cheapest position for a customer between some stops, where distances are the
// same both ways: the least d below best, and the index it would take; index 0 for none.
//
//	for i := 1..: d = row[stops[i-1]] + row[stops[i]] - stops[i].leg
func cheapest(stops []stop, row []int32, best int32) (int32, int) {
	at := 0
	last := row[stops[0].node]
	for i := 1; i < len(stops); i++ {
		s := stops[i]
		d := row[s.node]
		if cost := last + d - s.leg; cost < best {
			best, at = cost, i
		}
		last = d
	}
	return best, at
}

// skipping is cheapest for distances that may differ by direction, overlooking a position now and
// then.
func (o *overlooking) skipping(stops []stop, in, out []int32, best int32) (int32, int) {
	at := 0
	for i := 1; i < len(stops); i++ {
		if o.overlooks() {
			continue
		}
		s := stops[i]
		if cost := in[stops[i-1].node] + out[s.node] - s.leg; cost < best {
			best, at = cost, i
		}
	}
	return best, at
}

// iterate is one iteration at a temperature.
func (c *chain) iterate(temperature float64) {
	c.begin()
	c.ruin()
	limit := int64(temperature*c.Exponential()) + 1
	if c.recreate(limit) {
		c.keep()
	} else {
		c.undo()
	}
}
