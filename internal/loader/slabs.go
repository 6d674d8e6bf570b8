package loader

import (
	"fmt"

	"haul/internal/kernel"
)

// NewSlabs allocates n slabs of `rows` rows in ordinary memory, for devices that do not read slabs
// directly. row holds the 32-bit words of a row in each part.
func NewSlabs(row []int, rows, n int) []*kernel.Slab {
	out := make([]*kernel.Slab, n)
	for i := range out {
		out[i] = &kernel.Slab{ID: i}
		for _, w := range row {
			out[i].Ints = append(out[i].Ints, make([]int32, rows*w))
		}
	}
	return out
}

// checkSlabs returns an error that names a slab which cannot hold a batch.
func checkSlabs(row []int, rows int, slabs []*kernel.Slab) error {
	seen := map[*kernel.Slab]bool{}
	for i, s := range slabs {
		if s == nil || seen[s] {
			return fmt.Errorf("loader: slab %d is nil or given twice", i)
		}
		seen[s] = true
		if len(s.Ints) != len(row) {
			return fmt.Errorf("loader: slab %d has %d parts; a row has %d", i, len(s.Ints), len(row))
		}
		for k, w := range row {
			if got, want := len(s.Ints[k]), rows*w; got != want {
				return fmt.Errorf("loader: part %d of slab %d has %d words; %d rows of %d need %d", k, i, got, rows, w, want)
			}
		}
	}
	return nil
}
