package cuda

import (
	"errors"
	"fmt"
	"testing"

	"haul/internal/cu"
)

// TestDescriptionsKeepTheirPlaces: one that was given before is found again, and no place is given
// twice, however many there are.
func TestDescriptionsKeepTheirPlaces(t *testing.T) {
	var p descriptions
	asked, end := 0, uint64(1<<20)
	alloc := func(bytes int) (memory, error) {
		asked++
		m := memory{at: end, bytes: bytes}
		end += uint64(bytes) + 4096
		return m, nil
	}
	describe := func(i int) []byte { return fmt.Appendf(nil, "%0*d", cu.TileBytes, i) }
	const many = 3*descriptionRoom/cu.TileBytes + 1
	owner := map[uint64]int{}
	for range 2 {
		for i := range many {
			at, fresh, err := p.place(describe(i), alloc)
			first, known := owner[at]
			if err != nil || at%64 != 0 || known == fresh || known && first != i {
				t.Fatalf("description %d: at %d, fresh %v, %v; the place is %d's", i, at, fresh, err, first)
			}
			owner[at] = i
		}
	}
	for at, i := range owner {
		inside := false
		for _, m := range p.rooms {
			inside = inside || at >= m.at && at+cu.TileBytes <= m.at+uint64(m.bytes)
		}
		for b := uint64(1); b < cu.TileBytes; b++ {
			if other, ok := owner[at+b]; ok {
				t.Fatalf("descriptions %d and %d overlap by %d bytes", i, other, cu.TileBytes-b)
			}
		}
		if !inside {
			t.Fatalf("description %d, at %d, is outside of what was reserved", i, at)
		}
	}
	if asked != 4 || len(p.rooms) != 4 {
		t.Errorf("%d rooms for %d descriptions", asked, many)
	}
	full := errors.New("no memory")
	var q descriptions
	if _, _, err := q.place(describe(1), func(int) (memory, error) { return memory{}, full }); err != full {
		t.Errorf("%v, want %v", err, full)
	}
	if _, fresh, err := q.place(describe(1), alloc); err != nil || !fresh {
		t.Errorf("after a failure: fresh %v, %v", fresh, err)
	}
	before, _, _ := q.place(describe(1), alloc)
	q.forget(describe(1))
	if at, fresh, err := q.place(describe(1), alloc); err != nil || !fresh || at == before {
		t.Errorf("after it was given up: at %d as before, fresh %v, %v", at, fresh, err)
	}
}
