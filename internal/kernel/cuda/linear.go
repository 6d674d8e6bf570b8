package cuda

import "haul/internal/kernel"

// tile is one shape of block that src/dense/linear.cu is built for; the numbers are those of its
// Shape.
type tile struct {
	name         string
	m, n         int // of C
	warps        int
	slabs        int // of 16 terms in a stage
	stages       int
	shared       bool // its warps share the terms, and pile up their parts of C in shared memory
	wavesPer4SMs int  // blocks wanted for each four multiprocessors before a tile this large pays
}

// tiles are tried from the largest down; the last always serves.
var tiles = []tile{
	{"large", 128, 128, 8, 2, 3, false, 6},
	{"medium", 64, 64, 8, 4, 3, true, 3},
	{"small", 32, 32, 4, 8, 3, true, 0},
}

// odd is the small tile for operands that are not made of whole aligned vectors.
var odd = tile{"odd", 32, 32, 4, 8, 3, true, 0}

// largeBlocks is how many blocks of the large tile a multiprocessor runs at once.
const largeBlocks = 2

func (t tile) blocks(m, n int) int { return ceil(m, t.m) * ceil(n, t.n) }

// bytes is the dynamic shared memory for a sum over `terms` terms: stages, no more than a block
// fills, and room for the piles.
func (t tile) bytes(terms int) int {
	stage := 16 * t.slabs * (t.m + t.n)
	if !t.shared {
		return 4 * t.stages * stage
	}
	piles := t.warps*32*32 + t.m*t.warps/(t.m/32*t.n/32)
	return 4 * max(piles, min(t.stages, ceil(terms, 16*t.slabs))*stage)
}

// pick chooses the tile for `copies` products of m×n. vectors says whether all operands consist of
// aligned vectors.
func (b *binder) pick(m, n, copies int, vectors bool) tile {
	if !vectors {
		return odd
	}
	for _, t := range tiles {
		if 4*t.blocks(m, n)*copies >= t.wavesPer4SMs*b.sms {
			return t
		}
	}
	panic("cuda: no tile serves")
}

// product is a launch of one of the kernels of src/dense/linear.cu. A block of the large tile takes
// as many tiles as it must for all blocks to run at once.
func (b *binder) product(kind string, t tile, m, n, terms, copies int, args ...any) []launch {
	blocks := t.blocks(m, n)
	if !t.shared {
		blocks = min(blocks, max(1, largeBlocks*b.sms/copies))
	}
	return []launch{{module: "linear_" + string(b.precision), kernel: kind + "_" + t.name, grid: dim3{blocks, copies, 1},
		block: dim3{32 * t.warps, 1, 1}, shared: t.bytes(terms), args: args}}
}

// linear is one product; a GELU or a dropout of its result is a second pass over it.
func (b *binder) linear(o *kernel.Linear) ([]launch, error) {
	if glu, ok := b.joins.with[o].(*kernel.GLU); ok {
		return b.linearGLU(o, glu), nil
	}
	y, residual := o.Y, o.Residual
	switch {
	case o.Pre != nil:
		y = o.Pre
	case o.Drop.Rate > 0:
		residual = nil
	}
	m, k, n := o.Dims()
	out := b.linearRows(o, y, residual)
	if out == nil {
		out = b.thin(o, y, residual)
	}
	if out == nil {
		t := b.pick(m, n, 1, b.vectors(y, o.X, o.W, o.Bias, residual))
		out = b.product("linear", t, m, n, k, 1, b.addr(y), b.addr(o.X), b.addr(o.W), b.addr(o.Bias), b.addr(residual),
			i32(m), i32(n), i32(k), i32(y.Stride), i32(o.X.Stride), i32(stride(residual)))
	}
	switch {
	case o.Pre != nil:
		return append(out, b.gelu(o.Y, o.Pre)), dense(o, o.Y, o.Pre)
	case o.Drop.Rate > 0:
		return append(out, b.drop(o.Y, o.Y, o.Residual, o.Drop)), dense(o, o.Y, o.Residual)
	}
	return out, nil
}

func (b *binder) linearGradX(o *kernel.LinearGradX) ([]launch, error) {
	m, n, k := o.DY.Rows(), o.DY.Cols(), o.DX.Cols()
	out := b.linearRowsDX(o)
	if out == nil {
		t := b.pick(m, k, 1, b.vectors(o.DX, o.DY, o.W))
		var add uint64
		if o.Accumulate {
			add = b.addr(o.DX)
		}
		out = b.product("linear_dx", t, m, k, n, 1, b.addr(o.DX), b.addr(o.DY), b.addr(o.W), add,
			i32(m), i32(n), i32(k), i32(o.DX.Stride), i32(o.DY.Stride), uint64(0))
	}
	if o.Pre != nil {
		return append(out, b.geluGrad(o.DX, o.Pre)), dense(o, o.DX, o.Pre)
	}
	return out, nil
}

// linearGradW gives each lane of the gradient a contiguous share of the rows. A lane without rows
// is written too.
func (b *binder) linearGradW(o *kernel.LinearGradW) ([]launch, error) {
	if ls := b.thinDW(o); ls != nil {
		return ls, nil
	}
	rows, n, k := o.DY.Rows(), o.DY.Cols(), o.X.Cols()
	t := b.pick(n, k, b.lanes, b.vectors(o.DW, o.DY, o.X))
	addW, addBias := b.adds(o.DW), b.adds(o.DBias)
	return b.product("linear_dw", t, n, k, ceil(rows, b.lanes), b.lanes, b.addr(o.DW), b.addr(o.DBias), b.addr(o.DY), b.addr(o.X),
		i32(rows), i32(n), i32(k), i32(o.DY.Stride), i32(o.X.Stride), i32(ceil(rows, b.lanes)), i32(b.laneSize), addW, addBias), nil
}
