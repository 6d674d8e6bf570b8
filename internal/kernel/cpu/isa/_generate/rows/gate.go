package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// loads reads the vectors of a group from one row.
func loads(group []at, row Register) vecs {
	var out vecs
	for _, a := range group {
		out = append(out, a.load(row))
	}
	return out
}

func (m *isa) glu() {
	m.text("glu", "func(y, g []float32, rows, w int)", ".")
	y, a, rows, w := ptr("y"), ptr("g"), integer("rows"), integer("w")
	c, bytes := m.columns(w), bytesOf(w)
	twice, b := GP64(), GP64()
	LEAQ(Mem{Base: a, Index: bytes, Scale: 1}, b)
	LEAQ(Mem{Base: bytes, Index: bytes, Scale: 1}, twice)
	m.rows(rows, func() {
		c.groups(m.abreast(), func(group []at) {
			_, below, top := m.sigmoid(loads(group, b))
			top.all(func(i int) { VMULPS(group[i].load(a), top[i], top[i]) })
			top.all(func(i int) { VDIVPS(below[i], top[i], top[i]) })
			top.all(func(i int) { group[i].store(top[i], y) })
		})
	}, append(by(twice, a, b), by(bytes, y)...)...)
	ret()
}

func (m *isa) gluGrad() {
	m.text("gluGrad", "func(dg, dy, g []float32, rows, w int)", ".")
	da, dy, a, rows, w := ptr("dg"), ptr("dy"), ptr("g"), integer("rows"), integer("w")
	c, bytes := m.columns(w), bytesOf(w)
	twice, b, db := GP64(), GP64(), GP64()
	LEAQ(Mem{Base: a, Index: bytes, Scale: 1}, b)
	LEAQ(Mem{Base: da, Index: bytes, Scale: 1}, db)
	LEAQ(Mem{Base: bytes, Index: bytes, Scale: 1}, twice)
	m.rows(rows, func() {
		c.groups(m.abreast(), func(group []at) {
			e, below, top := m.sigmoid(loads(group, b))
			e.all(func(i int) {
				q, v := m.constant(1), m.vec()
				VDIVPS(below[i], q, q)
				VMULPS(q, group[i].load(dy), v)
				VMULPS(v, top[i], top[i])
				group[i].store(top[i], da)
				VMULPS(q, e[i], e[i])
				VMULPS(v, e[i], e[i])
				VMULPS(group[i].load(a), e[i], e[i])
				group[i].store(e[i], db)
			})
		})
	}, append(by(twice, a, b, da, db), by(bytes, dy)...)...)
	ret()
}

const (
	geluSlope = 2 * 0.7978845608 // gelu(x) = x/(1 + e^-u) with u = geluSlope·(x + geluCube·x³)
	geluCube  = 0.044715
	// A sigmoid below 2^-faint is taken as zero: against the x of other units it is nothing, but
	// multiplied on and on it ends in subnormal numbers, which slow a matrix product down several
	// times.
	faint = 40
	// farthest keeps 2^z and its reciprocal in the normal range.
	farthest = 120
)

// geluParts returns e = e^-u and s = 1/(1+e), gelu's sigmoid, with x². A minimum or maximum returns
// its first operand when one is NaN.
func (m *isa) geluParts(x vecs) (square, e, s vecs) {
	square, z := m.some(len(x)), m.some(len(x))
	x.all(func(i int) { VMULPS(x[i], x[i], square[i]) })
	x.all(func(i int) {
		VMOVAPS(square[i], z[i])
		scale := m.constant(-geluSlope * geluCube * log2e)
		m.with(VFMADD213PS, VFMADD213PS_BCST, float(-geluSlope*log2e), scale, z[i])
	})
	x.all(func(i int) { VMULPS(x[i], z[i], z[i]) })
	far, near := m.constant(farthest), m.constant(-farthest)
	x.all(func(i int) { VMINPS(z[i], far, z[i]) })
	x.all(func(i int) { VMAXPS(z[i], near, z[i]) })
	e, power := m.exp2(z)
	s = x.each(func(VecVirtual) VecVirtual { return m.constant(1) })
	x.all(func(i int) { VFMADD231PS(e[i], power[i], s[i]) })
	x.all(func(i int) { VMULPS(power[i], e[i], e[i]) })
	s = m.reciprocal(s)
	const notGreater = 10 // true for NaN
	x.all(func(i int) {
		if m.wide() {
			k := K()
			VCMPPS_BCST(U8(notGreater), float(faint), z[i], k)
			VMOVAPS_Z(s[i], k, s[i])
			return
		}
		VCMPPS(U8(notGreater), float(faint), z[i], z[i])
		VANDPS(z[i], s[i], s[i])
	})
	return square, e, s
}

// reciprocal returns 1/d of normal numbers whose reciprocals are normal: by a Newton step where the
// estimate has 14 bits.
func (m *isa) reciprocal(d vecs) vecs {
	if !m.wide() {
		return d.each(func(v VecVirtual) VecVirtual {
			q := m.constant(1)
			VDIVPS(v, q, q)
			return q
		})
	}
	r := m.some(len(d))
	d.all(func(i int) { VRCP14PS(d[i], r[i]) })
	off := d.each(func(VecVirtual) VecVirtual { return m.constant(1) })
	d.all(func(i int) { VFNMADD231PS(r[i], d[i], off[i]) })
	d.all(func(i int) { VFMADD231PS(r[i], off[i], r[i]) })
	return r
}

func (m *isa) gelu() {
	m.text("gelu", "func(y, x []float32)", ", with (1+tanh u)/2 as sigmoid(2u).")
	y, x, c := ptr("y"), ptr("x"), m.columns(length("x"))
	c.groups(m.abreast(), func(group []at) {
		v := loads(group, x)
		_, _, s := m.geluParts(v)
		v.all(func(i int) {
			VMULPS(v[i], s[i], s[i])
			group[i].store(s[i], y)
		})
	})
	ret()
}

func (m *isa) geluGrad() {
	m.text("geluGrad", "func(dx, dy, x []float32)", ", with (1+tanh u)/2 as sigmoid(2u).")
	dx, dy, x, c := ptr("dx"), ptr("dy"), ptr("x"), m.columns(length("x"))
	c.groups(m.abreast(), func(group []at) {
		v := loads(group, x)
		square, e, s := m.geluParts(v)
		v.all(func(i int) { VMULPS(s[i], e[i], e[i]) }) // 1-s
		v.all(func(i int) { m.mulC(3*geluCube*geluSlope, square[i], square[i]) })
		v.all(func(i int) { m.addC(geluSlope, square[i], square[i]) }) // du/dx
		v.all(func(i int) { VMULPS(v[i], square[i], square[i]) })
		v.all(func(i int) { VMULPS(s[i], e[i], e[i]) })
		v.all(func(i int) { VFMADD231PS(square[i], e[i], s[i]) })
		v.all(func(i int) {
			VMULPS(group[i].load(dy), s[i], s[i])
			group[i].store(s[i], dx)
		})
	})
	ret()
}

func (m *isa) expFlat() {
	m.text("exp", "func(y, x []float32)", ".")
	y, x, c := ptr("y"), ptr("x"), m.columns(length("x"))
	c.groups(m.abreast(), func(group []at) {
		e := m.exp(loads(group, x))
		e.all(func(i int) { group[i].store(e[i], y) })
	})
	ret()
}
