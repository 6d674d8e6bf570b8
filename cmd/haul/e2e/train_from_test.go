package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"haul/policies"
)

// fromSettings are those of a run that is over in a blink.
var fromSettings = []string{"--set", "problem.num_customers=5", "--set", "training.num_batches_per_epoch=4", "--set", "training.batch_size=32",
	"--set", "training.validation_instances=50", "--set", "training.validation_frequency=1", "--set", "model.hidden_dim=16", "--set", "model.num_heads=2",
	"--set", "model.num_layers=1", "--set", "baseline.eval_batches=1", "--device", "cpu", "--workers", "1"}

// TestFromBeginsWithTheWeights: a run whose learning rate changes nothing validates as the weights
// that it began with, baseline included, whatever its seed; without --from it does not.
func TestFromBeginsWithTheWeights(t *testing.T) {
	wholeOnly(t)
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

// TestFromAPolicyBySettingsOfItsName: a policy is trained on by the settings of its own name, which
// are those of its network. Views that a policy has and a run has not, or the other way round, are
// told of, and nothing is where both have the same.
func TestFromAPolicyBySettingsOfItsName(t *testing.T) {
	wholeOnly(t)
	for _, name := range policies.Names() {
		for _, views := range []string{"false", "true"} {
			if views == "true" && name != "cvrp20" && name != "cvrp50" {
				continue // as cvrp50, and several times as long
			}
			r := haul(t, "train", "--config", name, "--from", name, "--seed", "99", "--device", "cpu", "--workers", "1", "--epochs", "1", "--out", filepath.Join(t.TempDir(), "run"),
				"--set", "training.num_batches_per_epoch=1", "--set", "training.batch_size=1", "--set", "training.validation_instances=2", "--set", "model.start_views="+views)
			var told []string
			if viewed := fmt.Sprint(name == "cvrp20"); viewed != views {
				told = append(told, "model.start_views was "+viewed+" there and is "+views+" here")
			}
			words := strings.Join(strings.Fields(r.stderr), " ")
			if r.code != exitDone || strings.Count(words, " there and is ") != len(told) || !strings.Contains(words, strings.Join(told, "")) {
				t.Errorf("%s: exit %d, want %v of %s", name, r.code, told, r.stderr)
			}
		}
	}
}

// TestFromOneDepotToSeveral: a policy of one depot's problems begins to learn those of several, and
// the run says what is new; the other way round is refused.
func TestFromOneDepotToSeveral(t *testing.T) {
	wholeOnly(t)
	few := []string{"train", "--config", "vrp20", "--device", "cpu", "--epochs", "1", "--set", "training.num_batches_per_epoch=1",
		"--set", "training.batch_size=1", "--set", "training.validation_instances=2"}
	one, several := filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "several")
	if r := haul(t, append(few, "--set", "problem.attributes=all", "--out", one)...); r.code != exitDone {
		t.Fatalf("exit %d: %s", r.code, r.stderr)
	}
	few = append(few, "--seed", "99")
	r := haul(t, append(few, "--from", one, "--out", several)...)
	if words := strings.Join(strings.Fields(r.stderr), " "); r.code != exitDone || !strings.Contains(words, "new to them are several, dx, dy, home") {
		t.Fatalf("exit %d: %s", r.code, r.stderr)
	}
	if r := haul(t, append(few, "--set", "problem.attributes=all", "--from", several, "--out", filepath.Join(t.TempDir(), "run"))...); r.code != exitFailed ||
		!strings.Contains(r.stderr, "its network is another one") {
		t.Errorf("from several depots to one: exit %d: %s", r.code, r.stderr)
	}
}

