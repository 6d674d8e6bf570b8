package main

import "math"

// Causal attention's softmax and dropout.

func sequences() {
	softmaxCausal()
	softmaxCausalGrad()
	keep()
	drop()
}

// reach follows the columns that a row looks at: from begin up to, not including, stop.
type reach struct {
	f           *fn
	first, from R
	stop        R // the row's
	begin, end  V
	j           R
}

func (f *fn) reach() *reach {
	r := &reach{f: f, first: f.arg("first"), from: f.arg("from"), stop: f.arg("end"), begin: f.v(), end: f.v(), j: f.r()}
	f.lanes(false)
	return r
}

// row loads the bounds of the row under way.
func (r *reach) row() {
	f := r.f
	f.line("MOVW (%s), %s", r.first, r.j)
	f.line("SUB %s, %s, %s", r.from, r.j, r.j)
	f.splatWord(r.begin, r.j)
	f.splatWord(r.end, r.stop)
}

// next moves on to the row below.
func (r *reach) next() {
	r.f.line("ADD $4, %s, %s", r.first, r.first)
	r.f.line("ADD $1, %s, %s", r.stop, r.stop)
}

// within returns all ones in the lanes that the row looks at.
func (r *reach) within(p part) V {
	f, v, t := r.f, r.f.v(), r.f.v()
	f.line("LSR $2, %s, %s", p.index, r.j)
	f.splatWord(v, r.j)
	f.add(v, v, f.lanes(false))
	f.cmgt(t, r.end, v)
	f.cmge(v, v, r.begin)
	f.and(v, v, t)
	p.inside(v)
	f.free(t)
	return v
}

func softmaxCausal() {
	f := function("softmaxCausalNEON", "softmaxCausalGo, with sums in four lanes.", "[]float32: p logSum", "[]int32: first", "[]uint16: mask",
		"int: rows from end n ld words", "float32: scale keep")
	x, logSum, mask := f.arg("p"), f.arg("logSum"), f.arg("mask")
	reach := f.reach()
	rows, n, ld, words := f.arg("rows"), f.arg("n"), f.arg("ld"), f.arg("words")
	c, stride := f.columns(n), f.bytesOf(ld)
	f.line("LSL $1, %s, %s", words, words)
	scale, kept := f.splatArg("scale"), f.splatArg("keep")
	f.needExp()
	f.lanes(true)
	low := f.float(math.Inf(-1))
	f.rows(rows, func() {
		reach.row()
		top, sum := f.v(), f.v()
		f.move(top, low)
		c.each(func(p part) {
			v, ok := p.load(x), reach.within(p)
			f.fmul(v, v, scale)
			f.elsewhere(v, ok, low)
			f.fmax(top, top, v)
			f.free(v, ok)
		})
		f.top(top)
		f.clear(sum)
		c.each(func(p part) {
			v, ok := p.load(x), reach.within(p)
			f.fmul(v, v, scale)
			f.fsub(v, v, top)
			f.exp(v)
			f.and(v, v, ok)
			f.fadd(sum, sum, v)
			p.store(v, x)
			f.free(v, ok)
		})
		f.sum(sum)
		by := f.v()
		f.fdiv(by, kept, sum)
		f.log(sum)
		f.fadd(sum, sum, top)
		f.strLane(sum, 0, logSum)
		c.each(func(p part) {
			v, ok := p.load(x), p.allowedOf(mask, 16)
			f.fmul(v, v, by)
			f.and(v, v, ok)
			p.store(v, x)
			f.free(v, ok)
		})
		f.free(top, sum, by)
		reach.next()
	}, f.by(stride, x), f.by(words, mask))
	f.ret()
}

func softmaxCausalGrad() {
	f := function("softmaxCausalGradNEON", "softmaxCausalGradGo.", "[]float32: ds p logSum dots", "[]int32: first", "[]uint16: mask",
		"int: rows from end n ld words", "float32: scale keep")
	ds, x, logSum, dots, mask := f.arg("ds"), f.arg("p"), f.arg("logSum"), f.arg("dots"), f.arg("mask")
	reach := f.reach()
	rows, n, ld, words := f.arg("rows"), f.arg("n"), f.arg("ld"), f.arg("words")
	c, stride := f.columns(n), f.bytesOf(ld)
	f.line("LSL $1, %s, %s", words, words)
	scale, kept := f.splatArg("scale"), f.splatArg("keep")
	f.needExp()
	f.lanes(true)
	f.rows(rows, func() {
		reach.row()
		z, dot := f.v(), f.v()
		f.splatMem(z, logSum)
		f.splatMem(dot, dots)
		f.line("ADD $4, %s, %s", logSum, logSum)
		f.line("ADD $4, %s, %s", dots, dots)
		c.each(func(p part) {
			v, ok, on, d := p.load(x), reach.within(p), p.allowedOf(mask, 16), p.load(ds)
			f.fmul(v, v, scale)
			f.fsub(v, v, z)
			f.exp(v)
			f.and(v, v, ok)
			f.fmul(d, d, kept)
			f.and(d, d, on)
			f.fsub(d, d, dot)
			f.fmul(d, d, scale)
			f.fmul(d, d, v)
			p.store(d, ds)
			f.fmul(v, v, kept)
			f.and(v, v, on)
			p.store(v, x)
			f.free(v, ok, on, d)
		})
		f.free(z, dot)
		reach.next()
	}, f.by(stride, ds, x), f.by(words, mask))
	f.ret()
}

