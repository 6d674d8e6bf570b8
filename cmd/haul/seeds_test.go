package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"haul/internal/run"
)

func TestParseSeeds(t *testing.T) {
	for text, want := range map[string][]uint64{"1..3": {1, 2, 3}, "4": {4}, "7..7": {7}, "9,1": {9, 1}, "1..2, 5": {1, 2, 5}, "0": {0}, "9223372036854775807": {1<<63 - 1}} {
		if got, err := parseSeeds(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	if got, err := parseSeeds("1..500,501..1000"); err != nil || len(got) != maxSeeds {
		t.Errorf("%d seeds, %v", len(got), err)
	}
	for text, want := range map[string]string{
		"5..1": "5..1 runs backwards, write 1..5", "": "write seeds as", "1,": "write seeds as", "..5": "write seeds as", "1..": "write seeds as", "1...3": "write seeds as", "-1": "write seeds as",
		"1.5": "write seeds as", "9223372036854775808": "write seeds as", "1,1": "names 1 twice", "1..3,2": "names 2 twice",
		"1..1001": "more than 1000 seeds", "1..500,501..1001": "more than 1000 seeds", "1..9223372036854775807": "more than 1000 seeds",
	} {
		if got, err := parseSeeds(text); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, %v; want %q", text, got, err, want)
		}
	}
}

// TestSeedsGoOn: a table over seeds takes runs that have ended, goes on with those that have not,
// and refuses those that are not what it asks for: of other settings, other histories, or other
// weights to begin with. One seed has no spread.
func TestSeedsGoOn(t *testing.T) {
	dir := t.TempDir()
	histories := func(seed int) string {
		path := filepath.Join(dir, fmt.Sprintf("%d.hist", seed))
		if r := haul(t, "data", "tabular", "DR4-12-2", "--episodes", "40", "--seed", fmt.Sprint(seed), "--out", path); r.code != exitDone {
			t.Fatal(r.stderr)
		}
		return path
	}
	own, other, out := histories(0), histories(1), filepath.Join(dir, "runs")
	words := func(seeds, path string, more ...string) []string {
		args := []string{"train", "--config", "ad_tabular", "--history", path, "--iterations", "2", "--device", "cpu", "--out", out, "--seeds", seeds}
		for _, set := range []string{"tf_n_embd=16", "tf_n_layer=1", "tf_n_head=2", "train_batch_size=4", "num_warmup_steps=1", "test_batch_size=4", "eval_agents=1", "eval_episodes=2",
			"num_workers=1", "validation_goals=2", "compress_interval=10", "compress_min=5", "n_transit=24"} {
			args = append(args, "--set", set)
		}
		return append(args, more...)
	}
	table := func(seeds, path string, more ...string) result { return haul(t, words(seeds, path, more...)...) }
	one := table("3", own)
	if one.code != exitDone || !strings.Contains(one.stdout, "\n3  ") || strings.Contains(one.stdout, "mean") || strings.Contains(one.stdout, "standard error") {
		t.Fatalf("%d: %s%s", one.code, one.stdout, one.stderr)
	}
	two := table("3..4", own)
	if two.code != exitDone || !strings.Contains(two.stdout, "\nmean") || !strings.Contains(two.stdout, "over 2 seeds") || !strings.Contains(two.stderr, "seed-3 has ended before") {
		t.Fatalf("%d: %s%s", two.code, two.stdout, two.stderr)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for _, c := range []struct {
		more []string
		want string
	}{{nil, "The same command with --seeds continues at seed 5.\n"}, {[]string{"--force"}, "The same command with --seeds, but without --force, continues at seed 5.\n"}} {
		if r := haulIn(stopped, words("5", own, c.more...)...); r.code != exitInterrupted || !strings.Contains(r.stderr, c.want) {
			t.Errorf("%v: %d: %s; want %q", c.more, r.code, r.stderr, c.want)
		}
	}
	ended := filepath.Join(out, "seed-3")
	if err := os.Remove(filepath.Join(ended, run.ResultName)); err != nil { // as a kill leaves it
		t.Fatal(err)
	}
	if r := table("3..4", own); r.code != exitDone || !strings.Contains(r.stdout, "\nmean") || !strings.Contains(r.stderr, "--resume "+ended) {
		t.Errorf("%d: %s%s", r.code, r.stdout, r.stderr)
	}
	for _, c := range []struct {
		r    result
		code int
		want string
	}{
		{table("3", other), exitFailed, ended + ": the run learned from other histories than those of " + other},
		{table("3", own, "--set", "lr=0.5"), exitFailed, `"lr: 0.001", not "lr: 0.5"`},
		{table("3", own, "--from", ended), exitFailed, "the run began with weights of its own, and --from names others"},
		{table("3", own, "--time", "9m"), exitUsage, "leave --time out; after Ctrl-C the same command continues"},
		{table("3", own, "--seed", "4"), exitUsage, "leave --seed and --resume out"},
	} {
		if lines := strings.Split(strings.TrimSpace(c.r.stderr), "\n"); c.r.code != c.code || c.r.stdout != "" || !strings.Contains(lines[len(lines)-1], c.want) {
			t.Errorf("%d: %s%s; want %q", c.r.code, c.r.stdout, c.r.stderr, c.want)
		}
	}
	if err := os.Remove(own); err != nil { // a table of what has ended needs no histories
		t.Fatal(err)
	}
	if r := table("3..4", own); r.code != exitDone || r.stdout == "" {
		t.Errorf("%d: %s%s", r.code, r.stdout, r.stderr)
	}
	if r := table("3", other, "--force", "--from", filepath.Join(out, "seed-4")); r.code != exitDone {
		t.Errorf("%d: %s", r.code, r.stderr)
	}
	if r := table("3", other, "--from", filepath.Join(out, "seed-4")); r.code != exitDone || !strings.Contains(r.stderr, "has ended before") {
		t.Errorf("%d: %s", r.code, r.stderr)
	}
	if r := table("3", other, "--from", ended); r.code != exitFailed || !strings.Contains(r.stderr, "the run began with other weights than those of --from") {
		t.Errorf("%d: %s", r.code, r.stderr)
	}
	if r := table("3", other); r.code != exitFailed || !strings.Contains(r.stderr, "the run began with the weights of another, and --from names none") {
		t.Errorf("%d: %s", r.code, r.stderr)
	}
}
