package bench_test

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"haul/cmd/haul/bench"
	"haul/cmd/haul/cli"
	"haul/cmd/haul/clitest/inprocess"
)

func TestBenchScale(t *testing.T) {
	picture := filepath.Join(t.TempDir(), "s.svg")
	out := inprocess.Object(t, "bench", "scale", "--device", "cpu", "--workers", "1", "--set", "training.batch_size=32", "--set", "model.hidden_dim=16", "--set", "model.num_layers=1", "--plot", picture, "--json")
	if out["seconds_per_row"].(float64) <= 0 || len(out["model"].([]any)) != len(bench.ScaleLinks)*len(bench.ScaleRanks) {
		t.Errorf("%v", out)
	}
	if _, err := os.Stat(picture); err != nil {
		t.Error(err)
	}
	inprocess.Refused(t, []string{"bench", "scale", "--config", "ppo_darkroom"}, cli.ExitUsage, "ranks cannot share steps of")
}

// TestBenchScaleOfGivenSteps: times of another machine give its table without its card; what does
// not read as times is wrong use.
func TestBenchScaleOfGivenSteps(t *testing.T) {
	out := inprocess.Object(t, "bench", "scale", "--config", "tiny_1", "--steps", "512=10.37ms,256=5.395ms,128=3ms", "--json")
	if out["batch"].(float64) != 512 || math.Abs(out["fixed_seconds"].(float64)-0.54e-3) > 0.02e-3 || math.Abs(out["seconds_per_row"].(float64)-19.1e-6) > 0.1e-6 {
		t.Errorf("%v", out)
	}
	words := inprocess.Run(t, "bench", "scale", "--config", "tiny_1", "--steps", "512=10.37ms,256=5.395ms,128=3ms").Stdout
	if !strings.Contains(words, "Ethernet 10: 1.1 GB/s") || !regexp.MustCompile(`NVLink +4 +[0-9.]+ % +[0-9.]+ % +any`).MatchString(words) {
		t.Errorf("in words:\n%s", words)
	}
	flat := inprocess.Object(t, "bench", "scale", "--config", "tiny_1", "--steps", "512=5ms,256=5ms", "--json")["model"].([]any)
	if last := flat[len(flat)-1].(map[string]any); last["batch_for_90"] != nil {
		t.Errorf("steps that do not grow with their rows: %v", last)
	}
	for _, steps := range []string{"512", "512=10", "0=1ms,1=2ms", "512=1ms", "128=1ms,256=2ms", "512=-1ms,1=1ms"} {
		inprocess.Refused(t, []string{"bench", "scale", "--steps", steps}, cli.ExitUsage, "--steps")
	}
	for flag, value := range map[string]string{"device": "cpu", "precision": "bf16", "workers": "1"} { // which did nothing in silence
		inprocess.Refused(t, []string{"bench", "scale", "--steps", "2=2ms,1=1ms", "--" + flag, value}, cli.ExitUsage, "--"+flag+" does not go with --steps, which times nothing")
	}
	r := inprocess.Run(t, "bench", "scale", "--config", "tiny_1", "--steps", "2=2ms,1=1ms", "--set", "training.batch_size=64")
	if r.Code != cli.ExitDone || r.Stderr != "--set training.batch_size=64 has no effect: --steps is given too\n" {
		t.Errorf("%d: %q", r.Code, r.Stderr)
	}
}
