package cpu

import (
	"math"

	"haul/internal/kernel"
)

// Attention runs head by head over each instance; a head's scores, a padded N×N matrix, are its
// slice of P, so nothing is copied. Keys and values are transposed once per head where a product
// needs them as columns.

func (b *binder) attention(o *kernel.Attention) func(*worker) {
	y, prob, qkv := newRef(b.r, o.Y), newRef(b.r, o.P), newRef(b.r, o.QKV)
	posX, posY, slope := newRef(b.r, o.PosX), newRef(b.r, o.PosY), newRef(b.r, o.Slope)
	instances, n, d := o.Dims()
	hd, ld := d/o.Heads, kernel.Pad(n)
	scale := float32(1 / math.Sqrt(float64(hd)))
	b.need(n*ld+hd*ld, 0)
	return func(w *worker) {
		dist, kt := w.scratch[:n*ld], w.scratch[n*ld:][:hd*ld]
		yb, pb, qb, sl := y.of(w), prob.of(w), qkv.of(w), slope.of(w)
		xs, ys := posX.of(w), posY.of(w)
		for i := range instances {
			w.p.distances(dist, xs[i*n:][:n], ys[i*n:][:n], n, ld)
			in := qb[i*n*3*d:][:n*3*d]
			for h := 0; h < o.Heads && !w.stopped(); h++ {
				p := pb[(i*o.Heads+h)*n*ld:][:n*ld]
				w.p.transpose(kt, ld, in[d+h*hd:], 3*d, n, hd)
				w.product(gemmArgs{c: ptr(p), a: ptr(in[h*hd:]), b: ptr(kt), m: n, n: ld, k: hd,
					ldc: ld, ars: 3 * d, aks: 1, bks: ld, bps: panel})
				w.p.softmaxBias(p, dist, n, n, ld, scale, sl[h])
				w.product(gemmArgs{c: ptr(yb[i*n*d+h*hd:]), a: ptr(p), b: ptr(in[2*d+h*hd:]), m: n, n: hd, k: n,
					ldc: d, ars: ld, aks: 1, bks: 3 * d, bps: panel})
			}
		}
	}
}

func (b *binder) attentionGrad(o *kernel.AttentionGrad) func(*worker) {
	dqkv, dslope, dy := newRef(b.r, o.DQKV), b.grad(o.DSlope), newRef(b.r, o.DY)
	prob, qkv := newRef(b.r, o.P), newRef(b.r, o.QKV)
	posX, posY := newRef(b.r, o.PosX), newRef(b.r, o.PosY)
	instances, n, d := o.Dims()
	hd, ld := d/o.Heads, kernel.Pad(n)
	scale := float32(1 / math.Sqrt(float64(hd)))
	b.need(2*n*ld+hd*ld, 0)
	return func(w *worker) {
		dist, ds, vt := w.scratch[:n*ld], w.scratch[n*ld:][:n*ld], w.scratch[2*n*ld:][:hd*ld]
		dqb, dyb, pb, qb, sl := dqkv.of(w), dy.of(w), prob.of(w), qkv.of(w), dslope.start(w)
		xs, ys := posX.of(w), posY.of(w)
		for i := range instances {
			w.p.distances(dist, xs[i*n:][:n], ys[i*n:][:n], n, ld)
			in, out := qb[i*n*3*d:][:n*3*d], dqb[i*n*3*d:][:n*3*d]
			for h := 0; h < o.Heads && !w.stopped(); h++ {
				p, dyh := pb[(i*o.Heads+h)*n*ld:][:n*ld], dyb[i*n*d+h*hd:]
				w.p.transpose(vt, ld, in[2*d+h*hd:], 3*d, n, hd)
				w.product(gemmArgs{c: ptr(ds), a: ptr(dyh), b: ptr(vt), m: n, n: ld, k: hd,
					ldc: ld, ars: d, aks: 1, bks: ld, bps: panel})
				sl[h] += w.p.softmaxBiasGrad(ds, p, dist, n, n, ld, scale)
				w.product(gemmArgs{c: ptr(out[2*d+h*hd:]), a: ptr(p), b: ptr(dyh), m: n, n: hd, k: n,
					ldc: 3 * d, ars: 1, aks: ld, bks: d, bps: panel})
				w.product(gemmArgs{c: ptr(out[h*hd:]), a: ptr(ds), b: ptr(in[d+h*hd:]), m: n, n: hd, k: n,
					ldc: 3 * d, ars: ld, aks: 1, bks: 3 * d, bps: panel})
				w.product(gemmArgs{c: ptr(out[d+h*hd:]), a: ptr(ds), b: ptr(in[h*hd:]), m: n, n: hd, k: n,
					ldc: 3 * d, ars: 1, aks: ld, bks: 3 * d, bps: panel})
			}
		}
	}
}
