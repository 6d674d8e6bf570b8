package cuda

import (
	"encoding/binary"
	"math"

	"haul/internal/kernel"
)

// Sizes of src/sequence/layer.cuh, layer_pack.cu and the passes.
const (
	layerPiece      = 16384
	layerMatrix     = 16384 // a group's
	layerAside      = 32768 // of a group
	layerTailBytes  = 18 * layerPiece
	layerQKVBytes   = 6 * 16384
	layerQKVThreads = 256
	layerQKVShared  = 2*layerMatrix + layerQKVBytes

	layerAtTail     = 0
	layerAtTailGrad = layerTailBytes
	layerAtQKVGrad  = 2 * layerTailBytes
	layerAtQKV      = layerAtQKVGrad + layerQKVBytes
	layerAtQKVBias  = layerAtQKV + layerQKVBytes
	layerAtUpBias   = layerAtQKVBias + 4*3*layerWidth
	layerPacked     = layerAtUpBias + 4*layerFeed // bytes in all
)

// layerPass is what a block of a pass has: groups of 64 rows, each one's matrices in shared memory, biases, slots for weights.
type layerPass struct{ groups, matrices, biases, slots int }

var (
	layerForward  = layerPass{3, 1, layerFeed + 2*layerWidth, 4} // layer_tail.cu
	layerBackward = layerPass{2, 2, layerFeed, 6}                // layer_tail_grad.cu
)

func (p layerPass) rows() int    { return 64 * p.groups }
func (p layerPass) threads() int { return 128 * (p.groups + 1) } // one more group brings the weights
func (p layerPass) shared() int {
	return p.groups*(p.matrices*layerMatrix+layerAside) + p.slots*(layerPiece+16) + 4*p.biases
}

