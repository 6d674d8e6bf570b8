package act_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"haul/cmd/haul/act"
	"haul/cmd/haul/cli"
	"haul/cmd/haul/clitest/inprocess"
	"haul/cmd/haul/seeds"
	"haul/internal/device"
	"haul/internal/recipe"
)

// TestActAnswersLineByLine: agents act on what they are told, a line that makes no sense is
// answered by what is wrong with it, and the conversation goes on.
func TestActAnswersLineByLine(t *testing.T) {
	dir := t.TempDir()
	path, run := filepath.Join(dir, "x.hist"), filepath.Join(dir, "run")
	if r := inprocess.Run(t, "data", "tabular", "DR4-12-2", "--episodes", "40", "--out", path); r.Code != cli.ExitDone {
		t.Fatal(r.Stderr)
	}
	args := []string{"train", "--config", "ad_tabular", "--history", path, "--iterations", "2", "--device", "cpu", "--out", run}
	for _, set := range []string{"tf_n_embd=16", "tf_n_layer=1", "tf_n_head=2", "train_batch_size=4", "num_warmup_steps=1", "test_batch_size=4", "eval_agents=1", "eval_episodes=2",
		"num_workers=1", "validation_goals=2", "compress_interval=10", "compress_min=5", "n_transit=24"} {
		args = append(args, "--set", set)
	}
	if r := inprocess.Run(t, args...); r.Code != cli.ExitDone {
		t.Fatal(r.Stderr)
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
	if err := act.Converse(&cli.App{Stdout: &out}, strings.NewReader(in), live); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 12 {
		t.Fatalf("%d lines: %s", len(lines), out.String())
	}
	for i, want := range []string{`"agents":2`, "", "field x: want whole numbers from 0 to 3", "obs: want a list of 2 observations", "unknown field", "",
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
	for line, want := range map[string]string{
		`[]`:                           `want an object such as {"obs": [[4, 4]], "reward": [0]}`,
		`null`:                         "want an object such as",
		`{}`:                           "want an object such as",
		`{"obs": null}`:                "obs: want a list of 2 observations, each a list of numbers",
		`{"obs": [[2, 2]]}`:            "obs: want a list of 2 observations",
		`{"obs": [[2, null], [2, 2]]}`: "obs: want a list of 2 observations",
		`{"obs": [[2, 2], null], "reward": [0, 0]}`:                           "the observation of agent 1 has 0 fields",
		`{"obs": [[2, 2], [2, 2]], "forget": [1, 0]}`:                         "forget: want a list of 2 truth values",
		`{"obs": [[2, 2], [2, 2]], "forget": [true, null]}`:                   "forget: want a list of 2 truth values",
		`{"obs": [[2, 2], [2, 2]], "forget": [true]}`:                         "forget: want a list of 2 truth values",
		`{"obs": [[2, 2], [2, 2]], "obs": [[1, 1], [1, 1]]}`:                  "obs is given twice",
		`{"obs": [[2, 2], [2, 2]], "reward": [0, 0], "reward": [1, 1]}`:       `reward is given twice`,
		`{"obs": [[2, 2], [2, 2]], "forget": [true, true], "forget": null}`:   "forget is given twice",
		`{"obs": [[2, 2], [2, 2]], "Reward": [0, 0]}`:                         `unknown field \"Reward\", want obs, `,
		`{"OBS": [[2, 2], [2, 2]]}`:                                           `unknown field \"OBS\"`,
		`{"obs": [[2, 2], [2, 2]], "rew`:                                      "unexpected EOF",
		`{"obs": [[2, 2], [2, 2]]`:                                            "unexpected EOF",
		`{"obs": [[2, 2], [2, 2]],`:                                           "unexpected EOF",
		`{"obs" [[2, 2], [2, 2]]}`:                                            "expected colon after object key",
		`{"obs": [[2, 2], [2, 2]], 7: 1}`:                                     "invalid character '7'",
		`{"obs": ` + strings.Repeat("[", 100_000) + `}`:                       "exceeded max depth",
		`{"obs": [[2, 2], [2, 2]]` + strings.Repeat(" ", 1<<20+8*64-25) + `}`: "agent 0 is not told",
		`{"obs": [[2, 2], [2, 2]]` + strings.Repeat(" ", 1<<20+8*64-24) + `}`: "a line of more than 1049088 bytes: want one line per step",
		`{"obs": [[2, 2], [2, 2]], "forget": "all"}`:                          "forget: want a list of 2 truth values",
		`{"obs": [[2, 2], [2, 2]], "reward": [NaN]}`:                          "not a line of this kind: invalid character 'N'",
		`{"obs": [[2, 2], [2, 2]]} {"obs": [[2, 2], [2, 2]]}`:                 "a line holds one object",
		`{"obs": [[2, 2], [2, 2]]}]`:                                          "a line holds one object",
		`{"obs": [[2, 2], [2, 2]], "rewards": [0, 0]}`:                        `not a line of this kind: unknown field \"rewards\"`,
	} {
		var out strings.Builder
		if err := act.Converse(&cli.App{Stdout: &out}, strings.NewReader(line), live); err != nil {
			t.Fatal(err)
		}
		_, said, _ := strings.Cut(strings.TrimSpace(out.String()), "\n")
		if !strings.HasPrefix(said, `{"error":`) || !strings.Contains(strings.ReplaceAll(said, `\"obs\"`, `"obs"`), strings.ReplaceAll(want, `"reward"`, `\"reward\"`)) || strings.Contains(said, "Go ") {
			t.Errorf("%.200s is answered by %s; want %q", line, said, want)
		}
	}
	chosen, err := seeds.ReadResult(run)
	if err != nil {
		t.Fatal(err)
	}
	own, search := chosen.HeldOut.Temperature, chosen.HeldOut.Search
	for _, c := range []struct {
		args        []string
		own, search float64
	}{{nil, own, search}, {[]string{"--temperature", "0.25"}, 0.25, 0.25}, {[]string{"--search", "0.25"}, own, 0.25}, {[]string{"--temperature", "0", "--search", "2"}, 0, 2}} {
		first := inprocess.Object(t, append([]string{"act", "--checkpoint", run, "--device", "cpu"}, c.args...)...)
		if first["temperature"] != c.own || first["search_temperature"] != c.search {
			t.Errorf("%v: %v, where the run chose %g and %g", c.args, first, own, search)
		}
	}
	for _, flag := range []string{"--temperature", "--search"} {
		for _, v := range []string{"-1", "NaN", "Inf"} {
			inprocess.Refused(t, []string{"act", "--checkpoint", run, flag, v}, cli.ExitUsage, "--temperature and --search must be finite and not below 0")
		}
	}
	inprocess.Refused(t, []string{"act"}, cli.ExitUsage, "--checkpoint is missing")
	inprocess.Refused(t, []string{"act", "--checkpoint", run, "--agents", "0"}, cli.ExitUsage, "--agents is 0")
}
