package attention

import (
	"slices"

	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
)

// Sizes of src/bf16_attention_short.cu and bf16_attention_grad_short.cu.
const (
	ShortTokens   = 192 // at most
	shortWidth    = 16  // columns of a head, at most
	ShortHeads    = 2   // of a forward block
	shortThreads  = 128
	shortGradWarp = 3 // warps of a backward block
	GridRows      = 65535
)

// Short reports whether a head's rows are few enough for the kernels of short rows.
func (s bf16Head) Short() bool { return s.t <= ShortTokens && s.wide == shortWidth }

// sharedShort is what a forward block needs, sharedShortGrad a backward one that reads masks or
// not, in bytes.
func (s bf16Head) sharedShort() int {
	return 2*s.wide*(3*ShortHeads*s.rows+16) + 4*s.rows
}

func (s bf16Head) sharedShortGrad(kept bool) int {
	n := 4*s.t*s.wide + 4*bf16Group*bind.Ceil(s.t, bf16Group)*s.wide + 20*s.rows + 16
	tiles := s.rows / 16
	if kept {
		n += 128 * (tiles/4 + 1) * (tiles/4*2 + tiles%4) // each tile has masks up to its own pair of groups
	}
	for w := range shortGradWarp {
		n += 4 * 16 * s.wide * max(0, tiles-2*w) // a warp's sums of dq begin with its first group's tiles
	}
	return n
}

// InLaunches cuts parts so that each has as many instances as a grid has rows of blocks, at most.
func InLaunches(parts []bind.Portion) (out []bind.Portion) {
	for _, p := range parts {
		for from := 0; from < p.Count; from += GridRows {
			out = append(out, bind.Portion{Part: p.Part, From: p.From + from, Count: min(GridRows, p.Count-from)})
		}
	}
	return out
}

// shortCausal is attention's launches with the arguments of bf16Causal up to the row's length, one
// for each part of the batch.
func (s bf16Head) shortCausal(o *kernel.CausalAttention, bits *kernel.Tensor, parts []bind.Portion, args []any) (out []bind.Launch) {
	made := "_made"
	if o.Drop.Threshold() == PipedRate {
		made = "_tenth"
	}
	for _, p := range InLaunches(parts) {
		out = append(out, bind.Launch{Module: "bf16_attention_short", Kernel: s.name("bf16_attention_short", o.Drop, bits, made),
			Grid: bind.Dim3{s.heads / ShortHeads, p.Count, 1}, Block: bind.Dim3{shortThreads, 1, 1}, Shared: s.sharedShort(), Part: p.Part,
			Args: append(slices.Clip(args), bind.I32(s.t), bind.I32(s.heads), bind.I32(s.hd), headScale(s.heads*s.hd, s.heads), bind.I32(p.From))})
	}
	return out
}

// shortCausalGrad is its gradient's.
func (s bf16Head) shortCausalGrad(o *kernel.CausalAttentionGrad, bits *kernel.Tensor, parts []bind.Portion, args []any) (out []bind.Launch) {
	for _, p := range InLaunches(parts) {
		out = append(out, bind.Launch{Module: "bf16_attention_grad_short", Kernel: s.name("bf16_attention_grad_short", o.Drop, bits, "_kept"),
			Grid: bind.Dim3{s.heads, p.Count, 1}, Block: bind.Dim3{32 * shortGradWarp, 1, 1}, Part: p.Part,
			Shared: s.sharedShortGrad(o.Drop.Threshold() != 0 && bits != nil),
			Args:   append(slices.Clip(args), bind.I32(s.t), bind.I32(s.heads), bind.I32(s.hd), headScale(s.heads*s.hd, s.heads), bind.I32(p.From))})
	}
	return out
}
