package root_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"haul/cmd/haul/cli"
	"haul/cmd/haul/clitest/inprocess"
	"haul/internal/run"
)

// TestAFolderOfRunsNamesOne: whoever names the folder above the runs is told of a run in it, and of
// none where there is none.
func TestAFolderOfRunsNamesOne(t *testing.T) {
	runs := t.TempDir()
	if err := os.Mkdir(filepath.Join(runs, "notes"), 0o755); err != nil {
		t.Fatal(err)
	}
	verbs := [][]string{{"train", "--resume", runs}, {"eval", "--checkpoint", runs}, {"act", "--checkpoint", runs}}
	for _, args := range verbs {
		if r := inprocess.Run(t, args...); r.Code != cli.ExitFailed || strings.Contains(r.Stderr, "name a run") {
			t.Errorf("%v: exit %d, %q", args, r.Code, r.Stderr)
		}
	}
	one := filepath.Join(runs, "quick[1]")
	if err := os.Mkdir(one, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(one, run.LastName), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range verbs {
		inprocess.Refused(t, args, cli.ExitFailed, "; name a run in it, such as "+one)
	}
}

// TestResumeNamesWhatDiffers: settings of another recipe are refused as such, before what they
// would read is looked for. Of a run whose last checkpoint is damaged the best weights are named.
func TestResumeNamesWhatDiffers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "learner")
	r := inprocess.Run(t, "train", "--model", "PPO", "--device", "cpu", "--out", dir, "--iterations", "1", "--set", "grid_size=3", "--set", "n_steps=20",
		"--set", "n_stream=4", "--set", "batch_size=20", "--set", "n_epochs=1")
	if r.Code != cli.ExitDone {
		t.Fatalf("exit %d: %s", r.Code, r.Stderr)
	}
	inprocess.Refused(t, []string{"train", "--resume", dir, "--config", "ad_dr_small"}, cli.ExitUsage, dir+" holds a run of PPO, and --config ad_dr_small has settings of AD")
	last, best := filepath.Join(dir, run.LastName), filepath.Join(dir, run.BestName)
	whole, err := os.ReadFile(last)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(last, whole[:len(whole)/2], 0o644); err != nil {
		t.Fatal(err)
	}
	for _, kept := range []bool{false, true} {
		if kept {
			if err := os.WriteFile(best, whole, 0o644); err != nil {
				t.Fatal(err)
			}
		} else if err := os.RemoveAll(best); err != nil {
			t.Fatal(err)
		}
		r := inprocess.Run(t, "train", "--resume", dir)
		if r.Code != cli.ExitFailed || !strings.Contains(r.Stderr, "truncated: ") || strings.Contains(r.Stderr, "(--from "+best+" begins a run with its best weights)") != kept {
			t.Errorf("exit %d, %q", r.Code, r.Stderr)
		}
	}
}

// TestMissingInstancesAreNamed: the flag goes with the file that is not there.
func TestMissingInstancesAreNamed(t *testing.T) {
	inprocess.Refused(t, []string{"eval", "1000", "--policy", "cvrp20", "--device", "cpu"}, cli.ExitFailed, "1000: there is no such file, folder or set")
}
