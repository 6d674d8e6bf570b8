package run

import (
	"context"
	"errors"

	"haul/internal/kernel"
)

// Stop asks a runner to give up, where it can.
func Stop(r kernel.Runner) {
	if s, ok := r.(kernel.Stopper); ok {
		s.Stop()
	}
}

// Replay runs a step of which nothing is kept when the context ends: its end stops the step
// wherever it is, and the runner for good. It is for evaluations and trials; a training step is
// given up by Abandoner, with some patience.
func Replay(ctx context.Context, r kernel.Runner) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { Stop(r) })()
	err := r.Run()
	if errors.Is(err, kernel.ErrStopped) && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
