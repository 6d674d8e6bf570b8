package fuse

import (
	"slices"

	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
)

// Sizes of sequence/src/layer_head.cu.
const (
	headColumns = 8
	headLosses  = 2 // classifiers
	headThreads = 96
	headBlocks  = 4 // of a multiprocessor
)

// HeadPiece is how many rows a piece of an instance has at least: two tiles for every warp.
var HeadPiece = 96

// layerHead is what follows the last layer: a norm, a product of few columns, its losses, and the
// gradients of all three.
type layerHead struct {
	norm   *kernel.Norm
	head   *kernel.Linear
	loss   *kernel.CrossEntropy
	headW  *kernel.LinearGradW
	headX  *kernel.LinearGradX
	behind *kernel.NormGrad
	stream *kernel.Tensor // where the stream's gradient goes, in bf16; nil: to behind's DX
}

// gradient is where the stream's gradient goes.
func (o *layerHead) gradient() *kernel.Tensor {
	if o.stream != nil {
		return o.stream
	}
	return o.behind.DX
}

// findHead finds it behind the last of the layers; nil where it is of another shape, or others read
// what stays on the chip.
func findHead(ops []kernel.Op, last *layer) *layerHead {
	c := cursor{ops: ops, at: slices.Index(ops, kernel.Op(last.down)) + 1, ok: true}
	h := &layerHead{}
	h.norm = expect(&c, func(o *kernel.Norm) bool { return o.X == last.down.Y && bf16Dense(o.Y) })
	h.head = expect(&c, func(o *kernel.Linear) bool {
		_, k, n := o.Dims()
		return o.X == h.norm.Y && o.W.Set == 0 && k == LayerWidth && n <= headColumns && o.Bias != nil && o.Residual == nil &&
			o.Pre == nil && o.Drop.Rate == 0
	})
	h.loss = expect(&c, func(o *kernel.CrossEntropy) bool {
		all := 0
		for _, n := range o.Columns {
			all += n
		}
		return o.Logits == h.head.Y && o.DLogits != nil && o.Weigh == nil && len(o.Columns) <= headLosses && all == h.head.Y.Cols()
	})
	h.headW = expect(&c, func(o *kernel.LinearGradW) bool {
		return o.X == h.norm.Y && o.DY == h.loss.DLogits && o.DBias != nil
	})
	h.headX = expect(&c, func(o *kernel.LinearGradX) bool {
		return o.W == h.head.W && o.DY == h.loss.DLogits && o.Pre == nil && !o.Accumulate
	})
	h.behind = expect(&c, func(o *kernel.NormGrad) bool {
		return o.X == h.norm.X && o.DY == h.headX.DX && o.DX == last.grad2.DX && !o.Accumulate && plainDense(o.DX)
	})
	if !c.ok {
		return nil
	}
	mine, hidden := h.ops(), []*kernel.Tensor{h.norm.Y, h.norm.Mean, h.norm.Rstd, h.head.Y, h.loss.DLogits, h.headX.DX}
	for _, op := range ops {
		foreign := false
		op.Args(func(t *kernel.Tensor, _ kernel.Access) { foreign = foreign || slices.Contains(hidden, t.Root()) })
		if foreign && !slices.Contains(mine, op) {
			return nil
		}
	}
	return h
}

// ops are the recorded ops that it stands for.
func (o *layerHead) ops() []kernel.Op {
	return []kernel.Op{o.norm, o.head, o.loss, o.headW, o.headX, o.behind}
}

func (o *layerHead) Kind() string { return "layer.head" }

func (o *layerHead) Args(f func(*kernel.Tensor, kernel.Access)) {
	access(f, kernel.Read, o.norm.X, o.norm.Gamma, o.norm.Beta, o.head.W, o.head.Bias, o.loss.Labels)
	access(f, kernel.Write, o.gradient(), o.loss.Sums)
	access(f, kernel.Update, o.headW.DW, o.headW.DBias, o.behind.DGamma, o.behind.DBeta)
}

func (o *layerHead) Cost() kernel.Cost { return costOf(o, o.ops()...) }

func (o *layerHead) Bind(b *bind.Binder) ([]bind.Launch, error) {
	batch, tokens, n := o.loss.Logits.Shape[0], o.loss.Logits.Shape[1], o.head.Y.Cols()
	// pieces of an instance where instances are too few for the card; as many of them for every block
	pieces := max(1, min(headBlocks*b.SMs/batch, tokens/HeadPiece))
	shares := bind.Ceil(batch*pieces, bind.Ceil(batch*pieces, headBlocks*b.SMs))
	sums, each := b.Address(o.loss.Sums), 3*len(o.loss.Columns)
	if pieces > 1 {
		sums = b.Scratch(4 * batch * pieces * each)
	}
	var columns [headLosses]int
	copy(columns[:], o.loss.Columns)
	parts := b.Scratch(4 * shares * n * (LayerWidth + 1))
	name := "layer_head"
	if o.stream == nil {
		name += "_wide"
	}
	pass := bind.Launch{Module: "layer_head", Kernel: name, Grid: bind.Dim3{shares, 1, 1}, Block: bind.Dim3{headThreads, 1, 1},
		Args: []any{b.Address(o.gradient()), sums, parts, b.Address(o.norm.X), b.Address(o.loss.Labels),
			b.Address(o.head.W), b.Address(o.head.Bias), b.Address(o.norm.Gamma), b.Address(o.norm.Beta), bind.I32(batch), bind.I32(pieces), bind.I32(tokens), bind.I32(n),
			bind.I32(len(o.loss.Columns)), bind.I32(columns[0]), bind.I32(columns[1]), o.loss.Smoothing, o.loss.Weight, float32(kernel.NormEps)}}
	f := folds{b: b}
	f.folded(parts, shares, o.headW, o.head, o.norm, o.behind)
	f.noFolded()
	f.noPlain()
	f.noPlain()
	out := []bind.Launch{pass, f.launch()}
	if pieces > 1 {
		out = append(out, bind.Launch{Module: "layer_head", Kernel: "layer_head_sums", Grid: bind.Dim3{bind.Ceil(batch*each, headThreads), 1, 1}, Block: bind.Dim3{headThreads, 1, 1},
			Args: []any{b.Address(o.loss.Sums), sums, bind.I32(batch * each), bind.I32(pieces), bind.I32(each)}})
	}
	return out, nil
}
