package cuda

import (
	"slices"

	"haul/internal/kernel"
)

// keptHeadMost is the most columns of a head that src/attention/bf16_attention.cu reads masks for.
const keptHeadMost = 16

// keepMasks returns the program with the dropout masks of causal attention made by an op of their own, for attention and its gradient to
// read. Memory must be every tensor's own. In bf16 alone.
func keepMasks(p *kernel.Program) *kernel.Program {
	out := *p
	out.PerShard, out.Tensors = slices.Clone(p.PerShard), slices.Clone(p.Tensors)
	forward := map[*kernel.Tensor]int{} // by what the gradient reads of it
	made := map[int]kernel.Op{}         // by the attention that they stand before
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
				Shape: []int{batch, o.Heads, ceil(tokens, 16), ceil(tokens, 32) * 16}} // two bytes for each of 32 lanes
			bits.Stride = bits.Cols()
			out.Tensors = append(out.Tensors, bits)
			out.PerShard[at] = &keptCausal{p.PerShard[at].(*kernel.CausalAttention), bits}
			out.PerShard[i] = &keptCausalGrad{o, bits}
			made[at] = &causalMasks{o, bits}
		}
	}
	if len(made) == 0 {
		return p
	}
	ops := make([]kernel.Op, 0, len(out.PerShard)+len(made))
	for i, op := range out.PerShard {
		if m, ok := made[i]; ok {
			ops = append(ops, m)
		}
		ops = append(ops, op)
	}
	out.PerShard = ops
	return &out
}

// causalMasks makes the masks.
type causalMasks struct {
	of   *kernel.CausalAttentionGrad
	bits *kernel.Tensor
}

func (o *causalMasks) Kind() string { return "causal.masks" }

func (o *causalMasks) Args(f func(*kernel.Tensor, kernel.Access)) {
	f(o.of.First, kernel.Read)
	f(o.bits, kernel.Write)
}

func (o *causalMasks) Cost() kernel.Cost { return costOf(o) }

func (o *causalMasks) bind(b *binder) ([]launch, error) {
	batch, tokens, _ := o.of.Dims()
	const threads = 256
	heads := batch * o.of.Heads
	args := append([]any{b.address(o.bits), b.address(o.of.First)}, b.roundArgs(o.of.Drop)...)
	return []launch{{module: "bf16_attention_masks", kernel: "bf16_attention_masks", grid: dim3{ceil(32*heads*ceil(tokens, 16),
		threads), 1, 1}, block: dim3{threads, 1, 1},
		args: append(args, i32(tokens), i32(o.of.Heads), i32(heads))}}, nil
}

// keptCausal is causal attention that reads its masks.
type keptCausal struct {
	*kernel.CausalAttention
	bits *kernel.Tensor
}

func (o *keptCausal) Args(f func(*kernel.Tensor, kernel.Access)) {
	o.CausalAttention.Args(f)
	f(o.bits, kernel.Read)
}

func (o *keptCausal) bind(b *binder) ([]launch, error) {
	return b.bf16Causal(o.CausalAttention, o.bits)
}

// keptCausalGrad is its gradient.
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
