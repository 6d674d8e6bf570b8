package device

import "testing"

func TestParseName(t *testing.T) {
	for name, want := range map[string]Name{"cpu": {CPU: true}, "auto": {Auto: true}, "cuda": {}, "cuda:0": {}, "cuda:7": {Card: 7}} {
		if got, err := ParseName(name); err != nil || got != want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for name, want := range map[string]string{
		"":        `unknown device "": use cpu, cuda:K or auto`,
		"gpu":     `unknown device "gpu": use cpu, cuda:K or auto`,
		"cpu:0":   `unknown device "cpu:0": use cpu, cuda:K or auto`,
		"CUDA:0":  `unknown device "CUDA:0": use cpu, cuda:K or auto`,
		"cuda:":   "device cuda:: the card is a number, as in cuda:0",
		"cuda:-1": "device cuda:-1: the card is a number, as in cuda:0",
		"cuda:x":  "device cuda:x: the card is a number, as in cuda:0",
	} {
		if _, err := ParseName(name); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}

// Ranks on several cards of one machine were refused: their names differ by the card's number. And
// a run in bf16 was resumed in tf32 without a word.
func TestKind(t *testing.T) {
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
		if got := Kind(c.a) == Kind(c.b); got != c.same {
			t.Errorf("%s is %s, %s is %s: the same kind %v, want %v", c.a, Kind(c.a), c.b, Kind(c.b), got, c.same)
		}
	}
}

// TestOnGPU: by the names that users give and by those of open devices.
func TestOnGPU(t *testing.T) {
	for name, want := range map[string]bool{"cuda": true, "cuda:3": true, "cuda:1 (NVIDIA H200, tf32)": true, "cpu": false, "cpu (avx512, 2 workers)": false, "auto": false, "": false, "cudart": false} {
		if OnGPU(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}
