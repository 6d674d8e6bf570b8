// Package fuse replaces several recorded ops by one kernel where the GPU has one that is faster.
package fuse

import (
	"slices"

	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
	"haul/internal/kernel/cuda/sequence"
)

// Joined is an op that stands for several recorded ones, which one pass over the rows does
// together: what passed between them stays on the chip. It is of this device alone; what was
// recorded keeps its meaning elsewhere.
type Joined interface {
	kernel.Op
	Bind(b *bind.Binder) ([]bind.Launch, error)
}

// The shape of a layer that the kernels of sequence/src/layer*.cu take.
const (
	LayerWidth = 128
	LayerFeed  = 512
)

// layer is a transformer layer as model.AD records it, forward and back.
type layer struct {
	norm1, norm2           *kernel.Norm
	qkv, out, up, down     *kernel.Linear
	attention              *kernel.CausalAttention
	grad1, grad2           *kernel.NormGrad
	qkvW, outW, upW, downW *kernel.LinearGradW
	qkvX, outX, upX, downX *kernel.LinearGradX
	attentionGrad          *kernel.CausalAttentionGrad
	dropGrad1, dropGrad2   *kernel.Dropout // nil where nothing is dropped
	kept1, kept2           *kernel.Tensor  // the gradients of the dropped branches
	packed                 *kernel.Tensor  // the weights as the passes read them
	masks1, masks2         *kernel.Tensor  // of the two dropouts, as sequence/src/layer.cuh has them
	stream                 *kernel.Tensor  // the stream's gradient between the passes, in bf16; nil: DX in fp32
	leaves                 *kernel.Tensor  // where the first layer's pass leaves it, stream; nil: in DX
	follows                *layer          // the layer whose result is this one's stream, or nil
	next                   *layer          // the layer that follows this one, or nil
}

// JoinLayers returns the program with every transformer layer that it trains in a few passes over
// the rows, or the program itself where none is of the shape. Memory must be every tensor's own: a
// pass reads at its beginning what the recording may have let go before its end.
func JoinLayers(p *kernel.Program) *kernel.Program {
	layers := findLayers(p.PerShard)
	if len(layers) == 0 {
		return p
	}
	out := *p
	out.Tensors = slices.Clone(p.Tensors)
	tensor := func(name string, compact bool, shape ...int) *kernel.Tensor {
		t := &kernel.Tensor{Name: name, Type: kernel.F32, Space: kernel.Shard, Shape: shape, Stride: shape[len(shape)-1],
			ID: len(out.Tensors), Compact: compact}
		out.Tensors = append(out.Tensors, t)
		return t
	}
	// What stands in the place of a recorded op; nothing where it is part of a pass that stands
	// elsewhere.
	instead := map[kernel.Op][]kernel.Op{}
	ops := []kernel.Op{}
	for i, l := range layers {
		l.packed = tensor(l.qkv.W.Name+".packed", false, layerPacked/4)
		l.masks1, l.masks2 = tensor(l.out.Y.Name+".masks", false, l.out.Y.Rows(), 4), tensor(l.down.Y.Name+".masks", false,
			l.down.Y.Rows(), 4)
		if l.dropGrad1 == nil {
			l.kept1 = tensor("d."+l.out.Y.Name+".kept", true, l.out.Y.Shape...)
		}
		if l.dropGrad2 == nil {
			l.kept2 = tensor("d."+l.down.Y.Name+".kept", true, l.down.Y.Shape...)
		}
		for _, f := range layers[:i] {
			if f.down.Y == l.norm1.X && f.grad2.DX == l.grad1.DX {
				l.follows, f.next = f, l
			}
		}
		ops = append(ops, &layerPack{l})
		if l.out.Drop.Threshold() != 0 || l.down.Drop.Threshold() != 0 {
			ops = append(ops, &LayerMasks{l})
		}
	}
	for _, l := range layers {
		for _, op := range l.ops() {
			instead[op] = nil
		}
		if l.follows == nil {
			instead[l.norm1], instead[l.qkv] = []kernel.Op{&layerHat{l}}, []kernel.Op{&layerQKV{l}}
		}
		instead[l.attention] = []kernel.Op{l.attention}
		instead[l.down] = []kernel.Op{&LayerTail{l}}
		instead[l.downX] = []kernel.Op{&LayerTailGrad{l}, &LayerWeights{l, l.next}}
		instead[l.attentionGrad] = []kernel.Op{l.attentionGrad}
		if l.follows == nil {
			instead[l.grad1] = []kernel.Op{&layerQKVGrad{l}, &LayerWeights{nil, l}}
		}
	}
	if e := findEmbed(p.PerShard, layers[0]); e != nil {
		instead[e.Embed], instead[e.norm1] = []kernel.Op{e}, nil
	}
	if h := findHead(p.PerShard, layers[len(layers)-1]); h != nil {
		for _, op := range h.ops() {
			instead[op] = nil
		}
		instead[h.norm] = []kernel.Op{h}
		if dx := h.behind.DX; streamIsOurs(p.PerShard, dx, layers, instead) {
			h.stream = tensor(dx.Name+".stream", true, dx.Shape...)
			for _, l := range layers {
				l.stream = h.stream
			}
			if e := embedOfStream(p.PerShard, layers[0].grad1); e != nil {
				layers[0].leaves = h.stream
				compact := *e
				compact.DY = h.stream
				instead[e] = []kernel.Op{&compact}
			}
		}
	}
	for _, op := range p.PerShard {
		if with, ok := instead[op]; ok {
			ops = append(ops, with...)
		} else {
			ops = append(ops, op)
		}
	}
	out.PerShard = ops
	return &out
}

