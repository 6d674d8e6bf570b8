package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"haul/cmd/haul/clitest"
)

// tiny is a run of a second or so; its folder and the cache of references are the test's own.
func tiny(t *testing.T, more ...string) (dir string, args []string) {
	t.Helper()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	dir = filepath.Join(t.TempDir(), "run")
	args = []string{"train", "--config", "tiny_1", "--device", "cpu", "--out", dir}
	for _, set := range []string{"problem.num_customers=5", "training.num_batches_per_epoch=4", "training.batch_size=12", "training.num_epochs=3",
		"training.validation_instances=30", "training.validation_frequency=1", "model.hidden_dim=16", "model.num_heads=2", "model.num_layers=1"} {
		args = append(args, "--set", set)
	}
	return dir, override(args, more...)
}

func TestTrain(t *testing.T) {
	dir, args := tiny(t)
	r := haul(t, args...)
	if r.code != exitDone {
		t.Fatalf("exit %d: %s", r.code, r.stderr)
	}
	if n := strings.Count(r.stderr, "\nepoch "); n != 3 || strings.Contains(r.stderr+r.stdout, "\x1b") {
		t.Errorf("a pipe gets one plain line an epoch, not\n%s", r.stderr)
	}
	if !strings.Contains(r.stdout, "haul eval --checkpoint "+dir) || !strings.Contains(r.stderr, "avx") && !strings.Contains(r.stderr, "cpu (go") {
		t.Errorf("out:\n%s\nerr:\n%s", r.stdout, r.stderr)
	}
	for _, name := range []string{"config.yaml", "last.safetensors", "best.safetensors", "csv/history_gt_rl.csv", "curves.svg", "curves.png", "routes.svg"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	if events, _ := filepath.Glob(filepath.Join(dir, "events.out.tfevents.*")); len(events) != 1 {
		t.Errorf("event files: %v", events)
	}

	if again := haul(t, args...); again.code != exitFailed || !strings.Contains(again.stderr, "--resume") || !strings.Contains(again.stderr, "--force") {
		t.Errorf("an existing folder: exit %d, %s", again.code, again.stderr)
	}
	if other := haul(t, "train", "--resume", dir, "--set", "model.hidden_dim=32"); other.code != exitFailed || !strings.Contains(other.stderr, "hidden_dim") {
		t.Errorf("another shape: exit %d, %s", other.code, other.stderr)
	}
	if forced := haul(t, append(args, "--force", "--epochs", "1")...); forced.code != exitDone {
		t.Errorf("--force: exit %d, %s", forced.code, forced.stderr)
	}
	if more := haul(t, "train", "--resume", dir, "--epochs", "2"); more.code != exitDone || !strings.Contains(more.stderr, "epoch 2/2") {
		t.Errorf("--resume: exit %d, %s", more.code, more.stderr)
	}
	history, err := os.ReadFile(filepath.Join(dir, "csv", "history_gt_rl.csv"))
	if err != nil || strings.Count(string(history), "\n") != 3 {
		t.Errorf("the history of two epochs is\n%s%v", history, err)
	}
}

func TestTrainJSON(t *testing.T) {
	_, args := tiny(t, "--json", "--seed", "7", "--workers", "1")
	r := haul(t, args...)
	if r.code != exitDone {
		t.Fatalf("exit %d: %s", r.code, r.stderr)
	}
	lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
	if len(lines) != 4 {
		t.Fatalf("%d lines, want one per epoch and the end:\n%s", len(lines), r.stdout)
	}
	if end := lines[3]; !strings.Contains(end, `"event":"done"`) || !strings.Contains(end, `"test_gap":`) {
		t.Errorf("the end is %s", end)
	}
	for i, line := range lines[:3] {
		var v map[string]any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		if v["epoch"] != float64(i+1) || v["val_cpc"].(float64) <= 0 || v["instances"] != 48.0 || v["allocations"] != 0.0 {
			t.Errorf("epoch %d is %s", i+1, line)
		}
	}
	if !strings.Contains(r.stderr, "done: 3 epochs") {
		t.Errorf("the summary is not on standard error:\n%s", r.stderr)
	}
}

// stopAfter cancels once a line has been printed. It embeds no buffer, whose ReadFrom would pass
// Write by.
type stopAfter struct {
	text   strings.Builder
	line   string
	cancel func()
}

func (s *stopAfter) Write(p []byte) (int, error) {
	if strings.Contains(string(p), s.line) {
		s.cancel()
	}
	return s.text.Write(p)
}

func (s *stopAfter) String() string { return s.text.String() }

func TestCtrlC(t *testing.T) {
	dir, args := tiny(t, "--set", "training.num_epochs=1000000", "--set", "training_advanced.use_early_stopping=false")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	words := &stopAfter{line: "epoch 1/1", cancel: cancel}
	if code := execute(ctx, args, &bytes.Buffer{}, words); code != exitInterrupted {
		t.Errorf("exit %d: %s", code, words.String())
	}
	if !strings.HasSuffix(strings.TrimSpace(words.String()), "continue with haul train --resume "+dir) {
		t.Errorf("it ends with\n%s", words.String())
	}
	if _, err := os.Stat(filepath.Join(dir, "curves.svg")); err != nil {
		t.Errorf("an interrupted run has no curves: %v", err)
	}
	resumes(t, "train", "--resume", dir)
}

// resumes goes on with a run that has no end, and interrupts it.
func resumes(t *testing.T, args ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	words := &stopAfter{line: "resumed", cancel: cancel}
	if code := execute(ctx, args, &bytes.Buffer{}, words); code != exitInterrupted || !strings.Contains(words.String(), "resumed") {
		t.Errorf("resume: exit %d, %s", code, words.String())
	}
}

// timed gives a run some time, and more of it where a busy machine lets the run do nothing in it.
func timed(t *testing.T, args ...string) (r result, limit string) {
	t.Helper()
	for d := time.Second; ; d *= 2 {
		r = haul(t, append(args[:len(args):len(args)], "--time", d.String())...)
		idle := strings.Contains(r.stderr, "was over before the run had begun") || strings.Contains(r.stdout, `"updates":0,`)
		if !idle || d > patience {
			return r, d.String()
		}
	}
}

// TestTimeIsUp: a run that is given less time than it needs saves, says how to go on and is no
// failure.
func TestTimeIsUp(t *testing.T) {
	dir, args := tiny(t, "--force", "--set", "training.num_epochs=1000000", "--set", "training_advanced.use_early_stopping=false")
	r, limit := timed(t, args...)
	if r.code != exitDone || !strings.HasPrefix(r.stdout, "time is up in epoch ") || !strings.HasSuffix(r.stdout, "continue with haul train --resume "+dir+" --time "+limit+"\n") {
		t.Fatalf("exit %d, %s\n%s", r.code, r.stdout, r.stderr)
	}
	if _, err := os.Stat(filepath.Join(dir, "result.json")); err == nil {
		t.Error("a run that goes on another time has a result")
	}
	r, _ = timed(t, "train", "--resume", dir, "--json")
	lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
	var last map[string]any
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || r.code != exitDone {
		t.Fatalf("exit %d, %v, %s", r.code, err, r.stderr)
	}
	if last["event"] != "stopped" || last["total"] != 4e6 || !(last["updates"].(float64) >= 1) || last["dir"] != dir {
		t.Errorf("the last object is %v", last)
	}
	readPage(t, "formats.md").wantKeys(t, "All recipes: `stopped`", lines[len(lines)-1], "event")

	for _, bad := range []string{"0", "-1m", "9"} {
		if r := haul(t, "train", "--time", bad); r.code != exitUsage || strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("--time %s: exit %d, %s", bad, r.code, r.stderr)
		}
	}
}

