package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"syscall"

	"haul/internal/config"
	"haul/internal/cu"
	"haul/internal/kernel"
	"haul/internal/report"
	"haul/internal/run"
)

// The exit codes are a contract with scripts: 2 means that the command line itself is wrong,
// which can be decided without reading a file; 3 means that required customers are on no route
// of haul solve; every other error is 1. After a signal the code is 128 plus its number.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitUnserved    = 3 // routes were found and reported, and required customers are on none
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
	i := new(run.Interrupted)
	if saved := errors.As(err, &i); (ctx.Err() != nil || saved) && stopped {
		code := interruptedCode(ctx)
		// whoever read the results: they know, but for what was saved
		left := code == (&signalled{syscall.SIGPIPE}).code()
		if !quiet && (saved || !left) {
			a.complain(interruption(err))
		}
		return code
	}
	if errors.Is(err, syscall.EPIPE) { // whoever read the results has left, and knows
		return (&signalled{syscall.SIGPIPE}).code()
	}
	if quiet {
		return exitFailed
	}
	if errors.Is(err, cu.ErrNoDriver) {
		err = fmt.Errorf("%w: install NVIDIA's driver, or use --device cpu", err)
	}
	a.complain(oneLine(err.Error()))
	if errors.As(err, new(usageError)) || errors.As(err, new(*run.UsageError)) || errors.As(err, new(*config.SetError)) {
		return exitUsage
	}
	return exitFailed
}

// complain prints why the program ends: one line, which a screen gets broken at words, so that none
// is cut in two. A command within it stays whole, to be copied.
func (a *app) complain(text string) {
	text = "haul: " + text
	to := a.stderr
	if a.errors != nil {
		to = a.errors
	}
	if a.columns > 0 || isTerminal(to) {
		text = strings.Join(report.Wrap(tieCommands(text), a.width()-1, 2), "\n")
		text = strings.ReplaceAll(text, tie, " ")
	}
	fmt.Fprintln(to, text)
}

// tie is a blank at which no line is broken.
const tie = "\u00a0"

var commandWithin = regexp.MustCompile(`haul (train|eval|data|gen|solve|config|bench|profile|lab|doctor|devices)( [^;,]*[^;,: ])?`)

func tieCommands(text string) string {
	return commandWithin.ReplaceAllStringFunc(text, func(c string) string { return strings.ReplaceAll(c, " ", tie) })
}

// firstOf keeps the error that came first: closing after a failure often fails too.
func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
