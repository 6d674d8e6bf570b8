package search

import "slices"

// A pool of routes from good solutions, for the cover at the end of a cycle. What a reader could
// break: a route is identified by the set of its customers, and only the shortest order of a set
// is kept.

// poolMost bounds the routes kept.
const poolMost = 20000

type pooled struct {
	customers []int32 // in order of visit, in the problem's numbers
	cost      int64
	seen      int // when it was last part of a best solution
}

type pool struct {
	byKey  map[uint64]int32
	routes []pooled
	clock  int
}

func newPool() *pool { return &pool{byKey: map[uint64]int32{}} }

// mix scatters a customer's number; a set's key is the sum over its members.
func mix(v int32) uint64 {
	x := uint64(v) * 0x9e3779b97f4a7c15
	x ^= x >> 29
	x *= 0xbf58476d1ce4e5b9
	return x ^ x>>32
}

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
			key += mix(g.node[v])
			cost += int64(g.out[int(last)*g.nodes+int(v)])
			last = v
		}
		cost += int64(g.out[int(last)*g.nodes])
		i, known := p.byKey[key]
		if !known {
			if len(p.routes) >= poolMost {
				p.shed()
			}
			i = int32(len(p.routes))
			p.byKey[key] = i
			p.routes = append(p.routes, pooled{cost: cost + 1})
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
		key += mix(v)
	}
	return key
}

// take moves another pool's routes into this one.
func (p *pool) take(other *pool) {
	p.clock = max(p.clock, other.clock)
	for _, r := range other.routes {
		key := setKey(r.customers)
		if i, known := p.byKey[key]; !known {
			if len(p.routes) >= poolMost {
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
