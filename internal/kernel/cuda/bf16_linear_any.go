package cuda

import "haul/internal/kernel"

// anyProduct is a product of src/dense/bf16_linear_any.cu: C[m,n] from A and B whose elements lie
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

func (b *binder) anyProduct(p anyProduct) []launch {
	var flags uint32
	for bit, on := range []bool{b.compact(p.a), b.compact(p.b), b.compact(p.c), b.compact(p.add), b.compact(p.pre), p.preWritten, p.sumsAdded} {
		flags |= flag(on) << bit
	}
	laneSize := 0
	if p.lanes > 0 {
		laneSize = b.laneSize
	}
	const side = 16
	nodes := uint32(max(p.drop.Nodes, 1))
	args := []any{b.address(p.c), b.address(p.a), b.address(p.b), b.addr(p.bias), b.addr(p.add), b.addr(p.pre),
		b.addr(p.sums), i32(p.m), i32(p.n), i32(p.terms), i32(p.aRow), i32(p.aTerm), i32(p.bTerm), i32(p.bColumn), i32(p.c.Stride),
		i32(stride(p.add)), i32(stride(p.pre)), i32(p.chunk), i32(laneSize), flags}
	return []launch{{module: "bf16_linear_any", kernel: "any_product", grid: dim3{ceil(p.m, side), ceil(p.n, side), max(p.lanes, 1)},
		block: dim3{side * side, 1, 1}, args: append(append(args, b.dropArgs(p.drop)...), nodes)}}
}
