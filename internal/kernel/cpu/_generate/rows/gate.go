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
		_, below, top := m.sigmoidOne(u)
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
		e, below, top := m.sigmoidOne(u)
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

func (m *isa) sigmoidOne(x VecVirtual) (e, below, top VecVirtual) {
	es, belows, tops := m.sigmoid(vecs{x})
	return es[0], belows[0], tops[0]
}
