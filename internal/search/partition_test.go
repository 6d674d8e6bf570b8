package search

import (
	"context"
	"slices"
	"testing"

	"haul/internal/search/cover"
	"haul/internal/search/model"
	"haul/internal/vrp"
)

// Halves of two solutions are joined to one that neither was, with the vehicles that there are.
func TestGeneralCoverJoinsHalves(t *testing.T) {
	k := vrp.NewVehicleType(10)
	k.Count = 3
	p := &vrp.Problem{Demand: []int32{0, 1, 1, 1, 1}, X: []float64{0, -10, -11, 10, 11}, Y: make([]float64, 5),
		Metric: vrp.Exact, Fleet: []vrp.VehicleType{k}}
	m := compileNear(context.Background(), p)
	c := newCandidate(m, model.NewStream(1, 1))
	for _, routes := range [][][]int32{{{1, 2}, {3}, {4}}, {{1}, {2}, {3, 4}}} {
		if !c.set(routes, []int32{0, 0, 0}, nil) {
			t.Fatal("a sample breaks a limit")
		}
		c.sample()
	}
	find := func(most int) (vrp.Solution, bool) {
		return coverRoutes(m, []*cover.Pool{c.pool}, c.cost, most, 1000, func() bool { return false })
	}
	s, ok := find(3)
	slices.SortFunc(s.Routes, slices.Compare)
	if !ok || len(s.Routes) != 2 || !slices.Equal(s.Routes[0], []int32{1, 2}) || !slices.Equal(s.Routes[1], []int32{3, 4}) {
		t.Errorf("joined to %v, %v", s.Routes, ok)
	}
	if s, ok := find(1); ok {
		t.Errorf("one vehicle drives %v", s.Routes)
	}
	m.Types[0].Count = 1
	if s, ok := find(3); ok {
		t.Errorf("one vehicle of its kind drives %v", s.Routes)
	}
}
