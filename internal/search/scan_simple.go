package search

import (
	"math"

	"haul/internal/search/model"
)

// Trying every position of a customer, for the simplest problems: one dimension of load, one
// symmetric table of distances at one price, vehicles that all may serve all customers, and no
// limit of time but windows. The positions are those of scanTable, in the same order; only the
// choice of skipped positions is drawn differently.

// noteSimple notes what scanSimple asks of a route.
func (c *candidate) noteSimple(e *ends, s *routeState, k *model.VehicleType) {
	e.stops, e.ready, e.due = s.stops, s.ready, s.due
	e.spare = k.MaxDist - s.dist
	if c.Traits.Load.InOrder() {
		room := c.tripCapacity(k, 0, 0)
		e.delRoom, e.pickRoom, e.over = room-s.load[0].Del, room-s.load[0].Pick, s.over
	}
}

// scanSimple is scanTable for these problems.
func (c *candidate) scanSimple(v int32, best *insertion) {
	to, _ := c.rows(v)
	a, p := c.Amounts[v], &c.Locations[v]
	done, late := p.Early+p.Service, p.Late // v is served at the soonest, and begun at the latest
	gets, gives := c.Traits.Order == model.BackhaulsLastBySide && c.Side[v]&2 != 0, c.Traits.Order == model.BackhaulsLastBySide && c.Side[v]&1 != 0
	rate, perDist := c.perRate[0], c.Types[0].PerDist
	prompt, mixed, soft := c.Traits.Time == model.WindowsOnly, c.Traits.Load.InOrder(), c.overloads != noOverload
	unit := c.OverloadWeights[0]
	cost := best.cost
	limit := detourLimit(cost * rate)
	found, at := int32(-1), 0
	first := -1
	for _, w := range c.NearOf(v) {
		if first = int(c.links[w].route); first >= 0 {
			break
		}
	}
	for turn := -1; turn < len(c.routes); turn++ {
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
		if a.Del > e.del || a.Pick > e.pick {
			if e.del == shut {
				// A route that is fixed in part, or has all its stops.
				if found >= 0 {
					*best = insertion{cost: cost, route: found, kind: c.ends[found].kind, node: v, at: int32(at)}
				}
				c.scanTableRoute(int32(r), v, to, to, best)
				if best.cost < cost {
					cost, found, at = best.cost, best.route, int(best.at)
					limit = detourLimit(cost * rate)
				}
				continue
			}
			if !soft {
				continue
			}
			over := int64(max(a.Del-e.del, a.Pick-e.pick)) * unit
			if over > maxOverload && over > c.states[c.routes[r]].over {
				continue
			}
			extra = float64(float64(over+int64(min(0, e.del, e.pick))*unit) * c.penalty)
			if extra >= cost {
				continue
			}
			most = detourLimit((cost - extra) * rate)
		}
		if mixed {
			// All that is delivered is on board at the beginning, all that is picked up at the end.
			if over := int64(max(a.Del-e.delRoom, a.Pick-e.pickRoom)) * unit; over > e.over {
				if !soft || over > maxOverload {
					continue
				}
				most = detourLimit((cost - float64(float64(over-e.over)*c.penalty)) * rate)
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
			if lo, hi = max(lo, countBelow(e.due, done)), min(hi, 1+countBelow(e.ready, late+1)); lo >= hi {
				continue
			}
		}
		if !prompt && !mixed {
			// The shortest detour is the best: no other needs a look.
			most = int32(min(int64(most), max(e.spare+1, math.MinInt32)))
			var i int
			if n := hi - lo; n <= c.untilSkip {
				c.untilSkip -= n
				most, i = cheapest(stops[lo-1:hi], to, most)
			} else {
				most, i = c.skipping(stops[lo-1:hi], to, to, most)
			}
			if i > 0 {
				if sum := extra + float64(float64(most)*perDist); sum < cost {
					cost, found, at = sum, int32(r), lo-1+i
					limit = detourLimit(cost * rate)
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
			if c.overlooks() {
				continue
			}
			sum := extra + float64(float64(delta)*perDist)
			if sum >= cost || int64(delta) > e.spare {
				continue
			}
			if mixed || prompt {
				s, k := &c.states[c.routes[r]], &c.Types[e.kind]
				if mixed {
					more, ok := c.loadWith(s, k, 0, i, v)
					if !ok {
						continue
					}
					if sum += float64(float64(more) * c.penalty); sum >= cost {
						continue
					}
				}
				if prompt && !c.windowsAdmit(s, k, i, stops[i-1].node, v, stops[i].node) {
					continue
				}
			}
			cost, found, at = sum, int32(r), i
			limit = detourLimit(cost * rate)
			most = min(most, limit)
			if extra != 0 {
				most = detourLimit((cost - extra) * rate)
			}
		}
	}
	if found >= 0 {
		*best = insertion{cost: cost, route: found, kind: c.ends[found].kind, node: v, at: int32(at)}
	}
}
