package search

import (
	"haul/internal/search/model"
	"haul/internal/vrp"
)

// Updating the segments, loads and cost of a changed route. Refresh gets the first stop whose
// beginning changed and the last stop whose end changed; stops outside keep their segments.

func (c *candidate) inner(s *routeState, i int) bool {
	return i > 0 && i < len(s.stops)-1 && int(s.stops[i].node) < c.Depots
}

// left is the segment that ends with stop i, as what follows it sees it.
func (c *candidate) left(s *routeState, i int) model.TimeSegment {
	if c.Traits.Parts.Has(model.Reloads) && c.inner(s, i) {
		return c.Types[s.kind].Leaving(s.stops[i].node)
	}
	return s.pre[i]
}

// right is the segment that begins with stop i, as what comes before sees it.
func (c *candidate) right(s *routeState, i int) model.TimeSegment {
	if c.Traits.Parts.Has(model.Reloads) && c.inner(s, i) {
		return model.TimeSegment{Late: model.Endless}
	}
	return s.suf[i]
}

// refresh brings a slot up to its stops: those from lo on have other beginnings, those up to hi
// other ends. It is false where the route breaks a limit.
func (c *candidate) refresh(s *routeState, lo, hi int) bool {
	n := len(s.stops)
	t := &c.Types[s.kind]
	c.measure(s)
	s.over, s.priced = 0, false
	ok := s.dist <= t.MaxDist && s.count <= t.MaxStops
	if c.Traits.Time.IsWalked() {
		return c.walk(s) && ok
	}
	if !c.loads(s, t) {
		ok = false
	}
	s.dur = 0
	if c.Traits.Time == model.Clocked {
		ok = c.clock(s, t) && ok
	} else if c.Traits.Time == model.WindowsOnly {
		ok = c.windowTimes(s, t, lo, hi) && ok
	} else if c.Traits.Time.Timed() {
		s.pre, s.suf = model.Resize(s.pre, n), model.Resize(s.suf, n)
		if !c.times(s, t, lo, hi) {
			s.dur, ok = 0, false
		}
		ok = ok && s.dur <= min(t.MaxDur, c.longest)
	}
	s.cost = 0
	if s.count > 0 {
		s.cost = t.Fixed + float64(float64(s.dist)*t.PerDist) + float64(float64(s.dur)*t.PerDur)
	}
	return ok
}

// measure finds the trips, counts customers and adds up legs.
func (c *candidate) measure(s *routeState) {
	s.dist, s.count = 0, len(s.stops)-2
	s.cuts = append(s.cuts[:0], 0)
	for i, at := range s.stops {
		s.dist += int64(at.leg)
		if c.Traits.Parts.Has(model.Reloads) && c.inner(s, i) {
			s.count--
			s.cuts = append(s.cuts, int32(i))
		}
	}
	s.cuts = append(s.cuts, int32(len(s.stops)-1))
}

// times makes the segments of time.
func (c *candidate) times(s *routeState, t *model.VehicleType, lo, hi int) bool {
	n := len(s.stops)
	dur := t.Durations
	if c.Traits.Parts.Has(model.Reloads) {
		lo, hi = 0, n-1
	}
	if lo == 0 {
		s.pre[0] = t.StartSeg
		lo = 1
	}
	var ok bool
	for i := lo; i < n; i++ {
		to := s.stops[i].node
		b := c.seg[to]
		if i == n-1 {
			b = t.EndSeg
		} else if c.Traits.Parts.Has(model.Reloads) && int(to) < c.Depots {
			b = model.TimeSegment{Late: model.Endless}
		}
		if s.pre[i], ok = c.left(s, i-1).Join(b, int64(dur.At(s.stops[i-1].node, to))); !ok {
			return false
		}
	}
	if hi == n-1 {
		s.suf[n-1] = t.EndSeg
		hi--
	}
	for i := hi; i >= 0; i-- {
		at := s.stops[i].node
		a := c.seg[at]
		if i == 0 {
			a = t.StartSeg
		} else if c.Traits.Parts.Has(model.Reloads) && int(at) < c.Depots {
			a = t.Leaving(at)
		}
		if s.suf[i], ok = a.Join(c.right(s, i+1), int64(dur.At(at, s.stops[i+1].node))); !ok {
			return false
		}
	}
	return c.chainTrips(s)
}

