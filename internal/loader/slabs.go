package loader

import (
	"fmt"

	"haul/internal/kernel"
)

// The parts of a slab, by place, and how many words of each a token has.
const (
	index = iota
	labels
	firsts
)

var words = [...]int{index: kernel.TokenFields, labels: 2, firsts: 1}

// part is row r of one part of a slab.
func part(s *kernel.Slab, which, tokens, r int) []int32 {
	n := words[which] * tokens
	return s.Ints[which][r*n : (r+1)*n : (r+1)*n]
}

// NewSlabs reserves slabs in ordinary memory, for where no device reads them itself.
func NewSlabs(spec *kernel.RegionSpec, rows, n int) []*kernel.Slab {
	out := make([]*kernel.Slab, n)
	for i := range out {
		out[i] = &kernel.Slab{ID: i}
		for _, w := range words {
			out[i].Ints = append(out[i].Ints, make([]int32, rows*spec.Tokens*w))
		}
	}
	return out
}

// checkSlabs says which slab cannot hold a batch.
func checkSlabs(spec *kernel.RegionSpec, rows int, slabs []*kernel.Slab) error {
	seen := map[*kernel.Slab]bool{}
	for i, s := range slabs {
		if s == nil || seen[s] {
			return fmt.Errorf("loader: slab %d is nil or given twice", i)
		}
		seen[s] = true
		if len(s.Ints) != len(words) {
			return fmt.Errorf("loader: slab %d has %d parts; index, labels and first are needed", i, len(s.Ints))
		}
		for k, w := range words {
			if got, want := len(s.Ints[k]), rows*spec.Tokens*w; got != want {
				return fmt.Errorf("loader: part %d of slab %d has %d words; %d rows of %d tokens need %d", k, i, got, rows, spec.Tokens, want)
			}
		}
	}
	return nil
}
