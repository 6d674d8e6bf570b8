package agent

import (
	"fmt"

	"haul/internal/kernel"
	"haul/internal/rng"
	"haul/internal/world"
)

// What a reader could break: a sequence has one name for an object, from its first token to its
// last, in all fields of observations; labels, actions and rewards keep theirs.

// renamer gives things that differ by name alone other names.
type renamer struct {
	sets     [][]int32
	observed int // fields of a token that tell of observations; they come first
	width    int // words of a token
}

// newRenamer asks the world of the histories for its names.
func newRenamer(l *dataset) (*renamer, error) {
	named, ok := l.world.(world.Named)
	if !ok {
		return nil, fmt.Errorf("rename wants a world of things that differ by name alone, and these are histories of a %v: set rename to false", l.world)
	}
	return &renamer{named.Names(), len(l.trainSpec.Fields) - 2, l.trainSpec.Width()}, nil
}

// renames numbers the draws of rename past those of the row itself (kernel.RegionSpec.Row) and
// before choices.
const renames = 1 << 30

// rename swaps names in row g of spec, whose sequences begin where first says.
func (r *renamer) rename(index, first []int32, spec *kernel.RegionSpec, g uint64) {
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

// draw shuffles every set: a word of chance for each value.
func (r *renamer) draw(to *[world.MaxSize]int32, spec *kernel.RegionSpec, g uint64, at uint32) {
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
