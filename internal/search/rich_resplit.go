package search

import "math"

// Fleets of several sizes: the customers of a few routes, one route behind the other, are
// divided again into the cheapest routes and vehicles by the dynamic programme of Prins (2004).
// What a reader could break: a route is priced by distance and load only, as in divide, and the
// number of vehicles of each kind is checked once the division is known.

// resplitMost is how many customers are cut anew at most.
const resplitMost = 100

// splitter is the programme's memory.
type splitter struct {
	routes []int32
	seq    []int32
	way    []int64   // up to a customer, from the first
	home   []int64   // from a customer to the end
	out    []int64   // from the start to a customer
	least  []float64 // of all up to here
	from   []int32   // where the last route begins
	kind   []int32
	count  []int
}

// resplits is whether routes may be cut anew.
func (c *rchain) resplits() bool {
	for i := range c.kinds {
		if c.kinds[i].allowed != nil {
			return false
		}
	}
	return c.cuts && c.bare && c.kinds[0].dist.back == nil
}

// resplit cuts the touched routes anew where that costs less.
func (c *rchain) resplit() {
	p := &c.split
	p.routes, p.seq = p.routes[:0], p.seq[:0]
	old := 0.0
	for _, t := range c.journal {
		s := &c.slots[c.slot[t.route]]
		if s.count == 0 || s.lock > 0 || len(p.seq)+s.count > resplitMost {
			continue
		}
		p.routes = append(p.routes, t.route)
		old += s.cost
		if c.next()&1 == 0 {
			for i := 1; i < len(s.stops)-1; i++ {
				p.seq = append(p.seq, s.stops[i].node)
			}
		} else {
			for i := len(s.stops) - 2; i > 0; i-- {
				p.seq = append(p.seq, s.stops[i].node)
			}
		}
	}
	if len(p.routes) < 2 {
		return
	}
	n := len(p.seq)
	k0 := &c.kinds[c.slots[c.slot[p.routes[0]]].kind]
	g := k0.dist
	p.way, p.home, p.out = resize(p.way, n), resize(p.home, n), resize(p.out, n)
	p.least, p.from, p.kind = resize(p.least, n+1), resize(p.from, n+1), resize(p.kind, n+1)
	for i, v := range p.seq {
		p.out[i], p.home[i], p.way[i] = int64(g.at(k0.start, v)), int64(g.at(v, k0.end)), 0
		if i > 0 {
			p.way[i] = p.way[i-1] + int64(g.at(p.seq[i-1], v))
		}
		p.least[i+1] = math.Inf(1)
	}
	p.least[0] = 0
	for i := range n {
		var del, pick int32
		for j := i; j < n; j++ {
			a := c.amounts[p.seq[j]]
			del, pick = del+a.del, pick+a.pick
			load := max(del, pick)
			dist := float64(p.out[i] + p.way[j] - p.way[i] + p.home[j])
			fits := false
			for q := range c.kinds {
				k := &c.kinds[q]
				if load > k.cap[0] || j-i >= k.maxStops {
					continue
				}
				fits = true
				if cost := p.least[i] + k.fixed + float64(dist*k.perDist); cost < p.least[j+1] {
					p.least[j+1], p.from[j+1], p.kind[j+1] = cost, int32(i), int32(q)
				}
			}
			if !fits {
				break
			}
		}
	}
	if p.least[n] < old-1e-9 {
		c.recut(old)
	}
}

// recut makes the routes that the programme found, if there are vehicles for them.
func (c *rchain) recut(old float64) {
	p := &c.split
	p.count = resize(p.count, len(c.kinds))
	copy(p.count, c.used)
	for _, r := range p.routes {
		p.count[c.slots[c.slot[r]].kind]--
	}
	all := c.routes() - len(p.routes)
	for j := int32(len(p.seq)); j > 0; j = p.from[j] {
		p.count[p.kind[j]]++
		all++
	}
	if all > c.most {
		return
	}
	for q := range c.kinds {
		if p.count[q] > c.kinds[q].count {
			return
		}
	}
	for _, r := range p.routes {
		c.used[c.slots[c.slot[r]].kind]--
	}
	sum, over := 0.0, int64(0)
	i := 0
	for j := int32(len(p.seq)); j > 0; j = p.from[j] {
		kind := p.kind[j]
		var r int32
		if i < len(p.routes) {
			r = p.routes[i]
			c.used[kind]++
		} else {
			r = c.open(kind)
		}
		i++
		s := c.touch(r) // it is touched already
		over -= s.over
		s.kind = kind
		c.fill(s, p.seq[p.from[j]:j])
		c.refresh(s, 0, len(s.stops)-1)
		c.reindex(r, 0)
		sum += s.cost
		over += s.over
	}
	for ; i < len(p.routes); i++ {
		s := c.touch(p.routes[i])
		over -= s.over
		c.fill(s, nil)
		c.refresh(s, 0, 1)
		s.cost, s.over, s.kind = 0, 0, -1
		c.ends[p.routes[i]].size = 0
	}
	c.book(sum-old, over)
}

// fill gives a route other customers.
func (c *rchain) fill(s *rslot, list []int32) {
	k := &c.kinds[s.kind]
	s.stops = append(s.stops[:0], stop{k.start, 0})
	last := k.start
	for _, v := range list {
		s.stops = append(s.stops, stop{v, k.dist.at(last, v)})
		last = v
	}
	s.stops = append(s.stops, stop{k.end, k.dist.at(last, k.end)})
}
