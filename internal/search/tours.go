package search

import "haul/internal/vrp"

// The state that every move works on. What a reader could break: route, pos, cum and skew mirror
// routes, and only renumber refreshes them. After a change of routes[r] without renumber(r,
// first changed index), later evaluations in constant time are silently wrong.

// matrixNodes is the number of nodes up to which distances are tabulated (32 MB); larger
// problems compute each distance when asked.
const matrixNodes = 2000

// metricTable answers distances between nodes.
type metricTable struct {
	p      *vrp.Problem
	n      int       // nodes
	m      []float64 // nil: ask p
	oneWay bool      // some distance differs from the way back
}

func newMetricTable(p *vrp.Problem) *metricTable {
	n := len(p.Demand)
	t := &metricTable{p: p, n: n}
	if p.Metric == vrp.Explicit {
		t.m = p.Weights
		for i := 0; i < n && !t.oneWay; i++ {
			for j := range i {
				if t.m[i*n+j] != t.m[j*n+i] {
					t.oneWay = true
					break
				}
			}
		}
		// An empty route is written as the leg depot-depot, which must cost nothing.
		if t.m[0] != 0 {
			t.m = append([]float64(nil), p.Weights...)
			t.m[0] = 0
		}
		return t
	}
	if n <= matrixNodes {
		t.m = make([]float64, n*n)
		for i := range n {
			for j := range i {
				d := p.Dist(i, j)
				t.m[i*n+j], t.m[j*n+i] = d, d
			}
		}
	}
	return t
}

func (t *metricTable) d(i, j int32) float64 {
	if t.m != nil {
		return t.m[int(i)*t.n+int(j)]
	}
	return t.p.Dist(int(i), int(j))
}

// tours is a set of routes with what moves need to be evaluated in constant time. Routes may be
// empty; they vanish in solution.
type tours struct {
	*metricTable
	near   *neighbours
	routes [][]int32
	load   []int64 // of each route
	route  []int32 // of each customer; -1 while it is in none
	pos    []int32 // of each customer in its route
	cum    []int64 // load of the route up to and with this customer
	// cost of driving the route backwards minus forwards, from the depot to this customer; oneWay
	// only
	skew []float64
}

func newTours(t *metricTable, near *neighbours) *tours {
	s := &tours{metricTable: t, near: near,
		route: make([]int32, t.n), pos: make([]int32, t.n), cum: make([]int64, t.n)}
	if t.oneWay {
		s.skew = make([]float64, t.n)
	}
	return s
}

// set replaces all routes by a solution's.
func (s *tours) set(sol vrp.Solution) {
	s.routes, s.load = s.routes[:0], s.load[:0]
	for r, route := range sol.Routes {
		s.routes = append(s.routes, append([]int32(nil), route...))
		s.load = append(s.load, 0)
		s.renumber(r, 0)
	}
}

// solution copies the routes out, without the empty ones.
func (s *tours) solution() vrp.Solution {
	var sol vrp.Solution
	for _, r := range s.routes {
		if len(r) > 0 {
			sol.Routes = append(sol.Routes, append([]int32(nil), r...))
		}
	}
	return sol
}

// renumber refreshes the mirrors of route r from index i on, and its load.
func (s *tours) renumber(r, i int) {
	route := s.routes[r]
	last, q := s.at(route, i-1), int64(0)
	if i > 0 {
		q = s.cum[last]
	}
	for ; i < len(route); i++ {
		v := route[i]
		q += int64(s.p.Demand[v])
		s.route[v], s.pos[v], s.cum[v] = int32(r), int32(i), q
		if s.oneWay {
			s.skew[v] = s.d(v, last) - s.d(last, v)
			if i > 0 {
				s.skew[v] += s.skew[last]
			}
		}
		last = v
	}
	s.load[r] = q
}

// at is the node at index i of a route; the depot lies before the first and after the last.
func (s *tours) at(route []int32, i int) int32 {
	if uint(i) >= uint(len(route)) {
		return 0
	}
	return route[i]
}

// loadTo is the load of the first i customers of a route.
func (s *tours) loadTo(route []int32, i int) int64 {
	if i == 0 {
		return 0
	}
	return s.cum[route[i-1]]
}

// turn is what reversing the customers [lo, hi) of a route adds to its inner legs.
func (s *tours) turn(route []int32, lo, hi int) float64 {
	if !s.oneWay {
		return 0
	}
	return s.skew[route[hi-1]] - s.skew[route[lo]]
}

// turnHead is what driving the first j customers backwards adds, the depot's leg included.
func (s *tours) turnHead(route []int32, j int) float64 {
	if !s.oneWay || j == 0 {
		return 0
	}
	return s.skew[route[j-1]]
}

// turnTail is what driving the customers from i on backwards adds, the depot's leg included.
func (s *tours) turnTail(route []int32, i int) float64 {
	if !s.oneWay || i == len(route) {
		return 0
	}
	last := route[len(route)-1]
	return s.skew[last] - s.skew[route[i]] + s.d(0, last) - s.d(last, 0)
}
