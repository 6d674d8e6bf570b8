package profile_test

import (
	"context"
	"encoding/json"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"haul/cmd/haul/cli"
	"haul/cmd/haul/clitest/inprocess"
	"haul/internal/doctor"
)

// small makes any settings a step of milliseconds.
var small = []string{"--set", "training.batch_size=24", "--set", "model.hidden_dim=32", "--set", "model.num_layers=1", "--device", "cpu", "--steps", "2"}

func TestProfile(t *testing.T) {
	trace := filepath.Join(t.TempDir(), "step.json.gz")
	r := inprocess.Run(t, append([]string{"profile", "--config", "tiny_1", "--json", "--trace", trace}, small...)...)
	var l struct {
		Program string  `json:"program"`
		Workers float64 `json:"workers"`
		Wall    float64 `json:"instrumented_seconds"`
		Stages  []struct {
			Seconds float64 `json:"worker_seconds"`
		} `json:"stages"`
	}
	if err := json.Unmarshal([]byte(r.Stdout), &l); err != nil || r.Code != cli.ExitDone || l.Program != "tiny_1" {
		t.Fatalf("exit %d, %v, %q, %q", r.Code, err, r.Stdout, r.Stderr)
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
	if r := inprocess.Run(t, append([]string{"profile", "--config", "tiny_1"}, small...)...); r.Code != cli.ExitDone || !strings.Contains(r.Stdout, "  1. ") || !strings.Contains(r.Stdout, "instruments:") {
		t.Errorf("exit %d, %q, %q", r.Code, r.Stdout, r.Stderr)
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
		if r := inprocess.Run(t, append([]string{"profile"}, c.args...)...); r.Code != cli.ExitUsage || !strings.Contains(r.Stderr, c.want) {
			t.Errorf("%v: exit %d, %q", c.args, r.Code, r.Stderr)
		}
	}
}

// TestProfileHeedsCtrlC: it used to measure on for up to a minute.
func TestProfileHeedsCtrlC(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	args := append([]string{"profile", "--config", "tiny_1"}, small...)
	if r := inprocess.RunIn(ctx, append(args, "--steps", "3000")...); r.Code != cli.ExitInterrupted || r.Stderr != "haul: interrupted\n" {
		t.Errorf("exit %d, %q", r.Code, r.Stderr)
	}
}
