package bench_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"haul/cmd/haul/cli"
	"haul/cmd/haul/clitest/inprocess"
	"haul/internal/run"
)

// TestWorldsGoOn: a table whose run was killed before its end goes on in the same folder and comes
// out the same; one that has ended is taken; with other settings it is refused, and the table says
// how it was made.
func TestWorldsGoOn(t *testing.T) {
	out := filepath.Join(t.TempDir(), "worlds")
	table := func(more ...string) inprocess.Result {
		args := []string{"bench", "worlds", "DR4-12-2", "--device", "cpu", "--context", "24", "--iterations", "2", "--seeds", "3", "--out", out}
		for _, set := range []string{"tf_n_embd=16", "tf_n_layer=1", "tf_n_head=2", "train_batch_size=4", "num_warmup_steps=1", "test_batch_size=4", "eval_agents=1",
			"eval_episodes=2", "num_workers=1", "validation_goals=2"} {
			args = append(args, "--set", set)
		}
		return inprocess.Run(t, append(args, more...)...)
	}
	whole := table()
	if whole.Code != cli.ExitDone || !strings.Contains(whole.Stdout, "| DR4-12-2 |") || !strings.Contains(whole.Stdout, "this program, 1 seed |") || strings.Contains(whole.Stdout, "±") || !strings.Contains(whole.Stdout, "Return of episode 2 (published: the 100th)") || !strings.Contains(whole.Stdout, "haul bench worlds DR4-12-2 --context=24 --iterations=2") {
		t.Fatalf("%d: %s%s", whole.Code, whole.Stdout, whole.Stderr)
	}
	dir := filepath.Join(out, "DR4-12-2-seed-3")
	if err := os.Remove(filepath.Join(dir, run.ResultName)); err != nil { // as a kill leaves it
		t.Fatal(err)
	}
	figures := func(r inprocess.Result) string { // all but the seconds
		cells := strings.Split(r.Stdout, "|")
		return strings.Join(cells[:len(cells)-2], "|")
	}
	for _, want := range []string{"--resume " + dir, dir + " has ended before"} {
		if r := table(); r.Code != cli.ExitDone || figures(r) != figures(whole) || !strings.Contains(r.Stderr, want) {
			t.Errorf("%d: %s%s; want %s and the table\n%s", r.Code, r.Stdout, r.Stderr, want, whole.Stdout)
		}
	}
	if r := table("--set", "lr=0.5"); r.Code == cli.ExitDone || !strings.Contains(r.Stderr, `"lr: 0.001", not "lr: 0.5"`) || !strings.Contains(r.Stderr, "--force") {
		t.Errorf("other settings: %d: %s", r.Code, r.Stderr)
	}
}

