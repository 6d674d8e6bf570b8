package cpu

import "haul/internal/kernel"

// product runs one gemm with the fields set; unused pointers must be nil.
func (w *worker) product(g gemmArgs) {
	w.g = g
	w.p.gemm(&w.g)
}

// linear runs the product, then what follows it over a result that is still in cache.
func (b *binder) linear(o *kernel.Linear) func(*worker) {
	y, x, bias, res, pre := newRef(b.r, o.Y), newRef(b.r, o.X), newRef(b.r, o.Bias), newRef(b.r, o.Residual), newRef(b.r, o.Pre)
	m, k, n := o.Dims()
	pack := b.r.sets[o.W.Set].forward(o.W.Offset)
	args := gemmArgs{b: ptr(pack), m: m, n: n, k: k, ldc: y.stride, ars: x.stride, aks: 1, bks: panel, bps: k * panel}
	switch {
	case o.Pre != nil:
		args.ldc = pre.stride
		return func(w *worker) {
			g, yb, pb := args, y.of(w), pre.of(w)
			g.c, g.a, g.bias = ptr(pb), ptr(x.of(w)), ptr(bias.of(w))
			w.product(g)
			w.p.gelu(yb, pb)
		}
	case o.Drop.Rate > 0:
		drop := b.rowDropper(o.Drop, m, n)
		return func(w *worker) {
			g, yb := args, y.of(w)
			g.c, g.a, g.bias = ptr(yb), ptr(x.of(w)), ptr(bias.of(w))
			w.product(g)
			drop.apply(w, yb, yb, res.of(w))
		}
	}
	args.ldr = res.stride
	return func(w *worker) {
		g := args
		g.c, g.a, g.bias, g.r = ptr(y.of(w)), ptr(x.of(w)), ptr(bias.of(w)), ptr(res.of(w))
		w.product(g)
	}
}

func (b *binder) linearGradX(o *kernel.LinearGradX) func(*worker) {
	dx, dy, pre := newRef(b.r, o.DX), newRef(b.r, o.DY), newRef(b.r, o.Pre)
	m, k, n := o.DY.Rows(), o.DY.Cols(), o.DX.Cols()
	pack := b.r.sets[o.W.Set].transposed(o.W.Offset)
	return func(w *worker) {
		d := dx.of(w)
		g := gemmArgs{c: ptr(d), a: ptr(dy.of(w)), b: ptr(pack), m: m, n: n, k: k,
			ldc: dx.stride, ars: dy.stride, aks: 1, bks: panel, bps: k * panel}
		if o.Accumulate {
			g.r, g.ldr = g.c, g.ldc
		}
		w.product(g)
		if o.Pre != nil {
			w.p.geluGrad(d, d, pre.of(w))
		}
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
