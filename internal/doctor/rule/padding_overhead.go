package rule

import (
	"fmt"

	"haul/internal/doctor/analysis"
	"haul/internal/doctor/phrase"
	"haul/internal/doctor/trace"
)

// paddingOverhead looks for work that makes unequal samples equal: rows written into padded blocks,
// index tensors, masks built and applied. For a large problem this gives one large kernel. Here the
// kernels stay tiny, and padding costs more than the computation.
//
// Threshold: 10 % of the step in padding and masking operators, at least one of them padding, and
// no kernel longer than its launch. Attention models have masks without padding.
const paddingShare = 0.10

var paddingOverhead = Rule{
	ID:     "padding-overhead",
	remedy: "Pack unequal samples end to end with offsets instead of padding them, build index and mask tensors once, or do so small a problem in one fused kernel or on the CPU.",
	find: func(a *analysis.Analysis, who trace.Cause) *cost {
		if a.Kernels == 0 || a.Kernel/float64(a.Kernels) >= analysis.TinyKernel {
			return nil
		}
		c := a.NewCharge()
		pads, masks := 0, 0
		a.EachOp(func(th *trace.Thread, i, step int, o *trace.Op) {
			if o.Cause != 0 {
				return
			}
			name := a.Names.List[o.Name].Text
			switch {
			case padders[name], name == rowWrite && i > 0 && a.Names.List[th.Ops.At(i-1).Name].Text == rowView:
				pads++
			case maskers[name] && o.Launches > 0:
				masks++
			default:
				return
			}
			c.Add(o, step)
		})
		ms := a.Ms(c.Ns)
		if pads == 0 || masks == 0 || a.Share(ms) < paddingShare {
			return nil
		}
		c.Take(who)
		ms = a.Ms(c.Ns)
		return &cost{ms: ms, places: c.Placed(), evidence: []string{
			fmt.Sprintf("%s padding and %s masking operators per step around kernels of %.1f µs on average", phrase.PerStepCount(a.PerStep(float64(pads))),
				phrase.PerStepCount(a.PerStep(float64(masks))), a.Kernel/float64(a.Kernels)/1000),
			fmt.Sprintf("the GPU waits %s ms for them and their backward: %s", phrase.Figure(ms), c.Top(4)),
			c.Where(),
		}}
	},
}

// A row written into a padded block is a copy into a slice.
const rowView, rowWrite = "aten::slice", "aten::copy_"

var (
	padders = map[string]bool{"aten::pad": true, "aten::constant_pad_nd": true, "aten::pad_sequence": true,
		"aten::to_padded_tensor": true, "aten::nested_to_padded_tensor": true, "aten::_jagged_to_padded_dense_forward": true}
	maskers = map[string]bool{"aten::masked_fill": true, "aten::masked_fill_": true, "aten::where": true, "aten::masked_select": true,
		"aten::arange": true, "aten::lt": true, "aten::le": true, "aten::gt": true, "aten::ge": true, "aten::ne": true, "aten::eq": true,
		"aten::logical_and": true, "aten::logical_not": true, "aten::bitwise_and": true, "aten::bitwise_not": true, "aten::__and__": true,
		"aten::tril": true, "aten::triu": true, "aten::gather": true, "aten::stack": true, "aten::zeros": true, "aten::full": true}
)
