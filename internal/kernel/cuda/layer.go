package cuda

import (
	"encoding/binary"
	"math"

	"haul/internal/kernel"
)

// Sizes of src/sequence/layer.cuh, layer_pack.cu and the passes.
const (
	layerRows       = 128 // of a block
	layerGroupRows  = 64  // of a warpgroup
	layerThreads    = 384
	layerPiece      = 16384
	layerGroup      = 16384 // a group's matrix
	layerAside      = 2 * 32768
	layerPadding    = 2 * layerGroupRows * 32                                                    // between rows that are laid aside
	layerShared     = layerAside + layerPadding + 9*(layerPiece+16) + 4*(layerFeed+5*layerWidth) // layer_tail.cu
	layerGradShared = 6*layerGroup + 8*(layerPiece+16) + 4*layerFeed + 8*12                      // layer_tail_grad.cu
	layerWideShared = 4*layerGroup + layerAside + 6*(layerPiece+16) + 4*layerFeed + 8*12         // the same with -DWIDE
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
	layerAtUpBias   = layerAtQKVBias + 4*3*layerWidth
	layerPacked     = layerAtUpBias + 4*layerFeed // bytes in all
)

// joinsLayers reports whether a card has what the passes use: the instructions of compute
// capability 9.0, which no other has, and the memory of a block.
func joinsLayers(p Precision, major, minor, maxShared int) bool {
	most := max(layerShared, layerGradShared, layerWideShared)
	for _, t := range layerTiles {
		most = max(most, t.shared())
	}
	return p == BF16 && major == 9 && minor == 0 && maxShared >= most
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

func (o *layerPack) bind(b *binder) ([]launch, error) {
	const threads = 256
	work := layerAtQKVBias/16 + 32*(3*layerWidth+layerFeed)
	return []launch{{module: "layer_pack", kernel: "layer_pack", grid: dim3{ceil(work, threads), 1, 1}, block: dim3{threads, 1, 1},
		args: []any{b.address(o.packed), b.address(o.qkv.W), b.address(o.out.W), b.address(o.up.W), b.address(o.down.W),
			b.address(o.up.Bias),
			b.address(o.norm1.Gamma), b.address(o.norm1.Beta), b.address(o.norm2.Gamma), b.address(o.norm2.Beta)}}}, nil
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

func (o *layerHat) bind(b *binder) ([]launch, error) {
	ls, err := b.bf16Norm(o.norm1)
	if err != nil {
		return nil, err
	}
	plain := make([]byte, 8*layerWidth) // a scale of ones, a shift of zeros
	for i := range layerWidth {
		binary.LittleEndian.PutUint32(plain[4*i:], math.Float32bits(1))
	}
	const gamma, beta = 4, 5 // places among the kernel's arguments
	at := b.table(plain)
	ls[0].args[gamma], ls[0].args[beta] = at, at+4*layerWidth
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

func (o *layerQKV) bind(b *binder) ([]launch, error) {
	at := b.address(o.packed)
	ls, ok := b.fast(bf16Product{op: "linear", y: o.qkv.Y, x: o.norm1.Y, w: o.qkv.W, n: 3 * layerWidth, k: layerWidth, upward: true,
		packed: at + layerAtQKV, shift: at + layerAtQKVBias})
	if !ok {
		panic("cuda: a layer of the shape has no kernel for its first product")
	}
	return ls, nil
}

// layerMasks makes the masks of a layer's two dropouts of the residual stream's branches.
type layerMasks struct{ *layer }

func (o *layerMasks) Kind() string { return "layer.masks" }

func (o *layerMasks) Args(f func(*kernel.Tensor, kernel.Access)) {
	access(f, kernel.Write, o.masks1, o.masks2)
}

func (o *layerMasks) Cost() kernel.Cost { return costOf(o) }

func (o *layerMasks) bind(b *binder) ([]launch, error) {
	rows := o.down.Y.Rows()
	const threads = 256
	args := append([]any{b.address(o.masks1), b.address(o.masks2), i32(rows), uint32(max(o.out.Drop.Nodes, 1))}, b.dropArgs(o.out.Drop)...)
	return []launch{{module: "layer_masks", kernel: "layer_masks", grid: dim3{ceil(4*rows, threads), 2, 1}, block: dim3{threads, 1, 1},
		args: append(args, b.dropArgs(o.down.Drop)[1:]...)}}, nil
}

// layerTail is a layer from attention's result on, and the first norm and product of the layer
// behind it.
type layerTail struct{ *layer }

func (o *layerTail) Kind() string { return "layer.tail" }

func (o *layerTail) Args(f func(*kernel.Tensor, kernel.Access)) {
	access(f, kernel.Read, o.norm1.X, o.attention.Y, o.packed, o.out.Bias, o.down.Bias, o.masks1, o.masks2)
	access(f, kernel.Write, o.down.Y, o.norm2.Y, o.norm2.Rstd)
	if n := o.next; n != nil {
		access(f, kernel.Read, n.packed)
		access(f, kernel.Write, n.norm1.Y, n.norm1.Rstd, n.qkv.Y)
	}
}

func (o *layerTail) Cost() kernel.Cost {
	if o.next != nil {
		return costOf(o, o.out, o.norm2, o.up, o.down, o.next.norm1, o.next.qkv)
	}
	return costOf(o, o.out, o.norm2, o.up, o.down)
}

func (o *layerTail) bind(b *binder) ([]launch, error) {
	var out []launch
	at := b.address(o.packed)
	for _, p := range b.rowsOf(o.layer) {
		args := []any{p.at(b, o.down.Y), p.at(b, o.norm2.Y), p.numbers(b, o.norm2.Rstd), p.masks(b, o.out.Drop, o.masks1),
			p.masks(b, o.down.Drop, o.masks2), p.at(b, o.norm1.X), p.at(b, o.attention.Y), at + layerAtTail,
			b.address(o.out.Bias), at + layerAtUpBias, b.address(o.down.Bias),
			i32(p.count), float32(kernel.NormEps), o.out.Drop.Scale(), o.down.Drop.Scale()}
		l := launch{module: "layer_tail", kernel: "layer_tail", grid: p.grid(b), part: p.part,
			block: dim3{layerThreads, 1, 1}, shared: layerShared}
		if n := o.next; n != nil {
			l.kernel = "layer_tail_qkv"
			args = append(args, p.at(b, n.norm1.Y), p.numbers(b, n.norm1.Rstd), p.at(b, n.qkv.Y), b.address(n.packed)+layerAtBehind,
				b.address(n.packed)+layerAtQKVBias)
		}
		l.args = args
		out = append(out, l)
	}
	return out, nil
}

// layerTailGrad is the gradient of layerTail and, before it, of the first product and norm of the
// layer behind, without those of weights. It leaves the GELU in Pre's place, which nothing else
// uses. That and DX lie as blocks of 64 columns there, for layerWeights alone.
type layerTailGrad struct{ *layer }

func (o *layerTailGrad) Kind() string { return "layer.tail.grad" }

func (o *layerTailGrad) Args(f func(*kernel.Tensor, kernel.Access)) {
	access(f, kernel.Read, o.norm2.Y, o.norm2.Rstd, o.masks1, o.masks2, o.packed)
	if n := o.next; n != nil {
		access(f, kernel.Read, n.attentionGrad.DQKV, n.norm1.Y, n.norm1.Rstd, n.packed)
	}
	access(f, kernel.Update, o.gradient())
	access(f, kernel.Write, o.kept2, o.downX.DX, o.kept1, o.outX.DX, o.up.Pre)
}

func (o *layerTailGrad) Cost() kernel.Cost {
	if o.next != nil {
		return costOf(o, o.downX, o.upX, o.grad2, o.outX, o.next.qkvX, o.next.grad1)
	}
	return costOf(o, o.downX, o.upX, o.grad2, o.outX)
}

func (o *layerTailGrad) bind(b *binder) ([]launch, error) {
	var out []launch
	at := b.address(o.packed)
	for _, p := range b.rowsOf(o.layer) {
		args := []any{p.at(b, o.gradient()), p.at(b, o.kept2), p.blocks(b, o.downX.DX), p.at(b, o.kept1), p.at(b, o.outX.DX),
			p.blocks(b, o.up.Pre), p.stages(b, o.norm2.Y, layerGroupRows), p.numbers(b, o.norm2.Rstd), p.masks(b, o.out.Drop, o.masks1),
			p.masks(b, o.down.Drop, o.masks2), at + layerAtTailGrad, at + layerAtUpBias, i32(p.count), i32(o.down.Y.Rows()), o.out.Drop.Scale(),
			o.down.Drop.Scale(), p.streamRows(b, o.gradient())}
		l := launch{module: "layer_tail_grad", kernel: "layer_tail_grad", grid: p.grid(b), part: p.part,
			block: dim3{layerThreads, 1, 1}, shared: layerGradShared}
		if o.stream == nil {
			l.module, l.shared = "layer_tail_grad_wide", layerWideShared
		}
		if n := o.next; n != nil {
			l.kernel = "layer_tail_qkv_grad"
			args = append(args, p.stages(b, n.attentionGrad.DQKV, layerRows), p.stages(b, n.norm1.Y, layerGroupRows), p.numbers(b, n.norm1.Rstd),
				b.address(n.packed)+layerAtQKVGrad)
		}
		l.args = args
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

func (o *layerQKVGrad) bind(b *binder) ([]launch, error) {
	rows := o.down.Y.Rows()
	grid := dim3{min(ceil(rows, layerRows), max(1, b.sms-besideInputs(b.sms))), 1, 1}
	name, dx := "layer_qkv_grad", o.leaves
	if dx == nil {
		name, dx = "layer_qkv_grad_widens", o.grad1.DX
	}
	if o.stream == nil {
		name = "layer_qkv_grad_wide"
	}
	return []launch{{module: "layer_qkv_grad", kernel: name, grid: grid,
		block: dim3{layerQKVThreads, 1, 1}, shared: layerQKVShared,
		args: []any{b.address(dx), b.address(o.gradient()), b.stages(o.attentionGrad.DQKV, layerGroupRows), b.stages(o.norm1.Y, layerGroupRows), b.address(o.norm1.Rstd),
			b.address(o.packed) + layerAtQKVGrad, i32(rows)}}}, nil
}
