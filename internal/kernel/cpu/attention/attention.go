package attention

import (
	"math"

	"haul/internal/kernel"
	"haul/internal/kernel/cpu/isa"
	"haul/internal/kernel/cpu/run"
)

// Attention runs head by head over each instance; a head's scores, a padded N×N matrix, are its
// slice of P, so nothing is copied. Keys and values are transposed once per head where a product
// needs them as columns.

func attention(b *run.Binder, o *kernel.Attention) func(*run.Worker) {
	y, prob, qkv := b.Ref(o.Y), b.Ref(o.P), b.Ref(o.QKV)
	posX, posY, slope := b.Ref(o.PosX), b.Ref(o.PosY), b.Ref(o.Slope)
	instances, n, d := o.Dims()
	hd, ld := d/o.Heads, kernel.Pad(n)
	scale := float32(1 / math.Sqrt(float64(hd)))
	b.Need(n*ld+hd*ld, 0)
	return func(w *run.Worker) {
		dist, kt := w.Scratch[:n*ld], w.Scratch[n*ld:][:hd*ld]
		yb, pb, qb, sl := y.Of(w), prob.Of(w), qkv.Of(w), slope.Of(w)
		xs, ys := posX.Of(w), posY.Of(w)
		for i := range instances {
			w.Prims.Distances(dist, xs[i*n:][:n], ys[i*n:][:n], n, ld)
			in := qb[i*n*3*d:][:n*3*d]
			for h := 0; h < o.Heads && !w.Stopped(); h++ {
				p := pb[(i*o.Heads+h)*n*ld:][:n*ld]
				w.Prims.Transpose(kt, ld, in[d+h*hd:], 3*d, n, hd)
				w.Product(isa.GemmArgs{C: isa.Ptr(p), A: isa.Ptr(in[h*hd:]), B: isa.Ptr(kt), M: n, N: ld, K: hd,
					LDC: ld, ARS: 3 * d, AKS: 1, BKS: ld, BPS: isa.Panel})
				w.Prims.SoftmaxBias(p, dist, n, n, ld, scale, sl[h])
				w.Product(isa.GemmArgs{C: isa.Ptr(yb[i*n*d+h*hd:]), A: isa.Ptr(p), B: isa.Ptr(in[2*d+h*hd:]), M: n, N: hd, K: n,
					LDC: d, ARS: ld, AKS: 1, BKS: 3 * d, BPS: isa.Panel})
			}
		}
	}
}

func attentionGrad(b *run.Binder, o *kernel.AttentionGrad) func(*run.Worker) {
	dqkv, dslope, dy := b.Ref(o.DQKV), b.Grad(o.DSlope), b.Ref(o.DY)
	prob, qkv := b.Ref(o.P), b.Ref(o.QKV)
	posX, posY := b.Ref(o.PosX), b.Ref(o.PosY)
	instances, n, d := o.Dims()
	hd, ld := d/o.Heads, kernel.Pad(n)
	scale := float32(1 / math.Sqrt(float64(hd)))
	b.Need(2*n*ld+hd*ld, 0)
	return func(w *run.Worker) {
		dist, ds, vt := w.Scratch[:n*ld], w.Scratch[n*ld:][:n*ld], w.Scratch[2*n*ld:][:hd*ld]
		dqb, dyb, pb, qb, sl := dqkv.Of(w), dy.Of(w), prob.Of(w), qkv.Of(w), dslope.Start(w)
		xs, ys := posX.Of(w), posY.Of(w)
		for i := range instances {
			w.Prims.Distances(dist, xs[i*n:][:n], ys[i*n:][:n], n, ld)
			in, out := qb[i*n*3*d:][:n*3*d], dqb[i*n*3*d:][:n*3*d]
			for h := 0; h < o.Heads && !w.Stopped(); h++ {
				p, dyh := pb[(i*o.Heads+h)*n*ld:][:n*ld], dyb[i*n*d+h*hd:]
				w.Prims.Transpose(vt, ld, in[2*d+h*hd:], 3*d, n, hd)
				w.Product(isa.GemmArgs{C: isa.Ptr(ds), A: isa.Ptr(dyh), B: isa.Ptr(vt), M: n, N: ld, K: hd,
					LDC: ld, ARS: d, AKS: 1, BKS: ld, BPS: isa.Panel})
				sl[h] += w.Prims.SoftmaxBiasGrad(ds, p, dist, n, n, ld, scale)
				w.Product(isa.GemmArgs{C: isa.Ptr(out[2*d+h*hd:]), A: isa.Ptr(p), B: isa.Ptr(dyh), M: n, N: hd, K: n,
					LDC: 3 * d, ARS: 1, AKS: ld, BKS: d, BPS: isa.Panel})
				w.Product(isa.GemmArgs{C: isa.Ptr(out[h*hd:]), A: isa.Ptr(ds), B: isa.Ptr(in[d+h*hd:]), M: n, N: hd, K: n,
					LDC: 3 * d, ARS: ld, AKS: 1, BKS: 3 * d, BPS: isa.Panel})
				w.Product(isa.GemmArgs{C: isa.Ptr(out[d+h*hd:]), A: isa.Ptr(ds), B: isa.Ptr(in[h*hd:]), M: n, N: hd, K: n,
					LDC: 3 * d, ARS: 1, AKS: ld, BKS: 3 * d, BPS: isa.Panel})
			}
		}
	}
}
