package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"haul/cmd/haul/clitest"
	"haul/internal/run"
)

// smallRoom is a room whose learners live a few milliseconds; they learn next to nothing.
var smallRoom = []string{"data", "darkroom", "--set", "grid_size=3", "--set", "horizon=8", "--set", "n_steps=40", "--set", "n_epochs=2", "--streams", "4", "--steps", "960"}

// made holds the histories that were made, by their flags: equal flags give equal bytes, which
// TestDataDarkroom holds them to.
var made = map[string][]byte{}

// histories are learning histories in the small room, in a file of the test's own; more flags go
// over the room's.
func histories(t *testing.T, more ...string) string {
	t.Helper()
	path, key := filepath.Join(t.TempDir(), "room.hist"), strings.Join(more, " ")
	if made[key] == nil {
		if r := haul(t, slices.Concat(smallRoom, []string{"--out", path}, more)...); r.code != exitDone {
			t.Fatalf("exit %d: %s", r.code, r.stderr)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		made[key] = data
	}
	if err := os.WriteFile(path, made[key], 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// smallAgent is a run of six iterations on such histories. The shipped settings ask for bf16 on a
// GPU; a CPU takes them too.
func smallAgent(t *testing.T, history string, more ...string) (dir string, args []string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "run")
	args = []string{"train", "--model", "AD", "--config", "ad_dr_compressed", "--device", "cpu", "--history", history, "--out", dir, "--iterations", "6"}
	for _, set := range []string{"compress_interval=16", "compress_min=8", "n_transit=40", "tf_n_embd=16", "tf_n_layer=1", "tf_n_head=2", "train_batch_size=12",
		"num_warmup_steps=2", "train_n_stream=4", "train_source_timesteps=240", "test_batch_size=16", "eval_agents=2", "eval_episodes=5",
		"summary_interval=2", "eval_interval=3", "gen_interval=6", "num_workers=2", "validation_goals=0"} {
		args = append(args, "--set", set)
	}
	return dir, override(args, more...)
}

func TestDataDarkroom(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "room.hist")
	args := append(smallRoom[:len(smallRoom):len(smallRoom)], "--out", path)
	made := object(t, append(args, "--json", "--workers", "1")...)
	if made["goals"] != 9.0 || made["streams"] != 4.0 || made["steps_per_stream"] != 240.0 || made["optimal_return"].(float64) <= 7 || made["steps_per_second"].(float64) <= 0 {
		t.Errorf("%v", made)
	}
	for _, picture := range []string{".svg", ".png"} {
		if st, err := os.Stat(path + picture); err != nil || st.Size() == 0 {
			t.Errorf("the learners' curves: %v", err)
		}
	}
	one, err := os.ReadFile(path)
	if err != nil || float64(len(one)) != made["bytes"] {
		t.Errorf("%d bytes, %v; want %v", len(one), err, made["bytes"])
	}
	refused(t, args, exitFailed, "--force")
	r := haul(t, append(args, "--force", "--workers", "2")...)
	if r.code != exitDone || !strings.Contains(r.stdout, "share of the optimum") || strings.Contains(r.stdout+r.stderr, "\x1b") {
		t.Errorf("exit %d, %s%s", r.code, r.stdout, r.stderr)
	}
	if two, err := os.ReadFile(path); err != nil || !bytes.Equal(one, two) {
		t.Errorf("two workers write another file than one: %v", err)
	}
	if other, err := os.ReadFile(histories(t, "--seed", "7")); err != nil || bytes.Equal(one, other) {
		t.Errorf("another seed writes the same file: %v", err)
	}
}

func TestTrainAgent(t *testing.T) {
	history := histories(t)
	dir, args := smallAgent(t, history)
	r := haul(t, args...)
	if r.code != exitDone || strings.Contains(r.stdout+r.stderr, "\x1b") {
		t.Fatalf("exit %d: %s", r.code, r.stderr)
	}
	if !strings.Contains(r.stdout, "haul eval --checkpoint "+dir) || !strings.Contains(r.stderr, "3×3, episodes of 8 steps") || !strings.Contains(r.stderr, ", fp32") {
		t.Errorf("out:\n%s\nerr:\n%s", r.stdout, r.stderr)
	}
	for _, name := range []string{"config.yaml", "last.safetensors", "best.safetensors", "csv/history_ad.csv", "csv/test_ad.csv", "csv/in_context_ad.csv",
		"curves.svg", "curves.png", "in_context.svg", "in_context.png", "episodes.svg", "episodes.png"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	events, _ := filepath.Glob(filepath.Join(dir, "events.out.tfevents.*"))
	if len(events) != 1 {
		t.Fatalf("event files: %v", events)
	}
	raw, err := os.ReadFile(events[0])
	for _, tag := range []string{"train/loss_action", "train/acc_action", "train/loss_token_type", "train/acc_token_type", "test/loss_action", "test/acc_action"} {
		if err != nil || !bytes.Contains(raw, []byte(tag)) {
			t.Errorf("TensorBoard has no %s: %v", tag, err)
		}
	}

	refused(t, args, exitFailed, "--resume")
	if more := haul(t, "train", "--resume", dir, "--history", history, "--device", "cpu", "--iterations", "8"); more.code != exitDone || !strings.Contains(more.stderr, "resumed   after 6 iterations") {
		t.Errorf("--resume: exit %d, %s", more.code, more.stderr)
	}
	csv, err := os.ReadFile(filepath.Join(dir, "csv", "history_ad.csv"))
	if err != nil || strings.Count(string(csv), "\n") != 5 || !strings.Contains(string(csv), "\n8,") {
		t.Errorf("the history of eight iterations is\n%s%v", csv, err)
	}
	if forced := haul(t, append(args, "--force", "--data", "host")...); forced.code != exitDone || !strings.Contains(forced.stderr, "on the host: 2 workers") {
		t.Errorf("--force: exit %d, %s", forced.code, forced.stderr)
	}
}

// TestAgentDataPaths: rows drawn on the device, and rows from the loader with any number of
// workers, end in the same weights.
func TestAgentDataPaths(t *testing.T) {
	history := histories(t)
	loss := func(more ...string) (last float64) {
		_, args := smallAgent(t, history, append(more, "--set", "labels=found", "--json")...)
		r := haul(t, args...)
		if r.code != exitDone {
			t.Fatalf("exit %d: %s", r.code, r.stderr)
		}
		kinds := map[string]int{}
		for line := range strings.Lines(r.stdout) {
			var v map[string]any
			if err := json.Unmarshal([]byte(line), &v); err != nil {
				t.Fatal(err)
			}
			kinds[v["event"].(string)]++
			if v["event"] == "train" && v["allocations"] != 0.0 {
				t.Errorf("iterations allocate on the device: %s", line)
			}
			if v["event"] == "test" {
				last = v["loss_action"].(float64)
			}
		}
		if kinds["train"] != 3 || kinds["test"] != 2 || kinds["in_context"] != 1 {
			t.Errorf("%v", kinds)
		}
		if !strings.Contains(r.stderr, "done: 6 iterations") {
			t.Errorf("the summary is not on standard error:\n%s", r.stderr)
		}
		return last
	}
	want := loss("--data", "device")
	for _, workers := range []string{"3", "1"} {
		if got := loss("--data", "host", "--workers", workers); got != want {
			t.Errorf("%s workers: the last test's loss is %v, want %v", workers, got, want)
		}
		if testing.Short() {
			return // one worker, and another seed, have no goroutine that three do not
		}
	}
	if loss("--seed", "7") == want {
		t.Error("another seed ends in the same loss")
	}
}

func TestAgentCtrlC(t *testing.T) {
	history := histories(t)
	dir, args := smallAgent(t, history, "--iterations", "1000000", "--set", "gen_interval=1000000")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	words := &stopAfter{line: "held-out", cancel: cancel}
	if code := execute(ctx, args, &bytes.Buffer{}, words); code != exitInterrupted {
		t.Errorf("exit %d: %s", code, words.String())
	}
	_, again, ok := strings.Cut(strings.TrimSpace(words.String()), "continue with haul ")
	if !ok || !strings.HasPrefix(again, "train --resume "+dir) {
		t.Fatalf("it ends with\n%s", words.String())
	}
	resumes(t, append(strings.Fields(again), "--device", "cpu")...)
}

func TestEvalAgent(t *testing.T) {
	history := histories(t)
	dir, args := smallAgent(t, history)
	if r := haul(t, args...); r.code != exitDone {
		t.Fatalf("exit %d: %s", r.code, r.stderr)
	}
	base := []string{"eval", "--model", "AD", "--checkpoint", dir, "--history", history, "--device", "cpu"}
	with := func(more ...string) []string { return override(base, more...) }
	picture := filepath.Join(t.TempDir(), "x.svg")
	held := object(t, with("--json", "--plot", picture)...)
	if len(held["goals"].([]any)) != 1 || len(held["return"].([]any)) != 5 || held["agents_per_goal"] != 2.0 || held["context_tokens"] != 35.0 || held["iteration"] != 6.0 {
		t.Errorf("%v", held)
	}
	for _, path := range []string{picture, strings.TrimSuffix(picture, ".svg") + "-episodes.svg"} {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
	greedy := object(t, with("--json", "--goals", "all", "--temperature", "0", "--agents", "3", "--episodes", "4", "--workers", "1")...)
	if len(greedy["goals"].([]any)) != 9 || len(greedy["return"].([]any)) != 4 {
		t.Errorf("%v", greedy)
	}
	for _, g := range greedy["goals"].([]any) {
		for _, se := range g.(map[string]any)["return_se"].([]any) {
			if se != 0.0 {
				t.Errorf("greedy agents on one goal differ: %v", g)
			}
		}
	}
	if testing.Short() {
		return // what follows evaluates once more, or refuses
	}
	if r := haul(t, with("--goals", "train")...); r.code != exitDone || !strings.Contains(r.stdout, "on 8 goals with 2 agents on each") || !strings.Contains(r.stdout, "learner") {
		t.Errorf("exit %d, %s%s", r.code, r.stdout, r.stderr)
	}
	if r := haul(t, "eval", "--checkpoint", filepath.Join(dir, "best.safetensors"), "--history", history); r.code != exitDone {
		t.Errorf("a file, and no --model: exit %d, %s", r.code, r.stderr)
	}

	policyDir, policy := tiny(t, "--epochs", "1")
	if r := haul(t, policy...); r.code != exitDone {
		t.Fatalf("exit %d: %s", r.code, r.stderr)
	}
	for _, c := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"another grid", with("--history", histories(t, "--set", "grid_size=4")), exitFailed, "trained in another world (Dark Room"},
		{"no histories", with("--history", "nosuch.hist"), exitFailed, "haul data darkroom --out nosuch.hist"},
		{"the other model", []string{"eval", "--model", "GT+RL", "--checkpoint", dir}, exitUsage, "holds a model of AD, not of GT+RL"},
		{"a policy as an agent", []string{"eval", "--model", "AD", "--checkpoint", policyDir}, exitUsage, "holds a model of GT+RL, not of AD"},
		{"unknown model", with("--model", "DQN"), exitUsage, `unknown model "DQN"`},
		{"unknown goals", with("--goals", "most"), exitUsage, `unknown --goals "most"`},
		{"no episodes", with("--episodes", "0"), exitUsage, "--episodes is 0"},
		{"no agents", with("--agents", "0"), exitUsage, "--agents is 0"},
		{"below zero", with("--temperature", "-1"), exitUsage, "--temperature is -1"},
		{"decode", with("--decode", "pomo"), exitUsage, "--decode is for GT+RL"},
		{"count", with("--count", "5"), exitUsage, "--count is for GT+RL"},
		{"an agent's flag for a policy", []string{"eval", "--checkpoint", policyDir, "--episodes", "5"}, exitUsage, "--episodes is for AD"},
		{"to route with", []string{"solve", write(t, "square.vrp", clitest.SquareVRP), "--policy", dir}, exitFailed, `model "AD", not GT+RL`},
		{"resume as the other", []string{"train", "--model", "GT+RL", "--resume", dir}, exitUsage, "holds a run of AD, not of GT+RL"},
		{"resume in another room", []string{"train", "--resume", dir, "--history", histories(t, "--set", "grid_size=4"), "--device", "cpu"}, exitFailed, "another world"},
		{"resume with other histories", []string{"train", "--resume", dir, "--history", histories(t, "--seed", "7"), "--device", "cpu"}, exitFailed, "other learning histories"},
		{"resume with another rate", []string{"train", "--resume", dir, "--history", history, "--device", "cpu", "--set", "lr=0.5"}, exitFailed, "lr: 0.0006"},
	} {
		t.Run(c.name, func(t *testing.T) { refused(t, c.args, c.code, c.want) })
	}
}

func TestBadAgent(t *testing.T) {
	wholeOnly(t)
	history := histories(t)
	dir, args := smallAgent(t, history)
	with := func(more ...string) []string { return override(args, more...) }
	whole, err := os.ReadFile(history)
	if err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Clone(whole)
	damaged[len(damaged)-100] ^= 4
	out := filepath.Join(t.TempDir(), "x.hist")
	making := func(more ...string) []string {
		return override(smallRoom, append([]string{"--out", out}, more...)...)
	}
	for _, c := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"no histories", with("--history", "nosuch.hist"), exitFailed, "haul data darkroom --out nosuch.hist"},
		{"no histories of XLand", []string{"train", "--config", "ad_xland", "--device", "cpu", "--history", "nosuch.hist"}, exitFailed, "haul data xland --learner search --out nosuch.hist"},
		{"no histories of tables", []string{"train", "--config", "ad_tabular", "--device", "cpu", "--history", "nosuch.hist"}, exitFailed, "haul data tabular DR9-70-5 --out nosuch.hist"},
		{"no histories of one's own", []string{"train", "--config", "ad_any", "--device", "cpu", "--history", "nosuch.hist"}, exitFailed, "haul data import FILE --out nosuch.hist"},
		{"no histories of Key-to-Door", []string{"train", "--config", "ad_keydoor", "--device", "cpu", "--history", "nosuch.hist"}, exitFailed, "haul data keydoor --out nosuch.hist"},
		{"histories cut short", with("--history", write(t, "cut.hist", string(whole[:len(whole)/2]))), exitFailed, "cut short"},
		{"a bad checksum", with("--history", write(t, "bad.hist", string(damaged))), exitFailed, "bad checksum"},
		{"a foreign file", with("--history", write(t, "foreign.hist", "no histories at all")), exitFailed, "not a history file"},
		{"an empty file", with("--history", write(t, "empty.hist", "")), exitFailed, "empty"},
		{"a folder of histories", with("--history", t.TempDir()), exitFailed, "not a regular file"},
		{"a context past the position table", with("--set", "n_transit=35"), exitFailed, "need 36 positions, over n_transit 35"},
		{"a context past the streams", with("--set", "use_compressed_context=false", "--set", "n_transit=241"), exitFailed, "no stream holds such a context"},
		{"no streams to learn from", with("--set", "train_n_stream=0"), exitFailed, "set train_n_stream to"},
		{"heads that do not divide", with("--set", "tf_n_head=3"), exitFailed, "tf_n_head"},
		{"a place for histories", with("--data", "cloud"), exitUsage, `unknown --data "cloud"`},
		{"fewer iterations than the warm-up", with("--iterations", "1"), exitFailed, "num_warmup_steps 2 is over the 1 iterations"},
		{"no iterations", with("--iterations", "0"), exitUsage, "--iterations is 0"},
		{"epochs", with("--epochs", "3"), exitUsage, "--epochs is for GT+RL"},
		{"tf32 on a CPU", with("--precision", "tf32"), exitUsage, "tf32 is for GPUs"},
		{"settings of the other model", []string{"train", "--model", "AD", "--config", "quick"}, exitFailed, "settings of GT+RL (routing), not of AD"},
		{"an agent's settings for a policy", []string{"train", "--model", "GT+RL", "--config", "ad_dr"}, exitFailed, "settings of AD (the in-context agent), not of GT"},
		{"iterations of a policy", []string{"train", "--config", "tiny_1", "--iterations", "5"}, exitUsage, "--iterations is for AD"},
		{"histories of a policy", []string{"train", "--history", history}, exitUsage, "--history is for AD"},

		{"zero streams", making("--streams", "0"), exitUsage, "--streams is 0"},
		{"zero streams by a setting", making("--set", "n_stream=0"), exitUsage, "n_stream=0"},
		{"zero steps", making("--steps", "0"), exitUsage, "--steps is 0"},
		{"zero learners at a time", making("--workers", "0"), exitUsage, "--workers is 0"},
		{"too few steps to learn", making("--steps", "100"), exitUsage, "never learn"},
		{"a room of one cell", making("--set", "grid_size=1"), exitUsage, "grid_size=1"},
		{"an agent's settings for histories", making("--config", "ad_dr"), exitFailed, "not of PPO"},
		{"a folder for a file", making("--out", t.TempDir()), exitFailed, "is a folder"},
		{"a folder that cannot be made", making("--out", filepath.Join(history, "x.hist")), exitFailed, "cannot write"},
		{"unknown room", []string{"data", "darkrom"}, exitUsage, `did you mean "darkroom"`},
	} {
		t.Run(c.name, func(t *testing.T) { refused(t, c.args, c.code, c.want) })
	}
	for _, path := range []string{dir, out} {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("what was refused left %s behind", path)
		}
	}
}

