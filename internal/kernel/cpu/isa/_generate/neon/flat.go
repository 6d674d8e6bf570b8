package main

import "math"

// Passes over flat slices, and over rows of independent columns.

// flat walks a slice whose length is the named parameter's.
func (f *fn) flat(of string) *columns { return f.columns(f.length(of)) }

func flatPasses() {
	f := function("expNEON", "expGo.", "[]float32: y x")
	y, x, c := f.arg("y"), f.arg("x"), f.flat("x")
	f.needExp()
	c.each(func(p part) {
		v := p.load(x)
		f.exp(v)
		p.store(v, y)
		f.free(v)
	})
	f.ret()

	f = function("addNEON", "addGo.", "[]float32: y x")
	y, x, c = f.arg("y"), f.arg("x"), f.flat("x")
	c.each(func(p part) {
		a, b := p.load(y), p.load(x)
		f.fadd(a, a, b)
		p.store(a, y)
		f.free(a, b)
	})
	f.ret()

	f = function("add4NEON", "add4Go.", "[]float32: y a b c")
	y, a, b, d := f.arg("y"), f.arg("a"), f.arg("b"), f.arg("c")
	c = f.flat("c")
	c.each(func(p part) {
		v, w, s, t := p.load(y), p.load(a), p.load(b), p.load(d)
		f.fadd(v, v, w)
		f.fadd(s, s, t)
		f.fadd(v, v, s)
		p.store(v, y)
		f.free(v, w, s, t)
	})
	f.ret()

	f = function("scaleNEON", "scaleGo.", "[]float32: y", "float32: by")
	y, c = f.arg("y"), f.flat("y")
	by := f.splatArg("by")
	c.each(func(p part) {
		v := p.load(y)
		f.fmul(v, v, by)
		p.store(v, y)
		f.free(v)
	})
	f.ret()

	f = function("queryNEON", "queryGo.", "[]float32: q node graph load", "float32: capacity")
	q, node, graph, load := f.arg("q"), f.arg("node"), f.arg("graph"), f.arg("load")
	c = f.flat("q")
	left := f.splatArg("capacity")
	c.each(func(p part) {
		v, w, l := p.load(node), p.load(graph), p.load(load)
		f.fadd(v, v, w)
		f.fmla(v, l, left)
		p.store(v, q)
		f.free(v, w, l)
	})
	f.ret()

	sumSquares()
	adamw()
	muonPasses()
	gelus()
	glus()
}

// sumSquares adds up in float64: two sums of two lanes.
func sumSquares() {
	f := function("sumSquaresNEON", "sumSquaresGo, in four chains.", "[]float32: x", "->: float64")
	x, c := f.arg("x"), f.flat("x")
	low, high := f.v(), f.v()
	f.clear(low)
	f.clear(high)
	c.each(func(p part) {
		v := p.load(x)
		a, b := f.v(), f.v()
		f.fcvtl(a, v)
		f.fcvtl2(b, v)
		f.fmlaWide(low, a, a)
		f.fmlaWide(high, b, b)
		f.free(v, a, b)
	})
	f.faddWide(low, low, high)
	f.faddpScalarWide(low, low)
	f.line("FMOVD F%d, ret+%d(FP)", low, f.param("ret").offset)
	f.ret()
}

// flushed makes zero of what is smaller than least, and keeps a NaN.
func (f *fn) flushed(v, least V) {
	t := f.v()
	f.fabs(t, v)
	f.fcmgt(t, least, t)
	f.bic(v, v, t)
	f.free(t)
}

func adamw() {
	f := function("adamwNEON", "adamwGo, one float at a time in arguments.", "[]float32: w m v g",
		"float32: lr beta1 beta2 eps decay correct1 correct2 scale")
	w, m, v, g := f.arg("w"), f.arg("m"), f.arg("v"), f.arg("g")
	c := f.flat("w")
	lr, b1, b2, eps, decay := f.splatArg("lr"), f.splatArg("beta1"), f.splatArg("beta2"), f.splatArg("eps"), f.splatArg("decay")
	c1, c2, scale := f.splatArg("correct1"), f.splatArg("correct2"), f.splatArg("scale")
	r1, r2, least := f.v(), f.v(), f.float(1e-30)
	f.fsub(r1, f.float(1), b1)
	f.fsub(r2, f.float(1), b2)
	c.each(func(p part) {
		x, mi, vi, wi := p.load(g), p.load(m), p.load(v), p.load(w)
		t := f.v()
		f.fmul(x, x, scale)
		f.fmul(mi, mi, b1)
		f.fmla(mi, x, r1)
		f.flushed(mi, least)
		p.store(mi, m)
		f.fmul(vi, vi, b2)
		f.fmul(t, x, r2)
		f.fmla(vi, t, x)
		f.flushed(vi, least)
		p.store(vi, v)
		f.fmul(vi, vi, c2)
		f.fsqrt(vi, vi)
		f.fadd(vi, vi, eps)
		f.fmul(mi, mi, c1)
		f.fdiv(mi, mi, vi)
		f.fmla(mi, wi, decay)
		f.fmls(wi, mi, lr)
		p.store(wi, w)
		f.free(x, mi, vi, wi, t)
	})
	f.ret()
}