// streamIsOurs reports whether the passes alone take part in the stream's gradient between the head
// and the first layer: a chain of layers, and no op that stays as recorded until the first layer's
// pass has ended.
func streamIsOurs(ops []kernel.Op, dx *kernel.Tensor, layers []*layer, instead map[kernel.Op][]kernel.Op) bool {
	for i, l := range layers {
		if l.grad1.DX != dx || l.grad2.DX != dx || i > 0 && l.follows != layers[i-1] {
			return false
		}
	}
	for _, op := range ops[:slices.Index(ops, kernel.Op(layers[0].grad1))] {
		touches := false
		op.Args(func(t *kernel.Tensor, _ kernel.Access) { touches = touches || t.Root() == dx.Root() })
		if _, ok := instead[op]; touches && !ok {
			return false
		}
	}
	return true
}

// embedOfStream is the gradient of embeddings that alone reads what the first layer's pass leaves,
// where it is made by products, which round to bf16; nil where others read it, or it is of another
// shape.
func embedOfStream(ops []kernel.Op, first *kernel.NormGrad) (found *kernel.EmbedGrad) {
	for _, op := range ops[slices.Index(ops, kernel.Op(first))+1:] {
		touches := false
		op.Args(func(t *kernel.Tensor, _ kernel.Access) { touches = touches || t.Root() == first.DX.Root() })
		if !touches {
			continue
		}
		e, ok := op.(*kernel.EmbedGrad)
		if !ok || found != nil || e.DY != first.DX {
			return nil
		}
		found = e
	}
	if found == nil || found.DY.Cols() != sequence.EmbedWidth || found.Index.Cols() > sequence.EmbedTables {
		return nil
	}
	all := 0
	for _, t := range found.DTables {
		if t != nil {
			all += t.Shape[0]
		}
	}
	if all == 0 || all > 2*sequence.EmbedRows {
		return nil
	}
	return found
}

// gradient is the stream's between the passes.
func (l *layer) gradient() *kernel.Tensor {
	if l.stream != nil {
		return l.stream
	}
	return l.grad2.DX
}

// ops are the layer's recorded ops.
func (l *layer) ops() []kernel.Op {
	out := []kernel.Op{l.norm1, l.qkv, l.attention, l.out, l.norm2, l.up, l.down, l.downW, l.downX, l.upW, l.upX, l.grad2, l.outW,
		l.outX, l.attentionGrad, l.qkvW, l.qkvX, l.grad1}
	for _, d := range []*kernel.Dropout{l.dropGrad1, l.dropGrad2} {
		if d != nil {
			out = append(out, d)
		}
	}
	return out
}

// hidden are the tensors that the passes do not make, or make something else of: nobody but the
// layers may read them.
func (l *layer) hidden() []*kernel.Tensor {
	return []*kernel.Tensor{l.norm1.Y, l.norm1.Mean, l.norm2.Y, l.norm2.Mean, l.out.Y, l.up.Y, l.upX.DX, l.qkvX.DX}
}

