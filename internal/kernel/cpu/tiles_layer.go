package cpu

import "unsafe"

// A linear layer's products in bf16, with the packing on the way: block by block, so that what was
// packed is multiplied while it is in cache. What a reader could break: a block of rows, or of l,
// ends at a whole tile, which leaves every sum its order.

// layerRows is how many rows are packed and multiplied at once: a shard's are one block.
const layerRows = 192

// needByWeight is the scratch of byWeight, in floats.
func (t *tileSet) needByWeight(m, k int) int { return tileFloats(min(m, layerRows), k) + t.scratch(k) }

// byWeight computes g for an A that is not packed: rows of src, stride floats apart.
func (t *tileSet) byWeight(p *primitives, g *tileArgs, src []float32, stride int, scratch []float32) {
	m, c, r, size := g.m, g.c, g.r, tileFloats(min(g.m, layerRows), g.k)
	g.a, g.scratch = ptr(scratch), ptr(scratch[size:])
	for i := 0; i < m; i += layerRows {
		g.m = min(layerRows, m-i)
		g.c = unsafe.Add(c, 4*i*g.ldc)
		if r != nil {
			g.r = unsafe.Add(r, 4*i*g.ldr)
		}
		t.pack(rowsOfA, scratch[:size], src[i*stride:], stride, g.m, g.k)
		t.product(p, g)
	}
}

// sumRows is how many rows of a weight's gradient are packed and multiplied at once: more leave no
// room in L1, fewer read and write the sums more often.
const sumRows = 256

// rowSums is a weight's gradient DYᵀ·X over rows of both, in runs of sumRows.
type rowSums struct {
	t                 *tileSet
	rows, out, in     int
	dyStride, xStride int
	whole, rest       []weaveStep // of the runs and of the last one, where the set weaves
}

// newRowSums plans it; far: dW is not in the second cache.
func newRowSums(t *tileSet, rows, out, in, dyStride, xStride int, far bool) *rowSums {
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

// need is the scratch of product, in floats.
func (s *rowSums) need() int {
	run := min(s.rows, sumRows)
	if s.woven() {
		return weaveRing(run) + tileFloats(s.in, run)
	}
	return tileFloats(s.out, run) + tileFloats(s.in, run) + s.t.scratch(run)
}

// product computes dw, dense, in the room of g; it adds to what is there where asked to.
func (s *rowSums) product(p *primitives, g *tileArgs, dw, dy, x []float32, add bool, scratch []float32) {
	fits(len(dw) >= s.out*s.in && spans(dy, s.rows, s.out, s.dyStride) && spans(x, s.rows, s.in, s.xStride) && len(scratch) >= s.need())
	if s.rows == 0 {
		if !add {
			clear(dw[:s.out*s.in])
		}
		return
	}
	*g = tileArgs{c: ptr(dw), m: s.out, n: s.in, ldc: s.in}
	for l := 0; l < s.rows; l += sumRows {
		run := min(sumRows, s.rows-l)
		if s.woven() {
			s.weave(g, dy[l*s.dyStride:], x[l*s.xStride:], run, add || l > 0, scratch)
			continue
		}
		if add || l > 0 {
			g.r, g.ldr = g.c, g.ldc
		}
		s.packed(p, g, dy[l*s.dyStride:], x[l*s.xStride:], run, scratch)
	}
}

// packed is the product of a run whose operands are packed first.
func (s *rowSums) packed(p *primitives, g *tileArgs, dy, x []float32, run int, scratch []float32) {
	a, rest := scratch[:tileFloats(s.out, run)], scratch[tileFloats(s.out, run):]
	b, rest := rest[:tileFloats(s.in, run)], rest[tileFloats(s.in, run):]
	g.a, g.b, g.scratch, g.k = ptr(a), ptr(b), ptr(rest), run
	s.t.pack(columnsOfA, a, dy, s.dyStride, s.out, run)
	s.t.pack(rowsOfB, b, x, s.xStride, s.in, run)
	s.t.product(p, g)
}

// weave is the product of a run whose operands are packed on the way.
func (s *rowSums) weave(g *tileArgs, dy, x []float32, run int, add bool, scratch []float32) {
	steps := s.rest
	if run == sumRows {
		steps = s.whole
	}
	depth := ceil(run, tileDepth)
	g.woven = weaveArgs{steps: &steps[0], n: len(steps), c: g.c, ring: ptr(scratch), x: ptr(scratch[weaveRing(run):]),
		fromDY: &dy[0], fromX: &x[0], ldc: 4 * s.in, dyStride: 4 * s.dyStride, xStride: 4 * s.xStride, depth: depth * tileBytes,
		masks: &rowMasks[depth*tileDepth-run]}
	if add {
		g.woven.add = 1
	}
	s.t.weave(&g.woven)
}
