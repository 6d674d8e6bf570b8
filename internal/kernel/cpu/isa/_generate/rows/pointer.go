package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

func (m *isa) pointer() {
	m.text("pointer", "func(p, lp, th, ent, u []float32, mask []uint64, rows, n, ld, words int, scale, mult float32)",
		"; p is e^(z-max)/Σ, with no second exponential.")
	p, lp, th, ent, u, k := ptr("p"), ptr("lp"), ptr("th"), ptr("ent"), ptr("u"), m.maskOf("mask")
	rows, words, c := integer("rows"), integer("words"), m.padded(integer("n"), integer("ld"))
	scale, mult, bytes := m.splat("scale"), m.splat("mult"), bytesOf(c.ld)
	SHLQ(U8(3), words)
	steps := append(append(by(bytes, p, lp, th, u), by(words, k.row)...), by(U8(4), ent)...)

	if m.wide() { // AVX2 has too few registers for it
		long := m.label("long")
		CMPQ(c.ld, U8(shortest))
		JGT(LabelRef(long))
		m.pointerShort(p, lp, th, ent, u, rows, words, k, c, scale, mult, steps)
		Label(long)
	}
	m.rows(rows, func() {
		top := m.constant(float32(math.Inf(-1)))
		c.each(1, func(a at) {
			l := k.allowed(a)
			v := m.load(a.mem(u), l)
			VMULPS(scale, v, v)
			t := m.tanh(vecs{v})[0]
			a.storePadded(t, th)
			VMULPS(mult, t, t)
			m.maxInto(top, t, l)
		})
		m.fold(VMAXPS, top)
		sum := m.zero()
		c.each(1, func(a at) {
			l := k.allowed(a)
			v := a.load(th)
			VFMSUB213PS(top, mult, v)
			m.keep(v, l)
			a.storePadded(v, lp)
			e := m.exp(vecs{v})[0]
			m.keep(e, l)
			VADDPS(e, sum, sum)
			a.storePadded(e, p)
		})
		m.fold(VADDPS, sum)
		q, logSum, h := m.invert(vecs{sum})[0], m.log(vecs{sum})[0], m.zero()
		c.each(1, func(a at) {
			l := k.allowed(a)
			v, e := a.load(lp), a.load(p)
			VSUBPS(logSum, v, v)
			m.keep(v, l)
			a.storePadded(v, lp)
			VMULPS(q, e, e)
			m.keep(e, l)
			a.storePadded(e, p)
			VFNMADD231PS(v, e, h)
		})
		m.fold(VADDPS, h)
		VMOVSS(h.AsX(), Mem{Base: ent})
		c.clear(p, lp, th)
	}, steps...)
	ret()
}

// pointerShort is pointer for rows that registers hold from load to store.
func (m *isa) pointerShort(p, lp, th, ent, u, rows, words Register, k *mask, c *columns, scale, mult VecVirtual, steps []stride) {
	group := c.short(words, 2)
	m.rowsBy(rows, len(group), func(count int) {
		rows := group[:count]
		var flat []at
		var kept []lanes
		var v, top, sum, h vecs
		for _, row := range rows {
			for _, a := range row {
				l := k.allowed(a)
				x := m.load(a.mem(u), l)
				VMULPS(scale, x, x)
				flat, kept, v = append(flat, a), append(kept, l), append(v, x)
			}
			top, sum, h = append(top, m.constant(float32(math.Inf(-1)))), append(sum, m.zero()), append(h, m.zero())
		}
		row := func(i int) int { return i / len(rows[0]) }
		z := m.tanh(v)
		z.all(func(i int) {
			flat[i].storePadded(z[i], th)
			VMULPS(mult, z[i], z[i])
			m.maxInto(top[row(i)], z[i], kept[i])
		})
		m.fold(VMAXPS, top...)
		z.all(func(i int) { VSUBPS(top[row(i)], z[i], z[i]) })
		e := m.exp(z)
		e.all(func(i int) {
			m.keep(e[i], kept[i])
			VADDPS(e[i], sum[row(i)], sum[row(i)])
		})
		m.fold(VADDPS, sum...)
		q, logSum := m.invert(sum), m.log(sum)
		z.all(func(i int) {
			VSUBPS(logSum[row(i)], z[i], z[i])
			m.keep(z[i], kept[i])
			flat[i].storePadded(z[i], lp)
			VMULPS(q[row(i)], e[i], e[i])
			m.keep(e[i], kept[i])
			flat[i].storePadded(e[i], p)
			VFNMADD231PS(z[i], e[i], h[row(i)])
		})
		m.fold(VADDPS, h...)
		h.all(func(i int) { VMOVSS(h[i].AsX(), Mem{Base: ent, Disp: 4 * i}) })
	}, steps...)
	ret()
}

func (m *isa) pointerGrad() {
	m.text("pointerGrad", "func(du, p, lp, th, ent, wa, we []float32, act []int32, rows, n, ld int, scale, mult float32)", ".")
	du, p, lp, th := ptr("du"), ptr("p"), ptr("lp"), ptr("th")
	ent, wa, we, act := ptr("ent"), ptr("wa"), ptr("we"), ptr("act")
	rows, c := integer("rows"), m.columns(integer("ld"))
	scale, bytes := m.splat("scale"), bytesOf(c.n)
	VMULPS(m.splat("mult"), scale, scale)
	m.rows(rows, func() {
		w, e, h := m.broadcast(Mem{Base: wa}), m.broadcast(Mem{Base: we}), m.broadcast(Mem{Base: ent})
		c.each(1, func(a at) {
			v := a.load(lp)
			VADDPS(h, v, v)
			VFMADD213PS(w, e, v)
			g, t := m.zero(), a.load(th)
			VFNMADD231PS(a.load(p), v, g)
			VMULPS(t, t, t)
			one := m.constant(1)
			VSUBPS(t, one, t)
			VMULPS(scale, t, t)
			VMULPS(t, g, g)
			a.store(g, du)
		})
		m.chosen(du, th, wa, act, c.n, scale)
	}, append(by(bytes, du, p, lp, th), by(U8(4), ent, wa, we, act)...)...)
	ret()
}

// chosen adds wa·mult·(1-th²)·scale at the row's action, where it has one.
func (m *isa) chosen(du, th, wa, act, ld Register, scale VecVirtual) {
	none, j := m.label("none"), GP64()
	MOVLQSX(Mem{Base: act}, j)
	CMPQ(j, ld)
	JAE(LabelRef(none))
	t, w := XMM(), XMM()
	VMOVSS(Mem{Base: th, Index: j, Scale: 4}, t)
	VMULSS(t, t, t)
	VMOVSS(float(1), w)
	VSUBSS(t, w, t)
	VMULSS(scale.AsX(), t, t)
	to := Mem{Base: du, Index: j, Scale: 4}
	VMOVSS(Mem{Base: wa}, w)
	VMULSS(w, t, t)
	VADDSS(to, t, t)
	VMOVSS(t, to)
	Label(none)
}
