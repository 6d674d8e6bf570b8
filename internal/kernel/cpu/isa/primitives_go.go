package isa

import (
	"math"
	"sync/atomic"
	"unsafe"
)

// The plain-Go primitives: the meaning of each entry of the table, compiled on every platform and
// used where no assembly fits. Sums run left to right in float32 unless a line says otherwise.

var Plain = Primitives{
	Name: "go", Gemm: gemmGo, Peak: peakGo,
	Norm: normGo, NormGrad: normGradGo, GLU: gluGo, GLUGrad: gluGradGo, GELU: geluGo, GELUGrad: geluGradGo, Exp: expGo,
	Distances: distancesGo, SoftmaxBias: softmaxBiasGo, SoftmaxBiasGrad: softmaxBiasGradGo,
	SoftmaxMask: softmaxMaskGo, SoftmaxGrad: softmaxGradGo, Pointer: pointerGo, PointerGrad: pointerGradGo,
	SoftmaxCausal: softmaxCausalGo, SoftmaxCausalGrad: softmaxCausalGradGo, RowDots: rowDotsGo, Keep: keepGo, Drop: dropGo,
	Query: queryGo, Transpose: transposeGo, ColSum: colSumGo, Add: addGo, Add4: add4Go, SumSquares: sumSquaresGo, AdamW: adamwGo,
	Scale: scaleGo, Momentum: momentumGo, Descend: descendGo,
}

func at(p unsafe.Pointer, i int) *float32 { return (*float32)(unsafe.Add(p, i*4)) }

// gemmGo: see GemmArgs for the loop.
func gemmGo(g *GemmArgs) {
	var row [Panel]float32
	for j0 := 0; j0 < g.N; j0 += Panel {
		w := min(Panel, g.N-j0)
		b := unsafe.Add(g.B, j0/Panel*g.BPS*4)
		for i := range g.M {
			acc := row[:w]
			clear(acc)
			for l := range g.K {
				a := *at(g.A, i*g.ARS+l*g.AKS)
				bl := unsafe.Slice(at(b, l*g.BKS), w)
				for j, v := range bl {
					acc[j] += a * v
				}
			}
			if g.Bias != nil {
				for j, v := range unsafe.Slice(at(g.Bias, j0), w) {
					acc[j] += v
				}
			}
			if g.R != nil {
				for j, v := range unsafe.Slice(at(g.R, i*g.LDR+j0), w) {
					acc[j] += v
				}
			}
			copy(unsafe.Slice(at(g.C, i*g.LDC+j0), w), acc)
		}
	}
}

// peakGo: eight sums that wait only on themselves.
func peakGo(rounds int) (flop float64) {
	var s0, s1, s2, s3, s4, s5, s6, s7 float32
	x := 1 / float32(rounds+1)
	for range rounds {
		s0, s1, s2, s3 = s0*x+x, s1*x+x, s2*x+x, s3*x+x
		s4, s5, s6, s7 = s4*x+x, s5*x+x, s6*x+x, s7*x+x
	}
	peakSink.Store(math.Float32bits(s0 + s1 + s2 + s3 + s4 + s5 + s6 + s7))
	return float64(rounds) * 16
}

// peakSink takes peakGo's sums, so that the compiler keeps them.
var peakSink atomic.Uint32

// normGo: y[r] = (x[r]-mean)·rstd·gamma + beta, with the row's mean and 1/sqrt(variance+eps) kept.
func normGo(y, mean, rstd, x, gamma, beta []float32, rows, d int, eps float32) {
	for r := range rows {
		xr, yr := x[r*d:(r+1)*d], y[r*d:(r+1)*d]
		var sum float32
		for _, v := range xr {
			sum += v
		}
		mu := sum / float32(d)
		var sq float32
		for _, v := range xr {
			sq += (v - mu) * (v - mu)
		}
		rs := float32(1 / math.Sqrt(float64(sq/float32(d)+eps)))
		for j, v := range xr {
			yr[j] = (v-mu)*rs*gamma[j] + beta[j]
		}
		mean[r], rstd[r] = mu, rs
	}
}

