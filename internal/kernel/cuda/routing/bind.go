// Package routing launches the drawing of instances, rollouts and their gradients.
package routing

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
		return nil, false, nil
	}
	switch o := op.(type) {
	case *kernel.Generate:
		launches, err = generate(b, o)
	case *kernel.Rollout:
		launches, err = rollout(b, o)
	case *kernel.RolloutGrad:
		launches, err = RolloutGrad(b, o)
	default:
		known = false
	}
	return launches, known, err
}
