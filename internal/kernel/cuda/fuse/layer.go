package fuse

import (
	"encoding/binary"
	"math"

	"haul/internal/kernel"
	"haul/internal/kernel/cuda/attention"
	"haul/internal/kernel/cuda/bind"
	"haul/internal/kernel/cuda/dense"
)

// Sizes of sequence/src/layer.cuh, layer_pack.cu and the passes.
const (
	layerThreads    = 384
	layerPiece      = 16384
	layerGroup      = 16384 // a group's matrix
	layerAside      = 2 * 32768
	layerPadding    = 2 * bind.LayerGroupRows * 32                                               // between rows that are laid aside
	layerShared     = layerAside + layerPadding + 9*(layerPiece+16) + 4*(LayerFeed+5*LayerWidth) // layer_tail.cu
	layerGradShared = 6*layerGroup + 8*(layerPiece+16) + 4*LayerFeed + 8*12                      // layer_tail_grad.cu
	layerWideShared = 4*layerGroup + layerAside + 6*(layerPiece+16) + 4*LayerFeed + 8*12         // the same with -DWIDE
	layerTailBytes  = 18 * layerPiece
	layerQKVBytes   = 6 * 16384
	layerQKVThreads = 256
	layerQKVShared  = layerQKVBytes + 2*(layerQKVBytes/2+layerGroup) + 8*5 // layer_qkv_grad.cu

	layerAtTail     = 0
	layerAtTailGrad = layerTailBytes
	layerAtQKVGrad  = 2 * layerTailBytes
	layerAtBehind   = layerAtQKVGrad + layerQKVBytes
	layerAtQKV      = layerAtBehind + layerQKVBytes
	layerAtQKVBias  = layerAtQKV + layerQKVBytes
	layerAtUpBias   = layerAtQKVBias + 4*3*LayerWidth
	layerPacked     = layerAtUpBias + 4*LayerFeed // bytes in all
)

// rowsOf are the parts of a layer's rows: all at once where its attention takes long rows, whose
// kernels know no parts.
func rowsOf(b *bind.Binder, l *layer) (out []bind.Portion) {
	batch, tokens, d := l.attention.Dims()
	s, err := attention.NewBF16Head(l.attention, tokens, d, l.attention.Heads)
	if err != nil || !s.Short() {
		return []bind.Portion{{Part: 0, From: 0, Count: batch * tokens}}
	}
	for _, p := range b.Portions(batch, tokens) {
		out = append(out, bind.Portion{Part: p.Part, From: p.From * tokens, Count: p.Count * tokens})
	}
	return out
}

// JoinsLayers reports whether a card has what the passes use: the instructions of compute
// capability 9.0, which no other has, and the memory of a block.
func JoinsLayers(p bind.Precision, major, minor, maxShared int) bool {
	most := max(layerShared, layerGradShared, layerWideShared)
	for _, t := range LayerTiles {
		most = max(most, t.shared())
	}
	return p == bind.BF16 && major == 9 && minor == 0 && maxShared >= most
}

// access visits tensors of one kind of access.
func access(f func(*kernel.Tensor, kernel.Access), a kernel.Access, ts ...*kernel.Tensor) {
	for _, t := range ts {
		if t != nil {
			f(t, a)
		}
	}
}

// costOf is a pass's: what the recorded ops compute, and the bytes of its own tensors.
func costOf(op kernel.Op, of ...kernel.Op) (c kernel.Cost) {
	for _, o := range of {
		c.FLOPs += o.Cost().FLOPs
	}
	op.Args(func(t *kernel.Tensor, a kernel.Access) {
		c.Bytes += 4 * int64(t.Len())
		if a == kernel.Update {
			c.Bytes += 4 * int64(t.Len())
		}
	})
	return c
}

// layerPack lays a layer's weights out for its passes.
type layerPack struct{ *layer }

func (o *layerPack) Kind() string { return "layer.pack" }

