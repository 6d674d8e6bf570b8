package search

import "math"

// Ventures: a whole route is opened for tasks that are left out, or removed. This pays off with
// many tasks at once or not at all, so insertions of single tasks do not find it. What a reader
// could break: a venture starts from the present routes, is searched around for a while, and is
// undone as a whole if it did not pay; the caller has saved the best routes before.

const (
	ventureEach   = 4000 // iterations between two ventures
	ventureTasks  = 80   // tasks that a new route is offered
	ventureSearch = 8    // iterations per task of a venture's surroundings
	ventureMost   = 1000 // and of one venture
)

// ventures is whether routes may be opened for tasks that are left out.
func (c *rchain) ventures() bool { return c.choosy && !c.slow }

// venture tries one, and returns the iterations that it took. It is cut short where over says so.
func (c *rchain) venture(temperature float64, over func() bool) int {
	was, kinds := clone(c.best[:0]), append([]int32(nil), c.bestKind[:0]...)
	for r := range c.slot {
		s := &c.slots[c.slot[r]]
		was = copyRoute(was, r, s.stops)
		kinds = append(kinds, s.kind)
	}
	cost := c.cost
	c.focus = c.focus[:0]
	if c.below(8) > 0 {
		if !c.launch() {
			return 0
		}
	} else if !c.retire() {
		return 0
	}
	n := min(ventureSearch*len(c.focus), ventureMost)
	for i := range n {
		if i%4 == 3 && over() {
			n = i
			break
		}
		c.iterate(temperature)
	}
	c.focus = c.focus[:0]
	if c.cost >= cost+temperature*c.exponential() {
		c.set(was, kinds, nil)
	}
	return n
}

// launch opens a route for a task that is left out, and offers its surroundings a place.
func (c *rchain) launch() bool {
	if len(c.absent) < 2 || c.routes() >= c.most {
		return false
	}
	seed := c.absent[c.below(len(c.absent))]
	c.begin()
	offer := func(lead int32) {
		if c.missing[lead] && c.taken[lead] != c.tick {
			c.taken[lead], c.home[lead] = c.tick, -1
			c.removed = append(c.removed, lead)
			c.change -= c.places[lead].price
		}
	}
	offer(seed)
	for i := 0; i < len(c.removed) && len(c.removed) < ventureTasks; i++ {
		for _, v := range c.nearOf(c.removed[i]) {
			if offer(c.places[v].lead); len(c.removed) >= ventureTasks {
				break
			}
		}
	}
	c.focus = append(c.focus, c.removed...)
	best := none()
	c.findAlone(seed, &best)
	if best.route < 0 {
		c.undo()
		return false
	}
	c.put(best)
	c.change += c.loss[best.node]
	c.sortRemoved()
	for _, lead := range c.removed {
		if lead != seed {
			c.place(lead, 0, math.Inf(1))
		}
	}
	c.keep()
	return true
}

// retire gives up a route.
func (c *rchain) retire() bool {
	if len(c.slot) < 2 {
		return false
	}
	r := int32(c.below(len(c.slot)))
	s := &c.slots[c.slot[r]]
	if s.lock > 0 {
		return false
	}
	for _, at := range s.stops[1 : len(s.stops)-1] {
		if v := at.node; int(v) >= c.depots {
			if !c.places[c.places[v].lead].required {
				c.focus = append(c.focus, v)
			}
		}
	}
	if len(c.focus) < s.count || math.IsInf(c.cost, 0) {
		c.focus = c.focus[:0]
		return false // it serves tasks that must be served
	}
	c.dismiss(r)
	return true
}
