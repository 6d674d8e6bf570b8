package policy

import (
	"math/bits"
	"slices"
)

// Recombination of routes from many solutions: two or three routes of the best solution are
// replaced by others that serve the same customers. Each may be from a different solution.
// splitTour is a solution, split into routes.
type splitTour struct {
	routes []candidateRoute
	of     []int32 // by customer: index of its route
	length float64
}

// updateTotals updates t.of and t.length after a change of routes.
func (t *splitTour) updateTotals() {
	t.length = 0
	for r := range t.routes {
		t.length += t.routes[r].length
		for _, v := range t.routes[r].customers {
			t.of[v] = int32(r)
		}
	}
}

// customerSet is the set of a route's customers, one bit each.
type customerSet [maxPooled / 64]uint64

// maxPooled is the largest number of customers for a pool: more would need wider sets.
const maxPooled = 128

func (s customerSet) union(o customerSet) customerSet {
	for k := range s {
		s[k] |= o[k]
	}
	return s
}

func (s customerSet) without(o customerSet) customerSet {
	for k := range s {
		s[k] &^= o[k]
	}
	return s
}

func (s customerSet) within(o customerSet) bool { return s.without(o) == customerSet{} }

// setOf returns the set of a route's customers.
func setOf(r *candidateRoute) (s customerSet) {
	for _, v := range r.customers {
		s[(v-1)/64] |= 1 << ((v - 1) % 64)
	}
	return s
}

// has reports whether a customer, counted from 0, is in the set.
func (s customerSet) has(customer int32) bool { return s[customer/64]>>(customer%64)&1 != 0 }

// first returns the lowest customer of a set that is not empty.
func (s customerSet) first() int32 {
	for k, w := range s {
		if w != 0 {
			return int32(64*k + bits.TrailingZeros64(w))
		}
	}
	return -1
}

// routePool holds, for each set of customers, the shortest route of all solutions. An orderer may
// have improved its order.
type routePool struct {
	*orderer // nil: orders must not change
	routes   []candidateRoute
	sets     []customerSet // by route: its customers
	at       map[customerSet]int
	among    []int
	// unions of up to three routes' customers for which no shorter cover exists; cleared by improve
	// if grown
	failed map[customerSet]bool
	grown  bool // a route was added since failed was filled
}

func newRoutePool(o *orderer, tours []*splitTour) *routePool {
	p := &routePool{orderer: o, at: map[customerSet]int{}, failed: map[customerSet]bool{}}
	for _, t := range tours {
		p.add(t)
	}
	return p
}

// add adds the routes of a solution.
func (p *routePool) add(t *splitTour) {
	for _, r := range t.routes {
		set := setOf(&r)
		k, ok := p.at[set]
		switch {
		case !ok:
			p.at[set] = len(p.routes)
			p.routes, p.sets = append(p.routes, p.ordered(r.clone())), append(p.sets, set)
		case r.length < p.routes[k].length-least:
			p.routes[k] = p.ordered(r.clone())
		default:
			continue
		}
		p.grown = true
	}
}

// inside returns the routes whose customers are all in the set.
func (p *routePool) inside(set customerSet) []int {
	p.among = p.among[:0]
	for k := range p.sets {
		if p.sets[k].within(set) {
			p.among = append(p.among, k)
		}
	}
	return p.among
}

// cover returns at most `most` of the given routes that together serve exactly the set's customers
// and are shorter than `than` in total, with their total length. It returns nil if there are none.
func (p *routePool) cover(among []int, set customerSet, than float64, most int) ([]int, float64) {
	var best []int
	if k, ok := p.at[set]; ok && p.routes[k].length < than {
		best, than = []int{k}, p.routes[k].length
	}
	if most == 1 {
		return best, than
	}
	first := set.first()
	for _, k := range among {
		r := &p.routes[k]
		if r.length >= than || p.sets[k] == set || !p.sets[k].has(first) || !p.sets[k].within(set) {
			continue
		}
		if rest, length := p.cover(among, set.without(p.sets[k]), than-r.length, most-1); rest != nil {
			best, than = append([]int{k}, rest...), r.length+length
		}
	}
	return best, than
}

// improve replaces up to three routes of a solution by shorter ones while that is possible, and
// reports whether it did.
func (p *routePool) improve(t *splitTour) (did bool) {
	if p.grown {
		clear(p.failed)
		p.grown = false
	}
	for p.replace(t) {
		did = true
	}
	return did
}

// replace does one such replacement.
func (p *routePool) replace(t *splitTour) bool {
	sets := make([]customerSet, len(t.routes))
	for r := range t.routes {
		sets[r] = setOf(&t.routes[r])
		if k, ok := p.at[sets[r]]; ok && p.routes[k].length < t.routes[r].length-least {
			t.routes = slices.Clone(t.routes)
			t.routes[r] = p.routes[k]
			t.updateTotals()
			return true
		}
	}
	for a := range t.routes {
		for b := range a {
			for c := -1; c < b; c++ {
				set, length, most := sets[a].union(sets[b]), t.routes[a].length+t.routes[b].length, 2
				if c >= 0 {
					set, length, most = set.union(sets[c]), length+t.routes[c].length, 3
				}
				if p.failed[set] {
					continue
				}
				found, _ := p.cover(p.inside(set), set, length-least, most)
				if found == nil {
					p.failed[set] = true
					continue
				}
				var kept []candidateRoute
				for r := range t.routes {
					if r != a && r != b && r != c {
						kept = append(kept, t.routes[r])
					}
				}
				for _, k := range found {
					kept = append(kept, p.routes[k])
				}
				t.routes = kept
				t.updateTotals()
				return true
			}
		}
	}
	return false
}
