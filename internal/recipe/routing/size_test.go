package routing

import (
	"strings"
	"testing"

	"haul/internal/config"
	"haul/internal/policy"
	"haul/internal/run"
	"haul/internal/run/runtest"
)

// TestStepFLOPs holds the formula to the documented size of a tiny_1 step.
func TestStepFLOPs(t *testing.T) {
	cfg, err := config.Load("tiny_1", nil)
	if err != nil {
		t.Fatal(err)
	}
	m, err := policy.NewNetwork(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if g := float64(stepFLOPs(m, cfg, 128, 128*13)) / 1e9; g < 6 || g > 7 {
		t.Errorf("a tiny_1 step takes %.2f GFLOP, about 6.5 is documented", g)
	}
}

// TestTooLarge: the settings need more than any machine has, one shard of the step alone included.
func TestTooLarge(t *testing.T) {
	if _, known := run.AvailableMemory(); !known {
		t.Skip("this system does not tell its available memory")
	}
	for _, set := range [][]string{
		{"training.batch_size=1048576", "problem.num_customers=100000", "model.num_layers=20"},
		{"model.hidden_dim=16384", "model.num_layers=20"},
		{"problem.num_customers=100000", "baseline.type=pomo", "model.num_layers=20"},
	} {
		o := options(tiny(t, set...), openCPU(t, 1))
		o.Dir = runtest.OpenDir(t, runtest.Folder(t), false)
		err := run.Run(t.Context(), o)
		if err == nil || !strings.Contains(err.Error(), "of memory") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", set, err)
		}
		if _, err := CompileStep(openCPU(t, 1), tiny(t, set...)); err == nil || !strings.Contains(err.Error(), "of memory") {
			t.Errorf("a step with %s: %v", set, err)
		}
	}
}
