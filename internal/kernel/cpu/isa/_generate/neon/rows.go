package main

// Norms, sums over rows and columns, distances and the turning of a matrix.

func rowPasses() {
	norm()
	normGrad()
	colSum()
	rowDots()
	distances()
	transpose()
}

// scalarOf converts an integer register to a float in every lane.
func (f *fn) scalarOf(n R) V {
	v := f.v()
	f.line("SCVTFS %s, F%d", n, v)
	f.splatLane(v, v, 0)
	return v
}

func norm() {
	f := function("normNEON", "normGo, with sums in four lanes.", "[]float32: y mean rstd x gamma beta", "int: rows d", "float32: eps")
	y, mean, rstd, x, gamma, beta := f.arg("y"), f.arg("mean"), f.arg("rstd"), f.arg("x"), f.arg("gamma"), f.arg("beta")
	rows, d := f.arg("rows"), f.arg("d")
	c, count, eps := f.columns(d), f.scalarOf(d), f.splatArg("eps")
	f.need(1)
	f.rows(rows, func() {
		mu, rs := f.v(), f.v()
		f.clear(mu)
		c.each(func(p part) {
			v := p.load(x)
			f.fadd(mu, mu, v)
			f.free(v)
		})
		f.sum(mu)
		f.fdiv(mu, mu, count)
		f.clear(rs)
		c.each(func(p part) {
			v := p.load(x)
			f.fsub(v, v, mu)
			p.inside(v)
			f.fmla(rs, v, v)
			f.free(v)
		})
		f.sum(rs)
		f.fdiv(rs, rs, count)
		f.fadd(rs, rs, eps)
		f.fsqrt(rs, rs)
		f.fdiv(rs, f.float(1), rs)
		c.each(func(p part) {
			v, g, b := p.load(x), p.load(gamma), p.load(beta)
			f.fsub(v, v, mu)
			f.fmul(v, v, rs)
			f.fmla(b, v, g)
			p.store(b, y)
			f.free(v, g, b)
		})
		f.strLane(mu, 0, mean)
		f.strLane(rs, 0, rstd)
		f.free(mu, rs)
	}, f.by(c.bytes, x, y))
	f.ret()
}

func normGrad() {
	f := function("normGradNEON", "normGradGo, with sums in four lanes.", "[]float32: dx dgamma dbeta dy x mean rstd gamma", "int: rows d", "bool: accumulate")
	dx, dgamma, dbeta, dy := f.arg("dx"), f.arg("dgamma"), f.arg("dbeta"), f.arg("dy")
	x, mean, rstd, gamma := f.arg("x"), f.arg("mean"), f.arg("rstd"), f.arg("gamma")
	rows, d, accumulate := f.arg("rows"), f.arg("d"), f.arg("accumulate")
	c, count := f.columns(d), f.scalarOf(d)
	f.rows(rows, func() {
		mu, rs, se, seh := f.v(), f.v(), f.v(), f.v()
		f.splatMem(mu, mean)
		f.splatMem(rs, rstd)
		f.line("ADD $4, %s, %s", mean, mean)
		f.line("ADD $4, %s, %s", rstd, rstd)
		f.clear(se)
		f.clear(seh)
		c.each(func(p part) {
			h, v, e := p.load(x), p.load(dy), p.load(gamma)
			f.fsub(h, h, mu)
			f.fmul(h, h, rs)
			f.fmul(e, e, v)
			p.inside(e) // a NaN of rs stays in its own row's columns
			p.inside(h)
			f.fadd(se, se, e)
			f.fmla(seh, e, h)
			g := p.load(dgamma)
			f.fmla(g, v, h)
			p.store(g, dgamma)
			p.loadInto(g, dbeta)
			f.fadd(g, g, v)
			p.store(g, dbeta)
			f.free(h, v, e, g)
		})
		f.sum(se)
		f.sum(seh)
		f.fdiv(se, se, count)
		f.fdiv(seh, seh, count)
		write := func(onto bool) {
			c.each(func(p part) {
				h, v, e := p.load(x), p.load(dy), p.load(gamma)
				f.fsub(h, h, mu)
				f.fmul(h, h, rs)
				f.fmul(e, e, v)
				f.fsub(e, e, se)
				f.fmls(e, h, seh)
				f.fmul(e, e, rs)
				if onto {
					p.loadInto(h, dx)
					f.fadd(e, e, h)
				}
				p.store(e, dx)
				f.free(h, v, e)
			})
		}
		fresh, done := f.label("fresh"), f.label("written")
		f.line("CBZ %s, %s", accumulate, fresh)
		write(true)
		f.line("B %s", done)
		f.place(fresh)
		write(false)
		f.place(done)
		f.free(mu, rs, se, seh)
	}, f.by(c.bytes, x, dy, dx))
	f.ret()
}

