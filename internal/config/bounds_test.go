package config

import (
	"fmt"
	"strings"
	"testing"
)

// Loads of instances with individual capacities are exact up to the unit, and not beyond.
func TestCapacitiesThatCannotBeDistinguished(t *testing.T) {
	const n = 1 << 10
	for high, ok := range map[int]bool{loadUnit/n - 1: true, loadUnit / n: false, loadUnit/n + 1: false} {
		_, err := Load("tiny_1", []string{fmt.Sprintf("problem.num_customers=%d", n), "problem.demand_range=[1, 9]",
			fmt.Sprintf("problem.vehicle_capacity=%d", high), fmt.Sprintf("problem.capacity_range=[50, %d]", high)})
		reported := err != nil && strings.Contains(err.Error(), "can be told apart")
		if reported == ok {
			t.Errorf("a capacity of %d: %v", high, err)
		}
	}
}
