package cuda

import "haul/internal/kernel"

// Sizes of src/dense/linear_rows.cu.
const (
	rowsTile    = 128 // BM
	rowsChunk   = 128 // CHUNK
	rowsThreads = 256
	rowsWide    = 128 // BN
	rowsNarrow  = 64
)

// rowsWidth is how many columns of C a block of src/dense/linear_rows.cu takes, 0 where those
// kernels do not serve: on other cards than Hopper's, in other precisions than tf32, for too few
// rows to go round, and for a matrix whose columns' terms do not fit shared memory.
func (b *binder) rowsWidth(m, n, terms int, narrow bool, ts ...*kernel.Tensor) int {
	if !b.hopper || b.precision != TF32 || terms%rowsChunk != 0 || n%rowsWide != 0 || 2*ceil(m, rowsTile)*(n/rowsWide) < b.sms ||
		!b.vectors(ts...) {
		return 0
	}
	switch {
	case rowsShared(terms, rowsWide) <= b.maxShared:
		return rowsWide
	case narrow && rowsShared(terms, rowsNarrow) <= b.maxShared:
		return rowsNarrow
	}
	return 0
}

// rowsShared is what a block keeps in shared memory: its columns' terms, and their bias.
func rowsShared(terms, width int) int { return 4 * (terms*width + width) }

// rows launches one of them: as many blocks as run at once, each with one slice of the columns.
func (b *binder) rows(name string, c, x, w, bias, add, u uint64, width, m, n, terms, ldc, lda, ldadd, half int) []launch {
	slices := n / width
	blocks := min(ceil(m, rowsTile), max(1, b.sms/slices)) * slices
	return []launch{{module: "linear_rows", kernel: name, grid: dim3{blocks, 1, 1}, block: dim3{rowsThreads, 1, 1},
		shared: rowsShared(terms, width),
		args:   []any{c, x, w, bias, add, u, i32(m), i32(n), i32(terms), i32(ldc), i32(lda), i32(ldadd), i32(half)}}}
}

// linearRows is Y = X·Wᵀ + bias + residual by them; nil where they do not serve.
func (b *binder) linearRows(o *kernel.Linear, y, residual *kernel.Tensor) []launch {
	m, k, n := o.Dims()
	width := b.rowsWidth(m, n, k, false, y, o.X, o.W, o.Bias, residual)
	if width == 0 {
		return nil
	}
	return b.rows("linear_rows", b.addr(y), b.addr(o.X), b.addr(o.W), b.addr(o.Bias), b.addr(residual), 0, width, m, n, k, y.Stride,
		o.X.Stride, stride(residual), 0)
}

// linearRowsDX is DX = DY·W by them; nil where they do not serve.
func (b *binder) linearRowsDX(o *kernel.LinearGradX) []launch {
	m, terms, n := o.DY.Rows(), o.DY.Cols(), o.DX.Cols()
	width := b.rowsWidth(m, n, terms, true, o.DX, o.DY, o.W)
	if width == 0 {
		return nil
	}
	name, add := "linear_rows_dx", uint64(0)
	if width == rowsNarrow {
		name = "linear_rows_dx_narrow"
	}
	if o.Accumulate {
		add = b.addr(o.DX)
	}
	return b.rows(name, b.addr(o.DX), b.addr(o.DY), b.addr(o.W), 0, add, 0, width, m, n, terms, o.DX.Stride, o.DY.Stride, o.DX.Stride, 0)
}
