package search

import (
	"math"

	"haul/internal/search/model"
	"haul/internal/vrp"
)

// The cost of a position, and whether the route allows it. Distance is checked first, then order,
// load and time, each only if the cost so far is below the best.

// insertion is a place in the routes for a task, and what it adds to their cost.
type insertion struct {
	cost  float64
	route int32 // -1: none; the number of routes: a route of its own
	kind  int32 // the vehicle's kind with it
	node  int32 // the customer inserted
	at    int32 // the index that it takes
	// the index before which its shipment's delivery goes, counted without the pickup
	then       int32
	reload     int32 // a depot visited beside it, plus 1; 0: none
	reloadLast bool  // the depot follows the customer
}

func none() insertion { return insertion{cost: math.Inf(1), route: -1} }

// admitsInsertion reports whether a route may get v at all: the kind that its vehicle must have, -1
// for none, and what that change of kind costs.
func (c *candidate) admitsInsertion(r, v int32) (int32, float64) {
	if c.entered[r] == c.asked {
		return c.verdict[r], c.extra[r]
	}
	c.entered[r] = c.asked
	c.verdict[r], c.extra[r] = c.evaluateRoute(&c.states[c.routes[r]], v)
	return c.verdict[r], c.extra[r]
}

// evaluateRoute is enter, unless it was asked for this insertion before.
func (c *candidate) evaluateRoute(s *routeState, v int32) (int32, float64) {
	if s.count == 0 || int(s.lock) >= len(s.stops)-1 && s.lock > 0 {
		return -1, 0
	}
	best, extra := int32(-1), math.Inf(1)
	now := &c.Types[s.kind]
	if more, ok := c.takes(s, s.kind, v); ok {
		best, extra = s.kind, float64(float64(more)*c.penalty)
	}
	if extra == 0 || len(c.Types) == 1 || s.lock > 0 {
		return best, extra
	}
	if c.Traits.Insertion >= model.LoadTotal && c.overloads == noOverload {
		if !s.priced {
			c.listUpgrades(s)
		}
		a := c.Amounts[v]
		for _, u := range s.ups {
			if k := &c.Types[u.kind]; a.Del <= u.del && a.Pick <= u.pick && c.used[u.kind] < k.Count && c.MayServe(k, v) {
				return u.kind, u.extra
			}
		}
		return best, extra
	}
	for i := range c.Types {
		k := &c.Types[i]
		if k.Family != now.Family || int32(i) == s.kind || c.used[i] >= k.Count {
			continue
		}
		more, ok := c.takes(s, int32(i), v)
		if !ok {
			continue
		}
		d := c.changeCost(s, k) + float64(float64(more)*c.penalty)
		if d < extra && c.takesAll(s, int32(i)) {
			best, extra = int32(i), d
		}
	}
	return best, extra
}

// changeCost is what a route costs more with another kind of the same family.
func (c *candidate) changeCost(s *routeState, k *model.VehicleType) float64 {
	now := &c.Types[s.kind]
	return k.Fixed - now.Fixed + float64(float64(s.dist)*(k.PerDist-now.PerDist)) + float64(float64(s.dur)*(k.PerDur-now.PerDur))
}

// listUpgrades lists the kinds that a route may change to for one more customer, the cheapest
// first.
func (c *candidate) listUpgrades(s *routeState) {
	s.priced = true
	s.ups = s.ups[:0]
	family := c.Types[s.kind].Family
	for i := range c.Types {
		k := &c.Types[i]
		if k.Family != family || int32(i) == s.kind || s.count >= k.MaxStops || !c.takesAll(s, int32(i)) {
			continue
		}
		room := c.tripCapacity(k, 0, 0)
		u := upgrade{c.changeCost(s, k), int32(i), room - s.load[0].Del, room - s.load[0].Pick}
		j := len(s.ups)
		s.ups = append(s.ups, u)
		for ; j > 0 && s.ups[j-1].extra > u.extra; j-- {
			s.ups[j] = s.ups[j-1]
		}
		s.ups[j] = u
	}
}

