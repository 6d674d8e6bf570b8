package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestChangesAreOfBoth: what either report has alone changed by all of it; the most changed comes
// first, up or down, and what changed alike by its name.
func TestChangesAreOfBoth(t *testing.T) {
	before := map[string]float64{"less": 5, "more": 1, "same": 2, "gone": 3}
	after := map[string]float64{"less": 1, "more": 3, "same": 2, "come": 9, "and": 2}
	want := []Change{{"come", 0, 9, 9}, {"less", 5, 1, -4}, {"gone", 3, 0, -3}, {"and", 0, 2, 2}, {"more", 1, 3, 2}, {"same", 2, 2, 0}}
	if diff := cmp.Diff(want, changes(before, after)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]Change{{"a", 0, 1, 1}}, changes(nil, map[string]float64{"a": 1})); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]Change{}, changes(nil, nil)); diff != "" {
		t.Error(diff)
	}
}
