package solve

import (
	"testing"
	"time"

	"haul/internal/vrp"
)

// TestReasonsWhoseTimeIsOver: everybody who is left out still has a reason, and whoever fits is
// taken in as long as there is time for one.
func TestReasonsWhoseTimeIsOver(t *testing.T) {
	p := &vrp.Problem{Capacity: 2, Vehicles: 2, Metric: vrp.Exact, Demand: []int32{0, 1, 1, 1, 1, 1, 1}, X: []float64{0, 1, 2, 3, 4, 5, 6}, Y: make([]float64, 7)}
	s := vrp.Solution{Routes: [][]int32{{1}}}
	past := time.Now().Add(-time.Hour)
	why := reasons(p, s, past)
	for v := int32(2); v <= 6; v++ {
		if why[v] != "no place was found for it beside the others; which limit binds was not tried" {
			t.Errorf("%d: %q", v, why[v])
		}
	}
	if got := fit(p, s, past); len(got.Routes[0]) != 2 || len(got.Routes) != 1 {
		t.Errorf("%v", got.Routes)
	}
	if got := fit(p, s, time.Time{}); len(got.Routes) != 2 || len(got.Routes[0])+len(got.Routes[1]) != 4 {
		t.Errorf("%v", got.Routes)
	}
}
