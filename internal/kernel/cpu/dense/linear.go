package dense

import (
	"haul/internal/kernel"
	"haul/internal/kernel/cpu/run"
)

// linear runs the product, then what follows it over a result that is still in cache.
func linear(b *run.Binder, o *kernel.Linear) func(*run.Worker) {
	y, x, bias, res, pre := b.Ref(o.Y), b.Ref(o.X), b.Ref(o.Bias), b.Ref(o.Residual), b.Ref(o.Pre)
	m, k, n := o.Dims()
	pack := b.Runner.Sets[o.W.Set].Forward(o.W.Offset)
	switch {
	case o.Pre != nil:
		multiply, gelu := b.ByWeight(pack, m, k, n, x.Stride, pre.Stride, 0), b.Runner.Device.Prims.GELU
		if tiles := b.Runner.Device.Tiles; tiles != nil && tiles.GELU != nil {
			gelu = tiles.GELU
		}
		return func(w *run.Worker) {
			yb, pb := y.Of(w), pre.Of(w)
			multiply(w, pb, x.Of(w), bias.Of(w), nil)
			gelu(yb, pb)
		}
	case o.Drop.Rate > 0:
		multiply := b.ByWeight(pack, m, k, n, x.Stride, y.Stride, 0)
		drop := b.RowDropper(o.Drop, m, n)
		return func(w *run.Worker) {
			yb := y.Of(w)
			multiply(w, yb, x.Of(w), bias.Of(w), nil)
			drop.Apply(w, yb, yb, res.Of(w))
		}
	}
	multiply := b.ByWeight(pack, m, k, n, x.Stride, y.Stride, res.Stride)
	return func(w *run.Worker) { multiply(w, y.Of(w), x.Of(w), bias.Of(w), res.Of(w)) }
}

func linearGradX(b *run.Binder, o *kernel.LinearGradX) func(*run.Worker) {
	dx, dy, pre := b.Ref(o.DX), b.Ref(o.DY), b.Ref(o.Pre)
	m, k, n := o.DY.Rows(), o.DY.Cols(), o.DX.Cols()
	multiply := b.ByWeight(b.Runner.Sets[o.W.Set].Transposed(o.W.Offset), m, k, n, dy.Stride, dx.Stride, dx.Stride)
	geluGrad := b.Runner.Device.Prims.GELUGrad
	if tiles := b.Runner.Device.Tiles; tiles != nil && tiles.GELUGrad != nil {
		geluGrad = tiles.GELUGrad
	}
	return func(w *run.Worker) {
		d := dx.Of(w)
		var sum []float32
		if o.Accumulate {
			sum = d
		}
		multiply(w, d, dy.Of(w), nil, sum)
		if o.Pre != nil {
			geluGrad(d, d, pre.Of(w))
		}
	}
}

func linearGradW(b *run.Binder, o *kernel.LinearGradW) func(*run.Worker) {
	dw, db := b.Grad(o.DW), b.Grad(o.DBias)
	dy, x := b.Ref(o.DY), b.Ref(o.X)
	rows, out, in := o.DY.Rows(), o.DY.Cols(), o.X.Cols()
	multiply := b.ByRows(rows, out, in, dy.Stride, x.Stride)
	return func(w *run.Worker) {
		d := dy.Of(w)
		multiply(w, dw.Of(w), d, x.Of(w), dw.Add(w))
		if bias := db.Of(w); bias != nil {
			w.Prims.ColSum(bias, d, rows, out, dy.Stride, db.Add(w))
		}
	}
}
