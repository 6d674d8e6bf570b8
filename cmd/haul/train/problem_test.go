package train_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"haul/cmd/haul/cli"
	"haul/cmd/haul/clitest/inprocess"
)

// TestTrainOnAProblemFile: what haul problem new writes is trained, evaluated and resumed without
// the file; a file that has changed is refused with the line, and so is one with mistakes.
func TestTrainOnAProblemFile(t *testing.T) {
	dir := t.TempDir()
	mine, out := filepath.Join(dir, "mine"), filepath.Join(dir, "run")
	if r := inprocess.Run(t, "problem", "new", mine); r.Code != cli.ExitDone {
		t.Fatal(r.Stderr)
	}
	small := []string{"--set", "training.num_batches_per_epoch=2", "--set", "training.batch_size=8", "--set", "training.validation_instances=20", "--set", "model.hidden_dim=16", "--set", "model.num_layers=1"}
	train := func(args ...string) inprocess.Result { return inprocess.Run(t, append([]string{"train"}, args...)...) }
	if r := train(append([]string{"--problem", mine, "--out", out, "--epochs", "1"}, small...)...); r.Code != cli.ExitDone || !strings.Contains(r.Stdout+r.Stderr, "nearest allowed") {
		t.Fatal(r.Stdout, r.Stderr)
	}
	if r := train("--resume", out, "--problem", mine, "--epochs", "2"); r.Code != cli.ExitDone {
		t.Fatal(r.Stderr)
	}
	file := filepath.Join(mine, "mine.go")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(text), "return -to.Prize", "return -2 * to.Prize", 1)
	if err := os.WriteFile(file, []byte(changed), 0o666); err != nil {
		t.Fatal(err)
	}
	if r := train("--resume", out, "--problem", mine, "--epochs", "3"); r.Code == cli.ExitDone || !strings.Contains(r.Stderr, `was "return -to.Prize" and is "return -2 * to.Prize"`) {
		t.Error(r.Stderr)
	}
	if err := os.RemoveAll(mine); err != nil {
		t.Fatal(err)
	}
	if r := train("--resume", out, "--epochs", "3"); r.Code != cli.ExitDone {
		t.Error(r.Stderr)
	}
	if r := inprocess.Run(t, "eval", "--checkpoint", out, "--count", "20"); r.Code != cli.ExitDone || !strings.Contains(r.Stdout, "to nearest allowed") {
		t.Error(r.Stdout, r.Stderr)
	}
	bad := filepath.Join(dir, "bad.go")
	if err := os.WriteFile(bad, []byte(strings.Replace(string(text), "v.Left -=", "v.Gone -=", 1)), 0o666); err != nil {
		t.Fatal(err)
	}
	if r := train("--problem", bad); r.Code == cli.ExitDone || !strings.Contains(r.Stderr, "bad.go:") || !strings.Contains(r.Stderr, "Gone") {
		t.Error(r.Stderr)
	}
}