func TestFromIsRefused(t *testing.T) {
	wholeOnly(t)
	dir := t.TempDir()
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--from", "cvrp7"}, exitFailed, "no such file, run folder or policy (policies: cvrp20"},
		{append(fromSettings, "--from", "cvrp20"), exitFailed, "its network is another one than the settings ask for"},
		// three layers of nine
		{[]string{"--config", "tiny_1", "--device", "cpu", "--set", "model.pointer_pairs=true", "--from", "cvrp20"}, exitFailed, "the settings have no such weight"},
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

// TestFromTellsOfOneSeed: a run that begins with weights and with the seed that made them would see
// the same instances again.
func TestFromTellsOfOneSeed(t *testing.T) {
	wholeOnly(t)
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

// TestFromTellsOfAnotherModel: what no weight's shape shows is told where it differs.
func TestFromTellsOfAnotherModel(t *testing.T) {
	wholeOnly(t)
	dir := t.TempDir()
	for _, c := range []struct{ name, from, set, told string }{
		{name: "plain", set: "model.pointer_distance=0"},
		{name: "near", set: "model.pointer_distance=0.3", from: "plain", told: "model.pointer_distance was 0.0 there and is 0.3 here"},
		{name: "nearer", set: "model.pointer_distance=0.3", from: "near"},
		{name: "plain again", set: "model.pointer_distance=0", from: "near", told: "model.pointer_distance was 0.3 there and is 0.0 here"},
		{name: "viewed", set: "model.start_views=true", from: "plain", told: "model.start_views was false there and is true here"},
		{name: "viewed again", set: "model.start_views=true", from: "viewed"},
		{name: "forced again", set: "model.start_views=false", from: "viewed", told: "model.start_views was true there and is false here"},
	} {
		args := append([]string{"train", "--config", "tiny_1", "--epochs", "1", "--set", "baseline.type=pomo", "--set", c.set, "--out", filepath.Join(dir, c.name)}, fromSettings...)
		if c.from != "" {
			args = append(args, "--from", filepath.Join(dir, c.from))
		}
		r := haul(t, args...)
		if r.code != exitDone {
			t.Fatalf("%s: exit %d: %s", c.name, r.code, r.stderr)
		}
		words := strings.Join(strings.Fields(r.stderr), " ")
		if told := strings.Contains(words, "another model"); told != (c.told != "") || !strings.Contains(words, c.told) {
			t.Errorf("%s: want %q in: %s", c.name, c.told, words)
		}
	}
}

// TestFromRefusesPairsOfNone: a network that scores pairs of nodes has other weights than one that
// does not, whichever comes first; the line names the setting and a weight. A packed policy keeps
// the setting, and is routed with and begun from as the run is.
func TestFromRefusesPairsOfNone(t *testing.T) {
	wholeOnly(t)
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	train := func(name, pairs, from string) result {
		args := append([]string{"train", "--config", "tiny_1", "--epochs", "1", "--out", at(name)}, fromSettings...)
		args = append(args, "--set", "model.pointer_pairs="+pairs)
		if from != "" {
			args = append(args, "--from", at(from))
		}
		return haul(t, args...)
	}
	for _, c := range []struct{ name, pairs, from, want string }{
		{name: "plain", pairs: "false"},
		{name: "pairs", pairs: "true"},
		{name: "again", pairs: "true", from: "pairs"},
		{name: "a", pairs: "true", from: "plain", want: "(model.pointer_pairs was false there and is true here): load checkpoint "},
		{name: "b", pairs: "false", from: "pairs", want: "(model.pointer_pairs was true there and is false here): load checkpoint "},
	} {
		r := train(c.name, c.pairs, c.from)
		if c.want == "" && r.code != exitDone {
			t.Fatalf("%s: exit %d: %s", c.name, r.code, r.stderr)
		}
		told := strings.Contains(r.stderr, c.want) && strings.Contains(r.stderr, "decoder.proj.weight") && strings.Count(r.stderr, "\n") == 1
		if c.want != "" && (r.code != exitFailed || !told) {
			t.Errorf("%s: exit %d, %s; want %d and %q", c.name, r.code, r.stderr, exitFailed, c.want)
		}
	}
	packed := at("packed.safetensors")
	object(t, "policies", "pack", at("pairs"), "--out", packed, "--json")
	if r := train("from packed", "true", "packed.safetensors"); r.code != exitDone {
		t.Errorf("from the packed policy: exit %d: %s", r.code, r.stderr)
	}
	// Without the setting the file's weights would not fit; with it the rounding to bf16 is all that
	// may send a route another way.
	costs := map[string]float64{}
	for _, checkpoint := range []string{at("pairs"), packed} {
		costs[checkpoint] = object(t, "eval", "--checkpoint", checkpoint, "--count", "64", "--decode", "pomo", "--json")["mean_cost"].(float64)
	}
	if a, b := costs[at("pairs")], costs[packed]; math.Abs(a/b-1) > 0.02 {
		t.Errorf("the run routes at %g, its packed policy at %g", a, b)
	}
}

// TestFromCountsTheRunsBefore: a file says what its weights learned from over all runs, through a
// resumed run and through a packed file, and --began names what a run of before that was kept does
// not know.
func TestFromCountsTheRunsBefore(t *testing.T) {
	wholeOnly(t)
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	train := func(args ...string) {
		t.Helper()
		if r := haul(t, append([]string{"train", "--device", "cpu"}, args...)...); r.code != exitDone {
			t.Fatalf("exit %d: %s", r.code, r.stderr)
		}
	}
	packed := func(run, out string, more ...string) (instances float64, runs []any, seconds float64) {
		t.Helper()
		r := object(t, append([]string{"policies", "pack", run, "--out", out, "--json"}, more...)...)
		return r["instances"].(float64), r["runs"].([]any), r["train_seconds"].(float64)
	}
	begin := func(name string, more ...string) {
		t.Helper()
		train(append(append([]string{"--config", "tiny_1", "--out", at(name), "--epochs", "1"}, fromSettings...), more...)...)
	}
	const epoch = 4 * 32 // instances
	begin("first")
	begin("second", "--from", at("first"), "--seed", "2")
	train("--resume", at("second"), "--epochs", "3")
	n, runs, _ := packed(at("second")+"/last.safetensors", at("second.safetensors"))
	if n != 4*epoch || len(runs) != 2 {
		t.Errorf("two runs, one of them resumed: %v instances of %v, want %d of two", n, runs, 4*epoch)
	}
	begin("third", "--from", at("second.safetensors"), "--seed", "3")
	n, runs, seconds := packed(at("third"), at("third.safetensors"))
	if n != 5*epoch || len(runs) != 3 || runs[1].(map[string]any)["instances"] != 3.0*epoch {
		t.Errorf("three runs: %v instances of %v, want %d of three", n, runs, 5*epoch)
	}
	var sum float64
	for _, r := range runs {
		sum += r.(map[string]any)["train_seconds"].(float64)
	}
	if !(seconds > 0) || seconds < sum-1e-9 || seconds > sum+1e-9 {
		t.Errorf("%v seconds, of its runs %v", seconds, sum)
	}
	n, runs, _ = packed(at("third"), at("named.safetensors"), "--began", at("first"))
	if n != 2*epoch || len(runs) != 2 {
		t.Errorf("what is named takes the place of what is known: %v instances of %v", n, runs)
	}
	// the second knows of the first: both ways tell of one chain
	for _, named := range [][]string{{"second"}, {"first", "second"}} {
		var more []string
		for _, run := range named {
			more = append(more, "--began", at(run))
		}
		if n, runs, _ := packed(at("third"), at("named.safetensors"), append(more, "--force")...); n != 5*epoch || len(runs) != 3 {
			t.Errorf("began with %v: %v instances of %v, want %d of three", named, n, runs, 5*epoch)
		}
	}
	refused(t, []string{"policies", "pack", at("third"), "--out", at("x.safetensors"), "--began", at("nosuch")}, exitFailed, "--began "+at("nosuch"))
}
