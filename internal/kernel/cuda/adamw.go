package cuda

import "haul/internal/kernel"

const (
	adamwThreads = 256 // threads of src/adamw.cu
	adamwPlan    = 20  // bytes of its struct Plan
)

// adamw sums the lanes and decides in one launch, and updates in a second.
func (b *binder) adamw(o *kernel.AdamW) ([]launch, error) {
	length := b.laneSize
	quads := ceil(length, 4)
	blocks := max(1, min(ceil(quads, adamwThreads), 4*b.sms))
	squares, turn, plan := b.scratch(8*blocks), b.scratch(4), b.scratch(adamwPlan)
	var parts uint64
	if o.Every > 1 {
		parts = b.scratch(4 * length)
	}
	block := dim3{adamwThreads, 1, 1}
	return []launch{
		{module: "adamw", kernel: "adamw_sum", grid: dim3{blocks, 1, 1}, block: block,
			args: []any{b.grads, squares, turn, plan, b.state, b.metrics, b.control, i32(b.lanes), i32(length), o.Beta1, o.Beta2, o.MaxNorm,
				i32(o.Warmup), i32(o.Total), o.Floor, parts, uint32(o.Every)}},
		{module: "adamw", kernel: "adamw_update", grid: dim3{max(1, ceil(quads, adamwThreads)), 1, 1}, block: block,
			args: []any{b.weights, b.bf16Weights, b.moment1, b.moment2, b.grads, plan, i32(length), float32(o.Beta1), float32(o.Beta2), o.Eps, o.Decay}},
	}, nil
}
