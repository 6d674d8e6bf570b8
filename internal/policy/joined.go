package policy

import (
	"math"
	"slices"

	"haul/internal/vrp"
)

// What several tours of one problem come to together: wherever some routes of one tour serve the
// same customers as some routes of another, the shorter ones stay. A vehicle knows nothing of the
// routes before its own, so routes of different tours may stand side by side.
//
// What a reader could break: routes are exchanged only by whole groups that serve the same
// customers, so that every customer is served once. Lengths are the problem's own.

// joinedRoute is a route of some tour: its customers by the policy's numbers.
type joinedRoute struct {
	depot     int32
	customers []int32
	length    float64
}

// joiner holds what joining the tours of one problem needs.
type joiner struct {
	prob    *vrp.Problem
	nodes   int // depots, then customers
	depots  int
	dist    []float64 // [nodes][nodes]; nil: of too many
	open    bool
	best    []joinedRoute
	bestOf  []int32 // customer to route of best
	tour    []joinedRoute
	tourOf  []int32
	group   []int32 // of routes of best, then of tour
	lengths []float64
}

func newJoiner(prob *vrp.Problem) *joiner {
	d := prob.DepotCount()
	n := d + prob.N()
	j := &joiner{prob: prob, nodes: n, depots: d, bestOf: make([]int32, prob.N()+1), tourOf: make([]int32, prob.N()+1)}
	if n <= mostTabled {
		j.dist = make([]float64, n*n)
		for a := range n {
			for b := range n {
				j.dist[a*n+b] = prob.Dist(a, b)
			}
		}
	}
	j.open = prob.Open || prob.Types()[0].End == vrp.None
	return j
}

// mostTabled is how many nodes a table of their distances is made for: 8 MB.
const mostTabled = 1024

// way is the distance between two nodes.
func (j *joiner) way(a, b int) float64 {
	if j.dist == nil {
		return j.prob.Dist(a, b)
	}
	return j.dist[a*j.nodes+b]
}

// cut lists the routes of a tour.
func (j *joiner) cut(to []joinedRoute, of []int32, tour []int32) []joinedRoute {
	to = to[:0]
	j.prob.EachRoute(tour, func(depot int32, customers []int32) {
		last, length := int(depot), 0.0
		for _, v := range customers {
			at := int(v) - 1 + j.depots
			length += j.way(last, at)
			last = at
			of[v] = int32(len(to))
		}
		if !j.open {
			length += j.way(last, int(depot))
		}
		to = append(to, joinedRoute{depot, customers, length})
	})
	return to
}

func total(routes []joinedRoute) (sum float64) {
	for i := range routes {
		sum += routes[i].length
	}
	return sum
}

// find is the first member of a route's group.
func (j *joiner) find(r int32) int32 {
	for j.group[r] != r {
		j.group[r] = j.group[j.group[r]]
		r = j.group[r]
	}
	return r
}

// exchange takes over what is shorter in j.tour, and says whether anything was.
func (j *joiner) exchange() bool {
	mine, all := len(j.best), len(j.best)+len(j.tour)
	j.group, j.lengths = slices.Grow(j.group[:0], all)[:all], slices.Grow(j.lengths[:0], all)[:all]
	for r := range j.group {
		j.group[r], j.lengths[r] = int32(r), 0
	}
	for v := 1; v < len(j.bestOf); v++ {
		if a, b := j.find(j.bestOf[v]), j.find(int32(mine)+j.tourOf[v]); a != b {
			j.group[max(a, b)] = min(a, b)
		}
	}
	for r := range j.group { // what the tour's routes of a group save
		if r < mine {
			j.lengths[j.find(int32(r))] += j.best[r].length
		} else {
			j.lengths[j.find(int32(r))] -= j.tour[r-mine].length
		}
	}
	const least = 1e-9 // what sums in another order may differ by
	gained := false
	kept := j.best[:0:0]
	for r := range j.best {
		if j.lengths[j.find(int32(r))] <= least {
			kept = append(kept, j.best[r])
		} else {
			gained = true
		}
	}
	if !gained {
		return false
	}
	for r := range j.tour {
		if j.lengths[j.find(int32(mine+r))] > least {
			kept = append(kept, j.tour[r])
		}
	}
	j.best = kept
	for r := range j.best {
		for _, v := range j.best[r].customers {
			j.bestOf[v] = int32(r)
		}
	}
	return true
}

// join is the best that the tours come to; no routes where one of them alone is as short. A tour is
// what Problem.EachRoute reads.
func (j *joiner) join(tours [][]int32) vrp.Solution {
	first, shortest := 0, math.Inf(1)
	for k, tour := range tours {
		if j.tour = j.cut(j.tour, j.tourOf, tour); total(j.tour) < shortest {
			first, shortest = k, total(j.tour)
		}
	}
	j.best = j.cut(j.best, j.bestOf, tours[first])
	gained := false
	for again := true; again; gained = gained || again {
		again = false
		for _, tour := range tours {
			j.tour = j.cut(j.tour, j.tourOf, tour)
			again = j.exchange() || again
		}
	}
	if !gained {
		return vrp.Solution{}
	}
	visits := []int32{0}
	for _, r := range j.best {
		if r.depot > 0 {
			r.depot += int32(j.prob.N())
		}
		visits = append(append(visits, r.depot), r.customers...)
	}
	return j.prob.FromVisits(visits)
}
