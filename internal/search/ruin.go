package search

import (
	"math"

	"haul/internal/search/model"
)

// Ruin and recreate over tasks: strings of visits leave neighbouring routes, and each task is
// inserted where it costs least, or stays out if that costs less. Change is the difference of cost
// of the iteration, including the prices of tasks that are left out.

// mark takes a customer's task out of the routes. Its customers' stops are cut by the caller.
func (c *candidate) mark(v int32) {
	lead := c.Locations[v].Representative
	if c.removedAt[lead] != c.tick {
		c.removedAt[lead], c.removedFrom[lead] = c.tick, c.links[v].route
		c.removed = append(c.removed, lead)
		c.costChange -= c.Loss[v]
	}
}

// gone reports whether the customer at a stop has been removed.
func (c *candidate) gone(v int32) bool {
	return int(v) >= c.Depots && int(v) < c.Nodes && c.removedAt[c.Locations[v].Representative] == c.tick
}

// compact drops the removed customers from a route.
func (c *candidate) compact(r int32) {
	s := c.touch(r)
	was, over := s.cost, s.over
	k := &c.Types[s.kind]
	out := s.stops[:1]
	first, last := len(s.stops), 0 // of the stops that go
	for i := 1; i < len(s.stops); i++ {
		v := s.stops[i].node
		if c.gone(v) {
			c.links[v].route = -1
			first, last = min(first, i), i
			continue
		}
		if len(out) != i {
			out = append(out, stop{v, k.Distances.At(out[len(out)-1].node, v)})
		} else {
			out = append(out, s.stops[i])
		}
	}
	less := len(s.stops) - len(out)
	s.stops = out
	if c.Traits.Parts.Has(model.Reloads) {
		c.measure(s)
		c.tidy(s)
	}
	lo, hi := 0, len(s.stops)-1
	if last > 0 && c.Traits.Time.Timed() && !c.Traits.Time.IsWalked() && c.Traits.Time != model.Clocked && !c.Traits.Parts.Has(model.Reloads) {
		if c.Traits.Time == model.WindowsOnly {
			copy(s.due[last+1-less:], s.due[last+1:])
		} else {
			copy(s.suf[last+1-less:], s.suf[last+1:])
		}
		lo, hi = first, last-less
	}
	if !c.refresh(s, lo, hi) && s.count > 0 {
		// What is left breaks a limit, as where distances are no metric: all of it goes.
		for _, at := range s.stops[1 : len(s.stops)-1] {
			if v := at.node; int(v) >= c.Depots {
				c.mark(v)
				c.links[v].route = -1
			}
		}
		s.stops = append(s.stops[:0], stop{k.Start, 0}, stop{k.End, k.Distances.At(k.Start, k.End)})
		c.refresh(s, 0, 1)
	}
	if s.count == 0 && s.lock == 0 {
		c.used[s.kind]--
		s.cost, s.over = 0, 0
		s.kind = -1
		c.ends[r].size = 0
	} else {
		c.updateEnds(r, 0)
	}
	c.addChange(s.cost-was, s.over-over)
}

const (
	// longStringEach is how seldom the strings are as long as routes, where those are longer than
	// stringMax: a route that serves the wrong cluster has no other way out.
	longStringEach = 16
	longStringMost = 40 // customers of such a string
)

