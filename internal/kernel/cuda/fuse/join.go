package fuse

import (
	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
	"haul/internal/kernel/cuda/dense"
)

// What a reader could break: ops that are joined are one kernel, launched where one of them stands,
// and the others have no launch. Whoever waits for one of those waits, through the tensors it
// names, for what it would have waited for: so a launch stands where the first op stands if what
// lies between is written for others to read, and where the last stands if that one reads what the
// first does not name. What is written early nobody may mind: nothing in between reads or writes
// it, and no other tensor has its memory. Where ops share memory along the recording, nothing is
// joined.

// joinGLU finds gated units whose input one linear layer makes.
func joinGLU(f *finder) {
	for _, op := range f.ops {
		o, ok := op.(*kernel.GLU)
		if !ok || f.b.Absorbed[op] != nil {
			continue
		}
		if l, ok := f.writer[o.G].(*kernel.Linear); ok && joinsGLU(f.b, l, o) {
			read := f.readers[o.G] > 1 || o.G.Space != kernel.Shard // the host reads others
			f.fuse(func() []bind.Launch { return linearGLU(f.b, l, o, read) }, l, o)
		}
	}
}

// joinGLUGrad finds gradients of gated units whose result's gradient one linear layer makes.
func joinGLUGrad(f *finder) {
	for _, op := range f.ops {
		o, ok := op.(*kernel.GLUGrad)
		if !ok || f.b.Absorbed[op] != nil {
			continue
		}
		l, ok := f.writer[o.DY].(*kernel.LinearGradX)
		if ok && f.readers[o.DY] == 1 && o.DY.Space == kernel.Shard && joinsGLUGrad(f.b, l, o) {
			f.fuse(func() []bind.Launch { return linearDXGLU(f.b, l, o) }, o, l)
		}
	}
}

func joinsGLU(b *bind.Binder, l *kernel.Linear, o *kernel.GLU) bool {
	m, k, n := l.Dims()
	return l.Pre == nil && l.Residual == nil && l.Drop.Rate == 0 && l.Y.Dense() && o.Y.Dense() && dense.RowsWidth(b, m, n, k, false, l.Y, l.X,
		l.W, l.Bias, o.Y) == dense.RowsWide
}

func joinsGLUGrad(b *bind.Binder, l *kernel.LinearGradX, o *kernel.GLUGrad) bool {
	if l.Accumulate || l.Pre != nil || b.AnyCompact(l) || b.AnyCompact(o) || !l.DX.Dense() || !o.DG.Dense() || !o.G.Dense() ||
		!b.Vectors(l.DX, l.DY, l.W, o.DG, o.G) {
		return false
	}
	m, n := l.DY.Rows(), l.DX.Cols()
	// the one tile with registers for it
	return dense.RowsWidth(b, m, n, l.DY.Cols(), false) == dense.RowsWide || dense.Pick(b, m, n, 1, true).Name == "small"
}

// linearGLU is G = X·Wᵀ + bias and Y = its gated unit in one. G is written only if something else
// reads it.
func linearGLU(b *bind.Binder, l *kernel.Linear, o *kernel.GLU, read bool) []bind.Launch {
	m, k, n := l.Dims()
	g := b.Addr(l.Y)
	if !read {
		g = 0
	}
	return dense.Rows(b, "linear_rows_glu", g, b.Addr(l.X), b.Addr(l.W), b.Addr(l.Bias), 0, b.Addr(o.Y), dense.RowsWide, m, n, k, l.Y.Stride,
		l.X.Stride, 0, n/2)
}

// linearDXGLU is the gradient of a gated unit's input from that of the layer behind it.
func linearDXGLU(b *bind.Binder, l *kernel.LinearGradX, o *kernel.GLUGrad) []bind.Launch {
	m, terms, n := l.DY.Rows(), l.DY.Cols(), l.DX.Cols()
	if dense.RowsWidth(b, m, n, terms, false) != dense.RowsWide {
		return dense.Product(b, "linear_dx", dense.Pick(b, m, n, 1, true), m, n, terms, 1, b.Addr(o.DG), b.Addr(l.DY), b.Addr(l.W), uint64(0),
			bind.I32(m), bind.I32(terms), bind.I32(n), bind.I32(o.DG.Stride), bind.I32(l.DY.Stride), b.Addr(o.G))
	}
	return dense.Rows(b, "linear_rows_dx_glu", b.Addr(o.DG), b.Addr(l.DY), b.Addr(l.W), 0, 0, b.Addr(o.G), dense.RowsWide, m, n, terms, o.DG.Stride,
		l.DY.Stride, 0, n)
}
