package policy

import (
	"math"
	"testing"

	"haul/internal/vrp"
)

// TestKeptRoutesOfSeveralIterations: routes of different iterations are recombined, though each
// iteration overwrites the actions of the previous one.
func TestKeptRoutesOfSeveralIterations(t *testing.T) {
	p := &vrp.Problem{Capacity: 2, Demand: []int32{0, 1, 1, 1, 1, 1, 1}, X: []float64{0, 1, -1, 1.1, -1.1, 0, 0}, Y: []float64{0, 0, 0, 0, 0, 1, 1.1}}
	tours := [][]int32{{1, 2, 0, 3, 4, 0, 5, 6, 0}, {1, 3, 0, 2, 5, 0, 4, 6, 0}, {2, 4, 0, 1, 6, 0, 3, 5, 0}}
	actions := make([]int32, 9)
	copy(actions, tours[0])
	r := Routed{Solution: vrp.FromTour(tours[0])}
	r.Cost = p.Cost(r.Solution)
	k := newSearchRecombiner(p, r.Solution, actions, 1)
	for i, tour := range tours[1:] {
		copy(actions, tour)
		k.add(actions, []float32{float32(p.Cost(vrp.FromTour(tour)))})
		clear(actions)
		if did := k.improve(); did != (i == 1) || k.improve() {
			t.Errorf("after %d iterations: improved %t, and the same again", i+2, did)
		}
	}
	taken, ok := r.takeKept(k, 9)
	want := p.Cost(vrp.FromTour([]int32{5, 6, 0, 1, 3, 0, 2, 4, 0}))
	if !ok || vrp.Validate(p, r.Solution) != nil || math.Abs(r.Cost-want) > 1e-12 || math.Abs(p.Cost(vrp.FromTour(taken))-want) > 1e-12 {
		t.Errorf("%v costs %g, as actions %v; %g is there", r.Solution, r.Cost, taken, want)
	}
}

// TestKeptTourOutlivesItsActions: a solution that is stored whole does not change when the actions
// are overwritten.
func TestKeptTourOutlivesItsActions(t *testing.T) {
	p := &vrp.Problem{Capacity: 2, Demand: []int32{0, 1, 1, 1, 1}, X: []float64{0, 1, -1, 1.1, -1.1}, Y: make([]float64, 5)}
	begin, better := []int32{1, 2, 0, 3, 4, 0}, []int32{1, 3, 0, 2, 4, 0}
	k := newSearchRecombiner(p, vrp.FromTour(begin), begin, 1)
	actions := append([]int32{}, better...)
	if !k.add(actions, []float32{1}) {
		t.Fatal("a shorter tour is not taken over")
	}
	clear(actions)
	if got, want := k.solution(k.best), p.Cost(vrp.FromTour(better)); vrp.Validate(p, got) != nil || math.Abs(p.Cost(got)-want) > 1e-12 {
		t.Errorf("%v costs %g, %g when it was added", got, p.Cost(got), want)
	}
}

// TestKeptRoutesThatAreNotAllowed: if the recombined solution is invalid, the search continues with
// the last valid one.
func TestKeptRoutesThatAreNotAllowed(t *testing.T) {
	p := &vrp.Problem{Capacity: 2, Demand: []int32{0, 1, 1, 1, 1}, X: []float64{0, 1, -1, 1.1, -1.1}, Y: make([]float64, 5)}
	begin := []int32{1, 2, 0, 3, 4, 0}
	r := Routed{Solution: vrp.FromTour(begin)}
	r.Cost = p.Cost(r.Solution)
	k := newSearchRecombiner(p, r.Solution, begin, 1)
	k.best = k.cut([]int32{1, 3, 4, 2, 0}) // above the capacity
	if _, ok := r.takeKept(k, 6); ok || math.Abs(k.best.length-r.Cost) > 1e-12 {
		t.Errorf("taken %t, goes on from %g, the best that is allowed costs %g", ok, k.best.length, r.Cost)
	}
}

