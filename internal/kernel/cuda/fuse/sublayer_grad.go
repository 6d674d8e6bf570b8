package fuse

import (
	"slices"

	"haul/internal/kernel"
	"haul/internal/kernel/cuda/attention"
	"haul/internal/kernel/cuda/bind"
)

// SublayerGrad is the way back through one sublayer, as dense/src/feed_grad.cu and
// attention/src/attention_layer_grad.cu do it in one kernel, where a batch is too small for one op
// to fill the card.
//
// What a reader could break: the recording adds each half's share to one gradient of the residual
// stream in place, which the weights' gradients read before. Here each half leaves its sum in a
// tensor of its own, so that nothing on the way back waits for those.
type SublayerGrad struct {
	outW, inW *kernel.LinearGradW
	outX, inX *kernel.LinearGradX
	Between   kernel.Op // *kernel.AttentionGrad or *kernel.GLUGrad
	norm      *kernel.NormGrad
	Dy, Dx    *kernel.Tensor // of the residual stream, behind the half and before it
}

func (o *SublayerGrad) Kind() string {
	if _, ok := o.Between.(*kernel.GLUGrad); ok {
		return "feed.grad"
	}
	return "attention.grad"
}

func (o *SublayerGrad) Args(f func(*kernel.Tensor, kernel.Access)) {
	access(f, kernel.Read, o.Dy, o.norm.X, o.norm.Mean, o.norm.Rstd, o.norm.Gamma, o.inX.W, o.outX.W)
	access(f, kernel.Write, o.Dx)
	access(f, kernel.Update, o.norm.DGamma, o.norm.DBeta)
	switch g := o.Between.(type) {
	case *kernel.GLUGrad:
		access(f, kernel.Read, g.G)
		access(f, kernel.Write, g.DG)
	case *kernel.AttentionGrad:
		access(f, kernel.Read, g.QKV, g.P, g.PosX, g.PosY)
		access(f, kernel.Write, g.DQKV)
		access(f, kernel.Update, g.DSlope)
	}
}

func (o *SublayerGrad) Cost() kernel.Cost { return costOf(o, o.outX, o.Between, o.inX, o.norm) }

func (o *SublayerGrad) Bind(b *bind.Binder) ([]bind.Launch, error) {
	block := bind.Dim3{32 * sixteenWarps, 1, 1}
	n := o.norm
	var l bind.Launch
	var slope *kernel.Tensor
	var partial uint64
	blocks, width := bind.Ceil(n.X.Rows(), sixteenRows), 2*sixteenWidth
	switch g := o.Between.(type) {
	case *kernel.GLUGrad:
		partial = b.Scratch(4 * width * blocks)
		l = bind.Launch{Module: "feed_grad", Kernel: "feed_grad", Grid: bind.Dim3{blocks, 1, 1}, Block: block,
			Args: []any{b.Addr(o.Dx), b.Addr(g.DG), partial, b.Addr(o.Dy), b.Addr(g.G), b.Addr(n.X), b.Addr(n.Mean), b.Addr(n.Rstd),
				b.Addr(n.Gamma), b.Addr(o.inX.W), b.Addr(o.outX.W), bind.I32(n.X.Rows())}}
	case *kernel.AttentionGrad:
		instances, nodes, d := g.Dims()
		blocks, width, slope = instances, 2*sixteenWidth+bind.SixteenHeads, g.DSlope
		partial = b.Scratch(4 * width * blocks)
		l = bind.Launch{Module: "attention_layer_grad", Kernel: "attention_layer_grad", Grid: bind.Dim3{instances, 1, 1}, Block: block,
			Args: []any{b.Addr(o.Dx), b.Addr(g.DQKV), partial, b.Addr(o.Dy), b.Addr(g.QKV), b.Addr(g.P), b.Addr(g.PosX), b.Addr(g.PosY),
				b.Addr(n.X), b.Addr(n.Mean), b.Addr(n.Rstd), b.Addr(n.Gamma), b.Addr(o.inX.W), b.Addr(o.outX.W), bind.I32(nodes),
				attention.NewHeadShape(nodes, d, g.Heads).Scale()}}
	}
	return []bind.Launch{l, halfLanes(b, n, slope, partial, blocks, width)}, nil
}

// halfLanes adds up what the blocks of a way back left of gradients of gamma and beta and, where
// they are learned, of slopes, `width` floats each, by gradient lanes.
func halfLanes(b *bind.Binder, n *kernel.NormGrad, slope *kernel.Tensor, partial uint64, blocks, width int) bind.Launch {
	const threads = 32
	heads := 0
	if slope != nil {
		heads = slope.Len()
	}
	addGamma, addBeta, addSlope := b.Adds(n.DGamma), b.Adds(n.DBeta), b.Adds(slope)
	return bind.Launch{Module: "feed_grad", Kernel: "half_lanes",
		Grid:  bind.Dim3{bind.Ceil(2*sixteenWidth+heads, threads), b.Lanes, 1},
		Block: bind.Dim3{threads, 1, 1}, Aside: addGamma|addBeta|addSlope == 0,
		Args: []any{b.Addr(n.DGamma), b.Addr(n.DBeta), b.Addr(slope), partial, bind.I32(bind.Ceil(blocks, b.Lanes)), bind.I32(blocks), bind.I32(width),
			bind.I32(heads), bind.I32(b.LaneSize), addGamma, addBeta, addSlope}}
}

