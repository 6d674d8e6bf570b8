package policy

import (
	"math"
	"testing"

	"haul/internal/vrp"
)

// TestKeptRoutesOfSeveralIterations: routes of different iterations come together, though each
// iteration writes its actions over those of the one before.
func TestKeptRoutesOfSeveralIterations(t *testing.T) {
	p := &vrp.Problem{Capacity: 2, Demand: []int32{0, 1, 1, 1, 1, 1, 1}, X: []float64{0, 1, -1, 1.1, -1.1, 0, 0}, Y: []float64{0, 0, 0, 0, 0, 1, 1.1}}
	tours := [][]int32{{1, 2, 0, 3, 4, 0, 5, 6, 0}, {1, 3, 0, 2, 5, 0, 4, 6, 0}, {2, 4, 0, 1, 6, 0, 3, 5, 0}}
	actions := make([]int32, 9)
	copy(actions, tours[0])
	r := Routed{Solution: vrp.FromTour(tours[0])}
	r.Cost = p.Cost(r.Solution)
	k := newKeptJoin(p, r.Solution, actions, 1)
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

// TestKeptTourOutlivesItsActions: so does a tour that is taken over whole.
func TestKeptTourOutlivesItsActions(t *testing.T) {
	p := &vrp.Problem{Capacity: 2, Demand: []int32{0, 1, 1, 1, 1}, X: []float64{0, 1, -1, 1.1, -1.1}, Y: make([]float64, 5)}
	begin, better := []int32{1, 2, 0, 3, 4, 0}, []int32{1, 3, 0, 2, 4, 0}
	k := newKeptJoin(p, vrp.FromTour(begin), begin, 1)
	actions := append([]int32{}, better...)
	if !k.add(actions, []float32{1}) {
		t.Fatal("a shorter tour is not taken over")
	}
	clear(actions)
	if got, want := k.solution(k.best), p.Cost(vrp.FromTour(better)); vrp.Validate(p, got) != nil || math.Abs(p.Cost(got)-want) > 1e-12 {
		t.Errorf("%v costs %g, %g when it was added", got, p.Cost(got), want)
	}
}

// TestKeptRoutesThatAreNotAllowed: where a problem does not allow what is kept, the search goes on
// from what it allows.
func TestKeptRoutesThatAreNotAllowed(t *testing.T) {
	p := &vrp.Problem{Capacity: 2, Demand: []int32{0, 1, 1, 1, 1}, X: []float64{0, 1, -1, 1.1, -1.1}, Y: make([]float64, 5)}
	begin := []int32{1, 2, 0, 3, 4, 0}
	r := Routed{Solution: vrp.FromTour(begin)}
	r.Cost = p.Cost(r.Solution)
	k := newKeptJoin(p, r.Solution, begin, 1)
	k.best = k.cut([]int32{1, 3, 4, 2, 0}) // above the capacity
	if _, ok := r.takeKept(k, 6); ok || math.Abs(k.best.length-r.Cost) > 1e-12 {
		t.Errorf("taken %t, goes on from %g, the best that is allowed costs %g", ok, k.best.length, r.Cost)
	}
}
