package search

import (
	"math"
)

// Ruin and recreate over tasks: strings of visits leave neighbouring routes, and each task is
// inserted where it costs least, or stays out if that costs less. What a reader could break:
// change is the difference of cost of the iteration, including the prices of tasks that are left
// out.

// mark takes a customer's task out of the routes. Its customers' stops are cut by the caller.
func (c *rchain) mark(v int32) {
	lead := c.places[v].lead
	if c.taken[lead] != c.tick {
		c.taken[lead], c.home[lead] = c.tick, c.link[v].route
		c.removed = append(c.removed, lead)
		c.change -= c.loss[v]
	}
}

// gone is whether the customer at a stop has been removed.
func (c *rchain) gone(v int32) bool {
	return int(v) >= c.depots && int(v) < c.nodes && c.taken[c.places[v].lead] == c.tick
}

// compact drops the removed customers from a route.
func (c *rchain) compact(r int32) {
	s := c.touch(r)
	was, over := s.cost, s.over
	k := &c.kinds[s.kind]
	out := s.stops[:1]
	first, last := len(s.stops), 0 // of the stops that go
	for i := 1; i < len(s.stops); i++ {
		v := s.stops[i].node
		if c.gone(v) {
			c.link[v].route = -1
			first, last = min(first, i), i
			continue
		}
		if len(out) != i {
			out = append(out, stop{v, k.dist.at(out[len(out)-1].node, v)})
		} else {
			out = append(out, s.stops[i])
		}
	}
	less := len(s.stops) - len(out)
	s.stops = out
	if c.trips {
		c.measure(s)
		c.tidy(s)
	}
	lo, hi := 0, len(s.stops)-1
	if last > 0 && c.timed && !c.slow && !c.clocked && !c.trips {
		if c.prompt {
			copy(s.due[last+1-less:], s.due[last+1:])
		} else {
			copy(s.suf[last+1-less:], s.suf[last+1:])
		}
		lo, hi = first, last-less
	}
	if !c.refresh(s, lo, hi) && s.count > 0 {
		// What is left breaks a limit, as where distances are no metric: all of it goes.
		for _, at := range s.stops[1 : len(s.stops)-1] {
			if v := at.node; int(v) >= c.depots {
				c.mark(v)
				c.link[v].route = -1
			}
		}
		s.stops = append(s.stops[:0], stop{k.start, 0}, stop{k.end, k.dist.at(k.start, k.end)})
		c.refresh(s, 0, 1)
	}
	if s.count == 0 && s.lock == 0 {
		c.used[s.kind]--
		s.cost, s.over = 0, 0
		s.kind = -1
		c.ends[r].size = 0
	} else {
		c.settle(r, 0)
	}
	c.book(s.cost-was, s.over-over)
}

const (
	// uprootEach is how seldom the strings are as long as routes, where those are longer than
	// stringMax: a route that serves the wrong cluster has no other way out.
	uprootEach = 16
	uprootMost = 40 // customers of such a string
)

// ruin takes one string from each of a few routes near a random customer.
func (c *rchain) ruin() {
	if len(c.slot) == 0 {
		c.callBack(int32(c.depots))
		return
	}
	n := len(c.tasks) - len(c.absent)
	longest := min(stringMax, float64(n)/float64(len(c.slot)))
	if c.pairs {
		longest = min(stringMax, 2*longest)
	}
	removed := float64(removedMean)
	if whole := float64(n) / float64(len(c.slot)); c.uproots && whole > stringMax && c.below(uprootEach) == 0 {
		longest = min(uprootMost, whole)
		removed = longest
	}
	count := 1 + int(c.unit()*(4*removed/(1+longest)-1))
	few := len(c.slot) < count
	seed := int32(c.depots + c.below(c.nodes-c.depots))
	if len(c.focus) > 0 {
		seed = c.focus[c.below(len(c.focus))]
	}
	if c.missed && !c.closed && c.below(draftEach) == 0 {
		c.draft(seed)
		return
	}
	c.cutString(seed, longest)
	for _, v := range c.nearOf(seed) {
		if count == 1 {
			break
		}
		// Few routes are cut in several places.
		if r := c.link[v].route; r >= 0 && (c.cut[r] != c.tick || few && c.below(2) == 0) && c.taken[c.places[v].lead] != c.tick {
			c.cutString(v, longest)
			count--
		}
	}
	c.compactAll()
	c.callBack(seed)
}

