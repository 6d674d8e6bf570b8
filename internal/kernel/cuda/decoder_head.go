package cuda

import "haul/internal/kernel"

// decoderHead is what stands between a policy's last layer and its decoder: a norm, the projections
// of every node, the pointer's from one of them, and the graph's from the mean over nodes.
// src/dense/head.cu does it in one kernel, src/dense/head_grad.cu the way back.
type decoderHead struct {
	norm                 *kernel.Norm
	proj, graph, pointer *kernel.Linear
	mean                 *kernel.MeanNodes
}

// headTiles is TILES of src/dense/head.cu: instances of a block.
const headTiles = 2

// joinHeads finds the heads that the kernel serves, in one round of the card. All is launched where
// the norm stands: what the others read beside its input are weights and what that input was made
// from.
func (b *binder) joinHeads(ops []kernel.Op) {
	if b.precision != TF32 {
		return
	}
	for c := (&cursor{ops: ops}); c.at < len(ops); {
		from := c.at
		c.ok = true
		if h := c.head(); !c.ok || !b.servesHead(h) {
			c.at = from + 1
		} else {
			b.joins.heads[h.norm] = h
			b.joins.done[h.proj], b.joins.done[h.mean], b.joins.done[h.graph], b.joins.done[h.pointer] = true, true, true, true
		}
	}
}

// head takes the recorded ops of a head.
func (c *cursor) head() (h decoderHead) {
	plain := func(o *kernel.Linear) bool {
		return o.Bias == nil && o.Residual == nil && o.Pre == nil && o.Drop.Rate == 0 && o.Y.Cols() == sixteenWidth
	}
	h.norm = expect(c, func(o *kernel.Norm) bool { return o.X.Cols() == sixteenWidth && plainDense(o.X, o.Y) })
	h.proj = expect(c, func(o *kernel.Linear) bool {
		return o.X == h.norm.Y && o.Bias == nil && o.Residual == nil && o.Pre == nil && o.Drop.Rate == 0 && o.Y.Cols() == 4*sixteenWidth &&
			plainDense(o.Y)
	})
	h.mean = expect(c, func(o *kernel.MeanNodes) bool { return o.X == h.norm.Y && plainDense(o.Y) })
	h.graph = expect(c, func(o *kernel.Linear) bool { return plain(o) && o.X == h.mean.Y && plainDense(o.Y) })
	h.pointer = expect(c, func(o *kernel.Linear) bool { return plain(o) && lastOf(o.X, h.proj.Y) && plainDense(o.Y) })
	return h
}

// lastOf reports whether a tensor is the last 128 of another's 512 columns.
func lastOf(t, whole *kernel.Tensor) bool {
	return t.Parent == whole && t.Offset == 3*sixteenWidth && t.Cols() == sixteenWidth
}

func (b *binder) servesHead(h decoderHead) bool {
	n := h.norm.X.Shape[1]
	return n <= nearNodes && h.norm.X.Rows()/n <= b.sms && b.vectors(h.norm.X, h.norm.Y, h.norm.Gamma, h.norm.Beta, h.proj.Y, h.proj.W,
		h.graph.Y, h.graph.W, h.pointer.Y, h.pointer.W)
}

func (b *binder) head(h decoderHead) launch {
	n := h.norm.X.Shape[1]
	instances := h.norm.X.Rows() / n
	return launch{module: "head", kernel: "head_forward", grid: dim3{ceil(instances, headTiles), 1, 1}, block: dim3{32 * sixteenWarps, 1, 1},
		args: []any{b.addr(h.proj.Y), b.addr(h.pointer.Y), b.addr(h.graph.Y), b.addr(h.norm.Y), b.addr(h.norm.Mean), b.addr(h.norm.Rstd),
			b.addr(h.mean.Y), b.addr(h.norm.X), b.addr(h.norm.Gamma), b.addr(h.norm.Beta), b.addr(h.proj.W), b.addr(h.pointer.W),
			b.addr(h.graph.W), i32(n), i32(instances), float32(kernel.NormEps)}}
}

