package search

import "haul/internal/vrp"

// Updating the segments, loads and cost of a changed route. What a reader could break: refresh
// gets the first stop whose beginning changed and the last stop whose end changed; stops outside
// keep their segments.

func (c *rchain) inner(s *rslot, i int) bool {
	return i > 0 && i < len(s.stops)-1 && int(s.stops[i].node) < c.depots
}

// left is the segment that ends with stop i, as what follows it sees it.
func (c *rchain) left(s *rslot, i int) tseg {
	if c.trips && c.inner(s, i) {
		return c.kinds[s.kind].leaving(s.stops[i].node)
	}
	return s.pre[i]
}

// right is the segment that begins with stop i, as what comes before sees it.
func (c *rchain) right(s *rslot, i int) tseg {
	if c.trips && c.inner(s, i) {
		return tseg{late: endless}
	}
	return s.suf[i]
}

func (k *kind) leaving(depot int32) tseg {
	for i, d := range k.reloads {
		if d == depot {
			return k.reloadSegs[i]
		}
	}
	return tseg{early: 1, late: 0}
}

func resize[T any](list []T, n int) []T {
	if n <= cap(list) {
		return list[:n]
	}
	return append(list[:cap(list)], make([]T, n-cap(list))...)
}

// refresh brings a slot up to its stops: those from lo on have other beginnings, those up to hi
// other ends. It is false where the route breaks a limit.
func (c *rchain) refresh(s *rslot, lo, hi int) bool {
	n := len(s.stops)
	t := &c.kinds[s.kind]
	c.measure(s)
	s.over, s.priced = 0, false
	ok := s.dist <= t.maxDist && s.count <= t.maxStops
	if c.slow {
		return c.walk(s) && ok
	}
	if !c.loads(s, t) {
		ok = false
	}
	s.dur = 0
	if c.clocked {
		ok = c.clock(s, t) && ok
	} else if c.prompt {
		ok = c.prompts(s, t, lo, hi) && ok
	} else if c.timed {
		s.pre, s.suf = resize(s.pre, n), resize(s.suf, n)
		if !c.times(s, t, lo, hi) {
			s.dur, ok = 0, false
		}
		ok = ok && s.dur <= min(t.maxDur, c.longest)
	}
	s.cost = 0
	if s.count > 0 {
		s.cost = t.fixed + float64(float64(s.dist)*t.perDist) + float64(float64(s.dur)*t.perDur)
	}
	return ok
}

// measure finds the trips, counts customers and adds up legs.
func (c *rchain) measure(s *rslot) {
	s.dist, s.count = 0, len(s.stops)-2
	s.cuts = append(s.cuts[:0], 0)
	for i, at := range s.stops {
		s.dist += int64(at.leg)
		if c.trips && c.inner(s, i) {
			s.count--
			s.cuts = append(s.cuts, int32(i))
		}
	}
	s.cuts = append(s.cuts, int32(len(s.stops)-1))
}

// times makes the segments of time.
func (c *rchain) times(s *rslot, t *kind, lo, hi int) bool {
	n := len(s.stops)
	dur := t.dur
	if c.trips {
		lo, hi = 0, n-1
	}
	if lo == 0 {
		s.pre[0] = t.startSeg
		lo = 1
	}
	var ok bool
	for i := lo; i < n; i++ {
		to := s.stops[i].node
		b := c.seg[to]
		if i == n-1 {
			b = t.endSeg
		} else if c.trips && int(to) < c.depots {
			b = tseg{late: endless}
		}
		if s.pre[i], ok = c.left(s, i-1).join(b, int64(dur.at(s.stops[i-1].node, to))); !ok {
			return false
		}
	}
	if hi == n-1 {
		s.suf[n-1] = t.endSeg
		hi--
	}
	for i := hi; i >= 0; i-- {
		at := s.stops[i].node
		a := c.seg[at]
		if i == 0 {
			a = t.startSeg
		} else if c.trips && int(at) < c.depots {
			a = t.leaving(at)
		}
		if s.suf[i], ok = a.join(c.right(s, i+1), int64(dur.at(at, s.stops[i+1].node))); !ok {
			return false
		}
	}
	return c.chainTrips(s)
}

