package cuda

import (
	"slices"

	"haul/internal/kernel"
)

// Sizes of src/attention/bf16_attention_short.cu and bf16_attention_grad_short.cu.
const (
	shortTokens   = 192 // at most
	shortWidth    = 16  // columns of a head, at most
	shortHeads    = 2   // of a forward block
	shortThreads  = 128
	shortGradWarp = 3 // warps of a backward block
	gridRows      = 65535
)

// short reports whether a head's rows are few enough for the kernels of short rows.
func (s bf16Head) short() bool { return s.t <= shortTokens && s.wide == shortWidth }

// sharedShort is what a forward block needs, sharedShortGrad a backward one that reads masks or
// not, in bytes.
func (s bf16Head) sharedShort() int {
	return 2*s.wide*(3*shortHeads*s.rows+16) + 4*s.rows
}

func (s bf16Head) sharedShortGrad(kept bool) int {
	n := 4*s.t*s.wide + 4*bf16Group*ceil(s.t, bf16Group)*s.wide + 20*s.rows + 16
	tiles := s.rows / 16
	if kept {
		n += 128 * (tiles/4 + 1) * (tiles/4*2 + tiles%4) // each tile has masks up to its own pair of groups
	}
	for w := range shortGradWarp {
		n += 4 * 16 * s.wide * max(0, tiles-2*w) // a warp's sums of dq begin with its first group's tiles
	}
	return n
}

// inLaunches cuts parts so that each has as many instances as a grid has rows of blocks, at most.
func inLaunches(parts []portion) (out []portion) {
	for _, p := range parts {
		for from := 0; from < p.count; from += gridRows {
			out = append(out, portion{p.part, p.from + from, min(gridRows, p.count-from)})
		}
	}
	return out
}

// shortCausal is attention's launches with the arguments of bf16Causal up to the row's length, one
// for each part of the batch.
func (s bf16Head) shortCausal(o *kernel.CausalAttention, bits *kernel.Tensor, parts []portion, args []any) (out []launch) {
	made := "_made"
	if o.Drop.Threshold() == pipedRate {
		made = "_tenth"
	}
	for _, p := range inLaunches(parts) {
		out = append(out, launch{module: "bf16_attention_short", kernel: s.name("bf16_attention_short", o.Drop, bits, made),
			grid: dim3{s.heads / shortHeads, p.count, 1}, block: dim3{shortThreads, 1, 1}, shared: s.sharedShort(), part: p.part,
			args: append(slices.Clip(args), i32(s.t), i32(s.heads), i32(s.hd), headScale(s.heads*s.hd, s.heads), i32(p.from))})
	}
	return out
}

// shortCausalGrad is its gradient's.
func (s bf16Head) shortCausalGrad(o *kernel.CausalAttentionGrad, bits *kernel.Tensor, parts []portion, args []any) (out []launch) {
	for _, p := range inLaunches(parts) {
		out = append(out, launch{module: "bf16_attention_grad_short", kernel: s.name("bf16_attention_grad_short", o.Drop, bits, "_kept"),
			grid: dim3{s.heads, p.count, 1}, block: dim3{32 * shortGradWarp, 1, 1}, part: p.part,
			shared: s.sharedShortGrad(o.Drop.Threshold() != 0 && bits != nil),
			args:   append(slices.Clip(args), i32(s.t), i32(s.heads), i32(s.hd), headScale(s.heads*s.hd, s.heads), i32(p.from))})
	}
	return out
}
