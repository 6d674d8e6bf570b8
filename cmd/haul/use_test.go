package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"

	"haul/internal/kernel/kerneltest"
	"haul/internal/run"
	"haul/internal/run/runtest"
)

// asProgram makes the test's own binary the program.
const asProgram = "HAUL_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	debug.SetGCPercent(400) // a fifth of the time went into collecting what a process of one verb leaves
	kerneltest.OneCore()
	done := runtest.Memory()
	code := m.Run()
	done()
	os.Exit(code)
}

// executeApart is execute in a process of its own.
func executeApart(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), asProgram+"=1"), stdout, stderr
	_ = cmd.Run() // its code says all
	return cmd.ProcessState.ExitCode()
}

// TestWrongUseIsTwo: what the command line alone tells is wrong use, whether or not the files it
// names exist.
func TestWrongUseIsTwo(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"train", "--set", "training.batch_size=abc"}, exitUsage, "must be a whole number"},
		{[]string{"train", "--config", "nosuch.yaml", "--epochs", "-3"}, exitUsage, "--epochs is -3"},
		{[]string{"train", "--config", "nosuch.yaml", "--precision", "int4"}, exitUsage, "int4"},
		{[]string{"train", "--config", "nosuch.yaml", "--device", "tpu"}, exitUsage, "tpu"},
		{[]string{"train", "--config", "nosuch.yaml"}, exitFailed, "nosuch"},
		// by the settings that it is laid over
		{[]string{"train", "--set", "model.num_heads=5"}, exitFailed, "not divisible"},
		{[]string{"train", "--epochs", "9000000000000000000"}, exitUsage, "at most 1000000000"},
		{[]string{"train", "--confg", "quick"}, exitUsage, "did you mean --config?"},
		{[]string{"bench", "step", "--workrs=2"}, exitUsage, "did you mean --workers?"},
		{[]string{"train", "--zzzzzz"}, exitUsage, "unknown flag --zzzzzz (see haul train --help)"},
		{[]string{"train", "--seed", "-1"}, exitUsage, `--seed is "-1": a whole number from 0 on is needed`},
		{[]string{"solve", "--best-known", "x"}, exitUsage, `--best-known is "x": a number is needed`},
		{[]string{"help", "solv"}, exitUsage, `did you mean "solve"?`},
		{[]string{"help", "bench", "stp"}, exitUsage, `did you mean "step"?`},
		{[]string{"lab", "run", "cost-gpu", "--device", "cpu"}, exitFailed, "needs a GPU"},
		{[]string{"solve", "."}, exitFailed, ". is a folder: name a .vrp or .csv file"},
	} {
		r := haul(t, c.args...)
		line := strings.TrimSuffix(r.stderr, "\n")
		if r.code != c.code || !strings.Contains(line, c.want) || strings.Contains(line, "strconv") || strings.Contains(line, "\n") {
			t.Errorf("%v: exit %d, want %d and %q: %q", c.args, r.code, c.code, c.want, r.stderr)
		}
	}
}

// TestVersionByFlag: where people look first.
func TestVersionByFlag(t *testing.T) {
	if r := haul(t, "--version"); r.code != exitDone || r.stdout != haul(t, "version").stdout {
		t.Errorf("exit %d, %q, %q", r.code, r.stdout, r.stderr)
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
		{[]string{"bench", "step", "--set", "model.hidden_dim=65536"}, exitUsage, "at most 16384"},
		{[]string{"bench", "step", "--device", "cpu", "--set", "model.hidden_dim=16384", "--set", "model.num_layers=60"}, exitFailed, "the model needs"},
		{[]string{"train", "--set", "problem.num_customers=500000000"}, exitUsage, "at most 100000"},
		{[]string{"train", "--set", "training.batch_size=100000000"}, exitUsage, "at most 1048576"},
		{[]string{"train", "--set", "baseline.eval_batches=100000000"}, exitUsage, "at most 1048576"},
		{[]string{"data", "darkroom", "--out", filepath.Join(t.TempDir(), "x"), "--streams", "1000000", "--steps", "1000000000"}, exitUsage, "at most 65536"},
		{[]string{"data", "darkroom", "--out", filepath.Join(t.TempDir(), "x"), "--streams", "100", "--steps", "1000000000000"}, exitUsage, "at most 1000000000"},
		{[]string{"bench", "step", "--config", "ad_dr", "--set", "tf_n_embd=65536"}, exitUsage, "at most 16384"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		r := haulIn(ctx, c.args...)
		cancel()
		if r.code != c.code || !strings.Contains(r.stderr, c.want) || !strings.HasPrefix(r.stderr, "haul: ") || strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("%v: exit %d, want %d and %q: %q", c.args, r.code, c.code, c.want, r.stderr)
		}
	}
}

