package main

import (
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// Every verb teaches: it says what it does and shows a command whose verb and flags exist.
func TestHelpTeaches(t *testing.T) {
	root := (&app{}).newRoot()
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Short == "" || !strings.Contains(cmd.Example, cmd.CommandPath()) {
			t.Errorf("%s: its help has no purpose or no example", cmd.CommandPath())
		}
		for line := range strings.Lines(cmd.Example) {
			words := strings.Fields(line)
			words = words[slices.Index(words, "haul")+1:] // past a launcher and its flags
			found, rest, err := root.Find(words)
			if err != nil || found == root {
				t.Errorf("%s: example %q calls no verb", cmd.CommandPath(), line)
				continue
			}
			for _, w := range rest {
				if name, ok := strings.CutPrefix(w, "--"); ok && found.Flags().Lookup(name) == nil {
					t.Errorf("%s: example %q uses a flag that does not exist", cmd.CommandPath(), strings.TrimSpace(line))
				}
			}
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(root)
	for _, args := range [][]string{nil, {"--help"}, {"help", "solve"}, {"config"}, {"bench", "cost", "--help"}} {
		if r := haul(t, args...); r.code != exitDone || !strings.Contains(r.stdout, "Examples:") || r.stderr != "" {
			t.Errorf("%v: exit %d, %q", args, r.code, r.stderr)
		}
	}
}

func TestVersion(t *testing.T) {
	if v := object(t, "version", "--json"); v["go"] != runtime.Version() || v["arch"] != runtime.GOARCH || v["version"] == "" {
		t.Errorf("%v", v)
	}
	if r := haul(t, "version"); !strings.HasPrefix(r.stdout, "haul ") || !strings.Contains(r.stdout, runtime.GOOS) {
		t.Errorf("%q", r.stdout)
	}
}

func TestDevices(t *testing.T) {
	v := object(t, "devices", "--json")
	cpu, cuda := v["cpu"].(map[string]any), v["cuda"].(map[string]any)
	if cpu["model"] == "" || cpu["cores"].(float64) != float64(runtime.NumCPU()) {
		t.Errorf("cpu is %v", cpu)
	}
	// Either a driver with its version, or the reason why there is none.
	if cuda["driver"] == true && cuda["cuda_version"] == nil || cuda["driver"] == false && cuda["reason"] == nil {
		t.Errorf("cuda is %v", cuda)
	}
	if r := haul(t, "devices"); !strings.Contains(r.stdout, "cpu") || !strings.Contains(r.stdout, "cuda") {
		t.Errorf("%q", r.stdout)
	}
}

func TestBenchCost(t *testing.T) {
	rows := object(t, "bench", "cost", "--rounds", "3", "--json")["rows"].([]any)
	if len(rows) != len(costShapes) {
		t.Fatalf("%d rows, want %d", len(rows), len(costShapes))
	}
	for _, r := range rows {
		row := r.(map[string]any)
		if row["ns_per_batch"].(float64) <= 0 || row["loop_ns_per_batch"].(float64) <= 0 || row["allocs_per_batch"].(float64) >= 1 {
			t.Errorf("%v", row)
		}
	}
}

func TestConfig(t *testing.T) {
	set := []string{"--config", "tiny_1", "--set", "training.batch_size=256"}
	if r := haul(t, append([]string{"config", "show"}, set...)...); r.code != exitDone || !strings.Contains(r.stdout, "batch_size: 256") {
		t.Errorf("exit %d, %s%s", r.code, r.stdout, r.stderr)
	}
	tree := object(t, append([]string{"config", "show", "--json"}, set...)...)
	if training := tree["training"].(map[string]any); training["batch_size"] != 256.0 {
		t.Errorf("training is %v", training)
	}
	shown := haul(t, "config", "show", "--config", "quick").stdout
	if r := haul(t, "config", "check", write(t, "whole.yaml", shown)); r.code != exitDone {
		t.Errorf("what show prints, check refuses: %s", r.stderr)
	}
	if c := object(t, "config", "check", "tiny_1", "--json"); c["valid"] != true {
		t.Errorf("%v", c)
	}
	bad := haul(t, "config", "check", write(t, "key.yaml", "training:\n  bach_size: 3\n"), "--json")
	if bad.code != exitFailed || !strings.Contains(bad.stdout, `"valid":false`) {
		t.Errorf("exit %d, %s", bad.code, bad.stdout)
	}
	if keys := object(t, "config", "explain", "baseline.type", "--json")["keys"].([]any); len(keys) != 1 {
		t.Errorf("%v", keys)
	}
	if r := haul(t, "config", "explain"); r.code != exitDone || !strings.Contains(r.stdout, "problem.num_customers") {
		t.Errorf("exit %d, %s", r.code, r.stdout)
	}
}

// haul version printed a pseudo-version that no list of changes has.
func TestVersionAgreesWithChangelog(t *testing.T) {
	text, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	released := regexp.MustCompile(`(?m)^## (\d+\.\d+\.\d+) - (\d{4}-\d{2}-\d{2})$`).FindStringSubmatch(string(text))
	if released == nil {
		t.Fatal("CHANGELOG.md names no release as \"## 1.2.3 - 2006-01-02\"")
	}
	if _, err := time.Parse(time.DateOnly, released[2]); err != nil {
		t.Error(err)
	}
	if got := object(t, "version", "--json")["version"]; got != released[1] {
		t.Errorf("haul version is %v, the newest release %s", got, released[1])
	}
	if r := haul(t, "version"); !strings.HasPrefix(r.stdout, "haul "+released[1]) {
		t.Errorf("haul version prints %s", r.stdout)
	}
}
