package search

import (
	"math"

	"haul/internal/search/model"
)

// Fleets of several sizes: the customers of a few routes, one route behind the other, are divided
// again into the cheapest routes and vehicles by the dynamic programme of Prins (2004). A route is
// priced by distance and load only, as in divide, and the number of vehicles of each kind is
// checked once the division is known.

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

// resplit cuts the touched routes anew where that costs less.
func (c *candidate) resplit() {
	p := &c.split
	p.routes, p.seq = p.routes[:0], p.seq[:0]
	old := 0.0
	for _, t := range c.undoList {
		s := &c.states[c.routes[t.route]]
		if s.count == 0 || s.lock > 0 || len(p.seq)+s.count > model.ResplitMost {
			continue
		}
		p.routes = append(p.routes, t.route)
		old += s.cost
		if c.Next()&1 == 0 {
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
	k0 := &c.Types[c.states[c.routes[p.routes[0]]].kind]
	g := k0.Distances
	p.way, p.home, p.out = model.Resize(p.way, n), model.Resize(p.home, n), model.Resize(p.out, n)
	p.least, p.from, p.kind = model.Resize(p.least, n+1), model.Resize(p.from, n+1), model.Resize(p.kind, n+1)
	for i, v := range p.seq {
		p.out[i], p.home[i], p.way[i] = int64(g.At(k0.Start, v)), int64(g.At(v, k0.End)), 0
		if i > 0 {
			p.way[i] = p.way[i-1] + int64(g.At(p.seq[i-1], v))
		}
		p.least[i+1] = math.Inf(1)
	}
	p.least[0] = 0
	for i := range n {
		var del, pick int32
		for j := i; j < n; j++ {
			a := c.Amounts[p.seq[j]]
			del, pick = del+a.Del, pick+a.Pick
			load := max(del, pick)
			dist := float64(p.out[i] + p.way[j] - p.way[i] + p.home[j])
			fits := false
			for q := range c.Types {
				k := &c.Types[q]
				if load > k.Capacity[0] || j-i >= k.MaxStops {
					continue
				}
				fits = true
				if cost := p.least[i] + k.Fixed + float64(dist*k.PerDist); cost < p.least[j+1] {
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
func (c *candidate) recut(old float64) {
	p := &c.split
	p.count = model.Resize(p.count, len(c.Types))
	copy(p.count, c.used)
	for _, r := range p.routes {
		p.count[c.states[c.routes[r]].kind]--
	}
	all := c.vehiclesUsed() - len(p.routes)
	for j := int32(len(p.seq)); j > 0; j = p.from[j] {
		p.count[p.kind[j]]++
		all++
	}
	if all > c.most {
		return
	}
	for q := range c.Types {
		if p.count[q] > c.Types[q].Count {
			return
		}
	}
	for _, r := range p.routes {
		c.used[c.states[c.routes[r]].kind]--
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
	c.addChange(sum-old, over)
}

// fill gives a route other customers.
func (c *candidate) fill(s *routeState, list []int32) {
	k := &c.Types[s.kind]
	s.stops = append(s.stops[:0], stop{k.Start, 0})
	last := k.Start
	for _, v := range list {
		s.stops = append(s.stops, stop{v, k.Distances.At(last, v)})
		last = v
	}
	s.stops = append(s.stops, stop{k.End, k.Distances.At(last, k.End)})
}
