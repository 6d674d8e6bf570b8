package data_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"haul/cmd/haul/cli"
	"haul/cmd/haul/clitest/inprocess"
	"haul/cmd/haul/data"
	"haul/internal/world/history"
)

// trainSmall trains a small agent on histories for two iterations, with more settings.
func trainSmall(t *testing.T, history, run string, sets ...string) {
	t.Helper()
	args := []string{"train", "--config", "ad_xland", "--history", history, "--iterations", "2", "--device", "cpu", "--out", run}
	for _, set := range append([]string{"tf_n_embd=16", "tf_n_layer=1", "tf_n_head=2", "train_batch_size=4", "num_warmup_steps=1", "test_batch_size=4"}, sets...) {
		args = append(args, "--set", set)
	}
	if r := inprocess.Run(t, args...); r.Code != cli.ExitDone {
		t.Fatalf("%d\n%s", r.Code, r.Stderr)
	}
}

// TestXLandFromHistoriesToAnAgent: learners live through tasks of a file, an agent learns from them
// and is tried on the tasks held out.
func TestXLandFromHistoriesToAnAgent(t *testing.T) {
	dir := t.TempDir()
	path, run := filepath.Join(dir, "a.hist"), filepath.Join(dir, "run")
	r := inprocess.Run(t, "data", "xland", "R1-9x9", "--tasks", "../../../internal/world/xland/testdata/benchmark.bz2", "--learn", "8", "--held", "3", "--episodes", "12", "--horizon", "40", "--out", path, "--json")
	var made struct {
		Train int `json:"train_tasks"`
		Test  int `json:"test_tasks"`
		World string
	}
	if err := json.Unmarshal([]byte(r.Stdout), &made); r.Code != cli.ExitDone || err != nil || made.Train != 8 || made.Test != 3 || !strings.Contains(made.World, "benchmark.bz2") {
		t.Fatalf("%d %v %+v\n%s", r.Code, err, made, r.Stderr)
	}
	trainSmall(t, path, run, "compress_interval=60", "compress_min=20", "n_transit=124", "eval_episodes=2", "validation_goals=2")
	r = inprocess.Run(t, "eval", "--checkpoint", run, "--device", "cpu", "--episodes", "3", "--json")
	var judged struct {
		Goals   []struct{ Goal int }
		HeldOut bool `json:"held_out"`
		Env     string
		Return  []float64
	}
	if err := json.Unmarshal([]byte(r.Stdout), &judged); r.Code != cli.ExitDone || err != nil {
		t.Fatalf("%d %v\n%s", r.Code, err, r.Stderr)
	}
	if len(judged.Goals) != 3 || !judged.HeldOut || judged.Env != "xland" || len(judged.Return) != 3 {
		t.Errorf("%+v", judged)
	}
}

