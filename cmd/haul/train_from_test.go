package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// fromSettings are those of a run that is over in a blink.
var fromSettings = []string{"--set", "problem.num_customers=5", "--set", "training.num_batches_per_epoch=4", "--set", "training.batch_size=32",
	"--set", "training.validation_instances=50", "--set", "training.validation_frequency=1", "--set", "model.hidden_dim=16", "--set", "model.num_heads=2",
	"--set", "model.num_layers=1", "--set", "baseline.eval_batches=1", "--device", "cpu"}

// TestFromBeginsWithTheWeights: a run whose learning rate changes nothing validates as the weights that it began with, baseline included,
// whatever its seed; without --from it does not.
func TestFromBeginsWithTheWeights(t *testing.T) {
	dir := t.TempDir()
	train := func(name string, args ...string) map[string]any {
		t.Helper()
		args = append(append([]string{"train", "--config", "tiny_1", "--out", filepath.Join(dir, name), "--json"}, fromSettings...), args...)
		r := haul(t, args...)
		if r.code != exitDone {
			t.Fatalf("exit %d: %s", r.code, r.stderr)
		}
		lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
		var end map[string]any
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &end); err != nil {
			t.Fatal(err)
		}
		return end
	}
	first := train("first", "--epochs", "6", "--set", "training.learning_rate=0.01")
	still := []string{"--epochs", "1", "--set", "training.learning_rate=1e-9", "--set", "training_advanced.min_lr=1e-9"}
	again := train("again", append(still, "--from", filepath.Join(dir, "first"))...)
	alone := train("alone", still...)
	want := first["best_val_cpc"].(float64)
	if got := again["best_val_cpc"].(float64); got < want-1e-4 || got > want+1e-4 {
		t.Errorf("it validates at %v, the weights that it began with at %v", got, want)
	}
	if got := alone["best_val_cpc"].(float64); got < want+1e-2 {
		t.Errorf("a run of its own validates at %v before it has learned, the trained one at %v", got, want)
	}
}

func TestFromIsRefused(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--from", "cvrp7"}, exitFailed, "no such file, run folder or policy (policies: cvrp20"},
		{append(fromSettings, "--from", "cvrp20"), exitFailed, "its network is another one than the settings ask for"},
		{[]string{"--config", "tiny_1", "--device", "cpu", "--from", "cvrp20"}, exitFailed, "the settings have no such weight"}, // three layers of six
		{[]string{"--resume", dir, "--from", "cvrp20"}, exitUsage, "use one of them"},
	} {
		args := append([]string{"train"}, c.args...)
		if c.code == exitFailed && c.args[0] != "--resume" {
			args = append(args, "--out", filepath.Join(dir, "run"))
		}
		r := haul(t, args...)
		if r.code != c.code || !strings.Contains(r.stderr, c.want) {
			t.Errorf("%v: exit %d, %s; want %d and %q", c.args, r.code, r.stderr, c.code, c.want)
		}
	}
}

// TestFromTellsOfOneSeed: a run that begins with weights and with the seed that made them would see the same instances again.
func TestFromTellsOfOneSeed(t *testing.T) {
	dir := t.TempDir()
	const told = "with the seed of their run"
	for _, c := range []struct {
		name string
		more []string
		told bool
	}{
		{name: "first"},
		{name: "same", more: []string{"--from", filepath.Join(dir, "first")}, told: true},
		{name: "other", more: []string{"--from", filepath.Join(dir, "first"), "--seed", "7"}},
	} {
		args := append([]string{"train", "--config", "tiny_1", "--epochs", "1", "--out", filepath.Join(dir, c.name)}, fromSettings...)
		r := haul(t, append(args, c.more...)...)
		if r.code != exitDone {
			t.Fatalf("%s: exit %d: %s", c.name, r.code, r.stderr)
		}
		if strings.Contains(strings.Join(strings.Fields(r.stderr), " "), told) != c.told {
			t.Errorf("%s: told of the seed: %v, want %v:\n%s", c.name, !c.told, c.told, r.stderr)
		}
	}
}

// TestFromTellsOfAnotherNetwork: what no weight's shape shows is told where it differs.
func TestFromTellsOfAnotherNetwork(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ name, from, distance, told string }{
		{name: "plain", distance: "0"},
		{name: "near", distance: "0.3", from: "plain", told: "model.pointer_distance was 0.0 there and is 0.3 here"},
		{name: "nearer", distance: "0.3", from: "near"},
		{name: "plain again", distance: "0", from: "near", told: "model.pointer_distance was 0.3 there and is 0.0 here"},
	} {
		args := append([]string{"train", "--config", "tiny_1", "--epochs", "1", "--set", "model.pointer_distance=" + c.distance, "--out", filepath.Join(dir, c.name)}, fromSettings...)
		if c.from != "" {
			args = append(args, "--from", filepath.Join(dir, c.from))
		}
		r := haul(t, args...)
		if r.code != exitDone {
			t.Fatalf("%s: exit %d: %s", c.name, r.code, r.stderr)
		}
		words := strings.Join(strings.Fields(r.stderr), " ")
		if told := strings.Contains(words, "another network"); told != (c.told != "") || !strings.Contains(words, c.told) {
			t.Errorf("%s: want %q in: %s", c.name, c.told, words)
		}
	}
}
