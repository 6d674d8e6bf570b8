package cuda

import "haul/internal/kernel"

// Sizes of src/dense/linear_thin.cu.
const (
	thinTerms   = 4
	thinColumns = 128
	thinWarps   = 8
)

// thin is a layer whose input has four columns; nil where the kernels for it do not serve, and in
// fp32, whose sums keep their order.
func (b *binder) thin(o *kernel.Linear, y, residual *kernel.Tensor) []launch {
	m, k, n := o.Dims()
	if b.precision == FP32 || k != thinTerms || residual != nil || !o.X.Dense() || !b.vectors(y, o.X, o.W, o.Bias) {
		return nil
	}
	return []launch{{module: "linear_thin", kernel: "linear_thin", grid: dim3{min(ceil(m, thinWarps), 8*b.sms), ceil(n, thinColumns), 1},
		block: dim3{32 * thinWarps, 1, 1},
		args:  []any{b.addr(y), b.addr(o.X), b.addr(o.W), b.addr(o.Bias), i32(m), i32(n), i32(y.Stride)}}}
}

// thinDW is its weights' gradient, for 128 columns.
func (b *binder) thinDW(o *kernel.LinearGradW) []launch {
	rows, n, k := o.DY.Rows(), o.DY.Cols(), o.X.Cols()
	if b.precision == FP32 || k != thinTerms || n != thinColumns || !o.X.Dense() || !b.vectors(o.DW, o.DY, o.X, o.DBias) {
		return nil
	}
	chunk := ceil(rows, b.lanes)
	blocks := max(1, min(2*b.sms/b.lanes, ceil(chunk, thinWarps)))
	addW, addBias := b.adds(o.DW), b.adds(o.DBias)
	return []launch{{module: "linear_thin", kernel: "linear_thin_dw", grid: dim3{blocks * b.lanes, 1, 1}, block: dim3{32 * thinWarps, 1, 1},
		args: []any{b.addr(o.DW), b.addr(o.DBias), b.addr(o.DY), b.addr(o.X), b.scratch(4 * (thinTerms + 1) * n * blocks * b.lanes),
			b.scratch(4 * b.lanes), i32(rows),
			i32(o.DY.Stride), i32(chunk), i32(ceil(chunk, blocks)), i32(blocks), i32(b.laneSize), addW, addBias}}}
}
