package policy

import (
	"slices"
	"testing"

	"haul/internal/rng"
	"haul/internal/vrp"

	"pgregory.net/rapid"
)

// TestJoinTakesTheShorterRoutes: if some routes of two solutions serve the same customers, the
// shorter ones stay. Without such groups the solutions stay as they are.
func TestJoinTakesTheShorterRoutes(t *testing.T) {
	// four customers to the right of the depot and four to the left
	p := &vrp.Problem{Capacity: 4, Demand: []int32{0, 1, 1, 1, 1, 1, 1, 1, 1},
		X: []float64{0, 1, 2, 3, 4, -1, -2, -3, -4}, Y: []float64{0, 0, 1, 0, 1, 0, 1, 0, 1}, MaxDuration: 100}
	right, left := []int32{1, 3, 4, 2}, []int32{5, 7, 8, 6}
	bent := func(r []int32) []int32 { return []int32{r[1], r[0], r[2], r[3]} }
	tour := func(routes ...[]int32) (out []int32) {
		for _, r := range routes {
			out = append(append(out, r...), 0)
		}
		return out
	}
	a, b := tour(right, bent(left)), tour(left, bent(right))
	got := newRecombiner(p).join([][]int32{a, b})
	want := vrp.FromTour(tour(right, left))
	if got.Routes == nil || p.Cost(got) != p.Cost(want) || vrp.Validate(p, got) != nil {
		t.Errorf("%v costs %g, %v %g", got, p.Cost(got), want, p.Cost(want))
	}
	mixed := tour([]int32{1, 5}, []int32{3, 7}, []int32{2, 4, 6, 8})
	for what, tours := range map[string][][]int32{"one tour": {a}, "the same twice": {a, a}, "nothing in common": {a, mixed}} {
		if got := newRecombiner(p).join(tours); got.Routes != nil {
			t.Errorf("%s: %v", what, got)
		}
	}
	// the return of open routes has no cost: serving the farthest customer first is longer
	p.Open = true
	if got := newRecombiner(p).join([][]int32{tour([]int32{1, 2, 3, 4}, []int32{8, 7, 6, 5}), tour([]int32{5, 6, 7, 8}, []int32{4, 3, 2, 1})}); got.Routes == nil ||
		p.Cost(got) != p.Cost(vrp.FromTour(tour([]int32{1, 2, 3, 4}, []int32{5, 6, 7, 8}))) {
		t.Errorf("open routes: %v", got)
	}
}

// TestJoinIsNeverLonger: the recombination of random solutions of any variant is valid, no longer
// than each of them, and cannot be improved by recombining it with one of them.
func TestJoinIsNeverLonger(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kinds := []string{"cvrp", "ovrp", "mdcvrp", "mdovrp"}
		mix, err := vrp.ParseMix(rapid.SampledFrom(kinds).Draw(t, "kind"))
		if err != nil {
			t.Fatal(err)
		}
		src := vrp.Source{N: rapid.IntRange(1, 9).Draw(t, "customers"), Capacity: 30, DemandMin: 1, DemandMax: 9, Purpose: rng.TestInstances, Mix: mix}
		b := vrp.NewBatch(1, src.N, src.Capacity)
		src.Fill(b, rapid.Uint64Range(0, 1000).Draw(t, "instance"))
		p := b.Problem(0)
		depots := int32(p.DepotCount())
		tours := make([][]int32, rapid.IntRange(1, 6).Draw(t, "tours"))
		costs := make([]float64, len(tours))
		for k := range tours {
			order := rapid.Permutation(numbers(src.N)).Draw(t, "order")
			visits, load := []int32{0}, int32(0)
			begin := func() {
				d := rapid.Int32Range(0, depots-1).Draw(t, "depot")
				if load = 0; d > 0 {
					d += int32(src.N)
				}
				visits = append(visits, d)
			}
			begin()
			for _, v := range order {
				demand := p.Demand[int(v)-1+int(depots)]
				if load+demand > p.Load() || rapid.Bool().Draw(t, "home") {
					begin()
				}
				load += demand
				visits = append(visits, v)
			}
			tours[k] = append(visits, 0)
			costs[k] = p.Cost(p.FromVisits(tours[k]))
		}
		got := newRecombiner(p).join(tours)
		if got.Routes == nil {
			return
		}
		if err := vrp.Validate(p, got); err != nil {
			t.Fatal(err)
		}
		if cost := p.Cost(got); !(cost < slices.Min(costs)) {
			t.Fatalf("%g, the tours cost %v", cost, costs)
		}
		if again := newRecombiner(p).join(append(tours, p.Visits(got))); again.Routes != nil {
			t.Fatalf("%v can be joined once more: %v", got, again)
		}
	})
}

func numbers(n int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(i + 1)
	}
	return out
}

// TestDecodersJoin: routes are no longer than those of the decoder without +join, for any batch,
// and an active search continues from them.
func TestDecodersJoin(t *testing.T) {
	p := loadSaved(t)
	problems := drawnFor(p, 14, 6)
	shorter := 0
	for _, name := range []string{"pomo:1", "sample8:9", "eas:3"} {
		alone, err := p.RouteMany(t.Context(), problems, ManyOptions{Decode: parsed(t, name)})
		if err != nil {
			t.Fatal(err)
		}
		joined, err := p.RouteMany(t.Context(), problems, ManyOptions{Decode: parsed(t, name+"+join")})
		if err != nil {
			t.Fatal(err)
		}
		again, err := p.RouteMany(t.Context(), problems, ManyOptions{Decode: parsed(t, name+"+join"), Batch: 4})
		if err != nil {
			t.Fatal(err)
		}
		for i := range problems {
			if joined[i].Cost > alone[i].Cost && name != "eas:3" || joined[i].Cost != again[i].Cost {
				t.Errorf("%s, problem %d: %g, joined %g, by fours %g", name, i, alone[i].Cost, joined[i].Cost, again[i].Cost)
			}
			if joined[i].Cost < alone[i].Cost {
				shorter++
			}
		}
	}
	if shorter < 3 {
		t.Errorf("%d of 18 have become shorter", shorter)
	}
}

// TestTheFirstVehicleLeavesFromWhereItWasPlaced: a solution whose first action is a depot starts
// there, even if another depot is nearer to its first customer.
func TestTheFirstVehicleLeavesFromWhereItWasPlaced(t *testing.T) {
	mix, err := vrp.ParseMix("mdcvrp")
	if err != nil {
		t.Fatal(err)
	}
	src := vrp.Source{N: 5, Capacity: 30, DemandMin: 1, DemandMax: 3, Purpose: rng.TestInstances, Mix: mix}
	b := vrp.NewBatch(1, src.N, src.Capacity)
	src.Fill(b, 0)
	p := b.Problem(0)
	seen := map[int32]bool{}
	for _, first := range []int32{0, 6, 7} {
		for _, join := range []bool{false, true} {
			var r Routed
			take := r.takeBest
			if join {
				take = r.takeRecombined
			}
			if _, err := take(p, []int32{first, 1, 2, 3, 4, 5, 0}, []float32{1}); err != nil {
				t.Fatal(err)
			}
			if want := max(0, first-5); p.Types()[r.Solution.Types[0]].Start != int(want) {
				t.Errorf("first action %d: it leaves from depot %d", first, p.Types()[r.Solution.Types[0]].Start)
			}
			seen[r.Solution.Types[0]] = true
		}
	}
	if len(seen) != 3 {
		t.Errorf("it leaves from %v", seen)
	}
}
