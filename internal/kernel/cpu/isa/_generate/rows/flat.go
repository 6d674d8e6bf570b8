package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

func (m *isa) query() {
	m.text("query", "func(q, node, graph, load []float32, capacity float32)", ".")
	q, node, graph, load := ptr("q"), ptr("node"), ptr("graph"), ptr("load")
	capacity, c := m.splat("capacity"), m.columns(length("q"))
	c.each(4, func(a at) {
		v := a.load(node)
		VADDPS(a.load(graph), v, v)
		VFMADD231PS(a.load(load), capacity, v)
		a.store(v, q)
	})
	ret()
}

func (m *isa) add() {
	m.text("add", "func(y, x []float32)", ".")
	y, x, c := ptr("y"), ptr("x"), m.columns(length("x"))
	c.each(4, func(a at) {
		v := a.load(x)
		VADDPS(a.load(y), v, v)
		a.store(v, y)
	})
	ret()
}

// add4 is the tree over four lanes in one pass: only the first is written.
func (m *isa) add4() {
	m.text("add4", "func(y, a, b, c []float32)", ".")
	y, p, q, r, n := ptr("y"), ptr("a"), ptr("b"), ptr("c"), m.columns(length("c"))
	n.each(4, func(a at) {
		v, w := a.load(p), a.load(r)
		VADDPS(a.load(y), v, v)
		VADDPS(a.load(q), w, w)
		VADDPS(w, v, v)
		a.store(v, y)
	})
	ret()
}

// Muon's passes over a block do not fuse: every set has plain Go's bits.

func (m *isa) scale() {
	m.text("scale", "func(y []float32, by float32)", ", with the same bits.")
	y, by, c := ptr("y"), m.splat("by"), m.columns(length("y"))
	c.each(4, func(a at) {
		v := a.load(y)
		VMULPS(by, v, v)
		a.store(v, y)
	})
	ret()
}

func (m *isa) momentum() {
	m.text("momentum", "func(x, m, g []float32, beta, scale float32)", ", with the same bits.")
	x, mm, g, c := ptr("x"), ptr("m"), ptr("g"), m.columns(length("x"))
	beta, scale := m.splat("beta"), m.splat("scale")
	c.each(2, func(a at) {
		v, t := a.load(g), a.load(mm)
		VMULPS(scale, v, v)
		VMULPS(beta, t, t)
		VADDPS(v, t, t)
		m.flush(t, leastMomentum)
		a.store(t, mm)
		VMULPS(beta, t, t)
		VADDPS(t, v, v)
		m.flush(v, leastMomentum)
		a.store(v, x)
	})
	ret()
}

func (m *isa) descend() {
	m.text("descend", "func(w, x []float32, lr, step, decay float32)", ", with the same bits.")
	w, x, c := ptr("w"), ptr("x"), m.columns(length("w"))
	lr, step, decay := m.splat("lr"), m.splat("step"), m.splat("decay")
	c.each(2, func(a at) {
		v, t, old := a.load(w), a.load(x), m.vec()
		VMULPS(step, t, t)
		VMULPS(decay, v, old)
		VADDPS(old, t, t)
		VMULPS(lr, t, t)
		VSUBPS(t, v, v)
		a.store(v, w)
	})
	ret()
}

// colSum walks the rows once for eight vectors of columns, so that eight sums hide the latency of
// one.
func (m *isa) colSum() {
	m.text("colSum", "func(out, x []float32, rows, n, ld int, accumulate bool)", ", with the same bits: each column adds its rows in order.")
	out, x, rows, n, ld := ptr("out"), ptr("x"), integer("rows"), integer("n"), integer("ld")
	c, bytes, p, left := m.columns(n), bytesOf(ld), GP64(), GP64()
	accumulate, err := Param("accumulate").Resolve()
	if err != nil {
		panic(err)
	}
	c.groups(8, func(group []at) {
		var sums []VecVirtual
		for range group {
			sums = append(sums, m.zero())
		}
		fresh := m.label("fresh")
		CMPB(accumulate.Addr, U8(0))
		JE(LabelRef(fresh))
		for i, a := range group {
			VADDPS(a.load(out), sums[i], sums[i])
		}
		Label(fresh)
		MOVQ(x, p)
		MOVQ(rows, left)
		m.rows(left, func() {
			for i, a := range group {
				VADDPS(a.load(p), sums[i], sums[i])
			}
		}, by(bytes, p)...)
		for i, a := range group {
			a.store(sums[i], out)
		}
	})
	ret()
}

