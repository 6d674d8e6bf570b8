// Package routing launches the drawing of instances, rollouts and their gradients.
package routing

import (
	"embed"
	"fmt"

	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
	"haul/internal/rules"
)

// PTX are the family's kernels, a module per file, as scripts/ptx makes them from src. They stay
// compressed until a program needs one.
//
//go:embed ptx/*.ptx.zst
var PTX embed.FS

// Bind returns the launches of an op of this family. It reports false for an op of another.
func Bind(b *bind.Binder, op kernel.Op) (launches []bind.Launch, known bool, err error) {
	known = true
	if p := file(op); p != nil {
		return nil, true, fmt.Errorf("a GPU does not run the rules of problem files (%s) yet: --device cpu does", p.Name)
	}
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

// file returns the problem file whose rules an op asks for, nil if there is none.
func file(op kernel.Op) *rules.Problem {
	switch o := op.(type) {
	case *kernel.Generate:
		return o.Set.Problem()
	case *kernel.Rollout:
		return o.Set.Problem()
	case *kernel.RolloutGrad:
		return o.Set.Problem()
	}
	return nil
}
