package routing

import (
	"fmt"

	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
)

// heldPlan is how a block of src/rollout_held.cu rolls out one row: a warp per head,
// projections in its registers.
type heldPlan struct {
	tiles, shared int
}

// heldMore are tiles of eight nodes past nodeTiles: some of their projections lie in local memory,
// which is nearer than what row_stream reads.
const heldMore = 17

const heldWarps = 8 // heads that its kernels allow with heads of 16; with heads of 32 half as many

// held reports whether a rollout's projections stay in registers, and how. In fp32 they stay as
// they are, in shared memory.
func held(b *bind.Binder, o *kernel.Rollout) (heldPlan, bool) {
	p := policyOf(b, &o.Decoder)
	t := p.tilesFor()
	if t == 0 && o.Actions.Shape[1] < fewStarts && p.rules.Set == kernel.CVRP && p.aligned && p.n <= 8*heldMore {
		t = heldMore
	}
	if b.Precision == bind.FP32 || t == 0 || p.hd != 16 && p.hd != 32 || p.heads > heldWarps*16/p.hd || b.Address(o.Context)%16 != 0 ||
		b.Address(o.Graph)%16 != 0 {
		return heldPlan{}, false
	}
	limit := o.Actions.Shape[2]
	span := 32
	for span < min(8*t, 128) {
		span *= 2
	}
	if t == heldMore {
		span = 192
	}
	four := func(n int) int { return (n + 3) &^ 3 }
	h := heldPlan{tiles: t, shared: 4 * (p.n*p.d + 2*p.heads*span + p.heads*span + p.heads*span/2 + four(limit) + 3*four(p.n))}
	return h, h.shared <= b.MaxShared
}

// launch takes the arguments of a rollout's kernel; this one knows the width of its heads.
func (h heldPlan) launch(p policy, rows int, biases uint64, args []any) bind.Launch {
	const hd = 20 // place of the head's width among the arguments
	args = append(append(append([]any(nil), args[:hd]...), args[hd+1:]...), p.scale, p.pointerScale, biases, bind.I32(p.biasWide()))
	return bind.Launch{Module: fmt.Sprint("rollout_held_", 8*h.tiles), Kernel: fmt.Sprint("rollout_held_", p.hd), Grid: bind.Dim3{rows, 1, 1},
		Block:  bind.Dim3{32 * p.heads, 1, 1},
		Shared: h.shared, Args: args}
}