// TestMeasuredAgent: the verbs that take a step apart take an agent's too.
func TestMeasuredAgent(t *testing.T) {
	sets := []string{"--config", "ad_dr_compressed", "--device", "cpu", "--json", "--set", "compress_interval=20", "--set", "tf_n_embd=16", "--set", "tf_n_layer=1", "--set", "train_batch_size=8", "--set", "train_n_stream=4"}
	r := object(t, append([]string{"bench", "step", "--rounds", "3"}, sets...)...)
	if r["tokens"] != 44.0 || r["device_allocs"] != 0.0 || r["launches"] != 1.0 || r["copies"] != 0.0 || !(r["flop_per_step"].(float64) > 0) {
		t.Errorf("%v", r)
	}
	l := object(t, append([]string{"profile", "--steps", "2"}, sets...)...)
	var stages []string
	for _, s := range l["stages"].([]any) {
		stages = append(stages, s.(map[string]any)["stage"].(string))
	}
	for _, want := range []string{"generate", "encode", "loss", "backward", "optimizer"} {
		if !slices.Contains(stages, want) {
			t.Errorf("stages %v lack %s", stages, want)
		}
	}
}

// An evaluation, and a resumed run, asked for histories whose place the run knew.
func TestAgentRemembersItsHistories(t *testing.T) {
	wholeOnly(t)
	home := t.TempDir()
	t.Chdir(home) // a relative path is remembered whole
	history := histories(t)
	if err := os.Rename(history, "mine.hist"); err != nil {
		t.Fatal(err)
	}
	dir, args := smallAgent(t, "mine.hist")
	r := haul(t, args...)
	if r.code != exitDone || strings.Contains(r.stdout, "--history") {
		t.Fatalf("exit %d, %s%s", r.code, r.stdout, r.stderr)
	}
	t.Chdir(t.TempDir())
	eval := []string{"eval", "--checkpoint", dir, "--device", "cpu"}
	if r := haul(t, eval...); r.code != exitDone || !strings.Contains(r.stdout, "on 1 goal with 2 agents") {
		t.Errorf("eval: exit %d, %s%s", r.code, r.stdout, r.stderr)
	}
	if r := haul(t, "train", "--resume", dir, "--device", "cpu", "--iterations", "7"); r.code != exitDone {
		t.Errorf("resume: exit %d, %s", r.code, r.stderr)
	}

	kept, other := filepath.Join(home, "mine.hist"), histories(t, "--seed", "7")
	moved := filepath.Join(t.TempDir(), "moved.hist")
	if err := os.Rename(kept, moved); err != nil {
		t.Fatal(err)
	}
	resume := []string{"train", "--resume", dir, "--device", "cpu", "--iterations", "8"}
	refused(t, eval, exitFailed, "gone from "+kept+": say with --history")
	refused(t, resume, exitFailed, "gone from "+kept+": say with --history")
	if err := os.Rename(other, kept); err != nil {
		t.Fatal(err)
	}
	refused(t, eval, exitFailed, kept+" holds other learning histories")
	refused(t, resume, exitFailed, "other learning histories")
	if r := haul(t, append(resume, "--history", moved)...); r.code != exitDone {
		t.Errorf("resume with --history: exit %d, %s", r.code, r.stderr)
	}
	if r := haul(t, eval...); r.code != exitDone { // the run has learned where they are
		t.Errorf("eval after that: exit %d, %s", r.code, r.stderr)
	}
}

// Where memory is short, eval named settings, which it has no flag to change.
func TestEvalAgentAdvisesItsOwnFlags(t *testing.T) {
	wholeOnly(t)
	if _, known := run.AvailableMemory(); !known {
		t.Skip("this system does not tell how much memory it has")
	}
	dir, args := smallAgent(t, histories(t))
	if r := haul(t, args...); r.code != exitDone {
		t.Fatalf("exit %d: %s", r.code, r.stderr)
	}
	refused(t, []string{"eval", "--checkpoint", dir, "--device", "cpu", "--agents", "100000000"}, exitFailed, ": --agents ")
	refused(t, []string{"eval", "--checkpoint", dir, "--device", "cpu", "--episodes", "1000000000000"}, exitFailed, ": --episodes ")
}
