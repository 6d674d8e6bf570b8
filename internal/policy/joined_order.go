package policy

import "slices"

// joinedRoute is a route of some tour: its customers in the policy's numbering.
type joinedRoute struct {
	depot     int32
	customers []int32
	length    float64
}

// clone is the route with customers of its own: those of a tour that was cut are the tour's.
func (r joinedRoute) clone() joinedRoute {
	r.customers = slices.Clone(r.customers)
	return r
}

// least is more than sums in another order differ by.
const least = 1e-9

// orderer brings a route's customers into a better order: it turns parts around and moves up to
// three customers in a row, until neither makes the route shorter. That is allowed where nothing
// but the capacity limits a route and a way back is as long as the way there.
type orderer struct {
	dist   []float64 // [nodes][nodes]
	nodes  int
	depots int
	order  []int
}

// newOrderer is nil where some way is longer than the way back.
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

func (o *orderer) way(a, b int) float64 { return o.dist[a*o.nodes+b] }

// ordered is the route in an order that is as short or shorter.
func (o *orderer) ordered(r joinedRoute) joinedRoute {
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
	for o.turn(at) || o.shift(at) {
	}
	length := 0.0
	for k := range n + 1 {
		length += o.way(at[k], at[k+1])
	}
	if !(length < r.length-least) {
		return r
	}
	out := joinedRoute{r.depot, make([]int32, n), length}
	for k := range out.customers {
		out.customers[k] = int32(at[k+1] - o.depots + 1)
	}
	return out
}

// turn turns parts of a round around where that is shorter, and says whether any was.
func (o *orderer) turn(at []int) (did bool) {
	for a := 1; a < len(at)-2; a++ {
		for b := a + 1; b < len(at)-1; b++ {
			if o.way(at[a-1], at[b])+o.way(at[a], at[b+1]) < o.way(at[a-1], at[a])+o.way(at[b], at[b+1])-least {
				slices.Reverse(at[a : b+1])
				did = true
			}
		}
	}
	return did
}

// shift moves up to three customers in a row to where that is shorter, once, and says whether it
// did.
func (o *orderer) shift(at []int) bool {
	for long := 1; long <= 3; long++ {
		for a := 1; a+long < len(at); a++ {
			b := a + long // behind the part
			gone := o.way(at[a-1], at[a]) + o.way(at[b-1], at[b]) - o.way(at[a-1], at[b])
			for c := 1; c < len(at); c++ { // before the node at c
				if c >= a && c <= b {
					continue
				}
				back := o.way(at[c-1], at[a]) + o.way(at[b-1], at[c]) - o.way(at[c-1], at[c])
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
