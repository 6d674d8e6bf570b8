package main

import "math"

// Softmaxes and the pointer's scores: rows of n columns, ld apart, whose padding becomes zero.

func softmaxes() {
	softmaxBias()
	softmaxBiasGrad()
	softmaxGrad()
	softmaxMask()
	pointer()
	pointerGrad()
}

// allowedOf returns all ones in the lanes whose bit of the row's mask is set and that are inside
// the row. A group of four columns never crosses a word of `width` bits.
func (p part) allowedOf(mask R, width int) V {
	f, v := p.f, p.f.v()
	j, at := f.r(), f.r()
	f.line("LSR $2, %s, %s", p.index, j)
	switch width {
	case 64:
		f.line("LSR $6, %s, %s", j, at)
		f.line("LSL $3, %s, %s", at, at)
		f.line("MOVD (%s)(%s), %s", mask, at, at)
	case 32:
		f.line("LSR $5, %s, %s", j, at)
		f.line("LSL $2, %s, %s", at, at)
		f.line("MOVWU (%s)(%s), %s", mask, at, at)
		f.line("AND $31, %s, %s", j, j)
	default:
		f.line("LSR $4, %s, %s", j, at)
		f.line("LSL $1, %s, %s", at, at)
		f.line("MOVHU (%s)(%s), %s", mask, at, at)
		f.line("AND $15, %s, %s", j, j)
	}
	f.line("LSR %s, %s, %s", j, at, at)
	f.splatWord(v, at)
	f.cmtst(v, v, f.lanes(true))
	p.inside(v)
	f.freeR(j, at)
	return v
}

// elsewhere puts low where ok has no bits.
func (f *fn) elsewhere(v, ok, low V) {
	t := f.v()
	f.move(t, ok)
	f.bsl(t, v, low)
	f.move(v, t)
	f.free(t)
}

func softmaxBias() {
	f := function("softmaxBiasNEON", "softmaxBiasGo, with sums in four lanes.", "[]float32: p dist", "int: rows n ld", "float32: scale slope")
	x, dist, rows, n, ld := f.arg("p"), f.arg("dist"), f.arg("rows"), f.arg("n"), f.arg("ld")
	c, stride := f.columns(n), f.bytesOf(ld)
	scale, slope := f.splatArg("scale"), f.splatArg("slope")
	f.needExp()
	low := f.float(math.Inf(-1))
	f.rows(rows, func() {
		top, sum := f.v(), f.v()
		f.move(top, low)
		c.each(func(p part) {
			v, d := p.load(x), p.load(dist)
			f.fmul(v, v, scale)
			f.fmls(v, d, slope)
			p.store(v, x)
			if p.last {
				f.elsewhere(v, p.ends, low)
			}
			f.fmax(top, top, v)
			f.free(v, d)
		})
		f.top(top)
		f.clear(sum)
		c.each(func(p part) {
			v := p.load(x)
			f.fsub(v, v, top)
			f.exp(v)
			p.inside(v)
			f.fadd(sum, sum, v)
			p.store(v, x)
			f.free(v)
		})
		f.sum(sum)
		f.fdiv(sum, f.float(1), sum)
		c.each(func(p part) {
			v := p.load(x)
			f.fmul(v, v, sum)
			p.store(v, x)
			f.free(v)
		})
		c.pad(x, stride)
		f.free(top, sum)
	}, f.by(stride, x, dist))
	f.ret()
}