const (
	draftEach = 16 // how seldom routes are drafted anew where required tasks are left out
	draftMost = 80 // tasks of a draft
)

// draft empties the route of a customer and one or two beside it, and lets all tasks that are left
// out compete for the room. Which of them fit together no exchange of single ones finds.
func (c *rchain) draft(seed int32) {
	routes := 1 + c.below(3)
	empty := func(v int32) {
		r := c.link[v].route
		if r < 0 || c.cut[r] == c.tick || len(c.removed)+c.slots[c.slot[r]].count > draftMost {
			return
		}
		c.cut[r] = c.tick
		routes--
		s := &c.slots[c.slot[r]]
		for _, at := range s.stops[1+min(int(s.lock), len(s.stops)-2) : len(s.stops)-1] {
			if v := at.node; int(v) >= c.depots && !c.locked(v) {
				c.mark(v)
			}
		}
	}
	empty(seed)
	for _, v := range c.nearOf(seed) {
		if routes <= 0 {
			break
		}
		empty(v)
	}
	c.compactAll()
	for i, from := 0, c.below(max(1, len(c.absent))); i < len(c.absent) && len(c.removed) < draftMost; i++ {
		c.recall(c.absent[(from+i)%len(c.absent)])
	}
}

// recall lets a task that is left out compete for room.
func (c *rchain) recall(lead int32) {
	if c.taken[lead] != c.tick {
		c.taken[lead], c.home[lead] = c.tick, -1
		c.removed = append(c.removed, lead)
		c.change -= c.places[lead].price
	}
}

// compactAll drops all removed customers from their routes, also those that a shipment or a limit
// drew along.
func (c *rchain) compactAll() {
	for i := 0; i < len(c.removed); i++ {
		lead := c.removed[i]
		if list := c.members[lead]; list != nil {
			for _, v := range list {
				if r := c.link[v].route; r >= 0 {
					c.compact(r)
				}
			}
			continue
		}
		if r := c.link[lead].route; r >= 0 {
			c.compact(r)
		}
		if mate := c.places[lead].mate; mate != 0 {
			if r := c.link[mate].route; r >= 0 {
				c.compact(r)
			}
		}
	}
}

// splitDeeperSmall is splitDeeper for small problems, whose routes are hardly longer than a string.
const splitDeeperSmall = 0.6

// drawString draws a run that the position at is in, in a route of count positions: span positions
// from lo on, of which kept from hole on stay.
func (c *rchain) drawString(at, count int, longest float64) (lo, span, hole, kept int) {
	size := 1 + int(c.unit()*min(longest, float64(count)))
	if size > 1 && size < count && c.unit() < splitChance {
		for kept = 1; size+kept < count && c.unit() < c.deeper; kept++ {
		}
	}
	span = size + kept
	lo = max(0, at-span+1)
	lo += c.below(min(at, count-span) - lo + 1)
	hole = lo + span
	if kept > 0 {
		hole = lo + 1 + c.below(size-1)
	}
	return lo, span, hole, kept
}

