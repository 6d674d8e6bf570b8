package cli

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
	ExitDone        = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitUnserved    = 3 // routes were found and reported, and required customers are on none
	ExitInterrupted = 130
)

// usageError marks an error of the command line.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }

func (e usageError) Unwrap() error { return e.err }

func Usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// AsUsage marks an error that a package found in what the user typed.
func AsUsage(err error) error {
	if err == nil {
		return nil
	}
	return usageError{err}
}

// Exit prints the error as one line and picks the code.
func (a *App) Exit(ctx context.Context, err error) int {
	if err == nil {
		return ExitDone
	}
	if code := ExitCode(0); errors.As(err, &code) {
		return int(code)
	}
	quiet := errors.As(err, new(Silent)) // a rank whose error another one prints
	stopped := errors.Is(err, context.Canceled) || errors.Is(err, kernel.ErrStopped)
	i := new(run.Interrupted)
	if saved := errors.As(err, &i); (ctx.Err() != nil || saved) && stopped {
		code := interruptedCode(ctx)
		// whoever read the results: they know, but for what was saved
		left := code == (&Signalled{syscall.SIGPIPE}).code()
		if !quiet && (saved || !left) {
			a.Complain(interruption(err))
		}
		return code
	}
	if errors.Is(err, syscall.EPIPE) { // whoever read the results has left, and knows
		return (&Signalled{syscall.SIGPIPE}).code()
	}
	if quiet {
		return ExitFailed
	}
	if errors.Is(err, cu.ErrNoDriver) {
		err = fmt.Errorf("%w: install NVIDIA's driver, or use --device cpu", err)
	}
	a.Complain(OneLine(err.Error()))
	if errors.As(err, new(usageError)) || errors.As(err, new(*run.UsageError)) || errors.As(err, new(*config.SetError)) {
		return ExitUsage
	}
	return ExitFailed
}

// Complain prints why the program ends: one line, which a screen gets broken at words, so that none
// is cut in two. A command within it stays whole, to be copied.
func (a *App) Complain(text string) {
	text = "haul: " + text
	to := a.Stderr
	if a.Errors != nil {
		to = a.Errors
	}
	if a.Columns > 0 || IsTerminal(to) {
		text = strings.Join(report.Wrap(tieCommands(text), a.Width()-1, 2), "\n")
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

// FirstOf keeps the error that came first: closing after a failure often fails too.
func FirstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Silent is an error that another process tells of.
type Silent struct{ error }

func (s Silent) Unwrap() error { return s.error }

// ExitCode is an error whose words are out.
type ExitCode int

func (e ExitCode) Error() string { return fmt.Sprintf("a rank ended with code %d", int(e)) }

// interruption is what a user who pressed Ctrl-C reads.
func interruption(err error) string {
	if i := new(run.Interrupted); errors.As(err, &i) {
		return i.Error()
	}
	return "interrupted"
}
