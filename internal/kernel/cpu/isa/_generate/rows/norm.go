package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// chains is how many independent sums a row's reduction keeps, to hide the latency of an addition.
const chains = 4

// sums starts the partial sums of one reduction.
func (m *isa) sums() vecs {
	var s vecs
	for range chains {
		s = append(s, m.zero())
	}
	return s
}

// join adds partial sums into one, whose lanes are yet to be folded.
func (m *isa) join(s vecs) VecVirtual {
	VADDPS(s[1], s[0], s[0])
	VADDPS(s[3], s[2], s[2])
	VADDPS(s[2], s[0], s[0])
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
	m.rowsBy(rows, 2, func(k int) {
		from, to := []Register{x}, []Register{y}
		for len(from) < k {
			nextX, nextY := GP64(), GP64()
			LEAQ(Mem{Base: from[len(from)-1], Index: bytes, Scale: 1}, nextX)
			LEAQ(Mem{Base: to[len(to)-1], Index: bytes, Scale: 1}, nextY)
			from, to = append(from, nextX), append(to, nextY)
		}
		var s []vecs
		var mu, rs vecs
		for range from {
			s = append(s, m.sums())
		}
		c.each(chains, func(a at) {
			for r, row := range from {
				VADDPS(a.load(row), s[r][a.slot], s[r][a.slot])
			}
		})
		for r := range from {
			mu = append(mu, m.join(s[r]))
		}
		m.fold(VADDPS, mu...)
		mu.all(func(r int) { VMULPS(inv, mu[r], mu[r]) })
		for r := range from {
			s[r] = m.sums()
		}
		c.each(chains, func(a at) {
			for r, row := range from {
				v := a.load(row)
				VSUBPS(mu[r], v, v)
				m.keepRest(v, a)
				VFMADD231PS(v, v, s[r][a.slot])
			}
		})
		for r := range from {
			rs = append(rs, m.join(s[r]))
		}
		m.fold(VADDPS, rs...)
		rs.all(func(r int) {
			VFMADD213PS(eps, inv, rs[r])
			VSQRTSS(rs[r].AsX(), rs[r].AsX(), rs[r].AsX())
		})
		rs = m.invert(rs)
		c.each(2, func(a at) {
			g, b := a.load(gamma), a.load(beta)
			for r, row := range from {
				v := a.load(row)
				VSUBPS(mu[r], v, v)
				VMULPS(rs[r], v, v)
				VFMADD213PS(b, g, v)
				a.store(v, to[r])
			}
		})
		mu.all(func(r int) {
			VMOVSS(mu[r].AsX(), Mem{Base: mean, Disp: 4 * r})
			VMOVSS(rs[r].AsX(), Mem{Base: rstd, Disp: 4 * r})
		})
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