// TestXLandRefusals: wrong use is one line that says what to write.
func TestXLandRefusals(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "new")
	out := filepath.Join(folder, "a.hist")
	for _, c := range []struct{ args, why string }{
		{"--learn 0", "--learn is 0"},
		{"--held 0", "--held is 0"},
		{"--episodes 0", "--episodes is 0: it must be 1 to 1048576"},
		{"--view 4", "want 3, 5 or 7"},
		{"--horizon 0", "--horizon is 0"},
		{"--tasks hard", "trivial, small, medium, high"},
		{"--tasks ../../../README.md", "no pickle of a benchmark"},
		{"--tasks ../../../internal/world/xland/testdata/benchmark.bz2 --learn 10 --held 3", "benchmark.bz2 has 12"},
		{"--tasks ../../../internal/world/xland/testdata/benchmark.bz2 --task-seed 3", "--task-seed draws tasks"},
		{"R3-9x9", "unknown layout \"R3\": use R1, R2, R4, R6 or R9"},
		{"R1-5x5 --tasks small", "9 free cells"},
		{"--learner sarsa", "use q, search or ppo"},
		{"--steps 40", "--steps needs --learner search or ppo, and the learner is q"},
		{"--learner search --episodes 3", "--episodes needs --learner q"},
		{"--learner search --envs 3", "--envs needs --learner ppo, and the learner is search"},
		{"--hidden 3", "--hidden needs --learner ppo"},
		{"--learner ppo --noise 0.5", "--noise needs --learner search"},
		{"--learner ppo --steps 200", "200 steps of a history: want 243 at least"},
		{"--learner ppo --steps 300 --rollout 400", "want 400 (a rollout)"},
		{"--learner ppo --envs 0", "--histories is 1, and a network has 0 environments"},
		{"--learner ppo --histories 9 --envs 8", "--histories is 9, and a network has 8 environments"},
		{"--learner ppo --rollout 0", "0 steps of a rollout"},
		{"--learner ppo --hidden 0", "0 hidden units"},
		{"--learner ppo --rate 0", "a learning rate of 0"},
		{"--learner ppo --entropy 2", "an entropy bonus of 2"},
		{"--learner ppo --device gpu", "gpu"},
		{"--learner ppo --precision tf32", "tf32 is for GPUs: on a CPU networks learn in fp32"},
		{"--learner ppo --precision bf16", "--precision is bf16: networks learn in fp32"},
		{"--learner ppo --precision auto", "--precision is auto: networks learn in fp32"},
		{"--learner ppo --device cuda:0 --precision half", "--precision is half: networks learn in fp32, or in tf32 on a GPU"},
		{"--learner search --device cpu", "--device needs --agent or --learner ppo"},
		{"--learner search --precision fp32", "--precision needs --agent or --learner ppo"},
		{"--learner search --steps 0", "0 steps of a history"},
		{"--learner search --noise 1.5", "a share of 1.5"},
		{"--learner search --tasks medium", "has rules, which searchers do not know"},
		{"R4-13x13 --learner search", "searchers know one room"},
		{"--agent nowhere", "--agent needs --learner search"},
		{"--device cpu", "--device needs --learner search or ppo"},
	} {
		r := inprocess.Run(t, append([]string{"data", "xland", "--out", out}, strings.Fields(c.args)...)...)
		if r.Code != cli.ExitUsage || !strings.Contains(r.Stderr, c.why) || strings.Count(r.Stderr, "\n") != 1 {
			t.Errorf("%s: %d %s", c.args, r.Code, r.Stderr)
		}
		if _, err := os.Stat(folder); err == nil {
			t.Fatalf("%s: refused, and the folder of the file was made", c.args)
		}
	}
	for _, c := range []struct{ args, why string }{
		{"--envs 0", "--envs is 0"},
		{"--device cuda", "use cpu or cuda:K"},
		{"--device cuda:-1", "use cpu or cuda:K"},
		{"--device cuda:0 --workers 1", "--workers are cores"},
	} {
		r := inprocess.Run(t, append([]string{"bench", "xland"}, strings.Fields(c.args)...)...)
		if r.Code != cli.ExitUsage || !strings.Contains(r.Stderr, c.why) {
			t.Errorf("%s: %d %s", c.args, r.Code, r.Stderr)
		}
	}
}

