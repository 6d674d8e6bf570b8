package bench_test

import (
	"testing"

	"haul/cmd/haul/bench"
	"haul/cmd/haul/clitest/inprocess"
)

func TestBenchCost(t *testing.T) {
	rows := inprocess.Object(t, "bench", "cost", "--rounds", "3", "--json")["rows"].([]any)
	if len(rows) != len(bench.CostShapes) {
		t.Fatalf("%d rows, want %d", len(rows), len(bench.CostShapes))
	}
	for _, r := range rows {
		row := r.(map[string]any)
		if row["ns_per_batch"].(float64) <= 0 || row["loop_ns_per_batch"].(float64) <= 0 || row["allocs_per_batch"].(float64) >= 1 {
			t.Errorf("%v", row)
		}
	}
}
