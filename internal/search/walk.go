package search

import (
	"sort"

	"haul/internal/search/model"
	"haul/internal/vrp"
)

// Routes that are evaluated by walking them: breaks, several windows per place, soft windows, setup
// times, last in first out, shipments that stay on board over a reload, and free starts with a
// latest start. A walk takes time in proportion to the route, so problems without these constraints
// must not come here.

// activity is one thing that a vehicle does, at a place.
type activity struct {
	travel, service int64
	spans           []model.Span // when it may begin; none: any time
	price           float64      // of beginning past the last of them; 0: never
	begin, to       int64
	late            int64
}

func (e *activity) end() int64 { return e.begin + e.service }

// walked is what a route costs.
type walked struct {
	dur  int64
	late float64 // at its price
	work int64   // stops that were passed
}

// workEach is how many stops are walked between two looks at the clock: a few milliseconds.
const workEach = 1 << 18

// clock reports whether the search's time was over when it was last asked.
type clock uint8

const (
	running clock = iota
	timeOver
)

// listen counts work. Where the search is over, no further position is looked at, so that an
// iteration ends soon however long one walk takes.
func (c *candidate) listen(work int64) {
	if c.work += work; c.work >= workEach {
		c.work = 0
		if c.look = running; c.ended != nil && c.ended() {
			c.look = timeOver
		}
	}
}

// activities lists what the vehicle of a route does, without its breaks.
func activities(m *model.Compiled, k *model.VehicleType, stops []stop) ([]activity, bool) {
	list := make([]activity, 0, len(stops))
	last := int32(m.Nodes)
	for i, at := range stops {
		v := at.node
		if int(v) == m.Nodes {
			continue // nowhere
		}
		e := activity{service: m.Locations[v].Service}
		if int(last) < m.Nodes {
			e.travel = int64(k.Durations.At(last, v))
		}
		if m.P.Setup != nil && (int(last) == m.Nodes || !m.SamePlace(last, v)) {
			e.service += model.UpUnits(m.P.Setup[v], m.TimeUnit)
		}
		last = v
		lo, hi := int64(0), model.Endless
		if len(list) == 0 || int(v) < m.Depots && i < len(stops)-1 {
			for j := i; j < len(stops)-1 && (j == i || int(stops[j].node) >= m.Depots); j++ {
				lo = max(lo, m.Locations[stops[j].node].Release)
			}
		}
		if len(list) == 0 {
			lo, hi = max(lo, k.Early), min(k.LastStart, k.Late)
		}
		if i == len(stops)-1 {
			e.service = 0
			hi = min(hi, k.Late)
		} else if i == len(stops)-2 && int(stops[i+1].node) == m.Nodes && k.Late < model.Endless {
			hi = min(hi, k.Late-e.service)
		}
		var ok bool
		var ws []vrp.Window
		if m.P.Windows != nil {
			ws = m.P.Windows[v]
		}
		if lo <= 0 && hi >= model.Endless && len(ws) > 0 {
			e.spans, ok = m.Spans[v], len(m.Spans[v]) > 0
		} else {
			e.spans, ok = m.SpansOf(ws, lo, hi)
		}
		if !ok {
			return nil, false
		}
		if m.P.Late != nil {
			e.price = m.P.Late[v]
		}
		list = append(list, e)
	}
	return list, true
}

// forwardTimes sets the times of a route that begins no sooner than start; false where one is
// missed.
func forwardTimes(list []activity, start int64) bool {
	at := start
	for i := range list {
		e := &list[i]
		if i > 0 {
			at = list[i-1].end() + e.travel
		}
		e.begin, e.to, e.late = at, model.Endless, 0
		if len(e.spans) == 0 {
			continue
		}
		close := e.spans[len(e.spans)-1]
		switch {
		case at <= close.To:
			s := e.spans[firstSpan(e.spans, at)]
			e.begin, e.to = max(at, s.From), s.To
		case e.price > 0:
			e.late, e.to = at-close.To, at
		default:
			return false
		}
	}
	return true
}

// firstSpan is the index of the first span that has not closed by a moment, at which the last one
// is open.
func firstSpan(spans []model.Span, at int64) int {
	if len(spans) > 8 {
		return sort.Search(len(spans), func(i int) bool { return at <= spans[i].To })
	}
	for i := range spans {
		if at <= spans[i].To {
			return i
		}
	}
	return len(spans) - 1
}

