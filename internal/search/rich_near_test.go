package search

import (
	"math"
	"slices"
	"testing"

	"haul/internal/vrp"
)

// TestListsOfAMatrix: the nearest customers by a matrix are those of all by the shorter of both
// ways, whoever makes the lists and wherever a worker begins.
func TestListsOfAMatrix(t *testing.T) {
	const nodes, k = bruteNodes + 2*columnsBlock + 3, 9
	s := newStream(8, 8)
	p := &vrp.Problem{Metric: vrp.Explicit, Demand: make([]int32, nodes), Weights: make([]float64, nodes*nodes)}
	for i := range p.Weights {
		p.Weights[i] = float64(s.below(900)) // many are equal
	}
	f := newFinder(&metricTable{p: p, n: nodes})
	one, three := newLists(nodes-1, k), newLists(nodes-1, k)
	f.all(t.Context(), one, 1, 1)
	f.lists(t.Context(), three, 1, 70)
	f.all(t.Context(), three, 71, 3)
	for v := int32(1); v < nodes; v++ {
		var all []neighbour
		for w := int32(1); w < nodes; w++ {
			if w != v {
				all = append(all, neighbour{w, min(p.Dist(int(v), int(w)), p.Dist(int(w), int(v)))})
			}
		}
		slices.SortFunc(all, byCost)
		for i, b := range all[:k] {
			if one.of(v)[i] != b.v || three.of(v)[i] != b.v {
				t.Fatalf("customer %d: %v and %v, want %v", v, one.of(v), three.of(v), all[:k])
			}
		}
	}
}

// TestVastListsAreTheNearest: on a map and by a matrix, a problem without a table lists as many
// nearest customers as one with it.
func TestVastListsAreTheNearest(t *testing.T) {
	p := windows(richTable + 1)
	p.Windows, p.Service, p.Metric = nil, nil, vrp.Exact
	n := len(p.Demand)
	q := *p
	q.Metric, q.Weights = vrp.Explicit, make([]float64, n*n)
	for i := range n {
		for j := range n {
			q.Weights[i*n+j] = p.Dist(i, j)
		}
	}
	for _, p := range []*vrp.Problem{p, &q} {
		m := compile(t.Context(), p)
		for v := 1; v < n; v += 397 {
			var all []float64
			for w := 1; w < n; w++ {
				if w != v {
					all = append(all, p.Dist(v, w))
				}
			}
			slices.Sort(all)
			list := m.nearOf(int32(v))
			if len(list) != richNear {
				t.Fatalf("%d neighbours", len(list))
			}
			for i, w := range list {
				if d := p.Dist(v, int(w)); math.Abs(d-all[i]) > 1e-5*(1+d) {
					t.Fatalf("%v: neighbour %d of %d is %g away, want %g", p.Metric, i, v, d, all[i])
				}
			}
		}
	}
}
