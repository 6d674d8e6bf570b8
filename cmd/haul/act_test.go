package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"haul/internal/device"
	"haul/internal/recipe"
)

// TestActAnswersLineByLine: agents act on what they are told, a line that makes no sense is
// answered by what is wrong with it, and the conversation goes on.
func TestActAnswersLineByLine(t *testing.T) {
	dir := t.TempDir()
	path, run := filepath.Join(dir, "x.hist"), filepath.Join(dir, "run")
	if r := haul(t, "data", "tabular", "DR4-12-2", "--episodes", "40", "--out", path); r.code != exitDone {
		t.Fatal(r.stderr)
	}
	args := []string{"train", "--config", "ad_tabular", "--history", path, "--iterations", "2", "--device", "cpu", "--out", run}
	for _, set := range []string{"tf_n_embd=16", "tf_n_layer=1", "tf_n_head=2", "train_batch_size=4", "num_warmup_steps=1", "test_batch_size=4", "eval_agents=1", "eval_episodes=2",
		"num_workers=1", "validation_goals=2", "compress_interval=10", "compress_min=5", "n_transit=24"} {
		args = append(args, "--set", set)
	}
	if r := haul(t, args...); r.code != exitDone {
		t.Fatal(r.stderr)
	}
	dev, err := device.Open("cpu", device.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	live, err := recipe.NewLive(dev, filepath.Join(run, "best.safetensors"), recipe.LiveOptions{Agents: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer live.Close()
	var out strings.Builder
	in := `{"obs": [[2, 2], [2, 2]]}

{"obs": [[2, 2], [4, 2]], "reward": [0, 0]}
{"obs": [[2, 2]], "reward": [0]}
{"look": 1}
{"obs": [[2, 2], [3, 2]], "reward": [1, 0], "done": [true, false], "forget": [false, true]}
{"obs": [[2, 2], [3, 2]]}
{"obs": [[2, 2], [3, 2]], "reward": [0, null]}
{"obs": [[2, 2], [3, 2]], "reward": [0, null], "forget": [false, true]}
{"obs": [[2, 2], [3, 2]], "forget": [true, true]}
{"obs": [[2, 2], [3, 2]], "reward": [1, 1.5]}
{"obs": [[2, 2], [3, 2]], "reward": [-7, 0]}`
	if err := (&app{stdout: &out}).converse(strings.NewReader(in), live); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 12 {
		t.Fatalf("%d lines: %s", len(lines), out.String())
	}
	for i, want := range []string{`"agents":2`, "", "field x: want whole numbers from 0 to 3", "reward: want a list of 2 numbers", "unknown field", "",
		"agent 0 is not told what its last action paid: give reward, or let it forget", "agent 1 is not told what its last action paid", "", "",
		`"note":"a reward of 1.5 is none that the agent has learned from (0 to 1) and is taken for 1; so are others like it"`, ""} {
		var reply struct{ Action []int }
		if err := json.Unmarshal([]byte(lines[i]), &reply); err != nil || !strings.Contains(lines[i], want) {
			t.Errorf("line %d: %s; want %q", i, lines[i], want)
		}
		if want != "" && !strings.Contains(want, "note") {
			continue
		}
		if noted := strings.Contains(lines[i], `"note"`); noted != (want != "") {
			t.Errorf("line %d has a note: %v", i, noted)
		}
		if len(reply.Action) != 2 || min(reply.Action[0], reply.Action[1]) < 0 || max(reply.Action[0], reply.Action[1]) > 4 {
			t.Errorf("line %d: %s", i, lines[i])
		}
	}
	refused(t, []string{"act"}, exitUsage, "--checkpoint is missing")
	refused(t, []string{"act", "--checkpoint", run, "--agents", "0"}, exitUsage, "--agents is 0")
}
