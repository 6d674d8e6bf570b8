// Package routing binds ops of one family to a CPU's workers: drawing instances, rollouts, their
// gradients and advantages.
package routing

import (
	"haul/internal/kernel"
	"haul/internal/kernel/cpu/run"
)

// Bind returns what a worker does for an op of this family, over its shard; known is false for an
// op of another family.
func Bind(b *run.Binder, op kernel.Op) (do func(*run.Worker), known bool, err error) {
	switch o := op.(type) {
	case *kernel.Generate:
		do = generate(b, o)
	case *kernel.Rollout:
		do = rollout(b, o)
	case *kernel.RolloutGrad:
		do = rolloutGrad(b, o)
	case *kernel.Advantage:
		do = advantage(b, o)
	default:
		return nil, false, nil
	}
	return do, true, err
}
