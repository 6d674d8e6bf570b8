package run

import "testing"

// Ranks on several cards of one machine were refused: their names differ by the card's number. And
// a run in bf16 was resumed in tf32 without a word.
func TestKindOf(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"cuda:0 (NVIDIA H200, tf32)", "cuda:3 (NVIDIA H200, tf32)", true},
		{"cuda:0 (NVIDIA H200, tf32)", "cuda:0 (NVIDIA H200, bf16)", false},
		{"cuda:0 (NVIDIA H200, tf32)", "cuda:0 (NVIDIA L4, tf32)", false},
		{"cpu (avx512, 2 workers)", "cpu (avx512, 1 worker)", true},
		{"cpu (avx512, 2 workers)", "cpu (avx2, 2 workers)", false},
		{"cpu (avx512, 2 workers)", "cuda:0 (avx512, fp32)", false},
	} {
		if got := kindOf(c.a) == kindOf(c.b); got != c.same {
			t.Errorf("%s is %s, %s is %s: the same kind %v, want %v", c.a, kindOf(c.a), c.b, kindOf(c.b), got, c.same)
		}
	}
}

func TestRanksMustHaveOnePrecision(t *testing.T) {
	a, b := identity{Device: "cpu (go)", Precision: "fp32"}, identity{Device: "cpu (go)", Precision: "bf16"}
	if got := difference(&a, &b); got != "it computes in bf16, rank 0 in fp32: bits would differ" {
		t.Error(got)
	}
}
