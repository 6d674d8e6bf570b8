package vec

import (
	"math"

	"haul/internal/rules/ir"
)

// do runs a step.
func (f *Form) do(s *step) {
	if s.bools {
		f.masks[s.d] = f.doMask(s)
		return
	}
	switch s.op {
	case toMask:
		f.masks[s.d] = truths(f.blocks[s.a])
		return
	case toBlock:
		spread(f.blocks[s.d], f.masks[s.a])
		return
	case ir.Select:
		f.set.choose(f.blocks[s.d], f.masks[s.a], f.blocks[s.b], f.blocks[s.c])
		return
	}
	a, b := f.blocks[s.a], f.blocks[s.b]
	if compare := f.set.compares[s.op]; compare != nil {
		f.masks[s.d] = compare(a, b)
		return
	}
	if compute := f.set.computes[s.op]; compute != nil {
		compute(f.blocks[s.d], a, b)
		return
	}
	d, c := f.blocks[s.d], f.blocks[s.c]
	for i := range d {
		d[i] = ir.Apply(s.op, a[i], b[i], c[i])
	}
}

// doMask returns the result of an operation on bools of 64 nodes.
func (f *Form) doMask(s *step) uint64 {
	a, b := f.masks[s.a], f.masks[s.b]
	switch s.op {
	case ir.And:
		return a & b
	case ir.Or:
		return a | b
	case ir.Xor:
		return a ^ b
	case ir.Eq:
		return ^(a ^ b)
	}
	return a&b | ^a&f.masks[s.c]
}

func spread(d *Block, mask uint64) {
	for i := range d {
		d[i] = uint32(mask >> i & 1)
	}
}

// ops bounds the numbers of operations, conversions included.
const ops = 256

// set is the operations of an instruction set. Those without a loop run ir.Apply node by node.
type set struct {
	compares [ops]func(a, b *Block) uint64
	computes [ops]func(d, a, b *Block)
	choose   func(d *Block, mask uint64, yes, no *Block)
	fill     func(to *Block, word uint32)
}

// plain is the set in Go.
var plain = set{
	compares: [ops]func(a, b *Block) uint64{ir.Eq: eq, ir.Lt: lt, ir.Le: le, ir.FEq: feq, ir.FLt: flt, ir.FLe: fle},
	computes: [ops]func(d, a, b *Block){
		ir.Add: add, ir.Sub: sub, ir.Mul: mul, ir.And: and, ir.Or: or, ir.Xor: xor, ir.Shl: shl, ir.Shr: shr,
		ir.Min: least, ir.Max: greatest, ir.FAdd: fadd, ir.FSub: fsub, ir.FMul: fmul, ir.FDiv: fdiv,
		ir.FMin: fmin, ir.FMax: fmax, ir.FNeg: fneg, ir.FAbs: fabs, ir.FSqrt: fsqrt, ir.Float: float,
	},
	choose: choose, fill: fill,
}

// choose takes word i from yes where bit i of the mask is set, else from no.
func choose(d *Block, mask uint64, yes, no *Block) {
	for i := range d {
		keep := -uint32(mask >> i & 1)
		d[i] = yes[i]&keep | no[i]&^keep
	}
}

func real(w uint32) float32 { return math.Float32frombits(w) }

func bit(b bool, i int) uint64 {
	if b {
		return 1 << i
	}
	return 0
}

func eq(a, b *Block) (m uint64) {
	for i := range a {
		m |= bit(a[i] == b[i], i)
	}
	return m
}

// lt is computed by the sign of a difference, without a branch: who fits is as good as random.
func lt(a, b *Block) (m uint64) {
	for i := range a {
		m = m>>1 | uint64(int64(int32(a[i]))-int64(int32(b[i])))&(1<<63)
	}
	return m
}

func le(a, b *Block) uint64 { return ^lt(b, a) }

func feq(a, b *Block) (m uint64) {
	for i := range a {
		m |= bit(real(a[i]) == real(b[i]), i)
	}
	return m
}

func flt(a, b *Block) (m uint64) {
	for i := range a {
		m |= bit(real(a[i]) < real(b[i]), i)
	}
	return m
}

func fle(a, b *Block) (m uint64) {
	for i := range a {
		m |= bit(real(a[i]) <= real(b[i]), i)
	}
	return m
}

func add(d, a, b *Block) {
	for i := range d {
		d[i] = a[i] + b[i]
	}
}

func sub(d, a, b *Block) {
	for i := range d {
		d[i] = a[i] - b[i]
	}
}

func mul(d, a, b *Block) {
	for i := range d {
		d[i] = a[i] * b[i]
	}
}

func and(d, a, b *Block) {
	for i := range d {
		d[i] = a[i] & b[i]
	}
}

func or(d, a, b *Block) {
	for i := range d {
		d[i] = a[i] | b[i]
	}
}

func xor(d, a, b *Block) {
	for i := range d {
		d[i] = a[i] ^ b[i]
	}
}

func shl(d, a, b *Block) {
	for i := range d {
		d[i] = a[i] << b[i]
	}
}

func shr(d, a, b *Block) {
	for i := range d {
		d[i] = uint32(int32(a[i]) >> b[i])
	}
}

func least(d, a, b *Block) {
	for i := range d {
		d[i] = uint32(min(int32(a[i]), int32(b[i])))
	}
}

func greatest(d, a, b *Block) {
	for i := range d {
		d[i] = uint32(max(int32(a[i]), int32(b[i])))
	}
}

func fadd(d, a, b *Block) {
	for i := range d {
		d[i] = math.Float32bits(real(a[i]) + real(b[i]))
	}
}

func fsub(d, a, b *Block) {
	for i := range d {
		d[i] = math.Float32bits(real(a[i]) - real(b[i]))
	}
}

func fmul(d, a, b *Block) {
	for i := range d {
		d[i] = math.Float32bits(real(a[i]) * real(b[i]))
	}
}

func fdiv(d, a, b *Block) {
	for i := range d {
		d[i] = math.Float32bits(real(a[i]) / real(b[i]))
	}
}

func fmin(d, a, b *Block) {
	for i := range d {
		d[i] = math.Float32bits(min(real(a[i]), real(b[i])))
	}
}

func fmax(d, a, b *Block) {
	for i := range d {
		d[i] = math.Float32bits(max(real(a[i]), real(b[i])))
	}
}

func fneg(d, a, _ *Block) {
	for i := range d {
		d[i] = a[i] ^ 1<<31
	}
}

func fabs(d, a, _ *Block) {
	for i := range d {
		d[i] = a[i] &^ (1 << 31)
	}
}

func fsqrt(d, a, _ *Block) {
	for i := range d {
		d[i] = math.Float32bits(float32(math.Sqrt(float64(real(a[i])))))
	}
}

func float(d, a, _ *Block) {
	for i := range d {
		d[i] = math.Float32bits(float32(int32(a[i])))
	}
}