func TestEvalAndSolve(t *testing.T) {
	dir, args := tiny(t)
	if r := haul(t, args...); r.code != exitDone {
		t.Fatalf("exit %d: %s", r.code, r.stderr)
	}
	picture := filepath.Join(t.TempDir(), "r.svg")
	greedy := object(t, "eval", "--checkpoint", dir, "--count", "40", "--json", "--plot", picture)
	best := object(t, "eval", "--checkpoint", filepath.Join(dir, "best.safetensors"), "--count", "40", "--json", "--decode", "pomo8", "--workers", "1")
	if g, b := greedy["gap"].(float64), best["gap"].(float64); !(b <= g) || !(b >= -1e-4) || greedy["valid"] != true || greedy["gap_to"] != "optimum" {
		t.Errorf("greedy %v, pomo8 %v", greedy, best)
	}
	if other := object(t, "eval", "--checkpoint", dir, "--count", "40", "--json", "--seed", "5"); other["mean_cpc"] == greedy["mean_cpc"] {
		t.Error("another seed has the same instances")
	}
	if _, err := os.Stat(picture); err != nil {
		t.Error(err)
	}
	if r := haul(t, "eval", "--checkpoint", dir, "--count", "20", "--decode", "sample:4"); r.code != exitDone || !strings.Contains(r.stdout, "sample:4") {
		t.Errorf("exit %d, %s%s", r.code, r.stdout, r.stderr)
	}

	square, sol := write(t, "square.vrp", clitest.SquareVRP), filepath.Join(t.TempDir(), "x.sol")
	solved := object(t, "solve", square, "--policy", dir, "--set", "decode=pomo8", "--force", "--out", sol, "--plot", picture, "--json")
	if solved["method"] != "policy" || solved["valid"] != true || solved["cost"].(float64) < 68 {
		t.Errorf("%v", solved)
	}
	if r := haul(t, "check", square, sol); r.code != exitDone {
		t.Errorf("its own routes are refused: %s", r.stderr)
	}

	if testing.Short() {
		return // what follows refuses
	}
	foreign := write(t, "foreign.safetensors", "not a checkpoint")
	for _, c := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"no checkpoint", []string{"eval"}, exitUsage, "what to test with --checkpoint"},
		{"no such checkpoint", []string{"eval", "--checkpoint", "nosuch"}, exitFailed, "nosuch"},
		{"a foreign file", []string{"eval", "--checkpoint", foreign}, exitFailed, "foreign.safetensors"},
		{"an empty folder", []string{"eval", "--checkpoint", t.TempDir()}, exitFailed, "last.safetensors"},
		{"unknown decode", []string{"eval", "--checkpoint", dir, "--decode", "beam"}, exitUsage, `unknown decode "beam"`},
		{"no samples", []string{"eval", "--checkpoint", dir, "--decode", "sample:0"}, exitUsage, "sample:0"},
		{"eval count 0", []string{"eval", "--checkpoint", dir, "--count", "0"}, exitUsage, "--count is 0"},
		{"eval picture", []string{"eval", "--checkpoint", dir, "--plot", "x.gif"}, exitUsage, ".svg or .png"},
		{"solve with two methods", []string{"solve", square, "--policy", dir, "--method", "exact"}, exitUsage, "use one of them"},
		{"decode without a policy", []string{"solve", square, "--set", "decode=pomo"}, exitUsage, "--policy"},
		{"a policy without a file", []string{"solve", "--policy", dir}, exitUsage, "name the file"},
		{"solve with a foreign file", []string{"solve", square, "--policy", foreign}, exitFailed, "foreign.safetensors"},
		{"no coordinates to read", []string{"solve", write(t, "tri.vrp", clitest.ExplicitVRP), "--policy", dir}, exitFailed, "no coordinates"},
		{"resume as a run of another seed", []string{"train", "--resume", dir, "--seed", "9"}, exitFailed, "random_seed"},
	} {
		t.Run(c.name, func(t *testing.T) { refused(t, c.args, c.code, c.want) })
	}
}

