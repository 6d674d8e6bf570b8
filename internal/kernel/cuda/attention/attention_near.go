package attention

import (
	"fmt"

	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
)

// nearHeads are the most heads of src/attention_near.cu.
const nearHeads = 8

// near reports whether the kernels for few nodes serve: they have a head's columns in whole vectors
// and a row of p in one quad.
func (s headShape) near(b *bind.Binder, p *kernel.Tensor, ts ...*kernel.Tensor) bool {
	return s.n <= bind.NearNodes && p.Cols() == bind.NearNodes && s.heads <= nearHeads && (s.hd == 16 || s.hd == 32) && s.nearShared() <= b.MaxShared && b.Vectors(ts...)
}

// nearShared is what the backward kernel needs, the larger of the two, in bytes.
func (s headShape) nearShared() int {
	return 4 * (4*bind.NearNodes*s.d + 2*s.heads*bind.NearNodes*(bind.NearNodes+1) + 2*bind.NearNodes + 2*s.heads)
}

func attentionNear(b *bind.Binder, o *kernel.Attention, s headShape, instances int) bind.Launch {
	return bind.Launch{Module: "attention_near", Kernel: fmt.Sprintf("attention_near_%d", s.hd), Grid: bind.Dim3{instances, 1, 1}, Block: bind.Dim3{64 * s.heads, 1, 1},
		Shared: 4 * (2*bind.NearNodes*s.d + 2*bind.NearNodes), Args: []any{b.Addr(o.Y), b.Addr(o.P), b.Addr(o.QKV), b.Addr(o.PosX), b.Addr(o.PosY), b.Addr(o.Slope),
			bind.I32(s.n), bind.I32(s.d), bind.I32(s.heads), s.Scale()}}
}

// attentionNearGrad has one warp more where the slopes are learned, which adds up their gradient
// beside the others' work.
func attentionNearGrad(b *bind.Binder, o *kernel.AttentionGrad, s headShape, instances int, add uint32) bind.Launch {
	threads := 64 * s.heads
	if o.DSlope != nil {
		threads += 32
	}
	return bind.Launch{Module: "attention_near", Kernel: fmt.Sprintf("attention_near_grad_%d", s.hd), Grid: bind.Dim3{instances, 1, 1}, Block: bind.Dim3{threads, 1, 1},
		Shared: s.nearShared(),
		Args: []any{b.Addr(o.DQKV), b.Addr(o.DSlope), b.Addr(o.DY), b.Addr(o.P), b.Addr(o.QKV), b.Addr(o.PosX), b.Addr(o.PosY),
			b.Scratch(4 * instances * s.heads), b.Scratch(4 * b.Lanes), bind.I32(s.n), bind.I32(s.d), bind.I32(s.heads), s.Scale(), bind.I32(instances), bind.I32(b.Lanes),
			bind.I32(b.LaneSize), add}}
}