// ruin removes strings around a random customer.
func (c *candidate) ruin(st routeStore) {
	routes := st.routeCount()
	if routes == 0 {
		c.recallAbsent(int32(c.Depots))
		return
	}
	whole := float64(len(c.Tasks)-len(c.absent)) / float64(routes)
	longest := min(stringMax, whole)
	if c.Traits.Parts.Has(model.Shipments) {
		longest = min(stringMax, 2*longest)
	}
	removed := float64(removedMean)
	if c.Traits.Moves.Has(model.LongStrings) && whole > stringMax && c.IntN(longStringEach) == 0 {
		longest = min(longStringMost, whole)
		removed = longest
	}
	count := stringCount(&c.Stream, longest, removed)
	seed := int32(c.Depots + c.IntN(c.Nodes-c.Depots))
	if len(c.focus) > 0 {
		seed = c.focus[c.IntN(len(c.focus))]
	}
	if c.missed && c.overloads != overloadAlone && c.IntN(emptyEach) == 0 {
		c.emptyRoutes(seed)
		return
	}
	// Few routes are cut in several places.
	removeStrings(st, seed, c.NearOf(seed), count, longest, routes < count)
	st.compactAll()
	c.recallAbsent(seed)
}

func (c *candidate) routeCount() int { return len(c.routes) }

// mayCut is as stringStore has it.
func (c *candidate) mayCut(v int32, few bool) bool {
	r := c.links[v].route
	return r >= 0 && (c.cut[r] != c.tick || few && c.IntN(2) == 0) && c.removedAt[c.Locations[v].Representative] != c.tick
}

const (
	emptyEach = 16 // how seldom routes are drafted anew where required tasks are left out
	emptyMost = 80 // tasks of a draft
)

// emptyRoutes empties the route of a customer and one or two beside it, and lets all tasks that are
// left out compete for the room. Which of them fit together no exchange of single ones finds.
func (c *candidate) emptyRoutes(seed int32) {
	routes := 1 + c.IntN(3)
	empty := func(v int32) {
		r := c.links[v].route
		if r < 0 || c.cut[r] == c.tick || len(c.removed)+c.states[c.routes[r]].count > emptyMost {
			return
		}
		c.cut[r] = c.tick
		routes--
		s := &c.states[c.routes[r]]
		for _, at := range s.stops[1+min(int(s.lock), len(s.stops)-2) : len(s.stops)-1] {
			if v := at.node; int(v) >= c.Depots && !c.locked(v) {
				c.mark(v)
			}
		}
	}
	empty(seed)
	for _, v := range c.NearOf(seed) {
		if routes <= 0 {
			break
		}
		empty(v)
	}
	c.compactAll()
	for i, from := 0, c.IntN(max(1, len(c.absent))); i < len(c.absent) && len(c.removed) < emptyMost; i++ {
		c.recallTask(c.absent[(from+i)%len(c.absent)])
	}
}

// recallTask lets a task that is left out compete for room.
func (c *candidate) recallTask(lead int32) {
	if c.removedAt[lead] != c.tick {
		c.removedAt[lead], c.removedFrom[lead] = c.tick, -1
		c.removed = append(c.removed, lead)
		c.costChange -= c.Locations[lead].Price
	}
}

// compactAll drops all removed customers from their routes, also those that a shipment or a limit
// drew along.
func (c *candidate) compactAll() {
	for i := 0; i < len(c.removed); i++ {
		lead := c.removed[i]
		if list := c.Members[lead]; list != nil {
			for _, v := range list {
				if r := c.links[v].route; r >= 0 {
					c.compact(r)
				}
			}
			continue
		}
		if r := c.links[lead].route; r >= 0 {
			c.compact(r)
		}
		if mate := c.Locations[lead].Partner; mate != 0 {
			if r := c.links[mate].route; r >= 0 {
				c.compact(r)
			}
		}
	}
}

// cutString marks a run of customers around v in its route as removed; sometimes a longer run from
// which a few in the middle stay.
func (c *candidate) cutString(v int32, longest float64) {
	r := c.links[v].route
	if r < 0 {
		return
	}
	c.cut[r] = c.tick
	s := &c.states[c.routes[r]]
	low := 1 + int(s.lock)
	count := len(s.stops) - 1 - low
	at := int(c.links[v].pos) - low // from 0
	if c.Traits.Store >= model.RoutesOnly {
		for at = 0; at < count && s.stops[low+at].node != v; {
			at++
		}
		if at == count {
			return // its stop stays where it is
		}
	}
	if count <= 0 || at < 0 {
		return
	}
	lo, span, hole, kept := drawString(&c.Stream, at, count, longest, c.splitDeeper)
	for i := lo; i < lo+span; i++ {
		if i >= hole && i < hole+kept {
			continue
		}
		w := s.stops[low+i].node
		if int(w) < c.Depots || c.locked(w) {
			continue
		}
		c.mark(w)
	}
}

