package policy

import (
	"cmp"
	"slices"

	"haul/internal/vrp"
)

// Recombination of solutions: if some routes of one solution serve the same customers as some
// routes of another, the shorter routes replace the others. That is valid because routes do not
// depend on each other.
//
// Only groups of routes that serve the same customers are exchanged, so that every customer is
// served once. Lengths are computed with the problem's own distances.

// recombiner recombines solutions of one problem.
type recombiner struct {
	prob   *vrp.Problem
	nodes  int // number of nodes: depots, then customers
	depots int
	dist   []float64 // [nodes][nodes]; nil: too many nodes for a table
	open   bool
	group  []int32   // by route, those of one solution before those of the other: union-find parent
	saves  []float64 // by group: the gain if the other solution's routes replace it
	order  *orderer  // nil: the order of customers in a route must not change
}

func newRecombiner(prob *vrp.Problem) *recombiner {
	d := prob.DepotCount()
	n := d + prob.N()
	j := &recombiner{prob: prob, nodes: n, depots: d}
	if n <= maxTableNodes {
		j.dist = make([]float64, n*n)
		for a := range n {
			for b := range n {
				j.dist[a*n+b] = prob.Dist(a, b)
			}
		}
	}
	j.open = prob.Open || prob.Types()[0].End == vrp.None
	if prob.Plain() == nil && j.dist != nil {
		j.order = newOrderer(j.dist, n, d)
	}
	return j
}

// maxTableNodes is the largest number of nodes for which dist is computed: 8 MB.
const maxTableNodes = 1024

// distance returns the distance from a to b.
func (j *recombiner) distance(a, b int) float64 {
	if j.dist == nil {
		return j.prob.Dist(a, b)
	}
	return j.dist[a*j.nodes+b]
}

// cut splits a solution into its routes.
func (j *recombiner) cut(tour []int32) *splitTour {
	t := &splitTour{of: make([]int32, j.prob.N()+1)}
	j.prob.EachRoute(tour, func(depot int32, customers []int32) {
		last, length := int(depot), 0.0
		for _, v := range customers {
			at := int(v) - 1 + j.depots
			length += j.distance(last, at)
			last = at
		}
		if !j.open {
			length += j.distance(last, int(depot))
		}
		t.routes = append(t.routes, candidateRoute{depot, customers, length})
	})
	t.updateTotals()
	return t
}

// find returns the representative of a route's group.
func (j *recombiner) find(r int32) int32 {
	for j.group[r] != r {
		j.group[r] = j.group[j.group[r]]
		r = j.group[r]
	}
	return r
}

// exchange replaces groups of routes in t by shorter ones of u, and reports whether it replaced
// any.
func (j *recombiner) exchange(t, u *splitTour) bool {
	mine, all := len(t.routes), len(t.routes)+len(u.routes)
	j.group, j.saves = slices.Grow(j.group[:0], all)[:all], slices.Grow(j.saves[:0], all)[:all]
	for r := range j.group {
		j.group[r], j.saves[r] = int32(r), 0
	}
	for v := 1; v < len(t.of); v++ {
		if a, b := j.find(t.of[v]), j.find(int32(mine)+u.of[v]); a != b {
			j.group[max(a, b)] = min(a, b)
		}
	}
	for r := range j.group {
		if r < mine {
			j.saves[j.find(int32(r))] += t.routes[r].length
		} else {
			j.saves[j.find(int32(r))] -= u.routes[r-mine].length
		}
	}
	if !slices.ContainsFunc(j.saves, func(x float64) bool { return x > least }) {
		return false
	}
	var kept []candidateRoute
	for r := range j.group {
		if shorter := j.saves[j.find(int32(r))] > least; r < mine && !shorter {
			kept = append(kept, t.routes[r])
		} else if r >= mine && shorter {
			kept = append(kept, u.routes[r-mine])
		}
	}
	t.routes = kept
	t.updateTotals()
	return true
}

// takeOver calls exchange with all tours until t does not become shorter, and reports whether it
// did.
func (j *recombiner) takeOver(t *splitTour, tours []*splitTour) (did bool) {
	for again := true; again; {
		again = false
		for _, u := range tours {
			again = j.exchange(t, u) || again
		}
		did = did || again
	}
	return did
}

// recombineStarts is the number of solutions, the shortest ones, from which recombination starts:
// the result depends on the start.
const recombineStarts = 8

// join returns the best recombination of the tours, or no routes if a single tour is as short. Each
// tour is a sequence of visits as Problem.EachRoute reads it.
func (j *recombiner) join(tours [][]int32) vrp.Solution {
	all := make([]*splitTour, len(tours))
	for k, tour := range tours {
		all[k] = j.cut(tour)
	}
	slices.SortStableFunc(all, func(t, u *splitTour) int { return cmp.Compare(t.length, u.length) })
	var best *splitTour
	for _, first := range all[:min(recombineStarts, len(all))] {
		t := &splitTour{routes: first.routes, of: slices.Clone(first.of), length: first.length}
		j.takeOver(t, all)
		switch {
		case best == nil:
			best = t
		default: // the best result so far takes part too
			j.exchange(t, best)
			if t.length < best.length {
				best = t
			}
		}
	}
	if j.prob.N() <= maxPooled {
		for pool := newRoutePool(j.order, all); pool.improve(best) && j.takeOver(best, all); {
		}
	}
	if !(best.length < all[0].length-least) {
		return vrp.Solution{}
	}
	return j.solution(best)
}

// solution converts t to the problem's form.
func (j *recombiner) solution(t *splitTour) vrp.Solution {
	visits := []int32{0}
	for _, r := range t.routes {
		if r.depot > 0 {
			r.depot += int32(j.prob.N())
		}
		visits = append(append(visits, r.depot), r.customers...)
	}
	return j.prob.FromVisits(visits)
}
