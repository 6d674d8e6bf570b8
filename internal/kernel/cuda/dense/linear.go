package dense

import (
	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
)

// tile is one shape of block that src/linear.cu is built for; the numbers are those of its
// Shape.
type tile struct {
	Name         string
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

func (t tile) blocks(m, n int) int { return bind.Ceil(m, t.m) * bind.Ceil(n, t.n) }

// bytes is the dynamic shared memory for a sum over `terms` terms: stages, no more than a block
// fills, and room for the piles.
func (t tile) bytes(terms int) int {
	stage := 16 * t.slabs * (t.m + t.n)
	if !t.shared {
		return 4 * t.stages * stage
	}
	piles := t.warps*32*32 + t.m*t.warps/(t.m/32*t.n/32)
	return 4 * max(piles, min(t.stages, bind.Ceil(terms, 16*t.slabs))*stage)
}

// Pick chooses the tile for `copies` products of m×n. vectors says whether all operands consist of
// aligned vectors.
func Pick(b *bind.Binder, m, n, copies int, vectors bool) tile {
	if !vectors {
		return odd
	}
	for _, t := range tiles {
		if 4*t.blocks(m, n)*copies >= t.wavesPer4SMs*b.SMs {
			return t
		}
	}
	panic("cuda: no tile serves")
}

// Product is a launch of one of the kernels of src/linear.cu. A block of the large tile takes
// as many tiles as it must for all blocks to run at once.
func Product(b *bind.Binder, kind string, t tile, m, n, terms, copies int, args ...any) []bind.Launch {
	blocks := t.blocks(m, n)
	if !t.shared {
		blocks = min(blocks, max(1, largeBlocks*b.SMs/copies))
	}
	return []bind.Launch{{Module: "linear_" + string(b.Precision), Kernel: kind + "_" + t.Name, Grid: bind.Dim3{blocks, copies, 1},
		Block: bind.Dim3{32 * t.warps, 1, 1}, Shared: t.bytes(terms), Args: args}}
}

// Linear is one product; a GELU or a dropout of its result is a second pass over it.
func Linear(b *bind.Binder, o *kernel.Linear) ([]bind.Launch, error) {
	y, residual := o.Y, o.Residual
	switch {
	case o.Pre != nil:
		y = o.Pre
	case o.Drop.Rate > 0:
		residual = nil
	}
	m, k, n := o.Dims()
	out := linearRows(b, o, y, residual)
	if out == nil {
		out = thin(b, o, y, residual)
	}
	if out == nil {
		t := Pick(b, m, n, 1, b.Vectors(y, o.X, o.W, o.Bias, residual))
		out = Product(b, "linear", t, m, n, k, 1, b.Addr(y), b.Addr(o.X), b.Addr(o.W), b.Addr(o.Bias), b.Addr(residual),
			bind.I32(m), bind.I32(n), bind.I32(k), bind.I32(y.Stride), bind.I32(o.X.Stride), bind.I32(bind.Stride(residual)))
	}
	switch {
	case o.Pre != nil:
		return append(out, gelu(b, o.Y, o.Pre)), bind.Dense(o, o.Y, o.Pre)
	case o.Drop.Rate > 0:
		return append(out, drop(b, o.Y, o.Y, o.Residual, o.Drop)), bind.Dense(o, o.Y, o.Residual)
	}
	return out, nil
}

func LinearGradX(b *bind.Binder, o *kernel.LinearGradX) ([]bind.Launch, error) {
	m, n, k := o.DY.Rows(), o.DY.Cols(), o.DX.Cols()
	out := linearRowsDX(b, o)
	if out == nil {
		t := Pick(b, m, k, 1, b.Vectors(o.DX, o.DY, o.W))
		var add uint64
		if o.Accumulate {
			add = b.Addr(o.DX)
		}
		out = Product(b, "linear_dx", t, m, k, n, 1, b.Addr(o.DX), b.Addr(o.DY), b.Addr(o.W), add,
			bind.I32(m), bind.I32(n), bind.I32(k), bind.I32(o.DX.Stride), bind.I32(o.DY.Stride), uint64(0))
	}
	if o.Pre != nil {
		return append(out, geluGrad(b, o.DX, o.Pre)), bind.Dense(o, o.DX, o.Pre)
	}
	return out, nil
}

// linearGradW gives each lane of the gradient a contiguous share of the rows. A lane without rows
// is written too.
func linearGradW(b *bind.Binder, o *kernel.LinearGradW) ([]bind.Launch, error) {
	if ls := thinDW(b, o); ls != nil {
		return ls, nil
	}
	rows, n, k := o.DY.Rows(), o.DY.Cols(), o.X.Cols()
	t := Pick(b, n, k, b.Lanes, b.Vectors(o.DW, o.DY, o.X))
	addW, addBias := b.Adds(o.DW), b.Adds(o.DBias)
	return Product(b, "linear_dw", t, n, k, bind.Ceil(rows, b.Lanes), b.Lanes, b.Addr(o.DW), b.Addr(o.DBias), b.Addr(o.DY), b.Addr(o.X),
		bind.I32(rows), bind.I32(n), bind.I32(k), bind.I32(o.DY.Stride), bind.I32(o.X.Stride), bind.I32(bind.Ceil(rows, b.Lanes)), bind.I32(b.LaneSize), addW, addBias), nil
}
