package dense

import (
	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
)

// anyProduct is a product of src/bf16_linear_any.cu: C[m,n] from A and B whose elements lie
// where the strides say.
type anyProduct struct {
	c, a, b, bias, add, pre *kernel.Tensor
	sums                    *kernel.Tensor // row sums of A
	sumsAdded, preWritten   bool
	m, n, terms             int
	aRow, aTerm             int
	bTerm, bColumn          int
	chunk                   int // terms of a lane
	lanes                   int // of a gradient; 0: C is none
	drop                    kernel.Drop
}

func anyProductOf(b *bind.Binder, p anyProduct) []bind.Launch {
	var flags uint32
	for bit, on := range []bool{b.Compact(p.a), b.Compact(p.b), b.Compact(p.c), b.Compact(p.add), b.Compact(p.pre), p.preWritten, p.sumsAdded} {
		flags |= bind.Flag(on) << bit
	}
	laneSize := 0
	if p.lanes > 0 {
		laneSize = b.LaneSize
	}
	const side = 16
	nodes := uint32(max(p.drop.Nodes, 1))
	args := []any{b.Address(p.c), b.Address(p.a), b.Address(p.b), b.Addr(p.bias), b.Addr(p.add), b.Addr(p.pre),
		b.Addr(p.sums), bind.I32(p.m), bind.I32(p.n), bind.I32(p.terms), bind.I32(p.aRow), bind.I32(p.aTerm), bind.I32(p.bTerm), bind.I32(p.bColumn), bind.I32(p.c.Stride),
		bind.I32(bind.Stride(p.add)), bind.I32(bind.Stride(p.pre)), bind.I32(p.chunk), bind.I32(laneSize), flags}
	return []bind.Launch{{Module: "bf16_linear_any", Kernel: "any_product", Grid: bind.Dim3{bind.Ceil(p.m, side), bind.Ceil(p.n, side), max(p.lanes, 1)},
		Block: bind.Dim3{side * side, 1, 1}, Args: append(append(args, b.DropArgs(p.drop)...), nodes)}}
}
