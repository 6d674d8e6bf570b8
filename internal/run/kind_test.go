package run

import "testing"

func TestRanksMustHaveOnePrecision(t *testing.T) {
	a, b := identity{Device: "cpu (go)", Precision: "fp32"}, identity{Device: "cpu (go)", Precision: "bf16"}
	if got := difference(&a, &b); got != "it computes in bf16, rank 0 in fp32: bits would differ" {
		t.Error(got)
	}
}
