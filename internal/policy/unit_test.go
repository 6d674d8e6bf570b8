package policy

import (
	"fmt"
	"haul/internal/kernel"
	"haul/internal/rng"
	"haul/internal/run/runtest"
	"haul/internal/vrp"
	"math"
	"slices"
	"testing"
)

// TestSymmetriesDiffer: the eight images of a problem are eight different ones with the same
// distances, and decoding with them is told so.
func TestSymmetriesDiffer(t *testing.T) {
	p := &vrp.Problem{Capacity: 9, Demand: []int32{0, 1, 2, 3}, X: []float64{10, 30, 14, 22}, Y: []float64{5, 9, 25, 11}}
	x, y, demand := make([]float32, 32), make([]float32, 32), make([]int32, 32)
	unitRows(p, kernel.CVRP, x, y, demand)
	seen := map[string]bool{}
	for k := range 8 {
		rowX, rowY := x[4*k:][:4], y[4*k:][:4]
		seen[fmt.Sprint(rowX, rowY)] = true
		if !slices.Equal(demand[4*k:][:4], p.Demand) {
			t.Errorf("image %d has demands %v", k, demand[4*k:][:4])
		}
		for i := range rowX {
			if rowX[i] < 0 || rowX[i] > 1 || rowY[i] < 0 || rowY[i] > 1 {
				t.Errorf("image %d leaves the unit square: %v, %v", k, rowX, rowY)
			}
			for j := range i {
				want := math.Hypot(p.X[i]-p.X[j], p.Y[i]-p.Y[j]) / 20 // the larger side
				if got := math.Hypot(float64(rowX[i]-rowX[j]), float64(rowY[i]-rowY[j])); math.Abs(got-want) > 1e-6 {
					t.Errorf("image %d: %d and %d are %v apart, want %v", k, i, j, got, want)
				}
			}
		}
	}
	if len(seen) != 8 {
		t.Errorf("%d different images of 8", len(seen))
	}
	dev := runtest.Watch(openCPU(t, 1))
	path, _ := saved(t)
	policy, err := Load(dev, path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		decode             string
		symmetries, starts int
		forced             bool
		choice             kernel.Choice
	}{{"greedy", 1, 1, false, kernel.Greedy}, {"pomo", 1, 5, true, kernel.Greedy}, {"pomo8", 8, 5, true, kernel.Greedy}, {"sample:3", 1, 3, false, kernel.Sample}} {
		d, err := ParseDecode(c.decode)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := policy.Evaluate(t.Context(), EvalOptions{Source: policy.Source(rng.TestInstances), Count: 6, Decode: d, Validate: true}); err != nil {
			t.Fatal(err)
		}
		prog := dev.Programs[len(dev.Programs)-1]
		g, r := runtest.Op[*kernel.Generate](t, prog.PerShard), runtest.Op[*kernel.Rollout](t, prog.PerShard)
		if g.Symmetries != c.symmetries || prog.Batch != 6*c.symmetries || r.Length.Cols() != c.starts || r.Forced != c.forced || r.Choice != c.choice || d.Routes(5) != c.starts*c.symmetries {
			t.Errorf("%s: %d symmetries in rows of %d, %d starts, forced %v, choice %d", c.decode, g.Symmetries, prog.Batch, r.Length.Cols(), r.Forced, r.Choice)
		}
	}
}
