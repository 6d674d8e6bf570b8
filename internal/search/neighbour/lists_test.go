package neighbour

import (
	"math"
	"slices"
	"testing"

	"haul/internal/search/model"
	"haul/internal/vrp"
)

// TestListsOfAMatrix: the nearest customers by a matrix are those of all by the shorter of both
// ways, whoever makes the lists and wherever a worker begins.
func TestListsOfAMatrix(t *testing.T) {
	const nodes, k = model.BruteNodes + 2*columnsBlock + 3, 9
	s := model.NewStream(8, 8)
	p := &vrp.Problem{Metric: vrp.Explicit, Demand: make([]int32, nodes), Weights: make([]float64, nodes*nodes)}
	for i := range p.Weights {
		p.Weights[i] = float64(s.IntN(900)) // many are equal
	}
	f := NewFinder(&model.FloatMatrix{P: p, N: nodes})
	one, three := NewLists(nodes-1, k), NewLists(nodes-1, k)
	f.All(t.Context(), one, 1, 1)
	f.Lists(t.Context(), three, 1, 70)
	f.All(t.Context(), three, 71, 3)
	for v := int32(1); v < nodes; v++ {
		var all []Neighbour
		for w := int32(1); w < nodes; w++ {
			if w != v {
				all = append(all, Neighbour{w, min(p.Dist(int(v), int(w)), p.Dist(int(w), int(v)))})
			}
		}
		slices.SortFunc(all, ByCost)
		for i, b := range all[:k] {
			if one.Of(v)[i] != b.V || three.Of(v)[i] != b.V {
				t.Fatalf("customer %d: %v and %v, want %v", v, one.Of(v), three.Of(v), all[:k])
			}
		}
	}
}

// TestVastListsAreTheNearest: on a map and by a matrix, a problem without a table lists as many
// nearest customers as one with it.
func TestVastListsAreTheNearest(t *testing.T) {
	p := withWindows(model.TableGeneral + 1)
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
		m := withLists(t, p)
		for v := 1; v < n; v += 397 {
			var all []float64
			for w := 1; w < n; w++ {
				if w != v {
					all = append(all, p.Dist(v, w))
				}
			}
			slices.Sort(all)
			list := m.NearOf(int32(v))
			if len(list) != model.NearestGeneral {
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
	asymmetric := withWindows(model.BruteNodes + 40)
	n := len(asymmetric.Demand)
	asymmetric.Weights = make([]float64, n*n)
	for i := range asymmetric.Weights {
		asymmetric.Weights[i] = asymmetric.Dist(i/n, i%n) + float64((3*i)%97)
	}
	asymmetric.Metric = vrp.Explicit
	groups := withWindows(model.BruteNodes + 39)
	for v := int32(1); v < 500; v += 3 {
		groups.Groups = append(groups.Groups, vrp.Group{Members: []int32{v, v + 1, v + 2}, Required: true})
	}
	depots := withWindows(model.BruteNodes + 40)
	depots.Depots = 3
	depots.Demand[1], depots.Demand[2], depots.Service[1], depots.Service[2] = 0, 0, 0, 0
	depots.Fleet, depots.Capacity = []vrp.VehicleType{vrp.NewVehicleType(60)}, 0
	bare := *depots
	bare.Windows, bare.Service = nil, nil
	for name, p := range map[string]*vrp.Problem{"windows": withWindows(model.BruteNodes + 40), "both ways": asymmetric, "groups": groups, "depots": depots, "depots without times": &bare} {
		if err := p.Check(); err != nil {
			t.Fatal(name, err)
		}
		m := withLists(t, p)
		all := &nearLists{Compiled: m, list: nearestList{most: m.Nodes}}
		for w := m.Depots; w < m.Nodes; w++ {
			all.candidates = append(all.candidates, int32(w))
		}
		found := &nearLists{Compiled: m, list: nearestList{most: most}, finder: NewFinder(&model.FloatMatrix{P: p, N: m.Nodes})}
		found.find(m.Nodes)
		for v := int32(m.Depots); int(v) < m.Nodes; v += 11 {
			all.read(v)
			found.read(v)
			if len(found.list.kept) != most {
				t.Fatalf("%s: customer %d has %d neighbours", name, v, len(found.list.kept))
			}
			cost := map[int32]float64{}
			for _, w := range all.list.kept {
				cost[w.V] = w.Cost
			}
			for i, w := range found.list.kept {
				got, ok := cost[w.V]
				// keys have 24 bits
				if want := all.list.kept[i].Cost; !ok || math.Abs(got-want) > 1e-6*want {
					t.Fatalf("%s: neighbour %d of %d is %d at %g, want %g", name, i, v, w.V, got, want)
				}
			}
		}
	}
}

// withLists compiles a problem with its lists.
func withLists(t *testing.T, p *vrp.Problem) *model.Compiled {
	m := model.Compile(p)
	List(t.Context(), m)
	return m
}

// withWindows is a problem of n customers with windows.
func withWindows(n int) *vrp.Problem {
	s := model.NewStream(5, uint64(n))
	p := &vrp.Problem{Demand: make([]int32, n+1), X: make([]float64, n+1), Y: make([]float64, n+1), Metric: vrp.Rounded,
		Capacity: 60, Windows: make([][]vrp.Window, n+1), Service: make([]float64, n+1)}
	for v := range n + 1 {
		p.X[v], p.Y[v] = float64(s.IntN(1000)), float64(s.IntN(1000))
		if v > 0 {
			from := float64(s.IntN(4000))
			p.Demand[v], p.Service[v] = int32(1+s.IntN(9)), 10
			p.Windows[v] = []vrp.Window{{From: from, To: from + 1500}}
		}
	}
	return p
}

// TestNearestAreTheFirst: of any number of neighbours, ties included, those are kept that a sort of
// all of them puts first.
func TestNearestAreTheFirst(t *testing.T) {
	s := model.NewStream(9, 0)
	for _, n := range []int{0, 1, 6, 7, 8, 13, 14, 15, 21, 400} {
		l := nearestList{most: 7}
		var all []Neighbour
		for v := range n {
			b := Neighbour{int32(n - v), math.Floor(20 * s.Float())}
			all = append(all, b)
			l.add(b)
		}
		l.cut()
		slices.SortFunc(all, ByCost)
		if want := all[:min(7, n)]; !slices.Equal(l.kept, want) {
			t.Errorf("of %d: %v, want %v", n, l.kept, want)
		}
	}
}

// A list does not depend on who makes it.
func TestListsByWorkers(t *testing.T) {
	p := withWindows(1500)
	f := NewFinder(&model.FloatMatrix{P: p, N: 1501})
	one, three := NewLists(1500, 20), NewLists(1500, 20)
	f.All(t.Context(), one, 1, 1)
	f.Lists(t.Context(), three, 1, 200)
	f.All(t.Context(), three, 201, 3)
	if !slices.Equal(one.List, three.List) || slices.Contains(one.List, 0) {
		t.Error("lists differ")
	}
}
