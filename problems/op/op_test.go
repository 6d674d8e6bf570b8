package op_test

import (
	"fmt"
	"testing"

	"haul/internal/rules/rulestest"
)

func TestToursAreValid(t *testing.T) {
	rulestest.Validate(t, "op.go", []map[string]string{{}, {"Limit": "1"}, {"Limit": "0"}}, validate)
}

// validate returns minus the prizes of a tour within the limit that visits no place twice.
func validate(r *rulestest.Route) (cost float64, err error) {
	at, length, seen := 0, 0.0, map[int]bool{}
	for i, j := range r.Visits {
		if (j == 0) != (i == len(r.Visits)-1) || seen[j] {
			return 0, fmt.Errorf("visit %d is to node %d", i, j)
		}
		seen[j] = true
		length += r.Distance(at, j)
		cost -= r.Node(j, "Prize")
		at = j
	}
	if len(r.Visits) == 0 || length > r.Instance("Limit")+rulestest.Tolerance {
		return 0, fmt.Errorf("the tour is %v long", length)
	}
	return cost, nil
}
