package main

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"haul/internal/config"
)

// TestCheckTellsOfEveryMistake: two wrong keys, a wrong value and a wrong --set are four lines.
// What must fit together is told where every key is right.
func TestCheckTellsOfEveryMistake(t *testing.T) {
	bad := write(t, "bad.yaml", "problem:\n  num_customrs: 5\ntraining:\n  batch_size: abc\n  num_epoch: 3\n")
	r := haul(t, "config", "check", bad, "--set", "model.hidden_dim=x")
	var got []string
	for line := range strings.Lines(r.stderr) {
		got = append(got, strings.TrimSpace(strings.TrimPrefix(line, "haul: "+bad)))
	}
	want := []string{":2: unknown key problem.num_customrs; did you mean problem.num_customers?", ":4: training.batch_size must be a whole number, got abc",
		":5: unknown key training.num_epoch; did you mean training.num_epochs?", "haul: --set model.hidden_dim=x: must be a whole number"}
	if r.code != exitFailed || !slices.Equal(got, want) {
		t.Errorf("exit %d:\n%s", r.code, strings.Join(got, "\n"))
	}
	// Who leaves the length to the defaults sees what that is.
	long := write(t, "long.yaml", "problem:\n  num_customers: 15\n")
	if r := haul(t, "config", "check", long); r.stdout != long+" is valid: 100 epochs of 768,000 instances, 76,800,000 in all\n" {
		t.Errorf("%q", r.stdout)
	}
	if r := haul(t, "config", "check", "quick"); r.stdout != "quick is valid: 16 epochs of 6,400 instances, 102,400 in all\n" {
		t.Errorf("%q", r.stdout)
	}
	clash := write(t, "clash.yaml", "model:\n  hidden_dim: 30\n  num_heads: 4\nbaseline:\n  type: rollout\n  advantage: preference\n")
	r = haul(t, "config", "check", clash)
	if r.code != exitFailed || strings.Count(r.stderr, "haul: "+clash) != 2 || strings.Count(r.stderr, "\n") != 2 {
		t.Errorf("exit %d: %s", r.code, r.stderr)
	}
	var out checkReport
	if err := json.Unmarshal([]byte(haul(t, "config", "check", clash, "--json").stdout), &out); err != nil || out.Valid || len(out.Errors) != 2 || out.Errors[0] != out.Error {
		t.Errorf("%+v, %v", out, err)
	}
	// A run is refused in one line, as by any mistake.
	if r := haul(t, "train", "--config", bad); r.code != exitFailed || strings.Count(r.stderr, "\n") != 1 || !strings.Contains(r.stderr, ":2: ") {
		t.Errorf("exit %d: %s", r.code, r.stderr)
	}
	if r := haul(t, "config", "check", "tiny_1", "--set", "a=1", "--set", "b=1"); r.code != exitUsage || strings.Count(r.stderr, "\n") != 2 {
		t.Errorf("exit %d: %s", r.code, r.stderr)
	}
}

// A file's keys say whose settings it holds, so that no verb has to be told.
func TestConfigOfEveryRecipe(t *testing.T) {
	for recipe, key := range map[string]string{config.RecipeGT: "training", config.RecipeAD: "tf_n_embd", config.RecipePPO: "n_stream"} {
		for _, name := range config.Names(recipe) {
			if tree := object(t, "config", "show", "--config", name, "--json"); tree[key] == nil {
				t.Errorf("%s has no %s: %v", name, key, tree)
			}
			shown := haul(t, "config", "show", "--config", name).stdout
			if r := haul(t, "config", "check", write(t, "whole.yaml", shown)); r.code != exitDone {
				t.Errorf("%s: what show prints, check refuses: %s", name, r.stderr)
			}
		}
		if tree := object(t, "config", "show", "--model", recipe, "--json"); tree[key] == nil {
			t.Errorf("--model %s has no %s: %v", recipe, key, tree)
		}
		for _, e := range object(t, "config", "explain", "--model", recipe, "--json")["keys"].([]any) {
			if e := e.(map[string]any); e["recipe"] != recipe {
				t.Errorf("--model %s explains %v", recipe, e)
			}
		}
	}
	if r := haul(t, "config", "explain", "compress_min"); r.code != exitDone || !strings.Contains(r.stdout, "(AD; honoured)") {
		t.Errorf("exit %d, %s%s", r.code, r.stdout, r.stderr)
	}
}

func TestConfigRefusals(t *testing.T) {
	for _, tc := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"config", "show", "--model", "DQN"}, exitUsage, "haul: --model DQN: one of GT+RL, GAT+RL, AD, PPO is needed\n"},
		{[]string{"config", "check", "quick", "--model", "DQN"}, exitUsage, "haul: --model DQN: one of GT+RL, GAT+RL, AD, PPO is needed\n"},
		{[]string{"config", "explain", "--model", "DQN"}, exitUsage, "haul: no settings are called DQN; there are GT+RL, GAT+RL, AD, PPO\n"},
		{[]string{"config", "check", "quick", "--model", "AD"}, exitFailed, "haul: config configs/quick.yaml: these are settings of GT+RL (routing), not of AD (the in-context agent)\n"},
		{[]string{"config", "show", "--config", "darkroom", "--set", "n_stream=0"}, exitUsage, "haul: --set n_stream=0: must be at least 1\n"},
		{[]string{"config", "show", "--config", "ad_dr_compressed", "--set", "n_transit=100"}, exitFailed,
			"haul: --set n_transit=100: two regions of compress_interval 80 need 164 positions, over n_transit 100, the position table\n"},
	} {
		if r := haul(t, tc.args...); r.code != tc.code || r.stderr != tc.want || r.stdout != "" {
			t.Errorf("%v: exit %d\n got %s%s\nwant %s", tc.args, r.code, r.stdout, r.stderr, tc.want)
		}
	}
}

// TestExplainFits: no line is longer than a reader likes or than the screen, but for a word that
// is, and no word is lost.
func TestExplainFits(t *testing.T) {
	for _, columns := range []int{0, 200, 60} {
		var out bytes.Buffer
		a := &app{stdout: &out, stderr: &out, columns: columns}
		cmd := a.newConfigExplain()
		cmd.SetArgs([]string{})
		if err := cmd.Execute(); err != nil {
			t.Fatal(err)
		}
		limit := widestHelp
		if columns == 60 {
			limit = 59
		}
		for line := range strings.Lines(out.String()) {
			if line = strings.TrimRight(line, "\n"); len([]rune(line)) > limit && len(strings.Fields(line)) > 1 {
				t.Errorf("at %d columns a line of %d: %s", columns, len([]rune(line)), line)
			}
		}
		all, err := config.Explain("", "")
		if err != nil {
			t.Fatal(err)
		}
		words := strings.Join(strings.Fields(out.String()), " ")
		for _, e := range all {
			if !strings.Contains(words, strings.Join(strings.Fields(e.About), " ")) {
				t.Errorf("%s is not explained whole", e.Key)
			}
		}
	}
}