func softmaxBiasGrad() {
	f := function("softmaxBiasGradNEON", "softmaxBiasGradGo; dslope is summed by lanes over all rows, and joined once.",
		"[]float32: dp p dist", "int: rows n ld", "float32: scale", "->: float32")
	dp, x, dist, rows, n, ld := f.arg("dp"), f.arg("p"), f.arg("dist"), f.arg("rows"), f.arg("n"), f.arg("ld")
	c, stride := f.columns(n), f.bytesOf(ld)
	scale, slope := f.splatArg("scale"), f.v()
	f.clear(slope)
	f.rows(rows, func() {
		dot := f.v()
		f.clear(dot)
		c.each(func(p part) {
			v, w := p.load(dp), p.load(x)
			f.fmla(dot, v, w)
			f.free(v, w)
		})
		f.sum(dot)
		c.each(func(p part) {
			v, w, d := p.load(dp), p.load(x), p.load(dist)
			f.fsub(v, v, dot)
			p.inside(v)
			f.fmul(v, v, w)
			f.fmls(slope, v, d)
			f.fmul(v, v, scale)
			p.store(v, dp)
			f.free(v, w, d)
		})
		c.pad(dp, stride)
		f.free(dot)
	}, f.by(stride, dp, x, dist))
	f.sum(slope)
	f.line("FMOVS F%d, ret+%d(FP)", slope, f.param("ret").offset)
	f.ret()
}

func softmaxGrad() {
	f := function("softmaxGradNEON", "softmaxGradGo, with sums in four lanes.", "[]float32: dp p", "int: rows n ld", "float32: scale")
	dp, x, rows, n, ld := f.arg("dp"), f.arg("p"), f.arg("rows"), f.arg("n"), f.arg("ld")
	c, stride := f.columns(n), f.bytesOf(ld)
	scale := f.splatArg("scale")
	f.rows(rows, func() {
		dot := f.v()
		f.clear(dot)
		c.each(func(p part) {
			v, w := p.load(dp), p.load(x)
			f.fmla(dot, v, w)
			f.free(v, w)
		})
		f.sum(dot)
		c.each(func(p part) {
			v, w := p.load(dp), p.load(x)
			f.fsub(v, v, dot)
			f.fmul(v, v, w)
			f.fmul(v, v, scale)
			p.store(v, dp)
			f.free(v, w)
		})
		c.pad(dp, stride)
		f.free(dot)
	}, f.by(stride, dp, x))
	f.ret()
}

func softmaxMask() {
	f := function("softmaxMaskNEON", "softmaxMaskGo, with sums in four lanes.", "[]float32: p", "[]uint64: mask", "int: rows n ld words", "float32: scale")
	x, mask, rows, n, ld, words := f.arg("p"), f.arg("mask"), f.arg("rows"), f.arg("n"), f.arg("ld"), f.arg("words")
	c, stride := f.columns(n), f.bytesOf(ld)
	f.line("LSL $3, %s, %s", words, words)
	scale := f.splatArg("scale")
	f.needExp()
	f.lanes(true)
	low := f.float(math.Inf(-1))
	f.rows(rows, func() {
		top, sum := f.v(), f.v()
		f.move(top, low)
		c.each(func(p part) {
			v, ok := p.load(x), p.allowedOf(mask, 64)
			f.fmul(v, v, scale)
			f.elsewhere(v, ok, low)
			f.fmax(top, top, v)
			f.free(v, ok)
		})
		f.top(top)
		f.clear(sum)
		c.each(func(p part) {
			v, ok := p.load(x), p.allowedOf(mask, 64)
			f.fmul(v, v, scale)
			f.fsub(v, v, top)
			f.exp(v)
			f.and(v, v, ok)
			f.fadd(sum, sum, v)
			p.store(v, x)
			f.free(v, ok)
		})
		f.sum(sum)
		f.fdiv(sum, f.float(1), sum)
		c.each(func(p part) {
			v := p.load(x)
			f.fmul(v, v, sum)
			p.store(v, x)
			f.free(v)
		})
		c.pad(x, stride)
		f.free(top, sum)
	}, f.by(stride, x), f.by(words, mask))
	f.ret()
}

