package kernel

import (
	"encoding/json"
	"math"
	"testing"
)

// TestSumsOfAnyValueAreKept: a checkpoint in the middle of an epoch holds what was summed so far,
// be it minus infinity.
func TestSumsOfAnyValueAreKept(t *testing.T) {
	want := SumsOf(map[string]float64{"cost": 3.25, "log_cost": math.Inf(-1), "tiny": 5e-324})
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got Sums
	if err := json.Unmarshal(text, &got); err != nil || !want.Equal(got) {
		t.Errorf("%s reads back as %+v, %v", text, got, err)
	}
}