func (o *layerPack) Args(f func(*kernel.Tensor, kernel.Access)) {
	access(f, kernel.Read, o.qkv.W, o.out.W, o.up.W, o.down.W, o.up.Bias, o.norm1.Gamma, o.norm1.Beta, o.norm2.Gamma, o.norm2.Beta)
	access(f, kernel.Write, o.packed)
}

func (o *layerPack) Cost() kernel.Cost { return costOf(o) }

func (o *layerPack) Bind(b *bind.Binder) ([]bind.Launch, error) {
	const threads = 256
	work := layerAtQKVBias/16 + 32*(3*LayerWidth+LayerFeed)
	return []bind.Launch{{Module: "layer_pack", Kernel: "layer_pack", Grid: bind.Dim3{bind.Ceil(work, threads), 1, 1}, Block: bind.Dim3{threads, 1, 1},
		Args: []any{b.Address(o.packed), b.Address(o.qkv.W), b.Address(o.out.W), b.Address(o.up.W), b.Address(o.down.W),
			b.Address(o.up.Bias),
			b.Address(o.norm1.Gamma), b.Address(o.norm1.Beta), b.Address(o.norm2.Gamma), b.Address(o.norm2.Beta)}}}, nil
}

// layerHat is the first norm of a layer that follows no other, without its scale and shift, which
// are packed with the weight behind it.
type layerHat struct{ *layer }

func (o *layerHat) Kind() string { return "norm" }

func (o *layerHat) Args(f func(*kernel.Tensor, kernel.Access)) {
	access(f, kernel.Read, o.norm1.X)
	access(f, kernel.Write, o.norm1.Y, o.norm1.Mean, o.norm1.Rstd)
}

func (o *layerHat) Cost() kernel.Cost { return costOf(o, o.norm1) }

func (o *layerHat) Bind(b *bind.Binder) ([]bind.Launch, error) {
	ls, err := dense.Bf16Norm(b, o.norm1)
	if err != nil {
		return nil, err
	}
	plain := make([]byte, 8*LayerWidth) // a scale of ones, a shift of zeros
	for i := range LayerWidth {
		binary.LittleEndian.PutUint32(plain[4*i:], math.Float32bits(1))
	}
	const gamma, beta = 4, 5 // places among the kernel's arguments
	at := b.Table(plain)
	ls[0].Args[gamma], ls[0].Args[beta] = at, at+4*LayerWidth
	return ls, nil
}

// layerQKV is the product behind the first norm of a layer that follows no other.
type layerQKV struct{ *layer }

func (o *layerQKV) Kind() string { return "linear" }

func (o *layerQKV) Args(f func(*kernel.Tensor, kernel.Access)) {
	access(f, kernel.Read, o.norm1.Y, o.packed)
	access(f, kernel.Write, o.qkv.Y)
}

func (o *layerQKV) Cost() kernel.Cost { return o.qkv.Cost() }

func (o *layerQKV) Bind(b *bind.Binder) ([]bind.Launch, error) {
	at := b.Address(o.packed)
	ls, ok := dense.Fast(b, dense.Bf16Product{Op: "linear", Y: o.qkv.Y, X: o.norm1.Y, W: o.qkv.W, N: 3 * LayerWidth, K: LayerWidth, Upward: true,
		Packed: at + layerAtQKV, Shift: at + layerAtQKVBias})
	if !ok {
		panic("cuda: a layer of the shape has no kernel for its first product")
	}
	return ls, nil
}

// LayerMasks makes the masks of a layer's two dropouts of the residual stream's branches.
type LayerMasks struct{ *layer }

func (o *LayerMasks) Kind() string { return "layer.masks" }

func (o *LayerMasks) Args(f func(*kernel.Tensor, kernel.Access)) {
	access(f, kernel.Write, o.masks1, o.masks2)
}

func (o *LayerMasks) Cost() kernel.Cost { return costOf(o) }

