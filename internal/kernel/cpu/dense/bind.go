// Package dense binds ops of one family to a CPU's workers: matrix products, norms, gates, dropout
// and means.
package dense

import (
	"haul/internal/kernel"
	"haul/internal/kernel/cpu/run"
)

// Bind returns what a worker does for an op of this family, over its shard; known is false for an
// op of another family.
func Bind(b *run.Binder, op kernel.Op) (do func(*run.Worker), known bool, err error) {
	switch o := op.(type) {
	case *kernel.Linear:
		do = linear(b, o)
	case *kernel.LinearGradX:
		do = linearGradX(b, o)
	case *kernel.LinearGradW:
		do = linearGradW(b, o)
	case *kernel.Norm:
		do = norm(b, o)
	case *kernel.NormGrad:
		do = normGrad(b, o)
	case *kernel.GLU:
		do = glu(b, o)
	case *kernel.GLUGrad:
		do = gluGrad(b, o)
	case *kernel.Dropout:
		do = dropout(b, o)
	case *kernel.MeanNodes:
		do = meanNodes(b, o)
	case *kernel.MeanNodesGrad:
		do = meanNodesGrad(b, o)
	default:
		return nil, false, nil
	}
	return do, true, err
}
