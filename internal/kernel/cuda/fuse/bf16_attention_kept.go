package fuse

import (
	"slices"

	"haul/internal/kernel"
	"haul/internal/kernel/cuda/attention"
	"haul/internal/kernel/cuda/bind"
)

// KeepMasks returns the program with the dropout masks of causal attention left in memory by it,
// for its gradient to read. Memory must be every tensor's own. In bf16 alone.
func KeepMasks(p *kernel.Program) *kernel.Program {
	out := *p
	out.PerShard, out.Tensors = slices.Clone(p.PerShard), slices.Clone(p.Tensors)
	forward := map[*kernel.Tensor]int{} // by what the gradient reads of it
	changed := false
	for i, op := range p.PerShard {
		switch o := op.(type) {
		case *kernel.CausalAttention:
			forward[o.LogSum] = i
		case *kernel.CausalAttentionGrad:
			at, ok := forward[o.LogSum]
			batch, tokens, d := o.Dims()
			if !ok || o.Drop.Threshold() == 0 || !o.QKV.Root().Compact || d/o.Heads > attention.KeptHeadMost {
				continue
			}
			bits := &kernel.Tensor{Name: o.LogSum.Name + ".masks", Type: kernel.F32, Space: kernel.Shard, ID: len(out.Tensors),
				Shape: []int{batch, o.Heads, 2 * bind.Ceil(tokens, 32), bind.Ceil(tokens, 64) * 32}}
			bits.Stride = bits.Cols()
			out.Tensors = append(out.Tensors, bits)
			out.PerShard[at] = &KeptCausal{p.PerShard[at].(*kernel.CausalAttention), bits}
			out.PerShard[i] = &KeptCausalGrad{o, bits}
			changed = true
		}
	}
	if !changed {
		return p
	}
	return &out
}

// KeptCausal is causal attention that leaves its masks.
type KeptCausal struct {
	*kernel.CausalAttention
	bits *kernel.Tensor
}

func (o *KeptCausal) Args(f func(*kernel.Tensor, kernel.Access)) {
	o.CausalAttention.Args(f)
	f(o.bits, kernel.Write)
}

func (o *KeptCausal) Bind(b *bind.Binder) ([]bind.Launch, error) {
	return attention.Bf16Causal(b, o.CausalAttention, o.bits)
}

// KeptCausalGrad is its gradient, which reads them.
type KeptCausalGrad struct {
	*kernel.CausalAttentionGrad
	bits *kernel.Tensor
}

func (o *KeptCausalGrad) Args(f func(*kernel.Tensor, kernel.Access)) {
	o.CausalAttentionGrad.Args(f)
	f(o.bits, kernel.Read)
}

func (o *KeptCausalGrad) Bind(b *bind.Binder) ([]bind.Launch, error) {
	return attention.Bf16CausalGrad(b, o.CausalAttentionGrad, o.bits)
}
