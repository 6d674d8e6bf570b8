package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/run"
)

// The exit codes are a contract with scripts: 2 means that the command line itself is wrong, which
// can be told without reading a file; everything else that goes wrong is 1. A signal that ended the work is 128 and its number.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// usageError marks an error of the command line.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// asUsage marks an error that a package found in what the user typed.
func asUsage(err error) error {
	if err == nil {
		return nil
	}
	return usageError{err}
}

// exit prints the error as one line and picks the code.
func (a *app) exit(ctx context.Context, err error) int {
	if err == nil {
		return exitDone
	}
	if code := exitCode(0); errors.As(err, &code) {
		return int(code)
	}
	quiet := errors.As(err, new(silent)) // a rank whose error another one prints
	stopped := errors.Is(err, context.Canceled) || errors.Is(err, kernel.ErrStopped)
	if i := new(run.Interrupted); (ctx.Err() != nil || errors.As(err, &i)) && stopped {
		if !quiet {
			fmt.Fprintf(a.stderr, "haul: %s\n", interruption(err))
		}
		return interruptedCode(ctx)
	}
	if errors.Is(err, syscall.EPIPE) { // whoever read the results has left, and knows
		return (&signalled{syscall.SIGPIPE}).code()
	}
	if quiet {
		return exitFailed
	}
	fmt.Fprintf(a.stderr, "haul: %s\n", oneLine(err.Error()))
	if errors.As(err, new(usageError)) || errors.As(err, new(*run.UsageError)) || errors.As(err, new(*config.SetError)) {
		return exitUsage
	}
	return exitFailed
}
