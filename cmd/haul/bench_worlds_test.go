package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"haul/internal/run"
)

// TestWorldsGoOn: a table whose run was killed before its end goes on in the same folder and comes
// out the same; one that has ended is taken; with other settings it is refused, and the table says
// how it was made.
func TestWorldsGoOn(t *testing.T) {
	out := filepath.Join(t.TempDir(), "worlds")
	table := func(more ...string) result {
		args := []string{"bench", "worlds", "DR4-12-2", "--device", "cpu", "--context", "24", "--iterations", "2", "--seeds", "3", "--out", out}
		for _, set := range []string{"tf_n_embd=16", "tf_n_layer=1", "tf_n_head=2", "train_batch_size=4", "num_warmup_steps=1", "test_batch_size=4", "eval_agents=1",
			"eval_episodes=2", "num_workers=1", "validation_goals=2"} {
			args = append(args, "--set", set)
		}
		return haul(t, append(args, more...)...)
	}
	whole := table()
	if whole.code != exitDone || !strings.Contains(whole.stdout, "| DR4-12-2 |") || !strings.Contains(whole.stdout, "this program, 1 seed |") || strings.Contains(whole.stdout, "±") || !strings.Contains(whole.stdout, "Return of episode 2 (published: the 100th)") || !strings.Contains(whole.stdout, "haul bench worlds DR4-12-2 --context=24 --iterations=2") {
		t.Fatalf("%d: %s%s", whole.code, whole.stdout, whole.stderr)
	}
	dir := filepath.Join(out, "DR4-12-2-seed-3")
	if err := os.Remove(filepath.Join(dir, run.ResultName)); err != nil { // as a kill leaves it
		t.Fatal(err)
	}
	figures := func(r result) string { // all but the seconds
		cells := strings.Split(r.stdout, "|")
		return strings.Join(cells[:len(cells)-2], "|")
	}
	for _, want := range []string{"--resume " + dir, dir + " has ended before"} {
		if r := table(); r.code != exitDone || figures(r) != figures(whole) || !strings.Contains(r.stderr, want) {
			t.Errorf("%d: %s%s; want %s and the table\n%s", r.code, r.stdout, r.stderr, want, whole.stdout)
		}
	}
	if r := table("--set", "lr=0.5"); r.code == exitDone || !strings.Contains(r.stderr, `"lr: 0.001", not "lr: 0.5"`) || !strings.Contains(r.stderr, "--force") {
		t.Errorf("other settings: %d: %s", r.code, r.stderr)
	}
}

// TestWorldsAtOnce: runs beside each other come to the table of runs one after another, every line
// of theirs says whose it is, and what fails leaves the rows before it on the page.
func TestWorldsAtOnce(t *testing.T) {
	table := func(out string, more ...string) result {
		args := []string{"bench", "worlds", "DR4-12-2", "K2D4-9-1", "--device", "cpu", "--context", "24", "--iterations", "2", "--seeds", "3,5", "--out", out}
		for _, set := range []string{"tf_n_embd=16", "tf_n_layer=1", "tf_n_head=2", "train_batch_size=4", "num_warmup_steps=1", "test_batch_size=4", "eval_agents=1",
			"eval_episodes=2", "num_workers=1", "validation_goals=2"} {
			args = append(args, "--set", set)
		}
		return haul(t, append(args, more...)...)
	}
	figures := func(r result) (out []string) { // all but the seconds
		for line := range strings.Lines(r.stdout) {
			if cells := strings.Split(line, "|"); len(cells) > 7 {
				out = append(out, strings.Join(cells[:7], "|"))
			}
		}
		return out
	}
	one, out := table(filepath.Join(t.TempDir(), "one")), filepath.Join(t.TempDir(), "three")
	three := table(out, "--at-once", "3")
	if one.code != exitDone || three.code != exitDone || len(figures(one)) != 4 || !slices.Equal(figures(one), figures(three)) {
		t.Fatalf("one at a time %d:\n%s\nthree %d:\n%s%s", one.code, one.stdout, three.code, three.stdout, three.stderr)
	}
	if !strings.Contains(one.stderr, "--set=compress_interval=10 --set=compress_min=7 ") {
		t.Errorf("regions of other lengths: %s", one.stderr)
	}
	for line := range strings.Lines(three.stderr) {
		if !strings.HasPrefix(line, "DR4-12-2 3: ") && !strings.HasPrefix(line, "DR4-12-2 5: ") && !strings.HasPrefix(line, "K2D4-9-1 3: ") && !strings.HasPrefix(line, "K2D4-9-1 5: ") &&
			!strings.Contains(line, " over 2 seeds") {
			t.Errorf("whose is %q?", line)
		}
	}
	if r := table(out, "--at-once", "0"); r.code != exitUsage || !strings.Contains(r.stderr, "--at-once is 0") {
		t.Errorf("none at once: %d: %s", r.code, r.stderr)
	}
	if r := haul(t, "bench", "worlds", "DR4-12-2", "DR4-12-2", "--device", "cpu", "--out", out); r.code != exitUsage || !strings.Contains(r.stderr, "DR4-12-2 is named twice") {
		t.Errorf("a set twice: %d: %s", r.code, r.stderr)
	}
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.MkdirAll(filepath.Join(broken, "K2D4-9-1-seed-5.hist"), 0o755); err != nil {
		t.Fatal(err)
	}
	r := table(broken, "--at-once", "2")
	page, err := os.ReadFile(filepath.Join(broken, "worlds.md"))
	if r.code != exitFailed || !strings.Contains(r.stderr, "K2D4-9-1, seed 5: ") || err != nil || !strings.Contains(string(page), "| DR4-12-2 |") || strings.Contains(string(page), "| K2D4-9-1 |") {
		t.Errorf("a set that fails: %d: %s%v\n%s", r.code, r.stderr, err, page)
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
	r := haul(t, args...)
	if r.code != exitDone || !strings.Contains(r.stdout, "| XLand-trivial-8-3 | – | – |") || !strings.Contains(r.stdout, "Return of episode 1 (published: the 500th)") ||
		!strings.Contains(r.stderr, "--config=ad_xland") {
		t.Fatalf("%d: %s%s", r.code, r.stdout, r.stderr)
	}
	show := haul(t, "data", "show", filepath.Join(out, "XLand-trivial-8-3-seed-3.hist"))
	if !strings.Contains(show.stdout, "11: 8 to learn from, 3 held out") {
		t.Errorf("%s%s", show.stdout, show.stderr)
	}
	for _, name := range []string{"XLand-small", "XLand-trivial-8", "XLand-trivial-0-3", "XLand-trivial-8-3x"} {
		if r := haul(t, "bench", "worlds", name, "--device", "cpu", "--out", out); r.code != exitUsage || strings.Count(r.stderr, "\n") != 1 || !strings.Contains(r.stderr, "XLand-trivial") {
			t.Errorf("%s: %d: %s", name, r.code, r.stderr)
		}
	}
}
