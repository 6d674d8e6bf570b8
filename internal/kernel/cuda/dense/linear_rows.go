package dense

import (
	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
)

// Sizes of src/linear_rows.cu.
const (
	rowsTile    = 128 // BM
	rowsChunk   = 128 // CHUNK
	rowsThreads = 256
	RowsWide    = 128 // BN
	rowsNarrow  = 64
)

// RowsWidth is how many columns of C a block of src/linear_rows.cu takes, 0 where those
// kernels do not serve: on other cards than Hopper's, in other precisions than tf32, for too few
// rows to go round, and for a matrix whose columns' terms do not fit shared memory.
func RowsWidth(b *bind.Binder, m, n, terms int, narrow bool, ts ...*kernel.Tensor) int {
	if !b.Hopper || b.Precision != bind.TF32 || terms%rowsChunk != 0 || n%RowsWide != 0 || 2*bind.Ceil(m, rowsTile)*(n/RowsWide) < b.SMs ||
		!b.Vectors(ts...) {
		return 0
	}
	switch {
	case rowsShared(terms, RowsWide) <= b.MaxShared:
		return RowsWide
	case narrow && rowsShared(terms, rowsNarrow) <= b.MaxShared:
		return rowsNarrow
	}
	return 0
}

// rowsShared is what a block keeps in shared memory: its columns' terms, and their bias.
func rowsShared(terms, width int) int { return 4 * (terms*width + width) }

// Rows launches one of them: as many blocks as run at once, each with one slice of the columns.
func Rows(b *bind.Binder, name string, c, x, w, bias, add, u uint64, width, m, n, terms, ldc, lda, ldadd, half int) []bind.Launch {
	slices := n / width
	blocks := min(bind.Ceil(m, rowsTile), max(1, b.SMs/slices)) * slices
	return []bind.Launch{{Module: "linear_rows", Kernel: name, Grid: bind.Dim3{blocks, 1, 1}, Block: bind.Dim3{rowsThreads, 1, 1},
		Shared: rowsShared(terms, width),
		Args:   []any{c, x, w, bias, add, u, bind.I32(m), bind.I32(n), bind.I32(terms), bind.I32(ldc), bind.I32(lda), bind.I32(ldadd), bind.I32(half)}}}
}

// linearRows is Y = X·Wᵀ + bias + residual by them; nil where they do not serve.
func linearRows(b *bind.Binder, o *kernel.Linear, y, residual *kernel.Tensor) []bind.Launch {
	m, k, n := o.Dims()
	width := RowsWidth(b, m, n, k, false, y, o.X, o.W, o.Bias, residual)
	if width == 0 {
		return nil
	}
	return Rows(b, "linear_rows", b.Addr(y), b.Addr(o.X), b.Addr(o.W), b.Addr(o.Bias), b.Addr(residual), 0, width, m, n, k, y.Stride,
		o.X.Stride, bind.Stride(residual), 0)
}

// linearRowsDX is DX = DY·W by them; nil where they do not serve.
func linearRowsDX(b *bind.Binder, o *kernel.LinearGradX) []bind.Launch {
	m, terms, n := o.DY.Rows(), o.DY.Cols(), o.DX.Cols()
	width := RowsWidth(b, m, n, terms, true, o.DX, o.DY, o.W)
	if width == 0 {
		return nil
	}
	name, add := "linear_rows_dx", uint64(0)
	if width == rowsNarrow {
		name = "linear_rows_dx_narrow"
	}
	if o.Accumulate {
		add = b.Addr(o.DX)
	}
	return Rows(b, name, b.Addr(o.DX), b.Addr(o.DY), b.Addr(o.W), 0, add, 0, width, m, n, terms, o.DX.Stride, o.DY.Stride, o.DX.Stride, 0)
}