// TestTakeMore: an iteration's solutions are recombined with the best. A deep or last recombination
// uses routes of several iterations.
func TestTakeMore(t *testing.T) {
	p := &vrp.Problem{Capacity: 2, Demand: []int32{0, 1, 1, 1, 1, 1, 1}, X: []float64{0, 1, -1, 1.1, -1.1, 0, 0}, Y: []float64{0, 0, 0, 0, 0, 1, 1.1}}
	tours := [][]int32{{1, 2, 0, 3, 4, 0, 5, 6, 0}, {1, 3, 0, 2, 5, 0, 4, 6, 0}, {2, 4, 0, 1, 6, 0, 3, 5, 0}}
	cost := func(tour []int32) float64 { return p.Cost(vrp.FromTour(tour)) }
	best := cost([]int32{5, 6, 0, 1, 3, 0, 2, 4, 0})
	for _, deep := range []bool{false, true} {
		out := []Routed{{Solution: vrp.FromTour(tours[0]), Cost: cost(tours[0])}}
		k := newSearchRecombiner(p, out[0].Solution, tours[0], 1)
		var taken []int32
		for _, tour := range tours[1:] {
			got, err := out[0].takeMore(k, tour, []float32{float32(cost(tour))}, deep)
			if err != nil {
				t.Fatal(err)
			}
			if got != nil {
				taken = got
			}
		}
		if found := math.Abs(out[0].Cost-best) < 1e-12; found != deep || math.Abs(cost(taken)-out[0].Cost) > 1e-12 {
			t.Errorf("deep %t: %v costs %g, as actions %v; %g is there", deep, out[0].Solution, out[0].Cost, taken, best)
		}
		a := &activeSearch{kept: []*searchRecombiner{k}}
		if a.finish(&batch{steps: 9}, []*vrp.Problem{p}, out); math.Abs(out[0].Cost-best) > 1e-12 || a.kept != nil {
			t.Errorf("deep %t: %g in the end, %g is there; kept %v", deep, out[0].Cost, best, a.kept)
		}
	}
	// a group of routes is shorter: no deep recombination is needed
	begin, mixed := []int32{1, 2, 0, 3, 4, 0, 5, 6, 0}, []int32{1, 3, 0, 2, 4, 0, 5, 0, 6}
	r := Routed{Solution: vrp.FromTour(begin), Cost: cost(begin)}
	want := cost([]int32{1, 3, 0, 2, 4, 0, 5, 6, 0})
	if _, err := r.takeMore(newSearchRecombiner(p, r.Solution, begin, 1), mixed, []float32{9}, false); err != nil || math.Abs(r.Cost-want) > 1e-12 {
		t.Errorf("%v, %v costs %g, %g is there", err, r.Solution, r.Cost, want)
	}
}

// TestKeptToursAreTheShortest: the shortest solutions are selected, without duplicates.
func TestKeptToursAreTheShortest(t *testing.T) {
	p := &vrp.Problem{Capacity: 2, Demand: []int32{0, 1, 1, 1, 1}, X: []float64{0, 1, -1, 1.1, -1.1}, Y: make([]float64, 5)}
	begin := []int32{1, 2, 0, 3, 4, 0}
	k := newSearchRecombiner(p, vrp.FromTour(begin), begin, 1)
	var actions []int32
	lengths := make([]float32, keptTours+1)
	for i := range lengths {
		tour := begin
		if lengths[i] = float32(9 + i); i == keptTours {
			tour, lengths[i] = []int32{1, 3, 0, 2, 4, 0}, 5
		}
		actions = append(actions, tour...)
	}
	if !k.add(actions, lengths) || len(k.tours) != keptTours {
		t.Errorf("the shortest of %d tours is not taken over; %d count", len(lengths), len(k.tours))
	}
	if k.add(append(begin, begin...), []float32{9, 9}); len(k.tours) != 1 {
		t.Errorf("the same tour counts %d times", len(k.tours))
	}
}

// TestActiveFinishes: a search with fewer iterations than keptEvery recombines all routes at its
// end and then frees them.
func TestActiveFinishes(t *testing.T) {
	p := loadSaved(t)
	problems := drawnFor(p, 10, 2)
	s := prepared(t, p, problems, "eas8:1+join")
	if err := s.improve(t.Context(), problems, make([]Routed, len(problems)), 0); err != nil || s.active.kept != nil {
		t.Errorf("%v, kept %v", err, s.active.kept)
	}
}
