package search

import (
	"math"

	"haul/internal/search/model"
)

// Inserting a customer where it costs least. A position is first compared with the best so far by
// its distance only, which rejects nearly all positions (insertion.go does the rest).

// overlook is how seldom a new route's cheapest kind of vehicle is passed over, so that one which
// pays off with more customers gets its chance.
const overlook = 64

// overlookMissed is the same where required tasks are left out: one of them may only fit behind
// another in a vehicle that costs more.
const overlookMissed = 4

// find is the best insertion of a customer that is no shipment's.
func (c *candidate) find(v int32, best *insertion) {
	c.asked++
	// A limit of cost that no position near keeps is hardly kept far away, except by another size
	// of vehicle or between two trips, and among few customers.
	anywhere := c.Locations[v].Required && (best.cost+c.Loss[v] >= c.Upper || (c.Traits.Fleet > model.SeparateTypes || c.Traits.Parts.Has(model.Reloads) || c.Nodes < model.NearMost) && c.Traits.Scan != model.ScanNearRoutes)
	switch {
	case c.stage == outOfTime:
		c.scanOutOfTime(v, best)
		return
	case c.Traits.Scan == model.ScanSimple:
		c.scanSimple(v, best)
	case c.Traits.Scan.All() && c.Traits.OneTable():
		c.scanTable(v, best)
	case c.Traits.Scan.All():
		c.scan(v, best)
	case c.Traits.Scan == model.ScanNearRoutes:
		c.scanNearRoutes(v, best)
	default:
		c.scanNear(v, best)
	}
	if c.Traits.Parts.Has(model.Reloads) {
		c.findTrip(v, best)
	}
	c.scanNewRoute(v, best)
	switch {
	case best.route >= 0 || c.Traits.Scan.All() || !anywhere:
	case c.Traits.Scan != model.ScanNearRoutes:
		c.scan(v, best)
	case c.stage != annealing || c.IntN(farEach) == 0:
		c.scanFarRoutes(v, best)
	}
}

// scanNear looks beside the nearest customers and at the ends of routes.
func (c *candidate) scanNear(v int32, best *insertion) {
	to, from := c.rows(v) // distances to v and from it
	least := c.LeastPerDist
	c.moves += int64(2 * len(c.routes))
	near := c.NearOf(v)
	for _, w := range near[:min(len(near), c.reach)] {
		l := &c.links[w]
		if l.route < 0 {
			continue
		}
		c.moves += 2
		before, after := to[l.prev]+from[w]-l.in, to[w]+from[l.next]-l.out
		if float64(float64(before)*least) < best.cost {
			c.try(l.route, v, int(l.pos), l.prev, w, before, best)
		}
		if float64(float64(after)*least) < best.cost {
			c.try(l.route, v, int(l.pos)+1, w, l.next, after, best)
		}
	}
	for r := range c.routes {
		e := &c.ends[r]
		before, after := to[e.start]+from[e.first]-e.in, to[e.last]+from[e.end]-e.out
		if float64(float64(before)*e.rate) < best.cost {
			c.try(int32(r), v, 1, e.start, e.first, before, best)
		}
		if float64(float64(after)*e.rate) < best.cost {
			c.try(int32(r), v, int(e.size)-1, e.last, e.end, after, best)
		}
	}
}

// rows is the distances to and from a customer, by place.
func (c *candidate) rows(v int32) (to, from []int32) {
	g := c.Types[0].Distances
	if g.Cell != nil {
		from = g.Cell[int(v)*g.N:][:g.N]
		to = from
		if g.Back != nil {
			to = g.Back[int(v)*g.N:][:g.N]
		}
		return to, from
	}
	c.rowTo, c.rowFrom = model.Resize(c.rowTo, c.Nodes+1), model.Resize(c.rowFrom, c.Nodes+1)
	need := func(w int32) { c.rowTo[w], c.rowFrom[w] = g.F(w, v), g.F(v, w) }
	near := c.NearOf(v)
	for _, w := range near[:min(len(near), c.reach)] {
		if l := &c.links[w]; l.route >= 0 {
			need(w)
			need(l.prev)
			need(l.next)
		}
	}
	for depot := range c.Depots {
		need(int32(depot))
	}
	need(int32(c.Nodes)) // nowhere
	for r := range c.routes {
		e := &c.ends[r]
		need(e.first)
		need(e.last)
	}
	return c.rowTo, c.rowFrom
}

// scan looks at every position.
func (c *candidate) scan(v int32, best *insertion) {
	for r := range c.routes {
		s := &c.states[c.routes[r]]
		c.scanRoute(int32(r), v, 1+int(s.lock), len(s.stops), best)
	}
}