func pointer() {
	f := function("pointerNEON", "pointerGo, with sums in four lanes.", "[]float32: p lp th ent u", "[]uint64: mask", "int: rows n ld words", "float32: scale mult")
	pr, lp, th, ent, u, mask := f.arg("p"), f.arg("lp"), f.arg("th"), f.arg("ent"), f.arg("u"), f.arg("mask")
	rows, n, ld, words := f.arg("rows"), f.arg("n"), f.arg("ld"), f.arg("words")
	c, stride := f.columns(n), f.bytesOf(ld)
	f.line("LSL $3, %s, %s", words, words)
	scale, mult := f.splatArg("scale"), f.splatArg("mult")
	f.needTanh()
	f.lanes(true)
	low := f.float(math.Inf(-1))
	f.rows(rows, func() {
		top, sum := f.v(), f.v()
		f.move(top, low)
		c.each(func(p part) {
			v, ok := p.load(u), p.allowedOf(mask, 64)
			f.fmul(v, v, scale)
			f.and(v, v, ok)
			f.tanh(v)
			p.store(v, th)
			f.fmul(v, v, mult)
			f.elsewhere(v, ok, low)
			f.fmax(top, top, v)
			f.free(v, ok)
		})
		f.top(top)
		f.clear(sum)
		c.each(func(p part) {
			v, ok := p.load(th), p.allowedOf(mask, 64)
			f.fmul(v, v, mult)
			f.fsub(v, v, top)
			f.exp(v)
			f.and(v, v, ok)
			f.fadd(sum, sum, v)
			f.free(v, ok)
		})
		f.sum(sum)
		f.log(sum) // apart from top: their sum would round lp, and p near 1, to top's last digit
		entropy := f.v()
		f.clear(entropy)
		c.each(func(p part) {
			v, ok := p.load(th), p.allowedOf(mask, 64)
			f.fmul(v, v, mult)
			f.fsub(v, v, top)
			f.fsub(v, v, sum)
			f.and(v, v, ok)
			p.store(v, lp)
			e := f.v()
			f.move(e, v)
			f.exp(e)
			f.and(e, e, ok)
			p.store(e, pr)
			f.fmls(entropy, e, v)
			f.free(v, ok, e)
		})
		f.sum(entropy)
		f.strLane(entropy, 0, ent)
		for _, r := range []R{pr, lp, th} {
			c.pad(r, stride)
		}
		f.free(top, sum, entropy)
	}, f.by(stride, pr, lp, th, u), f.by(words, mask))
	f.ret()
}

func pointerGrad() {
	f := function("pointerGradNEON", "pointerGradGo.", "[]float32: du p lp th ent wa we", "[]int32: act", "int: rows n ld", "float32: scale mult")
	du, pr, lp, th, ent := f.arg("du"), f.arg("p"), f.arg("lp"), f.arg("th"), f.arg("ent")
	wa, we, act, rows, ld := f.arg("wa"), f.arg("we"), f.arg("act"), f.arg("rows"), f.arg("ld")
	c := f.columns(ld)
	scale, mult := f.splatArg("scale"), f.splatArg("mult")
	f.need(1)
	lanes := f.lanes(false)
	j := f.r()
	f.rows(rows, func() {
		a, e, h, chosen := f.v(), f.v(), f.v(), f.v()
		for _, s := range []struct {
			v V
			r R
		}{{a, wa}, {e, we}, {h, ent}, {chosen, act}} {
			f.splatMem(s.v, s.r)
			f.line("ADD $4, %s, %s", s.r, s.r)
		}
		c.each(func(p part) {
			q, l, t := p.load(pr), p.load(lp), p.load(th)
			at, z := f.v(), f.v()
			f.line("LSR $2, %s, %s", p.index, j)
			f.splatWord(at, j)
			f.add(at, at, lanes)
			f.cmeq(at, at, chosen)
			f.and(at, at, a) // a where j is the action
			f.fadd(l, l, h)
			f.move(z, a)
			f.fmla(z, l, e)
			f.fmls(at, q, z)
			f.fmul(at, at, mult)
			f.move(z, f.float(1))
			f.fmls(z, t, t)
			f.fmul(at, at, z)
			f.fmul(at, at, scale)
			p.store(at, du)
			f.free(q, l, t, at, z)
		})
		f.free(a, e, h, chosen)
	}, f.by(c.bytes, du, pr, lp, th))
	f.ret()
}
