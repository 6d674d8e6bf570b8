package doctor

import "fmt"

// paddingOverhead looks for work that exists to make unequal samples equal: rows filled into padded
// blocks, index tensors, masks built and applied. For a large problem that buys one large kernel;
// here the kernels stay tiny, and the dressing costs more than the sum it dresses.
//
// Threshold: 10 % of the step in padding and masking operators, with at least one that pads, and no
// kernel worth its launch. Masks alone are what attention models do.
const paddingShare = 0.10

var paddingOverhead = rule{
	id:     "padding-overhead",
	remedy: "Pack unequal samples end to end with offsets instead of padding them, build index and mask tensors once, or do so small a problem in one fused kernel or on the CPU.",
	find: func(a *analysis, who cause) *cost {
		if a.kernels == 0 || a.kernel/float64(a.kernels) >= tinyKernel {
			return nil
		}
		c := a.newCharge()
		pads, masks := 0, 0
		a.eachOp(func(th *thread, i, step int, o *op) {
			if o.cause != 0 {
				return
			}
			name := a.names.list[o.name].text
			switch {
			case padders[name], name == rowWrite && i > 0 && a.names.list[th.ops.at(i-1).name].text == rowView:
				pads++
			case maskers[name] && o.launches > 0:
				masks++
			default:
				return
			}
			c.add(o, step)
		})
		ms := a.ms(c.ns)
		if pads == 0 || masks == 0 || a.share(ms) < paddingShare {
			return nil
		}
		c.take(who)
		ms = a.ms(c.ns)
		return &cost{ms: ms, places: c.placed(), evidence: []string{
			fmt.Sprintf("%s padding and %s masking operators per step around kernels of %.1f µs on average", perStepCount(a.perStep(float64(pads))),
				perStepCount(a.perStep(float64(masks))), a.kernel/float64(a.kernels)/1000),
			fmt.Sprintf("the GPU waits %s ms for them and their backward: %s", figure(ms), c.top(4)),
			c.where(),
		}}
	},
}

// A row filled into a padded block is a copy into a slice.
const rowView, rowWrite = "aten::slice", "aten::copy_"

var (
	padders = map[string]bool{"aten::pad": true, "aten::constant_pad_nd": true, "aten::pad_sequence": true,
		"aten::to_padded_tensor": true, "aten::nested_to_padded_tensor": true, "aten::_jagged_to_padded_dense_forward": true}
	maskers = map[string]bool{"aten::masked_fill": true, "aten::masked_fill_": true, "aten::where": true, "aten::masked_select": true,
		"aten::arange": true, "aten::lt": true, "aten::le": true, "aten::gt": true, "aten::ge": true, "aten::ne": true, "aten::eq": true,
		"aten::logical_and": true, "aten::logical_not": true, "aten::bitwise_and": true, "aten::bitwise_not": true, "aten::__and__": true,
		"aten::tril": true, "aten::triu": true, "aten::gather": true, "aten::stack": true, "aten::zeros": true, "aten::full": true}
)
