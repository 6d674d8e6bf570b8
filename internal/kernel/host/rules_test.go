package host_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"haul/internal/kernel"
	"haul/internal/kernel/host"
	"haul/internal/kernel/reference"
	"haul/internal/rng"
)

// TestInstancesAgreeWithTheReference: the words of drawn and of given instances are those of the
// reference's plain loops, for every rule set.
func TestInstancesAgreeWithTheReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		set := rapid.SampledFrom(kernel.RuleSets()).Draw(t, "set")
		n := set.Nodes(rapid.IntRange(1, 12).Draw(t, "customers"))
		wide := len(set.Columns())
		place := rapid.Custom(func(t *rapid.T) float32 { return float32(rapid.IntRange(0, 64).Draw(t, "at")) / 64 })
		x, y := rapid.SliceOfN(place, n, n).Draw(t, "x"), rapid.SliceOfN(place, n, n).Draw(t, "y")
		words := make([]int32, n*wide)
		for j := 1; j < n; j++ {
			words[j*wide] = rapid.Int32Range(1, 9).Draw(t, "demand")
		}
		compare := func(what string, fill func(words []int32, x, y []float32), plain func(words []int32, x, y []float32)) {
			gotWords, gotX, gotY := slices.Clone(words), slices.Clone(x), slices.Clone(y)
			wantWords, wantX, wantY := slices.Clone(words), slices.Clone(x), slices.Clone(y)
			fill(gotWords, gotX, gotY)
			plain(wantWords, wantX, wantY)
			if !slices.Equal(gotWords, wantWords) || !slices.Equal(gotX, wantX) || !slices.Equal(gotY, wantY) {
				t.Fatalf("%s %s: %v, %v, %v, want %v, %v, %v", set, what, gotWords, gotX, gotY, wantWords, wantX, wantY)
			}
		}
		d := kernel.Drawing{Seed: rapid.Uint64().Draw(t, "seed"), Purpose: rng.TrainInstances, Range: 3, Mix: rapid.Uint64Min(1).Draw(t, "mix")}
		g := rapid.Uint64().Draw(t, "index")
		compare("drawn", func(words []int32, x, y []float32) { host.Draw(set, words, x, y, &d, g) },
			func(words []int32, x, y []float32) { reference.Draw(set, words, x, y, &d, g) })
		own := kernel.Own{Limit: float32(math.Inf(1)), End: float32(math.Inf(1)), Attributes: kernel.Attributes(rapid.IntRange(0, 63).Draw(t, "attributes")), Depots: rapid.IntRange(0, 3).Draw(t, "depots")}
		if rapid.Bool().Draw(t, "limited") {
			own.Limit = 2
		}
		if rapid.Bool().Draw(t, "windowed") {
			own.End = 3
			for range n {
				early := place.Draw(t, "early")
				own.Windows = append(own.Windows, kernel.Window{Early: early, Late: early + place.Draw(t, "width"), Service: place.Draw(t, "service")})
			}
		}
		compare("given", func(words []int32, x, y []float32) { host.Complete(set, words, x, y, own) },
			func(words []int32, x, y []float32) { reference.Complete(set, words, x, y, own) })
	})
}
