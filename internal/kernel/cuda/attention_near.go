package cuda

import (
	"fmt"

	"haul/internal/kernel"
)

// Limits of src/attention/attention_near.cu.
const (
	nearNodes = 16
	nearHeads = 8
)

// near reports whether the kernels for few nodes serve: they have a head's columns in whole vectors
// and a row of p in one quad.
func (s headShape) near(b *binder, p *kernel.Tensor, ts ...*kernel.Tensor) bool {
	return s.n <= nearNodes && p.Cols() == nearNodes && s.heads <= nearHeads && (s.hd == 16 || s.hd == 32) && s.nearShared() <= b.maxShared && b.vectors(ts...)
}

// nearShared is what the backward kernel needs, the larger of the two, in bytes.
func (s headShape) nearShared() int {
	return 4 * (4*nearNodes*s.d + 2*s.heads*nearNodes*(nearNodes+1) + 2*nearNodes + 2*s.heads)
}

func (b *binder) attentionNear(o *kernel.Attention, s headShape, instances int) launch {
	return launch{module: "attention_near", kernel: fmt.Sprintf("attention_near_%d", s.hd), grid: dim3{instances, 1, 1}, block: dim3{64 * s.heads, 1, 1},
		shared: 4 * (2*nearNodes*s.d + 2*nearNodes), args: []any{b.addr(o.Y), b.addr(o.P), b.addr(o.QKV), b.addr(o.PosX), b.addr(o.PosY), b.addr(o.Slope),
			i32(s.n), i32(s.d), i32(s.heads), s.scale()}}
}

// attentionNearGrad has one warp more where the slopes are learned, which adds up their gradient
// beside the others' work.
func (b *binder) attentionNearGrad(o *kernel.AttentionGrad, s headShape, instances int, add uint32) launch {
	threads := 64 * s.heads
	if o.DSlope != nil {
		threads += 32
	}
	return launch{module: "attention_near", kernel: fmt.Sprintf("attention_near_grad_%d", s.hd), grid: dim3{instances, 1, 1}, block: dim3{threads, 1, 1},
		shared: s.nearShared(),
		args: []any{b.addr(o.DQKV), b.addr(o.DSlope), b.addr(o.DY), b.addr(o.P), b.addr(o.QKV), b.addr(o.PosX), b.addr(o.PosY),
			b.scratch(4 * instances * s.heads), b.scratch(4 * b.lanes), i32(s.n), i32(s.d), i32(s.heads), s.scale(), i32(instances), i32(b.lanes),
			i32(b.laneSize), add}}
}
