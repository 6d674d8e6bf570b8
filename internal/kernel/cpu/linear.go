package cpu

import "haul/internal/kernel"

// A linear layer's products, the ones with weights and those for their gradients, are made in the
// device's precision: over fp32 where the operands lie, or over bf16 tiles that A is packed to on
// the way, in the worker's scratch. Whatever follows a product is fp32.

// product runs one gemm with the fields set; unused pointers must be nil.
func (w *worker) product(g gemmArgs) {
	w.g = g
	w.p.gemm(&w.g)
}

// byWeight multiplies A, m rows `stride` floats apart, with a packed weight: C = A·B + bias + R.
type byWeight func(w *worker, c, a, bias, r []float32)

// byWeight binds a product of m rows with a pack of depth k and n columns; ldc and ldr are the
// strides of C and R.
func (b *binder) byWeight(pack []float32, m, k, n, stride, ldc, ldr int) byWeight {
	tiles := b.r.dev.tiles
	if tiles == nil {
		args := gemmArgs{b: ptr(pack), m: m, n: n, k: k, ldc: ldc, ars: stride, aks: 1, bks: panel, bps: k * panel, ldr: ldr}
		return func(w *worker, c, a, bias, r []float32) {
			g := args
			g.c, g.a, g.bias, g.r = ptr(c), ptr(a), ptr(bias), ptr(r)
			w.product(g)
		}
	}
	b.need(tiles.needByWeight(m, k), 0)
	args := tileArgs{b: ptr(pack), m: m, n: n, k: k, ldc: ldc, ldr: ldr}
	return func(w *worker, c, a, bias, r []float32) {
		w.tile = args
		w.tile.c, w.tile.bias, w.tile.r = ptr(c), ptr(bias), ptr(r)
		w.tiles.byWeight(w.p, &w.tile, a, stride, w.scratch)
	}
}

// linear runs the product, then what follows it over a result that is still in cache.
func (b *binder) linear(o *kernel.Linear) func(*worker) {
	y, x, bias, res, pre := newRef(b.r, o.Y), newRef(b.r, o.X), newRef(b.r, o.Bias), newRef(b.r, o.Residual), newRef(b.r, o.Pre)
	m, k, n := o.Dims()
	pack := b.r.sets[o.W.Set].forward(o.W.Offset)
	switch {
	case o.Pre != nil:
		multiply, gelu := b.byWeight(pack, m, k, n, x.stride, pre.stride, 0), b.r.dev.prims.gelu
		if tiles := b.r.dev.tiles; tiles != nil && tiles.gelu != nil {
			gelu = tiles.gelu
		}
		return func(w *worker) {
			yb, pb := y.of(w), pre.of(w)
			multiply(w, pb, x.of(w), bias.of(w), nil)
			gelu(yb, pb)
		}
	case o.Drop.Rate > 0:
		multiply := b.byWeight(pack, m, k, n, x.stride, y.stride, 0)
		drop := b.rowDropper(o.Drop, m, n)
		return func(w *worker) {
			yb := y.of(w)
			multiply(w, yb, x.of(w), bias.of(w), nil)
			drop.apply(w, yb, yb, res.of(w))
		}
	}
	multiply := b.byWeight(pack, m, k, n, x.stride, y.stride, res.stride)
	return func(w *worker) { multiply(w, y.of(w), x.of(w), bias.of(w), res.of(w)) }
}

func (b *binder) linearGradX(o *kernel.LinearGradX) func(*worker) {
	dx, dy, pre := newRef(b.r, o.DX), newRef(b.r, o.DY), newRef(b.r, o.Pre)
	m, k, n := o.DY.Rows(), o.DY.Cols(), o.DX.Cols()
	multiply := b.byWeight(b.r.sets[o.W.Set].transposed(o.W.Offset), m, k, n, dy.stride, dx.stride, dx.stride)
	geluGrad := b.r.dev.prims.geluGrad
	if tiles := b.r.dev.tiles; tiles != nil && tiles.geluGrad != nil {
		geluGrad = tiles.geluGrad
	}
	return func(w *worker) {
		d := dx.of(w)
		var sum []float32
		if o.Accumulate {
			sum = d
		}
		multiply(w, d, dy.of(w), nil, sum)
		if o.Pre != nil {
			geluGrad(d, d, pre.of(w))
		}
	}
}

func (b *binder) linearGradW(o *kernel.LinearGradW) func(*worker) {
	dw, db := b.grad(o.DW), b.grad(o.DBias)
	dy, x := newRef(b.r, o.DY), newRef(b.r, o.X)
	rows, out, in := o.DY.Rows(), o.DY.Cols(), o.X.Cols()
	multiply := b.byRows(rows, out, in, dy.stride, x.stride)
	return func(w *worker) {
		d := dy.of(w)
		multiply(w, dw.of(w), d, x.of(w), dw.add(w))
		if bias := db.of(w); bias != nil {
			w.p.colSum(bias, d, rows, out, dy.stride, db.add(w))
		}
	}
}

// byRows binds the product of DYᵀ [out, rows] and X [rows, in] for a weight's gradient, dense,
// which adds where asked to.
func (b *binder) byRows(rows, out, in, dyStride, xStride int) func(w *worker, dw, dy, x []float32, add bool) {
	tiles := b.r.dev.tiles
	if tiles == nil {
		b.need(gemmScratch, 0)
		return func(w *worker, dw, dy, x []float32, add bool) {
			g := gemmArgs{c: ptr(dw), a: ptr(dy), b: ptr(x), m: out, n: in, k: rows,
				ldc: in, ars: 1, aks: dyStride, bks: xStride, bps: panel, scratch: ptr(w.scratch)}
			if add {
				g.r, g.ldr = g.c, g.ldc
			}
			w.product(g)
		}
	}
	far := false
	if lanes := b.r.sets[0].lanes; len(lanes) > 0 {
		far = 4*len(lanes)*len(lanes[0]) >= farBytes
	}
	sums := newRowSums(tiles, rows, out, in, dyStride, xStride, far)
	b.need(sums.need(), 0)
	return func(w *worker, dw, dy, x []float32, add bool) { sums.product(w.p, &w.tile, dw, dy, x, add, w.scratch) }
}
