package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

func (m *isa) glu() {
	m.text("glu", "func(y, g []float32, rows, w int)", ".")
	y, a, rows, w := ptr("y"), ptr("g"), integer("rows"), integer("w")
	c, bytes := m.columns(w), bytesOf(w)
	twice, b := GP64(), GP64()
	LEAQ(Mem{Base: a, Index: bytes, Scale: 1}, b)
	LEAQ(Mem{Base: bytes, Index: bytes, Scale: 1}, twice)
	m.rows(rows, func() {
		c.each(1, func(e at) {
			_, below, top := m.sigmoid(e.load(b))
			VMULPS(e.load(a), top, top)
			VDIVPS(below, top, top)
			e.store(top, y)
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
		c.each(1, func(j at) {
			e, below, top := m.sigmoid(j.load(b))
			q, v := m.constant(1), m.vec()
			VDIVPS(below, q, q)
			VMULPS(q, j.load(dy), v)
			VMULPS(v, top, top)
			j.store(top, da)
			VMULPS(q, e, e)
			VMULPS(v, e, e)
			VMULPS(j.load(a), e, e)
			j.store(e, db)
		})
	}, append(by(twice, a, b, da, db), by(bytes, dy)...)...)
	ret()
}

const (
	geluSlope = 2 * 0.7978845608 // gelu(x) = x·sigmoid(geluSlope·(x + geluCube·x³))
	geluCube  = 0.044715
)

// geluArgument returns x² and the argument of gelu's sigmoid.
func (m *isa) geluArgument(x VecVirtual) (square, u VecVirtual) {
	square, u = m.vec(), m.vec()
	VMULPS(x, x, square)
	m.mulC(geluCube, square, u)
	m.addC(1, u, u)
	VMULPS(x, u, u)
	m.mulC(geluSlope, u, u)
	return square, u
}

func (m *isa) gelu() {
	m.text("gelu", "func(y, x []float32)", ", with (1+tanh u)/2 as sigmoid(2u).")
	y, x, c := ptr("y"), ptr("x"), m.columns(length("x"))
	c.each(1, func(a at) {
		v := a.load(x)
		_, u := m.geluArgument(v)
		_, below, top := m.sigmoid(u)
		VMULPS(v, top, top)
		VDIVPS(below, top, top)
		a.store(top, y)
	})
	ret()
}

func (m *isa) geluGrad() {
	m.text("geluGrad", "func(dx, dy, x []float32)", ", with (1+tanh u)/2 as sigmoid(2u).")
	dx, dy, x, c := ptr("dx"), ptr("dy"), ptr("x"), m.columns(length("x"))
	c.each(1, func(a at) {
		v := a.load(x)
		square, u := m.geluArgument(v)
		e, below, top := m.sigmoid(u)
		q := m.constant(1)
		VDIVPS(below, q, q)
		VMULPS(q, top, top) // s
		VMULPS(q, e, e)
		VMULPS(q, e, e) // s(1-s)
		m.mulC(3*geluCube, square, square)
		m.addC(1, square, square)
		m.mulC(geluSlope, square, square) // du/dx
		VMULPS(v, e, e)
		VFMADD213PS(top, square, e)
		VMULPS(a.load(dy), e, e)
		a.store(e, dx)
	})
	ret()
}