// takes reports whether a vehicle of a kind may have v beside what the route holds, and by how much
// more it is overloaded then.
func (c *candidate) takes(s *routeState, kind, v int32) (int64, bool) {
	k := &c.Types[kind]
	if s.count >= k.MaxStops || !c.MayServe(k, v) {
		return 0, false
	}
	if c.Traits.Parts.Has(model.Shipments) || c.Traits.Load.InOrder() || c.Traits.Parts.Has(model.Reloads) {
		return 0, true // evaluated where it goes
	}
	if c.overloads != noOverload {
		more := -s.over
		for d, a := range c.AmountsOf(v) {
			l := s.load[d]
			more += c.overloadOf(max(l.Del+a.Del, l.Pick+a.Pick), k, 0, d)
		}
		return more, more <= 0 || s.over+more <= maxOverload
	}
	for d, a := range c.AmountsOf(v) {
		l, room := s.load[d], c.tripCapacity(k, 0, d)
		if l.Del+a.Del > room || l.Pick+a.Pick > room {
			return 0, false
		}
	}
	return 0, true
}

// takesAll reports whether a kind may serve all customers of a route, and hold its present load.
func (c *candidate) takesAll(s *routeState, kind int32) bool {
	k := &c.Types[kind]
	if k.Allowed != nil {
		for _, at := range s.stops[1 : len(s.stops)-1] {
			if int(at.node) >= c.Depots && !c.MayServe(k, at.node) {
				return false
			}
		}
	}
	for i, l := range s.load {
		if c.overloads == noOverload && l.Peak > c.tripCapacity(k, i/c.Dims, i%c.Dims) {
			return false
		}
	}
	return s.dist <= k.MaxDist && s.dur <= k.MaxDur && s.count <= k.MaxStops
}

// try evaluates one position that distance finds better: v before stop i of route r, which is
// between prev and next and adds delta to the route's distance.
func (c *candidate) try(r, v int32, i int, prev, next, delta int32, best *insertion) {
	e := &c.ends[r]
	if float64(float64(delta)*e.rate) >= best.cost {
		return
	}
	var kind int32
	var extra float64
	if c.Traits.Insertion >= model.LoadTotal && e.size > 0 && c.Amounts[v].Del <= e.del && c.Amounts[v].Pick <= e.pick && c.MayServe(&c.Types[e.kind], v) {
		kind = e.kind
	} else {
		if e.size == 0 || c.Traits.Insertion >= model.LoadTotal && c.overloads == noOverload && len(c.Types) == 1 {
			return
		}
		s := &c.states[c.routes[r]]
		if kind, extra = c.admitsInsertion(r, v); kind < 0 || i <= int(s.lock) && s.lock > 0 {
			return
		}
	}
	if c.overlooks() {
		return
	}
	c.evaluate(r, v, i, prev, next, int64(delta), kind, extra, best)
}

// evaluate is try where the route's vehicle is known to take v, of that kind and at that extra
// cost.
func (c *candidate) evaluate(r, v int32, i int, prev, next int32, delta int64, kind int32, extra float64, best *insertion) {
	k := &c.Types[kind]
	cost := extra + float64(float64(delta)*k.PerDist)
	if cost >= best.cost {
		return
	}
	if c.Traits.Order == model.BackhaulsLastBySide && !c.Traits.Time.IsWalked() && !c.inOrderBySide(prev, next, v) {
		return
	}
	if c.Traits.Insertion == model.DistanceAlone {
		*best = insertion{cost: cost, route: r, kind: kind, node: v, at: int32(i)}
		return
	}
	s := &c.states[c.routes[r]]
	if s.dist+delta > k.MaxDist {
		return
	}
	if c.Traits.Time.IsWalked() {
		c.evaluateWhole(insertion{route: r, kind: kind, node: v, at: int32(i)}, best)
		return
	}
	trip := 0
	if len(s.cuts) > 2 {
		for int(s.cuts[trip+1]) < i {
			trip++
		}
	}
	if c.Traits.Load.InOrder() || c.Traits.Parts.Has(model.Reloads) || c.Traits.Order != model.AnyOrder {
		if c.Traits.Order != model.AnyOrder && c.Traits.Order != model.BackhaulsLastBySide && !c.inOrder(s, trip, i, v) {
			return
		}
		if c.Traits.Load.InOrder() || c.Traits.Parts.Has(model.Reloads) {
			more, ok := c.loadWith(s, k, trip, i, v)
			if !ok {
				return
			}
			if cost += float64(float64(more) * c.penalty); cost >= best.cost {
				return
			}
		}
	}
	if c.Traits.Time.Timed() {
		dur, ok := c.durationWith(s, k, trip, i, prev, v, next)
		if !ok {
			return
		}
		if c.Traits.Parts.Has(model.PaidTime) {
			cost += float64(float64(dur-s.dur) * k.PerDur)
			if cost >= best.cost {
				return
			}
		}
	}
	*best = insertion{cost: cost, route: r, kind: kind, node: v, at: int32(i)}
}

