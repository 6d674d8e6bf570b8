package run

import (
	"context"
	"errors"

	"haul/internal/kernel"
)

// Stop asks a runner to abandon its step, if it can.
func Stop(r kernel.Runner) {
	if s, ok := r.(kernel.Stopper); ok {
		s.Stop()
	}
}

// Replay runs a step whose result is not needed if the context ends: the end stops the runner
// inside the step; it cannot be used again. It is for evaluations and trials. A training step is
// abandoned with a delay, see Abandoner.
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
