package root_test

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"haul/cmd/haul/cli"
	"haul/cmd/haul/clitest"
	"haul/cmd/haul/clitest/inprocess"
)

// TestWrongUseIsTwo: what the command line alone tells is wrong use, whether or not the files it
// names exist.
func TestWrongUseIsTwo(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"train", "--set", "training.batch_size=abc"}, cli.ExitUsage, "must be a whole number"},
		{[]string{"train", "--config", "nosuch.yaml", "--epochs", "-3"}, cli.ExitUsage, "--epochs is -3"},
		{[]string{"train", "--config", "nosuch.yaml", "--precision", "int4"}, cli.ExitUsage, "int4"},
		{[]string{"train", "--config", "nosuch.yaml", "--device", "tpu"}, cli.ExitUsage, "tpu"},
		{[]string{"train", "--config", "nosuch.yaml"}, cli.ExitFailed, "nosuch"},
		// by the settings that it is laid over
		{[]string{"train", "--set", "model.num_heads=5"}, cli.ExitFailed, "not divisible"},
		{[]string{"train", "--epochs", "9000000000000000000"}, cli.ExitUsage, "at most 1000000000"},
		{[]string{"train", "--confg", "quick"}, cli.ExitUsage, "did you mean --config?"},
		{[]string{"bench", "step", "--workrs=2"}, cli.ExitUsage, "did you mean --workers?"},
		{[]string{"train", "--zzzzzz"}, cli.ExitUsage, "unknown flag --zzzzzz (see haul train --help)"},
		{[]string{"train", "--seed", "-1"}, cli.ExitUsage, `--seed is "-1": a whole number from 0 on is needed`},
		{[]string{"solve", "x.vrp", "--best-known", "x"}, cli.ExitUsage, `--best-known is "x": a number is needed`},
		{[]string{"help", "solv"}, cli.ExitUsage, `did you mean "solve"?`},
		{[]string{"help", "bench", "stp"}, cli.ExitUsage, `did you mean "step"?`},
		{[]string{"lab", "run", "cost-gpu", "--device", "cpu"}, cli.ExitFailed, "needs a GPU"},
		{[]string{"solve", "."}, cli.ExitFailed, ". is a folder: name a .vrp or .csv file"},
	} {
		r := inprocess.Run(t, c.args...)
		line := strings.TrimSuffix(r.Stderr, "\n")
		if r.Code != c.code || !strings.Contains(line, c.want) || strings.Contains(line, "strconv") || strings.Contains(line, "\n") {
			t.Errorf("%v: exit %d, want %d and %q: %q", c.args, r.Code, c.code, c.want, r.Stderr)
		}
	}
}

// TestVersionByFlag: where people look first.
func TestVersionByFlag(t *testing.T) {
	if r := inprocess.Run(t, "--version"); r.Code != cli.ExitDone || r.Stdout != inprocess.Run(t, "version").Stdout {
		t.Errorf("exit %d, %q, %q", r.Code, r.Stdout, r.Stderr)
	}
}

// TestSizesPastAnyMachine: a slip of the finger gets a line that says what is too large, not a
// stack trace, and soon.
func TestSizesPastAnyMachine(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"bench", "step", "--set", "model.hidden_dim=65536"}, cli.ExitUsage, "at most 16384"},
		{[]string{"bench", "step", "--device", "cpu", "--set", "model.hidden_dim=16384", "--set", "model.num_layers=60"}, cli.ExitFailed, "the model needs"},
		{[]string{"train", "--set", "problem.num_customers=500000000"}, cli.ExitUsage, "at most 100000"},
		{[]string{"train", "--set", "training.batch_size=100000000"}, cli.ExitUsage, "at most 1048576"},
		{[]string{"train", "--set", "baseline.eval_batches=100000000"}, cli.ExitUsage, "at most 1048576"},
		{[]string{"data", "darkroom", "--out", filepath.Join(t.TempDir(), "x"), "--streams", "1000000", "--steps", "1000000000"}, cli.ExitUsage, "at most 65536"},
		{[]string{"data", "darkroom", "--out", filepath.Join(t.TempDir(), "x"), "--streams", "100", "--steps", "1000000000000"}, cli.ExitUsage, "at most 1000000000"},
		{[]string{"bench", "step", "--config", "ad_dr", "--set", "tf_n_embd=65536"}, cli.ExitUsage, "at most 16384"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), clitest.Patience)
		r := inprocess.RunIn(ctx, c.args...)
		cancel()
		if r.Code != c.code || !strings.Contains(r.Stderr, c.want) || !strings.HasPrefix(r.Stderr, "haul: ") || strings.Count(r.Stderr, "\n") != 1 {
			t.Errorf("%v: exit %d, want %d and %q: %q", c.args, r.Code, c.code, c.want, r.Stderr)
		}
	}
}

// TestMoreWorkersThanCores: they would only wait for each other, each with memory of its own.
func TestMoreWorkersThanCores(t *testing.T) {
	for _, line := range []string{"bench step --device cpu --rounds 1 --set model.hidden_dim=16 --set training.batch_size=4", "bench matmul --rounds 1"} {
		r := inprocess.Run(t, append(strings.Fields(line), "--workers", "100000")...)
		want := fmt.Sprintf("--workers is 100000, this machine has %d core", max(runtime.NumCPU(), runtime.GOMAXPROCS(0)))
		if r.Code != cli.ExitDone || strings.Count(r.Stderr, want) != 1 || strings.Count(r.Stderr, "\n") != 1 || strings.Contains(r.Stdout, "100000") {
			t.Errorf("haul %s: exit %d, %q; want one line with %q", line, r.Code, r.Stderr, want)
		}
	}
}

// TestDevicesHelpNamesWhatACardServes: it used to say that no verb uses one.
func TestDevicesHelpNamesWhatACardServes(t *testing.T) {
	if r := inprocess.Run(t, "devices", "--help"); strings.Contains(r.Stdout, "not used") || !strings.Contains(r.Stdout, "--device cuda:K") {
		t.Errorf("%s", r.Stdout)
	}
}

// TestAReaderWhoLeavesKnows: `haul doctor ... | head -1` said that it was interrupted, where the
// signal came before the write's error.
func TestAReaderWhoLeavesKnows(t *testing.T) {
	for signal, words := range map[syscall.Signal]string{syscall.SIGPIPE: "", syscall.SIGTERM: "haul: interrupted\n"} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(&cli.Signalled{Signal: signal})
		if r := inprocess.RunIn(ctx, "doctor", "../../../docs/examples/trace.json.gz"); r.Code != 128+int(signal) || r.Stderr != words {
			t.Errorf("%v: exit %d, %q", signal, r.Code, r.Stderr)
		}
	}
}
