package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// chains is how many independent sums a row's reduction keeps, to hide the latency of an addition.
const chains = 4

// sums starts the partial sums of one reduction.
func (m *isa) sums() []VecVirtual {
	var s []VecVirtual
	for range chains {
		s = append(s, m.zero())
	}
	return s
}

// join adds partial sums and lanes into every lane of the first.
func (m *isa) join(s []VecVirtual) VecVirtual {
	VADDPS(s[1], s[0], s[0])
	VADDPS(s[3], s[2], s[2])
	VADDPS(s[2], s[0], s[0])
	m.fold(VADDPS, s[0])
	return s[0]
}

// inverse returns 1/n in every lane.
func (m *isa) inverse(n Register) VecVirtual {
	x := m.zero()
	VCVTSI2SSQ(n, x.AsX(), x.AsX())
	return m.invert(vecs{x})[0]
}

func (m *isa) norm() {
	m.text("norm", "func(y, mean, rstd, x, gamma, beta []float32, rows, d int, eps float32)",
		", with each row's sums in four chains of vectors.")
	y, mean, rstd, x := ptr("y"), ptr("mean"), ptr("rstd"), ptr("x")
	gamma, beta, rows, d := ptr("gamma"), ptr("beta"), integer("rows"), integer("d")
	eps, inv, c, bytes := m.splat("eps"), m.inverse(d), m.columns(d), bytesOf(d)
	m.rows(rows, func() {
		s := m.sums()
		c.each(chains, func(a at) { VADDPS(a.load(x), s[a.slot], s[a.slot]) })
		mu := m.join(s)
		VMULPS(inv, mu, mu)
		s = m.sums()
		c.each(chains, func(a at) {
			v := a.load(x)
			VSUBPS(mu, v, v)
			m.keepRest(v, a)
			VFMADD231PS(v, v, s[a.slot])
		})
		rs := m.join(s)
		VFMADD213PS(eps, inv, rs)
		VSQRTSS(rs.AsX(), rs.AsX(), rs.AsX())
		rs = m.invert(vecs{rs})[0]
		c.each(chains, func(a at) {
			v := a.load(x)
			VSUBPS(mu, v, v)
			VMULPS(rs, v, v)
			if a.all() {
				VMULPS(a.mem(gamma), v, v)
				VADDPS(a.mem(beta), v, v)
			} else {
				VMULPS(a.load(gamma), v, v)
				VADDPS(a.load(beta), v, v)
			}
			a.store(v, y)
		})
		VMOVSS(mu.AsX(), Mem{Base: mean})
		VMOVSS(rs.AsX(), Mem{Base: rstd})
	}, append(by(bytes, x, y), by(U8(4), mean, rstd)...)...)
	ret()
}

func (m *isa) normGrad() {
	m.text("normGrad", "func(dx, dgamma, dbeta, dy, x, mean, rstd, gamma []float32, rows, d int, accumulate bool)",
		", with each row's sums in two chains of vectors.")
	dx, dgamma, dbeta, dy := ptr("dx"), ptr("dgamma"), ptr("dbeta"), ptr("dy")
	x, mean, rstd, gamma := ptr("x"), ptr("mean"), ptr("rstd"), ptr("gamma")
	rows, d := integer("rows"), integer("d")
	inv, c, bytes := m.inverse(d), m.columns(d), bytesOf(d)
	accumulate, err := Param("accumulate").Resolve()
	if err != nil {
		panic(err)
	}
	m.rows(rows, func() {
		mu, rs := m.broadcast(Mem{Base: mean}), m.broadcast(Mem{Base: rstd})
		hat := func(a at) VecVirtual {
			h := a.load(x)
			VSUBPS(mu, h, h)
			VMULPS(rs, h, h)
			return h
		}
		se, seh := []VecVirtual{m.zero(), m.zero()}, []VecVirtual{m.zero(), m.zero()}
		c.each(2, func(a at) {
			h, v := hat(a), a.load(dy)
			e := m.vec()
			VMULPS(a.load(gamma), v, e)
			VADDPS(e, se[a.slot], se[a.slot])
			VFMADD231PS(h, e, seh[a.slot])
			g := a.load(dgamma)
			VFMADD231PS(h, v, g)
			a.store(g, dgamma)
			VADDPS(a.load(dbeta), v, v)
			a.store(v, dbeta)
		})
		for _, s := range [][]VecVirtual{se, seh} {
			VADDPS(s[1], s[0], s[0])
			m.fold(VADDPS, s[0])
			VMULPS(inv, s[0], s[0])
		}
		gradient := func(a at) VecVirtual {
			h, e := hat(a), a.load(dy)
			VMULPS(a.load(gamma), e, e)
			VSUBPS(se[0], e, e)
			VFNMADD231PS(seh[0], h, e)
			return e
		}
		sum, done := m.label("sum"), m.label("next")
		CMPB(accumulate.Addr, U8(0))
		JNE(LabelRef(sum))
		c.each(chains, func(a at) {
			g := gradient(a)
			VMULPS(rs, g, g)
			a.store(g, dx)
		})
		JMP(LabelRef(done))
		Label(sum)
		c.each(chains, func(a at) {
			g := gradient(a)
			VFMADD213PS(a.load(dx), rs, g)
			a.store(g, dx)
		})
		Label(done)
	}, append(by(bytes, x, dy, dx), by(U8(4), mean, rstd)...)...)
	ret()
}