// chainTrips joins the trips to the whole route.
func (c *rchain) chainTrips(s *rslot) bool {
	trips := len(s.cuts) - 1
	if trips == 1 {
		whole, ok := s.suf[0].trip()
		s.dur = whole.dur
		return ok
	}
	s.ptrip, s.strip = resize(s.ptrip, trips+1), resize(s.strip, trips+1)
	var ok bool
	for k := range trips {
		one, fine := s.suf[s.cuts[k]].trip()
		if !fine {
			return false
		}
		s.strip[k] = one
		if k == 0 {
			s.ptrip[1] = one
		} else if s.ptrip[k+1], ok = s.ptrip[k].join(one, 0); !ok {
			return false
		}
	}
	for k := trips - 2; k >= 0; k-- {
		if s.strip[k], ok = s.strip[k].join(s.strip[k+1], 0); !ok {
			return false
		}
	}
	s.dur = s.strip[0].dur
	return true
}

// loads makes the segments of load and the order of deliveries and pickups.
func (c *rchain) loads(s *rslot, t *kind) bool {
	n, dims := len(s.stops), c.dims
	trips := len(s.cuts) - 1
	s.load = resize(s.load, trips*dims)
	if !c.mixed {
		for k := range trips {
			for d := range dims {
				var sum lseg
				for i := s.cuts[k] + 1; i < s.cuts[k+1]; i++ {
					a := &c.amounts[int(s.stops[i].node)*dims+d]
					sum.del += a.del
					sum.pick += a.pick
				}
				sum.peak = max(sum.del, sum.pick)
				s.load[k*dims+d] = sum
				s.over += c.excess(sum.peak, t, k, d)
			}
		}
		return c.orders(s) && (c.soft || s.over == 0)
	}
	s.lpre, s.lsuf = resize(s.lpre, n*dims), resize(s.lsuf, n*dims)
	for k := range trips {
		from, to := int(s.cuts[k]), int(s.cuts[k+1])
		for d := range dims {
			var sum lseg
			for i := from; i <= to; i++ {
				if i > from && i < to {
					sum = sum.join(c.amounts[int(s.stops[i].node)*dims+d])
				}
				if i > from || i == 0 {
					s.lpre[i*dims+d] = sum
				}
			}
			s.load[k*dims+d] = sum
			s.over += c.excess(sum.peak, t, k, d)
			sum = lseg{}
			for i := to; i >= from; i-- {
				if i > from && i < to {
					sum = c.amounts[int(s.stops[i].node)*dims+d].join(sum)
				}
				if i < to || i == n-1 {
					s.lsuf[i*dims+d] = sum
				}
			}
		}
	}
	return c.orders(s) && (c.soft || s.over == 0)
}

// room is what a kind's vehicle holds on its k-th trip.
func (c *rchain) room(t *kind, trip, dim int) int32 {
	if trip == 0 && t.initial != nil {
		return t.cap[dim] - t.initial[dim]
	}
	return t.cap[dim]
}

// orders notes where pickups and deliveries lie. It is false where a delivery follows a pickup that
// must be last.
func (c *rchain) orders(s *rslot) bool {
	if !c.sorted {
		return true
	}
	s.order = resize(s.order, len(s.stops))
	ok := true
	for k := range len(s.cuts) - 1 {
		from, to := int(s.cuts[k]), int(s.cuts[k+1])
		if c.ordered == vrp.LinehaulFirst && from+1 < to && c.side[s.stops[from+1].node] == 1 {
			ok = false
		}
		var seen uint8
		for i := from + 1; i < to; i++ {
			side := c.side[s.stops[i].node]
			ok = ok && (seen == 0 || side&2 == 0)
			seen |= side & 1
			s.order[i] = seen
		}
		for i := to - 1; i > from; i-- {
			if c.side[s.stops[i].node]&2 != 0 {
				for ; i > from; i-- {
					s.order[i] |= 2
				}
			}
		}
	}
	return ok
}