// muonPasses round after every operation, as plain Go does, so that the bits are its own.
func muonPasses() {
	f := function("momentumNEON", "momentumGo, with its bits.", "[]float32: x m g", "float32: beta scale")
	x, m, g, c := f.arg("x"), f.arg("m"), f.arg("g"), f.flat("x")
	beta, scale, least := f.splatArg("beta"), f.splatArg("scale"), f.float(1e-16)
	c.each(func(p part) {
		gi, mi := p.load(g), p.load(m)
		t := f.v()
		f.fmul(gi, gi, scale)
		f.fmul(mi, mi, beta)
		f.fadd(mi, mi, gi)
		f.flushed(mi, least)
		p.store(mi, m)
		f.fmul(t, mi, beta)
		f.fadd(t, gi, t)
		f.flushed(t, least)
		p.store(t, x)
		f.free(gi, mi, t)
	})
	f.ret()

	f = function("descendNEON", "descendGo, with its bits.", "[]float32: w x", "float32: lr step decay")
	w, y, c := f.arg("w"), f.arg("x"), f.flat("w")
	lr, step, decay := f.splatArg("lr"), f.splatArg("step"), f.splatArg("decay")
	c.each(func(p part) {
		a, b := p.load(w), p.load(y)
		t := f.v()
		f.fmul(b, b, step)
		f.fmul(t, a, decay)
		f.fadd(b, b, t)
		f.fmul(b, b, lr)
		f.fsub(a, a, b)
		p.store(a, w)
		f.free(a, b, t)
	})
	f.ret()
}

const (
	geluSlope = 2 * 0.7978845608 // gelu(x) = x/(1 + e^-u) with u = geluSlope·(x + geluCube·x³)
	geluCube  = 0.044715
	faint     = 40 * math.Ln2 // a sigmoid below 2^-40 is taken as zero (../rows/gate.go says why)
)

func (f *fn) needGelu() {
	f.needExp()
	f.need(-geluSlope*geluCube, -geluSlope, 80, -80, faint)
}

// geluParts returns x², e = e^-u and s = 1/(1+e), zero where s is faint. x stays.
func (f *fn) geluParts(x V) (square, e, s V) {
	square, e, s = f.v(), f.v(), f.v()
	far := f.v()
	f.fmul(square, x, x)
	f.move(e, f.float(-geluSlope))
	f.fmla(e, square, f.float(-geluSlope*geluCube))
	f.fmul(e, e, x) // -u
	f.fmin(e, e, f.float(80))
	f.fmax(e, e, f.float(-80))
	f.fcmgt(far, e, f.float(faint)) // false for NaN
	f.exp(e)
	f.fadd(s, e, f.float(1))
	f.fdiv(s, f.float(1), s)
	f.bic(s, s, far)
	f.free(far)
	return square, e, s
}

func gelus() {
	f := function("geluNEON", "geluGo, with (1+tanh u)/2 as sigmoid(2u).", "[]float32: y x")
	y, x, c := f.arg("y"), f.arg("x"), f.flat("x")
	f.needGelu()
	c.each(func(p part) {
		v := p.load(x)
		square, e, s := f.geluParts(v)
		f.fmul(s, s, v)
		p.store(s, y)
		f.free(v, square, e, s)
	})
	f.ret()

	f = function("geluGradNEON", "geluGradGo, with (1+tanh u)/2 as sigmoid(2u).", "[]float32: dx dy x")
	dx, dy, x := f.arg("dx"), f.arg("dy"), f.arg("x")
	c = f.flat("x")
	f.needGelu()
	f.need(3*geluCube*geluSlope, geluSlope)
	c.each(func(p part) {
		v := p.load(x)
		square, e, s := f.geluParts(v)
		f.fmul(e, e, s) // 1-s
		t := f.v()
		f.move(t, f.float(geluSlope))
		f.fmla(t, square, f.float(3*geluCube*geluSlope)) // du/dx
		f.fmul(t, t, v)
		f.fmul(e, e, s)
		f.fmla(s, t, e)
		g := p.load(dy)
		f.fmul(s, s, g)
		p.store(s, dx)
		f.free(v, square, e, s, t, g)
	})
	f.ret()
}

func glus() {
	f := function("gluNEON", "gluGo.", "[]float32: y g", "int: rows w")
	y, a, rows, w := f.arg("y"), f.arg("g"), f.arg("rows"), f.arg("w")
	c := f.columns(w)
	b, twice := f.r(), f.r()
	f.line("ADD %s, %s, %s", c.bytes, a, b)
	f.line("LSL $1, %s, %s", c.bytes, twice)
	f.needExp()
	f.bits(signBit)
	f.rows(rows, func() {
		c.each(func(p part) {
			e, below, top := f.sigmoid(p.load(b))
			v := p.load(a)
			f.fmul(top, top, v)
			f.fdiv(top, top, below)
			p.store(top, y)
			f.free(e, below, top, v)
		})
	}, f.by(twice, a, b), f.by(c.bytes, y))
	f.ret()

	f = function("gluGradNEON", "gluGradGo.", "[]float32: dg dy g", "int: rows w")
	da, dy, g, rows, w := f.arg("dg"), f.arg("dy"), f.arg("g"), f.arg("rows"), f.arg("w")
	c = f.columns(w)
	b, db, twice := f.r(), f.r(), f.r()
	f.line("ADD %s, %s, %s", c.bytes, g, b)
	f.line("ADD %s, %s, %s", c.bytes, da, db)
	f.line("LSL $1, %s, %s", c.bytes, twice)
	f.needExp()
	f.bits(signBit)
	f.rows(rows, func() {
		c.each(func(p part) {
			e, below, top := f.sigmoid(p.load(b))
			q, v, u := f.v(), p.load(dy), p.load(g)
			f.fdiv(q, f.float(1), below)
			f.fmul(v, v, q)
			f.fmul(top, top, v)
			f.fmul(e, e, q)
			f.fmul(e, e, v)
			f.fmul(e, e, u)
			p.store(top, da)
			p.store(e, db)
			f.free(e, below, top, q, v, u)
		})
	}, f.by(twice, g, b, da, db), f.by(c.bytes, dy))
	f.ret()
}