// normGradGo: with h = (x-mean)·rstd and e = dy·gamma,
// dx (+)= rstd·(e - mean(e) - h·mean(e·h)); dgamma += dy·h; dbeta += dy.
func normGradGo(dx, dgamma, dbeta, dy, x, mean, rstd, gamma []float32, rows, d int, accumulate bool) {
	for r := range rows {
		xr, dyr, dxr := x[r*d:(r+1)*d], dy[r*d:(r+1)*d], dx[r*d:(r+1)*d]
		mu, rs := mean[r], rstd[r]
		var se, seh float32
		for j, v := range dyr {
			h := (xr[j] - mu) * rs
			e := v * gamma[j]
			se += e
			seh += e * h
			dgamma[j] += v * h
			dbeta[j] += v
		}
		se /= float32(d)
		seh /= float32(d)
		for j, v := range dyr {
			h := (xr[j] - mu) * rs
			g := rs * (v*gamma[j] - se - h*seh)
			if accumulate {
				g += dxr[j]
			}
			dxr[j] = g
		}
	}
}

func Sigmoid(x float32) float32 { return float32(1 / (1 + math.Exp(-float64(x)))) }

// gluGo: y[r,j] = g[r,j]·sigmoid(g[r,w+j]); g has rows of 2w.
func gluGo(y, g []float32, rows, w int) {
	for r := range rows {
		a, b, yr := g[r*2*w:][:w], g[r*2*w+w:][:w], y[r*w:][:w]
		for j := range yr {
			yr[j] = a[j] * Sigmoid(b[j])
		}
	}
}

// gluGradGo: dg[r,j] = dy·s, dg[r,w+j] = dy·a·s·(1-s) with s = sigmoid(g[r,w+j]).
func gluGradGo(dg, dy, g []float32, rows, w int) {
	for r := range rows {
		a, b, dyr := g[r*2*w:][:w], g[r*2*w+w:][:w], dy[r*w:][:w]
		da, db := dg[r*2*w:][:w], dg[r*2*w+w:][:w]
		for j, v := range dyr {
			s := Sigmoid(b[j])
			da[j], db[j] = v*s, v*a[j]*s*(1-s)
		}
	}
}

// geluGo: y = x·Φ(x) in its tanh form, 0.5x(1+tanh(√(2/π)(x+0.044715x³))). Assembly makes it, and
// its slope, zero where Φ is below 2^-40.
func geluGo(y, x []float32) {
	for i, v := range x {
		t := float32(math.Tanh(float64(0.7978845608 * (v + 0.044715*v*v*v))))
		y[i] = 0.5 * v * (1 + t)
	}
}

// geluGradGo: dx = dy·gelu'(x).
func geluGradGo(dx, dy, x []float32) {
	for i, v := range x {
		t := float32(math.Tanh(float64(0.7978845608 * (v + 0.044715*v*v*v))))
		dx[i] = dy[i] * (0.5*(1+t) + 0.5*v*(1-t*t)*0.7978845608*(1+0.134145*v*v))
	}
}

// expGo: y = e^x for x <= 88; zero where that is below the normal numbers. y may be x.
func expGo(y, x []float32) {
	for i, v := range x {
		y[i] = float32(math.Exp(float64(v)))
	}
}

// distancesGo: dist[i*ld+j] = |(x,y)_i - (x,y)_j| for i,j < n; zero for n <= j < ld.
func distancesGo(dist, x, y []float32, n, ld int) {
	for i := range n {
		row := dist[i*ld:][:ld]
		for j := range n {
			dx, dy := x[i]-x[j], y[i]-y[j]
			row[j] = float32(math.Sqrt(float64(dx*dx + dy*dy)))
		}
		clear(row[n:])
	}
}

// softmaxBiasGo, in place: p[r] = softmax over j < n of p[r,j]·scale - slope·dist[r,j]; zero for n
// <= j < ld.
func softmaxBiasGo(p, dist []float32, rows, n, ld int, scale, slope float32) {
	for r := range rows {
		row, dr := p[r*ld:][:ld], dist[r*ld:][:ld]
		top := float32(math.Inf(-1))
		for j := range n {
			row[j] = row[j]*scale - slope*dr[j]
			top = max(top, row[j])
		}
		var sum float32
		for j := range n {
			row[j] = float32(math.Exp(float64(row[j] - top)))
			sum += row[j]
		}
		for j := range n {
			row[j] /= sum
		}
		clear(row[n:])
	}
}

