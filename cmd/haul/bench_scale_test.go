package main

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestScaleModel: the fit finds the line that times lie on, and the batch for 90 % is where the
// model has 90 %.
func TestScaleModel(t *testing.T) {
	m := &scaleModel{Batch: 512, Bytes: 2.4e6, Sizes: []int{512, 256, 128}}
	for _, n := range m.Sizes {
		m.Times = append(m.Times, 1e-3+float64(n)*2e-5)
	}
	m.fit()
	m.predict()
	if math.Abs(m.Fixed-1e-3) > 1e-9 || math.Abs(m.Row-2e-5) > 1e-12 {
		t.Fatalf("fixed %v, per row %v", m.Fixed, m.Row)
	}
	for _, r := range m.Rows {
		c, step := m.exchange(r.link, r.Ranks), m.step(float64(r.Batch))
		if r.Batch > 0 && math.Abs(step/(step+c)-0.9) > 1e-9 {
			t.Errorf("%s, %d ranks: batch %v does not give 90 %%", r.Name, r.Ranks, r.Batch)
		}
		if r.Ranks == 1 && (r.Strong != 1 || r.Weak != 1) || r.Strong > r.Weak+1e-12 {
			t.Errorf("odd line %+v", r)
		}
	}
}

func TestBenchScale(t *testing.T) {
	picture := filepath.Join(t.TempDir(), "s.svg")
	out := object(t, "bench", "scale", "--device", "cpu", "--workers", "1", "--set", "training.batch_size=32", "--set", "model.hidden_dim=16", "--set", "model.num_layers=1", "--plot", picture, "--json")
	if out["seconds_per_row"].(float64) <= 0 || len(out["model"].([]any)) != len(scaleLinks)*len(scaleRanks) {
		t.Errorf("%v", out)
	}
	if _, err := os.Stat(picture); err != nil {
		t.Error(err)
	}
	refused(t, []string{"bench", "scale", "--config", "ppo_darkroom"}, exitUsage, "ranks cannot share steps of")
}

// TestBenchScaleOfGivenSteps: times of another machine give its table without its card; what does
// not read as times is wrong use.
func TestBenchScaleOfGivenSteps(t *testing.T) {
	out := object(t, "bench", "scale", "--config", "tiny_1", "--steps", "512=10.37ms,256=5.395ms,128=3ms", "--json")
	if out["batch"].(float64) != 512 || math.Abs(out["fixed_seconds"].(float64)-0.54e-3) > 0.02e-3 || math.Abs(out["seconds_per_row"].(float64)-19.1e-6) > 0.1e-6 {
		t.Errorf("%v", out)
	}
	words := haul(t, "bench", "scale", "--config", "tiny_1", "--steps", "512=10.37ms,256=5.395ms,128=3ms").stdout
	if !strings.Contains(words, "Ethernet 10: 1.1 GB/s") || !regexp.MustCompile(`NVLink +4 +[0-9.]+ % +[0-9.]+ % +any`).MatchString(words) {
		t.Errorf("in words:\n%s", words)
	}
	flat := object(t, "bench", "scale", "--config", "tiny_1", "--steps", "512=5ms,256=5ms", "--json")["model"].([]any)
	if last := flat[len(flat)-1].(map[string]any); last["batch_for_90"] != nil {
		t.Errorf("steps that do not grow with their rows: %v", last)
	}
	for _, steps := range []string{"512", "512=10", "0=1ms,1=2ms", "512=1ms", "128=1ms,256=2ms", "512=-1ms,1=1ms"} {
		refused(t, []string{"bench", "scale", "--steps", steps}, exitUsage, "--steps")
	}
	for flag, value := range map[string]string{"device": "cpu", "precision": "bf16", "workers": "1"} { // which did nothing in silence
		refused(t, []string{"bench", "scale", "--steps", "2=2ms,1=1ms", "--" + flag, value}, exitUsage, "--"+flag+" does not go with --steps, which times nothing")
	}
	r := haul(t, "bench", "scale", "--config", "tiny_1", "--steps", "2=2ms,1=1ms", "--set", "training.batch_size=64")
	if r.code != exitDone || r.stderr != "--set training.batch_size=64 has no effect: --steps is given too\n" {
		t.Errorf("%d: %q", r.code, r.stderr)
	}
}
