package search

// Inserting a shipment where it costs least: its pickup and its delivery in one route, in this
// order. What a reader could break: the stretch between the two is extended stop by stop, and
// ends at the first stop that time or load forbids, because longer stretches are forbidden too.

const (
	// pairsMost is the number of places up to which a shipment's insertion looks at all routes; beyond
	// it, at those of so many of the nearest customers of either half.
	pairsMost = 1500
	pairNear  = 40
	// pairAll is how seldom one that finds no place there looks at all others.
	pairAll = 4
)

// findPair is the best spot of a shipment, by its pickup.
func (c *rchain) findPair(p int32, best *spot) {
	d := c.places[p].mate
	c.asked++
	switch {
	case c.hasty:
		for r := max(0, len(c.slot)-hastyRoutes); r < len(c.slot); r++ {
			c.pairOn(int32(r), p, d, best)
		}
	case c.full || c.nodes <= pairsMost:
		for r := range c.slot {
			c.pairOn(int32(r), p, d, best)
		}
	default:
		for _, half := range [2]int32{p, d} {
			near := c.nearOf(half)
			for _, w := range near[:min(len(near), pairNear)] {
				if r := c.link[w].route; r >= 0 && c.looked[r] != c.asked {
					c.pairOn(r, p, d, best)
				}
			}
		}
		if best.route < 0 && c.places[p].required && c.below(pairAll) == 0 {
			for r := range c.slot {
				if c.looked[r] != c.asked {
					c.pairOn(int32(r), p, d, best)
				}
			}
		}
	}
	if c.trips {
		c.findTrip(p, best)
	}
	c.newPair(p, d, best)
}

// pairOn looks at every pair of positions in a route.
func (c *rchain) pairOn(r, p, d int32, best *spot) {
	c.looked[r] = c.asked
	s := &c.slots[c.slot[r]]
	if s.count == 0 || int(s.lock) >= len(s.stops)-1 && s.lock > 0 {
		return
	}
	k := &c.kinds[s.kind]
	if s.count+2 > k.maxStops || !c.mayServe(k, p) || !c.mayServe(k, d) {
		return
	}
	if !c.slow {
		c.scanPair(r, s, k, p, d, best)
		return
	}
	for i := 1 + int(s.lock); i < len(s.stops); i++ {
		for j := i; j < len(s.stops); j++ {
			if float64(float64(pairDetour(s, k, p, d, i, j))*k.perDist) >= best.cost {
				continue
			}
			c.evaluateWhole(spot{route: r, kind: s.kind, node: p, at: int32(i), then: int32(j)}, best)
			s = &c.slots[c.slot[r]]
		}
	}
}

// pairDetour is the distance that a pickup before stop i and a delivery before stop j add.
func pairDetour(s *rslot, k *kind, p, d int32, i, j int) int64 {
	prev, next := s.stops[i-1].node, s.stops[i].node
	delta := int64(k.dist.at(prev, p)) - int64(s.stops[i].leg)
	if j == i {
		return delta + int64(k.dist.at(p, d)) + int64(k.dist.at(d, next))
	}
	at := s.stops[j].node
	return delta + int64(k.dist.at(p, next)) + int64(k.dist.at(s.stops[j-1].node, d)) + int64(k.dist.at(d, at)) - int64(s.stops[j].leg)
}

