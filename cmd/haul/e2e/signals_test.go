package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// longRun is a run of hours in a folder, as a process of its own.
func longRun(t *testing.T, more ...string) (*exec.Cmd, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	args := append([]string{"train", "--config", "tiny_1", "--device", "cpu", "--workers", "1", "--out", dir, "--epochs", "1000000", "--set", "model.hidden_dim=16", "--set", "model.num_layers=1",
		"--set", "training.batch_size=8", "--set", "training.validation_instances=10", "--set", "problem.num_customers=4", "--set", "training.num_batches_per_epoch=20",
		"--set", "training_advanced.use_early_stopping=false"}, more...)
	cmd := exec.Command(program(), args...)
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+t.TempDir())
	return cmd, dir
}

// TestASignalSavesTheRun: a scheduler's SIGTERM, a terminal that closes and Ctrl-C all leave a
// checkpoint of the last update, and say so.
func TestASignalSavesTheRun(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(s.String(), func(t *testing.T) {
			if signal.Ignored(s) {
				t.Skip("it is ignored here, as it is under nohup")
			}
			cmd, dir := longRun(t)
			var words strings.Builder
			cmd.Stderr = &words
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer cmd.Process.Kill()
			waitFor(t, filepath.Join(dir, "csv", "history_gt_rl.csv"), filepath.Join(dir, "last.safetensors"))
			if err := cmd.Process.Signal(s); err != nil {
				t.Fatal(err)
			}
			err := cmd.Wait()
			if exit := new(exec.ExitError); !errors.As(err, &exit) || exit.ExitCode() != 128+int(s) {
				t.Errorf("%v, want exit %d", err, 128+int(s))
			}
			if !strings.Contains(words.String(), "all is saved, continue with haul train --resume "+dir) {
				t.Errorf("it says %q", words.String())
			}
		})
	}
}

// TestAReaderWhoLeavesSavesTheRun: `haul train --json | head -1` loses no update.
func TestAReaderWhoLeavesSavesTheRun(t *testing.T) {
	cmd, dir := longRun(t, "--json")
	var words strings.Builder
	cmd.Stderr = &words
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	if _, err := io.ReadFull(out, make([]byte, 20)); err != nil {
		t.Fatal(err)
	}
	out.Close()
	err = cmd.Wait()
	if exit := new(exec.ExitError); !errors.As(err, &exit) || exit.ExitCode() != 128+int(syscall.SIGPIPE) {
		t.Errorf("%v, want exit %d", err, 128+int(syscall.SIGPIPE))
	}
	if !strings.Contains(words.String(), "all is saved, continue with haul train --resume "+dir) {
		t.Errorf("it says %q", words.String())
	}
}

// TestASignalLeavesNoHalfHistories: the temporary file of haul data goes with the work.
func TestASignalLeavesNoHalfHistories(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(program(), "data", "darkroom", "--out", filepath.Join(dir, "x.hist"), "--workers", "1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	temp := filepath.Join(dir, fmt.Sprintf("x.hist.%d.tmp", cmd.Process.Pid))
	waitFor(t, temp)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	err := cmd.Wait()
	if exit := new(exec.ExitError); !errors.As(err, &exit) || exit.ExitCode() != 143 {
		t.Errorf("%v, want exit 143", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("it leaves %v", left)
	}
}

// waitFor waits until the files are there.
func waitFor(t *testing.T, paths ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for _, path := range paths {
		for {
			if _, err := os.Stat(path); err == nil {
				break
			}
			if ctx.Err() != nil {
				t.Fatalf("%s never came", path)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}