// latestStart is the latest beginning from which the last activity begins by end, each in its
// window.
func latestStart(list []activity, end int64) int64 {
	at := end
	for i := len(list) - 1; i > 0; i-- {
		at = min(at, list[i].to) - list[i].travel - list[i-1].service
	}
	return max(min(at, list[0].to), list[0].begin)
}

// shortest sets the least lateness, then the shortest duration.
func shortest(list []activity) (walked, bool) {
	start := int64(0)
	if len(list[0].spans) > 0 {
		start = max(0, list[0].spans[0].From)
	}
	var w walked
	if !forwardTimes(list, start) {
		return w, false
	}
	several := false
	for i := range list {
		e := &list[i]
		if e.late > 0 {
			w.late += float64(float64(e.late) * e.price)
			e.spans = append(append([]model.Span(nil), e.spans...), model.Span{From: e.begin, To: e.begin})
			e.to = e.begin
		}
		several = several || len(e.spans) > 1
	}
	last := len(list) - 1
	w.dur = int64(1) << 60
	w.work = int64(len(list))
	for {
		w.work += 3 * int64(len(list))
		at := latestStart(list, list[last].begin)
		if !forwardTimes(list, at) {
			break
		}
		w.dur = min(w.dur, list[last].end()-list[0].begin)
		next := latestStart(list, list[last].to) + 1
		if s := list[0].spans; !several || next > model.Endless/2 || len(s) > 0 && next > s[len(s)-1].To || !forwardTimes(list, next) {
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
func (c *candidate) walk(s *routeState) bool {
	k := &c.Types[s.kind]
	s.dur, s.cost = 0, 0
	if s.count == 0 {
		return true
	}
	if !c.carries(s, k) {
		return false
	}
	list, ok := activities(c.Compiled, k, s.stops)
	if !ok {
		return false
	}
	if len(k.Breaks) > 0 {
		// Breaks only delay: what is missed without them is missed with them.
		start := int64(0)
		if s := list[0].spans; len(s) > 0 {
			start = max(0, s[0].From)
		}
		if !forwardTimes(list, start) {
			return false
		}
		if list, ok = c.rest(k, list, s.stops); !ok {
			return false
		}
	}
	w, ok := shortest(list)
	c.listen(w.work)
	if !ok || w.dur > min(k.MaxDur, c.longest) {
		return false
	}
	s.dur = w.dur
	s.cost = k.Fixed + float64(float64(s.dist)*k.PerDist) + float64(float64(s.dur)*k.PerDur) + w.late/c.TimeUnit
	return true
}

// carries evaluates load, order and last in first out.
func (c *candidate) carries(s *routeState, k *model.VehicleType) bool {
	stack := c.stack[:0]
	shipped := make([]int32, c.Dims)
	s.load = model.Resize(s.load, (len(s.cuts)-1)*c.Dims)
	for trip := range len(s.cuts) - 1 {
		from, to := int(s.cuts[trip]), int(s.cuts[trip+1])
		picked := false
		for d := range c.Dims {
			load := model.LoadSegment{}
			for i := from + 1; i < to; i++ {
				load = load.Join(c.AmountsOf(s.stops[i].node)[d])
			}
			s.load[trip*c.Dims+d] = load
			if shipped[d]+load.Peak > c.tripCapacity(k, trip, d) {
				return false
			}
			for i := from + 1; i < to; i++ {
				shipped[d] += shipmentChange(c.Compiled, s.stops[i].node, d)
			}
		}
		for i := from + 1; i < to; i++ {
			v := s.stops[i].node
			at := &c.Locations[v]
			if c.Ordered != vrp.Mixed {
				side := c.Side[v]
				if picked && side&2 != 0 || c.Ordered == vrp.LinehaulFirst && i == from+1 && side == 1 {
					return false
				}
				picked = picked || side&1 != 0
			}
			if c.Traits.Parts.Has(model.LIFO) && at.Partner != 0 {
				if !at.IsDelivery {
					stack = append(stack, at.Partner)
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

// shipmentChange is what a place adds to the shipments on board.
func shipmentChange(m *model.Compiled, v int32, d int) int32 {
	at := &m.Locations[v]
	if at.Partner == 0 {
		return 0
	}
	q := m.Shipment[v]
	if d >= len(q) {
		return 0
	}
	if at.IsDelivery {
		return -q[d]
	}
	return q[d]
}