// findLayers finds the layers, first to last: all that the program has in a row of the shape, or
// none.
func findLayers(ops []kernel.Op) []*layer {
	var layers []*layer
	c := cursor{ops: ops}
	for c.at < len(ops) {
		from := c.at
		c.ok = true
		if l := c.forward(); c.ok {
			layers = append(layers, l)
		} else {
			c.at = from + 1
		}
	}
	for i := len(layers) - 1; i >= 0; i-- {
		at := slices.IndexFunc(ops, func(op kernel.Op) bool {
			w, ok := op.(*kernel.LinearGradW)
			return ok && w.X == layers[i].up.Y
		})
		if at < 1 || !(&cursor{ops: ops, at: at - 1}).backward(layers[i]) {
			return nil
		}
	}
	own, mine := map[*kernel.Tensor]bool{}, map[kernel.Op]bool{}
	for _, l := range layers {
		for _, t := range l.hidden() {
			own[t] = true
		}
		for _, op := range l.ops() {
			mine[op] = true
		}
	}
	for _, op := range ops {
		if mine[op] {
			continue
		}
		foreign := false
		op.Args(func(t *kernel.Tensor, _ kernel.Access) { foreign = foreign || own[t.Root()] })
		if foreign {
			return nil
		}
	}
	return layers
}

// cursor goes through recorded ops and stays at one that is not what was expected.
type cursor struct {
	ops []kernel.Op
	at  int
	ok  bool
}

// expect takes the next op if it is of the type and fits.
func expect[O kernel.Op](c *cursor, fits func(o O) bool) (o O) {
	if !c.ok || c.at >= len(c.ops) {
		c.ok = false
		return o
	}
	next, is := c.ops[c.at].(O)
	if !is || !fits(next) {
		c.ok = false
		return o
	}
	c.at++
	return next
}

// bf16Dense reports whether a device that computes in bf16 holds these tensors so, without gaps.
func bf16Dense(ts ...*kernel.Tensor) bool {
	for _, t := range ts {
		if t.Parent != nil || !t.Compact || !t.Dense() {
			return false
		}
	}
	return true
}

// plainDense is the same for tensors in fp32.
func plainDense(ts ...*kernel.Tensor) bool {
	for _, t := range ts {
		if t.Parent != nil || t.Compact || !t.Dense() || t.Space != kernel.Shard {
			return false
		}
	}
	return true
}

// product reports whether a linear layer is of k inputs and n outputs with trained weights.
func product(o *kernel.Linear, k, n int) bool {
	_, hasK, hasN := o.Dims()
	return hasK == k && hasN == n && o.W.Set == 0
}

// forward takes a layer's way forward.
func (c *cursor) forward() *layer {
	l := &layer{}
	const d, f = LayerWidth, LayerFeed
	l.norm1 = expect(c, func(o *kernel.Norm) bool { return o.X.Cols() == d && bf16Dense(o.Y) && plainDense(o.X) })
	l.qkv = expect(c, func(o *kernel.Linear) bool {
		return o.X == l.norm1.Y && product(o, d, 3*d) && o.Bias == nil && o.Residual == nil && o.Pre == nil && o.Drop.Rate == 0 &&
			bf16Dense(o.Y)
	})
	l.attention = expect(c, func(o *kernel.CausalAttention) bool { return o.QKV == l.qkv.Y && bf16Dense(o.Y) })
	l.out = expect(c, func(o *kernel.Linear) bool {
		return o.X == l.attention.Y && product(o, d, d) && o.Bias != nil && o.Residual == l.norm1.X && o.Pre == nil && plainDense(o.Y)
	})
	l.norm2 = expect(c, func(o *kernel.Norm) bool { return o.X == l.out.Y && bf16Dense(o.Y) })
	l.up = expect(c, func(o *kernel.Linear) bool {
		return o.X == l.norm2.Y && product(o, d, f) && o.Bias != nil && o.Residual == nil && o.Pre != nil && o.Drop.Rate == 0 &&
			bf16Dense(o.Pre, o.Y)
	})
	l.down = expect(c, func(o *kernel.Linear) bool {
		return o.X == l.up.Y && product(o, f, d) && o.Bias != nil && o.Residual == l.out.Y && o.Pre == nil && plainDense(o.Y) &&
			o.Drop.Nodes == l.out.Drop.Nodes
	})
	return l
}

