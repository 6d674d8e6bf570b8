package config_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"haul/cmd/haul/cli"
	"haul/cmd/haul/clitest"
	"haul/cmd/haul/clitest/inprocess"
	verb "haul/cmd/haul/config"
	"haul/internal/config"
)

// TestCheckTellsOfEveryMistake: two wrong keys, a wrong value and a wrong --set are four lines.
// What must fit together is told where every key is right.
func TestCheckTellsOfEveryMistake(t *testing.T) {
	bad := clitest.Write(t, "bad.yaml", "problem:\n  num_customrs: 5\ntraining:\n  batch_size: abc\n  num_epoch: 3\n")
	r := inprocess.Run(t, "config", "check", bad, "--set", "model.hidden_dim=x")
	var got []string
	for line := range strings.Lines(r.Stderr) {
		got = append(got, strings.TrimSpace(strings.TrimPrefix(line, "haul: "+bad)))
	}
	want := []string{":2: unknown key problem.num_customrs; did you mean problem.num_customers?", ":4: training.batch_size must be a whole number, got abc",
		":5: unknown key training.num_epoch; did you mean training.num_epochs?", "haul: --set model.hidden_dim=x: must be a whole number"}
	if r.Code != cli.ExitFailed || !slices.Equal(got, want) {
		t.Errorf("exit %d:\n%s", r.Code, strings.Join(got, "\n"))
	}
	// Who leaves the length to the defaults sees what that is.
	long := clitest.Write(t, "long.yaml", "problem:\n  num_customers: 15\n")
	if r := inprocess.Run(t, "config", "check", long); r.Stdout != long+" is valid: 100 epochs of 768,000 instances, 76,800,000 in all\n" {
		t.Errorf("%q", r.Stdout)
	}
	if r := inprocess.Run(t, "config", "check", "quick"); r.Stdout != "quick is valid: 16 epochs of 6,400 instances, 102,400 in all\n" {
		t.Errorf("%q", r.Stdout)
	}
	clash := clitest.Write(t, "clash.yaml", "model:\n  hidden_dim: 30\n  num_heads: 4\nbaseline:\n  type: rollout\n  advantage: preference\n")
	r = inprocess.Run(t, "config", "check", clash)
	if r.Code != cli.ExitFailed || strings.Count(r.Stderr, "haul: "+clash) != 2 || strings.Count(r.Stderr, "\n") != 2 {
		t.Errorf("exit %d: %s", r.Code, r.Stderr)
	}
	var out verb.CheckReport
	if err := json.Unmarshal([]byte(inprocess.Run(t, "config", "check", clash, "--json").Stdout), &out); err != nil || out.Valid || len(out.Errors) != 2 || out.Errors[0] != out.Error {
		t.Errorf("%+v, %v", out, err)
	}
	// A run is refused in one line, as by any mistake.
	if r := inprocess.Run(t, "train", "--config", bad); r.Code != cli.ExitFailed || strings.Count(r.Stderr, "\n") != 1 || !strings.Contains(r.Stderr, ":2: ") {
		t.Errorf("exit %d: %s", r.Code, r.Stderr)
	}
	if r := inprocess.Run(t, "config", "check", "tiny_1", "--set", "a=1", "--set", "b=1"); r.Code != cli.ExitUsage || strings.Count(r.Stderr, "\n") != 2 {
		t.Errorf("exit %d: %s", r.Code, r.Stderr)
	}
}

// A file's keys say whose settings it holds, so that no verb has to be told.
func TestConfigOfEveryRecipe(t *testing.T) {
	for recipe, key := range map[string]string{config.RecipeGT: "training", config.RecipeAD: "tf_n_embd", config.RecipePPO: "n_stream"} {
		for _, name := range config.Names(recipe) {
			if tree := inprocess.Object(t, "config", "show", "--config", name, "--json"); tree[key] == nil {
				t.Errorf("%s has no %s: %v", name, key, tree)
			}
			shown := inprocess.Run(t, "config", "show", "--config", name).Stdout
			if r := inprocess.Run(t, "config", "check", clitest.Write(t, "whole.yaml", shown)); r.Code != cli.ExitDone {
				t.Errorf("%s: what show prints, check refuses: %s", name, r.Stderr)
			}
		}
		if tree := inprocess.Object(t, "config", "show", "--model", recipe, "--json"); tree[key] == nil {
			t.Errorf("--model %s has no %s: %v", recipe, key, tree)
		}
		for _, e := range inprocess.Object(t, "config", "explain", "--model", recipe, "--json")["keys"].([]any) {
			if e := e.(map[string]any); e["recipe"] != recipe {
				t.Errorf("--model %s explains %v", recipe, e)
			}
		}
	}
	if r := inprocess.Run(t, "config", "explain", "compress_min"); r.Code != cli.ExitDone || !strings.Contains(r.Stdout, "(AD; honoured)") {
		t.Errorf("exit %d, %s%s", r.Code, r.Stdout, r.Stderr)
	}
}

