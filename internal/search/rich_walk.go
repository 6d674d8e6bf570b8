package search

import (
	"haul/internal/vrp"
)

// Routes that are evaluated by walking them: breaks, several windows per place, soft windows,
// setup times, last in first out, shipments that stay on board over a reload, and free starts
// with a latest start. What a reader could break: a walk takes time in proportion to the route,
// so problems without these constraints must not come here.

// span is a window in units.
type span struct{ from, to int64 }

// errand is one thing that a vehicle does, at a place.
type errand struct {
	travel, service int64
	spans           []span  // when it may begin; none: any time
	price           float64 // of beginning past the last of them; 0: never
	begin, to       int64
	late            int64
}

func (e *errand) end() int64 { return e.begin + e.service }

// walked is what a route costs.
type walked struct {
	dur  int64
	late float64 // at its price
}

// spansOf makes units of windows, cut to [lo, hi]; false where nothing is left.
func (m *model) spansOf(ws []vrp.Window, lo, hi int64) ([]span, bool) {
	if len(ws) == 0 {
		if lo <= 0 && hi >= endless {
			return nil, true
		}
		return []span{{lo, hi}}, lo <= hi
	}
	var out []span
	for _, w := range ws {
		if s := (span{max(upUnits(w.From, m.timeUnit), lo), min(downUnits(w.To, m.timeUnit), hi)}); s.from <= s.to {
			out = append(out, s)
		}
	}
	return out, len(out) > 0
}

// errands lists what the vehicle of a route does, without its breaks.
func (m *model) errands(k *kind, stops []stop) ([]errand, bool) {
	list := make([]errand, 0, len(stops))
	last := int32(m.nodes)
	for i, at := range stops {
		v := at.node
		if int(v) == m.nodes {
			continue // nowhere
		}
		e := errand{service: m.places[v].service}
		if int(last) < m.nodes {
			e.travel = int64(k.dur.at(last, v))
		}
		if m.p.Setup != nil && (int(last) == m.nodes || !m.samePlace(last, v)) {
			e.service += upUnits(m.p.Setup[v], m.timeUnit)
		}
		last = v
		lo, hi := int64(0), endless
		if len(list) == 0 || int(v) < m.depots && i < len(stops)-1 {
			for j := i; j < len(stops)-1 && (j == i || int(stops[j].node) >= m.depots); j++ {
				lo = max(lo, m.places[stops[j].node].release)
			}
		}
		if len(list) == 0 {
			lo, hi = max(lo, k.early), min(k.lastStart, k.late)
		}
		if i == len(stops)-1 {
			e.service = 0
			hi = min(hi, k.late)
		} else if i == len(stops)-2 && int(stops[i+1].node) == m.nodes && k.late < endless {
			hi = min(hi, k.late-e.service)
		}
		var ok bool
		var ws []vrp.Window
		if m.p.Windows != nil {
			ws = m.p.Windows[v]
		}
		if lo <= 0 && hi >= endless && len(ws) > 0 {
			e.spans, ok = m.spans[v], len(m.spans[v]) > 0
		} else {
			e.spans, ok = m.spansOf(ws, lo, hi)
		}
		if !ok {
			return nil, false
		}
		if m.p.Late != nil {
			e.price = m.p.Late[v]
		}
		list = append(list, e)
	}
	return list, true
}

func (m *model) samePlace(a, b int32) bool {
	return a == b || m.p.X != nil && m.p.X[a] == m.p.X[b] && m.p.Y[a] == m.p.Y[b]
}

// clockErrands sets the times of a route that begins no sooner than start; false where one is
// missed.
func clockErrands(list []errand, start int64) bool {
	at := start
	for i := range list {
		e := &list[i]
		if i > 0 {
			at = list[i-1].end() + e.travel
		}
		e.begin, e.to, e.late = at, endless, 0
		if len(e.spans) == 0 {
			continue
		}
		close := e.spans[len(e.spans)-1]
		switch {
		case at <= close.to:
			for _, s := range e.spans {
				if at <= s.to {
					e.begin, e.to = max(at, s.from), s.to
					break
				}
			}
		case e.price > 0:
			e.late, e.to = at-close.to, at
		default:
			return false
		}
	}
	return true
}