func TestBadTraining(t *testing.T) {
	wholeOnly(t)
	dir, args := tiny(t)
	with := func(more ...string) []string { return override(args, more...) }
	for _, c := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"unknown model", with("--model", "GNN+RL"), exitUsage, "known are GT+RL, GAT+RL, AD"},
		{"unknown device", with("--device", "tpu"), exitUsage, `unknown device "tpu"`},
		{"unknown precision", with("--precision", "int4"), exitUsage, `unknown precision "int4"`},
		{"no workers", with("--workers", "0"), exitUsage, "--workers is 0"},
		{"no epochs", with("--epochs", "0"), exitUsage, "--epochs is 0"},
		{"batch 0", with("--set", "training.batch_size=0"), exitUsage, "batch_size"},
		{"heads that do not divide", with("--set", "model.num_heads=5"), exitFailed, "num_heads"},
		{"no such config", []string{"train", "--config", "tiny_2"}, exitFailed, "did you mean tiny_1"},
		{"resume and out", with("--resume", "x"), exitUsage, "use one of them"},
		{"force without out", []string{"train", "--force"}, exitUsage, "--out"},
		{"nothing to resume", []string{"train", "--resume", filepath.Join(t.TempDir(), "none")}, exitFailed, "nothing to resume"},
		{"a file to resume", []string{"train", "--resume", write(t, "last.safetensors", "x")}, exitFailed, "a run is continued by its folder: --resume "},
		{"an empty folder to resume", []string{"train", "--resume", t.TempDir()}, exitFailed, "nothing to resume"},
		{"a folder that cannot be made", []string{"train", "--out", write(t, "file", "") + "/run"}, exitFailed, "run folder"},
	} {
		t.Run(c.name, func(t *testing.T) { refused(t, c.args, c.code, c.want) })
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("a refused run left a folder behind")
	}
}

// TestTheEndNamesEveryFile: the summary of a run names all that a reader may open in its folder,
// result.json among them.
func TestTheEndNamesEveryFile(t *testing.T) {
	wholeOnly(t)
	_, args := tiny(t, "--epochs", "1")
	routing := haul(t, args...)
	dir := filepath.Join(t.TempDir(), "ppo")
	learner := haul(t, "train", "--model", "PPO", "--device", "cpu", "--out", dir, "--iterations", "1", "--set", "grid_size=3", "--set", "n_steps=20", "--set", "n_stream=4", "--set", "batch_size=20", "--set", "n_epochs=1")
	for name, r := range map[string]result{args[6]: routing, dir: learner} {
		if r.code != exitDone {
			t.Fatalf("exit %d: %s", r.code, r.stderr)
		}
		err := filepath.WalkDir(name, func(path string, d os.DirEntry, err error) error {
			file := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), ".png"), ".svg")
			// the settings, and what TensorBoard reads
			if err != nil || d.IsDir() || strings.HasPrefix(file, ".") || strings.HasPrefix(file, "events.") || file == "config.yaml" {
				return err
			}
			if !strings.Contains(r.stdout, file) {
				t.Errorf("the end does not name %s:\n%s", path, r.stdout)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}
