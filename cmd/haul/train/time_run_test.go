package train_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"haul/cmd/haul/cli"
	"haul/cmd/haul/clitest/inprocess"
)

// TestARunThatNeverBeganIsNotSaved: one that was ended while it was prepared told how to go on in a
// folder that is not there.
func TestARunThatNeverBeganIsNotSaved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	args := append([]string{"train", "--config", "tiny_1", "--device", "cpu", "--out", dir, "--set", "model.hidden_dim=16"}, "--set", "model.num_layers=1")
	inprocess.Refused(t, append(args, "--time", "1ns"), cli.ExitFailed, "--time 1ns was over before the run had begun")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r := inprocess.RunIn(ctx, args...); r.Code != cli.ExitInterrupted || r.Stderr != "haul: interrupted\n" {
		t.Errorf("exit %d, %q", r.Code, r.Stderr)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the folder is there")
	}
}