// TestMoreWorkersThanCores: they would only wait for each other, each with memory of its own.
func TestMoreWorkersThanCores(t *testing.T) {
	for _, line := range []string{"bench step --device cpu --rounds 1 --set model.hidden_dim=16 --set training.batch_size=4", "bench matmul --rounds 1"} {
		r := haul(t, append(strings.Fields(line), "--workers", "100000")...)
		want := fmt.Sprintf("--workers is 100000, this machine has %d core", max(runtime.NumCPU(), runtime.GOMAXPROCS(0)))
		if r.code != exitDone || strings.Count(r.stderr, want) != 1 || strings.Count(r.stderr, "\n") != 1 || strings.Contains(r.stdout, "100000") {
			t.Errorf("haul %s: exit %d, %q; want one line with %q", line, r.code, r.stderr, want)
		}
	}
}

// TestBenchStepIsReadable: a mean over rounds is no reason for seventeen digits.
func TestBenchStepIsReadable(t *testing.T) {
	var b strings.Builder
	r := &stepReport{Copies: 0.04019900497512438, Launches: 1, step: new(run.Step)}
	r.print(&b, &app{stdout: io.Discard})
	if !strings.Contains(b.String(), "1 launches, 0.0402 copies") {
		t.Errorf("%s", b.String())
	}
}

// TestOneInstanceIsOne: "1 grid instances".
func TestOneInstanceIsOne(t *testing.T) {
	if r := haul(t, "solve", "--count", "1", "--customers", "4"); r.code != exitDone || !strings.HasPrefix(r.stdout, "1 grid instance, ") {
		t.Errorf("exit %d, %q, %q", r.code, r.stdout, r.stderr)
	}
	one := write(t, "one.csv", "id,x,y,demand\nd,0,0,0\na,3,4,1\n")
	if r := haul(t, "solve", one, "--capacity", "5"); r.code != exitDone || !strings.HasPrefix(r.stdout, "one, 1 customer, capacity 5, exact\n") {
		t.Errorf("exit %d, %q, %q", r.code, r.stdout, r.stderr)
	}
}

// TestDevicesHelpNamesWhatACardServes: it used to say that no verb uses one.
func TestDevicesHelpNamesWhatACardServes(t *testing.T) {
	if r := haul(t, "devices", "--help"); strings.Contains(r.stdout, "not used") || !strings.Contains(r.stdout, "--device cuda:K") {
		t.Errorf("%s", r.stdout)
	}
}

// TestProfileHeedsCtrlC: it used to measure on for up to a minute.
func TestProfileHeedsCtrlC(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	args := append([]string{"profile", "--config", "tiny_1"}, small...)
	if r := haulIn(ctx, append(args, "--steps", "3000")...); r.code != exitInterrupted || r.stderr != "haul: interrupted\n" {
		t.Errorf("exit %d, %q", r.code, r.stderr)
	}
}

// TestAReaderWhoLeavesKnows: `haul doctor ... | head -1` said that it was interrupted, where the
// signal came before the write's error.
func TestAReaderWhoLeavesKnows(t *testing.T) {
	for signal, words := range map[syscall.Signal]string{syscall.SIGPIPE: "", syscall.SIGTERM: "haul: interrupted\n"} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(&signalled{signal})
		if r := haulIn(ctx, "doctor", "../../docs/examples/trace.json.gz"); r.code != 128+int(signal) || r.stderr != words {
			t.Errorf("%v: exit %d, %q", signal, r.code, r.stderr)
		}
	}
}

// TestARunThatNeverBeganIsNotSaved: one that was ended while it was prepared told how to go on in a
// folder that is not there.
func TestARunThatNeverBeganIsNotSaved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	args := append([]string{"train", "--config", "tiny_1", "--device", "cpu", "--out", dir, "--set", "model.hidden_dim=16"}, "--set", "model.num_layers=1")
	refused(t, append(args, "--time", "1ns"), exitFailed, "--time 1ns was over before the run had begun")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r := haulIn(ctx, args...); r.code != exitInterrupted || r.stderr != "haul: interrupted\n" {
		t.Errorf("exit %d, %q", r.code, r.stderr)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the folder is there")
	}
}
