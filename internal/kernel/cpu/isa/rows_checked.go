//go:build amd64 || arm64

package isa

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
func checked(t Primitives) Primitives {
	c := t
	c.Norm = func(y, mean, rstd, x, gamma, beta []float32, rows, d int, eps float32) {
		Fits(padded(rows, d, d, y, x) && atLeast(rows, mean, rstd) && atLeast(d, gamma, beta))
		t.Norm(y, mean, rstd, x, gamma, beta, rows, d, eps)
	}
	c.NormGrad = func(dx, dgamma, dbeta, dy, x, mean, rstd, gamma []float32, rows, d int, accumulate bool) {
		Fits(padded(rows, d, d, dx, dy, x) && atLeast(rows, mean, rstd) && atLeast(d, gamma, dgamma, dbeta))
		t.NormGrad(dx, dgamma, dbeta, dy, x, mean, rstd, gamma, rows, d, accumulate)
	}
	c.GLU = func(y, g []float32, rows, w int) {
		Fits(padded(rows, w, w, y) && padded(rows, w, 2*w, g))
		t.GLU(y, g, rows, w)
	}
	c.GLUGrad = func(dg, dy, g []float32, rows, w int) {
		Fits(padded(rows, w, w, dy) && padded(rows, w, 2*w, dg, g))
		t.GLUGrad(dg, dy, g, rows, w)
	}
	c.GELU = func(y, x []float32) {
		Fits(atLeast(len(x), y))
		t.GELU(y, x)
	}
	c.GELUGrad = func(dx, dy, x []float32) {
		Fits(atLeast(len(x), dx, dy))
		t.GELUGrad(dx, dy, x)
	}
	c.Exp = func(y, x []float32) {
		Fits(atLeast(len(x), y))
		t.Exp(y, x)
	}
	c.Distances = func(dist, x, y []float32, n, ld int) {
		Fits(padded(n, n, ld, dist) && atLeast(n, x, y))
		t.Distances(dist, x, y, n, ld)
	}
	c.SoftmaxBias = func(p, dist []float32, rows, n, ld int, scale, slope float32) {
		Fits(padded(rows, n, ld, p, dist))
		t.SoftmaxBias(p, dist, rows, n, ld, scale, slope)
	}
	c.SoftmaxBiasGrad = func(dp, p, dist []float32, rows, n, ld int, scale float32) float32 {
		Fits(padded(rows, n, ld, dp, p, dist))
		return t.SoftmaxBiasGrad(dp, p, dist, rows, n, ld, scale)
	}
	c.SoftmaxMask = func(p []float32, mask []uint64, rows, n, ld, words int, scale float32) {
		Fits(padded(rows, n, ld, p) && masked(mask, rows, n, words))
		t.SoftmaxMask(p, mask, rows, n, ld, words, scale)
	}
	c.SoftmaxGrad = func(dp, p []float32, rows, n, ld int, scale float32) {
		Fits(padded(rows, n, ld, dp, p))
		t.SoftmaxGrad(dp, p, rows, n, ld, scale)
	}
	c.SoftmaxCausal = func(p, logSum []float32, first []int32, mask []uint16, rows, from, end, n, ld, words int, scale, keep float32) {
		Fits(padded(rows, n, ld, p) && atLeast(rows, logSum) && len(first) >= rows && kept(mask, rows, n, words))
		t.SoftmaxCausal(p, logSum, first, mask, rows, from, end, n, ld, words, scale, keep)
	}
	c.SoftmaxCausalGrad = func(ds, p, logSum, dots []float32, first []int32, mask []uint16, rows, from, end, n, ld, words int, scale, keep float32) {
		Fits(padded(rows, n, ld, ds, p) && atLeast(rows, logSum, dots) && len(first) >= rows && kept(mask, rows, n, words))
		t.SoftmaxCausalGrad(ds, p, logSum, dots, first, mask, rows, from, end, n, ld, words, scale, keep)
	}
	c.RowDots = func(out, a, b []float32, rows, n, ld int) {
		Fits(atLeast(rows, out) && spans(a, rows, n, ld) && spans(b, rows, n, ld))
		t.RowDots(out, a, b, rows, n, ld)
	}
	c.Keep = func(dst, draws, rounds []uint32, low, high, purpose, threshold uint32) {
		Fits(len(draws)%KeepUnit == 0 && len(dst) >= len(draws) && len(rounds) >= roundWords)
		t.Keep(dst, draws, rounds, low, high, purpose, threshold)
	}
	c.Drop = func(y, x, residual []float32, mask []uint32, rows, n, words int, scale float32) {
		Fits(padded(rows, n, n, y, x) && (residual == nil || atLeast(rows*n, residual)) && n <= words*32 && len(mask) >= rows*words)
		t.Drop(y, x, residual, mask, rows, n, words, scale)
	}
	c.Pointer = func(p, lp, th, ent, u []float32, mask []uint64, rows, n, ld, words int, scale, mult float32) {
		Fits(padded(rows, n, ld, p, lp, th, u) && atLeast(rows, ent) && masked(mask, rows, n, words))
		t.Pointer(p, lp, th, ent, u, mask, rows, n, ld, words, scale, mult)
	}
	c.PointerGrad = func(du, p, lp, th, ent, wa, we []float32, act []int32, rows, n, ld int, scale, mult float32) {
		Fits(padded(rows, n, ld, du, p, lp, th) && atLeast(rows, ent, wa, we) && len(act) >= rows)
		t.PointerGrad(du, p, lp, th, ent, wa, we, act, rows, n, ld, scale, mult)
	}
	c.Query = func(q, node, graph, load []float32, capacity float32) {
		Fits(atLeast(len(q), node, graph, load))
		t.Query(q, node, graph, load, capacity)
	}
	c.Transpose = func(dst []float32, ldd int, src []float32, lds, rows, cols int) {
		Fits(padded(cols, rows, ldd, dst) && spans(src, rows, cols, lds))
		t.Transpose(dst, ldd, src, lds, rows, cols)
	}
	c.ColSum = func(out, x []float32, rows, n, ld int, accumulate bool) {
		Fits(atLeast(n, out) && spans(x, rows, n, ld))
		t.ColSum(out, x, rows, n, ld, accumulate)
	}
	c.Add = func(y, x []float32) {
		Fits(atLeast(len(x), y))
		t.Add(y, x)
	}
	c.Add4 = func(y, a, b, d []float32) {
		Fits(atLeast(len(d), y, a, b))
		t.Add4(y, a, b, d)
	}
	c.AdamW = func(w, m, v, g []float32, a *AdamArgs) {
		Fits(atLeast(len(w), m, v, g))
		t.AdamW(w, m, v, g, a)
	}
	c.Momentum = func(x, m, g []float32, beta, scale float32) {
		Fits(atLeast(len(x), m, g))
		t.Momentum(x, m, g, beta, scale)
	}
	c.Descend = func(w, x []float32, lr, step, decay float32) {
		Fits(atLeast(len(w), x))
		t.Descend(w, x, lr, step, decay)
	}
	return c
}

// spread hands adamw's arguments to assembly one by one, so that no offset into AdamArgs is written
// down twice.
func spread(f func(w, m, v, g []float32, lr, beta1, beta2, eps, decay, correct1, correct2, scale float32)) func(w, m, v, g []float32, a *AdamArgs) {
	return func(w, m, v, g []float32, a *AdamArgs) {
		f(w, m, v, g, a.LR, a.Beta1, a.Beta2, a.Eps, a.Decay, a.Correct1, a.Correct2, a.Scale)
	}
}
