package cpu

import "haul/internal/kernel"

// product runs one gemm with the fields set; unused pointers must be nil.
func (w *worker) product(g gemmArgs) {
	w.g = g
	w.p.gemm(&w.g)
}

func (b *binder) linear(o *kernel.Linear) func(*worker) {
	y, x, bias, res := newRef(b.r, o.Y), newRef(b.r, o.X), newRef(b.r, o.Bias), newRef(b.r, o.Residual)
	m, k, n := o.Dims()
	st := b.r.sets[o.W.Set]
	pack := st.packs[st.index(o.W.Offset)].forward
	return func(w *worker) {
		w.product(gemmArgs{c: ptr(y.of(w)), a: ptr(x.of(w)), b: ptr(pack), bias: ptr(bias.of(w)), r: ptr(res.of(w)),
			m: m, n: n, k: k, ldc: y.stride, ars: x.stride, aks: 1, bks: panel, bps: k * panel, ldr: res.stride})
	}
}

func (b *binder) linearGradX(o *kernel.LinearGradX) func(*worker) {
	dx, dy := newRef(b.r, o.DX), newRef(b.r, o.DY)
	m, k, n := o.DY.Rows(), o.DY.Cols(), o.DX.Cols()
	st := b.r.sets[o.W.Set]
	pack := st.packs[st.index(o.W.Offset)].transposed
	return func(w *worker) {
		g := gemmArgs{c: ptr(dx.of(w)), a: ptr(dy.of(w)), b: ptr(pack), m: m, n: n, k: k,
			ldc: dx.stride, ars: dy.stride, aks: 1, bks: panel, bps: k * panel}
		if o.Accumulate {
			g.r, g.ldr = g.c, g.ldc
		}
		w.product(g)
	}
}

func (b *binder) linearGradW(o *kernel.LinearGradW) func(*worker) {
	dw, db := b.grad(o.DW), b.grad(o.DBias)
	dy, x := newRef(b.r, o.DY), newRef(b.r, o.X)
	rows, out, in := o.DY.Rows(), o.DY.Cols(), o.X.Cols()
	b.need(gemmScratch, 0)
	return func(w *worker) {
		d := dy.of(w)
		g := gemmArgs{c: ptr(dw.of(w)), a: ptr(d), b: ptr(x.of(w)), m: out, n: in, k: rows,
			ldc: in, ars: 1, aks: dy.stride, bks: x.stride, bps: panel, scratch: ptr(w.scratch)}
		if dw.add(w) {
			g.r, g.ldr = g.c, g.ldc
		}
		w.product(g)
		if bias := db.of(w); bias != nil {
			w.p.colSum(bias, d, rows, out, dy.stride, db.add(w))
		}
	}
}
