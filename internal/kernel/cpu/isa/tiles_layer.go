package isa

import "unsafe"

// A linear layer's products in bf16, with the packing on the way: block by block, so that what was
// packed is multiplied while it is in cache. What a reader could break: a block of rows, or of l,
// ends at a whole tile, which leaves every sum its order.

// layerRows is how many rows are packed and multiplied at once: a shard's are one block.
const layerRows = 192

// NeedByWeight is the scratch of byWeight, in floats.
func (t *TileSet) NeedByWeight(m, k int) int { return TileFloats(min(m, layerRows), k) + t.Scratch(k) }

// ByWeight computes g for an A that is not packed: rows of src, stride floats apart.
func (t *TileSet) ByWeight(p *Primitives, g *TileArgs, src []float32, stride int, scratch []float32) {
	m, c, r, size := g.M, g.C, g.R, TileFloats(min(g.M, layerRows), g.K)
	g.A, g.Scratch = Ptr(scratch), Ptr(scratch[size:])
	for i := 0; i < m; i += layerRows {
		g.M = min(layerRows, m-i)
		g.C = unsafe.Add(c, 4*i*g.LDC)
		if r != nil {
			g.R = unsafe.Add(r, 4*i*g.LDR)
		}
		t.Pack(RowsOfA, scratch[:size], src[i*stride:], stride, g.M, g.K)
		t.Product(p, g)
	}
}

// sumRows is how many rows of a weight's gradient are packed and multiplied at once: more leave no
// room in L1, fewer read and write the sums more often.
const sumRows = 256

// rowSums is a weight's gradient DYᵀ·X over rows of both, in runs of sumRows.
type rowSums struct {
	t                 *TileSet
	rows, out, in     int
	dyStride, xStride int
	whole, rest       []weaveStep // of the runs and of the last one, where the set weaves
}

// NewRowSums plans it; far: dW is not in the second cache.
func NewRowSums(t *TileSet, rows, out, in, dyStride, xStride int, far bool) *rowSums {
	s := &rowSums{t: t, rows: rows, out: out, in: in, dyStride: dyStride, xStride: xStride}
	if t.weaves(min(rows, sumRows), out, in, dyStride, xStride) {
		if rows >= sumRows {
			s.whole = weaveOrder(sumRows, out, in, dyStride, xStride, far)
		}
		if left := rows % sumRows; left > 0 {
			s.rest = weaveOrder(left, out, in, dyStride, xStride, far)
		}
	}
	return s
}

func (s *rowSums) woven() bool { return s.whole != nil || s.rest != nil }

// Need is the scratch of product, in floats.
func (s *rowSums) Need() int {
	run := min(s.rows, sumRows)
	if s.woven() {
		return weaveRing(run) + TileFloats(s.in, run)
	}
	return TileFloats(s.out, run) + TileFloats(s.in, run) + s.t.Scratch(run)
}

// Product computes dw, dense, in the room of g; it adds to what is there where asked to.
func (s *rowSums) Product(p *Primitives, g *TileArgs, dw, dy, x []float32, add bool, scratch []float32) {
	Fits(len(dw) >= s.out*s.in && spans(dy, s.rows, s.out, s.dyStride) && spans(x, s.rows, s.in, s.xStride) && len(scratch) >= s.Need())
	if s.rows == 0 {
		if !add {
			clear(dw[:s.out*s.in])
		}
		return
	}
	*g = TileArgs{C: Ptr(dw), M: s.out, N: s.in, LDC: s.in}
	for l := 0; l < s.rows; l += sumRows {
		run := min(sumRows, s.rows-l)
		if s.woven() {
			s.weave(g, dy[l*s.dyStride:], x[l*s.xStride:], run, add || l > 0, scratch)
			continue
		}
		if add || l > 0 {
			g.R, g.LDR = g.C, g.LDC
		}
		s.packed(p, g, dy[l*s.dyStride:], x[l*s.xStride:], run, scratch)
	}
}

// packed is the product of a run whose operands are packed first.
func (s *rowSums) packed(p *Primitives, g *TileArgs, dy, x []float32, run int, scratch []float32) {
	a, rest := scratch[:TileFloats(s.out, run)], scratch[TileFloats(s.out, run):]
	b, rest := rest[:TileFloats(s.in, run)], rest[TileFloats(s.in, run):]
	g.A, g.B, g.Scratch, g.K = Ptr(a), Ptr(b), Ptr(rest), run
	s.t.Pack(ColumnsOfA, a, dy, s.dyStride, s.out, run)
	s.t.Pack(RowsOfB, b, x, s.xStride, s.in, run)
	s.t.Product(p, g)
}

// weave is the product of a run whose operands are packed on the way.
func (s *rowSums) weave(g *TileArgs, dy, x []float32, run int, add bool, scratch []float32) {
	steps := s.rest
	if run == sumRows {
		steps = s.whole
	}
	depth := Ceil(run, TileDepth)
	g.woven = weaveArgs{steps: &steps[0], n: len(steps), c: g.C, ring: Ptr(scratch), x: Ptr(scratch[weaveRing(run):]),
		fromDY: &dy[0], fromX: &x[0], ldc: 4 * s.in, dyStride: 4 * s.dyStride, xStride: 4 * s.xStride, depth: depth * TileBytes,
		masks: &rowMasks[depth*TileDepth-run]}
	if add {
		g.woven.add = 1
	}
	s.t.Weave(&g.woven)
}
