package cpu

import "haul/internal/kernel"

func (b *binder) norm(o *kernel.Norm) func(*worker) {
	y, mean, rstd, x := newRef(b.r, o.Y), newRef(b.r, o.Mean), newRef(b.r, o.Rstd), newRef(b.r, o.X)
	gamma, beta := newRef(b.r, o.Gamma), newRef(b.r, o.Beta)
	rows, d := o.X.Rows(), o.X.Cols()
	return func(w *worker) {
		w.p.norm(y.of(w), mean.of(w), rstd.of(w), x.of(w), gamma.of(w), beta.of(w), rows, d, kernel.NormEps)
	}
}

func (b *binder) normGrad(o *kernel.NormGrad) func(*worker) {
	dx, dgamma, dbeta := newRef(b.r, o.DX), b.grad(o.DGamma), b.grad(o.DBeta)
	dy, x, mean, rstd := newRef(b.r, o.DY), newRef(b.r, o.X), newRef(b.r, o.Mean), newRef(b.r, o.Rstd)
	gamma := newRef(b.r, o.Gamma)
	rows, d := o.X.Rows(), o.X.Cols()
	return func(w *worker) {
		w.p.normGrad(dx.of(w), dgamma.start(w), dbeta.start(w), dy.of(w), x.of(w), mean.of(w), rstd.of(w), gamma.of(w),
			rows, d, o.Accumulate)
	}
}

func (b *binder) glu(o *kernel.GLU) func(*worker) {
	y, g := newRef(b.r, o.Y), newRef(b.r, o.G)
	rows, width := o.Y.Rows(), o.Y.Cols()
	return func(w *worker) { w.p.glu(y.of(w), g.of(w), rows, width) }
}

func (b *binder) gluGrad(o *kernel.GLUGrad) func(*worker) {
	dg, dy, g := newRef(b.r, o.DG), newRef(b.r, o.DY), newRef(b.r, o.G)
	rows, width := o.DY.Rows(), o.DY.Cols()
	return func(w *worker) { w.p.gluGrad(dg.of(w), dy.of(w), g.of(w), rows, width) }
}

func (b *binder) meanNodes(o *kernel.MeanNodes) func(*worker) {
	y, x := newRef(b.r, o.Y), newRef(b.r, o.X)
	instances, n, d := o.X.Shape[0], o.X.Shape[1], o.X.Shape[2]
	return func(w *worker) {
		yb, xb := y.of(w), x.of(w)
		for i := range instances {
			row := yb[i*d:][:d]
			w.p.colSum(row, xb[i*n*d:][:n*d], n, d, d, false)
			for j := range row {
				row[j] /= float32(n)
			}
		}
	}
}

func (b *binder) meanNodesGrad(o *kernel.MeanNodesGrad) func(*worker) {
	dx, dy := newRef(b.r, o.DX), newRef(b.r, o.DY)
	instances, n, d := o.DX.Shape[0], o.DX.Shape[1], o.DX.Shape[2]
	b.need(d, 0)
	return func(w *worker) {
		xb, yb, share := dx.of(w), dy.of(w), w.scratch[:d]
		for i := range instances {
			for j, v := range yb[i*d:][:d] {
				share[j] = v / float32(n)
			}
			for k := range n {
				row := xb[(i*n+k)*d:][:d]
				if o.Accumulate {
					w.p.add(row, share)
				} else {
					copy(row, share)
				}
			}
		}
	}
}
