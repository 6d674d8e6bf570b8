package search

import (
	"haul/internal/search/model"
)

// Trips of one vehicle with reloads between them. Two depots are never adjacent in a route, and a
// trip that lost its customers is removed with its reload.

// findTrip looks at a trip of its own for v, with its delivery where it is a shipment's pickup, at
// every end of a trip of vehicles that may reload: in a problem without a table of distances of
// those whose routes were looked at, except while few tasks are served.
func (c *candidate) findTrip(v int32, best *insertion) {
	some := c.Traits.Scan == model.ScanNearRoutes && !c.fewServed()
	for r := range c.routes {
		s := &c.states[c.routes[r]]
		if s.count == 0 || some && c.looked[r] != c.asked {
			continue
		}
		k := &c.Types[s.kind]
		if len(k.Reloads) == 0 || len(s.cuts)-2 >= k.MaxReloads || s.count >= k.MaxStops || !c.MayServe(k, v) || int(s.lock) >= len(s.stops)-1 && s.lock > 0 {
			continue
		}
		if mate := c.Locations[v].Partner; mate != 0 && (s.count+2 > k.MaxStops || !c.MayServe(k, mate)) {
			continue
		}
		for trip, cut := range s.cuts {
			for _, depot := range k.Reloads {
				// after the depot at cut: v, reload; before it: reload, v
				if trip < len(s.cuts)-1 && int(cut) >= int(s.lock) {
					c.tryTrip(s, int32(r), k, v, int(cut)+1, depot, true, best)
				}
				if trip == len(s.cuts)-1 || k.Reloads[0] != s.stops[cut].node || len(k.Reloads) > 1 {
					if trip > 0 && int(cut) > int(s.lock) {
						c.tryTrip(s, int32(r), k, v, int(cut), depot, false, best)
					}
				}
			}
		}
	}
}

// tryTrip evaluates a trip of v's task alone before stop i, which is beside a depot.
func (c *candidate) tryTrip(s *routeState, r int32, k *model.VehicleType, v int32, i int, depot int32, last bool, best *insertion) {
	c.moves++
	prev, next := s.stops[i-1].node, s.stops[i].node
	first, behind := v, v // of the task's stops
	if mate := c.Locations[v].Partner; mate != 0 {
		behind = mate
	}
	within := int64(k.Distances.At(first, behind))
	delta := int64(k.Distances.At(prev, first)) + within + int64(k.Distances.At(behind, depot)) + int64(k.Distances.At(depot, next))
	if !last {
		delta = int64(k.Distances.At(prev, depot)) + int64(k.Distances.At(depot, first)) + within + int64(k.Distances.At(behind, next))
	}
	delta -= int64(s.stops[i].leg)
	cost := float64(float64(delta) * k.PerDist)
	if cost >= best.cost || s.dist+delta > k.MaxDist {
		return
	}
	to := insertion{cost: cost, route: r, kind: s.kind, node: v, at: int32(i), then: int32(i), reload: depot + 1, reloadLast: last}
	for d, x := range c.AmountsOf(v) {
		if x.Peak > k.Capacity[d] {
			return
		}
	}
	// Trips of one customer are rare enough to be evaluated by the route that they make.
	c.evaluateWhole(to, best)
}

// tidy drops reloads beside another depot, and those that two trips do not need.
func (c *candidate) tidy(s *routeState) {
	if !c.Traits.Parts.Has(model.Reloads) || len(s.cuts) <= 2 {
		return
	}
	k := &c.Types[s.kind]
	kept := 1 + min(int(s.lock), len(s.stops)-1) // locked stops stay, depots among them
	out := s.stops[:kept]
	for i := kept; i < len(s.stops); i++ {
		v := s.stops[i].node
		depot := int(v) < c.Depots || int(v) == c.Nodes
		if before := out[len(out)-1].node; depot && len(out) > kept && int(before) < c.Depots {
			out = out[:len(out)-1] // the reload before goes
		} else if depot && i < len(s.stops)-1 && len(out) == 1 {
			continue // a reload right after the start
		}
		out = append(out, stop{v, k.Distances.At(out[len(out)-1].node, v)})
	}
	s.stops = out
}

// merge joins two trips of a route into one where that costs less and keeps all limits.
func (c *candidate) merge(r int32) {
	for i := 1; ; i++ {
		s := &c.states[c.routes[r]]
		if i >= len(s.stops)-1 {
			return
		}
		if !c.inner(s, i) || i <= int(s.lock) {
			continue
		}
		k := &c.Types[s.kind]
		id := c.take()
		s = &c.states[c.routes[r]]
		t := &c.states[id]
		t.copyFrom(s)
		t.stops = append(t.stops[:i], t.stops[i+1:]...)
		t.stops[i].leg = k.Distances.At(t.stops[i-1].node, t.stops[i].node)
		if c.refresh(t, 0, len(t.stops)-1) && c.penalizedCost(t) < c.penalizedCost(s) {
			to := c.touch(r)
			t = &c.states[id] // touch may have moved the slots
			c.addChange(t.cost-to.cost, t.over-to.over)
			to.copyFrom(t)
			c.reindex(r, 0)
			i--
		}
		c.free = append(c.free, id)
	}
}
