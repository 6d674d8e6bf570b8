package dense

import (
	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
)

// Sizes of src/linear_thin.cu.
const (
	ThinTerms   = 4
	thinColumns = 128
	thinWarps   = 8
)

// thin is a layer whose input has four columns; nil where the kernels for it do not serve, and in
// fp32, whose sums keep their order.
func thin(b *bind.Binder, o *kernel.Linear, y, residual *kernel.Tensor) []bind.Launch {
	m, k, n := o.Dims()
	if b.Precision == bind.FP32 || k != ThinTerms || residual != nil || !o.X.Dense() || !b.Vectors(y, o.X, o.W, o.Bias) {
		return nil
	}
	return []bind.Launch{{Module: "linear_thin", Kernel: "linear_thin", Grid: bind.Dim3{min(bind.Ceil(m, thinWarps), 8*b.SMs), bind.Ceil(n, thinColumns), 1},
		Block: bind.Dim3{32 * thinWarps, 1, 1},
		Args:  []any{b.Addr(y), b.Addr(o.X), b.Addr(o.W), b.Addr(o.Bias), bind.I32(m), bind.I32(n), bind.I32(y.Stride)}}}
}

// thinDW is its weights' gradient, for 128 columns.
func thinDW(b *bind.Binder, o *kernel.LinearGradW) []bind.Launch {
	rows, n, k := o.DY.Rows(), o.DY.Cols(), o.X.Cols()
	if b.Precision == bind.FP32 || k != ThinTerms || n != thinColumns || !o.X.Dense() || !b.Vectors(o.DW, o.DY, o.X, o.DBias) {
		return nil
	}
	chunk := bind.Ceil(rows, b.Lanes)
	blocks := max(1, min(2*b.SMs/b.Lanes, bind.Ceil(chunk, thinWarps)))
	addW, addBias := b.Adds(o.DW), b.Adds(o.DBias)
	return []bind.Launch{{Module: "linear_thin", Kernel: "linear_thin_dw", Grid: bind.Dim3{blocks * b.Lanes, 1, 1}, Block: bind.Dim3{32 * thinWarps, 1, 1},
		Args: []any{b.Addr(o.DW), b.Addr(o.DBias), b.Addr(o.DY), b.Addr(o.X), b.Scratch(4 * (ThinTerms + 1) * n * blocks * b.Lanes),
			b.Scratch(4 * b.Lanes), bind.I32(rows),
			bind.I32(o.DY.Stride), bind.I32(chunk), bind.I32(bind.Ceil(chunk, blocks)), bind.I32(blocks), bind.I32(b.LaneSize), addW, addBias}}}
}
