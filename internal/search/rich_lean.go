package search

import (
	"math"

	"haul/internal/vrp"
)

// Trying every position of a customer, for the simplest problems: one dimension of load, one
// symmetric table of distances at one price, vehicles that all may serve all customers, and no
// limit of time but windows. What a reader could break: the positions are those of sweep, in the
// same order; only the choice of skipped positions is drawn differently.

// leans is whether sweepLean may stand for sweep.
func (c *rchain) leans() bool {
	if !c.full || !c.even || !c.easy || !c.lone || c.timed && !c.prompt || c.sorted && !c.sided || c.ordered == vrp.LinehaulFirst {
		return false
	}
	for i := range c.kinds {
		if k := &c.kinds[i]; k.allowed != nil || k.perDist != c.kinds[0].perDist {
			return false
		}
	}
	return true
}

// noteLean notes what sweepLean asks of a route.
func (c *rchain) noteLean(e *ends, s *rslot, k *kind) {
	e.stops, e.ready, e.due = s.stops, s.ready, s.due
	e.spare = k.maxDist - s.dist
	if c.mixed {
		room := c.room(k, 0, 0)
		e.delRoom, e.pickRoom, e.over = room-s.load[0].del, room-s.load[0].pick, s.over
	}
}

// sweepLean is sweep for these problems.
func (c *rchain) sweepLean(v int32, best *spot) {
	to, _ := c.rows(v)
	a, p := c.amounts[v], &c.places[v]
	done, late := p.early+p.service, p.late // v is served at the soonest, and begun at the latest
	gets, gives := c.sided && c.side[v]&2 != 0, c.sided && c.side[v]&1 != 0
	rate, perDist := c.perRate[0], c.kinds[0].perDist
	prompt, mixed, soft := c.prompt, c.mixed, c.soft
	unit := c.weights[0]
	cost := best.cost
	limit := below(cost * rate)
	found, at := int32(-1), 0
	first := -1
	for _, w := range c.nearOf(v) {
		if first = int(c.link[w].route); first >= 0 {
			break
		}
	}
	for turn := -1; turn < len(c.slot); turn++ {
		r := turn
		if turn < 0 {
			r = first
		} else if turn == first {
			continue
		}
		if r < 0 {
			continue
		}
		e := &c.ends[r]
		if e.size == 0 {
			continue
		}
		extra, most := 0.0, limit
		if a.del > e.del || a.pick > e.pick {
			if e.del == shut {
				// A route that is fixed in part, or has all its stops.
				if found >= 0 {
					*best = spot{cost: cost, route: found, kind: c.ends[found].kind, node: v, at: int32(at)}
				}
				c.sweepRoute(int32(r), v, to, to, best)
				if best.cost < cost {
					cost, found, at = best.cost, best.route, int(best.at)
					limit = below(cost * rate)
				}
				continue
			}
			if !soft {
				continue
			}
			over := int64(max(a.del-e.del, a.pick-e.pick)) * unit
			if over > tollMost && over > c.slots[c.slot[r]].over {
				continue
			}
			extra = float64(float64(over+int64(min(0, e.del, e.pick))*unit) * c.toll)
			if extra >= cost {
				continue
			}
			most = below((cost - extra) * rate)
		}
		if mixed {
			// All that is delivered is on board at the beginning, all that is picked up at the end.
			if over := int64(max(a.del-e.delRoom, a.pick-e.pickRoom)) * unit; over > e.over {
				if !soft || over > tollMost {
					continue
				}
				most = below((cost - float64(float64(over-e.over)*c.toll)) * rate)
			}
		}
		stops := e.stops
		lo, hi := 1, len(stops)
		if gets {
			hi = int(e.firstOut) + 1
		}
		if gives {
			lo = int(e.lastIn) + 1
		}
		if lo >= hi {
			continue
		}
		if prompt && (e.due[hi-1] < done || e.ready[lo-1] > late) {
			continue
		}
		c.moves += int64(hi - lo)
		if prompt {
			if lo, hi = max(lo, under(e.due, done)), min(hi, 1+under(e.ready, late+1)); lo >= hi {
				continue
			}
		}
		if !prompt && !mixed {
			// The shortest detour is the best: no other needs a look.
			most = int32(min(int64(most), max(e.spare+1, math.MinInt32)))
			var i int
			if n := hi - lo; n <= c.wait {
				c.wait -= n
				most, i = shortestDetour(stops[lo-1:hi], to, most)
			} else {
				most, i = c.blinkDetour(stops[lo-1:hi], to, most)
			}
			if i > 0 {
				if sum := extra + float64(float64(most)*perDist); sum < cost {
					cost, found, at = sum, int32(r), lo-1+i
					limit = below(cost * rate)
				}
			}
			continue
		}
		last := to[stops[lo-1].node]
		for i := lo; i < hi; i++ {
			next := to[stops[i].node]
			delta := last + next - stops[i].leg
			last = next
			if delta >= most {
				continue
			}
			if c.wait == 0 {
				c.wait = c.blink()
				continue
			}
			c.wait--
			sum := extra + float64(float64(delta)*perDist)
			if sum >= cost || int64(delta) > e.spare {
				continue
			}
			if mixed || prompt {
				s, k := &c.slots[c.slot[r]], &c.kinds[e.kind]
				if mixed {
					more, ok := c.holds(s, k, 0, i, v)
					if !ok {
						continue
					}
					if sum += float64(float64(more) * c.toll); sum >= cost {
						continue
					}
				}
				if prompt && !c.admits(s, k, i, stops[i-1].node, v, stops[i].node) {
					continue
				}
			}
			cost, found, at = sum, int32(r), i
			limit = below(cost * rate)
			most = min(most, limit)
			if extra != 0 {
				most = below((cost - extra) * rate)
			}
		}
	}
	if found >= 0 {
		*best = spot{cost: cost, route: found, kind: c.ends[found].kind, node: v, at: int32(at)}
	}
}

// shortestDetour is the least detour below most over the positions between some stops, and the
// index of the stop that it is before; index 0 for none.
//
//	for i := 1..: d = row[stops[i-1]] + row[stops[i]] - stops[i].leg
func shortestDetour(stops []stop, row []int32, most int32) (int32, int) {
	at := 0
	last := row[stops[0].node]
	for i := 1; i < len(stops); i++ {
		s := stops[i]
		next := row[s.node]
		if d := last + next - s.leg; d < most {
			most, at = d, i
		}
		last = next
	}
	return most, at
}

// blinkDetour is shortestDetour that overlooks a position now and then.
func (c *rchain) blinkDetour(stops []stop, row []int32, most int32) (int32, int) {
	at := 0
	for i := 1; i < len(stops); i++ {
		if c.wait == 0 {
			c.wait = c.blink()
			continue
		}
		c.wait--
		if d := row[stops[i-1].node] + row[stops[i].node] - stops[i].leg; d < most {
			most, at = d, i
		}
	}
	return most, at
}
