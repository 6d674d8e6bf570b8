// Package dense launches matrix products, layer norms, gates and dropout.
package dense

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
		case *kernel.Linear:
			launches, err = bf16Linear(b, o)
		case *kernel.LinearGradX:
			launches, err = bf16LinearGradX(b, o)
		case *kernel.LinearGradW:
			launches, err = bf16LinearGradW(b, o)
		case *kernel.Norm:
			launches, err = Bf16Norm(b, o)
		case *kernel.NormGrad:
			launches, err = bf16NormGrad(b, o)
		case *kernel.Dropout:
			launches, err = bf16Dropout(b, o)
		default:
			known = false
		}
		return launches, known, err
	}
	switch o := op.(type) {
	case *kernel.Linear:
		launches, err = Linear(b, o)
	case *kernel.LinearGradX:
		launches, err = LinearGradX(b, o)
	case *kernel.LinearGradW:
		launches, err = linearGradW(b, o)
	case *kernel.Norm:
		launches, err = norm(b, o)
	case *kernel.NormGrad:
		launches, err = normGrad(b, o)
	case *kernel.GLU:
		launches, err = glu(b, o)
	case *kernel.GLUGrad:
		launches, err = gluGrad(b, o)
	case *kernel.Dropout:
		launches, err = dropout(b, o)
	case *kernel.MeanNodes:
		launches, err = meanNodes(b, o)
	case *kernel.MeanNodesGrad:
		launches, err = meanNodesGrad(b, o)
	default:
		known = false
	}
	return launches, known, err
}
