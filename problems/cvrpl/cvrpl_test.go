package cvrpl_test

import (
	"fmt"
	"testing"

	"haul/internal/rules/rulestest"
)

var settings = []map[string]string{
	{}, {"Range": "0"}, {"Capacity": "1048576", "CapacityMin": "12", "CapacityMax": "60"},
}

func TestRoutesAreValid(t *testing.T) { rulestest.Validate(t, "cvrpl.go", settings, validate) }

// validate returns the distance of routes that serve each customer once within the capacity and
// the limit.
func validate(r *rulestest.Route) (float64, error) {
	var cost, load, length float64
	at := 0
	for _, j := range r.Visits {
		if j == 0 && at == 0 {
			return 0, fmt.Errorf("a route without customers")
		}
		cost += r.Distance(at, j)
		length += r.Distance(at, j)
		load += r.Node(j, "Demand")
		if load > r.Instance("Capacity") || length > r.Instance("Limit")+rulestest.Tolerance {
			return 0, fmt.Errorf("load %v and length %v at node %d", load, length, j)
		}
		if j == 0 {
			load, length = 0, 0
		}
		at = j
	}
	return cost, r.Once()
}
