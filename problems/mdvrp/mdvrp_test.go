package mdvrp_test

import (
	"fmt"
	"math"
	"testing"

	"haul/internal/rules/rulestest"
)

func TestRoutesAreValid(t *testing.T) {
	var settings []map[string]string
	for kind := range 32 {
		several, one := map[string]string{"MixSeveral": fmt.Sprint(int32(1) << kind)}, map[string]string{"Mix": fmt.Sprint(int32(1) << kind), "MixSeveral": "0"}
		settings = append(settings, several, one)
	}
	rulestest.Validate(t, "mdvrp.go", settings, validate)
}

// validate returns the distance of routes, each from and to one depot, that serve each customer
// once and keep the capacity at every stop, the order of deliveries and pickups, the windows, the
// limit and the end.
func validate(r *rulestest.Route) (total float64, err error) {
	home, start := -1, 0
	for i, j := range r.Visits {
		if j > 0 && j <= r.Customers {
			if home < 0 {
				home = nearest(r, j)
			}
			continue
		}
		if i > start {
			cost, err := validateRoute(r, home, r.Visits[start:i])
			if err != nil {
				return 0, err
			}
			total += cost
		} else if i > 0 {
			return 0, fmt.Errorf("two visits to depots in sequence")
		}
		home, start = j, i+1
	}
	return total, r.Once()
}

// nearest returns the node of the depot that is nearest to a customer.
func nearest(r *rulestest.Route, j int) (best int) {
	for d := r.Customers + 1; d <= r.Customers+2; d++ {
		if r.Distance(d, j) < r.Distance(best, j)-1e-9 {
			best = d
		}
	}
	return best
}

func validateRoute(r *rulestest.Route, depot int, route []int) (float64, error) {
	var load, length, time float64
	for _, j := range route {
		load += max(0, r.Node(j, "Demand"))
	}
	at, picked := depot, false
	for _, j := range route {
		demand := r.Node(j, "Demand")
		if load > r.Instance("Capacity") || picked && demand >= 0 && r.Instance("Mixed") == 0 {
			return 0, fmt.Errorf("load %v before customer %d", load, j)
		}
		picked = picked || demand < 0
		load -= demand
		length += r.Distance(at, j)
		time = math.Max(time+r.Distance(at, j), r.Node(j, "Early"))
		if time > r.Node(j, "Late")+rulestest.Tolerance && len(route) > 1 {
			return 0, fmt.Errorf("customer %d is reached at %v", j, time)
		}
		time += r.Node(j, "Service")
		at = j
	}
	home := r.Distance(at, depot)
	if r.Instance("Open") != 0 {
		home = 0
	}
	// The nearest depot may serve a customer alone, even if its window is missed.
	if load > r.Instance("Capacity") || len(route) > 1 && (length+home > r.Instance("Limit")+rulestest.Tolerance || time+home > r.Instance("End")+rulestest.Tolerance) {
		return 0, fmt.Errorf("home with load %v after %v at %v", load, length+home, time+home)
	}
	return length + home, nil
}