// locked reports whether a half of the customer's shipment must stay where it is.
func (c *candidate) locked(v int32) bool {
	mate := c.Locations[v].Partner
	if mate == 0 {
		return false
	}
	r := c.links[mate].route
	return r >= 0 && c.states[c.routes[r]].lock > 0 && c.links[mate].pos <= c.states[c.routes[r]].lock
}

// recallAll is how many tasks are called back whatever the seed.
const recallAll = 10

// recallAbsent adds tasks that no route serves: those around the seed, and a few others.
func (c *candidate) recallAbsent(seed int32) {
	if len(c.absent) == 0 || c.overloads == overloadAlone {
		return
	}
	if len(c.absent) <= recallAll {
		for _, lead := range c.absent {
			c.recallTask(lead)
		}
		return
	}
	if lead := c.Locations[seed].Representative; c.missing[lead] {
		c.recallTask(lead)
	}
	left := 8
	for _, v := range c.NearOf(seed) {
		if lead := c.Locations[v].Representative; c.missing[lead] {
			c.recallTask(lead)
			if left--; left == 0 {
				break
			}
		}
	}
	for range 2 {
		c.recallTask(c.absent[c.IntN(len(c.absent))])
	}
}

const (
	forceEach = 4 // how seldom tasks that are left out go in at any cost
	forceMost = 3 // of them, at most
)

// forceAbsent brings one or a few tasks that were left out to the front of those to insert, and
// returns how many: two may pay off together where neither does alone, and one may push out another
// that pays less. All that an iteration calls back at any cost never paid.
func (c *candidate) forceAbsent() int {
	if !c.Traits.Parts.Has(model.Optional) || c.stage != annealing || c.IntN(forceEach) > 0 {
		return 0
	}
	list := c.removed
	if c.Small() && len(c.absent) <= recallAll {
		return len(list)
	}
	count, most := 0, 1+c.IntN(forceMost)
	from := c.IntN(max(1, len(list)))
	for i := range list {
		j := (from + i) % len(list)
		if lead := list[j]; j >= count && c.removedFrom[lead] < 0 {
			copy(list[count+1:j+1], list[count:j])
			list[count] = lead
			if count++; count == most {
				break
			}
		}
	}
	return count
}

// recreate gives every removed task its cheapest insertion. It gives up, with false, as soon as the
// change passes the limit.
func (c *candidate) recreate(st routeStore, limit, noise float64) bool {
	c.sortRemoved()
	forced := c.forceAbsent()
	enough := limit
	if c.Traits.Fleet == model.SplitsAnew {
		// Cutting the routes anew may win back what the insertions lose: a customer's share of the
		// cost, as measured.
		enough += c.PenaltyUnit * model.MeanAmount
	}
	for i := range c.removed {
		if c.stage != annealing {
			c.servedSoFar = len(c.Tasks) - len(c.removed) + i
			c.finishFast(c.soon, i)
		}
		lead := c.removed[i]
		if c.eager = c.Traits.Parts.Has(model.Optional) && (c.stage != annealing || i < forced); c.eager {
			st.place(lead, noise, math.Inf(1))
		} else if st.place(lead, noise, enough-c.costChange); c.costChange >= enough {
			return false
		}
	}
	st.polish()
	return c.costChange < limit
}

