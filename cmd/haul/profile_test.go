package main

import (
	"encoding/json"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"haul/internal/doctor"
)

// small makes any settings a step of milliseconds.
var small = []string{"--set", "training.batch_size=24", "--set", "model.hidden_dim=32", "--set", "model.num_layers=1", "--device", "cpu", "--steps", "2"}

func TestProfile(t *testing.T) {
	trace := filepath.Join(t.TempDir(), "step.json.gz")
	r := haul(t, append([]string{"profile", "--config", "tiny_1", "--json", "--trace", trace}, small...)...)
	var l struct {
		Program string  `json:"program"`
		Workers float64 `json:"workers"`
		Wall    float64 `json:"instrumented_seconds"`
		Stages  []struct {
			Seconds float64 `json:"worker_seconds"`
		} `json:"stages"`
	}
	if err := json.Unmarshal([]byte(r.stdout), &l); err != nil || r.code != exitDone || l.Program != "tiny_1" {
		t.Fatalf("exit %d, %v, %q, %q", r.code, err, r.stdout, r.stderr)
	}
	sum := 0.0
	for _, s := range l.Stages {
		sum += s.Seconds
	}
	if whole := l.Wall * l.Workers; len(l.Stages) < 6 || math.Abs(sum-whole) > 0.02*whole {
		t.Errorf("%d stages add up to %v s, the step offered %v s", len(l.Stages), sum, whole)
	}
	if _, err := doctor.ReadFile(trace); err != nil {
		t.Error(err)
	}
	if r := haul(t, append([]string{"profile", "--config", "tiny_1"}, small...)...); r.code != exitDone || !strings.Contains(r.stdout, "  1. ") || !strings.Contains(r.stdout, "instruments:") {
		t.Errorf("exit %d, %q, %q", r.code, r.stdout, r.stderr)
	}
}

func TestProfileRefuses(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--steps", "0"}, "--steps"},
		{[]string{"--trace", "step.txt"}, ".json"},
		{[]string{"more"}, "unexpected"},
	} {
		if r := haul(t, append([]string{"profile"}, c.args...)...); r.code != exitUsage || !strings.Contains(r.stderr, c.want) {
			t.Errorf("%v: exit %d, %q", c.args, r.code, r.stderr)
		}
	}
}
