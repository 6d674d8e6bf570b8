package cuda

import (
	"fmt"

	"haul/internal/kernel"
)

// compact reports whether a tensor's elements are held in bf16: two bytes each.
func (p Precision) compact(t *kernel.Tensor) bool {
	if p != BF16 || t == nil {
		return false
	}
	root := t.Root()
	return root.Compact && root.Space == kernel.Shard && root.Type == kernel.F32
}

// compact reports whether t is held in bf16. A tensor that is absent is not.
func (b *binder) compact(t *kernel.Tensor) bool { return b.precision.compact(t) }

// anyCompact reports whether any of an op's tensors is held in bf16.
func (b *binder) anyCompact(op kernel.Op) bool {
	any := false
	op.Args(func(t *kernel.Tensor, _ kernel.Access) { any = any || b.compact(t) })
	return any
}

// bindBF16 returns the launches of an op that reads or writes bf16.
func (b *binder) bindBF16(op kernel.Op) ([]launch, error) {
	switch o := op.(type) {
	case *kernel.Linear:
		return b.bf16Linear(o)
	case *kernel.LinearGradX:
		return b.bf16LinearGradX(o)
	case *kernel.LinearGradW:
		return b.bf16LinearGradW(o)
	case *kernel.EmbedGrad: // of a stream's gradient that joined layers leave in bf16
		return b.embedGrad(o)
	case *kernel.Rotate:
		return b.rotate(o)
	case *kernel.Spread:
		return b.spread(o)
	case *kernel.SpreadGrad:
		return b.spreadGrad(o)
	case *kernel.CausalAttention:
		return b.bf16Causal(o, nil)
	case *kernel.CausalAttentionGrad:
		return b.bf16CausalGrad(o, nil)
	case *kernel.CacheAttention:
		return b.cached(o)
	case *kernel.Norm:
		return b.bf16Norm(o)
	case *kernel.NormGrad:
		return b.bf16NormGrad(o)
	case *kernel.Dropout:
		return b.bf16Dropout(o)
	}
	return nil, fmt.Errorf("the GPU has no op %s over tensors in bf16", op.Kind())
}
