package run

import (
	"context"
	"errors"
	"testing"

	"haul/internal/kernel"
)

// endless is a runner whose step ends only when it is stopped.
type endless struct {
	kernel.Runner
	begun, stop chan struct{}
}

func (e *endless) Stop() { close(e.stop) }
func (e *endless) Run() error {
	close(e.begun)
	<-e.stop
	return kernel.ErrStopped
}
func (e *endless) Close() error { return nil }

// TestTheEndOfTheContextReachesInsideAReplay: an evaluation or a trial with an endless step ends
// with the context and returns its error.
func TestTheEndOfTheContextReachesInsideAReplay(t *testing.T) {
	for name, work := range map[string]func(context.Context, kernel.Runner) error{
		"replay": Replay,
		"trial":  func(ctx context.Context, r kernel.Runner) error { _, err := (&Step{Runner: r}).Trial(ctx); return err },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		e := &endless{begun: make(chan struct{}), stop: make(chan struct{})}
		go func() {
			<-e.begun
			cancel()
		}()
		if err := work(ctx, e); !errors.Is(err, context.Canceled) || errors.Is(err, kernel.ErrStopped) {
			t.Errorf("%s: %v", name, err)
		}
		// does not start a step: `begun` would be closed twice
		if err := work(ctx, e); !errors.Is(err, context.Canceled) {
			t.Errorf("%s after the end: %v", name, err)
		}
	}
}
