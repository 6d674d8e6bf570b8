package dense

import (
	"haul/internal/kernel"
	"haul/internal/kernel/cpu/run"
)

func norm(b *run.Binder, o *kernel.Norm) func(*run.Worker) {
	y, mean, rstd, x := b.Ref(o.Y), b.Ref(o.Mean), b.Ref(o.Rstd), b.Ref(o.X)
	gamma, beta := b.Ref(o.Gamma), b.Ref(o.Beta)
	rows, d := o.X.Rows(), o.X.Cols()
	return func(w *run.Worker) {
		w.Prims.Norm(y.Of(w), mean.Of(w), rstd.Of(w), x.Of(w), gamma.Of(w), beta.Of(w), rows, d, kernel.NormEps)
	}
}

func normGrad(b *run.Binder, o *kernel.NormGrad) func(*run.Worker) {
	dx, dgamma, dbeta := b.Ref(o.DX), b.Grad(o.DGamma), b.Grad(o.DBeta)
	dy, x, mean, rstd := b.Ref(o.DY), b.Ref(o.X), b.Ref(o.Mean), b.Ref(o.Rstd)
	gamma := b.Ref(o.Gamma)
	rows, d := o.X.Rows(), o.X.Cols()
	return func(w *run.Worker) {
		w.Prims.NormGrad(dx.Of(w), dgamma.Start(w), dbeta.Start(w), dy.Of(w), x.Of(w), mean.Of(w), rstd.Of(w), gamma.Of(w),
			rows, d, o.Accumulate)
	}
}

func glu(b *run.Binder, o *kernel.GLU) func(*run.Worker) {
	y, g := b.Ref(o.Y), b.Ref(o.G)
	rows, width := o.Y.Rows(), o.Y.Cols()
	return func(w *run.Worker) { w.Prims.GLU(y.Of(w), g.Of(w), rows, width) }
}

func gluGrad(b *run.Binder, o *kernel.GLUGrad) func(*run.Worker) {
	dg, dy, g := b.Ref(o.DG), b.Ref(o.DY), b.Ref(o.G)
	rows, width := o.DY.Rows(), o.DY.Cols()
	return func(w *run.Worker) { w.Prims.GLUGrad(dg.Of(w), dy.Of(w), g.Of(w), rows, width) }
}

func meanNodes(b *run.Binder, o *kernel.MeanNodes) func(*run.Worker) {
	y, x := b.Ref(o.Y), b.Ref(o.X)
	instances, n, d := o.X.Shape[0], o.X.Shape[1], o.X.Shape[2]
	return func(w *run.Worker) {
		yb, xb := y.Of(w), x.Of(w)
		for i := range instances {
			row := yb[i*d:][:d]
			w.Prims.ColSum(row, xb[i*n*d:][:n*d], n, d, d, false)
			for j := range row {
				row[j] /= float32(n)
			}
		}
	}
}

func meanNodesGrad(b *run.Binder, o *kernel.MeanNodesGrad) func(*run.Worker) {
	dx, dy := b.Ref(o.DX), b.Ref(o.DY)
	instances, n, d := o.DX.Shape[0], o.DX.Shape[1], o.DX.Shape[2]
	b.Need(d, 0)
	return func(w *run.Worker) {
		xb, yb, share := dx.Of(w), dy.Of(w), w.Scratch[:d]
		for i := range instances {
			for j, v := range yb[i*d:][:d] {
				share[j] = v / float32(n)
			}
			for k := range n {
				row := xb[(i*n+k)*d:][:d]
				if o.Accumulate {
					w.Prims.Add(row, share)
				} else {
					copy(row, share)
				}
			}
		}
	}
}

func dropout(b *run.Binder, o *kernel.Dropout) func(*run.Worker) {
	y, x, res := b.Ref(o.Y), b.Ref(o.X), b.Ref(o.Residual)
	if o.Rate == 0 {
		return func(w *run.Worker) {
			yb := y.Of(w)
			copy(yb, x.Of(w))
			w.Prims.Add(yb, res.Of(w))
		}
	}
	drop := b.RowDropper(o.Drop, o.X.Rows(), o.X.Cols())
	return func(w *run.Worker) { drop.Apply(w, y.Of(w), x.Of(w), res.Of(w)) }
}
