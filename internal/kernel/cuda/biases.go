package cuda

import (
	"math"

	"haul/internal/kernel"
)

// What a reader could break: a kernel adds biases to sums in a unit of its own, so the table is
// made for it (pointUnit, 1 and dotUnit); the sizes of shared memory here are the layouts in
// src/routing/biases.cu.

const (
	biasSide  = 64 // SIDE of src/routing/biases.cu
	biasDeep  = 16 // DEEP
	biasLoads = 16 // blocks of bias_sorted per instance, and rows of the context's part
	// POINT(1) of src/routing/half.cuh: half kernels hold twice a score, to base 2
	pointUnit = 2 / math.Ln2
	nearUnit  = -math.Ln2 / 2 // what a score has of log2 of a squared distance, times Near
)

// biases reports whether anything is added to the pointer's scores.
func biases(o *kernel.Decoder) bool { return o.Pair != nil || o.Near != 0 }

// biasWide is how many floats a row of a table of biases has.
func (p policy) biasWide() int {
	t := max(p.tiles, p.tilesFor())
	if t == 0 {
		t = streamBlock / 8 * ceil(p.n, streamBlock)
	}
	return 16 * ceil(t, 2)
}

// dotUnit is the unit of a kernel that adds biases to dot products before they are scaled.
func (p policy) dotUnit() float64 { return 1 / float64(p.pointerScale) }

func biasShared() int { return 4 * 2 * biasDeep * (biasSide + 4) }

// biasTables makes the tables of a batch in scratch, in multiples of a score's unit; 0 and no
// launch where there is nothing to add.
func (b *binder) biasTables(o *kernel.Decoder, p policy, instances int, unit float64) (uint64, []launch) {
	if !p.bias {
		return 0, nil
	}
	wide := p.biasWide()
	tables := b.scratch(4 * instances * (p.n + p.seen) * wide)
	return tables, []launch{{module: ruled("biases", p.rules.Set), kernel: "bias_tables", grid: dim3{instances, ceil(p.n+p.seen, biasSide), ceil(wide, biasSide)}, block: dim3{256, 1, 1},
		shared: biasShared(), args: []any{tables, b.addr(o.Pair), b.addr(o.PairContext), b.addr(o.PosX), b.addr(o.PosY), i32(p.n), i32(stride(o.Pair)), i32(p.d), i32(wide),
			float32(unit * float64(p.pointerScale)), float32(unit * nearUnit * float64(o.Near))}}}
}

// contextOperands makes right operands of the context's rows of tables (half.cuh) in scratch, one
// table after the other; 0 and no launch where the context has one feature.
func (b *binder) contextOperands(p policy, tables uint64, count, wide int) (uint64, []launch) {
	if p.seen == 1 {
		return 0, nil
	}
	operands := b.scratch(8 * count * 4 * wide)
	return operands, []launch{{module: ruled("biases", p.rules.Set), kernel: "context_operands", grid: dim3{count, 1, 1}, block: dim3{4 * wide, 1, 1},
		args: []any{operands, tables, i32(p.n), i32(wide)}}}
}

// pairGrad is where the gradient of an instance's biases waits for back_pairs.
type pairGrad struct {
	tables uint64 // 0: pairs have no scores
	loads  int    // rows of the context's part: as many for each feature
}

func (b *binder) pairGrad(o *kernel.RolloutGrad, p policy, loads int) pairGrad {
	if o.Pair == nil {
		return pairGrad{}
	}
	return pairGrad{b.scratch(4 * o.Actions.Shape[0] * (p.n + loads) * p.biasWide()), loads}
}

// of is where the tables from one instance on begin.
func (g pairGrad) of(p policy, first int) uint64 {
	return g.tables + uint64(4*first*(p.n+g.loads)*p.biasWide())
}

// backPairs goes on from the tables to pairs' queries, keys and context. unit is what a gradient in
// the tables is to be multiplied by, for that of a dot product.
func (b *binder) backPairs(o *kernel.RolloutGrad, p policy, g pairGrad, ups uint64, unit float64) []launch {
	if g.tables == 0 {
		return nil
	}
	instances := o.Actions.Shape[0]
	dcontext := b.scratch(4 * instances * g.loads * p.d)
	return []launch{
		{module: ruled("biases", p.rules.Set), kernel: "back_pairs", grid: dim3{instances, ceil(p.n+g.loads, biasSide), 2 * ceil(p.d, biasSide)}, block: dim3{256, 1, 1},
			shared: biasShared(), args: []any{b.addr(o.DPair), dcontext, g.tables, b.addr(o.Pair), b.addr(o.PairContext), ups, i32(p.n), i32(g.loads),
				i32(o.Pair.Stride), i32(o.DPair.Stride), i32(p.d), i32(p.biasWide()), float32(unit)}},
		b.sumContext(o.DPairContext, dcontext, instances, g.loads/p.seen, p.seen*p.d),
	}
}

// sumContext adds up what `each` rows of d numbers per instance have of a weight's gradient.
func (b *binder) sumContext(to *kernel.Tensor, rows uint64, instances, each, d int) launch {
	fresh := b.fresh(to)
	return launch{module: "rollout_grad", kernel: "sum_loads", grid: dim3{ceil(d, 128), b.lanes, 1}, block: dim3{128, 1, 1}, aside: fresh,
		args: []any{b.addr(to), rows, i32(instances), i32(each), i32(b.lanes), i32(b.laneSize), i32(d), flag(fresh)}}
}
