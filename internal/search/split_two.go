package search

import (
	"math"

	"haul/internal/search/model"
)

// Fleets of several sizes: a route of a large vehicle may cost less as two routes of small ones,
// which no insertion of single customers finds. The halves are priced by distance and load only, so
// problems with times, trips or an order of loads must not come here.

// half is the cheapest kind for a run of customers with a load over a distance, of those with a
// vehicle left.
func (c *candidate) half(load []model.LoadSegment, dist int64, count int) (int32, float64) {
	best, least := int32(-1), math.Inf(1)
	for i := range c.Types {
		k := &c.Types[i]
		cost := k.Fixed + float64(float64(dist)*k.PerDist)
		if cost >= least || c.used[i] >= k.Count-1 || dist > k.MaxDist || count > k.MaxStops {
			continue
		}
		fits := true
		for d := range load {
			fits = fits && max(load[d].Del, load[d].Pick) <= k.Capacity[d]
		}
		if fits {
			best, least = int32(i), cost
		}
	}
	return best, least
}

// divide cuts a touched route in two where that costs least, if it costs less than the whole.
func (c *candidate) divide(r int32) {
	s := &c.states[c.routes[r]]
	n := len(s.stops)
	if s.count < 2 || s.over > 0 || c.vehiclesUsed() >= c.most {
		return
	}
	now := &c.Types[s.kind]
	g := now.Distances
	cut, kinds := 0, [2]int32{}
	least := s.cost - 1e-9
	var way int64
	front := c.loadBuf[:c.Dims]
	clear(front)
	back := c.backBuf[:c.Dims]
	copy(back, s.load)
	for i := 1; i < n-2; i++ {
		v, w := s.stops[i].node, s.stops[i+1].node
		way += int64(s.stops[i].leg)
		for d, a := range c.AmountsOf(v) {
			front[d].Del, front[d].Pick = front[d].Del+a.Del, front[d].Pick+a.Pick
			back[d].Del, back[d].Pick = back[d].Del-a.Del, back[d].Pick-a.Pick
		}
		first := way + int64(g.At(v, now.End))
		second := s.dist - way - int64(s.stops[i+1].leg) + int64(g.At(now.Start, w))
		if float64(float64(first+second)*c.LeastPerDist) >= least {
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
	s.stops = append(s.stops[:cut+1], stop{now.End, g.At(s.stops[cut].node, now.End)})
	c.refresh(s, 0, len(s.stops)-1)
	c.reindex(r, 0)
	t := &c.states[c.routes[q]]
	k := &c.Types[kinds[1]]
	rest[0].leg = g.At(k.Start, rest[0].node)
	last := rest[len(rest)-1].node
	t.stops = append(append(t.stops[:1], rest...), stop{k.End, g.At(last, k.End)})
	c.refresh(t, 0, len(t.stops)-1)
	c.reindex(q, 0)
	c.addChange(s.cost+t.cost-was, s.over+t.over-over)
}

// mayServeAll reports whether both halves' kinds may serve their customers.
func (c *candidate) mayServeAll(s *routeState, kinds [2]int32, cut int) bool {
	for i := 1; i < len(s.stops)-1; i++ {
		k := kinds[0]
		if i > cut {
			k = kinds[1]
		}
		if !c.MayServe(&c.Types[k], s.stops[i].node) {
			return false
		}
	}
	return true
}
