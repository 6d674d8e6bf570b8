package cuda

import (
	"slices"

	"haul/internal/kernel"
)

// keptHeadMost is the most columns of a head that src/attention/bf16_attention.cu reads masks for.
const keptHeadMost = 16

// keepMasks returns the program with the dropout masks of causal attention left in memory by it,
// for its gradient to read. Memory must be every tensor's own. In bf16 alone.
func keepMasks(p *kernel.Program) *kernel.Program {
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
			if !ok || o.Drop.Threshold() == 0 || !o.QKV.Root().Compact || d/o.Heads > keptHeadMost {
				continue
			}
			bits := &kernel.Tensor{Name: o.LogSum.Name + ".masks", Type: kernel.F32, Space: kernel.Shard, ID: len(out.Tensors),
				Shape: []int{batch, o.Heads, 2 * ceil(tokens, 32), ceil(tokens, 64) * 32}}
			bits.Stride = bits.Cols()
			out.Tensors = append(out.Tensors, bits)
			out.PerShard[at] = &keptCausal{p.PerShard[at].(*kernel.CausalAttention), bits}
			out.PerShard[i] = &keptCausalGrad{o, bits}
			changed = true
		}
	}
	if !changed {
		return p
	}
	return &out
}

// keptCausal is causal attention that leaves its masks.
type keptCausal struct {
	*kernel.CausalAttention
	bits *kernel.Tensor
}

func (o *keptCausal) Args(f func(*kernel.Tensor, kernel.Access)) {
	o.CausalAttention.Args(f)
	f(o.bits, kernel.Write)
}

func (o *keptCausal) bind(b *binder) ([]launch, error) {
	return b.bf16Causal(o.CausalAttention, o.bits)
}

// keptCausalGrad is its gradient, which reads them.
type keptCausalGrad struct {
	*kernel.CausalAttentionGrad
	bits *kernel.Tensor
}

func (o *keptCausalGrad) Args(f func(*kernel.Tensor, kernel.Access)) {
	o.CausalAttentionGrad.Args(f)
	f(o.bits, kernel.Read)
}

func (o *keptCausalGrad) bind(b *binder) ([]launch, error) {
	return b.bf16CausalGrad(o.CausalAttentionGrad, o.bits)
}
