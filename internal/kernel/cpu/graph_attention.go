package cpu

import "haul/internal/kernel"

// Graph attention runs head by head as attention does: a head's scores are its slice of P. What
// differs is where scores come from, a sum per pair of nodes in place of a product.

// edges writes the scores of one head before leaky, [n,ld] with zeros from n on: score is [n,2H],
// far [n,H].
func edges(z, dist, score, far []float32, h, heads, n, ld int) {
	for i := range n {
		row, apart := z[i*ld:][:ld], dist[i*ld:][:n]
		from, steep := score[i*2*heads+h], far[i*heads+h]
		to := score[heads+h:]
		for j, d := range apart {
			row[j] = from + to[j*2*heads] - steep*d
		}
		clear(row[n:])
	}
}

// edgesGrad adds the gradients of one head's scores, dz before leaky passes them on, to those of
// what the scores z are made of: ds is [n,2H] and df [n,H], both from the head's column on.
func edgesGrad(ds, df, dz, z, dist []float32, heads, n, ld int, leak float32) {
	for i := range n {
		row, raw, apart := dz[i*ld:][:n], z[i*ld:][:n], dist[i*ld:][:n]
		var from, steep float32
		for j, g := range row {
			if !(raw[j] > 0) {
				g *= leak
			}
			from += g
			steep -= g * apart[j]
			ds[j*2*heads+heads] += g
		}
		ds[i*2*heads] += from
		df[i*heads] = steep
	}
}

func (b *binder) graphAttention(o *kernel.GraphAttention) func(*worker) {
	y, prob, v, score, far := newRef(b.r, o.Y), newRef(b.r, o.P), newRef(b.r, o.V), newRef(b.r, o.Score), newRef(b.r, o.Far)
	posX, posY := newRef(b.r, o.PosX), newRef(b.r, o.PosY)
	instances, n, d := o.Dims()
	heads, hd, ld := o.Heads, d/o.Heads, kernel.Pad(n)
	b.need(n*ld, 0)
	return func(w *worker) {
		dist := w.scratch[:n*ld]
		yb, pb, vb, sb, fb := y.of(w), prob.of(w), v.of(w), score.of(w), far.of(w)
		xs, ys := posX.of(w), posY.of(w)
		for i := range instances {
			w.p.distances(dist, xs[i*n:][:n], ys[i*n:][:n], n, ld)
			for h := 0; h < heads && !w.stopped(); h++ {
				p := pb[(i*heads+h)*n*ld:][:n*ld]
				edges(p, dist, sb[i*n*2*heads:][:n*2*heads], fb[i*n*heads:][:n*heads], h, heads, n, ld)
				for k, z := range p {
					if !(z > 0) {
						p[k] = o.Leak * z
					}
				}
				w.p.softmaxBias(p, dist, n, n, ld, 1, 0)
				w.product(gemmArgs{c: ptr(yb[i*n*d+h*hd:]), a: ptr(p), b: ptr(vb[i*n*d+h*hd:]), m: n, n: hd, k: n,
					ldc: d, ars: ld, aks: 1, bks: d, bps: panel})
			}
		}
	}
}

func (b *binder) graphAttentionGrad(o *kernel.GraphAttentionGrad) func(*worker) {
	dv, dscore, dfar, dy := newRef(b.r, o.DV), newRef(b.r, o.DScore), newRef(b.r, o.DFar), newRef(b.r, o.DY)
	prob, v, score, far := newRef(b.r, o.P), newRef(b.r, o.V), newRef(b.r, o.Score), newRef(b.r, o.Far)
	posX, posY := newRef(b.r, o.PosX), newRef(b.r, o.PosY)
	instances, n, d := o.Dims()
	heads, hd, ld := o.Heads, d/o.Heads, kernel.Pad(n)
	b.need(3*n*ld+hd*ld, 0)
	return func(w *worker) {
		dist, z, dz, vt := w.scratch[:n*ld], w.scratch[n*ld:][:n*ld], w.scratch[2*n*ld:][:n*ld], w.scratch[3*n*ld:][:hd*ld]
		dvb, dsb, dfb, dyb := dv.of(w), dscore.of(w), dfar.of(w), dy.of(w)
		pb, vb, sb, fb, xs, ys := prob.of(w), v.of(w), score.of(w), far.of(w), posX.of(w), posY.of(w)
		for i := range instances {
			w.p.distances(dist, xs[i*n:][:n], ys[i*n:][:n], n, ld)
			ds, df := dsb[i*n*2*heads:][:n*2*heads], dfb[i*n*heads:][:n*heads]
			clear(ds)
			clear(df)
			for h := 0; h < heads && !w.stopped(); h++ {
				p, dyh := pb[(i*heads+h)*n*ld:][:n*ld], dyb[i*n*d+h*hd:]
				w.p.transpose(vt, ld, vb[i*n*d+h*hd:], d, n, hd)
				w.product(gemmArgs{c: ptr(dz), a: ptr(dyh), b: ptr(vt), m: n, n: ld, k: hd,
					ldc: ld, ars: d, aks: 1, bks: ld, bps: panel})
				w.p.softmaxBiasGrad(dz, p, dist, n, n, ld, 1)
				w.product(gemmArgs{c: ptr(dvb[i*n*d+h*hd:]), a: ptr(p), b: ptr(dyh), m: n, n: hd, k: n,
					ldc: d, ars: 1, aks: ld, bks: d, bps: panel})
				edges(z, dist, sb[i*n*2*heads:][:n*2*heads], fb[i*n*heads:][:n*heads], h, heads, n, ld)
				edgesGrad(ds[h:], df[h:], dz, z, dist, heads, n, ld, o.Leak)
			}
		}
	}
}