func colSum() {
	f := function("colSumNEON", "colSumGo.", "[]float32: out x", "int: rows n ld", "bool: accumulate")
	out, x, rows, n, ld, accumulate := f.arg("out"), f.arg("x"), f.arg("rows"), f.arg("n"), f.arg("ld"), f.arg("accumulate")
	c, stride := f.columns(n), f.bytesOf(ld)
	// Column by column of vectors, so that a sum stays in its register; row and left walk down.
	row, left := f.r(), f.r()
	c.each(func(p part) {
		s := f.v()
		add := f.label("onto")
		f.clear(s)
		f.line("CBZ %s, %s", accumulate, add)
		p.loadInto(s, out)
		f.place(add)
		f.line("MOVD %s, %s", x, row)
		f.line("MOVD %s, %s", rows, left)
		f.rows(left, func() {
			v := p.load(row)
			f.fadd(s, s, v)
			f.free(v)
		}, f.by(stride, row))
		p.store(s, out)
		f.free(s)
	})
	f.ret()
}

func rowDots() {
	f := function("rowDotsNEON", "rowDotsGo, in four lanes.", "[]float32: out a b", "int: rows n ld")
	out, a, b, rows, n, ld := f.arg("out"), f.arg("a"), f.arg("b"), f.arg("rows"), f.arg("n"), f.arg("ld")
	c, stride := f.columns(n), f.bytesOf(ld)
	f.rows(rows, func() {
		s := f.v()
		f.clear(s)
		c.each(func(p part) {
			v, w := p.load(a), p.load(b)
			f.fmla(s, v, w)
			f.free(v, w)
		})
		f.sum(s)
		f.strLane(s, 0, out)
		f.free(s)
	}, f.by(stride, a, b))
	f.ret()
}

func distances() {
	f := function("distancesNEON", "distancesGo.", "[]float32: dist x y", "int: n ld")
	dist, x, y, n, ld := f.arg("dist"), f.arg("x"), f.arg("y"), f.arg("n"), f.arg("ld")
	c, stride := f.columns(n), f.bytesOf(ld)
	px, py, rows := f.r(), f.r(), f.r()
	f.line("MOVD %s, %s", x, px)
	f.line("MOVD %s, %s", y, py)
	f.line("MOVD %s, %s", n, rows)
	f.rows(rows, func() {
		xi, yi := f.v(), f.v()
		f.splatMem(xi, px)
		f.splatMem(yi, py)
		f.line("ADD $4, %s, %s", px, px)
		f.line("ADD $4, %s, %s", py, py)
		c.each(func(p part) {
			u, v := p.load(x), p.load(y)
			f.fsub(u, xi, u)
			f.fsub(v, yi, v)
			f.fmul(u, u, u)
			f.fmla(u, v, v)
			f.fsqrt(u, u)
			p.store(u, dist)
			f.free(u, v)
		})
		c.pad(dist, stride)
		f.free(xi, yi)
	}, f.by(stride, dist))
	f.ret()
}

// transpose turns blocks of four by four; rows and cols are multiples of four, and its caller does
// the edges.
func transpose() {
	f := function("transposeBlocksNEON", "transposeGo over whole blocks of four by four: rows and cols are multiples of four.",
		"[]float32: dst", "int: ldd", "[]float32: src", "int: lds rows cols")
	dst, ldd, src, lds, rows, cols := f.arg("dst"), f.arg("ldd"), f.arg("src"), f.arg("lds"), f.arg("rows"), f.arg("cols")
	out, in := f.bytesOf(ldd), f.bytesOf(lds)
	from, to, p, q, left := f.r(), f.r(), f.r(), f.r(), f.r()
	f.line("LSR $2, %s, %s", rows, rows)
	f.line("LSR $2, %s, %s", cols, cols)
	four, fourIn := f.r(), f.r()
	f.line("LSL $2, %s, %s", out, four)
	f.line("LSL $2, %s, %s", in, fourIn)
	f.rows(rows, func() {
		f.line("MOVD %s, %s", src, from)
		f.line("MOVD %s, %s", dst, to)
		f.line("MOVD %s, %s", cols, left)
		f.rows(left, func() {
			a, t := f.vs(4), f.vs(4)
			f.line("MOVD %s, %s", from, p)
			for i := range 4 {
				f.ldr(a[i], p, 0)
				f.line("ADD %s, %s, %s", in, p, p)
			}
			f.trn1(t[0], a[0], a[1])
			f.trn2(t[1], a[0], a[1])
			f.trn1(t[2], a[2], a[3])
			f.trn2(t[3], a[2], a[3])
			f.trn1Wide(a[0], t[0], t[2])
			f.trn1Wide(a[1], t[1], t[3])
			f.trn2Wide(a[2], t[0], t[2])
			f.trn2Wide(a[3], t[1], t[3])
			f.line("MOVD %s, %s", to, q)
			for i := range 4 {
				f.str(a[i], q, 0)
				f.line("ADD %s, %s, %s", out, q, q)
			}
			f.line("ADD $16, %s, %s", from, from)
			f.free(a...)
			f.free(t...)
		}, f.by(four, to))
		f.line("ADD $16, %s, %s", dst, dst)
	}, f.by(fourIn, src))
	f.ret()
}
