package policy

import (
	"math/bits"
	"slices"
)

// Combining routes of any tours: two or three routes of the best tour are replaced by others
// that serve the same customers, each from another tour.
//
// What a reader could break: a replacement serves exactly the customers of what it replaces.

// cutTour is a tour as its routes.
type cutTour struct {
	routes []joinedRoute
	of     []int32 // customer to route
	length float64
}

// settle notes which route each customer is on, and what all of them come to.
func (t *cutTour) settle() {
	t.length = 0
	for r := range t.routes {
		t.length += t.routes[r].length
		for _, v := range t.routes[r].customers {
			t.of[v] = int32(r)
		}
	}
}

// customerSet are the customers of a route, one bit each.
type customerSet [mostPooled / 64]uint64

// mostPooled is how many customers are pooled: more would need wider sets.
const mostPooled = 128

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

// setOf are a route's customers.
func setOf(r *joinedRoute) (s customerSet) {
	for _, v := range r.customers {
		s[(v-1)/64] |= 1 << ((v - 1) % 64)
	}
	return s
}

// has says whether a customer, from 0, is in the set.
func (s customerSet) has(customer int32) bool { return s[customer/64]>>(customer%64)&1 != 0 }

// first is the lowest customer of a set that has one.
func (s customerSet) first() int32 {
	for k, w := range s {
		if w != 0 {
			return int32(64*k + bits.TrailingZeros64(w))
		}
	}
	return -1
}

// routePool is the shortest route of all tours for each set of customers, in a better order where
// one is found.
type routePool struct {
	*orderer // nil: orders stay
	routes   []joinedRoute
	sets     []customerSet // their customers
	at       map[customerSet]int
	among    []int
	// sets that nothing shorter was found for: as long as their customers stay together nothing will
	// be
	failed map[customerSet]bool
	grown  bool // since then: there may be something now
}

func newRoutePool(o *orderer, tours []*cutTour) *routePool {
	p := &routePool{orderer: o, at: map[customerSet]int{}, failed: map[customerSet]bool{}}
	for _, t := range tours {
		p.add(t)
	}
	return p
}

// add takes up the routes of one more tour.
func (p *routePool) add(t *cutTour) {
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

// inside are the routes that serve customers of a set and no others.
func (p *routePool) inside(set customerSet) []int {
	p.among = p.among[:0]
	for k := range p.sets {
		if p.sets[k].within(set) {
			p.among = append(p.among, k)
		}
	}
	return p.among
}

// cover finds at most `most` routes of those among that serve a set of customers and are shorter
// than `than` in all.
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

// improve replaces up to three routes of a tour while that makes it shorter, and says whether it
// did.
func (p *routePool) improve(t *cutTour) (did bool) {
	if p.grown {
		clear(p.failed)
		p.grown = false
	}
	for p.replace(t) {
		did = true
	}
	return did
}

// replace replaces some routes once.
func (p *routePool) replace(t *cutTour) bool {
	sets := make([]customerSet, len(t.routes))
	for r := range t.routes {
		sets[r] = setOf(&t.routes[r])
		if k, ok := p.at[sets[r]]; ok && p.routes[k].length < t.routes[r].length-least {
			t.routes = slices.Clone(t.routes)
			t.routes[r] = p.routes[k]
			t.settle()
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
				var kept []joinedRoute
				for r := range t.routes {
					if r != a && r != b && r != c {
						kept = append(kept, t.routes[r])
					}
				}
				for _, k := range found {
					kept = append(kept, p.routes[k])
				}
				t.routes = kept
				t.settle()
				return true
			}
		}
	}
	return false
}