// TestXLandNetworks: recurrent networks write whole episodes of every task, with labels; the file
// does not depend on the number of workers, and an agent can be trained on it.
func TestXLandNetworks(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	data := func(out string, more ...string) inprocess.Result {
		return inprocess.Run(t, append([]string{"data", "xland", "--learner", "ppo", "--learn", "4", "--held", "2", "--histories", "3", "--horizon", "12", "--steps", "40", "--envs", "4",
			"--rollout", "6", "--hidden", "8", "--out", path(out)}, more...)...)
	}
	var files [][]byte
	for _, c := range [][]string{{"--workers", "1"}, {"--workers", "2"}, {"--workers", "1", "--seed", "3"}} {
		out := strings.Join(c, "") + ".hist"
		r := data(out, append(c, "--json")...)
		var made struct {
			Train   int `json:"train_tasks"`
			Test    int `json:"test_tasks"`
			Streams int `json:"streams"`
			Steps   int `json:"transitions"`
		}
		if err := json.Unmarshal([]byte(r.Stdout), &made); r.Code != cli.ExitDone || err != nil || made.Train != 4 || made.Test != 2 || made.Streams != 14 || made.Steps > 14*40 || made.Steps <= 14*28 {
			t.Fatalf("%d %v %+v\n%s", r.Code, err, made, r.Stderr)
		}
		file, err := os.ReadFile(path(out))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	if !slices.Equal(files[0], files[1]) || slices.Equal(files[0], files[2]) {
		t.Errorf("files of one and two workers are equal: %v; of two seeds: %v", slices.Equal(files[0], files[1]), slices.Equal(files[0], files[2]))
	}
	trainSmall(t, path("--workers1.hist"), path("run"), "n_transit=25", "eval_episodes=1", "validation_goals=1")
	if r := data("--workers1.hist"); r.Code == cli.ExitDone || !strings.Contains(r.Stderr, "--force") {
		t.Errorf("%d: %s", r.Code, r.Stderr)
	}
}

// TestXLandAgentsLiveBesideSearchers: an agent lives through every second history, the file does
// not depend on the number of workers, and an agent of another room is refused.
func TestXLandAgentsLiveBesideSearchers(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	data := func(out string, more ...string) inprocess.Result {
		return inprocess.Run(t, append([]string{"data", "xland", "--learner", "search", "--learn", "7", "--held", "4", "--steps", "50", "--horizon", "30", "--noise", "0", "--out", path(out)}, more...)...)
	}
	if r := data("a.hist"); r.Code != cli.ExitDone {
		t.Fatal(r.Stderr)
	}
	trainSmall(t, path("a.hist"), path("run"), "n_transit=40", "eval_episodes=1", "validation_goals=2")
	for _, workers := range []string{"1", "2"} {
		if r := data("b"+workers+".hist", "--agent", path("run"), "--device", "cpu", "--workers", workers); r.Code != cli.ExitDone {
			t.Fatal(r.Stderr)
		}
	}
	var files [3][]byte
	for i, name := range []string{"a.hist", "b1.hist", "b2.hist"} {
		var err error
		if files[i], err = os.ReadFile(path(name)); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(files[1], files[2]) || slices.Equal(files[0], files[1]) {
		t.Errorf("files of one and two workers are equal: %v; with agents and without: %v", slices.Equal(files[1], files[2]), slices.Equal(files[0], files[1]))
	}
	// The first history is a searcher's, who does what it meant to; the second an agent's.
	h, err := history.Open(path("b1.hist"))
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	all := make([]int, len(h.Tasks()))
	for i := range all {
		all[i] = i
	}
	pack, err := h.Pack(all, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range pack.Spans {
		slips := 0
		for k := range s.Records {
			record := pack.Words[(s.First+int64(k))*int64(pack.Stride):][:pack.Stride]
			value := func(b int) int32 { return record[b/4] >> (8 * (b % 4)) & 0xff }
			if value(25) != value(pack.Label) {
				slips++
			}
		}
		if (slips > 0) != (i%2 == 1) {
			t.Errorf("history %d: %d actions are not what the searcher meant", i, slips)
		}
	}
	if r := data("c.hist", "--agent", path("run"), "--device", "cpu", "--view", "3"); r.Code != cli.ExitUsage || !strings.Contains(r.Stderr, "were trained in XLand-MiniGrid-R1-9x9") {
		t.Errorf("%d: %s", r.Code, r.Stderr)
	}
}

// What each flag of haul data xland is for: the learners that heed it, nil for all. The others
// refuse it.
var xlandFlagTable = map[string]struct {
	value    string
	learners []string
}{
	"tasks": {}, "task-seed": {}, "learn": {}, "held": {}, "histories": {}, "view": {}, "horizon": {}, "opaque": {}, "learner": {}, "seed": {}, "workers": {}, "out": {}, "force": {}, "json": {},
	"episodes": {"3", []string{"q"}}, "steps": {"300", []string{"search", "ppo"}}, "noise": {"0.5", []string{"search"}}, "agent": {"RUN", []string{"search"}},
	"envs": {"9", []string{"ppo"}}, "rollout": {"9", []string{"ppo"}}, "hidden": {"9", []string{"ppo"}}, "rate": {"0.1", []string{"ppo"}}, "entropy": {"0.1", []string{"ppo"}},
	"device": {"cpu", []string{"ppo"}}, "precision": {"fp32", []string{"ppo"}}, // and of searchers with --agent
}

// TestXLandRefusesWhatDoesNothing: every flag of haul data xland has its row in the table, and a
// learner that has no use for it refuses it.
func TestXLandRefusesWhatDoesNothing(t *testing.T) {
	data.NewXLand(&cli.App{}).Flags().VisitAll(func(f *pflag.Flag) {
		row, ok := xlandFlagTable[f.Name]
		if !ok {
			t.Errorf("--%s has no row in xlandFlagTable", f.Name)
		}
		for _, learner := range data.XlandLearners {
			if row.learners != nil && !slices.Contains(row.learners, learner) {
				inprocess.Refused(t, []string{"data", "xland", "--learner", learner, "--" + f.Name, row.value, "--out", filepath.Join(t.TempDir(), "x.hist")}, cli.ExitUsage, "--"+f.Name+" needs --")
			}
		}
	})
}