// scanRoute looks at the positions of a route from lo to before hi.
func (c *candidate) scanRoute(r, v int32, lo, hi int, best *insertion) {
	s := &c.states[c.routes[r]]
	if s.count == 0 || lo >= hi {
		return
	}
	least, g := c.LeastPerDist, c.Types[s.kind].Distances
	c.moves += int64(len(s.stops) - 1)
	last := g.At(s.stops[lo-1].node, v)
	for i := lo; i < hi; i++ {
		at := s.stops[i]
		if delta := last + g.At(v, at.node) - at.leg; float64(float64(delta)*least) < best.cost {
			kind, extra := c.admitsInsertion(r, v)
			if kind < 0 {
				return
			}
			if !c.overlooks() {
				c.evaluate(r, v, i, s.stops[i-1].node, at.node, c.detour(kind, s.stops[i-1].node, v, at), kind, extra, best)
			}
		}
		last = g.At(at.node, v)
	}
}

// scanTable is scan where one table has all distances and a vehicle makes one trip. It begins with
// the route of the nearest customer, so that most of the others fail by their distance.
func (c *candidate) scanTable(v int32, best *insertion) {
	to, from := c.rows(v)
	first := int32(-1)
	for _, w := range c.NearOf(v) {
		if first = c.links[w].route; first >= 0 {
			c.scanTableRoute(first, v, to, from, best)
			break
		}
	}
	for r := range c.routes {
		if int32(r) != first {
			c.scanTableRoute(int32(r), v, to, from, best)
		}
	}
}

// scanTableRoute looks at every position of a route that the order of deliveries and pickups
// allows. Windows leave a run of them: those behind a stop that is left by the time that v closes,
// and before one that may wait until v is served.
func (c *candidate) scanTableRoute(r, v int32, to, from []int32, best *insertion) {
	e := &c.ends[r]
	if e.size == 0 {
		return
	}
	kind, extra := e.kind, 0.0
	a := &c.Amounts[v]
	if c.Traits.Insertion < model.LoadAlong || a.Del > e.del || a.Pick > e.pick || !c.MayServe(&c.Types[kind], v) {
		switch {
		case c.Traits.Insertion >= model.LoadAlong && c.Traits.Fleet <= model.SeparateTypes && e.del != shut:
			if c.overloads == noOverload || !c.MayServe(&c.Types[kind], v) {
				return
			}
			over := int64(max(a.Del-e.del, a.Pick-e.pick)) * c.OverloadWeights[0]
			if over > maxOverload && over > c.states[c.routes[r]].over {
				return
			}
			extra = float64(float64(over+int64(min(0, e.del, e.pick))*c.OverloadWeights[0]) * c.penalty)
		case c.Traits.Insertion >= model.LoadTotal && c.overloads == noOverload && len(c.Types) == 1 && c.states[c.routes[r]].lock == 0:
			return
		default:
			if kind, extra = c.admitsInsertion(r, v); kind < 0 {
				return
			}
		}
		if extra >= best.cost {
			return
		}
	}
	s := &c.states[c.routes[r]]
	lo, hi := 1+int(s.lock), len(s.stops)
	if c.Traits.Order == model.BackhaulsLastBySide {
		side := c.Side[v]
		if side&2 != 0 {
			hi = int(e.firstOut) + 1
		}
		if side&1 != 0 {
			lo = max(lo, int(e.lastIn)+1)
		}
	}
	if lo >= hi {
		return
	}
	at := &c.Locations[v]
	// v is served at the soonest, and begun at the latest
	done, late := at.Early+at.Service, at.Late
	windows := c.Traits.Time.Timed() && c.Traits.Time != model.Clocked && c.Traits.Time != model.WindowsOnly
	if windows && (s.suf[hi-1].Late < done || s.pre[lo-1].Early+s.pre[lo-1].Dur > late) {
		return
	}
	if c.Traits.Time == model.WindowsOnly {
		if s.due[hi-1] < done || s.ready[lo-1] > late {
			return
		}
		c.moves += int64(hi - lo)
		if lo, hi = max(lo, countBelow(s.due, done)), min(hi, 1+countBelow(s.ready, late+1)); lo >= hi {
			return
		}
	} else {
		c.moves += int64(hi - lo)
	}
	rate := c.perRate[kind]
	limit := detourLimit((best.cost - extra) * rate)
	last := to[s.stops[lo-1].node]
	for i := lo; i < hi; i++ {
		at := s.stops[i]
		next := from[at.node]
		delta := last + next - at.leg
		last = next
		if c.Traits.Distance != model.SymmetricTable {
			last = to[at.node]
		}
		if delta >= limit {
			continue
		}
		if windows {
			if s.suf[i].Late < done {
				continue
			}
			if s.pre[i-1].Early+s.pre[i-1].Dur > late {
				return // and those behind it are left later still
			}
		}
		if c.overlooks() {
			continue
		}
		c.evaluate(r, v, i, s.stops[i-1].node, at.node, int64(delta), kind, extra, best)
		limit = detourLimit((best.cost - extra) * rate)
	}
}