func (o *LayerMasks) Bind(b *bind.Binder) ([]bind.Launch, error) {
	rows := o.down.Y.Rows()
	const threads = 256
	args := append([]any{b.Address(o.masks1), b.Address(o.masks2), bind.I32(rows), uint32(max(o.out.Drop.Nodes, 1))}, b.DropArgs(o.out.Drop)...)
	return []bind.Launch{{Module: "layer_masks", Kernel: "layer_masks", Grid: bind.Dim3{bind.Ceil(4*rows, threads), 2, 1}, Block: bind.Dim3{threads, 1, 1},
		Args: append(args, b.DropArgs(o.down.Drop)[1:]...)}}, nil
}

// LayerTail is a layer from attention's result on, and the first norm and product of the layer
// behind it.
type LayerTail struct{ *layer }

func (o *LayerTail) Kind() string { return "layer.tail" }

func (o *LayerTail) Args(f func(*kernel.Tensor, kernel.Access)) {
	access(f, kernel.Read, o.norm1.X, o.attention.Y, o.packed, o.out.Bias, o.down.Bias, o.masks1, o.masks2)
	access(f, kernel.Write, o.down.Y, o.norm2.Y, o.norm2.Rstd)
	if n := o.next; n != nil {
		access(f, kernel.Read, n.packed)
		access(f, kernel.Write, n.norm1.Y, n.norm1.Rstd, n.qkv.Y)
	}
}

func (o *LayerTail) Cost() kernel.Cost {
	if o.next != nil {
		return costOf(o, o.out, o.norm2, o.up, o.down, o.next.norm1, o.next.qkv)
	}
	return costOf(o, o.out, o.norm2, o.up, o.down)
}

func (o *LayerTail) Bind(b *bind.Binder) ([]bind.Launch, error) {
	var out []bind.Launch
	at := b.Address(o.packed)
	for _, p := range rowsOf(b, o.layer) {
		args := []any{p.At(b, o.down.Y), p.At(b, o.norm2.Y), p.Numbers(b, o.norm2.Rstd), p.Masks(b, o.out.Drop, o.masks1),
			p.Masks(b, o.down.Drop, o.masks2), p.At(b, o.norm1.X), p.At(b, o.attention.Y), at + layerAtTail,
			b.Address(o.out.Bias), at + layerAtUpBias, b.Address(o.down.Bias),
			bind.I32(p.Count), float32(kernel.NormEps), o.out.Drop.Scale(), o.down.Drop.Scale()}
		l := bind.Launch{Module: "layer_tail", Kernel: "layer_tail", Grid: p.Grid(b), Part: p.Part,
			Block: bind.Dim3{layerThreads, 1, 1}, Shared: layerShared}
		if n := o.next; n != nil {
			l.Kernel = "layer_tail_qkv"
			args = append(args, p.At(b, n.norm1.Y), p.Numbers(b, n.norm1.Rstd), p.At(b, n.qkv.Y), b.Address(n.packed)+layerAtBehind,
				b.Address(n.packed)+layerAtQKVBias)
		}
		l.Args = args
		out = append(out, l)
	}
	return out, nil
}

// LayerTailGrad is the gradient of layerTail and, before it, of the first product and norm of the
// layer behind, without those of weights. It leaves the GELU in Pre's place, which nothing else
// uses. That and DX lie as blocks of 64 columns there, for layerWeights alone.
type LayerTailGrad struct{ *layer }

func (o *LayerTailGrad) Kind() string { return "layer.tail.grad" }

func (o *LayerTailGrad) Args(f func(*kernel.Tensor, kernel.Access)) {
	access(f, kernel.Read, o.norm2.Y, o.norm2.Rstd, o.masks1, o.masks2, o.packed)
	if n := o.next; n != nil {
		access(f, kernel.Read, n.attentionGrad.DQKV, n.norm1.Y, n.norm1.Rstd, n.packed)
	}
	access(f, kernel.Update, o.gradient())
	access(f, kernel.Write, o.kept2, o.downX.DX, o.kept1, o.outX.DX, o.up.Pre)
}