// TestWorldsAtOnce: runs beside each other come to the table of runs one after another, every line
// of theirs says whose it is, and what fails leaves the rows before it on the page.
func TestWorldsAtOnce(t *testing.T) {
	table := func(out string, more ...string) inprocess.Result {
		args := []string{"bench", "worlds", "DR4-12-2", "K2D4-9-1", "--device", "cpu", "--context", "24", "--iterations", "2", "--seeds", "3,5", "--out", out}
		for _, set := range []string{"tf_n_embd=16", "tf_n_layer=1", "tf_n_head=2", "train_batch_size=4", "num_warmup_steps=1", "test_batch_size=4", "eval_agents=1",
			"eval_episodes=2", "num_workers=1", "validation_goals=2"} {
			args = append(args, "--set", set)
		}
		return inprocess.Run(t, append(args, more...)...)
	}
	figures := func(r inprocess.Result) (out []string) { // all but the seconds
		for line := range strings.Lines(r.Stdout) {
			if cells := strings.Split(line, "|"); len(cells) > 7 {
				out = append(out, strings.Join(cells[:7], "|"))
			}
		}
		return out
	}
	one, out := table(filepath.Join(t.TempDir(), "one")), filepath.Join(t.TempDir(), "three")
	three := table(out, "--at-once", "3")
	if one.Code != cli.ExitDone || three.Code != cli.ExitDone || len(figures(one)) != 4 || !slices.Equal(figures(one), figures(three)) {
		t.Fatalf("one at a time %d:\n%s\nthree %d:\n%s%s", one.Code, one.Stdout, three.Code, three.Stdout, three.Stderr)
	}
	if !strings.Contains(one.Stderr, "--set=compress_interval=10 --set=compress_min=7 ") {
		t.Errorf("regions of other lengths: %s", one.Stderr)
	}
	for line := range strings.Lines(three.Stderr) {
		if !strings.HasPrefix(line, "DR4-12-2 3: ") && !strings.HasPrefix(line, "DR4-12-2 5: ") && !strings.HasPrefix(line, "K2D4-9-1 3: ") && !strings.HasPrefix(line, "K2D4-9-1 5: ") &&
			!strings.Contains(line, " over 2 seeds") {
			t.Errorf("whose is %q?", line)
		}
	}
	if r := table(out, "--at-once", "0"); r.Code != cli.ExitUsage || !strings.Contains(r.Stderr, "--at-once is 0") {
		t.Errorf("none at once: %d: %s", r.Code, r.Stderr)
	}
	if r := inprocess.Run(t, "bench", "worlds", "DR4-12-2", "DR4-12-2", "--device", "cpu", "--out", out); r.Code != cli.ExitUsage || !strings.Contains(r.Stderr, "DR4-12-2 is named twice") {
		t.Errorf("a set twice: %d: %s", r.Code, r.Stderr)
	}
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.MkdirAll(filepath.Join(broken, "K2D4-9-1-seed-5.hist"), 0o755); err != nil {
		t.Fatal(err)
	}
	r := table(broken, "--at-once", "2")
	page, err := os.ReadFile(filepath.Join(broken, "worlds.md"))
	if r.Code != cli.ExitFailed || !strings.Contains(r.Stderr, "K2D4-9-1, seed 5: ") || err != nil || !strings.Contains(string(page), "| DR4-12-2 |") || strings.Contains(string(page), "| K2D4-9-1 |") {
		t.Errorf("a set that fails: %d: %s%v\n%s", r.Code, r.Stderr, err, page)
	}
}

// TestWorldsOfXLand: a set of XLand's tasks is made by searchers, trained on by settings of its own
// and stands in the table with its own published episode; other names are refused in a line.
func TestWorldsOfXLand(t *testing.T) {
	out := filepath.Join(t.TempDir(), "worlds")
	args := []string{"bench", "worlds", "XLand-trivial-8-3", "--device", "cpu", "--iterations", "2", "--seeds", "3", "--out", out}
	for _, set := range []string{"tf_n_embd=16", "tf_n_layer=1", "tf_n_head=2", "train_batch_size=4", "num_warmup_steps=1", "test_batch_size=4",
		"eval_episodes=1", "num_workers=1", "validation_goals=2"} {
		args = append(args, "--set", set)
	}
	r := inprocess.Run(t, args...)
	if r.Code != cli.ExitDone || !strings.Contains(r.Stdout, "| XLand-trivial-8-3 | – | – |") || !strings.Contains(r.Stdout, "Return of episode 1 (published: the 500th)") ||
		!strings.Contains(r.Stderr, "--config=ad_xland") {
		t.Fatalf("%d: %s%s", r.Code, r.Stdout, r.Stderr)
	}
	show := inprocess.Run(t, "data", "show", filepath.Join(out, "XLand-trivial-8-3-seed-3.hist"))
	if !strings.Contains(show.Stdout, "11: 8 to learn from, 3 held out") {
		t.Errorf("%s%s", show.Stdout, show.Stderr)
	}
	for _, name := range []string{"XLand-small", "XLand-trivial-8", "XLand-trivial-0-3", "XLand-trivial-8-3x"} {
		if r := inprocess.Run(t, "bench", "worlds", name, "--device", "cpu", "--out", out); r.Code != cli.ExitUsage || strings.Count(r.Stderr, "\n") != 1 || !strings.Contains(r.Stderr, "XLand-trivial") {
			t.Errorf("%s: %d: %s", name, r.Code, r.Stderr)
		}
	}
}
