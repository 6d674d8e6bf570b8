package reference

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"haul/internal/kernel"
	"haul/internal/rng"
)

// TestSymmetriesOfTheSquare: eight images of an instance, all different, all with the same
// distances and demands.
func TestSymmetriesOfTheSquare(t *testing.T) {
	const n = 5
	o := &kernel.Generate{Instances: kernel.Instances{Rules: kernel.Rules{Capacity: 12}},
		Drawing: kernel.Drawing{Seed: 9, Purpose: rng.TestInstances, DemandMin: 2, DemandMax: 9, Symmetries: 8}}
	seen := map[string]bool{}
	var first []float64
	for k := range uint64(8) {
		x, y, demand := make([]float64, n), make([]float64, n), make([]int32, n)
		Generate(x, y, demand, o, 8*77+k)
		if demand[0] != 0 || slices.Min(demand[1:]) < 2 || slices.Max(demand) > 9 {
			t.Errorf("demands %v", demand)
		}
		distances := []float64{}
		for i := range x {
			if x[i] < 0 || x[i] > 1 || y[i] < 0 || y[i] > 1 {
				t.Errorf("image %d leaves the square: %v %v", k, x, y)
			}
			distances = append(distances, math.Hypot(x[i]-x[0], y[i]-y[0]), float64(demand[i]))
		}
		if first == nil {
			first = distances
		}
		for i, v := range distances {
			if math.Abs(v-first[i]) > 1e-6 { // 1-x rounds
				t.Errorf("image %d has other distances or demands: %v, %v", k, distances, first)
				break
			}
		}
		seen[fmt.Sprint(x, y)] = true
	}
	if len(seen) != 8 {
		t.Errorf("%d different images of 8", len(seen))
	}
}