// softmaxBiasGradGo, in place on dp: ds = p·(dp - Σ p·dp); dslope = -Σ ds·dist; dp = ds·scale; zero
// for n <= j < ld.
func softmaxBiasGradGo(dp, p, dist []float32, rows, n, ld int, scale float32) (dslope float32) {
	for r := range rows {
		row, pr, dr := dp[r*ld:][:ld], p[r*ld:][:ld], dist[r*ld:][:ld]
		var dot float32
		for j := range n {
			dot += row[j] * pr[j]
		}
		for j := range n {
			ds := pr[j] * (row[j] - dot)
			dslope -= ds * dr[j]
			row[j] = ds * scale
		}
		clear(row[n:])
	}
	return dslope
}

func allowed(mask []uint64, j int) bool { return mask[j>>6]>>(j&63)&1 != 0 }

// softmaxMaskGo, in place: p[r] = softmax over allowed j < n of p[r,j]·scale, zero elsewhere. Bit j
// of row r's `words` words says that j is allowed; at least one is.
func softmaxMaskGo(p []float32, mask []uint64, rows, n, ld, words int, scale float32) {
	for r := range rows {
		row, m := p[r*ld:][:ld], mask[r*words:][:words]
		top := float32(math.Inf(-1))
		for j := range n {
			if allowed(m, j) {
				top = max(top, row[j]*scale)
			}
		}
		var sum float32
		for j := range row {
			if j < n && allowed(m, j) {
				row[j] = float32(math.Exp(float64(row[j]*scale - top)))
				sum += row[j]
			} else {
				row[j] = 0
			}
		}
		for j := range n {
			row[j] /= sum
		}
	}
}

// softmaxGradGo, in place on dp: dp = p·(dp - Σ p·dp)·scale; zero for n <= j < ld.
func softmaxGradGo(dp, p []float32, rows, n, ld int, scale float32) {
	for r := range rows {
		row, pr := dp[r*ld:][:ld], p[r*ld:][:ld]
		var dot float32
		for j := range n {
			dot += row[j] * pr[j]
		}
		for j := range n {
			row[j] = pr[j] * (row[j] - dot) * scale
		}
		clear(row[n:])
	}
}

// pointerGo: th = tanh(u·scale); lp = log-softmax over allowed j of mult·th; p = exp(lp);
// ent[r] = -Σ p·lp. Masked and padding columns get p = lp = th = 0. p may be u.
func pointerGo(p, lp, th, ent, u []float32, mask []uint64, rows, n, ld, words int, scale, mult float32) {
	for r := range rows {
		m := mask[r*words:][:words]
		ur, pr, lr, tr := u[r*ld:][:ld], p[r*ld:][:ld], lp[r*ld:][:ld], th[r*ld:][:ld]
		top := float32(math.Inf(-1))
		for j := range n {
			if allowed(m, j) {
				tr[j] = float32(math.Tanh(float64(ur[j] * scale)))
				top = max(top, mult*tr[j])
			}
		}
		var sum float32
		for j := range n {
			if allowed(m, j) {
				sum += float32(math.Exp(float64(mult*tr[j] - top)))
			}
		}
		logZ := top + float32(math.Log(float64(sum)))
		var h float32
		for j := range ld {
			if j >= n || !allowed(m, j) {
				pr[j], lr[j], tr[j] = 0, 0, 0
				continue
			}
			lr[j] = mult*tr[j] - logZ
			pr[j] = float32(math.Exp(float64(lr[j])))
			h -= pr[j] * lr[j]
		}
		ent[r] = h
	}
}

