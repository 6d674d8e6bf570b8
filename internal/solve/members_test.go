package solve

import (
	"slices"
	"testing"

	"haul/internal/vrp"
)

// TestMissingAreRequired: neither who may be left out nor a member of a group is missing by itself.
func TestMissingAreRequired(t *testing.T) {
	p := &vrp.Problem{Demand: make([]int32, 8), Optional: make([]bool, 8),
		Groups: []vrp.Group{{Members: []int32{2, 3}, Required: true}, {}, {Members: []int32{7}}}}
	p.Optional[4] = true
	if got := missing(p, []int32{1, 2, 3, 4, 5, 7}); !slices.Equal(got, []int32{1, 5}) {
		t.Errorf("%v", got)
	}
}