// joinsLayers reports whether a card has what the passes use: the instructions of compute capability 9.0, which no other has, and the
// memory of a block.
func joinsLayers(p Precision, major, minor, maxShared int) bool {
	most := max(layerForward.shared(), layerBackward.shared())
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

// layerHat is the first norm of a layer that follows no other, without its scale and shift, which are packed with the weight behind it.
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

// layerQKV is the product behind the first norm.
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

// masksOf is where a dropout's masks are; 0 where it drops nothing.
func (b *binder) masksOf(d kernel.Drop, masks *kernel.Tensor) uint64 {
	if d.Threshold() == 0 {
		return 0
	}
	return b.address(masks)
}

// layerTail is a layer from attention's result on, and the first norm of the layer behind it.
type layerTail struct{ *layer }

func (o *layerTail) Kind() string { return "layer.tail" }

func (o *layerTail) Args(f func(*kernel.Tensor, kernel.Access)) {
	access(f, kernel.Read, o.norm1.X, o.attention.Y, o.packed, o.out.Bias, o.down.Bias, o.masks1, o.masks2)
	access(f, kernel.Write, o.down.Y, o.norm2.Y, o.norm2.Rstd)
	if o.hat1 != nil {
		access(f, kernel.Write, o.hat1.Y, o.hat1.Rstd)
	}
}

func (o *layerTail) Cost() kernel.Cost { return costOf(o, o.out, o.norm2, o.up, o.down) }

func (o *layerTail) bind(b *binder) ([]launch, error) {
	var hat1, rstd1 uint64
	if o.hat1 != nil {
		hat1, rstd1 = b.address(o.hat1.Y), b.address(o.hat1.Rstd)
	}
	at, rows := b.address(o.packed), o.down.Y.Rows()
	args := []any{b.address(o.down.Y), hat1, rstd1, b.address(o.norm2.Y), b.address(o.norm2.Rstd),
		b.masksOf(o.out.Drop, o.masks1), b.masksOf(o.down.Drop, o.masks2),
		b.address(o.norm1.X), b.address(o.attention.Y), at + layerAtTail, b.address(o.out.Bias), at + layerAtUpBias,
		b.address(o.down.Bias), i32(rows), float32(kernel.NormEps), o.out.Drop.Scale(), o.down.Drop.Scale()}
	return []launch{{module: "layer_tail", kernel: "layer_tail", grid: o.grid(b, layerForward.rows()),
		block: dim3{layerForward.threads(), 1, 1}, shared: layerForward.shared(), args: args}}, nil
}

// grid is as many blocks as run at once, each with so many rows at a time.
func (l *layer) grid(b *binder, rows int) dim3 {
	return dim3{min(b.sms, ceil(l.down.Y.Rows(), rows)), 1, 1}
}

// layerTailGrad is the gradient of layerTail, without those of weights. It leaves the GELU in Pre's place, which nothing else uses.
type layerTailGrad struct{ *layer }

func (o *layerTailGrad) Kind() string { return "layer.tail.grad" }

func (o *layerTailGrad) Args(f func(*kernel.Tensor, kernel.Access)) {
	access(f, kernel.Read, o.norm2.Y, o.norm2.Rstd, o.masks1, o.masks2, o.packed)
	access(f, kernel.Update, o.grad2.DX)
	access(f, kernel.Write, o.kept2, o.downX.DX, o.kept1, o.outX.DX, o.up.Pre)
}

func (o *layerTailGrad) Cost() kernel.Cost { return costOf(o, o.downX, o.upX, o.grad2, o.outX) }

func (o *layerTailGrad) bind(b *binder) ([]launch, error) {
	at := b.address(o.packed)
	args := []any{b.address(o.grad2.DX), b.address(o.kept2), b.address(o.downX.DX), b.address(o.kept1), b.address(o.outX.DX),
		b.address(o.up.Pre), b.address(o.norm2.Y),
		b.address(o.norm2.Rstd), b.masksOf(o.out.Drop, o.masks1), b.masksOf(o.down.Drop, o.masks2),
		at + layerAtTailGrad, at + layerAtUpBias, i32(o.down.Y.Rows()),
		o.out.Drop.Scale(), o.down.Drop.Scale()}
	return []launch{{module: "layer_tail_grad", kernel: "layer_tail_grad", grid: o.grid(b, layerBackward.rows()),
		block: dim3{layerBackward.threads(), 1, 1}, shared: layerBackward.shared(), args: args}}, nil
}

// layerQKVGrad is the gradient of layerQKV and the norm before it, without those of weights.
type layerQKVGrad struct{ *layer }

func (o *layerQKVGrad) Kind() string { return "layer.qkv.grad" }

func (o *layerQKVGrad) Args(f func(*kernel.Tensor, kernel.Access)) {
	access(f, kernel.Read, o.attentionGrad.DQKV, o.norm1.Y, o.norm1.Rstd, o.packed)
	access(f, kernel.Update, o.grad1.DX)
}

func (o *layerQKVGrad) Cost() kernel.Cost { return costOf(o, o.qkvX, o.grad1) }

func (o *layerQKVGrad) bind(b *binder) ([]launch, error) {
	rows := o.down.Y.Rows()
	return []launch{{module: "layer_qkv_grad", kernel: "layer_qkv_grad", grid: o.grid(b, layerQKVThreads/2),
		block: dim3{layerQKVThreads, 1, 1}, shared: layerQKVShared,
		args: []any{b.address(o.grad1.DX), b.address(o.attentionGrad.DQKV), b.address(o.norm1.Y), b.address(o.norm1.Rstd),
			b.address(o.packed) + layerAtQKVGrad, i32(rows)}}}, nil
}

// layerHatGradW is the gradient of a weight behind a norm, and of the norm's own.
type layerHatGradW struct {
	*layer
	w    *kernel.LinearGradW
	of   *kernel.Linear
	norm *kernel.Norm
	grad *kernel.NormGrad
}

func (o *layerHatGradW) Kind() string { return "linear.dw" }

func (o *layerHatGradW) Args(f func(*kernel.Tensor, kernel.Access)) {
	access(f, kernel.Read, o.w.DY, o.norm.Y, o.of.W, o.norm.Gamma, o.norm.Beta)
	access(f, kernel.Update, o.w.DW, o.w.DBias, o.grad.DGamma, o.grad.DBeta)
}

func (o *layerHatGradW) Cost() kernel.Cost { return o.w.Cost() }

func (o *layerHatGradW) bind(b *binder) ([]launch, error) {
	n, k := o.w.DY.Cols(), layerWidth
	adds := []any{b.adds(o.w.DW), b.adds(o.w.DBias), b.adds(o.grad.DGamma), b.adds(o.grad.DBeta)}
	l, parts, shares := b.layerParts(o.w.DY, o.norm.Y)
	const rows, threads = 16, 256
	blocks := ceil(n, rows)
	scratch, turns := b.scratch(4*2*k*blocks*b.lanes), b.scratch(4*b.lanes)
	return []launch{l, {module: "layer_fold", kernel: "layer_fold", grid: dim3{blocks, b.lanes, 1}, block: dim3{threads, 1, 1},
		args: append([]any{b.address(o.w.DW), b.addr(o.w.DBias), b.address(o.grad.DGamma), b.address(o.grad.DBeta), scratch, turns,
			parts, b.address(o.of.W),
			b.address(o.norm.Gamma), b.address(o.norm.Beta), i32(n), i32(shares), i32(ceil(shares, b.lanes)), i32(b.laneSize)},
			adds...)}}, nil
}
