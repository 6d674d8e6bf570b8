package fuse

import (
	"haul/internal/kernel"
	"haul/internal/kernel/cuda/attention"
	"haul/internal/kernel/cuda/bind"
)

// Sizes of attention/src/attention_layer.cu and dense/src/feed.cu, which do one half of a layer in
// one kernel.
const (
	sixteenWidth = 128 // WIDTH of src/common/rows16.cuh
	sixteenRows  = 16
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
func joinSublayers(f *finder) {
	b, ops, writer := f.b, f.ops, f.writer
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
		if h.norm, _ = writer[h.in.X].(*kernel.Norm); h.norm == nil || h.out.Residual != h.norm.X || !servesSublayer(b, h) {
			continue
		}
		f.fuse(func() []bind.Launch { return []bind.Launch{launchSublayer(b, h)} }, h.norm, h.in, h.between, h.out)
	}
}

// servesSublayer reports whether a kernel does the half, in one round of the card.
func servesSublayer(b *bind.Binder, h sublayer) bool {
	plain := func(l *kernel.Linear) bool { return l.Pre == nil && l.Drop.Rate == 0 }
	rows, d := h.norm.X.Rows(), h.norm.X.Cols()
	if b.Precision != bind.TF32 || d != sixteenWidth || !plain(h.in) || !plain(h.out) || h.in.Residual != nil || h.out.Bias == nil ||
		h.out.Y.Cols() != sixteenWidth ||
		!b.Vectors(h.norm.X, h.norm.Y, h.norm.Gamma, h.norm.Beta, h.in.Y, h.in.W, h.in.Bias, h.out.X, h.out.Y, h.out.W, h.out.Bias) ||
		bind.Dense(h.norm, h.norm.X, h.norm.Y, h.in.Y, h.out.X, h.out.Y) != nil {
		return false
	}
	if o, ok := h.between.(*kernel.Attention); ok {
		_, n, _ := o.Dims()
		return h.in.Bias == nil && o.Heads == bind.SixteenHeads && n <= bind.NearNodes && o.P.Cols() == bind.NearNodes && rows/n <= b.SMs && bind.Dense(o, o.P,
			o.PosX, o.PosY) == nil
	}
	return h.in.Bias != nil && h.in.Y.Cols() == 2*sixteenFeed && bind.Ceil(rows, sixteenRows) <= b.SMs
}

func launchSublayer(b *bind.Binder, h sublayer) bind.Launch {
	eps := float32(kernel.NormEps)
	block := bind.Dim3{32 * sixteenWarps, 1, 1}
	const row = sixteenWidth + 16 // floats of a row in shared memory
	if o, ok := h.between.(*kernel.Attention); ok {
		instances, n, d := o.Dims()
		return bind.Launch{Module: "attention_layer", Kernel: "attention_layer_16", Grid: bind.Dim3{instances, 1, 1}, Block: block,
			Shared: 4 * sixteenRows * (row + 3*sixteenWidth + 16 + 2),
			Args: []any{b.Addr(h.out.Y), b.Addr(h.norm.Y), b.Addr(h.norm.Mean), b.Addr(h.norm.Rstd), b.Addr(o.QKV), b.Addr(o.P),
				b.Addr(o.Y), b.Addr(h.norm.X), b.Addr(h.norm.Gamma), b.Addr(h.norm.Beta), b.Addr(h.in.W), b.Addr(o.PosX), b.Addr(o.PosY),
				b.Addr(o.Slope), b.Addr(h.out.W), b.Addr(h.out.Bias), bind.I32(n), bind.I32(instances), eps, attention.NewHeadShape(n, d, o.Heads).Scale()}}
	}
	rows := h.norm.X.Rows()
	return bind.Launch{Module: "feed", Kernel: "feed_forward_16", Grid: bind.Dim3{bind.Ceil(rows, sixteenRows), 1, 1}, Block: block,
		Shared: 4 * sixteenRows * (row + sixteenFeed + 16),
		Args: []any{b.Addr(h.out.Y), b.Addr(h.norm.Y), b.Addr(h.norm.Mean), b.Addr(h.norm.Rstd), b.Addr(h.in.Y), b.Addr(h.out.X),
			b.Addr(h.norm.X), b.Addr(h.norm.Gamma), b.Addr(h.norm.Beta), b.Addr(h.in.W), b.Addr(h.in.Bias), b.Addr(h.out.W),
			b.Addr(h.out.Bias), bind.I32(rows), eps}}
}
