package cuda

import "haul/internal/kernel"

// Sizes of src/attention/bf16_attention_piped*.cu: attention of narrow heads over long rows whose
// masks are kept.
const (
	pipedWarps     = 8   // of a block that streams keys, 16 queries each
	pipedTile      = 256 // keys brought at a time
	pipedSlots     = 4   // tiles that a block holds
	pipedHeldWarps = 5   // of a block that holds a head's keys
	pipedHeldFrom  = 768 // tokens of a row
)

// pipedRate is the rate of dropout, in 65,536ths, that has kernels of its own: a tenth.
var pipedRate uint32 = 6554

// pipedShared is what a block that streams keys needs, pipedHeldShared one that holds them, in
// bytes.
func (s bf16Head) pipedShared() int     { return pipedSlots * (4*pipedTile*s.wide + 16) }
func (s bf16Head) pipedHeldShared() int { return 8 * s.wide * bf16Group * ceil(s.t, 2*bf16Group) }

// pipedHolds tells whether a row whose masks are kept is held by these kernels.
func (s bf16Head) pipedHolds() bool { return s.wide == 16 && s.t >= pipedHeldFrom }

// pipedName is the kernel for a rate of dropout.
func pipedName(kernel string, drop kernel.Drop) string {
	if drop.Threshold() == pipedRate {
		kernel += "_tenth"
	}
	return kernel + "_16"
}

// pipedCausal is attention's launch with the arguments of bf16Causal up to the row's length.
func (s bf16Head) pipedCausal(o *kernel.CausalAttention, batch int, args []any, streamed bool) []launch {
	args = append(args, i32(s.t), i32(s.heads), i32(s.hd), headScale(s.heads*s.hd, s.heads))
	if streamed {
		return []launch{{module: "bf16_attention_piped", kernel: pipedName("bf16_attention_piped", o.Drop), grid: dim3{batch * s.heads * ceil(s.t, 16*pipedWarps), 1, 1},
			block: dim3{32 * pipedWarps, 1, 1}, shared: s.pipedShared(), args: args}}
	}
	return []launch{{module: "bf16_attention_piped_held", kernel: pipedName("bf16_attention_piped_held", o.Drop), grid: dim3{batch * s.heads, 1, 1},
		block: dim3{32 * pipedHeldWarps, 1, 1}, shared: s.pipedHeldShared(), args: args}}
}
