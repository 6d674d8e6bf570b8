// Package inprocess runs command lines of the whole program inside a test.
package inprocess

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"testing"

	"haul/cmd/haul/clitest"
	"haul/cmd/haul/root"
	"haul/internal/kernel/kerneltest"
	"haul/internal/run/runtest"
)

// Result is what one command line left behind.
type Result struct {
	Code           int
	Stdout, Stderr string
}

// Run runs a command line.
func Run(t *testing.T, args ...string) Result {
	t.Helper()
	return RunIn(context.Background(), args...)
}

// RunIn runs a command line until the context ends.
func RunIn(ctx context.Context, args ...string) Result {
	var out, errs bytes.Buffer
	code := root.Execute(ctx, args, &out, &errs)
	return Result{code, out.String(), errs.String()}
}

// Object runs a command that must succeed and print one JSON object and nothing else.
func Object(t *testing.T, args ...string) map[string]any {
	t.Helper()
	r := Run(t, args...)
	return clitest.Object(t, args, r.Code, r.Stdout, r.Stderr)
}

// Refused runs a command line that must end with one line on standard error and nothing on standard
// output.
func Refused(t *testing.T, args []string, code int, want string) {
	t.Helper()
	r := Run(t, args...)
	clitest.Refused(t, r.Code, r.Stdout, r.Stderr, code, want)
}

// asProgram makes the test's own binary the program.
const asProgram = "HAUL_TEST_AS_PROGRAM"

// Main runs the tests of a package, or the program where RunApart has started the test binary.
func Main(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		root.Main()
	}
	debug.SetGCPercent(400) // a fifth of the time went into collecting what a process of one verb leaves
	kerneltest.OneCore()
	done := runtest.Memory()
	code := m.Run()
	done()
	os.Exit(code)
}

// RunApart runs a command line in a process of its own and returns its exit code.
func RunApart(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), asProgram+"=1"), stdout, stderr
	_ = cmd.Run() // its code says all
	return cmd.ProcessState.ExitCode()
}
