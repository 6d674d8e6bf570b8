package bench_test

import (
	"testing"

	"haul/cmd/haul/cli"
	"haul/cmd/haul/clitest/inprocess"
)

func TestBenchMatmul(t *testing.T) {
	r := inprocess.Object(t, "bench", "matmul", "--rounds", "1", "--workers", "1", "--json")
	rows := r["rows"].([]any)
	if len(rows) != 24 || r["set"] == "" || r["workers"] != 1.0 || !(r["peak_gflops"].(float64) > 0) {
		t.Fatalf("%d rows of %v", len(rows), r)
	}
	for _, v := range rows {
		row := v.(map[string]any)
		if !(row["share"].(float64) > 0 && row["quiet"].(float64) > 0 && row["seconds"].(float64) > 0) {
			t.Errorf("%v", row)
		}
	}
	for _, args := range [][]string{{"--rounds", "0"}, {"--workers", "0"}, {"--set-name", "mmx"}} {
		if r := inprocess.Run(t, append([]string{"bench", "matmul"}, args...)...); r.Code != cli.ExitUsage {
			t.Errorf("%v: exit %d, %q", args, r.Code, r.Stderr)
		}
	}
}