// latestStart is the latest beginning from which the last errand begins by end, each in its window.
func latestStart(list []errand, end int64) int64 {
	at := end
	for i := len(list) - 1; i > 0; i-- {
		at = min(at, list[i].to) - list[i].travel - list[i-1].service
	}
	return max(min(at, list[0].to), list[0].begin)
}

// shortest sets the least lateness, then the shortest duration.
func shortest(list []errand) (walked, bool) {
	start := int64(0)
	if len(list[0].spans) > 0 {
		start = max(0, list[0].spans[0].from)
	}
	var w walked
	if !clockErrands(list, start) {
		return w, false
	}
	several := false
	for i := range list {
		e := &list[i]
		if e.late > 0 {
			w.late += float64(float64(e.late) * e.price)
			e.spans = append(append([]span(nil), e.spans...), span{e.begin, e.begin})
			e.to = e.begin
		}
		several = several || len(e.spans) > 1
	}
	last := len(list) - 1
	w.dur = int64(1) << 60
	for {
		at := latestStart(list, list[last].begin)
		if !clockErrands(list, at) {
			break
		}
		w.dur = min(w.dur, list[last].end()-list[0].begin)
		next := latestStart(list, list[last].to) + 1
		if s := list[0].spans; !several || next > endless/2 || len(s) > 0 && next > s[len(s)-1].to || !clockErrands(list, next) {
			break
		}
		late := false
		for i := range list {
			late = late || list[i].late > 0
		}
		if late {
			break
		}
	}
	return w, true
}

// walk evaluates a whole route.
func (c *rchain) walk(s *rslot) bool {
	k := &c.kinds[s.kind]
	s.dur, s.cost = 0, 0
	if s.count == 0 {
		return true
	}
	if !c.carries(s, k) {
		return false
	}
	list, ok := c.errands(k, s.stops)
	if !ok {
		return false
	}
	if len(k.breaks) > 0 {
		// Breaks only delay: what is missed without them is missed with them.
		start := int64(0)
		if s := list[0].spans; len(s) > 0 {
			start = max(0, s[0].from)
		}
		if !clockErrands(list, start) {
			return false
		}
		if list, ok = c.rest(k, list, s.stops); !ok {
			return false
		}
	}
	w, ok := shortest(list)
	if !ok || w.dur > min(k.maxDur, c.longest) {
		return false
	}
	s.dur = w.dur
	s.cost = k.fixed + float64(float64(s.dist)*k.perDist) + float64(float64(s.dur)*k.perDur) + w.late/c.timeUnit
	return true
}

// carries evaluates load, order and last in first out.
func (c *rchain) carries(s *rslot, k *kind) bool {
	stack := c.stack[:0]
	shipped := make([]int32, c.dims)
	s.load = resize(s.load, (len(s.cuts)-1)*c.dims)
	for trip := range len(s.cuts) - 1 {
		from, to := int(s.cuts[trip]), int(s.cuts[trip+1])
		picked := false
		for d := range c.dims {
			load := lseg{}
			for i := from + 1; i < to; i++ {
				load = load.join(c.amountsOf(s.stops[i].node)[d])
			}
			s.load[trip*c.dims+d] = load
			if shipped[d]+load.peak > c.room(k, trip, d) {
				return false
			}
			for i := from + 1; i < to; i++ {
				shipped[d] += c.shipped(s.stops[i].node, d)
			}
		}
		for i := from + 1; i < to; i++ {
			v := s.stops[i].node
			at := &c.places[v]
			if c.ordered != vrp.Mixed {
				if picked && at.delivery > 0 || c.ordered == vrp.LinehaulFirst && i == from+1 && at.delivery == 0 && at.pick > 0 {
					return false
				}
				picked = picked || at.pick > 0
			}
			if c.lifo && at.mate != 0 {
				if !at.second {
					stack = append(stack, at.mate)
				} else if n := len(stack); n == 0 || stack[n-1] != v {
					return false
				} else {
					stack = stack[:n-1]
				}
			}
		}
	}
	c.stack = stack
	return true
}

// shipped is what a place adds to the shipments on board.
func (m *model) shipped(v int32, d int) int32 {
	at := &m.places[v]
	if at.mate == 0 {
		return 0
	}
	q := m.shipment[v]
	if d >= len(q) {
		return 0
	}
	if at.second {
		return -q[d]
	}
	return q[d]
}
