//go:build amd64 || arm64

package cpu

// Assembly does not check its slices, so every entry of an assembly table but gemm goes through
// checked: a caller whose shapes and slices disagree panics before any memory is touched. An
// argument that an entry reads or writes and that is not checked here is a hole in memory safety.

// padded says that the slices hold rows of n columns in ld floats each.
func padded(rows, n, ld int, slices ...[]float32) bool {
	return rows >= 0 && 0 <= n && n <= ld && atLeast(rows*ld, slices...)
}

// masked says that the mask holds rows of words that cover n columns.
func masked(mask []uint64, rows, n, words int) bool {
	return n <= words*64 && len(mask) >= rows*words
}

// kept says that the mask holds rows of 16-bit words, `words` apart, that cover n columns.
func kept(mask []uint16, rows, n, words int) bool {
	return words >= 0 && (rows == 0 || len(mask) >= (rows-1)*words+(n+15)/16)
}

// checked returns the table t with its slices checked on every call.
func checked(t primitives) primitives {
	c := t
	c.norm = func(y, mean, rstd, x, gamma, beta []float32, rows, d int, eps float32) {
		fits(padded(rows, d, d, y, x) && atLeast(rows, mean, rstd) && atLeast(d, gamma, beta))
		t.norm(y, mean, rstd, x, gamma, beta, rows, d, eps)
	}
	c.normGrad = func(dx, dgamma, dbeta, dy, x, mean, rstd, gamma []float32, rows, d int, accumulate bool) {
		fits(padded(rows, d, d, dx, dy, x) && atLeast(rows, mean, rstd) && atLeast(d, gamma, dgamma, dbeta))
		t.normGrad(dx, dgamma, dbeta, dy, x, mean, rstd, gamma, rows, d, accumulate)
	}
	c.glu = func(y, g []float32, rows, w int) {
		fits(padded(rows, w, w, y) && padded(rows, w, 2*w, g))
		t.glu(y, g, rows, w)
	}
	c.gluGrad = func(dg, dy, g []float32, rows, w int) {
		fits(padded(rows, w, w, dy) && padded(rows, w, 2*w, dg, g))
		t.gluGrad(dg, dy, g, rows, w)
	}
	c.gelu = func(y, x []float32) {
		fits(atLeast(len(x), y))
		t.gelu(y, x)
	}
	c.geluGrad = func(dx, dy, x []float32) {
		fits(atLeast(len(x), dx, dy))
		t.geluGrad(dx, dy, x)
	}
	c.exp = func(y, x []float32) {
		fits(atLeast(len(x), y))
		t.exp(y, x)
	}
	c.distances = func(dist, x, y []float32, n, ld int) {
		fits(padded(n, n, ld, dist) && atLeast(n, x, y))
		t.distances(dist, x, y, n, ld)
	}
	c.softmaxBias = func(p, dist []float32, rows, n, ld int, scale, slope float32) {
		fits(padded(rows, n, ld, p, dist))
		t.softmaxBias(p, dist, rows, n, ld, scale, slope)
	}
	c.softmaxBiasGrad = func(dp, p, dist []float32, rows, n, ld int, scale float32) float32 {
		fits(padded(rows, n, ld, dp, p, dist))
		return t.softmaxBiasGrad(dp, p, dist, rows, n, ld, scale)
	}
	c.softmaxMask = func(p []float32, mask []uint64, rows, n, ld, words int, scale float32) {
		fits(padded(rows, n, ld, p) && masked(mask, rows, n, words))
		t.softmaxMask(p, mask, rows, n, ld, words, scale)
	}
	c.softmaxGrad = func(dp, p []float32, rows, n, ld int, scale float32) {
		fits(padded(rows, n, ld, dp, p))
		t.softmaxGrad(dp, p, rows, n, ld, scale)
	}
	c.softmaxCausal = func(p, logSum []float32, first []int32, mask []uint16, rows, from, end, n, ld, words int, scale, keep float32) {
		fits(padded(rows, n, ld, p) && atLeast(rows, logSum) && len(first) >= rows && kept(mask, rows, n, words))
		t.softmaxCausal(p, logSum, first, mask, rows, from, end, n, ld, words, scale, keep)
	}
	c.softmaxCausalGrad = func(ds, p, logSum, dots []float32, first []int32, mask []uint16, rows, from, end, n, ld, words int, scale, keep float32) {
		fits(padded(rows, n, ld, ds, p) && atLeast(rows, logSum, dots) && len(first) >= rows && kept(mask, rows, n, words))
		t.softmaxCausalGrad(ds, p, logSum, dots, first, mask, rows, from, end, n, ld, words, scale, keep)
	}
	c.rowDots = func(out, a, b []float32, rows, n, ld int) {
		fits(atLeast(rows, out) && spans(a, rows, n, ld) && spans(b, rows, n, ld))
		t.rowDots(out, a, b, rows, n, ld)
	}
	c.keep = func(dst, draws, rounds []uint32, low, high, purpose, threshold uint32) {
		fits(len(draws)%keepUnit == 0 && len(dst) >= len(draws) && len(rounds) >= roundWords)
		t.keep(dst, draws, rounds, low, high, purpose, threshold)
	}
	c.drop = func(y, x, residual []float32, mask []uint32, rows, n, words int, scale float32) {
		fits(padded(rows, n, n, y, x) && (residual == nil || atLeast(rows*n, residual)) && n <= words*32 && len(mask) >= rows*words)
		t.drop(y, x, residual, mask, rows, n, words, scale)
	}
	c.pointer = func(p, lp, th, ent, u []float32, mask []uint64, rows, n, ld, words int, scale, mult float32) {
		fits(padded(rows, n, ld, p, lp, th, u) && atLeast(rows, ent) && masked(mask, rows, n, words))
		t.pointer(p, lp, th, ent, u, mask, rows, n, ld, words, scale, mult)
	}
	c.pointerGrad = func(du, p, lp, th, ent, wa, we []float32, act []int32, rows, n, ld int, scale, mult float32) {
		fits(padded(rows, n, ld, du, p, lp, th) && atLeast(rows, ent, wa, we) && len(act) >= rows)
		t.pointerGrad(du, p, lp, th, ent, wa, we, act, rows, n, ld, scale, mult)
	}
	c.query = func(q, node, graph, load []float32, capacity float32) {
		fits(atLeast(len(q), node, graph, load))
		t.query(q, node, graph, load, capacity)
	}
	c.transpose = func(dst []float32, ldd int, src []float32, lds, rows, cols int) {
		fits(padded(cols, rows, ldd, dst) && spans(src, rows, cols, lds))
		t.transpose(dst, ldd, src, lds, rows, cols)
	}
	c.colSum = func(out, x []float32, rows, n, ld int, accumulate bool) {
		fits(atLeast(n, out) && spans(x, rows, n, ld))
		t.colSum(out, x, rows, n, ld, accumulate)
	}
	c.add = func(y, x []float32) {
		fits(atLeast(len(x), y))
		t.add(y, x)
	}
	c.add4 = func(y, a, b, d []float32) {
		fits(atLeast(len(d), y, a, b))
		t.add4(y, a, b, d)
	}
	c.adamw = func(w, m, v, g []float32, a *adamArgs) {
		fits(atLeast(len(w), m, v, g))
		t.adamw(w, m, v, g, a)
	}
	c.momentum = func(x, m, g []float32, beta, scale float32) {
		fits(atLeast(len(x), m, g))
		t.momentum(x, m, g, beta, scale)
	}
	c.descend = func(w, x []float32, lr, step, decay float32) {
		fits(atLeast(len(w), x))
		t.descend(w, x, lr, step, decay)
	}
	return c
}

// spread hands adamw's arguments to assembly one by one, so that no offset into adamArgs is written
// down twice.
func spread(f func(w, m, v, g []float32, lr, beta1, beta2, eps, decay, correct1, correct2, scale float32)) func(w, m, v, g []float32, a *adamArgs) {
	return func(w, m, v, g []float32, a *adamArgs) {
		f(w, m, v, g, a.lr, a.beta1, a.beta2, a.eps, a.decay, a.correct1, a.correct2, a.scale)
	}
}
