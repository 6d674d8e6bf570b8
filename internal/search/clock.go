package search

import (
	"haul/internal/search/model"
)

// Routes whose times are computed stop by stop: several windows per place, breaks, setup times and
// free start times, where the duration of a route is neither limited nor priced. The earliest
// service is then always the best, so the times before a position are known, and only the stops
// behind it are walked. Breaks are taken in their order, at a stop, as in breaks.go. tail does not
// know breaks: with breaks it may only reject positions, never accept one.

// departures is, by the number of breaks taken, when a vehicle is done with a stop at the soonest.
type departures [model.RestMost + 1]int64

// leave is a vehicle behind its first stop, v.
func (c *candidate) leave(k *model.VehicleType, v int32) (h departures, ok bool) {
	for b := range h {
		h[b] = model.Never
	}
	at := c.Begins(v, max(0, k.Early))
	if at > min(k.LastStart, k.Late) {
		return h, false
	}
	h[0] = at + c.Spends(int32(c.Nodes), v)
	return h, true
}

// rests takes breaks where the vehicle is.
func (h *departures) rests(k *model.VehicleType) {
	for b := range k.Rests {
		if h[b] < model.Never {
			if at := model.Opens(k.Rests[b].Spans, h[b]); at < model.Never {
				h[b+1] = min(h[b+1], at+k.Rests[b].Dur)
			}
		}
	}
}

// visit drives from last to v and serves it; false where that is too late.
func (c *candidate) visit(h *departures, k *model.VehicleType, last, v int32) bool {
	return c.arrive(h, k, last, v, c.Spends(last, v), model.Endless)
}

// arrive drives from last to v, begins by the end of a limit, and spends a time there.
func (c *candidate) arrive(h *departures, k *model.VehicleType, last, v int32, spent, limit int64) bool {
	travel := int64(k.Durations.At(last, v))
	n := len(k.Rests)
	if n > 0 {
		h.rests(k)
		for b := range n + 1 {
			if h[b] < model.Never {
				h[b] += travel
			}
		}
		h.rests(k)
	} else {
		h[0] += travel
	}
	for b := range n + 1 {
		if h[b] < model.Never {
			if h[b] = c.Begins(v, h[b]); h[b] <= limit {
				h[b] += spent
			} else {
				h[b] = model.Never
			}
		}
	}
	return h[0] < model.Never
}

// finish drives from last to a route's end; false where it is too late, or a break is missing.
func (c *candidate) finish(h *departures, k *model.VehicleType, last int32) bool {
	if int(k.End) == c.Nodes {
		for b := range h {
			if h[b] > k.Late {
				h[b] = model.Never
			}
		}
	} else if !c.arrive(h, k, last, k.End, 0, k.Late) {
		return false
	}
	return h[len(k.Rests)] < model.Never
}

// clock sets the hours of a route; false where it does not keep its times.
func (c *candidate) clock(s *routeState, k *model.VehicleType) bool {
	n := len(s.stops)
	s.hours, s.tail = model.Resize(s.hours, n), model.Resize(s.tail, n)
	if s.count == 0 {
		return true
	}
	var ok bool
	if int(k.Start) < c.Nodes {
		if s.hours[0], ok = c.leave(k, k.Start); !ok {
			return false
		}
	}
	for i := 1; i < n-1; i++ {
		last, v := s.stops[i-1].node, s.stops[i].node
		if int(last) == c.Nodes {
			if s.hours[i], ok = c.leave(k, v); !ok {
				return false
			}
			continue
		}
		s.hours[i] = s.hours[i-1]
		if !c.visit(&s.hours[i], k, last, v) {
			return false
		}
	}
	s.hours[n-1] = s.hours[n-2]
	if !c.finish(&s.hours[n-1], k, s.stops[n-2].node) {
		return false
	}
	// The latest arrival at each stop, from which all that follows is in time without breaks.
	full := k.Late
	if int(k.End) < c.Nodes {
		full = c.Ceases(k.End, k.Late)
	}
	s.tail[n-1] = full
	for i := n - 2; i > 0; i-- {
		v := s.stops[i].node
		full -= int64(k.Durations.At(v, s.stops[i+1].node))
		service := c.Locations[v].Service
		s.tail[i] = c.Ceases(v, full-service)
		full = c.Ceases(v, full-c.Spends(s.stops[i-1].node, v))
	}
	return true
}

// serve is the hours of a vehicle that goes from last, or begins with v, where last is nowhere, and
// serves v.
func (c *candidate) serve(h *departures, k *model.VehicleType, last, v int32) bool {
	if int(last) == c.Nodes {
		var ok bool
		*h, ok = c.leave(k, v)
		return ok
	}
	return c.visit(h, k, last, v)
}

// onTime reports whether a vehicle with these hours, last at a place, serves the stops of a route
// from i on in time.
func (c *candidate) onTime(h *departures, s *routeState, k *model.VehicleType, last int32, i int) bool {
	n := len(s.stops)
	if h[0]+int64(k.Durations.At(last, s.stops[i].node)) > s.tail[i] {
		return false
	}
	if len(k.Rests) == 0 && c.Setup == nil {
		return true
	}
	for ; i < n-1; i++ {
		v := s.stops[i].node
		if !c.visit(h, k, last, v) {
			return false
		}
		if *h == s.hours[i] {
			return true // no later than without
		}
		last = v
	}
	return c.finish(h, k, last)
}

// inTime reports whether v before stop i of a route keeps its times.
func (c *candidate) inTime(s *routeState, k *model.VehicleType, i int, v int32) bool {
	last := s.stops[i-1].node
	var h departures
	if int(last) == c.Nodes {
		var ok bool
		if h, ok = c.leave(k, v); !ok {
			return false
		}
		return c.onTime(&h, s, k, v, i)
	}
	// Without breaks first: nearly all positions that fail do so here.
	at := c.Begins(v, s.hours[i-1][0]+int64(k.Durations.At(last, v)))
	if at+c.Locations[v].Service+int64(k.Durations.At(v, s.stops[i].node)) > s.tail[i] {
		return false
	}
	h = s.hours[i-1]
	return c.visit(&h, k, last, v) && c.onTime(&h, s, k, v, i)
}