// pointerGradGo: the gradient of wa[r]·lp[r,act[r]] + we[r]·ent[r] with respect to u:
// dz = wa·(δ(j=act) - p) - we·p·(lp + ent); du = dz·mult·(1-th²)·scale. Masked columns have p = 0
// and th = 0 and are not act, so they get 0 of themselves. du may be u or p.
func pointerGradGo(du, p, lp, th, ent, wa, we []float32, act []int32, rows, n, ld int, scale, mult float32) {
	for r := range rows {
		dr, pr, lr, tr := du[r*ld:][:ld], p[r*ld:][:ld], lp[r*ld:][:ld], th[r*ld:][:ld]
		a, e, h := wa[r], we[r], ent[r]
		for j := range ld {
			dz := -pr[j] * (a + e*(lr[j]+h))
			if int32(j) == act[r] {
				dz += a
			}
			dr[j] = dz * mult * (1 - tr[j]*tr[j]) * scale
		}
	}
}

// queryGo: q = node + graph + capacity·load.
func queryGo(q, node, graph, load []float32, capacity float32) {
	for i := range q {
		q[i] = node[i] + graph[i] + capacity*load[i]
	}
}

// transposeGo: dst[c*ldd+r] = src[r*lds+c] for r < rows, c < cols; zero for rows <= r < ldd.
func transposeGo(dst []float32, ldd int, src []float32, lds, rows, cols int) {
	for c := range cols {
		row := dst[c*ldd:][:ldd]
		for r := range rows {
			row[r] = src[r*lds+c]
		}
		clear(row[rows:])
	}
}

// colSumGo: out[j] (+)= Σ over rows of x[r*ld+j], j < n.
func colSumGo(out, x []float32, rows, n, ld int, accumulate bool) {
	if !accumulate {
		clear(out[:n])
	}
	for r := range rows {
		for j, v := range x[r*ld:][:n] {
			out[j] += v
		}
	}
}

// addGo: y += x.
func addGo(y, x []float32) {
	for i, v := range x {
		y[i] += v
	}
}

// add4Go: y = (y + a) + (b + c).
func add4Go(y, a, b, c []float32) {
	for i := range c {
		y[i] = (y[i] + a[i]) + (b[i] + c[i])
	}
}

// sumSquaresGo: Σ x² in float64.
func sumSquaresGo(x []float32) float64 {
	var s float64
	for _, v := range x {
		s += float64(v) * float64(v)
	}
	return s
}

// adamwGo: g' = g·scale; m = β1·m + (1-β1)·g'; v = β2·v + (1-β2)·g'²;
// w -= lr·(m·Correct1/(sqrt(v·Correct2)+eps) + decay·w). Assembly makes moments below 1e-30 zero.
func adamwGo(w, m, v, g []float32, a *AdamArgs) {
	for i := range w {
		x := g[i] * a.Scale
		m[i] = a.Beta1*m[i] + (1-a.Beta1)*x
		v[i] = a.Beta2*v[i] + (1-a.Beta2)*x*x
		w[i] -= a.LR * (m[i]*a.Correct1/(float32(math.Sqrt(float64(v[i]*a.Correct2)))+a.Eps) + a.Decay*w[i])
	}
}

// scaleGo: y *= by.
func scaleGo(y []float32, by float32) {
	for i := range y {
		y[i] *= by
	}
}

// momentumGo: g' = g·scale; m = β·m + g'; x = g' + β·m, both of them zero below 1e-16.
func momentumGo(x, m, g []float32, beta, scale float32) {
	for i := range x {
		gi := float32(g[i] * scale) // the conversion keeps arm64 from fusing it
		mi := flushed(float32(beta*m[i]) + gi)
		m[i], x[i] = mi, flushed(gi+float32(beta*mi))
	}
}

// flushed makes zero of what is too small for Muon to move a weight by: the rounds' products of
// such numbers are subnormal, at a hundred cycles each, and momentum whose gradient stays zero
// would never be zero itself. A NaN stays.
func flushed(v float32) float32 {
	const least = 1e-16
	if v > -least && v < least {
		return 0
	}
	return v
}

// descendGo: w -= lr·(step·x + decay·w).
func descendGo(w, x []float32, lr, step, decay float32) {
	for i, v := range w {
		w[i] = v - float32(lr*(float32(step*x[i])+float32(decay*v)))
	}
}

// Words is how many 64-bit words a mask over n columns takes.
func Words(n int) int { return (n + 63) / 64 }
