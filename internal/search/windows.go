package search

import (
	"haul/internal/search/model"
)

// Routes whose times are limited by windows only: durations do not matter, and nothing is released
// later. A stop then needs only its earliest departure and its latest arrival. Both increase along
// a route, so the window of a customer leaves a range of positions. Both lists are padded with
// never to multiples of simdLanes, and padding counts as too late.

// simdLanes is how many stops are compared at once, without a branch.
const simdLanes = 8

// wholeLanes is a length that holds n stops.
func wholeLanes(n int) int { return (n + simdLanes - 1) &^ (simdLanes - 1) }

// countBelow counts the times below a limit at the beginning of a padded list that grows.
func countBelow(list []int64, limit int64) int {
	n := int64(0)
	for ; len(list) >= simdLanes; list = list[simdLanes:] {
		l := list[:simdLanes:simdLanes]
		k := (l[0]-limit)>>63 + (l[1]-limit)>>63 + (l[2]-limit)>>63 + (l[3]-limit)>>63 +
			(l[4]-limit)>>63 + (l[5]-limit)>>63 + (l[6]-limit)>>63 + (l[7]-limit)>>63
		n -= k
		if k > -simdLanes {
			break
		}
	}
	return int(n)
}

// windowTimes is times where windows alone bind.
func (c *candidate) windowTimes(s *routeState, t *model.VehicleType, lo, hi int) bool {
	n := len(s.stops)
	size := wholeLanes(n)
	s.ready, s.due = model.Resize(s.ready, size), model.Resize(s.due, size)
	for i := n; i < size; i++ {
		s.ready[i], s.due[i] = model.Never, model.Never
	}
	stops, ready, due := s.stops, s.ready[:n], s.due[:n]
	g := t.Durations
	if lo == 0 {
		ready[0] = t.StartSeg.Early + t.StartSeg.Dur
		lo = 1
	}
	at := ready[lo-1]
	for i := lo; i < n; i++ {
		to := stops[i].node
		b := &c.seg[to]
		if i == n-1 {
			b = &t.EndSeg
		}
		if at += int64(g.At(stops[i-1].node, to)); at > b.Late {
			return false
		}
		at = max(at, b.Early) + b.Dur
		ready[i] = at
	}
	if hi == n-1 {
		due[n-1] = t.EndSeg.Late
		hi--
	}
	at = due[hi+1]
	for i := hi; i >= 0; i-- {
		v := stops[i].node
		a := &c.seg[v]
		if i == 0 {
			a = &t.StartSeg
		}
		at = min(at-int64(g.At(v, stops[i+1].node))-a.Dur, a.Late)
		due[i] = at
	}
	return true
}

// windowsAdmit reports whether v may be served before stop i.
func (c *candidate) windowsAdmit(s *routeState, k *model.VehicleType, i int, prev, v, next int32) bool {
	b := &c.seg[v]
	at := s.ready[i-1] + int64(k.Durations.At(prev, v))
	return at <= b.Late && max(at, b.Early)+b.Dur+int64(k.Durations.At(v, next)) <= s.due[i]
}
