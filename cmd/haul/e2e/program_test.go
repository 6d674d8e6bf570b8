package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"haul/cmd/haul/clitest"
	"haul/internal/run/runtest"
)

// repository is its root, seen from here.
const repository = "../../.."

// The exit codes, as the manual has them.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

var (
	// built is the folder of the program, empty as long as no test has asked for it.
	built string
	// environment is that of the process, before a test moves the user's cache: with it a build finds
	// what was compiled before.
	environment = os.Environ()
	// outside is where programs may lie: memory may be closed to them.
	outside = os.TempDir()
)

func TestMain(m *testing.M) {
	if signal.Ignored(os.Interrupt) { // as in a shell's background; the program must not inherit it
		signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	}
	done := runtest.Memory()
	code := m.Run()
	done()
	if built != "" {
		os.RemoveAll(built)
	}
	os.Exit(code)
}

// program builds haul, once for all tests and with the race detector where they have it, and is
// its path.
var program = sync.OnceValue(func() string {
	root, err := filepath.Abs(repository)
	if err != nil {
		panic(err)
	}
	for _, dir := range []string{"cmd", "configs", "internal", "policies", "vrp"} {
		if err := filepath.WalkDir(filepath.Join(root, dir), func(_ string, _ fs.DirEntry, err error) error { return err }); err != nil {
			panic(err)
		}
	}
	if built, err = os.MkdirTemp(outside, "haul-e2e-"); err != nil {
		panic(err)
	}
	path := filepath.Join(built, "haul")
	build := exec.Command("go", "build", "-race="+fmt.Sprint(raced), "-o", path, "haul/cmd/haul")
	build.Dir, build.Env = root, environment
	if !raced {
		build.Env = append(slices.Clone(environment), "CGO_ENABLED=0")
	}
	if out, err := build.CombinedOutput(); err != nil {
		panic(fmt.Sprintf("go build: %v\n%s", err, out))
	}
	return path
})

// execute runs the program and returns its exit code. Where the context ends, the program gets an
// interrupt, as by Ctrl-C.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cmd := exec.CommandContext(ctx, program(), args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, stdout, stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		panic(err) // it never began
	} else if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) && ctx.Err() == nil {
		panic(err)
	}
	return cmd.ProcessState.ExitCode()
}

// result is what one command line left behind.
type result struct {
	code           int
	stdout, stderr string
}

func haul(t *testing.T, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	code := execute(t.Context(), args, &out, &errs)
	return result{code, out.String(), errs.String()}
}

// object runs a command that must succeed and print one JSON object and nothing else.
func object(t *testing.T, args ...string) map[string]any {
	t.Helper()
	r := haul(t, args...)
	return clitest.Object(t, args, r.code, r.stdout, r.stderr)
}

// refused runs a command line that must end with one line on standard error and nothing on standard
// output.
func refused(t *testing.T, args []string, code int, want string) {
	t.Helper()
	r := haul(t, args...)
	clitest.Refused(t, r.code, r.stdout, r.stderr, code, want)
}

// override is a command line with more behind it, without the settings of args that more has too:
// the program remarks on a setting that a later one replaces.
func override(args []string, more ...string) []string {
	again := map[string]bool{}
	for i, arg := range more {
		if i > 0 && more[i-1] == "--set" {
			key, _, _ := strings.Cut(arg, "=")
			again[key] = true
		}
	}
	var out []string
	for i := 0; i < len(args); i++ {
		if args[i] == "--set" {
			if key, _, _ := strings.Cut(args[i+1], "="); again[key] {
				i++
				continue
			}
		}
		out = append(out, args[i])
	}
	return append(out, more...)
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	return clitest.Write(t, name, text)
}

// wholeOnly leaves a test out of the race detector's pass, where it takes minutes and runs no
// goroutine that others do not.
func wholeOnly(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("runs without -short")
	}
}
