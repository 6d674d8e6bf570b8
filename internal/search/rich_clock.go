package search

import "haul/internal/vrp"

// Routes whose times are computed stop by stop: several windows per place, breaks, setup times
// and free start times, where the duration of a route is neither limited nor priced. The
// earliest service is then always the best, so the times before a position are known, and only
// the stops behind it are walked. What a reader could break: breaks are taken in their order, at
// a stop, as in rich_rest. tail does not know breaks: with breaks it may only reject positions,
// never accept one.

// restMost is how many breaks of a vehicle are clocked.
const restMost = 3

// never is later than any time that a route can have.
const never = int64(1) << 60

// hours is, by the number of breaks taken, when a vehicle is done with a stop at the soonest.
type hours [restMost + 1]int64

// clocks is whether the times of all routes can be clocked.
func (m *model) clocks() bool {
	if m.p.Late != nil || m.lifo || m.trips || m.perDur || m.p.Objective == vrp.ShortestRoute {
		return false
	}
	for v := range m.places {
		if m.places[v].release > 0 {
			return false
		}
	}
	for i := range m.kinds {
		k := &m.kinds[i]
		if k.maxDur < endless || len(k.breaks) > restMost {
			return false
		}
		for _, b := range k.breaks {
			if b.MaxLoad != nil {
				return false
			}
		}
	}
	return true
}

// readClocks makes units of setups and breaks.
func (m *model) readClocks() {
	if m.p.Setup != nil {
		m.setup = make([]int64, m.nodes)
		for v := range m.setup {
			m.setup[v] = upUnits(m.p.Setup[v], m.timeUnit)
		}
	}
	for i := range m.kinds {
		k := &m.kinds[i]
		for _, b := range k.breaks {
			spans, ok := m.spansOf(b.Windows, 0, endless)
			switch {
			case !ok:
				spans = []span{{from: 0, to: -1}}
			case len(spans) == 0:
				spans = []span{{from: 0, to: never}}
			}
			k.rests = append(k.rests, pause{spans, upUnits(b.Duration, m.timeUnit)})
		}
	}
}

// pause is a break in units.
type pause struct {
	spans []span
	dur   int64
}

// opens is the first moment from at on that lies in one of the spans.
func opens(spans []span, at int64) int64 {
	for i := range spans {
		if at <= spans[i].to {
			return max(at, spans[i].from)
		}
	}
	return never
}

// begins is the first moment from at on at which a place may be served.
func (m *model) begins(v int32, at int64) int64 {
	if m.spans == nil || len(m.p.Windows[v]) == 0 {
		return at
	}
	return opens(m.spans[v], at)
}

// ceases is the last moment up to at at which a place may be served; below 0: none.
func (m *model) ceases(v int32, at int64) int64 {
	if m.spans == nil || len(m.p.Windows[v]) == 0 {
		return at
	}
	spans := m.spans[v]
	for i := len(spans) - 1; i >= 0; i-- {
		if at >= spans[i].from {
			return min(at, spans[i].to)
		}
	}
	return -1
}

// spends is how long a stop takes, where the vehicle comes from last.
func (m *model) spends(last, v int32) int64 {
	t := m.places[v].service
	if m.setup != nil && (int(last) == m.nodes || !m.samePlace(last, v)) {
		t += m.setup[v]
	}
	return t
}

// leave is a vehicle behind its first stop, v.
func (c *rchain) leave(k *kind, v int32) (h hours, ok bool) {
	for b := range h {
		h[b] = never
	}
	at := c.begins(v, max(0, k.early))
	if at > min(k.lastStart, k.late) {
		return h, false
	}
	h[0] = at + c.spends(int32(c.nodes), v)
	return h, true
}

// rests takes breaks where the vehicle is.
func (h *hours) rests(k *kind) {
	for b := range k.rests {
		if h[b] < never {
			if at := opens(k.rests[b].spans, h[b]); at < never {
				h[b+1] = min(h[b+1], at+k.rests[b].dur)
			}
		}
	}
}

