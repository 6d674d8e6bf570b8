package cuda

import (
	"fmt"
	"math"

	"haul/internal/kernel"
)

// bf16Work is a way of summing: a block's warps, each with so many rows at once and so many terms
// of them on the way through shared memory.
type bf16Work struct {
	warps, rows, staged int
}

var (
	// src/dense/bf16_linear_short.cuh: at most bf16Terms terms, results in bf16
	bf16Short = bf16Work{8, 32, 0}
	bf16Plain = bf16Work{16, 16, 128} // src/dense/bf16_linear_ring.cuh: likewise, results in fp32
	bf16Long  = bf16Work{8, 32, 128}  // src/dense/bf16_linear_ring.cuh: any number of terms
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

// bf16Matrix is where the elements of t are in bf16: t's own memory, or a copy that the launches
// make.
func (b *binder) bf16Matrix(t *kernel.Tensor) (bf16Matrix, []launch, bool) {
	if b.compact(t) {
		m := bf16Matrix{b.address(t), t.Stride}
		return m, nil, m.at%16 == 0 && m.stride%8 == 0
	}
	stride := 8 * ceil(t.Cols(), 8)
	m := bf16Matrix{b.scratch(2 * t.Rows() * stride), stride}
	return m, []launch{b.narrow(m.at, b.address(t), t.Rows(), t.Cols(), t.Stride)}, true
}

// narrow rounds a matrix in fp32 to bf16; its rows become whole vectors of eight.
func (b *binder) narrow(to, from uint64, rows, cols, stride int) launch {
	const threads = 256
	return launch{module: "bf16_linear_dw", kernel: "narrow", grid: dim3{min(ceil(rows*ceil(cols, 8), threads), 8*b.sms), 1, 1},
		block: dim3{threads, 1, 1}, args: []any{to, from, i32(rows), i32(cols), i32(stride)}}
}

// bf16Product is a product of src/dense/bf16_linear.cuh: Y[M,n] = X[M,k]·B with B the weight w or,
// turned, its transpose. It goes through the rows upward after an op that went through them
// downward, whose last rows are still in the card's cache; ops of other kinds go downward.
type bf16Product struct {
	op        string // linear or linear_dx
	y, x, pre *kernel.Tensor
	w, bias   *kernel.Tensor
	add       *kernel.Tensor
	n, k      int
	drop      kernel.Drop
	upward    bool
	packed    uint64 // where the weight is in bf16, if not with the others
	shift     uint64 // where the bias is, if packed
}

// end names what becomes of the sums; "" where no kernel does it.
func (b *binder) end(p bf16Product) string {
	vector := func(t *kernel.Tensor) bool { return b.address(t)%16 == 0 && t.Stride%8 == 0 }
	wide := func(t *kernel.Tensor) bool {
		return t == nil || !b.compact(t) && b.address(t)%16 == 0 && t.Stride%4 == 0
	}
	switch {
	case p.pre != nil && b.compact(p.pre) && b.compact(p.y) && p.add == nil && p.n%8 == 0 && vector(p.pre) && vector(p.y):
		return "gelu"
	case p.pre != nil:
		return ""
	case b.compact(p.y) && p.add == nil && p.drop.Rate == 0 && p.n%8 == 0 && vector(p.y):
		return "compact"
	case wide(p.y) && wide(p.add) && p.n%4 == 0:
		return "plain"
	}
	return ""
}

// fast returns the launches of a product where the kernels of src/dense/bf16_linear.cuh take it.
func (b *binder) fast(p bf16Product) ([]launch, bool) {
	end := b.end(p)
	if end == "" || p.w.Cols()%8 != 0 { // rows of the weight are read by vectors
		return nil, false
	}
	x, ls, ok := b.bf16Matrix(p.x)
	if !ok {
		return nil, false
	}
	weight, bias := b.bf16(p.w), b.addr(p.bias)
	if p.packed != 0 {
		weight, bias = p.packed, p.shift
	}
	y := operands{b.addr(p.y), b.addr(p.add), p.y.Stride, stride(p.add)}
	if l, ok := b.bf16Once(p, end, p.k, y, x, weight, bias); ok {
		return append(ls, l), true
	}
	more, ok := b.inParts(p, end, x, weight)
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
func (b *binder) inParts(p bf16Product, end string, x bf16Matrix, weight uint64) (ls []launch, ok bool) {
	rows, wide := p.x.Rows(), 8*ceil(p.n, 8)
	if p.op != "linear_dx" || p.pre != nil || p.packed != 0 || p.bias != nil || p.n != wide || end == "compact" && p.y.Stride != wide {
		return nil, false
	}
	sums := operands{y: b.addr(p.y), yStride: p.y.Stride, add: b.addr(p.add), addStride: stride(p.add)}
	if end == "compact" {
		sums = operands{y: b.scratch(4 * rows * p.n), yStride: p.n}
	}
	for from := 0; from < p.k; from += bf16Part {
		part := bf16Matrix{x.at + 2*uint64(from), x.stride}
		l, ok := b.bf16Once(p, "plain", min(bf16Part, p.k-from), sums, part, weight+2*uint64(from*p.w.Cols()), 0)
		if !ok {
			return nil, false
		}
		ls = append(ls, l)
		sums.add, sums.addStride = sums.y, sums.yStride
	}
	if end == "compact" {
		ls = append(ls, b.narrow(b.addr(p.y), sums.y, rows, p.n, p.n))
	}
	return ls, true
}

// bf16Once is one launch over k terms; false where they do not fit.
func (b *binder) bf16Once(p bf16Product, end string, k int, y operands, x bf16Matrix, weight, bias uint64) (launch, bool) {
	kind, work, panel, terms := "", bf16Short, min(bf16Panel, 32*ceil(p.n, 32)), 128*ceil(k, 128)
	switch {
	case k <= bf16Terms/2:
		kind, terms = "short_64", bf16Terms/2
	case k <= bf16Terms:
		kind = "short_128"
	case p.n > 64 && bf16Long.shared(128, terms) <= b.maxShared:
		kind, work, panel = "long_128", bf16Long, 128
	default:
		kind, work, panel = "long_64", bf16Long, 64
	}
	if work == bf16Short && end == "plain" {
		work = bf16Plain
	}
	if work != bf16Long && work.shared(panel, terms) > b.maxShared {
		panel = 32 * ceil(panel, 64)
	}
	shared := work.shared(panel, terms)
	if shared > b.maxShared {
		return launch{}, false
	}
	panels, rows := ceil(p.n, panel), p.x.Rows()
	blocks := min(ceil(rows, work.warps*work.rows), max(1, b.sms/panels))
	args := []any{y.y, b.addr(p.pre), x.at, weight, bias, y.add, i32(rows), i32(p.n), i32(k),
		i32(y.yStride), i32(stride(p.pre)), i32(x.stride), i32(y.addStride), i32(panel)}
	nodes := uint32(max(p.drop.Nodes, 1))
	args = append(append(args, b.dropArgs(p.drop)...), nodes, math.MaxUint32/nodes, flag(p.upward))
	module := "bf16_linear"
	if p.op == "linear_dx" {
		module = "bf16_linear_dx"
	}
	return launch{module: module, kernel: fmt.Sprintf("%s_%s_%s", p.op, end, kind), grid: dim3{blocks, panels, 1},
		block: dim3{32 * work.warps, 1, 1}, shared: shared, args: args}, true
}

// bf16Linear binds Y = Residual + drop(X·Wᵀ + Bias), or Pre and its GELU.
func (b *binder) bf16Linear(o *kernel.Linear) ([]launch, error) {
	m, k, n := o.Dims()
	if ls, ok := b.fast(bf16Product{op: "linear", y: o.Y, x: o.X, pre: o.Pre, w: o.W, bias: o.Bias, add: o.Residual, n: n, k: k, drop: o.Drop,
		// a long sum follows the first half of a feed-forward layer, which went upward
		upward: k <= bf16Terms}); ok {
		return ls, nil
	}
	return b.anyProduct(anyProduct{c: o.Y, a: o.X, b: o.W, bias: o.Bias, add: o.Residual, pre: o.Pre, preWritten: true, m: m, n: n, terms: k,
		aRow: o.X.Stride, aTerm: 1, bTerm: 1, bColumn: k, chunk: k, drop: o.Drop}), nil
}

// bf16LinearGradX binds DX (+)= DY·W, or (DY·W)·GELU'(Pre).
func (b *binder) bf16LinearGradX(o *kernel.LinearGradX) ([]launch, error) {
	m, n, k := o.DY.Rows(), o.DY.Cols(), o.DX.Cols()
	var add *kernel.Tensor
	if o.Accumulate {
		add = o.DX
	}
	if ls, ok := b.fast(bf16Product{op: "linear_dx", y: o.DX, x: o.DY, pre: o.Pre, w: o.W, add: add, n: k, k: n, upward: true}); ok {
		return ls, nil
	}
	return b.anyProduct(anyProduct{c: o.DX, a: o.DY, b: o.W, add: add, pre: o.Pre, m: m, n: k, terms: n,
		aRow: o.DY.Stride, aTerm: 1, bTerm: k, bColumn: 1, chunk: n}), nil
}