// philox takes four counters side by side, c[i] their words i, through the rounds whose keys begin
// at pk; four is the register with that number.
func (f *fn) philox(c []V, rounds int, m0, m1 V, pk, four R) {
	for range rounds {
		t := f.vs(6)
		f.umull(t[0], c[0], m0)
		f.umull2(t[1], c[0], m0)
		f.umull(t[2], c[2], m1)
		f.umull2(t[3], c[2], m1)
		f.splatFrom(t[4], pk, four)
		f.splatFrom(t[5], pk, four)
		f.eor(t[4], t[4], c[1])
		f.eor(t[5], t[5], c[3])
		f.uzp1(c[3], t[0], t[1]) // low words of the first product
		f.uzp2(t[0], t[0], t[1])
		f.uzp1(c[1], t[2], t[3])
		f.uzp2(t[2], t[2], t[3])
		f.eor(c[0], t[2], t[4])
		f.eor(c[2], t[0], t[5])
		f.free(t...)
	}
}

// keep runs four groups side by side, one per lane, through the call of each.
func keep() {
	f := function("keepNEON", "keepGo, four groups at a time.", "[]uint32: dst draws rounds", "uint32: low high purpose threshold")
	dst, draws, keys := f.arg("dst"), f.arg("draws"), f.arg("rounds")
	count := f.length("draws")
	splat := func(name string) V {
		v, r := f.v(), f.arg(name)
		f.splatWord(v, r)
		f.freeR(r)
		return v
	}
	low, high, purpose, threshold := splat("low"), splat("high"), splat("purpose"), splat("threshold")
	m0, m1 := f.bits(0xD2511F53), f.bits(0xCD9E8D57)
	pk, four := f.r(), f.r()
	f.line("MOVD $4, %s", four)
	f.line("LSR $2, %s, %s", count, count)
	// rotated has in bit c of a word what v has in bit c + by
	rotated := func(v V, by uint32) V {
		r, t := f.v(), f.v()
		f.ushr(t, v, by)
		f.shl(r, v, 32-by)
		f.orr(r, r, t)
		f.free(t)
		return r
	}
	f.rows(count, func() {
		words := f.vs(4)
		f.move(words[0], low)
		f.move(words[1], high)
		f.ldr(words[2], draws, 0)
		f.move(words[3], purpose)
		f.line("MOVD %s, %s", keys, pk)
		f.philox(words, 7, m0, m1, pk, four)
		keep := f.v()
		f.cmeq(keep, low, low) // all ones
		for b := range uint32(16) {
			var r V
			switch b / 4 {
			case 0:
				r = rotated(words[b%4], 16)
			case 1:
				r = rotated(words[b%4], 24)
			case 2:
				r = rotated(words[b%4], 8)
				other := rotated(words[(b+1)%4], 16)
				f.eor(r, r, other)
				f.free(other)
			default:
				r = f.v()
				f.move(r, words[b%4])
			}
			t, any := f.v(), f.v()
			f.shl(t, threshold, 31-b)
			f.sshr(t, t, 31) // all ones where the threshold has the bit
			f.orr(any, keep, r)
			f.and(keep, keep, r)
			f.bsl(t, keep, any)
			f.move(keep, t)
			f.free(r, t, any)
		}
		f.str(keep, dst, 0)
		f.line("ADD $16, %s, %s", draws, draws)
		f.line("ADD $16, %s, %s", dst, dst)
		f.free(words...)
		f.free(keep)
	})
	f.ret()
}

func drop() {
	f := function("dropNEON", "dropGo.", "[]float32: y x residual", "[]uint32: mask", "int: rows n words", "float32: scale")
	y, x, residual, mask := f.arg("y"), f.arg("x"), f.arg("residual"), f.arg("mask")
	rows, n, words, with := f.arg("rows"), f.arg("n"), f.arg("words"), f.length("residual")
	c := f.columns(n)
	f.line("LSL $2, %s, %s", words, words)
	scale := f.splatArg("scale")
	f.lanes(true)
	pass := func(onto bool) {
		c.each(func(p part) {
			v, ok := p.load(x), p.allowedOf(mask, 32)
			f.fmul(v, v, scale)
			f.and(v, v, ok)
			if onto {
				w := p.load(residual)
				f.fadd(v, v, w)
				f.free(w)
			}
			p.store(v, y)
			f.free(v, ok)
		})
	}
	f.rows(rows, func() {
		alone, done := f.label("alone"), f.label("dropped")
		f.line("CBZ %s, %s", with, alone)
		pass(true)
		f.line("ADD %s, %s, %s", c.bytes, residual, residual)
		f.line("B %s", done)
		f.place(alone)
		pass(false)
		f.place(done)
	}, f.by(c.bytes, x, y), f.by(words, mask))
	f.ret()
}