// JoinWayBack returns the program with the way back through every sublayer that a kernel
// serves as one op, or the program itself where there is none. Memory must be every tensor's own.
func JoinWayBack(p *kernel.Program, precision bind.Precision, sms int) *kernel.Program {
	if precision != bind.TF32 {
		return p
	}
	readers := map[*kernel.Tensor]int{}
	for _, op := range p.PerShard {
		op.Args(func(t *kernel.Tensor, a kernel.Access) {
			if a != kernel.Write {
				readers[t.Root()]++
			}
		})
	}
	out := *p
	out.Tensors = slices.Clone(p.Tensors)
	out.PerShard = nil
	// of each gradient that is added to in place: where its sum is by now
	latest := map[*kernel.Tensor]*kernel.Tensor{}
	found := false
	for c := (&cursor{ops: p.PerShard}); c.at < len(c.ops); {
		from := c.at
		c.ok = true
		h := c.wayBack()
		if c.ok && h.serves(sms) && readers[h.outX.DX] == 1 && readers[h.inX.DX] == 1 {
			stream := h.norm.DX
			h.Dy = stream
			if now := latest[stream]; now != nil {
				h.Dy = now
			}
			h.Dx = &kernel.Tensor{Name: stream.Name + ".before." + h.norm.X.Name, Type: stream.Type, Space: stream.Space, Shape: stream.Shape,
				Stride: stream.Stride, ID: len(out.Tensors)}
			out.Tensors = append(out.Tensors, h.Dx)
			latest[stream] = h.Dx
			outW := *h.outW
			outW.DY = h.Dy
			out.PerShard = append(out.PerShard, h, &outW, h.inW)
			found = true
			continue
		}
		c.at, c.ok = from, true
		if h := c.headBack(); c.ok && h.serves(sms) && readers[h.graphX.DX] == 1 && readers[h.mean.DX] == 2 {
			out.PerShard = append(out.PerShard, h, h.pointerW, h.graphW, h.projW)
			found = true
			continue
		}
		c.at = from + 1
		op := c.ops[from]
		if op = renamed(op, latest); op == nil {
			return p
		}
		out.PerShard = append(out.PerShard, op)
	}
	if !found {
		return p
	}
	return &out
}

// renamed is the op with every tensor replaced by what stands for it now, or nil where it is not
// known how.
func renamed(op kernel.Op, now map[*kernel.Tensor]*kernel.Tensor) kernel.Op {
	replace := func(ts ...**kernel.Tensor) {
		for _, t := range ts {
			if by := now[*t]; by != nil {
				*t = by
			}
		}
	}
	switch o := op.(type) {
	case *kernel.LinearGradW:
		c := *o
		replace(&c.DY)
		op = &c
	case *kernel.LinearGradX:
		c := *o
		replace(&c.DY, &c.DX)
		op = &c
	case *kernel.NormGrad:
		c := *o
		replace(&c.DY, &c.DX)
		op = &c
	}
	stale := false
	op.Args(func(t *kernel.Tensor, _ kernel.Access) { stale = stale || now[t.Root()] != nil })
	if stale {
		return nil
	}
	return op
}

// wayBack takes the recorded ops of a half.
func (c *cursor) wayBack() *SublayerGrad {
	h := &SublayerGrad{}
	h.outW = expect(c, func(o *kernel.LinearGradW) bool { return true })
	h.outX = expect(c, func(o *kernel.LinearGradX) bool { return o.DY == h.outW.DY && o.Pre == nil && !o.Accumulate })
	if !c.ok || c.at >= len(c.ops) {
		c.ok = false
		return h
	}
	var grad *kernel.Tensor
	switch o := c.ops[c.at].(type) {
	case *kernel.GLUGrad:
		c.ok, grad = o.DY == h.outX.DX, o.DG
	case *kernel.AttentionGrad:
		c.ok, grad = o.DY == h.outX.DX, o.DQKV
	default:
		c.ok = false
	}
	h.Between = c.ops[c.at]
	c.at++
	h.inW = expect(c, func(o *kernel.LinearGradW) bool { return o.DY == grad })
	h.inX = expect(c, func(o *kernel.LinearGradX) bool { return o.DY == grad && o.Pre == nil && !o.Accumulate })
	h.norm = expect(c, func(o *kernel.NormGrad) bool { return o.DY == h.inX.DX && o.DX == h.outX.DY && o.Accumulate })
	return h
}

// serves reports whether a kernel does the half, in one round of the card.
func (o *SublayerGrad) serves(sms int) bool {
	n := o.norm
	if n.X.Cols() != sixteenWidth || o.outX.W.Shape[0] != sixteenWidth || n.DGamma == nil || n.DBeta == nil ||
		!plainDense(n.X, n.DX, o.outX.DX, o.inX.DX) || !alignedWeights(n.Gamma, o.inX.W, o.outX.W) {
		return false
	}
	switch g := o.Between.(type) {
	case *kernel.GLUGrad:
		return plainDense(g.G, g.DG) && g.DG.Cols() == 2*sixteenFeed && bind.Ceil(n.X.Rows(), sixteenRows) <= sms
	case *kernel.AttentionGrad:
		instances, nodes, _ := g.Dims()
		return plainDense(g.QKV, g.DQKV, g.P) && g.PosX.Dense() && g.PosY.Dense() && g.Heads == bind.SixteenHeads && nodes <= bind.NearNodes &&
			g.P.Cols() == bind.NearNodes && instances <= sms
	}
	return false
}

// alignedWeights reports whether weights consist of whole vectors.
func alignedWeights(ws ...*kernel.Tensor) bool {
	return !slices.ContainsFunc(ws, func(w *kernel.Tensor) bool { return w == nil || w.Offset%4 != 0 || !w.Dense() })
}
