package bind

import (
	"haul/internal/kernel"
)

// Compact reports whether a tensor's elements are held in bf16: two bytes each.
func (p Precision) Compact(t *kernel.Tensor) bool {
	if p != BF16 || t == nil {
		return false
	}
	root := t.Root()
	return root.Compact && root.Space == kernel.Shard && root.Type == kernel.F32
}

// Compact reports whether t is held in bf16. A tensor that is absent is not.
func (b *Binder) Compact(t *kernel.Tensor) bool { return b.Precision.Compact(t) }

// AnyCompact reports whether any of an op's tensors is held in bf16.
func (b *Binder) AnyCompact(op kernel.Op) bool {
	any := false
	op.Args(func(t *kernel.Tensor, _ kernel.Access) { any = any || b.Compact(t) })
	return any
}
