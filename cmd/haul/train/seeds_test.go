package train_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"haul/cmd/haul/cli"
	"haul/cmd/haul/clitest/inprocess"
	"haul/internal/run"
)

// TestSeedsGoOn: a table over seeds takes runs that have ended, goes on with those that have not,
// and refuses those that are not what it asks for: of other settings, other histories, or other
// weights to begin with. One seed has no spread.
func TestSeedsGoOn(t *testing.T) {
	dir := t.TempDir()
	histories := func(seed int) string {
		path := filepath.Join(dir, fmt.Sprintf("%d.hist", seed))
		if r := inprocess.Run(t, "data", "tabular", "DR4-12-2", "--episodes", "40", "--seed", fmt.Sprint(seed), "--out", path); r.Code != cli.ExitDone {
			t.Fatal(r.Stderr)
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
	table := func(seeds, path string, more ...string) inprocess.Result {
		return inprocess.Run(t, words(seeds, path, more...)...)
	}
	one := table("3", own)
	if one.Code != cli.ExitDone || !strings.Contains(one.Stdout, "\n3  ") || strings.Contains(one.Stdout, "mean") || strings.Contains(one.Stdout, "standard error") {
		t.Fatalf("%d: %s%s", one.Code, one.Stdout, one.Stderr)
	}
	two := table("3..4", own)
	if two.Code != cli.ExitDone || !strings.Contains(two.Stdout, "\nmean") || !strings.Contains(two.Stdout, "over 2 seeds") || !strings.Contains(two.Stderr, "seed-3 has ended before") {
		t.Fatalf("%d: %s%s", two.Code, two.Stdout, two.Stderr)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for _, c := range []struct {
		more []string
		want string
	}{{nil, "The same command with --seeds continues at seed 5.\n"}, {[]string{"--force"}, "The same command with --seeds, but without --force, continues at seed 5.\n"}} {
		if r := inprocess.RunIn(stopped, words("5", own, c.more...)...); r.Code != cli.ExitInterrupted || !strings.Contains(r.Stderr, c.want) {
			t.Errorf("%v: %d: %s; want %q", c.more, r.Code, r.Stderr, c.want)
		}
	}
	ended := filepath.Join(out, "seed-3")
	if err := os.Remove(filepath.Join(ended, run.ResultName)); err != nil { // as a kill leaves it
		t.Fatal(err)
	}
	if r := table("3..4", own); r.Code != cli.ExitDone || !strings.Contains(r.Stdout, "\nmean") || !strings.Contains(r.Stderr, "--resume "+ended) {
		t.Errorf("%d: %s%s", r.Code, r.Stdout, r.Stderr)
	}
	for _, c := range []struct {
		r    inprocess.Result
		code int
		want string
	}{
		{table("3", other), cli.ExitFailed, ended + ": the run learned from other histories than those of " + other},
		{table("3", own, "--set", "lr=0.5"), cli.ExitFailed, `"lr: 0.001", not "lr: 0.5"`},
		{table("3", own, "--from", ended), cli.ExitFailed, "the run began with weights of its own, and --from names others"},
		{table("3", own, "--time", "9m"), cli.ExitUsage, "leave --time out; after Ctrl-C the same command continues"},
		{table("3", own, "--seed", "4"), cli.ExitUsage, "leave --seed and --resume out"},
	} {
		if lines := strings.Split(strings.TrimSpace(c.r.Stderr), "\n"); c.r.Code != c.code || c.r.Stdout != "" || !strings.Contains(lines[len(lines)-1], c.want) {
			t.Errorf("%d: %s%s; want %q", c.r.Code, c.r.Stdout, c.r.Stderr, c.want)
		}
	}
	if err := os.Remove(own); err != nil { // a table of what has ended needs no histories
		t.Fatal(err)
	}
	if r := table("3..4", own); r.Code != cli.ExitDone || r.Stdout == "" {
		t.Errorf("%d: %s%s", r.Code, r.Stdout, r.Stderr)
	}
	if r := table("3", other, "--force", "--from", filepath.Join(out, "seed-4")); r.Code != cli.ExitDone {
		t.Errorf("%d: %s", r.Code, r.Stderr)
	}
	if r := table("3", other, "--from", filepath.Join(out, "seed-4")); r.Code != cli.ExitDone || !strings.Contains(r.Stderr, "has ended before") {
		t.Errorf("%d: %s", r.Code, r.Stderr)
	}
	if r := table("3", other, "--from", ended); r.Code != cli.ExitFailed || !strings.Contains(r.Stderr, "the run began with other weights than those of --from") {
		t.Errorf("%d: %s", r.Code, r.Stderr)
	}
	if r := table("3", other); r.Code != cli.ExitFailed || !strings.Contains(r.Stderr, "the run began with the weights of another, and --from names none") {
		t.Errorf("%d: %s", r.Code, r.Stderr)
	}
}