// loadWith is by how much more the route is overloaded with v before stop i; false where it may not
// be.
func (c *candidate) loadWith(s *routeState, k *model.VehicleType, trip, i int, v int32) (int64, bool) {
	dims := c.Dims
	var more int64
	if !c.Traits.Load.InOrder() {
		for d, a := range c.AmountsOf(v) {
			l := s.load[trip*dims+d]
			more += c.overloadOf(max(l.Del+a.Del, l.Pick+a.Pick), k, trip, d) - c.overloadOf(l.Peak, k, trip, d)
		}
		return more, more <= 0 || c.overloads != noOverload && s.over+more <= maxOverload
	}
	first, last := i-1 == int(s.cuts[trip]), i == int(s.cuts[trip+1])
	for d := range dims {
		x := c.Amounts[int(v)*dims+d]
		if !first {
			x = s.lpre[(i-1)*dims+d].Join(x)
		}
		if !last {
			x = x.Join(s.lsuf[i*dims+d])
		}
		more += c.overloadOf(x.Peak, k, trip, d) - c.overloadOf(s.load[trip*dims+d].Peak, k, trip, d)
	}
	return more, more <= 0 || c.overloads != noOverload && s.over+more <= maxOverload
}

// inOrder reports whether v before stop i keeps deliveries and pickups in their order.
func (c *candidate) inOrder(s *routeState, trip, i int, v int32) bool {
	first, last := i-1 == int(s.cuts[trip]), i == int(s.cuts[trip+1])
	side := c.Side[v]
	if side&2 != 0 && !first && s.order[i-1]&1 != 0 || side&1 != 0 && !last && s.order[i]&2 != 0 {
		return false
	}
	return c.Ordered != vrp.LinehaulFirst || !first || side != 1
}

// inOrderBySide is the same where every customer gives or gets: its neighbours tell.
func (c *candidate) inOrderBySide(prev, next, v int32) bool {
	side := c.Side[v]
	if side&2 != 0 && c.Side[prev]&1 != 0 || side&1 != 0 && c.Side[next]&2 != 0 {
		return false
	}
	return c.Ordered != vrp.LinehaulFirst || int(prev) >= c.Depots && int(prev) < c.Nodes || side != 1
}

// durationWith is the route's duration with v before stop i; false where a limit of time breaks.
func (c *candidate) durationWith(s *routeState, k *model.VehicleType, trip, i int, prev, v, next int32) (int64, bool) {
	if c.Traits.Time == model.Clocked {
		return 0, c.inTime(s, k, i, v)
	}
	if c.Traits.Time == model.WindowsOnly {
		return 0, c.windowsAdmit(s, k, i, prev, v, next)
	}
	x, ok := c.left(s, i-1).Join(c.seg[v], int64(k.Durations.At(prev, v)))
	if !ok {
		return 0, false
	}
	x, ok = x.Join(c.right(s, i), int64(k.Durations.At(v, next)))
	if !ok {
		return 0, false
	}
	return c.whole(s, k, trip, x)
}

