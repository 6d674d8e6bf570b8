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

// TestFoundListsAreTheNearest: the nearest of those that a finder has are the nearest of all
// customers where it has all of them, whatever chooses: windows, the way back, groups, depots.
func TestFoundListsAreTheNearest(t *testing.T) {
	const most = 20
	asymmetric := windows(bruteNodes + 40)
	n := len(asymmetric.Demand)
	asymmetric.Weights = make([]float64, n*n)
	for i := range asymmetric.Weights {
		asymmetric.Weights[i] = asymmetric.Dist(i/n, i%n) + float64((3*i)%97)
	}
	asymmetric.Metric = vrp.Explicit
	groups := windows(bruteNodes + 39)
	for v := int32(1); v < 500; v += 3 {
		groups.Groups = append(groups.Groups, vrp.Group{Members: []int32{v, v + 1, v + 2}, Required: true})
	}
	depots := windows(bruteNodes + 40)
	depots.Depots = 3
	depots.Demand[1], depots.Demand[2], depots.Service[1], depots.Service[2] = 0, 0, 0, 0
	depots.Fleet, depots.Capacity = []vrp.VehicleType{vrp.NewVehicleType(60)}, 0
	bare := *depots
	bare.Windows, bare.Service = nil, nil
	for name, p := range map[string]*vrp.Problem{"windows": windows(bruteNodes + 40), "both ways": asymmetric, "groups": groups, "depots": depots, "depots without times": &bare} {
		if err := p.Check(); err != nil {
			t.Fatal(name, err)
		}
		m := compile(t.Context(), p)
		all := &nearLists{model: m, list: nearList{most: m.nodes}}
		for w := m.depots; w < m.nodes; w++ {
			all.candidates = append(all.candidates, int32(w))
		}
		found := &nearLists{model: m, list: nearList{most: most}, finder: newFinder(&metricTable{p: p, n: m.nodes})}
		found.find(m.nodes)
		for v := int32(m.depots); int(v) < m.nodes; v += 11 {
			all.read(v)
			found.read(v)
			if len(found.list.kept) != most {
				t.Fatalf("%s: customer %d has %d neighbours", name, v, len(found.list.kept))
			}
			cost := map[int32]float64{}
			for _, w := range all.list.kept {
				cost[w.v] = w.cost
			}
			for i, w := range found.list.kept {
				got, ok := cost[w.v]
				if want := all.list.kept[i].cost; !ok || math.Abs(got-want) > 1e-6*want { // keys have 24 bits
					t.Fatalf("%s: neighbour %d of %d is %d at %g, want %g", name, i, v, w.v, got, want)
				}
			}
		}
	}
}
