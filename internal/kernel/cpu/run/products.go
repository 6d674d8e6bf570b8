package run

import (
	"haul/internal/kernel/cpu/isa"
)

// A linear layer's products, the ones with weights and those for their gradients, are made in the
// device's precision: over fp32 where the operands lie, or over bf16 tiles that A is packed to on
// the way, in the worker's scratch. Whatever follows a product is fp32.

// byWeight multiplies A, m rows `stride` floats apart, with a packed weight: C = A·B + bias + R.
type byWeight func(w *Worker, c, a, bias, r []float32)

// ByWeight binds a product of m rows with a pack of depth k and n columns; ldc and ldr are the
// strides of C and R.
func (b *Binder) ByWeight(pack []float32, m, k, n, stride, ldc, ldr int) byWeight {
	tiles := b.Runner.Device.Tiles
	if tiles == nil {
		args := isa.GemmArgs{B: isa.Ptr(pack), M: m, N: n, K: k, LDC: ldc, ARS: stride, AKS: 1, BKS: isa.Panel, BPS: k * isa.Panel, LDR: ldr}
		return func(w *Worker, c, a, bias, r []float32) {
			g := args
			g.C, g.A, g.Bias, g.R = isa.Ptr(c), isa.Ptr(a), isa.Ptr(bias), isa.Ptr(r)
			w.Product(g)
		}
	}
	b.Need(tiles.NeedByWeight(m, k), 0)
	args := isa.TileArgs{B: isa.Ptr(pack), M: m, N: n, K: k, LDC: ldc, LDR: ldr}
	return func(w *Worker, c, a, bias, r []float32) {
		w.Tile = args
		w.Tile.C, w.Tile.Bias, w.Tile.R = isa.Ptr(c), isa.Ptr(bias), isa.Ptr(r)
		w.Tiles.ByWeight(w.Prims, &w.Tile, a, stride, w.Scratch)
	}
}

// ByRows binds the product of DYᵀ [out, rows] and X [rows, in] for a weight's gradient, dense,
// which adds where asked to.
func (b *Binder) ByRows(rows, out, in, dyStride, xStride int) func(w *Worker, dw, dy, x []float32, add bool) {
	tiles := b.Runner.Device.Tiles
	if tiles == nil {
		b.Need(isa.GemmScratch, 0)
		return func(w *Worker, dw, dy, x []float32, add bool) {
			g := isa.GemmArgs{C: isa.Ptr(dw), A: isa.Ptr(dy), B: isa.Ptr(x), M: out, N: in, K: rows,
				LDC: in, ARS: 1, AKS: dyStride, BKS: xStride, BPS: isa.Panel, Scratch: isa.Ptr(w.Scratch)}
			if add {
				g.R, g.LDR = g.C, g.LDC
			}
			w.Product(g)
		}
	}
	far := false
	if lanes := b.Runner.Sets[0].Lanes; len(lanes) > 0 {
		far = 4*len(lanes)*len(lanes[0]) >= isa.FarBytes
	}
	sums := isa.NewRowSums(tiles, rows, out, in, dyStride, xStride, far)
	b.Need(sums.Need(), 0)
	return func(w *Worker, dw, dy, x []float32, add bool) {
		sums.Product(w.Prims, &w.Tile, dw, dy, x, add, w.Scratch)
	}
}