// place inserts one task, or leaves it out. Spots that cost most or more need not be found.
func (c *candidate) place(lead int32, noise, most float64) {
	best := none()
	price := c.Locations[lead].Price
	if !c.Locations[lead].Required {
		price = max(0, price+noise*(c.Float()-0.5))
	}
	best.cost = min(price, most)
	if c.eager {
		best.cost = math.Inf(1)
	}
	if c.apart && c.vehiclesUsed() < c.most && c.IntN(apartEach) == 0 {
		c.findAlone(lead, &best)
	}
	switch {
	case best.route >= 0:
	case c.Members[lead] != nil:
		list := c.Members[lead]
		if c.IntN(memberEach) == 0 {
			list = list[c.IntN(len(list)):][:1]
		}
		for _, v := range list {
			best.cost -= c.Loss[v]
			c.find(v, &best)
			best.cost += c.Loss[v]
		}
	case c.Locations[lead].Partner != 0:
		c.findPair(lead, &best)
	default:
		c.find(lead, &best)
	}
	if best.route < 0 {
		c.failed = append(c.failed, lead)
		c.costChange += c.Locations[lead].Price
		return
	}
	c.insert(best)
	c.costChange += c.Loss[best.node]
}

// memberEach is how seldom one member alone stands for its group: one that costs more at first may
// be the only one which those to come can join.
const memberEach = 32

// apartEach is how seldom a task gets a vehicle of its own while others are left out.
const apartEach = 8

// findAlone looks at a route of its own for a task.
func (c *candidate) findAlone(lead int32, best *insertion) {
	v := lead
	if list := c.Members[lead]; list != nil {
		v = list[c.IntN(len(list))]
	}
	if mate := c.Locations[v].Partner; mate != 0 {
		c.newPair(v, mate, best)
	} else {
		c.scanNewRoute(v, best)
	}
}

// newInsertionOrder lists what the rules of sortRemoved sort by.
func (c *candidate) newInsertionOrder() insertionOrder {
	start, dist := c.Types[0].Start, c.Types[0].Distances
	if int(start) == c.Nodes {
		start = 0
	}
	var lists [4][]uint32
	for i := range lists {
		lists[i] = make([]uint32, c.Nodes)
	}
	for v := c.Depots; v < c.Nodes; v++ {
		at := &c.Locations[v]
		lists[0][v], lists[1][v] = uint32(max(at.Delivery, at.Pickup)), uint32(dist.At(start, int32(v)))
		lists[2][v], lists[3][v] = uint32(min(at.Late-at.Early, 1<<31-1)), uint32(min(at.Late, 1<<31-1))
	}
	return newInsertionOrder(lists[0], lists[1], lists[2], lists[3])
}

// sortRemoved orders the removed tasks. Where tasks compete for capacity, those that are worth most
// go first every other time.
func (c *candidate) sortRemoved() {
	rule := c.IntN(13)
	if !c.Traits.Time.Timed() {
		rule = c.IntN(11)
	}
	if !(c.Traits.Parts.Has(model.Optional) || c.missed) || len(c.absent) == 0 || c.IntN(2) > 0 {
		c.order.sort(&c.Stream, rule, c.removed)
		return
	}
	keys := c.order.keys[:0]
	for _, v := range c.removed {
		key := c.Next() >> 32
		at := &c.Locations[v]
		x := float64(at.Price)
		switch rule % 3 {
		case 0:
			x /= float64(1 + max(at.Delivery, at.Pickup))
		case 1: // large ones first
			key = uint64(math.MaxInt32 - max(at.Delivery, at.Pickup))
		}
		keys = append(keys, key|uint64(math.MaxUint32-math.Float32bits(float32(max(0, x))))<<32)
	}
	c.order.keys = keys
	c.order.sortByKeys(c.removed)
}

