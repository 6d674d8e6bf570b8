package search

import "math"

// Fleets of several sizes: a route of a large vehicle may cost less as two routes of small ones,
// which no insertion of single customers finds. What a reader could break: the halves are priced
// by distance and load only, so problems with times, trips or an order of loads must not come
// here.

// divides is whether routes may be cut in two: kinds of one family, and nothing that a half could
// break but its load and length.
func (m *model) divides() bool {
	if len(m.kinds) == 1 || m.slow || m.timed || m.trips || m.mixed || m.sorted || m.pairs {
		return false
	}
	for i := range m.kinds {
		if m.kinds[i].family != m.kinds[0].family || m.kinds[i].initial != nil {
			return false
		}
	}
	return true
}

// half is the cheapest kind for a run of customers with a load over a distance, of those with a
// vehicle left.
func (c *rchain) half(load []lseg, dist int64, count int) (int32, float64) {
	best, least := int32(-1), math.Inf(1)
	for i := range c.kinds {
		k := &c.kinds[i]
		cost := k.fixed + float64(float64(dist)*k.perDist)
		if cost >= least || c.used[i] >= k.count-1 || dist > k.maxDist || count > k.maxStops {
			continue
		}
		fits := true
		for d := range load {
			fits = fits && max(load[d].del, load[d].pick) <= k.cap[d]
		}
		if fits {
			best, least = int32(i), cost
		}
	}
	return best, least
}

// divide cuts a touched route in two where that costs least, if it costs less than the whole.
func (c *rchain) divide(r int32) {
	s := &c.slots[c.slot[r]]
	n := len(s.stops)
	if s.count < 2 || s.over > 0 || c.routes() >= c.most {
		return
	}
	now := &c.kinds[s.kind]
	g := now.dist
	cut, kinds := 0, [2]int32{}
	least := s.cost - 1e-9
	var way int64
	front := c.loadBuf[:c.dims]
	clear(front)
	back := c.backBuf[:c.dims]
	copy(back, s.load)
	for i := 1; i < n-2; i++ {
		v, w := s.stops[i].node, s.stops[i+1].node
		way += int64(s.stops[i].leg)
		for d, a := range c.amountsOf(v) {
			front[d].del, front[d].pick = front[d].del+a.del, front[d].pick+a.pick
			back[d].del, back[d].pick = back[d].del-a.del, back[d].pick-a.pick
		}
		first := way + int64(g.at(v, now.end))
		second := s.dist - way - int64(s.stops[i+1].leg) + int64(g.at(now.start, w))
		if float64(float64(first+second)*c.leastPerDist) >= least {
			continue
		}
		a, costA := c.half(front, first, i)
		if a < 0 || costA >= least {
			continue
		}
		b, costB := c.half(back, second, n-2-i)
		if b >= 0 && costA+costB < least {
			least, cut, kinds = costA+costB, i, [2]int32{a, b}
		}
	}
	if cut == 0 || !c.mayServeAll(s, kinds, cut) {
		return
	}
	rest := append([]stop(nil), s.stops[cut+1:n-1]...)
	q := c.open(kinds[1])
	s = c.touch(r) // it is touched already
	was, over := s.cost, s.over
	c.used[s.kind]--
	c.used[kinds[0]]++
	s.kind = kinds[0]
	s.stops = append(s.stops[:cut+1], stop{now.end, g.at(s.stops[cut].node, now.end)})
	c.refresh(s, 0, len(s.stops)-1)
	c.reindex(r, 0)
	t := &c.slots[c.slot[q]]
	k := &c.kinds[kinds[1]]
	rest[0].leg = g.at(k.start, rest[0].node)
	last := rest[len(rest)-1].node
	t.stops = append(append(t.stops[:1], rest...), stop{k.end, g.at(last, k.end)})
	c.refresh(t, 0, len(t.stops)-1)
	c.reindex(q, 0)
	c.book(s.cost+t.cost-was, s.over+t.over-over)
}

// mayServeAll is whether both halves' kinds may serve their customers.
func (c *rchain) mayServeAll(s *rslot, kinds [2]int32, cut int) bool {
	for i := 1; i < len(s.stops)-1; i++ {
		k := kinds[0]
		if i > cut {
			k = kinds[1]
		}
		if !c.mayServe(&c.kinds[k], s.stops[i].node) {
			return false
		}
	}
	return true
}