// cutString marks a run of customers around v in its route as removed; sometimes a longer run from
// which a few in the middle stay.
func (c *rchain) cutString(v int32, longest float64) {
	r := c.link[v].route
	if r < 0 {
		return
	}
	c.cut[r] = c.tick
	s := &c.slots[c.slot[r]]
	low := 1 + int(s.lock)
	count := len(s.stops) - 1 - low
	at := int(c.link[v].pos) - low // from 0
	if c.spare {
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
	lo, span, hole, kept := c.drawString(at, count, longest)
	for i := lo; i < lo+span; i++ {
		if i >= hole && i < hole+kept {
			continue
		}
		w := s.stops[low+i].node
		if int(w) < c.depots || c.locked(w) {
			continue
		}
		c.mark(w)
	}
}

// locked is whether a half of the customer's shipment must stay where it is.
func (c *rchain) locked(v int32) bool {
	mate := c.places[v].mate
	if mate == 0 {
		return false
	}
	r := c.link[mate].route
	return r >= 0 && c.slots[c.slot[r]].lock > 0 && c.link[mate].pos <= c.slots[c.slot[r]].lock
}

// recallAll is how many tasks are called back whatever the seed.
const recallAll = 10

// callBack adds tasks that no route serves: those around the seed, and a few others.
func (c *rchain) callBack(seed int32) {
	if len(c.absent) == 0 || c.closed {
		return
	}
	if len(c.absent) <= recallAll {
		for _, lead := range c.absent {
			c.recall(lead)
		}
		return
	}
	if lead := c.places[seed].lead; c.missing[lead] {
		c.recall(lead)
	}
	left := 8
	for _, v := range c.nearOf(seed) {
		if lead := c.places[v].lead; c.missing[lead] {
			c.recall(lead)
			if left--; left == 0 {
				break
			}
		}
	}
	for range 2 {
		c.recall(c.absent[c.below(len(c.absent))])
	}
}

const (
	forceEach = 4 // how seldom tasks that are left out go in at any cost
	forceMost = 3 // of them, at most
)

// force brings one or a few tasks that were left out to the front of those to insert, and returns
// how many: two may pay off together where neither does alone, and one may push out another that
// pays less. All that an iteration calls back at any cost never paid.
func (c *rchain) force() int {
	if !c.choosy || c.built || c.below(forceEach) > 0 {
		return 0
	}
	list := c.removed
	if c.small() && len(c.absent) <= recallAll {
		return len(list)
	}
	count, most := 0, 1+c.below(forceMost)
	from := c.below(max(1, len(list)))
	for i := range list {
		j := (from + i) % len(list)
		if lead := list[j]; j >= count && c.home[lead] < 0 {
			copy(list[count+1:j+1], list[count:j])
			list[count] = lead
			if count++; count == most {
				break
			}
		}
	}
	return count
}

// recreate gives every removed task its cheapest spot. It gives up, with false, as soon as the
// change passes the limit.
func (c *rchain) recreate(limit, noise float64) bool {
	c.sortRemoved()
	forced := c.force()
	enough := limit
	if c.recuts {
		// Cutting the routes anew may win back what the insertions lose: a customer's share of the
		// cost, as measured.
		enough += c.tollUnit * tollOne
	}
	for i := range c.removed {
		if c.built {
			c.sown = len(c.tasks) - len(c.removed) + i
			c.hasten(c.soon, i)
		}
		lead := c.removed[i]
		if c.eager = c.choosy && (c.built || i < forced); c.eager {
			c.place(lead, noise, math.Inf(1))
		} else if c.place(lead, noise, enough-c.change); c.change >= enough {
			return false
		}
	}
	c.polish()
	return c.change < limit
}

// place inserts one task, or leaves it out. Spots that cost most or more need not be found.
func (c *rchain) place(lead int32, noise, most float64) {
	best := none()
	price := c.places[lead].price
	if !c.places[lead].required {
		price = max(0, price+noise*(c.unit()-0.5))
	}
	best.cost = min(price, most)
	if c.eager {
		best.cost = math.Inf(1)
	}
	if c.apart && c.routes() < c.most && c.below(apartEach) == 0 {
		c.findAlone(lead, &best)
	}
	switch {
	case best.route >= 0:
	case c.members[lead] != nil:
		list := c.members[lead]
		if c.below(memberEach) == 0 {
			list = list[c.below(len(list)):][:1]
		}
		for _, v := range list {
			best.cost -= c.loss[v]
			c.find(v, &best)
			best.cost += c.loss[v]
		}
	case c.places[lead].mate != 0:
		c.findPair(lead, &best)
	default:
		c.find(lead, &best)
	}
	if best.route < 0 {
		c.failed = append(c.failed, lead)
		c.change += c.places[lead].price
		return
	}
	c.put(best)
	c.change += c.loss[best.node]
}

// memberEach is how seldom one member alone stands for its group: one that costs more at first may
// be the only one which those to come can join.
const memberEach = 32

// apartEach is how seldom a task gets a vehicle of its own while others are left out.
const apartEach = 8

// findAlone looks at a route of its own for a task.
func (c *rchain) findAlone(lead int32, best *spot) {
	v := lead
	if list := c.members[lead]; list != nil {
		v = list[c.below(len(list))]
	}
	if mate := c.places[v].mate; mate != 0 {
		c.newPair(v, mate, best)
	} else {
		c.findNew(v, best)
	}
}

// sortRemoved orders the removed tasks: at random, by demand, far first, near first, by the
// window's length or its opening.
func (c *rchain) sortRemoved() {
	rule := c.below(13)
	if !c.timed {
		rule = c.below(11)
	}
	// Where tasks compete for room, those that are worth most go first every other time.
	worth := (c.choosy || c.missed) && len(c.absent) > 0 && c.below(2) == 0
	start, dist := c.kinds[0].start, c.kinds[0].dist
	if int(start) == c.nodes {
		start = 0
	}
	for _, v := range c.removed {
		key := c.next() >> 32
		at := &c.places[v]
		switch {
		case worth:
			x := float64(at.price)
			switch rule % 3 {
			case 0:
				x /= float64(1 + max(at.delivery, at.pick))
			case 1: // large ones first
				key = uint64(math.MaxInt32 - max(at.delivery, at.pick))
			}
			key |= uint64(math.MaxUint32-math.Float32bits(float32(max(0, x)))) << 32
		case rule < 4:
		case rule < 8:
			key |= uint64(math.MaxInt32-max(at.delivery, at.pick)) << 32
		case rule < 10:
			key |= uint64(1<<30-dist.at(start, v)) << 32
		case rule < 11:
			key |= uint64(dist.at(start, v)) << 32
		case rule < 12:
			key |= uint64(min(at.late-at.early, 1<<31-1)) << 32
		default:
			key |= uint64(min(at.late, 1<<31-1)) << 32
		}
		c.keys[v] = key
	}
	sortByKeys(c.removed, c.keys)
}

// polish gives the touched routes better vehicles and drops reloads that they do not need.
func (c *rchain) polish() {
	if c.choosing {
		for i := 0; i < len(c.journal); i++ {
			r := c.journal[i].route
			if s := &c.slots[c.slot[r]]; s.count > 1 && s.lock == 0 {
				c.choose(r)
			}
		}
	}
	if len(c.kinds) == 1 && !c.trips {
		return
	}
	for i := 0; i < len(c.journal); i++ {
		r := c.journal[i].route
		if s := &c.slots[c.slot[r]]; s.count == 0 || s.lock > 0 {
			continue
		}
		if c.trips {
			c.merge(r)
		}
		if len(c.kinds) > 1 {
			c.retype(r)
		}
		if c.cuts {
			c.divide(r)
		}
	}
	if c.recuts {
		c.resplit()
	}
}

// retype gives a route the kind of vehicle with which it costs least.
func (c *rchain) retype(r int32) {
	s := &c.slots[c.slot[r]]
	now := &c.kinds[s.kind]
	n := len(s.stops)
	first, last := s.stops[1].node, s.stops[n-2].node
	inside := s.dist - int64(s.stops[1].leg) - int64(s.stops[n-1].leg)
	for i := range c.kinds {
		k := &c.kinds[i]
		if int32(i) == s.kind || c.used[i] >= k.count {
			continue
		}
		if k.dist == now.dist {
			dist := inside + int64(k.dist.at(k.start, first)) + int64(k.dist.at(last, k.end))
			if k.fixed+float64(float64(dist)*k.perDist) >= c.tolled(s) {
				continue
			}
		}
		if !c.takesKind(s, k) {
			continue
		}
		id := c.take()
		s = &c.slots[c.slot[r]]
		t := &c.slots[id]
		t.kind, t.lock = int32(i), 0
		t.stops = append(t.stops[:0], s.stops...)
		t.stops[0].node, t.stops[n-1].node = k.start, k.end
		for j := 1; j < n; j++ {
			t.stops[j].leg = k.dist.at(t.stops[j-1].node, t.stops[j].node)
		}
		if c.refresh(t, 0, n-1) && c.tolled(t) < c.tolled(s) {
			to := c.touch(r) // it is touched already
			t = &c.slots[id]
			c.book(t.cost-to.cost, t.over-to.over)
			c.used[to.kind]--
			c.used[i]++
			to.copyFrom(t)
			c.reindex(r, 0)
			s, now = to, k
		}
		c.free = append(c.free, id)
	}
}

// takesKind is whether a kind may serve all customers of a route.
func (c *rchain) takesKind(s *rslot, k *kind) bool {
	for _, at := range s.stops[1 : len(s.stops)-1] {
		if int(at.node) < c.depots {
			if k.leaving(at.node).late == 0 {
				return false
			}
		} else if !c.mayServe(k, at.node) {
			return false
		}
	}
	return len(s.cuts)-2 <= k.maxReloads
}

// iterate is one iteration at a temperature.
func (c *rchain) iterate(temperature float64) {
	c.begin()
	c.ruin()
	limit := temperature*c.exponential() + 1e-9
	if c.recreate(limit, temperature) {
		c.keep()
		if c.over == 0 && c.cost < c.bestCost-1e-9 {
			c.remember()
		}
	} else {
		c.undo()
	}
	if c.soft {
		c.levy()
	}
}
