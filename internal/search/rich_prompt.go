package search

import "haul/internal/vrp"

// Routes whose times are limited by windows only: durations do not matter, and nothing is
// released later. A stop then needs only its earliest departure and its latest arrival. Both
// increase along a route, so the window of a customer leaves a range of positions. What a reader
// could break: both lists are padded with never to multiples of promptLot, and padding counts as
// too late.

// promptLot is how many stops are compared at once, without a branch.
const promptLot = 8

// windowed is whether windows are all that binds the time of routes.
func (m *model) windowed() bool {
	if m.perDur || m.p.Objective == vrp.ShortestRoute {
		return false
	}
	for v := range m.places {
		if m.places[v].release > 0 {
			return false
		}
	}
	for i := range m.kinds {
		if m.kinds[i].maxDur < endless {
			return false
		}
	}
	return true
}

// lots is a length that holds n stops.
func lots(n int) int { return (n + promptLot - 1) &^ (promptLot - 1) }

// under counts the times below a limit at the beginning of a padded list that grows.
func under(list []int64, limit int64) int {
	n := int64(0)
	for ; len(list) >= promptLot; list = list[promptLot:] {
		l := list[:promptLot:promptLot]
		k := (l[0]-limit)>>63 + (l[1]-limit)>>63 + (l[2]-limit)>>63 + (l[3]-limit)>>63 +
			(l[4]-limit)>>63 + (l[5]-limit)>>63 + (l[6]-limit)>>63 + (l[7]-limit)>>63
		n -= k
		if k > -promptLot {
			break
		}
	}
	return int(n)
}

// prompts is times where windows alone bind.
func (c *rchain) prompts(s *rslot, t *kind, lo, hi int) bool {
	n := len(s.stops)
	size := lots(n)
	s.ready, s.due = resize(s.ready, size), resize(s.due, size)
	for i := n; i < size; i++ {
		s.ready[i], s.due[i] = never, never
	}
	stops, ready, due := s.stops, s.ready[:n], s.due[:n]
	g := t.dur
	if lo == 0 {
		ready[0] = t.startSeg.early + t.startSeg.dur
		lo = 1
	}
	at := ready[lo-1]
	for i := lo; i < n; i++ {
		to := stops[i].node
		b := &c.seg[to]
		if i == n-1 {
			b = &t.endSeg
		}
		if at += int64(g.at(stops[i-1].node, to)); at > b.late {
			return false
		}
		at = max(at, b.early) + b.dur
		ready[i] = at
	}
	if hi == n-1 {
		due[n-1] = t.endSeg.late
		hi--
	}
	at = due[hi+1]
	for i := hi; i >= 0; i-- {
		v := stops[i].node
		a := &c.seg[v]
		if i == 0 {
			a = &t.startSeg
		}
		at = min(at-int64(g.at(v, stops[i+1].node))-a.dur, a.late)
		due[i] = at
	}
	return true
}

// admits is whether v may be served before stop i.
func (c *rchain) admits(s *rslot, k *kind, i int, prev, v, next int32) bool {
	b := &c.seg[v]
	at := s.ready[i-1] + int64(k.dur.at(prev, v))
	return at <= b.late && max(at, b.early)+b.dur+int64(k.dur.at(v, next)) <= s.due[i]
}