func (o *LayerTailGrad) Cost() kernel.Cost {
	if o.next != nil {
		return costOf(o, o.downX, o.upX, o.grad2, o.outX, o.next.qkvX, o.next.grad1)
	}
	return costOf(o, o.downX, o.upX, o.grad2, o.outX)
}

func (o *LayerTailGrad) Bind(b *bind.Binder) ([]bind.Launch, error) {
	var out []bind.Launch
	at := b.Address(o.packed)
	for _, p := range rowsOf(b, o.layer) {
		args := []any{p.At(b, o.gradient()), p.At(b, o.kept2), p.Blocks(b, o.downX.DX), p.At(b, o.kept1), p.At(b, o.outX.DX),
			p.Blocks(b, o.up.Pre), p.Stages(b, o.norm2.Y, bind.LayerGroupRows), p.Numbers(b, o.norm2.Rstd), p.Masks(b, o.out.Drop, o.masks1),
			p.Masks(b, o.down.Drop, o.masks2), at + layerAtTailGrad, at + layerAtUpBias, bind.I32(p.Count), bind.I32(o.down.Y.Rows()), o.out.Drop.Scale(),
			o.down.Drop.Scale(), p.StreamRows(b, o.gradient())}
		l := bind.Launch{Module: "layer_tail_grad", Kernel: "layer_tail_grad", Grid: p.Grid(b), Part: p.Part,
			Block: bind.Dim3{layerThreads, 1, 1}, Shared: layerGradShared}
		if o.stream == nil {
			l.Module, l.Shared = "layer_tail_grad_wide", layerWideShared
		}
		if n := o.next; n != nil {
			l.Kernel = "layer_tail_qkv_grad"
			args = append(args, p.Stages(b, n.attentionGrad.DQKV, bind.LayerRows), p.Stages(b, n.norm1.Y, bind.LayerGroupRows), p.Numbers(b, n.norm1.Rstd),
				b.Address(n.packed)+layerAtQKVGrad)
		}
		l.Args = args
		out = append(out, l)
	}
	return out, nil
}

// layerQKVGrad is the gradient of layerQKV and the norm before it, without those of weights, of a
// layer that follows no other.
type layerQKVGrad struct{ *layer }

func (o *layerQKVGrad) Kind() string { return "layer.qkv.grad" }

func (o *layerQKVGrad) Args(f func(*kernel.Tensor, kernel.Access)) {
	access(f, kernel.Read, o.attentionGrad.DQKV, o.norm1.Y, o.norm1.Rstd, o.packed)
	if o.stream == nil {
		access(f, kernel.Update, o.grad1.DX)
		return
	}
	if o.leaves != nil {
		access(f, kernel.Update, o.stream)
		return
	}
	access(f, kernel.Read, o.stream)
	access(f, kernel.Write, o.grad1.DX)
}

func (o *layerQKVGrad) Cost() kernel.Cost { return costOf(o, o.qkvX, o.grad1) }

func (o *layerQKVGrad) Bind(b *bind.Binder) ([]bind.Launch, error) {
	rows := o.down.Y.Rows()
	grid := bind.Dim3{min(bind.Ceil(rows, bind.LayerRows), max(1, b.SMs-besideInputs(b.SMs))), 1, 1}
	name, dx := "layer_qkv_grad", o.leaves
	if dx == nil {
		name, dx = "layer_qkv_grad_widens", o.grad1.DX
	}
	if o.stream == nil {
		name = "layer_qkv_grad_wide"
	}
	return []bind.Launch{{Module: "layer_qkv_grad", Kernel: name, Grid: grid,
		Block: bind.Dim3{layerQKVThreads, 1, 1}, Shared: layerQKVShared,
		Args: []any{b.Address(dx), b.Address(o.gradient()), stages(b, o.attentionGrad.DQKV, bind.LayerGroupRows), stages(b, o.norm1.Y, bind.LayerGroupRows), b.Address(o.norm1.Rstd),
			b.Address(o.packed) + layerAtQKVGrad, bind.I32(rows)}}}, nil
}
