package dense

import (
	"fmt"
	"math"

	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
)

// bf16Work is a way of summing: a block's warps, each with so many rows at once and so many terms
// of them on the way through shared memory.
type bf16Work struct {
	warps, rows, staged int
}

var (
	// src/bf16_linear_short.cuh: at most bf16Terms terms, results in bf16
	bf16Short = bf16Work{8, 32, 0}
	bf16Plain = bf16Work{16, 16, 128} // src/bf16_linear_ring.cuh: likewise, results in fp32
	bf16Long  = bf16Work{8, 32, 128}  // src/bf16_linear_ring.cuh: any number of terms
)

const (
	bf16Terms = 128 // of short sums, or half as many: a row stays in registers
	bf16Panel = 512 // most columns of a panel for short sums; of one for long sums: 128 or 64
)

// shared is the memory of a block: a panel of the weight with its bias, and the rows under way.
func (w bf16Work) shared(panel, terms int) int {
	return panel*(2*terms+4) + w.warps*w.rows*2*min(w.staged, terms)
}

// bf16Matrix is a matrix in bf16 whose rows are whole aligned vectors of eight.
type bf16Matrix struct {
	at     uint64
	stride int
}

// bf16MatrixOf is where the elements of t are in bf16: t's own memory, or a copy that the launches
// make.
func bf16MatrixOf(b *bind.Binder, t *kernel.Tensor) (bf16Matrix, []bind.Launch, bool) {
	if b.Compact(t) {
		m := bf16Matrix{b.Address(t), t.Stride}
		return m, nil, m.at%16 == 0 && m.stride%8 == 0
	}
	stride := 8 * bind.Ceil(t.Cols(), 8)
	m := bf16Matrix{b.Scratch(2 * t.Rows() * stride), stride}
	return m, []bind.Launch{narrow(b, m.at, b.Address(t), t.Rows(), t.Cols(), t.Stride)}, true
}

// narrow rounds a matrix in fp32 to bf16; its rows become whole vectors of eight.
func narrow(b *bind.Binder, to, from uint64, rows, cols, stride int) bind.Launch {
	const threads = 256
	return bind.Launch{Module: "bf16_linear_dw", Kernel: "narrow", Grid: bind.Dim3{min(bind.Ceil(rows*bind.Ceil(cols, 8), threads), 8*b.SMs), 1, 1},
		Block: bind.Dim3{threads, 1, 1}, Args: []any{to, from, bind.I32(rows), bind.I32(cols), bind.I32(stride)}}
}

// Bf16Product is a product of src/bf16_linear.cuh: Y[M,n] = X[M,k]·B with B the weight w or,
// turned, its transpose. It goes through the rows upward after an op that went through them
// downward, whose last rows are still in the card's cache; ops of other kinds go downward.
type Bf16Product struct {
	Op        string // linear or linear_dx
	Y, X, pre *kernel.Tensor
	W, bias   *kernel.Tensor
	add       *kernel.Tensor
	N, K      int
	drop      kernel.Drop
	Upward    bool
	Packed    uint64 // where the weight is in bf16, if not with the others
	Shift     uint64 // where the bias is, if packed
}

// end names what becomes of the sums; "" where no kernel does it.
func end(b *bind.Binder, p Bf16Product) string {
	vector := func(t *kernel.Tensor) bool { return b.Address(t)%16 == 0 && t.Stride%8 == 0 }
	wide := func(t *kernel.Tensor) bool {
		return t == nil || !b.Compact(t) && b.Address(t)%16 == 0 && t.Stride%4 == 0
	}
	switch {
	case p.pre != nil && b.Compact(p.pre) && b.Compact(p.Y) && p.add == nil && p.N%8 == 0 && vector(p.pre) && vector(p.Y):
		return "gelu"
	case p.pre != nil:
		return ""
	case b.Compact(p.Y) && p.add == nil && p.drop.Rate == 0 && p.N%8 == 0 && vector(p.Y):
		return "compact"
	case wide(p.Y) && wide(p.add) && p.N%4 == 0:
		return "plain"
	}
	return ""
}

// Fast returns the launches of a product where the kernels of src/bf16_linear.cuh take it.
func Fast(b *bind.Binder, p Bf16Product) ([]bind.Launch, bool) {
	end := end(b, p)
	if end == "" || p.W.Cols()%8 != 0 { // rows of the weight are read by vectors
		return nil, false
	}
	x, ls, ok := bf16MatrixOf(b, p.X)
	if !ok {
		return nil, false
	}
	weight, bias := b.Bf16(p.W), b.Addr(p.bias)
	if p.Packed != 0 {
		weight, bias = p.Packed, p.Shift
	}
	y := operands{b.Addr(p.Y), b.Addr(p.add), p.Y.Stride, bind.Stride(p.add)}
	if l, ok := bf16Once(b, p, end, p.K, y, x, weight, bias); ok {
		return append(ls, l), true
	}
	more, ok := inParts(b, p, end, x, weight)
	return append(ls, more...), ok
}

// operands are where the results of a product are and what is added to them.
type operands struct {
	y, add             uint64
	yStride, addStride int
}

// bf16Part is how many terms of a sum that is too long for shared memory are added up at a time.
const bf16Part = 512

