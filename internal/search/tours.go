package search

import (
	"haul/internal/search/model"
	"haul/internal/search/neighbour"
	"haul/internal/vrp"
)

// The state that every move works on. Route, pos, cum and skew mirror routes, and only renumber
// refreshes them. After a change of routes[r] without renumber(r, first changed index), later
// evaluations in constant time are silently wrong.

// tours is a set of routes with what moves need to be evaluated in constant time. Routes may be
// empty; they vanish in solution.
type tours struct {
	*model.FloatMatrix
	near   *neighbour.Neighbours
	routes [][]int32
	load   []int64 // of each route
	route  []int32 // of each customer; -1 while it is in none
	pos    []int32 // of each customer in its route
	cum    []int64 // load of the route up to and with this customer
	// cost of driving the route backwards minus forwards, from the depot to this customer; OneWay
	// only
	skew []float64
}

func newTours(t *model.FloatMatrix, near *neighbour.Neighbours) *tours {
	s := &tours{FloatMatrix: t, near: near,
		route: make([]int32, t.N), pos: make([]int32, t.N), cum: make([]int64, t.N)}
	if t.OneWay {
		s.skew = make([]float64, t.N)
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
		q += int64(s.P.Demand[v])
		s.route[v], s.pos[v], s.cum[v] = int32(r), int32(i), q
		if s.OneWay {
			s.skew[v] = s.D(v, last) - s.D(last, v)
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
	if !s.OneWay {
		return 0
	}
	return s.skew[route[hi-1]] - s.skew[route[lo]]
}

// turnHead is what driving the first j customers backwards adds, the depot's leg included.
func (s *tours) turnHead(route []int32, j int) float64 {
	if !s.OneWay || j == 0 {
		return 0
	}
	return s.skew[route[j-1]]
}

// turnTail is what driving the customers from i on backwards adds, the depot's leg included.
func (s *tours) turnTail(route []int32, i int) float64 {
	if !s.OneWay || i == len(route) {
		return 0
	}
	last := route[len(route)-1]
	return s.skew[last] - s.skew[route[i]] + s.D(0, last) - s.D(last, 0)
}
