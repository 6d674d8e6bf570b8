package attention

import (
	"haul/internal/kernel"
	"haul/internal/kernel/cpu/isa"
	"haul/internal/kernel/cpu/run"
)

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

func graphAttention(b *run.Binder, o *kernel.GraphAttention) func(*run.Worker) {
	y, prob, v, score, far := b.Ref(o.Y), b.Ref(o.P), b.Ref(o.V), b.Ref(o.Score), b.Ref(o.Far)
	posX, posY := b.Ref(o.PosX), b.Ref(o.PosY)
	instances, n, d := o.Dims()
	heads, hd, ld := o.Heads, d/o.Heads, kernel.Pad(n)
	b.Need(n*ld, 0)
	return func(w *run.Worker) {
		dist := w.Scratch[:n*ld]
		yb, pb, vb, sb, fb := y.Of(w), prob.Of(w), v.Of(w), score.Of(w), far.Of(w)
		xs, ys := posX.Of(w), posY.Of(w)
		for i := range instances {
			w.Prims.Distances(dist, xs[i*n:][:n], ys[i*n:][:n], n, ld)
			for h := 0; h < heads && !w.Stopped(); h++ {
				p := pb[(i*heads+h)*n*ld:][:n*ld]
				edges(p, dist, sb[i*n*2*heads:][:n*2*heads], fb[i*n*heads:][:n*heads], h, heads, n, ld)
				for k, z := range p {
					if !(z > 0) {
						p[k] = o.Leak * z
					}
				}
				w.Prims.SoftmaxBias(p, dist, n, n, ld, 1, 0)
				w.Product(isa.GemmArgs{C: isa.Ptr(yb[i*n*d+h*hd:]), A: isa.Ptr(p), B: isa.Ptr(vb[i*n*d+h*hd:]), M: n, N: hd, K: n,
					LDC: d, ARS: ld, AKS: 1, BKS: d, BPS: isa.Panel})
			}
		}
	}
}

func graphAttentionGrad(b *run.Binder, o *kernel.GraphAttentionGrad) func(*run.Worker) {
	dv, dscore, dfar, dy := b.Ref(o.DV), b.Ref(o.DScore), b.Ref(o.DFar), b.Ref(o.DY)
	prob, v, score, far := b.Ref(o.P), b.Ref(o.V), b.Ref(o.Score), b.Ref(o.Far)
	posX, posY := b.Ref(o.PosX), b.Ref(o.PosY)
	instances, n, d := o.Dims()
	heads, hd, ld := o.Heads, d/o.Heads, kernel.Pad(n)
	b.Need(3*n*ld+hd*ld, 0)
	return func(w *run.Worker) {
		dist, z, dz, vt := w.Scratch[:n*ld], w.Scratch[n*ld:][:n*ld], w.Scratch[2*n*ld:][:n*ld], w.Scratch[3*n*ld:][:hd*ld]
		dvb, dsb, dfb, dyb := dv.Of(w), dscore.Of(w), dfar.Of(w), dy.Of(w)
		pb, vb, sb, fb, xs, ys := prob.Of(w), v.Of(w), score.Of(w), far.Of(w), posX.Of(w), posY.Of(w)
		for i := range instances {
			w.Prims.Distances(dist, xs[i*n:][:n], ys[i*n:][:n], n, ld)
			ds, df := dsb[i*n*2*heads:][:n*2*heads], dfb[i*n*heads:][:n*heads]
			clear(ds)
			clear(df)
			for h := 0; h < heads && !w.Stopped(); h++ {
				p, dyh := pb[(i*heads+h)*n*ld:][:n*ld], dyb[i*n*d+h*hd:]
				w.Prims.Transpose(vt, ld, vb[i*n*d+h*hd:], d, n, hd)
				w.Product(isa.GemmArgs{C: isa.Ptr(dz), A: isa.Ptr(dyh), B: isa.Ptr(vt), M: n, N: ld, K: hd,
					LDC: ld, ARS: d, AKS: 1, BKS: ld, BPS: isa.Panel})
				w.Prims.SoftmaxBiasGrad(dz, p, dist, n, n, ld, 1)
				w.Product(isa.GemmArgs{C: isa.Ptr(dvb[i*n*d+h*hd:]), A: isa.Ptr(p), B: isa.Ptr(dyh), M: n, N: hd, K: n,
					LDC: d, ARS: 1, AKS: ld, BKS: d, BPS: isa.Panel})
				edges(z, dist, sb[i*n*2*heads:][:n*2*heads], fb[i*n*heads:][:n*heads], h, heads, n, ld)
				edgesGrad(ds[h:], df[h:], dz, z, dist, heads, n, ld, o.Leak)
			}
		}
	}
}
