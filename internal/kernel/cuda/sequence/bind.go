// Package sequence launches embeddings, rotary positions, recurrent cells, rows of tokens and
// losses.
package sequence

import (
	"embed"

	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
)

// PTX are the family's kernels, a module per file, as scripts/ptx makes them from src. They stay
// compressed until a program needs one.
//
//go:embed ptx/*.ptx.zst
var PTX embed.FS

// Bind returns the launches of an op of this family. It reports false for an op of another.
func Bind(b *bind.Binder, op kernel.Op) (launches []bind.Launch, known bool, err error) {
	known = true
	if b.AnyCompact(op) {
		switch o := op.(type) {
		case *kernel.Rotate:
			launches, err = rotate(b, o)
		case *kernel.Spread:
			launches, err = spread(b, o)
		case *kernel.SpreadGrad:
			launches, err = spreadGrad(b, o)
		case *kernel.EmbedGrad:
			launches, err = embedGrad(b, o)
		default:
			known = false
		}
		return launches, known, err
	}
	switch o := op.(type) {
	case *kernel.Embed:
		launches, err = Embed(b, o)
	case *kernel.EmbedGrad:
		launches, err = embedGrad(b, o)
	case *kernel.Rotate:
		launches, err = rotate(b, o)
	case *kernel.Spread:
		launches, err = spread(b, o)
	case *kernel.SpreadGrad:
		launches, err = spreadGrad(b, o)
	case *kernel.CrossEntropy:
		launches, err = crossEntropy(b, o)
	case *kernel.GRU:
		launches, err = gru(b, o)
	case *kernel.GRUGrad:
		launches, err = gruGrad(b, o)
	case *kernel.PPO:
		launches, err = ppo(b, o)
	case *kernel.Regions:
		launches, err = regions(b, o)
	default:
		known = false
	}
	return launches, known, err
}