// sumSquares squares and adds in float64, in four chains of vectors of w/2.
func (m *isa) sumSquares() {
	m.text("sumSquares", "func(x []float32) float64", ", in four chains of vectors.")
	x, c, s := ptr("x"), m.columns(length("x")), m.sums()
	square := func(low Op, i int) {
		d := m.vec()
		VCVTPS2PD(low, d)
		VFMADD231PD(d, d, s[i])
	}
	half := m.w * 2 // bytes
	c.each(2, func(a at) {
		if a.all() {
			from := a.mem(x)
			square(from, 2*a.slot)
			square(from.Offset(half), 2*a.slot+1)
			return
		}
		v := a.load(x)
		if m.wide() {
			high := YMM()
			VEXTRACTF64X4(U8(1), v, high)
			square(v.AsY(), 0)
			square(high, 1)
		} else {
			high := XMM()
			VEXTRACTF128(U8(1), v, high)
			square(v.AsX(), 0)
			square(high, 1)
		}
	})
	VADDPD(s[1], s[0], s[0])
	VADDPD(s[3], s[2], s[2])
	VADDPD(s[2], s[0], s[0])
	if m.wide() {
		high := YMM()
		VEXTRACTF64X4(U8(1), s[0], high)
		VADDPD(high, s[0].AsY(), s[0].AsY())
	}
	high := XMM()
	VEXTRACTF128(U8(1), s[0].AsY(), high)
	VADDPD(high, s[0].AsX(), s[0].AsX())
	VUNPCKHPD(s[0].AsX(), s[0].AsX(), high)
	VADDSD(high, s[0].AsX(), s[0].AsX())
	Store(s[0].AsX(), ReturnIndex(0))
	ret()
}

// What is smaller moves no weight. Muon divides a block by 1e-7 at least and multiplies products of
// four of its numbers, so that its bound lies far higher than AdamW's.
const leastMoment, leastMomentum = 1e-30, 1e-16

// flush makes zero of what is smaller than any moment that moves a weight: a gradient that stays
// zero would leave its moments among the subnormal numbers for good, at a hundred cycles a vector,
// and every product with them. A NaN stays.
func (m *isa) flush(v VecVirtual, least float32) {
	const notLess = 5
	size := m.vec()
	m.with(VANDPS, VANDPS_BCST, bits(^uint32(signBit)), v, size)
	if m.wide() {
		k := K()
		VCMPPS_BCST(U8(notLess), float(least), size, k)
		VMOVAPS_Z(v, k, v)
		return
	}
	VCMPPS(U8(notLess), float(least), size, size)
	VANDPS(size, v, v)
}

func (m *isa) adamw() {
	m.text("adamw", "func(w, m, v, g []float32, lr, beta1, beta2, eps, decay, correct1, correct2, scale float32)",
		", with its arguments spread and lr multiplied into decay and correct1.")
	w, mm, v, g, c := ptr("w"), ptr("m"), ptr("v"), ptr("g"), m.columns(length("w"))
	lr, beta1, beta2, eps := m.splat("lr"), m.splat("beta1"), m.splat("beta2"), m.splat("eps")
	decay, correct1, correct2, scale := m.splat("decay"), m.splat("correct1"), m.splat("correct2"), m.splat("scale")
	rest1, rest2 := m.constant(1), m.constant(1)
	VSUBPS(beta1, rest1, rest1)
	VSUBPS(beta2, rest2, rest2)
	VMULPS(decay, lr, decay)
	VMULPS(correct1, lr, correct1)
	c.each(1, func(a at) {
		x, t := a.load(g), m.vec()
		VMULPS(scale, x, x)
		VMULPS(rest1, x, t)
		VFMADD231PS(a.load(mm), beta1, t) // m
		m.flush(t, leastMoment)
		a.store(t, mm)
		VMULPS(x, x, x)
		VMULPS(rest2, x, x)
		VFMADD231PS(a.load(v), beta2, x) // v
		m.flush(x, leastMoment)
		a.store(x, v)
		VMULPS(correct2, x, x)
		VSQRTPS(x, x)
		VADDPS(eps, x, x)
		VMULPS(correct1, t, t)
		VDIVPS(x, t, t) // lr·m/(1-β1^t) / (√(v/(1-β2^t)) + eps)
		y := a.load(w)
		VFMADD231PS(y, decay, t)
		VSUBPS(t, y, y)
		a.store(y, w)
	})
	ret()
}
