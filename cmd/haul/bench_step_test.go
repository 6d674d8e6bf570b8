package main

import (
	"errors"
	"strings"
	"testing"
)

// TestWarmingIsBounded: twenty steps warm a machine, and of steps that take seconds two are enough.
func TestWarmingIsBounded(t *testing.T) {
	for _, c := range []struct {
		enough bool
		want   int
	}{{false, 20}, {true, 2}} {
		made := 0
		if err := warm(func() error { made++; return nil }, func() bool { return c.enough }); err != nil || made != c.want {
			t.Errorf("enough %v: %d steps, want %d; %v", c.enough, made, c.want, err)
		}
	}
	broken := errors.New("broken")
	if err := warm(func() error { return broken }, func() bool { return false }); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

func TestBenchStep(t *testing.T) {
	r := object(t, "bench", "step", "--device", "cpu", "--workers", "2", "--rounds", "5", "--set", "model.hidden_dim=32", "--set", "training.batch_size=32", "--json")
	for _, key := range []string{"ms_per_step", "instances_per_second", "flop_per_step", "gflops", "peak_gflops", "share_of_peak", "memory_bytes"} {
		if v, ok := r[key].(float64); !ok || !(v > 0) {
			t.Errorf("%s is %v", key, r[key])
		}
	}
	if r["allocs_per_step"] != 0.0 || r["device_allocs"] != 0.0 || r["launches"] != 1.0 || r["copies"] != 0.0 {
		t.Errorf("a step allocates or copies: %v", r)
	}
	refused(t, []string{"bench", "step", "--rounds", "0"}, exitUsage, "--rounds is 0")
	refused(t, []string{"bench", "step", "--config", "nosuch"}, exitFailed, "nosuch")
}

// One line has the processor, the kernels and the figures, and whatever was taken in turn.
func TestBenchStepShare(t *testing.T) {
	r := haul(t, "bench", "step", "--device", "cpu", "--workers", "1", "--rounds", "2", "--set", "model.hidden_dim=32", "--set", "model.num_layers=1", "--set", "training.batch_size=32", "--share", "--beside", "go")
	if r.code != 0 || strings.Count(r.stdout, "\n") != 1 {
		t.Fatalf("exit %d, %q, %q", r.code, r.stdout, r.stderr)
	}
	for _, want := range []string{"haul bench step: haul ", cpuModel(), "batch 32", "ms per step", "GFLOP/s", "of a peak of", "cpu (go, 1 worker) takes "} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("%q lacks %q", r.stdout, want)
		}
	}
	refused(t, []string{"bench", "step", "--share", "--json"}, exitUsage, "--share")
	refused(t, []string{"bench", "step", "--beside", "mmx"}, exitUsage, "--beside is \"mmx\"")
}
