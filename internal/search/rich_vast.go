package search

// Insertions where there are too many places for a table of distances. What a reader could break:
// the work of an insertion must not grow with the number of routes, except while few tasks are
// served (vastSown) and for tasks that no route near them takes (vastAll).

const (
	// vastSown is the part of the tasks, as a divisor, up to which the first routes' insertions look
	// at the ends of all routes: before, most of the nearest customers are on no route.
	vastSown = 12
	// vastAll is how seldom a task that no route near it takes looks at all others.
	vastAll = 16
)

// isVast is whether insertions look at the routes of near customers alone.
func (m *model) isVast() bool { return m.oneGrid && m.kinds[0].dist.cell == nil }

// findVast looks beside the nearest customers and at the ends of their routes.
func (c *rchain) findVast(v int32, best *spot) {
	g, even := c.kinds[0].dist, c.bothWays()
	near := c.nearOf(v)
	for _, w := range near[:min(len(near), c.reach)] {
		l := &c.link[w]
		if l.route < 0 {
			continue
		}
		c.moves += 2
		to := g.f(w, v)
		from := to
		if !even {
			from = g.f(v, w)
		}
		// On a map, a detour beside w is at least twice what v is farther from w than the stop at its
		// other side is; tryEnds looks at an open route's ends, where that does not hold.
		if !even || float64(float64(2*(to-l.in))*c.leastPerDist) < best.cost {
			c.try(l.route, v, int(l.pos), l.prev, w, g.f(l.prev, v)+from-l.in, best)
		}
		if !even || float64(float64(2*(to-l.out))*c.leastPerDist) < best.cost {
			c.try(l.route, v, int(l.pos)+1, w, l.next, to+g.f(v, l.next)-l.out, best)
		}
		if c.looked[l.route] != c.asked {
			c.looked[l.route] = c.asked
			c.tryEnds(l.route, v, best)
		}
	}
	if c.sowing() {
		for r := range c.slot {
			if c.looked[r] != c.asked {
				c.tryEnds(int32(r), v, best)
			}
		}
	}
}

// sowing is whether most of the nearest customers are on no route yet.
func (c *rchain) sowing() bool { return c.built && c.sown*vastSown < len(c.tasks) }

// tryEnds looks at the beginning and the end of a route.
func (c *rchain) tryEnds(r, v int32, best *spot) {
	g, e := c.kinds[0].dist, &c.ends[r]
	if e.size == 0 {
		return
	}
	c.moves += 2
	c.try(r, v, 1, e.start, e.first, g.f(e.start, v)+g.f(v, e.first)-e.in, best)
	c.try(r, v, int(e.size)-1, e.last, e.end, g.f(e.last, v)+g.f(v, e.end)-e.out, best)
}

// findFar looks at all routes for a task that none near it takes.
func (c *rchain) findFar(v int32, best *spot) {
	a, at := &c.amounts[v], &c.places[v]
	done, late := at.early+at.service, at.late
	for r := range c.slot {
		e := &c.ends[r]
		if c.easy && c.lone && !c.soft && e.del != shut && (a.del > e.del || a.pick > e.pick) {
			continue
		}
		s := &c.slots[c.slot[r]]
		lo, hi := 1+int(s.lock), len(s.stops)
		if c.prompt && s.count > 0 {
			// Windows leave a run of positions: those behind a stop that is left by the time that v
			// closes, and before one that may wait until v is served.
			lo, hi = max(lo, under(s.due, done)), min(hi, 1+under(s.ready, late+1))
		}
		c.scanRoute(int32(r), v, lo, hi, best)
	}
}
