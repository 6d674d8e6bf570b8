package fuse

import (
	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
)

// decoderHead is what stands between a policy's last layer and its decoder: a norm, the projections
// of every node, the pointer's from one of them, and the graph's from the mean over nodes.
// dense/src/head.cu does it in one kernel, dense/src/head_grad.cu the way back.
type decoderHead struct {
	norm                 *kernel.Norm
	proj, graph, pointer *kernel.Linear
	mean                 *kernel.MeanNodes
}

// headTiles is TILES of dense/src/head.cu: instances of a block.
const headTiles = 2

// joinHeads finds the heads that the kernel serves, in one round of the card. All is launched where
// the norm stands: what the others read beside its input are weights and what that input was made
// from.
func joinHeads(f *finder) {
	b, ops := f.b, f.ops
	if b.Precision != bind.TF32 {
		return
	}
	for c := (&cursor{ops: ops}); c.at < len(ops); {
		from := c.at
		c.ok = true
		if h := c.head(); !c.ok || !servesHead(b, h) {
			c.at = from + 1
		} else {
			f.fuse(func() []bind.Launch { return []bind.Launch{launchHead(b, h)} }, h.norm, h.proj, h.mean, h.graph, h.pointer)
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

func servesHead(b *bind.Binder, h decoderHead) bool {
	n := h.norm.X.Shape[1]
	return n <= bind.NearNodes && h.norm.X.Rows()/n <= b.SMs && b.Vectors(h.norm.X, h.norm.Y, h.norm.Gamma, h.norm.Beta, h.proj.Y, h.proj.W,
		h.graph.Y, h.graph.W, h.pointer.Y, h.pointer.W)
}

func launchHead(b *bind.Binder, h decoderHead) bind.Launch {
	n := h.norm.X.Shape[1]
	instances := h.norm.X.Rows() / n
	return bind.Launch{Module: "head", Kernel: "head_forward", Grid: bind.Dim3{bind.Ceil(instances, headTiles), 1, 1}, Block: bind.Dim3{32 * sixteenWarps, 1, 1},
		Args: []any{b.Addr(h.proj.Y), b.Addr(h.pointer.Y), b.Addr(h.graph.Y), b.Addr(h.norm.Y), b.Addr(h.norm.Mean), b.Addr(h.norm.Rstd),
			b.Addr(h.mean.Y), b.Addr(h.norm.X), b.Addr(h.norm.Gamma), b.Addr(h.norm.Beta), b.Addr(h.proj.W), b.Addr(h.pointer.W),
			b.Addr(h.graph.W), bind.I32(n), bind.I32(instances), float32(kernel.NormEps)}}
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

func (o *headGrad) Bind(b *bind.Binder) ([]bind.Launch, error) {
	n := o.norm
	nodes := n.X.Shape[1]
	instances := n.X.Rows() / nodes
	partial := b.Scratch(4 * 2 * sixteenWidth * instances)
	l := bind.Launch{Module: "head_grad", Kernel: "head_grad", Grid: bind.Dim3{instances, 1, 1}, Block: bind.Dim3{32 * sixteenWarps, 1, 1},
		Args: []any{b.Addr(n.DX), b.Addr(o.projX.DY), partial, b.Addr(o.pointerX.DY), b.Addr(o.graphX.DY), b.Addr(n.X), b.Addr(n.Mean),
			b.Addr(n.Rstd), b.Addr(n.Gamma), b.Addr(o.projX.W), b.Addr(o.pointerX.W), b.Addr(o.graphX.W), bind.I32(nodes)}}
	return []bind.Launch{l, halfLanes(b, n, nil, partial, instances, 2*sixteenWidth)}, nil
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
	return nodes <= bind.NearNodes && o.norm.X.Rows()/nodes <= sms && alignedWeights(o.norm.Gamma, o.projX.W, o.pointerX.W, o.graphX.W)
}
