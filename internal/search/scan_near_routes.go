package search

import "haul/internal/search/model"

// Insertions where there are too many places for a table of distances. The work of an insertion
// must not grow with the number of routes, except while few tasks are served (ownRoutesUntil) and
// for tasks that no route near them takes (farEach).

const (
	// ownRoutesUntil is the part of the tasks, as a divisor, up to which the first routes'
	// insertions look at the ends of all routes: before, most of the nearest customers are on no
	// route.
	ownRoutesUntil = 12
	// farEach is how seldom a task that no route near it takes looks at all others.
	farEach = 16
)

// scanNearRoutes looks beside the nearest customers and at the ends of their routes.
func (c *candidate) scanNearRoutes(v int32, best *insertion) {
	g, even := c.Types[0].Distances, c.BothWays()
	near := c.NearOf(v)
	for _, w := range near[:min(len(near), c.reach)] {
		l := &c.links[w]
		if l.route < 0 {
			continue
		}
		c.moves += 2
		to := g.F(w, v)
		from := to
		if !even {
			from = g.F(v, w)
		}
		// On a map, a detour beside w is at least twice what v is farther from w than the stop at
		// its other side is; tryEnds looks at an open route's ends, where that does not hold.
		if !even || float64(float64(2*(to-l.in))*c.LeastPerDist) < best.cost {
			c.try(l.route, v, int(l.pos), l.prev, w, g.F(l.prev, v)+from-l.in, best)
		}
		if !even || float64(float64(2*(to-l.out))*c.LeastPerDist) < best.cost {
			c.try(l.route, v, int(l.pos)+1, w, l.next, to+g.F(v, l.next)-l.out, best)
		}
		if c.looked[l.route] != c.asked {
			c.looked[l.route] = c.asked
			c.tryEnds(l.route, v, best)
		}
	}
	if c.fewServed() {
		for r := range c.routes {
			if c.looked[r] != c.asked {
				c.tryEnds(int32(r), v, best)
			}
		}
	}
}

// fewServed reports whether most of the nearest customers are on no route yet.
func (c *candidate) fewServed() bool {
	return c.stage != annealing && c.servedSoFar*ownRoutesUntil < len(c.Tasks)
}

// tryEnds looks at the beginning and the end of a route.
func (c *candidate) tryEnds(r, v int32, best *insertion) {
	g, e := c.Types[0].Distances, &c.ends[r]
	if e.size == 0 {
		return
	}
	c.moves += 2
	c.try(r, v, 1, e.start, e.first, g.F(e.start, v)+g.F(v, e.first)-e.in, best)
	c.try(r, v, int(e.size)-1, e.last, e.end, g.F(e.last, v)+g.F(v, e.end)-e.out, best)
}

// scanFarRoutes looks at all routes for a task that none near it takes.
func (c *candidate) scanFarRoutes(v int32, best *insertion) {
	a, at := &c.Amounts[v], &c.Locations[v]
	done, late := at.Early+at.Service, at.Late
	for r := range c.routes {
		e := &c.ends[r]
		if c.Traits.Insertion >= model.LoadAlong && c.Traits.Fleet <= model.SeparateTypes && c.overloads == noOverload && e.del != shut && (a.Del > e.del || a.Pick > e.pick) {
			continue
		}
		s := &c.states[c.routes[r]]
		lo, hi := 1+int(s.lock), len(s.stops)
		if c.Traits.Time == model.WindowsOnly && s.count > 0 {
			// Windows leave a run of positions: those behind a stop that is left by the time that v
			// closes, and before one that may wait until v is served.
			lo, hi = max(lo, countBelow(s.due, done)), min(hi, 1+countBelow(s.ready, late+1))
		}
		c.scanRoute(int32(r), v, lo, hi, best)
	}
}
