package search

import (
	"slices"

	"haul/internal/search/cover"
	"haul/internal/search/model"
)

// A pool of routes from good solutions, for the cover at the end of a cycle. A route is identified
// by the set of its customers, and only the shortest order of a set is kept.

type plainRoute struct {
	customers []int32 // in order of visit, in the problem's numbers
	cost      int64
	seen      int // when it was last part of a best solution
}

type pool struct {
	byKey  map[uint64]int32
	routes []plainRoute
	clock  int
}

func newPool() *pool { return &pool{byKey: map[uint64]int32{}} }

// add offers the routes of a solution of a region.
func (p *pool) add(g *region, routes [][]int32) {
	p.clock++
	for _, r := range routes {
		if len(r) == 0 {
			continue
		}
		var key uint64
		var cost int64
		last := int32(0)
		for _, v := range r {
			key += model.Mix(g.node[v])
			cost += int64(g.out[int(last)*g.nodes+int(v)])
			last = v
		}
		cost += int64(g.out[int(last)*g.nodes])
		i, known := p.byKey[key]
		if !known {
			if len(p.routes) >= model.PoolMost {
				p.shed()
			}
			i = int32(len(p.routes))
			p.byKey[key] = i
			p.routes = append(p.routes, plainRoute{cost: cost + 1})
		}
		to := &p.routes[i]
		to.seen = p.clock
		if cost < to.cost {
			to.cost = cost
			to.customers = to.customers[:0]
			for _, v := range r {
				to.customers = append(to.customers, g.node[v])
			}
		}
	}
}

// shed drops the half that was not seen for the longest time.
func (p *pool) shed() {
	order := make([]int, len(p.routes))
	for i, r := range p.routes {
		order[i] = r.seen
	}
	slices.Sort(order)
	limit := order[len(order)/2]
	kept := p.routes[:0]
	clear(p.byKey)
	for _, r := range p.routes {
		if r.seen > limit {
			p.byKey[setKey(r.customers)] = int32(len(kept))
			kept = append(kept, r)
		}
	}
	clear(p.routes[len(kept):])
	p.routes = kept
}

func setKey(customers []int32) (key uint64) {
	for _, v := range customers {
		key += model.Mix(v)
	}
	return key
}

// take moves another pool's routes into this one.
func (p *pool) take(other *pool) {
	p.clock = max(p.clock, other.clock)
	for _, r := range other.routes {
		key := setKey(r.customers)
		if i, known := p.byKey[key]; !known {
			if len(p.routes) >= model.PoolMost {
				p.shed()
			}
			p.byKey[key] = int32(len(p.routes))
			p.routes = append(p.routes, r)
		} else if r.cost < p.routes[i].cost {
			p.routes[i] = r
		}
	}
	clear(other.byKey)
	other.routes = nil
}

// cover returns routes of the pool that visit every customer once at a total below cost, and that
// total; nil if it finds none. most bounds the number of routes, tries and stop the search.
func (p *pool) cover(nodes int, cost int64, most, tries int, stop func() bool) ([][]int32, int64) {
	c := newCoverer(p, nodes, cost, most)
	c.Tries, c.Stop = tries, stop
	if len(c.Columns) == 0 {
		return nil, 0
	}
	c.Relax()
	c.Reduce()
	return c.Search()
}

func newCoverer(p *pool, nodes int, cost int64, most int) *cover.Problem {
	c := &cover.Problem{Nodes: nodes, Upper: cost, Most: most, Price: make([]float64, nodes)}
	for _, r := range p.routes {
		c.Columns = append(c.Columns, cover.Column{Customers: r.customers, Cost: r.cost})
	}
	return c
}
