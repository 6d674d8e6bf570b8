package tsp_test

import (
	"fmt"
	"testing"

	"haul/internal/rules/rulestest"
)

func TestToursAreValid(t *testing.T) {
	rulestest.Validate(t, "tsp.go", []map[string]string{{}, {}}, validate)
}

// validate returns the length of a tour through each place.
func validate(r *rulestest.Route) (cost float64, err error) {
	at := 0
	for i, j := range r.Visits {
		if j == 0 && i < len(r.Visits)-1 {
			return 0, fmt.Errorf("the tour closes after %d places", i)
		}
		cost += r.Distance(at, j)
		at = j
	}
	return cost, r.Once()
}