// visit drives from last to v and serves it; false where that is too late.
func (c *rchain) visit(h *hours, k *kind, last, v int32) bool {
	return c.arrive(h, k, last, v, c.spends(last, v), endless)
}

// arrive drives from last to v, begins by the end of a limit, and spends a time there.
func (c *rchain) arrive(h *hours, k *kind, last, v int32, spent, limit int64) bool {
	travel := int64(k.dur.at(last, v))
	n := len(k.rests)
	if n > 0 {
		h.rests(k)
		for b := range n + 1 {
			if h[b] < never {
				h[b] += travel
			}
		}
		h.rests(k)
	} else {
		h[0] += travel
	}
	for b := range n + 1 {
		if h[b] < never {
			if h[b] = c.begins(v, h[b]); h[b] <= limit {
				h[b] += spent
			} else {
				h[b] = never
			}
		}
	}
	return h[0] < never
}

// finish drives from last to a route's end; false where it is too late, or a break is missing.
func (c *rchain) finish(h *hours, k *kind, last int32) bool {
	if int(k.end) == c.nodes {
		for b := range h {
			if h[b] > k.late {
				h[b] = never
			}
		}
	} else if !c.arrive(h, k, last, k.end, 0, k.late) {
		return false
	}
	return h[len(k.rests)] < never
}

// clock sets the hours of a route; false where it does not keep its times.
func (c *rchain) clock(s *rslot, k *kind) bool {
	n := len(s.stops)
	s.hours, s.tail = resize(s.hours, n), resize(s.tail, n)
	if s.count == 0 {
		return true
	}
	var ok bool
	if int(k.start) < c.nodes {
		if s.hours[0], ok = c.leave(k, k.start); !ok {
			return false
		}
	}
	for i := 1; i < n-1; i++ {
		last, v := s.stops[i-1].node, s.stops[i].node
		if int(last) == c.nodes {
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
	full := k.late
	if int(k.end) < c.nodes {
		full = c.ceases(k.end, k.late)
	}
	s.tail[n-1] = full
	for i := n - 2; i > 0; i-- {
		v := s.stops[i].node
		full -= int64(k.dur.at(v, s.stops[i+1].node))
		service := c.places[v].service
		s.tail[i] = c.ceases(v, full-service)
		full = c.ceases(v, full-c.spends(s.stops[i-1].node, v))
	}
	return true
}

// serve is the hours of a vehicle that goes from last, or begins with v, where last is nowhere, and
// serves v.
func (c *rchain) serve(h *hours, k *kind, last, v int32) bool {
	if int(last) == c.nodes {
		var ok bool
		*h, ok = c.leave(k, v)
		return ok
	}
	return c.visit(h, k, last, v)
}

// onTime is whether a vehicle with these hours, last at a place, serves the stops of a route from i
// on in time.
func (c *rchain) onTime(h *hours, s *rslot, k *kind, last int32, i int) bool {
	n := len(s.stops)
	if h[0]+int64(k.dur.at(last, s.stops[i].node)) > s.tail[i] {
		return false
	}
	if len(k.rests) == 0 && c.setup == nil {
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

// inTime is whether v before stop i of a route keeps its times.
func (c *rchain) inTime(s *rslot, k *kind, i int, v int32) bool {
	last := s.stops[i-1].node
	var h hours
	if int(last) == c.nodes {
		var ok bool
		if h, ok = c.leave(k, v); !ok {
			return false
		}
		return c.onTime(&h, s, k, v, i)
	}
	// Without breaks first: nearly all positions that fail do so here.
	at := c.begins(v, s.hours[i-1][0]+int64(k.dur.at(last, v)))
	if at+c.places[v].service+int64(k.dur.at(v, s.stops[i].node)) > s.tail[i] {
		return false
	}
	h = s.hours[i-1]
	return c.visit(&h, k, last, v) && c.onTime(&h, s, k, v, i)
}