// detourLimit is a whole number that every smaller detour is under, and hardly any other. evaluate
// looks again.
func detourLimit(detour float64) int32 {
	if detour >= math.MaxInt32-1 {
		return math.MaxInt32
	}
	if detour <= math.MinInt32 {
		return math.MinInt32
	}
	return int32(detour) + 1
}

// scanNewRoute looks at a route of its own, with each kind of vehicle that is left.
func (c *candidate) scanNewRoute(v int32, best *insertion) {
	if c.vehiclesUsed() >= c.most {
		return
	}
	seldom := overlook
	if c.missed {
		seldom = overlookMissed
	}
	for i := range c.Types {
		k := &c.Types[i]
		dist := int64(k.Distances.At(k.Start, v)) + int64(k.Distances.At(v, k.End))
		cost := k.Fixed + float64(float64(dist)*k.PerDist)
		if cost >= best.cost || c.used[i] >= k.Count || !c.MayServe(k, v) || len(c.Types) > 1 && c.IntN(seldom) == 0 {
			continue
		}
		if cost, ok := c.alone(int32(i), v, dist); ok && cost < best.cost {
			*best = insertion{cost: cost, route: int32(len(c.routes)), kind: int32(i), node: v, at: 1}
		}
	}
}

// vehiclesUsed counts the vehicles in use.
func (c *candidate) vehiclesUsed() int {
	n := 0
	for _, u := range c.used {
		n += u
	}
	return n
}

// insert inserts a task at its insertion point.
func (c *candidate) insert(at insertion) {
	r := at.route
	if int(r) == len(c.routes) {
		r = c.open(at.kind)
	}
	s := c.touch(r)
	was, over := s.cost, s.over
	if s.kind != at.kind {
		c.used[s.kind]--
		c.used[at.kind]++
		s.kind = at.kind
	}
	i, last := int(at.at), int(at.at)
	if mate := c.Locations[at.node].Partner; mate != 0 && !c.Locations[at.node].IsDelivery {
		last = int(at.then) + 1
		c.makeSpace(s, int(at.then))
	}
	c.makeSpace(s, i)
	leg := s.stops[i].leg
	s.stops = c.with(s.stops, at)
	if c.Traits.Insertion >= model.LoadTotal && c.Traits.Time != model.Clocked {
		c.refreshInserted(s, i, leg)
	} else {
		c.refresh(s, i, last)
	}
	c.links[at.node].route = r
	c.updateEnds(r, i)
	c.addChange(s.cost-was, s.over-over)
}

// refreshInserted is refresh where one customer came in as stop i, which took the place of a leg,
// and one load in whatever order is all that a route carries.
func (c *candidate) refreshInserted(s *routeState, i int, leg int32) {
	n := len(s.stops)
	t := &c.Types[s.kind]
	s.dist += int64(s.stops[i].leg) + int64(s.stops[i+1].leg) - int64(leg)
	s.count++
	s.cuts[1] = int32(n - 1)
	a, sum := c.Amounts[s.stops[i].node], &s.load[0]
	sum.Del, sum.Pick = sum.Del+a.Del, sum.Pick+a.Pick
	sum.Peak = max(sum.Del, sum.Pick)
	s.over, s.priced = c.overloadOf(sum.Peak, t, 0, 0), false
	if c.Traits.Order != model.BackhaulsLastBySide {
		c.orders(s)
	}
	if c.Traits.Time == model.WindowsOnly {
		c.windowTimes(s, t, i, i)
	} else if c.Traits.Time.Timed() {
		s.pre, s.suf = model.Resize(s.pre, n), model.Resize(s.suf, n)
		c.times(s, t, i, i)
	}
	s.cost = t.Fixed + float64(float64(s.dist)*t.PerDist) + float64(float64(s.dur)*t.PerDur)
}

// makeSpace makes room in the segments that begin at a stop, of which those behind it stay.
func (c *candidate) makeSpace(s *routeState, i int) {
	if c.Traits.Time == model.WindowsOnly {
		n := len(s.stops)
		s.due = model.Resize(s.due, wholeLanes(n+1))
		copy(s.due[i+1:n+1], s.due[i:n])
	} else if c.Traits.Time.Timed() && !c.Traits.Time.IsWalked() && c.Traits.Time != model.Clocked {
		s.suf = append(s.suf, model.TimeSegment{})
		copy(s.suf[i+1:], s.suf[i:])
	}
}

// insertStop puts a node before stop i and sets the legs around it.
func insertStop(stops []stop, i int, v int32, k *model.VehicleType) []stop {
	stops = append(stops, stop{})
	copy(stops[i+1:], stops[i:])
	stops[i] = stop{v, k.Distances.At(stops[i-1].node, v)}
	stops[i+1].leg = k.Distances.At(v, stops[i+1].node)
	return stops
}
