package attention

import (
	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
)

// Sizes of src/bf16_attention_piped*.cu: attention of narrow heads over long rows whose
// masks are kept.
const (
	pipedWarps     = 8   // of a block that streams keys, 16 queries each
	pipedTile      = 256 // keys brought at a time
	pipedSlots     = 4   // tiles that a block holds
	pipedBlocks    = 2   // of those on a multiprocessor at a time
	pipedLate      = 4   // times that blocks of heads in no order of their own fill the card at the end
	pipedHeldWarps = 4   // of a block that holds a head's keys
	pipedHeldMost  = 3   // of those on a multiprocessor at a time
	PipedHeldFrom  = 768 // tokens of a row
)

// PipedRate is the rate of dropout, in 65,536ths, that has kernels of its own: a tenth.
var PipedRate uint32 = 6554

// pipedShared is what a block that streams keys needs, pipedHeldShared one that holds them, in
// bytes.
func (s bf16Head) pipedShared() int     { return pipedSlots * (4*pipedTile*s.wide + 16) }
func (s bf16Head) pipedHeldShared() int { return 8 * s.wide * bf16Group * bind.Ceil(s.t, 2*bf16Group) }

// pipedHolds tells whether a row whose masks are kept is held by these kernels.
func (s bf16Head) pipedHolds() bool { return s.wide == 16 && s.t >= PipedHeldFrom }

// pipedName is the kernel for a rate of dropout.
func pipedName(kernel string, drop kernel.Drop) string {
	if drop.Threshold() == PipedRate {
		kernel += "_tenth"
	}
	return kernel + "_16"
}

// shareOut is how heads are shared out among blocks: `wholes` of them have a block each, of each of
// the rest so many share it.
type shareOut struct{ wholes, rest, shares int }

func (s shareOut) blocks() int { return s.wholes + s.rest*s.shares }

// pipedHeldShare has a block for every head as long as they fill the card; with the rest, which
// would leave it idle in part, the card is filled once by as many blocks as there is room for, each
// with a tile for every warp at least.
func (s bf16Head) pipedHeldShare(heads, sms, most int) shareOut {
	slots := sms * max(1, min(pipedHeldMost, most/s.pipedHeldShared()))
	rest := heads % slots
	if rest == 0 || slots/rest < 2 {
		return shareOut{heads, 0, 1}
	}
	return shareOut{heads - rest, rest, min(slots/rest, bind.Ceil(s.t, 16)/pipedHeldWarps)}
}

// pipedCausal is attention's launch with the arguments of bf16Causal up to the row's length.
func pipedCausal(b *bind.Binder, o *kernel.CausalAttention, s bf16Head, batch int, args []any, streamed bool) []bind.Launch {
	heads, scale := batch*s.heads, headScale(s.heads*s.hd, s.heads)
	args = append(args, bind.I32(s.t), bind.I32(s.heads), bind.I32(s.hd))
	if streamed {
		each := bind.Ceil(s.t, 16*pipedWarps)
		late := min(heads, bind.Ceil(pipedLate*pipedBlocks*b.SMs, each))
		return []bind.Launch{{Module: "bf16_attention_piped", Kernel: pipedName("bf16_attention_piped", o.Drop), Grid: bind.Dim3{heads * each, 1, 1},
			Block: bind.Dim3{32 * pipedWarps, 1, 1}, Shared: s.pipedShared(), Args: append(args, bind.I32(heads-late), bind.I32(late), scale)}}
	}
	share := s.pipedHeldShare(heads, b.SMs, b.MaxShared)
	return []bind.Launch{{Module: "bf16_attention_piped_held", Kernel: pipedName("bf16_attention_piped_held", o.Drop), Grid: bind.Dim3{share.blocks(), 1, 1},
		Block: bind.Dim3{32 * pipedHeldWarps, 1, 1}, Shared: s.pipedHeldShared(), Args: append(args, bind.I32(share.wholes), bind.I32(share.shares), scale)}}
}
