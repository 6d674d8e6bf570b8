package solve_test

import (
	"strings"
	"testing"

	"haul/internal/solve"
	"haul/internal/vrp"
)

// TestReasons: who is not served is told why, in the validator's words.
func TestReasons(t *testing.T) {
	p := &vrp.Problem{Name: "line", Capacity: 2, Metric: vrp.Exact, Vehicles: 1,
		Demand: []int32{0, 1, 1, 1, 1, 1}, X: []float64{0, 1, 2, 3, 4, 50}, Y: make([]float64, 6),
		Windows:  [][]vrp.Window{nil, nil, nil, nil, nil, {{From: 0, To: 10}}},
		Optional: []bool{false, false, false, false, true, false}, Prize: make([]float64, 6),
		Groups: []vrp.Group{{Members: []int32{1, 2}, Required: true}}}
	why := solve.Reasons(p, vrp.Solution{Routes: [][]int32{{1}}})
	for v, want := range map[int32]string{2: "another one of its group", 3: "more time", 4: "costs more than its prize", 5: "its window closes at 10: late by 40"} {
		if !strings.Contains(why[v], want) {
			t.Errorf("%d: %q, want %q", v, why[v], want)
		}
	}
	full := solve.Reasons(p, vrp.Solution{Routes: [][]int32{{1, 4}}})
	if !strings.Contains(full[3], "it carries 3, the capacity is 2") {
		t.Errorf("%q", full[3])
	}
	if got := solve.Reasons(p, vrp.Solution{Routes: [][]int32{{1, 2, 3, 4, 5}}}); got != nil {
		t.Errorf("nobody is left: %v", got)
	}
	// The halves of a shipment share their reason.
	p.Shipments, p.Groups = []vrp.Shipment{{Pickup: 1, Delivery: 5, Amount: []int32{1}}}, nil
	why = solve.Reasons(p, vrp.Solution{Routes: [][]int32{{2, 3}}})
	if why[1] == "" || why[1] != why[5] {
		t.Errorf("%q and %q", why[1], why[5])
	}
}