// scanPair evaluates every pair of positions in a route.
func (c *rchain) scanPair(r int32, s *rslot, k *kind, p, d int32, best *spot) {
	stops := s.stops
	n, dims := len(stops), c.dims
	direct := int64(k.dist.at(p, d))
	loads := c.loadBuf[:dims]
	for i := 1 + int(s.lock); i < n; i++ {
		prev, next := stops[i-1].node, stops[i].node
		var x tseg
		var h hours
		if c.clocked {
			if h = s.hours[i-1]; !c.serve(&h, k, prev, p) {
				return
			}
		} else if c.timed {
			var ok bool
			if x, ok = s.pre[i-1].join(c.seg[p], int64(k.dur.at(prev, p))); !ok {
				return
			}
		}
		if c.wait == 0 {
			c.wait = c.blink()
			continue
		}
		c.wait--
		toP := int64(k.dist.at(prev, p)) - int64(stops[i].leg)
		deltaP := toP + int64(k.dist.at(p, next))
		fits := true
		for q := range dims {
			loads[q] = c.amounts[int(p)*dims+q]
			if i > 1 {
				loads[q] = s.lpre[(i-1)*dims+q].join(loads[q])
			}
		}
		// the delivery right behind
		c.moves++
		if cost := float64(float64(toP+direct+int64(k.dist.at(d, next))) * k.perDist); cost < best.cost {
			c.evaluatePair(s, r, k, p, d, i, i, x, h, loads, cost, best)
		}
		base := float64(float64(deltaP) * k.perDist)
		if base >= best.cost && !c.perDur {
			continue
		}
		last := p
		for j := i + 1; j < n && fits; j++ {
			at := stops[j-1].node
			if c.clocked {
				if !c.visit(&h, k, last, at) {
					break
				}
			} else if c.timed {
				var ok bool
				if x, ok = x.join(c.seg[at], int64(k.dur.at(last, at))); !ok {
					break
				}
				if !x.fits(c.seg[d], int64(k.dur.at(at, d))) {
					break
				}
			}
			for q := range dims {
				loads[q] = loads[q].join(c.amounts[int(at)*dims+q])
				fits = fits && loads[q].peak <= c.room(k, 0, q)
			}
			if !fits {
				break
			}
			last = at
			c.moves++
			dd := int64(k.dist.at(at, d)) + int64(k.dist.at(d, stops[j].node)) - int64(stops[j].leg)
			if cost := base + float64(float64(dd)*k.perDist); cost < best.cost {
				c.evaluatePair(s, r, k, p, d, i, j, x, h, loads, cost, best)
			}
		}
	}
}

// evaluatePair evaluates the delivery before stop j, where x or h and loads are the run up to
// there.
func (c *rchain) evaluatePair(s *rslot, r int32, k *kind, p, d int32, i, j int, x tseg, h hours, loads []lseg, cost float64, best *spot) {
	n, dims := len(s.stops), c.dims
	for q := range dims {
		l := loads[q].join(c.amounts[int(d)*dims+q])
		if j < n-1 {
			l = l.join(s.lsuf[j*dims+q])
		}
		if l.peak > c.room(k, 0, q) {
			return
		}
	}
	last := p
	if j > i {
		last = s.stops[j-1].node
	}
	if c.clocked {
		if !c.visit(&h, k, last, d) || !c.onTime(&h, s, k, d, j) {
			return
		}
	} else if c.timed {
		y, ok := x.join(c.seg[d], int64(k.dur.at(last, d)))
		if !ok {
			return
		}
		if y, ok = y.join(s.suf[j], int64(k.dur.at(d, s.stops[j].node))); !ok {
			return
		}
		if y, ok = y.trip(); !ok || y.dur > min(k.maxDur, c.longest) {
			return
		}
		if c.perDur {
			if cost += float64(float64(y.dur-s.dur) * k.perDur); cost >= best.cost {
				return
			}
		}
	}
	if k.maxDist < endless {
		if s.dist+pairDetour(s, k, p, d, i, j) > k.maxDist {
			return
		}
	}
	*best = spot{cost: cost, route: r, kind: s.kind, node: p, at: int32(i), then: int32(j)}
}

// newPair looks at a route of the shipment's own.
func (c *rchain) newPair(p, d int32, best *spot) {
	if c.routes() >= c.most {
		return
	}
	for i := range c.kinds {
		k := &c.kinds[i]
		if c.used[i] >= k.count || !c.mayServe(k, p) || !c.mayServe(k, d) || k.maxStops < 2 || len(c.kinds) > 1 && c.below(overlook) == 0 {
			continue
		}
		dist := int64(k.dist.at(k.start, p)) + int64(k.dist.at(p, d)) + int64(k.dist.at(d, k.end))
		if k.fixed+float64(float64(dist)*k.perDist) >= best.cost || dist > k.maxDist {
			continue
		}
		id := c.take()
		t := &c.slots[id]
		t.kind, t.lock = int32(i), 0
		t.stops = append(t.stops[:0], stop{k.start, 0}, stop{p, k.dist.at(k.start, p)}, stop{d, k.dist.at(p, d)}, stop{k.end, k.dist.at(d, k.end)})
		ok := c.refresh(t, 0, 3)
		cost := t.cost
		c.free = append(c.free, id)
		if ok && cost < best.cost {
			*best = spot{cost: cost, route: int32(len(c.slot)), kind: int32(i), node: p, at: 1, then: 1}
		}
	}
}
