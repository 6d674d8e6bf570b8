package cuda

import "haul/internal/kernel"

// Sizes of src/attention/attention_layer.cu and src/dense/feed.cu, which do one half of a layer in
// one kernel.
const (
	sixteenWidth = 128 // WIDTH of src/common/rows16.cuh
	sixteenRows  = 16
	sixteenHeads = 4
	sixteenFeed  = 256 // FEED
	sixteenWarps = 8
)

// sublayer is the attention or the feed-forward half of a layer: a norm, a product, what comes
// between, and the product that leads back to the residual stream.
type sublayer struct {
	norm    *kernel.Norm
	in      *kernel.Linear
	between kernel.Op // *kernel.Attention or *kernel.GLU
	out     *kernel.Linear
}

// joinSublayers finds the sublayers that a kernel each does, where the batch is too small for
// one op to fill the card. All are launched where the norm stands: what the others read beside its
// input are weights and what that input was made from.
func (b *binder) joinSublayers(ops []kernel.Op, writer map[*kernel.Tensor]kernel.Op) {
	out := map[*kernel.Tensor]*kernel.Linear{}
	for _, op := range ops {
		if l, ok := op.(*kernel.Linear); ok {
			out[l.X] = l
		}
	}
	for _, op := range ops {
		h := sublayer{between: op}
		var x, y *kernel.Tensor
		switch o := op.(type) {
		case *kernel.Attention:
			x, y = o.QKV, o.Y
		case *kernel.GLU:
			x, y = o.G, o.Y
		default:
			continue
		}
		h.in, _ = writer[x].(*kernel.Linear)
		h.out = out[y]
		if h.in == nil || h.out == nil {
			continue
		}
		if h.norm, _ = writer[h.in.X].(*kernel.Norm); h.norm == nil || h.out.Residual != h.norm.X || !b.servesSublayer(h) {
			continue
		}
		b.joins.sublayers[h.norm] = h
		b.joins.done[h.in], b.joins.done[h.between], b.joins.done[h.out] = true, true, true
	}
}

// servesSublayer reports whether a kernel does the half, in one round of the card.
func (b *binder) servesSublayer(h sublayer) bool {
	plain := func(l *kernel.Linear) bool { return l.Pre == nil && l.Drop.Rate == 0 }
	rows, d := h.norm.X.Rows(), h.norm.X.Cols()
	if b.precision != TF32 || d != sixteenWidth || !plain(h.in) || !plain(h.out) || h.in.Residual != nil || h.out.Bias == nil ||
		h.out.Y.Cols() != sixteenWidth ||
		!b.vectors(h.norm.X, h.norm.Y, h.norm.Gamma, h.norm.Beta, h.in.Y, h.in.W, h.in.Bias, h.out.X, h.out.Y, h.out.W, h.out.Bias) ||
		dense(h.norm, h.norm.X, h.norm.Y, h.in.Y, h.out.X, h.out.Y) != nil {
		return false
	}
	if o, ok := h.between.(*kernel.Attention); ok {
		_, n, _ := o.Dims()
		return h.in.Bias == nil && o.Heads == sixteenHeads && n <= nearNodes && o.P.Cols() == nearNodes && rows/n <= b.sms && dense(o, o.P,
			o.PosX, o.PosY) == nil
	}
	return h.in.Bias != nil && h.in.Y.Cols() == 2*sixteenFeed && ceil(rows, sixteenRows) <= b.sms
}

func (b *binder) sublayer(h sublayer) launch {
	eps := float32(kernel.NormEps)
	block := dim3{32 * sixteenWarps, 1, 1}
	const row = sixteenWidth + 16 // floats of a row in shared memory
	if o, ok := h.between.(*kernel.Attention); ok {
		instances, n, d := o.Dims()
		return launch{module: "attention_layer", kernel: "attention_layer_16", grid: dim3{instances, 1, 1}, block: block,
			shared: 4 * sixteenRows * (row + 3*sixteenWidth + 16 + 2),
			args: []any{b.addr(h.out.Y), b.addr(h.norm.Y), b.addr(h.norm.Mean), b.addr(h.norm.Rstd), b.addr(o.QKV), b.addr(o.P),
				b.addr(o.Y), b.addr(h.norm.X), b.addr(h.norm.Gamma), b.addr(h.norm.Beta), b.addr(h.in.W), b.addr(o.PosX), b.addr(o.PosY),
				b.addr(o.Slope), b.addr(h.out.W), b.addr(h.out.Bias), i32(n), i32(instances), eps, newHeadShape(n, d, o.Heads).scale()}}
	}
	rows := h.norm.X.Rows()
	return launch{module: "feed", kernel: "feed_forward_16", grid: dim3{ceil(rows, sixteenRows), 1, 1}, block: block,
		shared: 4 * sixteenRows * (row + sixteenFeed + 16),
		args: []any{b.addr(h.out.Y), b.addr(h.norm.Y), b.addr(h.norm.Mean), b.addr(h.norm.Rstd), b.addr(h.in.Y), b.addr(h.out.X),
			b.addr(h.norm.X), b.addr(h.norm.Gamma), b.addr(h.norm.Beta), b.addr(h.in.W), b.addr(h.in.Bias), b.addr(h.out.W),
			b.addr(h.out.Bias), i32(rows), eps}}
}
