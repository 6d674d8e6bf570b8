package routing

import (
	"math"

	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
)

// What a reader could break: a kernel adds biases to sums in a unit of its own, so the table is
// made for it (pointUnit, 1 and dotUnit); the sizes of shared memory here are the layouts in
// src/biases.cu.

const (
	biasSide  = 64 // SIDE of src/biases.cu
	biasDeep  = 16 // DEEP
	biasLoads = 16 // blocks of bias_sorted per instance, and rows of the context's part
	// POINT(1) of src/half.cuh: half kernels hold twice a score, to base 2
	pointUnit = 2 / math.Ln2
	nearUnit  = -math.Ln2 / 2 // what a score has of log2 of a squared distance, times Near
)

// biases reports whether anything is added to the pointer's scores.
func biases(o *kernel.Decoder) bool { return o.Pair != nil || o.Near != 0 }

// biasWide is how many floats a row of a table of biases has.
func (p policy) biasWide() int {
	t := max(p.tiles, p.tilesFor())
	if t == 0 {
		t = streamBlock / 8 * bind.Ceil(p.n, streamBlock)
	}
	return 16 * bind.Ceil(t, 2)
}

// dotUnit is the unit of a kernel that adds biases to dot products before they are scaled.
func (p policy) dotUnit() float64 { return 1 / float64(p.pointerScale) }

func biasShared() int { return 4 * 2 * biasDeep * (biasSide + 4) }

// biasTables makes the tables of a batch in scratch, in multiples of a score's unit; 0 and no
// launch where there is nothing to add.
func biasTables(b *bind.Binder, o *kernel.Decoder, p policy, instances int, unit float64) (uint64, []bind.Launch) {
	if !p.bias {
		return 0, nil
	}
	wide := p.biasWide()
	tables := b.Scratch(4 * instances * (p.n + p.seen) * wide)
	return tables, []bind.Launch{{Module: Ruled("biases", p.rules.Set), Kernel: "bias_tables", Grid: bind.Dim3{instances, bind.Ceil(p.n+p.seen, biasSide), bind.Ceil(wide, biasSide)}, Block: bind.Dim3{256, 1, 1},
		Shared: biasShared(), Args: []any{tables, b.Addr(o.Pair), b.Addr(o.PairContext), b.Addr(o.PosX), b.Addr(o.PosY), bind.I32(p.n), bind.I32(bind.Stride(o.Pair)), bind.I32(p.d), bind.I32(wide),
			float32(unit * float64(p.pointerScale)), float32(unit * nearUnit * float64(o.Near))}}}
}

// contextOperands makes right operands of the context's rows of tables (half.cuh) in scratch, one
// table after the other; 0 and no launch where the context has one feature.
func contextOperands(b *bind.Binder, p policy, tables uint64, count, wide int) (uint64, []bind.Launch) {
	if p.seen == 1 {
		return 0, nil
	}
	operands := b.Scratch(8 * count * 4 * wide)
	return operands, []bind.Launch{{Module: Ruled("biases", p.rules.Set), Kernel: "context_operands", Grid: bind.Dim3{count, 1, 1}, Block: bind.Dim3{4 * wide, 1, 1},
		Args: []any{operands, tables, bind.I32(p.n), bind.I32(wide)}}}
}

// pairGrad is where the gradient of an instance's biases waits for back_pairs.
type pairGrad struct {
	tables uint64 // 0: pairs have no scores
	loads  int    // rows of the context's part: as many for each feature
}

func newPairGrad(b *bind.Binder, o *kernel.RolloutGrad, p policy, loads int) pairGrad {
	if o.Pair == nil {
		return pairGrad{}
	}
	return pairGrad{b.Scratch(4 * o.Actions.Shape[0] * (p.n + loads) * p.biasWide()), loads}
}

// of is where the tables from one instance on begin.
func (g pairGrad) of(p policy, first int) uint64 {
	return g.tables + uint64(4*first*(p.n+g.loads)*p.biasWide())
}

// backPairs goes on from the tables to pairs' queries, keys and context. unit is what a gradient in
// the tables is to be multiplied by, for that of a dot product.
func backPairs(b *bind.Binder, o *kernel.RolloutGrad, p policy, g pairGrad, ups uint64, unit float64) []bind.Launch {
	if g.tables == 0 {
		return nil
	}
	instances := o.Actions.Shape[0]
	dcontext := b.Scratch(4 * instances * g.loads * p.d)
	return []bind.Launch{
		{Module: Ruled("biases", p.rules.Set), Kernel: "back_pairs", Grid: bind.Dim3{instances, bind.Ceil(p.n+g.loads, biasSide), 2 * bind.Ceil(p.d, biasSide)}, Block: bind.Dim3{256, 1, 1},
			Shared: biasShared(), Args: []any{b.Addr(o.DPair), dcontext, g.tables, b.Addr(o.Pair), b.Addr(o.PairContext), ups, bind.I32(p.n), bind.I32(g.loads),
				bind.I32(o.Pair.Stride), bind.I32(o.DPair.Stride), bind.I32(p.d), bind.I32(p.biasWide()), float32(unit)}},
		sumContext(b, o.DPairContext, dcontext, instances, g.loads/p.seen, p.seen*p.d),
	}
}

// sumContext adds up what `each` rows of d numbers per instance have of a weight's gradient.
func sumContext(b *bind.Binder, to *kernel.Tensor, rows uint64, instances, each, d int) bind.Launch {
	fresh := b.Fresh(to)
	return bind.Launch{Module: "rollout_grad", Kernel: "sum_loads", Grid: bind.Dim3{bind.Ceil(d, 128), b.Lanes, 1}, Block: bind.Dim3{128, 1, 1}, Aside: fresh,
		Args: []any{b.Addr(to), rows, bind.I32(instances), bind.I32(each), bind.I32(b.Lanes), bind.I32(b.LaneSize), bind.I32(d), bind.Flag(fresh)}}
}
