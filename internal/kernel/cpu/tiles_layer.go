package cpu

import "unsafe"

// A linear layer's products in bf16, with the packing on the way: block by block, so that what was packed is multiplied while it is in
// cache. What a reader could break: a block of rows, or of l, ends at a whole tile, which leaves every sum its order.

// layerRows is how many rows are packed and multiplied at once: a shard's are one block.
const layerRows = 192

// needByWeight is the scratch of byWeight, in floats.
func (t *tileSet) needByWeight(m, k int) int { return tileFloats(min(m, layerRows), k) + t.scratch(k) }

// byWeight computes g for an A that is not packed: rows of src, stride floats apart.
func (t *tileSet) byWeight(p *primitives, g *tileArgs, src []float32, stride int, scratch []float32) {
	whole, size := *g, tileFloats(min(g.m, layerRows), g.k)
	g.a, g.scratch = ptr(scratch), ptr(scratch[size:])
	for i := 0; i < whole.m; i += layerRows {
		g.m = min(layerRows, whole.m-i)
		g.c = unsafe.Add(whole.c, 4*i*g.ldc)
		if g.r != nil {
			g.r = unsafe.Add(whole.r, 4*i*g.ldr)
		}
		t.pack(rowsOfA, scratch[:size], src[i*stride:], stride, g.m, g.k)
		t.product(p, g)
	}
}

// needByRows is the scratch of byRows, in floats.
func (t *tileSet) needByRows(rows, out, in int) int {
	run := min(rows, layerRows)
	return tileFloats(out, run) + tileFloats(in, run) + t.scratch(run)
}

// byRows computes g for a weight's gradient, DYᵀ·X over g.k rows.
func (t *tileSet) byRows(p *primitives, g *tileArgs, dy, x []float32, dyStride, xStride int, scratch []float32) {
	rows, run := g.k, min(g.k, layerRows)
	a, rest := scratch[:tileFloats(g.m, run)], scratch[tileFloats(g.m, run):]
	b, rest := rest[:tileFloats(g.n, run)], rest[tileFloats(g.n, run):]
	g.a, g.b, g.scratch = ptr(a), ptr(b), ptr(rest)
	for l := 0; l < rows; l += layerRows {
		g.k = min(layerRows, rows-l)
		t.pack(columnsOfA, a, dy[l*dyStride:], dyStride, g.m, g.k)
		t.pack(rowsOfB, b, x[l*xStride:], xStride, g.n, g.k)
		t.product(p, g)
		g.r, g.ldr = g.c, g.ldc
	}
}
