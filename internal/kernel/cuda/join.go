package cuda

import "haul/internal/kernel"

// What a reader could break: ops that are joined are one kernel, launched where one of them stands,
// and the others have no launch. Whoever waits for one of those waits, through the tensors it
// names, for what it would have waited for: so a launch stands where the first op stands if what
// lies between is written for others to read, and where the last stands if that one reads what the
// first does not name. What is written early nobody may mind: nothing in between reads or writes
// it, and no other tensor has its memory. Where ops share memory along the recording, nothing is
// joined.

// joins are ops that one kernel does together.
type joins struct {
	with map[kernel.Op]kernel.Op // the other one, by the one that has the launch
	done map[kernel.Op]bool      // those that have none
	// what lies between them and nobody else reads: it need not be written
	spare map[*kernel.Tensor]bool

	sublayers map[*kernel.Norm]sublayer    // by the norm, which has the launch
	heads     map[*kernel.Norm]decoderHead // likewise
}

// join finds the pairs of a program.
func (b *binder) join(ops []kernel.Op) {
	b.joins = joins{with: map[kernel.Op]kernel.Op{}, done: map[kernel.Op]bool{}, spare: map[*kernel.Tensor]bool{},
		sublayers: map[*kernel.Norm]sublayer{}, heads: map[*kernel.Norm]decoderHead{}}
	writer, readers := map[*kernel.Tensor]kernel.Op{}, map[*kernel.Tensor]int{}
	for _, op := range ops {
		op.Args(func(t *kernel.Tensor, a kernel.Access) {
			if a != kernel.Read {
				writer[t] = op
			}
			if a != kernel.Write {
				readers[t.Root()]++
			}
		})
	}
	pair := func(launched, other kernel.Op, between *kernel.Tensor) {
		b.joins.with[launched], b.joins.done[other] = other, true
		// the host reads others
		b.joins.spare[between] = readers[between] == 1 && between.Space == kernel.Shard
	}
	b.joinSublayers(ops, writer)
	b.joinHeads(ops)
	for _, op := range ops {
		if b.joins.done[op] {
			continue
		}
		switch o := op.(type) {
		case *kernel.GLU:
			if l, ok := writer[o.G].(*kernel.Linear); ok && b.joinsGLU(l, o) {
				pair(l, o, o.G)
			}
		case *kernel.GLUGrad:
			if l, ok := writer[o.DY].(*kernel.LinearGradX); ok && readers[o.DY] == 1 && o.DY.Space == kernel.Shard && b.joinsGLUGrad(l, o) {
				pair(o, l, o.DY)
			}
		}
	}
}

func (b *binder) joinsGLU(l *kernel.Linear, o *kernel.GLU) bool {
	m, k, n := l.Dims()
	return l.Pre == nil && l.Residual == nil && l.Drop.Rate == 0 && l.Y.Dense() && o.Y.Dense() && b.rowsWidth(m, n, k, false, l.Y, l.X,
		l.W, l.Bias, o.Y) == rowsWide
}

func (b *binder) joinsGLUGrad(l *kernel.LinearGradX, o *kernel.GLUGrad) bool {
	if l.Accumulate || l.Pre != nil || b.anyCompact(l) || b.anyCompact(o) || !l.DX.Dense() || !o.DG.Dense() || !o.G.Dense() ||
		!b.vectors(l.DX, l.DY, l.W, o.DG, o.G) {
		return false
	}
	m, n := l.DY.Rows(), l.DX.Cols()
	// the one tile with registers for it
	return b.rowsWidth(m, n, l.DY.Cols(), false) == rowsWide || b.pick(m, n, 1, true).name == "small"
}

// linearGLU is G = X·Wᵀ + bias and Y = its gated unit in one; G is left out where only the gated
// unit would read it.
func (b *binder) linearGLU(l *kernel.Linear, o *kernel.GLU) []launch {
	m, k, n := l.Dims()
	g := b.addr(l.Y)
	if b.joins.spare[l.Y] {
		g = 0
	}
	return b.rows("linear_rows_glu", g, b.addr(l.X), b.addr(l.W), b.addr(l.Bias), 0, b.addr(o.Y), rowsWide, m, n, k, l.Y.Stride,
		l.X.Stride, 0, n/2)
}

// linearDXGLU is the gradient of a gated unit's input from that of the layer behind it.
func (b *binder) linearDXGLU(l *kernel.LinearGradX, o *kernel.GLUGrad) []launch {
	m, terms, n := l.DY.Rows(), l.DY.Cols(), l.DX.Cols()
	if b.rowsWidth(m, n, terms, false) != rowsWide {
		return b.product("linear_dx", b.pick(m, n, 1, true), m, n, terms, 1, b.addr(o.DG), b.addr(l.DY), b.addr(l.W), uint64(0),
			i32(m), i32(terms), i32(n), i32(o.DG.Stride), i32(l.DY.Stride), b.addr(o.G))
	}
	return b.rows("linear_rows_dx_glu", b.addr(o.DG), b.addr(l.DY), b.addr(l.W), 0, 0, b.addr(o.G), rowsWide, m, n, terms, o.DG.Stride,
		l.DY.Stride, 0, n)
}