func TestConfigRefusals(t *testing.T) {
	for _, tc := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"config", "show", "--model", "DQN"}, cli.ExitUsage, "haul: --model DQN: one of GT+RL, GAT+RL, AD, PPO is needed\n"},
		{[]string{"config", "check", "quick", "--model", "DQN"}, cli.ExitUsage, "haul: --model DQN: one of GT+RL, GAT+RL, AD, PPO is needed\n"},
		{[]string{"config", "explain", "--model", "DQN"}, cli.ExitUsage, "haul: no settings are called DQN; there are GT+RL, GAT+RL, AD, PPO\n"},
		{[]string{"config", "check", "quick", "--model", "AD"}, cli.ExitFailed, "haul: config configs/quick.yaml: these are settings of GT+RL (routing), not of AD (the in-context agent)\n"},
		{[]string{"config", "show", "--config", "darkroom", "--set", "n_stream=0"}, cli.ExitUsage, "haul: --set n_stream=0: must be at least 1\n"},
		{[]string{"config", "show", "--config", "ad_dr_compressed", "--set", "n_transit=100"}, cli.ExitFailed,
			"haul: --set n_transit=100: two regions of compress_interval 80 need 164 positions, over n_transit 100, the position table\n"},
	} {
		if r := inprocess.Run(t, tc.args...); r.Code != tc.code || r.Stderr != tc.want || r.Stdout != "" {
			t.Errorf("%v: exit %d\n got %s%s\nwant %s", tc.args, r.Code, r.Stdout, r.Stderr, tc.want)
		}
	}
}

func TestConfig(t *testing.T) {
	set := []string{"--config", "tiny_1", "--set", "training.batch_size=256"}
	if r := inprocess.Run(t, append([]string{"config", "show"}, set...)...); r.Code != cli.ExitDone || !strings.Contains(r.Stdout, "batch_size: 256") {
		t.Errorf("exit %d, %s%s", r.Code, r.Stdout, r.Stderr)
	}
	tree := inprocess.Object(t, append([]string{"config", "show", "--json"}, set...)...)
	if training := tree["training"].(map[string]any); training["batch_size"] != 256.0 {
		t.Errorf("training is %v", training)
	}
	shown := inprocess.Run(t, "config", "show", "--config", "quick").Stdout
	if r := inprocess.Run(t, "config", "check", clitest.Write(t, "whole.yaml", shown)); r.Code != cli.ExitDone {
		t.Errorf("what show prints, check refuses: %s", r.Stderr)
	}
	if c := inprocess.Object(t, "config", "check", "tiny_1", "--json"); c["valid"] != true {
		t.Errorf("%v", c)
	}
	bad := inprocess.Run(t, "config", "check", clitest.Write(t, "key.yaml", "training:\n  bach_size: 3\n"), "--json")
	if bad.Code != cli.ExitFailed || !strings.Contains(bad.Stdout, `"valid":false`) {
		t.Errorf("exit %d, %s", bad.Code, bad.Stdout)
	}
	if keys := inprocess.Object(t, "config", "explain", "baseline.type", "--json")["keys"].([]any); len(keys) != 1 {
		t.Errorf("%v", keys)
	}
	if r := inprocess.Run(t, "config", "explain"); r.Code != cli.ExitDone || !strings.Contains(r.Stdout, "problem.num_customers") {
		t.Errorf("exit %d, %s", r.Code, r.Stdout)
	}
}
