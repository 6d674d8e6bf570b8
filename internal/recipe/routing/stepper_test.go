package routing

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"haul/internal/rng"
	"haul/internal/vrp"
)

// A prepared program gives each problem the routes that a program of its own would give it, in any
// order and again.
func TestStepperForgetsWhatItSolved(t *testing.T) {
	p := loadSaved(t)
	src := p.Source(rng.TestInstances)
	batch := vrp.NewBatch(3, src.N, src.Capacity)
	src.Fill(batch, 0)
	for _, name := range []string{"greedy", "pomo8", "sample:4"} {
		d, err := ParseDecode(name)
		if err != nil {
			t.Fatal(err)
		}
		s, err := p.Prepare(src.N, src.Capacity, d)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range []int{0, 1, 2, 1, 0, 0} {
			want, wantCost, err := p.Solve(t.Context(), batch.Problem(i), d)
			if err != nil {
				t.Fatal(err)
			}
			got, cost, err := s.Solve(t.Context(), batch.Problem(i))
			if diff := cmp.Diff(want, got); err != nil || diff != "" || cost != wantCost {
				t.Errorf("%s: instance %d: %v, cost %g, want %g: %s", name, i, err, cost, wantCost, diff)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