// headGrad is the way back through a head.
type headGrad struct {
	pointerW, graphW, projW *kernel.LinearGradW
	pointerX, graphX, projX *kernel.LinearGradX
	mean                    *kernel.MeanNodesGrad
	norm                    *kernel.NormGrad
}

func (o *headGrad) Kind() string { return "head.grad" }

func (o *headGrad) Args(f func(*kernel.Tensor, kernel.Access)) {
	access(f, kernel.Read, o.pointerX.DY, o.graphX.DY, o.norm.X, o.norm.Mean, o.norm.Rstd, o.norm.Gamma, o.projX.W, o.pointerX.W,
		o.graphX.W)
	access(f, kernel.Write, o.norm.DX)
	access(f, kernel.Update, o.projX.DY, o.norm.DGamma, o.norm.DBeta)
}

func (o *headGrad) Cost() kernel.Cost {
	return costOf(o, o.pointerX, o.graphX, o.mean, o.projX, o.norm)
}

func (o *headGrad) bind(b *binder) ([]launch, error) {
	n := o.norm
	nodes := n.X.Shape[1]
	instances := n.X.Rows() / nodes
	partial := b.scratch(4 * 2 * sixteenWidth * instances)
	l := launch{module: "head_grad", kernel: "head_grad", grid: dim3{instances, 1, 1}, block: dim3{32 * sixteenWarps, 1, 1},
		args: []any{b.addr(n.DX), b.addr(o.projX.DY), partial, b.addr(o.pointerX.DY), b.addr(o.graphX.DY), b.addr(n.X), b.addr(n.Mean),
			b.addr(n.Rstd), b.addr(n.Gamma), b.addr(o.projX.W), b.addr(o.pointerX.W), b.addr(o.graphX.W), i32(nodes)}}
	return []launch{l, b.halfLanes(n, nil, partial, instances, 2*sixteenWidth)}, nil
}

// headBack takes the recorded ops of the way back through a head.
func (c *cursor) headBack() *headGrad {
	h := &headGrad{}
	plain := func(o *kernel.LinearGradX) bool {
		return o.Pre == nil && o.W.Shape[0] == sixteenWidth && o.W.Shape[1] == sixteenWidth
	}
	h.pointerW = expect(c, func(o *kernel.LinearGradW) bool { return plainDense(o.DY) })
	h.pointerX = expect(c, func(o *kernel.LinearGradX) bool {
		return o.DY == h.pointerW.DY && plain(o) && !o.Accumulate && o.DX.Parent != nil
	})
	h.graphW = expect(c, func(o *kernel.LinearGradW) bool { return plainDense(o.DY) })
	h.graphX = expect(c, func(o *kernel.LinearGradX) bool {
		return o.DY == h.graphW.DY && plain(o) && !o.Accumulate && plainDense(o.DX)
	})
	h.mean = expect(c, func(o *kernel.MeanNodesGrad) bool { return o.DY == h.graphX.DX && !o.Accumulate && plainDense(o.DX) })
	h.projW = expect(c, func(o *kernel.LinearGradW) bool { return lastOf(h.pointerX.DX, o.DY) && plainDense(o.DY) })
	h.projX = expect(c, func(o *kernel.LinearGradX) bool {
		return o.DY == h.projW.DY && o.DX == h.mean.DX && o.Accumulate && o.Pre == nil && o.W.Shape[1] == sixteenWidth
	})
	h.norm = expect(c, func(o *kernel.NormGrad) bool {
		return o.DY == h.projX.DX && !o.Accumulate && o.DGamma != nil && o.DBeta != nil && plainDense(o.X, o.DX)
	})
	return h
}

// serves reports whether the kernel does it, in one round of the card.
func (o *headGrad) serves(sms int) bool {
	nodes := o.norm.X.Shape[1]
	return nodes <= nearNodes && o.norm.X.Rows()/nodes <= sms && alignedWeights(o.norm.Gamma, o.projX.W, o.pointerX.W, o.graphX.W)
}
