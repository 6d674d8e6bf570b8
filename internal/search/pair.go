package search

import (
	"haul/internal/search/model"
)

// Inserting a shipment where it costs least: its pickup and its delivery in one route, in this
// order. The stretch between the two is extended stop by stop, and ends at the first stop that time
// or load forbids, because longer stretches are forbidden too.

const (
	pairNear = 40
	// pairAll is how seldom one that finds no place there looks at all others.
	pairAll = 4
)

// findPair is the best insertion of a shipment, by its pickup.
func (c *candidate) findPair(p int32, best *insertion) {
	d := c.Locations[p].Partner
	c.asked++
	switch {
	case c.stage == outOfTime:
		for r := max(0, len(c.routes)-outOfTimeRoutes); r < len(c.routes); r++ {
			c.pairOn(int32(r), p, d, best)
		}
	case c.Traits.Scan.All() || c.Nodes <= model.PairsMost:
		for r := range c.routes {
			c.pairOn(int32(r), p, d, best)
		}
	default:
		for _, half := range [2]int32{p, d} {
			near := c.NearOf(half)
			for _, w := range near[:min(len(near), pairNear)] {
				if r := c.links[w].route; r >= 0 && c.looked[r] != c.asked {
					c.pairOn(r, p, d, best)
				}
			}
		}
		if best.route < 0 && c.Locations[p].Required && c.IntN(pairAll) == 0 {
			for r := range c.routes {
				if c.looked[r] != c.asked {
					c.pairOn(int32(r), p, d, best)
				}
			}
		}
	}
	if c.Traits.Parts.Has(model.Reloads) {
		c.findTrip(p, best)
	}
	c.newPair(p, d, best)
}

// pairOn looks at every pair of positions in a route.
func (c *candidate) pairOn(r, p, d int32, best *insertion) {
	c.looked[r] = c.asked
	s := &c.states[c.routes[r]]
	if s.count == 0 || int(s.lock) >= len(s.stops)-1 && s.lock > 0 {
		return
	}
	k := &c.Types[s.kind]
	if s.count+2 > k.MaxStops || !c.MayServe(k, p) || !c.MayServe(k, d) {
		return
	}
	if !c.Traits.Time.IsWalked() {
		c.scanPair(r, s, k, p, d, best)
		return
	}
	for i := 1 + int(s.lock); i < len(s.stops); i++ {
		for j := i; j < len(s.stops); j++ {
			if float64(float64(pairDetour(s, k, p, d, i, j))*k.PerDist) >= best.cost {
				continue
			}
			c.evaluateWhole(insertion{route: r, kind: s.kind, node: p, at: int32(i), then: int32(j)}, best)
			s = &c.states[c.routes[r]]
		}
	}
}

// pairDetour is the distance that a pickup before stop i and a delivery before stop j add.
func pairDetour(s *routeState, k *model.VehicleType, p, d int32, i, j int) int64 {
	prev, next := s.stops[i-1].node, s.stops[i].node
	delta := int64(k.Distances.At(prev, p)) - int64(s.stops[i].leg)
	if j == i {
		return delta + int64(k.Distances.At(p, d)) + int64(k.Distances.At(d, next))
	}
	at := s.stops[j].node
	return delta + int64(k.Distances.At(p, next)) + int64(k.Distances.At(s.stops[j-1].node, d)) + int64(k.Distances.At(d, at)) - int64(s.stops[j].leg)
}