// inParts adds a long sum of a gradient up part by part, in fp32, and rounds the whole once. A part
// is some columns of dy and as many rows of the weight.
func inParts(b *bind.Binder, p Bf16Product, end string, x bf16Matrix, weight uint64) (ls []bind.Launch, ok bool) {
	rows, wide := p.X.Rows(), 8*bind.Ceil(p.N, 8)
	if p.Op != "linear_dx" || p.pre != nil || p.Packed != 0 || p.bias != nil || p.N != wide || end == "compact" && p.Y.Stride != wide {
		return nil, false
	}
	sums := operands{y: b.Addr(p.Y), yStride: p.Y.Stride, add: b.Addr(p.add), addStride: bind.Stride(p.add)}
	if end == "compact" {
		sums = operands{y: b.Scratch(4 * rows * p.N), yStride: p.N}
	}
	for from := 0; from < p.K; from += bf16Part {
		part := bf16Matrix{x.at + 2*uint64(from), x.stride}
		l, ok := bf16Once(b, p, "plain", min(bf16Part, p.K-from), sums, part, weight+2*uint64(from*p.W.Cols()), 0)
		if !ok {
			return nil, false
		}
		ls = append(ls, l)
		sums.add, sums.addStride = sums.y, sums.yStride
	}
	if end == "compact" {
		ls = append(ls, narrow(b, b.Addr(p.Y), sums.y, rows, p.N, p.N))
	}
	return ls, true
}

// bf16Once is one launch over k terms; false where they do not fit.
func bf16Once(b *bind.Binder, p Bf16Product, end string, k int, y operands, x bf16Matrix, weight, bias uint64) (bind.Launch, bool) {
	kind, work, panel, terms := "", bf16Short, min(bf16Panel, 32*bind.Ceil(p.N, 32)), 128*bind.Ceil(k, 128)
	switch {
	case k <= bf16Terms/2:
		kind, terms = "short_64", bf16Terms/2
	case k <= bf16Terms:
		kind = "short_128"
	case p.N > 64 && bf16Long.shared(128, terms) <= b.MaxShared:
		kind, work, panel = "long_128", bf16Long, 128
	default:
		kind, work, panel = "long_64", bf16Long, 64
	}
	if work == bf16Short && end == "plain" {
		work = bf16Plain
	}
	if work != bf16Long && work.shared(panel, terms) > b.MaxShared {
		panel = 32 * bind.Ceil(panel, 64)
	}
	shared := work.shared(panel, terms)
	if shared > b.MaxShared {
		return bind.Launch{}, false
	}
	panels, rows := bind.Ceil(p.N, panel), p.X.Rows()
	blocks := min(bind.Ceil(rows, work.warps*work.rows), max(1, b.SMs/panels))
	args := []any{y.y, b.Addr(p.pre), x.at, weight, bias, y.add, bind.I32(rows), bind.I32(p.N), bind.I32(k),
		bind.I32(y.yStride), bind.I32(bind.Stride(p.pre)), bind.I32(x.stride), bind.I32(y.addStride), bind.I32(panel)}
	nodes := uint32(max(p.drop.Nodes, 1))
	args = append(append(args, b.DropArgs(p.drop)...), nodes, math.MaxUint32/nodes, bind.Flag(p.Upward))
	module := "bf16_linear"
	if p.Op == "linear_dx" {
		module = "bf16_linear_dx"
	}
	return bind.Launch{Module: module, Kernel: fmt.Sprintf("%s_%s_%s", p.Op, end, kind), Grid: bind.Dim3{blocks, panels, 1},
		Block: bind.Dim3{32 * work.warps, 1, 1}, Shared: shared, Args: args}, true
}

// bf16Linear binds Y = Residual + drop(X·Wᵀ + Bias), or Pre and its GELU.
func bf16Linear(b *bind.Binder, o *kernel.Linear) ([]bind.Launch, error) {
	m, k, n := o.Dims()
	if ls, ok := Fast(b, Bf16Product{Op: "linear", Y: o.Y, X: o.X, pre: o.Pre, W: o.W, bias: o.Bias, add: o.Residual, N: n, K: k, drop: o.Drop,
		// a long sum follows the first half of a feed-forward layer, which went upward
		Upward: k <= bf16Terms}); ok {
		return ls, nil
	}
	return anyProductOf(b, anyProduct{c: o.Y, a: o.X, b: o.W, bias: o.Bias, add: o.Residual, pre: o.Pre, preWritten: true, m: m, n: n, terms: k,
		aRow: o.X.Stride, aTerm: 1, bTerm: 1, bColumn: k, chunk: k, drop: o.Drop}), nil
}

// bf16LinearGradX binds DX (+)= DY·W, or (DY·W)·GELU'(Pre).
func bf16LinearGradX(b *bind.Binder, o *kernel.LinearGradX) ([]bind.Launch, error) {
	m, n, k := o.DY.Rows(), o.DY.Cols(), o.DX.Cols()
	var add *kernel.Tensor
	if o.Accumulate {
		add = o.DX
	}
	if ls, ok := Fast(b, Bf16Product{Op: "linear_dx", Y: o.DX, X: o.DY, pre: o.Pre, W: o.W, add: add, N: k, K: n, Upward: true}); ok {
		return ls, nil
	}
	return anyProductOf(b, anyProduct{c: o.DX, a: o.DY, b: o.W, add: add, pre: o.Pre, m: m, n: k, terms: n,
		aRow: o.DY.Stride, aTerm: 1, bTerm: k, bColumn: 1, chunk: n}), nil
}
