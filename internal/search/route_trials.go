package search

import "math"

// Route trials: a whole route is opened for tasks that are left out, or removed. This pays off with
// many tasks at once or not at all, so insertions of single tasks do not find it. A route trial
// starts from the present routes, is searched around for a while, and is undone as a whole if it
// did not pay; the caller has saved the best routes before.

const (
	trialEach       = 4000 // iterations between two route trials
	trialTasks      = 80   // tasks that a new route is offered
	trialIterations = 8    // iterations per task of a route trial's surroundings
	trialMost       = 1000 // and of one route trial
)

// tryRoute tries one, and returns the iterations that it took. It is cut short where over says so.
func (c *candidate) tryRoute(temperature float64, over func() bool) int {
	was, kinds := clone(c.best[:0]), append([]int32(nil), c.bestKind[:0]...)
	for r := range c.routes {
		s := &c.states[c.routes[r]]
		was = copyRoute(was, r, s.stops)
		kinds = append(kinds, s.kind)
	}
	cost := c.cost
	c.focus = c.focus[:0]
	if c.IntN(8) > 0 {
		if !c.openTrialRoute() {
			return 0
		}
	} else if !c.closeTrialRoute() {
		return 0
	}
	n := min(trialIterations*len(c.focus), trialMost)
	for i := range n {
		if i%4 == 3 && over() {
			n = i
			break
		}
		c.iterate(temperature)
	}
	c.focus = c.focus[:0]
	if c.cost >= cost+temperature*c.Exponential() {
		c.set(was, kinds, nil)
	}
	return n
}

// openTrialRoute opens a route for a task that is left out, and offers its surroundings a place.
func (c *candidate) openTrialRoute() bool {
	if len(c.absent) < 2 || c.vehiclesUsed() >= c.most {
		return false
	}
	seed := c.absent[c.IntN(len(c.absent))]
	c.begin()
	offer := func(lead int32) {
		if c.missing[lead] && c.removedAt[lead] != c.tick {
			c.removedAt[lead], c.removedFrom[lead] = c.tick, -1
			c.removed = append(c.removed, lead)
			c.costChange -= c.Locations[lead].Price
		}
	}
	offer(seed)
	for i := 0; i < len(c.removed) && len(c.removed) < trialTasks; i++ {
		for _, v := range c.NearOf(c.removed[i]) {
			if offer(c.Locations[v].Representative); len(c.removed) >= trialTasks {
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
	c.insert(best)
	c.costChange += c.Loss[best.node]
	c.sortRemoved()
	for _, lead := range c.removed {
		if lead != seed {
			c.place(lead, 0, math.Inf(1))
		}
	}
	c.keep()
	return true
}

// closeTrialRoute gives up a route.
func (c *candidate) closeTrialRoute() bool {
	if len(c.routes) < 2 {
		return false
	}
	r := int32(c.IntN(len(c.routes)))
	s := &c.states[c.routes[r]]
	if s.lock > 0 {
		return false
	}
	for _, at := range s.stops[1 : len(s.stops)-1] {
		if v := at.node; int(v) >= c.Depots {
			if !c.Locations[c.Locations[v].Representative].Required {
				c.focus = append(c.focus, v)
			}
		}
	}
	if len(c.focus) < s.count || math.IsInf(c.cost, 0) {
		c.focus = c.focus[:0]
		return false // it serves tasks that must be served
	}
	c.dissolveRoute(r)
	return true
}