// scanPair evaluates every pair of positions in a route.
func (c *candidate) scanPair(r int32, s *routeState, k *model.VehicleType, p, d int32, best *insertion) {
	stops := s.stops
	n, dims := len(stops), c.Dims
	direct := int64(k.Distances.At(p, d))
	loads := c.loadBuf[:dims]
	for i := 1 + int(s.lock); i < n; i++ {
		prev, next := stops[i-1].node, stops[i].node
		var x model.TimeSegment
		var h departures
		if c.Traits.Time == model.Clocked {
			if h = s.hours[i-1]; !c.serve(&h, k, prev, p) {
				return
			}
		} else if c.Traits.Time.Timed() {
			var ok bool
			if x, ok = s.pre[i-1].Join(c.seg[p], int64(k.Durations.At(prev, p))); !ok {
				return
			}
		}
		if c.overlooks() {
			continue
		}
		toP := int64(k.Distances.At(prev, p)) - int64(stops[i].leg)
		deltaP := toP + int64(k.Distances.At(p, next))
		fits := true
		for q := range dims {
			loads[q] = c.Amounts[int(p)*dims+q]
			if i > 1 {
				loads[q] = s.lpre[(i-1)*dims+q].Join(loads[q])
			}
		}
		// the delivery right behind
		c.moves++
		if cost := float64(float64(toP+direct+int64(k.Distances.At(d, next))) * k.PerDist); cost < best.cost {
			c.evaluatePair(s, r, k, p, d, i, i, x, h, loads, cost, best)
		}
		base := float64(float64(deltaP) * k.PerDist)
		if base >= best.cost && !c.Traits.Parts.Has(model.PaidTime) {
			continue
		}
		last := p
		for j := i + 1; j < n && fits; j++ {
			at := stops[j-1].node
			if c.Traits.Time == model.Clocked {
				if !c.visit(&h, k, last, at) {
					break
				}
			} else if c.Traits.Time.Timed() {
				var ok bool
				if x, ok = x.Join(c.seg[at], int64(k.Durations.At(last, at))); !ok {
					break
				}
				if !x.Fits(c.seg[d], int64(k.Durations.At(at, d))) {
					break
				}
			}
			for q := range dims {
				loads[q] = loads[q].Join(c.Amounts[int(at)*dims+q])
				fits = fits && loads[q].Peak <= c.tripCapacity(k, 0, q)
			}
			if !fits {
				break
			}
			last = at
			c.moves++
			dd := int64(k.Distances.At(at, d)) + int64(k.Distances.At(d, stops[j].node)) - int64(stops[j].leg)
			if cost := base + float64(float64(dd)*k.PerDist); cost < best.cost {
				c.evaluatePair(s, r, k, p, d, i, j, x, h, loads, cost, best)
			}
		}
	}
}

// evaluatePair evaluates the delivery before stop j, where x or h and loads are the run up to
// there.
func (c *candidate) evaluatePair(s *routeState, r int32, k *model.VehicleType, p, d int32, i, j int, x model.TimeSegment, h departures, loads []model.LoadSegment, cost float64, best *insertion) {
	n, dims := len(s.stops), c.Dims
	for q := range dims {
		l := loads[q].Join(c.Amounts[int(d)*dims+q])
		if j < n-1 {
			l = l.Join(s.lsuf[j*dims+q])
		}
		if l.Peak > c.tripCapacity(k, 0, q) {
			return
		}
	}
	last := p
	if j > i {
		last = s.stops[j-1].node
	}
	if c.Traits.Time == model.Clocked {
		if !c.visit(&h, k, last, d) || !c.onTime(&h, s, k, d, j) {
			return
		}
	} else if c.Traits.Time.Timed() {
		y, ok := x.Join(c.seg[d], int64(k.Durations.At(last, d)))
		if !ok {
			return
		}
		if y, ok = y.Join(s.suf[j], int64(k.Durations.At(d, s.stops[j].node))); !ok {
			return
		}
		if y, ok = y.Trip(); !ok || y.Dur > min(k.MaxDur, c.longest) {
			return
		}
		if c.Traits.Parts.Has(model.PaidTime) {
			if cost += float64(float64(y.Dur-s.dur) * k.PerDur); cost >= best.cost {
				return
			}
		}
	}
	if k.MaxDist < model.Endless {
		if s.dist+pairDetour(s, k, p, d, i, j) > k.MaxDist {
			return
		}
	}
	*best = insertion{cost: cost, route: r, kind: s.kind, node: p, at: int32(i), then: int32(j)}
}

// newPair looks at a route of the shipment's own.
func (c *candidate) newPair(p, d int32, best *insertion) {
	if c.vehiclesUsed() >= c.most {
		return
	}
	for i := range c.Types {
		k := &c.Types[i]
		if c.used[i] >= k.Count || !c.MayServe(k, p) || !c.MayServe(k, d) || k.MaxStops < 2 || len(c.Types) > 1 && c.IntN(overlook) == 0 {
			continue
		}
		dist := int64(k.Distances.At(k.Start, p)) + int64(k.Distances.At(p, d)) + int64(k.Distances.At(d, k.End))
		if k.Fixed+float64(float64(dist)*k.PerDist) >= best.cost || dist > k.MaxDist {
			continue
		}
		id := c.take()
		t := &c.states[id]
		t.kind, t.lock = int32(i), 0
		t.stops = append(t.stops[:0], stop{k.Start, 0}, stop{p, k.Distances.At(k.Start, p)}, stop{d, k.Distances.At(p, d)}, stop{k.End, k.Distances.At(d, k.End)})
		ok := c.refresh(t, 0, 3)
		cost := t.cost
		c.free = append(c.free, id)
		if ok && cost < best.cost {
			*best = insertion{cost: cost, route: int32(len(c.routes)), kind: int32(i), node: p, at: 1, then: 1}
		}
	}
}
