// Package sequence binds ops of one family to a CPU's workers: embeddings, rotary positions,
// recurrent cells, rows of tokens, losses.
package sequence

import (
	"haul/internal/kernel"
	"haul/internal/kernel/cpu/run"
)

// Bind returns what a worker does for an op of this family, over its shard; known is false for an
// op of another family.
func Bind(b *run.Binder, op kernel.Op) (do func(*run.Worker), known bool, err error) {
	switch o := op.(type) {
	case *kernel.Regions:
		do, err = regions(b, o)
	case *kernel.Embed:
		do = embed(b, o)
	case *kernel.EmbedGrad:
		do = embedGrad(b, o)
	case *kernel.Rotate:
		do = rotate(b, o)
	case *kernel.Spread:
		do = spread(b, o)
	case *kernel.SpreadGrad:
		do = spreadGrad(b, o)
	case *kernel.CrossEntropy:
		do = crossEntropy(b, o)
	case *kernel.ImplicitQ:
		do = implicitQ(b, o)
	case *kernel.GRU:
		do = gru(b, o)
	case *kernel.GRUGrad:
		do = gruGrad(b, o)
	case *kernel.PPO:
		do = ppo(b, o)
	default:
		return nil, false, nil
	}
	return do, true, err
}