// backward takes the layer's way back, whose first op stands at the cursor or, where nothing is
// dropped, one further on.
func (c *cursor) backward(l *layer) bool {
	c.ok = true
	dropped := func(d kernel.Drop, dx *kernel.Tensor) (*kernel.Dropout, *kernel.Tensor) {
		if d.Rate == 0 {
			return nil, dx
		}
		o := expect(c, func(o *kernel.Dropout) bool {
			return o.Drop == d && o.Residual == nil && bf16Dense(o.Y) && plainDense(o.X) && (dx == nil || o.X == dx)
		})
		if o == nil {
			return nil, nil
		}
		return o, o.Y
	}
	if l.down.Drop.Rate == 0 {
		c.at++
	}
	l.dropGrad2, l.kept2 = dropped(l.down.Drop, nil)
	l.downW = expect(c, func(o *kernel.LinearGradW) bool {
		return o.X == l.up.Y && (l.kept2 == nil || o.DY == l.kept2) && o.DBias != nil
	})
	if !c.ok {
		return false
	}
	dx := l.downW.DY
	if l.dropGrad2 != nil {
		dx = l.dropGrad2.X
	}
	l.downX = expect(c, func(o *kernel.LinearGradX) bool {
		return o.W == l.down.W && o.DY == l.downW.DY && o.Pre == l.up.Pre && bf16Dense(o.DX)
	})
	l.upW = expect(c, func(o *kernel.LinearGradW) bool { return o.X == l.norm2.Y && o.DY == l.downX.DX && o.DBias != nil })
	l.upX = expect(c, func(o *kernel.LinearGradX) bool {
		return o.W == l.up.W && o.DY == l.downX.DX && o.Pre == nil && !o.Accumulate && bf16Dense(o.DX)
	})
	l.grad2 = expect(c, func(o *kernel.NormGrad) bool {
		return o.X == l.norm2.X && o.DY == l.upX.DX && o.DX == dx && o.Accumulate && plainDense(o.DX)
	})
	l.dropGrad1, l.kept1 = dropped(l.out.Drop, dx)
	l.outW = expect(c, func(o *kernel.LinearGradW) bool { return o.X == l.attention.Y && o.DY == l.kept1 && o.DBias != nil })
	l.outX = expect(c, func(o *kernel.LinearGradX) bool {
		return o.W == l.out.W && o.DY == l.kept1 && o.Pre == nil && !o.Accumulate && bf16Dense(o.DX)
	})
	l.attentionGrad = expect(c, func(o *kernel.CausalAttentionGrad) bool {
		return o.QKV == l.qkv.Y && o.DY == l.outX.DX && bf16Dense(o.DQKV)
	})
	l.qkvW = expect(c, func(o *kernel.LinearGradW) bool {
		return o.X == l.norm1.Y && o.DY == l.attentionGrad.DQKV && o.DBias == nil
	})
	l.qkvX = expect(c, func(o *kernel.LinearGradX) bool {
		return o.W == l.qkv.W && o.DY == l.attentionGrad.DQKV && o.Pre == nil && !o.Accumulate && bf16Dense(o.DX)
	})
	l.grad1 = expect(c, func(o *kernel.NormGrad) bool {
		return o.X == l.norm1.X && o.DY == l.qkvX.DX && o.DX == dx && o.Accumulate
	})
	return c.ok
}

// unjoined says that the program trains layers whose ops run one after the other because their
// heads share keys, where layers of their sizes are else joined, and which setting would change
// that; "" where there are none.
func unjoined(p *kernel.Program) string {
	grouped, sized := false, false
	for _, op := range p.PerShard {
		switch o := op.(type) {
		case *kernel.SpreadGrad:
			grouped = grouped || o.DY.Cols() == 3*LayerWidth
		case *kernel.Linear:
			sized = sized || o.Pre != nil && product(o, LayerWidth, LayerFeed)
		}
	}
	if !grouped || !sized {
		return ""
	}
	return "heads that share keys and values are trained op by op here, slower than layers of these sizes without, which are joined; tf_n_kv_head=0 would bring those"
}
