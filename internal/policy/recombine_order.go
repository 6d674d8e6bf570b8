package policy

import "slices"

// candidateRoute is a route of some solution; customers are numbered as in the policy's instances.
type candidateRoute struct {
	depot     int32
	customers []int32
	length    float64
}

// clone returns a copy. The customers of a route by cut share the memory of its tour.
func (r candidateRoute) clone() candidateRoute {
	r.customers = slices.Clone(r.customers)
	return r
}

// least exceeds the difference of two sums of the same distances in another order.
const least = 1e-9

// orderer improves the order of a route's customers: it reverses segments (2-opt) and moves up to
// three consecutive customers (Or-opt) until neither makes the route shorter. That is valid if
// capacity is the only limit of a route and distances are symmetric.
type orderer struct {
	dist   []float64 // [nodes][nodes]
	nodes  int
	depots int
	order  []int
}

// newOrderer returns nil if dist is not symmetric.
func newOrderer(dist []float64, nodes, depots int) *orderer {
	for a := range nodes {
		for b := range a {
			if dist[a*nodes+b] != dist[b*nodes+a] {
				return nil
			}
		}
	}
	return &orderer{dist: dist, nodes: nodes, depots: depots}
}

func (o *orderer) distance(a, b int) float64 { return o.dist[a*o.nodes+b] }

// ordered returns the route with an order that is as short or shorter.
func (o *orderer) ordered(r candidateRoute) candidateRoute {
	if o == nil || len(r.customers) < 3 {
		return r
	}
	n := len(r.customers)
	at := slices.Grow(o.order[:0], n+2)
	at = append(at, int(r.depot))
	for _, v := range r.customers {
		at = append(at, int(v)-1+o.depots)
	}
	at = append(at, int(r.depot))
	o.order = at
	for o.reverse(at) || o.moveCustomers(at) {
	}
	length := 0.0
	for k := range n + 1 {
		length += o.distance(at[k], at[k+1])
	}
	if !(length < r.length-least) {
		return r
	}
	out := candidateRoute{r.depot, make([]int32, n), length}
	for k := range out.customers {
		out.customers[k] = int32(at[k+1] - o.depots + 1)
	}
	return out
}

// reverse reverses segments if that makes the round trip shorter, and reports whether it reversed
// any.
func (o *orderer) reverse(at []int) (did bool) {
	for a := 1; a < len(at)-2; a++ {
		for b := a + 1; b < len(at)-1; b++ {
			if o.distance(at[a-1], at[b])+o.distance(at[a], at[b+1]) < o.distance(at[a-1], at[a])+o.distance(at[b], at[b+1])-least {
				slices.Reverse(at[a : b+1])
				did = true
			}
		}
	}
	return did
}

// moveCustomers moves up to three consecutive customers to the first place where the round trip
// becomes shorter, once, and reports whether it did.
func (o *orderer) moveCustomers(at []int) bool {
	for long := 1; long <= 3; long++ {
		for a := 1; a+long < len(at); a++ {
			b := a + long // end of the segment
			gone := o.distance(at[a-1], at[a]) + o.distance(at[b-1], at[b]) - o.distance(at[a-1], at[b])
			for c := 1; c < len(at); c++ { // insert before the node at c
				if c >= a && c <= b {
					continue
				}
				back := o.distance(at[c-1], at[a]) + o.distance(at[b-1], at[c]) - o.distance(at[c-1], at[c])
				if back < gone-least {
					part := slices.Clone(at[a:b])
					if c < a {
						copy(at[c+long:b], at[c:a])
						copy(at[c:], part)
					} else {
						copy(at[a:], at[b:c])
						copy(at[c-long:], part)
					}
					return true
				}
			}
		}
	}
	return false
}
