package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"haul/internal/comm"
)

// Signalled is the cause of a context that ended because somebody asked the process to end.
type Signalled struct{ Signal syscall.Signal }

func (s *Signalled) Error() string { return fmt.Sprintf("ended by signal: %v", s.Signal) }

// Unwrap makes it an end of the context like any other.
func (s *Signalled) Unwrap() error { return context.Canceled }

// code is what a shell reports of a process that the signal ended.
func (s *Signalled) code() int { return 128 + int(s.Signal) }

// grace is how long ranks take a launcher's further signals for the first one.
const grace = 5 * time.Second

// EndOnSignal ends the context with the first signal that asks the process to end: Ctrl-C, SIGTERM
// of a scheduler or a container, SIGHUP of a terminal that closes, SIGPIPE of a reader that has
// left. Verbs that watch the context then save what they have. A second signal ends the process at
// once, except SIGPIPE, which comes with every further write. Under nohup SIGHUP stays ignored.
func EndOnSignal(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	asked, pipe := make(chan os.Signal, 1), make(chan os.Signal, 1)
	if signal.Notify(asked, os.Interrupt, syscall.SIGTERM); !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(asked, syscall.SIGHUP)
	}
	signal.Notify(pipe, syscall.SIGPIPE)
	go func() {
		var s os.Signal
		select {
		case s = <-asked:
		case s = <-pipe:
		case <-ctx.Done():
			return
		}
		cancel(&Signalled{s.(syscall.Signal)})
		if place, err := comm.Detect(os.Getenv); err == nil && place.Size > 1 {
			// a launcher of several ranks repeats itself: what comes meanwhile is the same request
			time.Sleep(grace)
		}
		signal.Stop(asked)
	}()
	return ctx, func() { cancel(nil) }
}

// interruptedCode is the exit code of a context that has ended.
func interruptedCode(ctx context.Context) int {
	if s := new(Signalled); errors.As(context.Cause(ctx), &s) {
		return s.code()
	}
	return ExitInterrupted
}