// polish gives the touched routes better vehicles and drops reloads that they do not need.
func (c *candidate) polish() {
	if c.Traits.Moves.Has(model.ChooseMembers) {
		for i := 0; i < len(c.undoList); i++ {
			r := c.undoList[i].route
			if s := &c.states[c.routes[r]]; s.count > 1 && s.lock == 0 {
				c.chooseMembers(r)
			}
		}
	}
	if len(c.Types) == 1 && !c.Traits.Parts.Has(model.Reloads) {
		return
	}
	for i := 0; i < len(c.undoList); i++ {
		r := c.undoList[i].route
		if s := &c.states[c.routes[r]]; s.count == 0 || s.lock > 0 {
			continue
		}
		if c.Traits.Parts.Has(model.Reloads) {
			c.merge(r)
		}
		if len(c.Types) > 1 {
			c.retype(r)
		}
		if c.Traits.Fleet >= model.Splits {
			c.divide(r)
		}
	}
	if c.Traits.Fleet == model.SplitsAnew {
		c.resplit()
	}
}

// retype gives a route the kind of vehicle with which it costs least.
func (c *candidate) retype(r int32) {
	s := &c.states[c.routes[r]]
	now := &c.Types[s.kind]
	n := len(s.stops)
	first, last := s.stops[1].node, s.stops[n-2].node
	inside := s.dist - int64(s.stops[1].leg) - int64(s.stops[n-1].leg)
	for i := range c.Types {
		k := &c.Types[i]
		if int32(i) == s.kind || c.used[i] >= k.Count {
			continue
		}
		if k.Distances == now.Distances {
			dist := inside + int64(k.Distances.At(k.Start, first)) + int64(k.Distances.At(last, k.End))
			if k.Fixed+float64(float64(dist)*k.PerDist) >= c.penalizedCost(s) {
				continue
			}
		}
		if !c.takesKind(s, k) {
			continue
		}
		id := c.take()
		s = &c.states[c.routes[r]]
		t := &c.states[id]
		t.kind, t.lock = int32(i), 0
		t.stops = append(t.stops[:0], s.stops...)
		t.stops[0].node, t.stops[n-1].node = k.Start, k.End
		for j := 1; j < n; j++ {
			t.stops[j].leg = k.Distances.At(t.stops[j-1].node, t.stops[j].node)
		}
		if c.refresh(t, 0, n-1) && c.penalizedCost(t) < c.penalizedCost(s) {
			to := c.touch(r) // it is touched already
			t = &c.states[id]
			c.addChange(t.cost-to.cost, t.over-to.over)
			c.used[to.kind]--
			c.used[i]++
			to.copyFrom(t)
			c.reindex(r, 0)
			s, now = to, k
		}
		c.free = append(c.free, id)
	}
}

// takesKind reports whether a kind may serve all customers of a route.
func (c *candidate) takesKind(s *routeState, k *model.VehicleType) bool {
	for _, at := range s.stops[1 : len(s.stops)-1] {
		if int(at.node) < c.Depots {
			if k.Leaving(at.node).Late == 0 {
				return false
			}
		} else if !c.MayServe(k, at.node) {
			return false
		}
	}
	return len(s.cuts)-2 <= k.MaxReloads
}

// step is one iteration at a temperature, over flat routes where the problem allows.
func (c *candidate) step(temperature float64) {
	if f := c.flat; f != nil && (f.live || f.load()) {
		c.iterateOn(f, temperature)
		return
	}
	c.iterate(temperature)
}

// iterate is one iteration at a temperature.
func (c *candidate) iterate(temperature float64) { c.iterateOn(c, temperature) }

// iterateOn is iterate over the chain's routes as a store has them.
func (c *candidate) iterateOn(st routeStore, temperature float64) {
	st.begin()
	c.ruin(st)
	limit := temperature*c.Exponential() + 1e-9
	if c.recreate(st, limit, temperature) {
		st.keep()
		if c.overload == 0 && c.cost < c.bestCost-1e-9 {
			st.remember()
		}
	} else {
		st.undo()
	}
	if c.overloads != noOverload {
		c.updatePenalty()
	}
}
