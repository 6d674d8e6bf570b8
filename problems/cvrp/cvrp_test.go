package cvrp_test

import (
	"fmt"
	"testing"

	"haul/internal/rules/rulestest"
)

var settings = []map[string]string{
	{}, {"Capacity": "10"}, {"Capacity": "1048576", "CapacityMin": "12", "CapacityMax": "60"},
}

func TestRoutesAreValid(t *testing.T) { rulestest.Validate(t, "cvrp.go", settings, validate) }

// validate returns the distance of routes that serve each customer once within the capacity.
func validate(r *rulestest.Route) (float64, error) {
	var cost, load float64
	at := 0
	for _, j := range r.Visits {
		if j == 0 && at == 0 {
			return 0, fmt.Errorf("a route without customers")
		}
		cost += r.Distance(at, j)
		load += r.Node(j, "Demand")
		if j == 0 {
			load = 0
		}
		if load > r.Instance("Capacity") {
			return 0, fmt.Errorf("load %v at customer %d", load, j)
		}
		at = j
	}
	return cost, r.Once()
}