// chainTrips joins the trips to the whole route.
func (c *candidate) chainTrips(s *routeState) bool {
	trips := len(s.cuts) - 1
	if trips == 1 {
		whole, ok := s.suf[0].Trip()
		s.dur = whole.Dur
		return ok
	}
	s.ptrip, s.strip = model.Resize(s.ptrip, trips+1), model.Resize(s.strip, trips+1)
	var ok bool
	for k := range trips {
		one, fine := s.suf[s.cuts[k]].Trip()
		if !fine {
			return false
		}
		s.strip[k] = one
		if k == 0 {
			s.ptrip[1] = one
		} else if s.ptrip[k+1], ok = s.ptrip[k].Join(one, 0); !ok {
			return false
		}
	}
	for k := trips - 2; k >= 0; k-- {
		if s.strip[k], ok = s.strip[k].Join(s.strip[k+1], 0); !ok {
			return false
		}
	}
	s.dur = s.strip[0].Dur
	return true
}

// loads makes the segments of load and the order of deliveries and pickups.
func (c *candidate) loads(s *routeState, t *model.VehicleType) bool {
	n, dims := len(s.stops), c.Dims
	trips := len(s.cuts) - 1
	s.load = model.Resize(s.load, trips*dims)
	if !c.Traits.Load.InOrder() {
		for k := range trips {
			for d := range dims {
				var sum model.LoadSegment
				for i := s.cuts[k] + 1; i < s.cuts[k+1]; i++ {
					a := &c.Amounts[int(s.stops[i].node)*dims+d]
					sum.Del += a.Del
					sum.Pick += a.Pick
				}
				sum.Peak = max(sum.Del, sum.Pick)
				s.load[k*dims+d] = sum
				s.over += c.overloadOf(sum.Peak, t, k, d)
			}
		}
		return c.orders(s) && (c.overloads != noOverload || s.over == 0)
	}
	s.lpre, s.lsuf = model.Resize(s.lpre, n*dims), model.Resize(s.lsuf, n*dims)
	for k := range trips {
		from, to := int(s.cuts[k]), int(s.cuts[k+1])
		for d := range dims {
			var sum model.LoadSegment
			for i := from; i <= to; i++ {
				if i > from && i < to {
					sum = sum.Join(c.Amounts[int(s.stops[i].node)*dims+d])
				}
				if i > from || i == 0 {
					s.lpre[i*dims+d] = sum
				}
			}
			s.load[k*dims+d] = sum
			s.over += c.overloadOf(sum.Peak, t, k, d)
			sum = model.LoadSegment{}
			for i := to; i >= from; i-- {
				if i > from && i < to {
					sum = c.Amounts[int(s.stops[i].node)*dims+d].Join(sum)
				}
				if i < to || i == n-1 {
					s.lsuf[i*dims+d] = sum
				}
			}
		}
	}
	return c.orders(s) && (c.overloads != noOverload || s.over == 0)
}

// tripCapacity is what a kind's vehicle holds on its k-th trip.
func (c *candidate) tripCapacity(t *model.VehicleType, trip, dim int) int32 {
	if trip == 0 && t.Initial != nil {
		return t.Capacity[dim] - t.Initial[dim]
	}
	return t.Capacity[dim]
}

// orders notes where pickups and deliveries lie. It is false where a delivery follows a pickup that
// must be last.
func (c *candidate) orders(s *routeState) bool {
	if c.Traits.Order == model.AnyOrder {
		return true
	}
	s.order = model.Resize(s.order, len(s.stops))
	ok := true
	for k := range len(s.cuts) - 1 {
		from, to := int(s.cuts[k]), int(s.cuts[k+1])
		if c.Ordered == vrp.LinehaulFirst && from+1 < to && c.Side[s.stops[from+1].node] == 1 {
			ok = false
		}
		var seen uint8
		for i := from + 1; i < to; i++ {
			side := c.Side[s.stops[i].node]
			ok = ok && (seen == 0 || side&2 == 0)
			seen |= side & 1
			s.order[i] = seen
		}
		for i := to - 1; i > from; i-- {
			if c.Side[s.stops[i].node]&2 != 0 {
				for ; i > from; i-- {
					s.order[i] |= 2
				}
			}
		}
	}
	return ok
}
