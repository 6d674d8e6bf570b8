package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBenchSizes: a row per size, figures that agree with one another, a picture. What are no
// rising sizes is wrong use, and so are settings without customers.
func TestBenchSizes(t *testing.T) {
	picture := filepath.Join(t.TempDir(), "s.svg")
	out := object(t, "bench", "sizes", "--device", "cpu", "--workers", "1", "--customers", "4,9", "--set", "training.batch_size=6", "--set", "model.hidden_dim=16", "--set", "model.num_layers=1", "--plot", picture, "--json")
	rows := out["sizes"].([]any)
	if len(rows) != 2 {
		t.Fatalf("%v", out)
	}
	var each []float64
	for i, want := range []float64{4, 9} {
		r := rows[i].(map[string]any)
		seconds, rate := r["seconds"].(float64), r["flops_per_second"].(float64)
		if r["customers"] != want || r["batch"] != 6.0 || seconds <= 0 || math.Abs(r["instances_per_second"].(float64)*seconds-6) > 1e-6 {
			t.Errorf("%v", r)
		}
		each = append(each, rate*seconds)
	}
	if !(each[1] > 2*each[0]) {
		t.Errorf("steps of 4 and 9 customers take %v operations", each)
	}
	text, err := os.ReadFile(picture)
	if err != nil || !strings.Contains(string(text), "Instances per second") {
		t.Error(err)
	}
	for flags, want := range map[string]string{"--customers 9,4": "larger than the one before", "--customers 4,4": "larger than the one before", "--customers 0": "1 or more", "--customers x": "1 or more", "--plot x.gif": "cannot write"} {
		refused(t, append([]string{"bench", "sizes"}, strings.Fields(flags)...), exitUsage, want)
	}
	refused(t, []string{"bench", "sizes", "--config", "ppo_darkroom"}, exitUsage, keyCustomers)
}
