// Package optimizer launches what runs once per step: sums, exchanges of gradients, AdamW, Muon
// and metrics.
package optimizer

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
	case *kernel.Advantage:
		launches, err = advantage(b, o)
	case *kernel.AdamW:
		launches, err = adamw(b, o)
	case *kernel.Reduce:
		launches, err = reduce(b, o)
	case *kernel.Exchange:
		launches, err = exchange(b, o)
	case *kernel.Tally:
		launches, err = tally(b, o)
	case *kernel.RunningMean:
		launches, err = runningMean(b, o)
	default:
		known = false
	}
	return launches, known, err
}
