package bench_test

import (
	"strings"
	"testing"

	"haul/cmd/haul/cli"
	"haul/cmd/haul/clitest/inprocess"
)

func TestBenchStep(t *testing.T) {
	r := inprocess.Object(t, "bench", "step", "--device", "cpu", "--workers", "2", "--rounds", "5", "--set", "model.hidden_dim=32", "--set", "training.batch_size=32", "--json")
	for _, key := range []string{"ms_per_step", "instances_per_second", "flop_per_step", "gflops", "peak_gflops", "share_of_peak", "memory_bytes"} {
		if v, ok := r[key].(float64); !ok || !(v > 0) {
			t.Errorf("%s is %v", key, r[key])
		}
	}
	if r["allocs_per_step"] != 0.0 || r["device_allocs"] != 0.0 || r["launches"] != 1.0 || r["copies"] != 0.0 {
		t.Errorf("a step allocates or copies: %v", r)
	}
	inprocess.Refused(t, []string{"bench", "step", "--rounds", "0"}, cli.ExitUsage, "--rounds is 0")
	inprocess.Refused(t, []string{"bench", "step", "--config", "nosuch"}, cli.ExitFailed, "nosuch")
}

// One line has the processor, the kernels and the figures, and whatever was taken in turn.
func TestBenchStepShare(t *testing.T) {
	r := inprocess.Run(t, "bench", "step", "--device", "cpu", "--workers", "1", "--rounds", "2", "--set", "model.hidden_dim=32", "--set", "model.num_layers=1", "--set", "training.batch_size=32", "--share", "--beside", "go")
	if r.Code != 0 || strings.Count(r.Stdout, "\n") != 1 {
		t.Fatalf("exit %d, %q, %q", r.Code, r.Stdout, r.Stderr)
	}
	for _, want := range []string{"haul bench step: haul ", cli.CPUModel(), "batch 32", "ms per step", "GFLOP/s", "of a peak of", "cpu (go, 1 worker) takes "} {
		if !strings.Contains(r.Stdout, want) {
			t.Errorf("%q lacks %q", r.Stdout, want)
		}
	}
	inprocess.Refused(t, []string{"bench", "step", "--share", "--json"}, cli.ExitUsage, "--share")
	inprocess.Refused(t, []string{"bench", "step", "--beside", "mmx"}, cli.ExitUsage, "--beside is \"mmx\"")
}
