package loader

import (
	"fmt"

	"haul/internal/kernel"
)

// NewSlabs reserves n slabs of so many rows in ordinary memory, for where no device reads them
// itself. row says how many words a row has in each part.
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

// checkSlabs says which slab cannot hold a batch.
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
