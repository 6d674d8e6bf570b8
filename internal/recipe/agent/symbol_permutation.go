package agent

import (
	"fmt"

	"haul/internal/kernel"
	"haul/internal/rng"
	"haul/internal/world"
)

// In a sequence, an object has the same name in all tokens and in all fields of observations.
// Labels, actions and rewards are not renamed.

// symbolPermutation permutes values that differ only by name, as data augmentation.
type symbolPermutation struct {
	sets     [][]int32
	observed int // number of a token's fields that describe observations; they come first
	width    int // per token
}

// newSymbolPermutation reads the sets of interchangeable names from the world of the histories.
func newSymbolPermutation(l *dataset) (*symbolPermutation, error) {
	named, ok := l.world.(world.Named)
	if !ok {
		return nil, fmt.Errorf("rename wants a world of things that differ by name alone, and these are histories of a %v: set rename to false", l.world)
	}
	return &symbolPermutation{named.Names(), len(l.trainSpec.Fields) - 2, l.trainSpec.Width()}, nil
}

// renames is the first index of rename's random numbers. It lies above the indices of
// kernel.RegionSpec.Row and below choices.
const renames = 1 << 30

// rename permutes the names in row g of spec, whose sequences begin as first says.
func (r *symbolPermutation) rename(index, first []int32, spec *kernel.RegionSpec, g uint64) {
	var to [world.MaxSize]int32
	for k := range first {
		if int(first[k]) == k {
			r.draw(&to, spec, g, uint32(k))
		}
		token := index[k*r.width:][:r.observed]
		for i, v := range token {
			if v >= 0 {
				token[i] = to[v]
			}
		}
	}
}

// draw shuffles every set with one random word per value.
func (r *symbolPermutation) draw(to *[world.MaxSize]int32, spec *kernel.RegionSpec, g uint64, at uint32) {
	for i := range to {
		to[i] = int32(i)
	}
	var words [4]uint32
	n := uint32(0)
	for _, set := range r.sets {
		for left := len(set) - 1; left > 0; left-- {
			if n%4 == 0 {
				words = rng.At(spec.Seed, g, renames|at<<6|n/4, spec.Purpose)
			}
			a, b := set[left], set[rng.Below(words[n%4], uint32(left+1))]
			to[a], to[b] = to[b], to[a]
			n++
		}
	}
}
