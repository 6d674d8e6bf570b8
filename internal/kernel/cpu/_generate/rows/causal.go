package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// reach is the stretch of columns that a row of causal attention looks at: after `before`, short of `end`.
type reach struct {
	m            *isa
	first        Register // the row's first column, counted as the sequence counts
	from, end    Register // the block's first column, likewise; the row's end in the block
	before, stop VecVirtual
}

func (m *isa) reach() *reach {
	return &reach{m: m, first: ptr("first"), from: integer("from"), end: integer("end")}
}

// row readies the stretch of the row that first and end stand at.
func (r *reach) row() {
	low := GP32()
	MOVL(Mem{Base: r.first}, low)
	SUBL(r.from.(GP).As32(), low)
	DECL(low)
	r.before, r.stop = r.m.spreadInt(low), r.m.spreadInt(r.end.(GP).As32())
}

// steps move on to the next row.
func (r *reach) steps() []stride { return append(by(U8(4), r.first), by(U8(1), r.end)...) }

// spreadInt puts an integer in every lane.
func (m *isa) spreadInt(n Register) VecVirtual {
	v := m.vec()
	if m.wide() {
		VPBROADCASTD(n, v)
	} else {
		VMOVD(n, v.AsX())
		VPBROADCASTD(v.AsX(), v)
	}
	return v
}

// lanes selects those of vector a that the row looks at.
func (r *reach) lanes(a at) lanes {
	m, j := r.m, GP64()
	LEAQ(Mem{Base: a.j, Disp: a.disp}, j)
	column := m.spreadInt(j.As32())
	VPADDD(table("count", 4, func(i int) uint32 { return uint32(i) }), column, column)
	if m.wide() {
		const less, more = 1, 6
		short, in := K(), K()
		VPCMPD(U8(less), r.stop, column, short)
		VPCMPD(U8(more), r.before, column, short, in)
		return lanes{in}
	}
	in := m.vec()
	VPCMPGTD(column, r.stop, in)
	VPCMPGTD(r.before, column, column)
	VPAND(column, in, in)
	return lanes{in}
}

func (m *isa) softmaxCausal() {
	m.text("softmaxCausal", "func(p, logSum []float32, first []int32, mask []uint16, rows, from, end, n, ld, words int, scale, keep float32)", ".")
	p, logSum, r, k := ptr("p"), ptr("logSum"), m.reach(), m.maskOf("mask")
	rows, n, ld, words := integer("rows"), integer("n"), integer("ld"), integer("words")
	scale, keep, c, bytes := m.splat("scale"), m.splat("keep"), m.columns(n), bytesOf(ld)
	SHLQ(U8(1), words)
	m.rows(rows, func() {
		r.row()
		// Columns out of reach become minus infinity here, of which the exponential is zero.
		top := m.constant(float32(math.Inf(-1)))
		c.each(1, func(a at) {
			v, l, none := a.load(p), r.lanes(a), m.constant(float32(math.Inf(-1)))
			if m.wide() {
				VMULPS(scale, v, l.reg, none)
			} else {
				VMULPS(scale, v, v)
				VBLENDVPS(l.reg, v, none, none)
			}
			a.store(none, p)
			m.maxInto(top, none, a.lanes)
		})
		m.fold(VMAXPS, top)
		sum := m.zero()
		c.groups(m.abreast(), func(group []at) {
			v := loads(group, p)
			v.all(func(i int) { VSUBPS(top, v[i], v[i]) })
			e := m.exp(v)
			e.all(func(i int) {
				m.keepRest(e[i], group[i])
				VADDPS(e[i], sum, sum)
				group[i].store(e[i], p)
			})
		})
		m.fold(VADDPS, sum)
		q, log := m.invert(vecs{sum})[0], m.log(vecs{sum})[0]
		VADDSS(top.AsX(), log.AsX(), log.AsX())
		VMOVSS(log.AsX(), Mem{Base: logSum})
		VMULPS(keep, q, q)
		c.each(2, func(a at) { a.store(m.kept(k, a, a.load(p), q), p) })
	}, append(append(by(bytes, p), by(U8(4), logSum)...), append(by(words, k.row), r.steps()...)...)...)
	ret()
}

func (m *isa) softmaxCausalGrad() {
	m.text("softmaxCausalGrad",
		"func(ds, p, logSum, dots []float32, first []int32, mask []uint16, rows, from, end, n, ld, words int, scale, keep float32)", ".")
	ds, p, logSum, dots, r, k := ptr("ds"), ptr("p"), ptr("logSum"), ptr("dots"), m.reach(), m.maskOf("mask")
	rows, n, ld, words := integer("rows"), integer("n"), integer("ld"), integer("words")
	scale, keep, c, bytes := m.splat("scale"), m.splat("keep"), m.columns(n), bytesOf(ld)
	SHLQ(U8(1), words)
	abreast := 1
	if m.wide() {
		abreast = 2
	}
	m.rows(rows, func() {
		r.row()
		c.groups(abreast, func(group []at) {
			s, l := loads(group, p), m.broadcast(Mem{Base: logSum})
			s.all(func(i int) { VFMSUB132PS(scale, l, s[i]) })
			e := m.exp(s)
			e.all(func(i int) {
				a := group[i]
				m.keep(e[i], r.lanes(a))
				g := m.kept(k, a, a.load(ds), keep)
				VSUBPS(m.broadcast(Mem{Base: dots}), g, g)
				VMULPS(scale, g, g)
				VMULPS(e[i], g, g)
				a.store(g, ds)
				a.store(m.kept(k, a, e[i], keep), p)
			})
		})
	}, append(append(by(bytes, ds, p), by(U8(4), logSum, dots)...), append(by(words, k.row), r.steps()...)...)...)
	ret()
}

// rowDots joins each row's products lane by lane, so that a row of one vector is one fold.
func (m *isa) rowDots() {
	m.text("rowDots", "func(out, a, b []float32, rows, n, ld int)", ".")
	out, x, y := ptr("out"), ptr("a"), ptr("b")
	rows, n, ld := integer("rows"), integer("n"), integer("ld")
	c, bytes := m.columns(n), bytesOf(ld)
	m.rows(rows, func() {
		sum := m.zero()
		c.each(1, func(a at) { VFMADD231PS(a.load(x), a.load(y), sum) })
		m.fold(VADDPS, sum)
		VMOVSS(sum.AsX(), Mem{Base: out})
	}, append(by(bytes, x, y), by(U8(4), out)...)...)
	ret()
}