// whole is the route's duration where a trip of it is replaced by x.
func (c *candidate) whole(s *routeState, k *model.VehicleType, trip int, x model.TimeSegment) (int64, bool) {
	x, ok := x.Trip()
	if !ok {
		return 0, false
	}
	if trips := len(s.cuts) - 1; trips > 1 {
		if trip > 0 {
			if x, ok = s.ptrip[trip].Join(x, 0); !ok {
				return 0, false
			}
		}
		if trip+1 < trips {
			if x, ok = x.Join(s.strip[trip+1], 0); !ok {
				return 0, false
			}
		}
	}
	return x.Dur, x.Dur <= min(k.MaxDur, c.longest)
}

// detour is the distance that v adds before a stop, for a kind that may have other distances.
func (c *candidate) detour(kind, prev, v int32, at stop) int64 {
	g := c.Types[kind].Distances
	return int64(g.At(prev, v)) + int64(g.At(v, at.node)) - int64(at.leg)
}

// alone is what a route with v alone costs.
func (c *candidate) alone(kind, v int32, dist int64) (float64, bool) {
	k := &c.Types[kind]
	if dist > k.MaxDist {
		return 0, false
	}
	cost := k.Fixed + float64(float64(dist)*k.PerDist)
	if c.Traits.Time.IsWalked() {
		to := none()
		c.evaluateWhole(insertion{route: int32(len(c.routes)), kind: kind, node: v, at: 1}, &to)
		return to.cost, to.route >= 0
	}
	for d, a := range c.AmountsOf(v) {
		if a.Peak > c.tripCapacity(k, 0, d) {
			return 0, false
		}
	}
	if c.Ordered == vrp.LinehaulFirst && c.Side[v] == 1 {
		return 0, false
	}
	if c.Traits.Time == model.Clocked {
		var h departures
		if int(k.Start) < c.Nodes {
			var ok bool
			if h, ok = c.leave(k, k.Start); !ok {
				return 0, false
			}
		}
		return cost, c.serve(&h, k, k.Start, v) && c.finish(&h, k, v)
	}
	if c.Traits.Time.Timed() {
		x, ok := k.StartSeg.Join(c.seg[v], int64(k.Durations.At(k.Start, v)))
		if !ok {
			return 0, false
		}
		if x, ok = x.Join(k.EndSeg, int64(k.Durations.At(v, k.End))); !ok {
			return 0, false
		}
		if x, ok = x.Trip(); !ok || x.Dur > min(k.MaxDur, c.longest) {
			return 0, false
		}
		cost += float64(float64(x.Dur) * k.PerDur)
	}
	return cost, true
}

// evaluateWhole evaluates an insertion by the route that it makes.
func (c *candidate) evaluateWhole(to insertion, best *insertion) {
	if c.look == timeOver {
		return
	}
	id := c.take()
	t := &c.states[id]
	k := &c.Types[to.kind]
	was := 0.0
	if int(to.route) < len(c.routes) {
		s := &c.states[c.routes[to.route]]
		t.stops, t.lock = append(t.stops[:0], s.stops...), s.lock
		was = c.penalizedCost(s)
	} else {
		t.stops, t.lock = append(t.stops[:0], stop{k.Start, 0}, stop{k.End, k.Distances.At(k.Start, k.End)}), 0
	}
	t.kind = to.kind
	t.stops = c.with(t.stops, to)
	ok := c.refresh(t, 0, len(t.stops)-1)
	to.cost = c.penalizedCost(t) - was
	c.free = append(c.free, id)
	if ok && to.cost < best.cost {
		*best = to
	}
}

// with is stops with a task at its insertion point.
func (c *candidate) with(stops []stop, at insertion) []stop {
	k := &c.Types[at.kind]
	if mate := c.Locations[at.node].Partner; mate != 0 && !c.Locations[at.node].IsDelivery {
		stops = insertStop(stops, int(at.then), mate, k)
	}
	stops = insertStop(stops, int(at.at), at.node, k)
	if at.reload > 0 {
		j := int(at.at)
		if at.reloadLast {
			if j++; c.Locations[at.node].Partner != 0 {
				j++ // a shipment on a trip of its own: its delivery is right behind
			}
		}
		stops = insertStop(stops, j, at.reload-1, k)
	}
	return stops
}
