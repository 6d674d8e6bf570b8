package search

import "math"

// Which members of groups a route visits, in the order that it has: the dynamic programme over
// their layers (the cluster optimisation of the generalised travelling salesman problem; Fischetti
// and others, 1997). Where a route goes past groups that are wide, all of its members are better on
// one side or the other, and no exchange of single ones gets there. Members that stand for each
// other weigh the same, and times do not matter.

// layers is the programme's memory: by customer of a layer, the way to it and where it came from.
type layers struct {
	way  []int64
	from []int32
	node []int32
	ends []int32 // where each layer ends
}

// chooseMembers gives a touched route the members with which it is shortest.
func (c *candidate) chooseMembers(r int32) {
	s := &c.states[c.routes[r]]
	k := &c.Types[s.kind]
	cell, n := k.Distances.Cell, k.Distances.N
	p := &c.layered
	p.way, p.from, p.node, p.ends = p.way[:0], p.from[:0], p.node[:0], p.ends[:0]
	p.way, p.from, p.node, p.ends = append(p.way, 0), append(p.from, 0), append(p.node, k.Start), append(p.ends, 1)
	before := 0
	var one [1]int32
	for i := 1; i < len(s.stops); i++ {
		v := s.stops[i].node
		one[0] = v
		list := one[:]
		if i < len(s.stops)-1 {
			if all := c.Members[c.Locations[v].Representative]; all != nil {
				list = all
			}
		}
		low, high := before, int(p.ends[i-1])
		for _, w := range list {
			least, at := int64(math.MaxInt64), int32(0)
			for j := low; j < high; j++ {
				if d := p.way[j] + int64(cell[int(p.node[j])*n+int(w)]); d < least {
					least, at = d, int32(j)
				}
			}
			p.way, p.from, p.node = append(p.way, least), append(p.from, at), append(p.node, w)
		}
		before = high
		p.ends = append(p.ends, int32(len(p.way)))
	}
	last := len(p.way) - 1
	if p.way[last] >= s.dist {
		return
	}
	s = c.touch(r)
	was := s.cost
	at := p.from[last]
	for i := len(s.stops) - 2; i > 0; i-- {
		if v, w := s.stops[i].node, p.node[at]; v != w {
			s.stops[i].node = w
			c.links[v].route = -1
			c.chosen = append(c.chosen, c.Locations[v].Representative)
		}
		at = p.from[at]
	}
	for i := 1; i < len(s.stops); i++ {
		s.stops[i].leg = k.Distances.At(s.stops[i-1].node, s.stops[i].node)
	}
	over := s.over
	c.refresh(s, 0, len(s.stops)-1)
	c.reindex(r, 0)
	c.addChange(s.cost-was, s.over-over)
}
