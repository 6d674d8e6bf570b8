package vrp_test

import (
	"fmt"
	"math"
	"testing"

	"haul/internal/rules/rulestest"
)

func TestRoutesAreValid(t *testing.T) {
	var settings []map[string]string
	for kind := range 32 {
		settings = append(settings, map[string]string{"Mix": fmt.Sprint(int32(1) << kind)})
	}
	rulestest.Validate(t, "vrp.go", settings, validate)
}

// validate returns the distance of routes that serve each customer once and keep the
// capacity at every stop, the order of deliveries and pickups, the windows, the limit and the end.
func validate(r *rulestest.Route) (float64, error) {
	var total float64
	for _, route := range split(r.Visits) {
		if len(route) == 0 {
			return 0, fmt.Errorf("a route without customers")
		}
		cost, err := validateRoute(r, route)
		if err != nil {
			return 0, err
		}
		total += cost
	}
	return total, r.Once()
}

// split returns the customers between visits to the depot.
func split(visits []int) (out [][]int) {
	var route []int
	for _, j := range visits {
		if j == 0 {
			out, route = append(out, route), nil
		} else {
			route = append(route, j)
		}
	}
	return out
}

func validateRoute(r *rulestest.Route, route []int) (float64, error) {
	var load, length, time float64
	for _, j := range route {
		load += max(0, r.Node(j, "Demand"))
	}
	at, picked := 0, false
	for _, j := range route {
		demand := r.Node(j, "Demand")
		if load > r.Instance("Capacity") || picked && demand >= 0 && r.Instance("Mixed") == 0 {
			return 0, fmt.Errorf("load %v before customer %d", load, j)
		}
		picked = picked || demand < 0
		load -= demand
		length += r.Distance(at, j)
		time = math.Max(time+r.Distance(at, j), r.Node(j, "Early"))
		if time > r.Node(j, "Late")+rulestest.Tolerance {
			return 0, fmt.Errorf("customer %d is reached at %v", j, time)
		}
		time += r.Node(j, "Service")
		at = j
	}
	home := r.Distance(at, 0)
	if r.Instance("Open") != 0 {
		home = 0
	}
	if load > r.Instance("Capacity") || length+home > r.Instance("Limit")+rulestest.Tolerance || time+home > r.Instance("End")+rulestest.Tolerance {
		return 0, fmt.Errorf("home with load %v after %v at %v", load, length+home, time+home)
	}
	return length + home, nil
}
