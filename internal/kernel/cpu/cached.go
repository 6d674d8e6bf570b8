package cpu

import (
	"math"

	"haul/internal/kernel"
)

// cacheAttention attends one token an instance. Keys lie as they were written, so they are turned
// for each step: a step reads all of them once anyway.
func (b *binder) cacheAttention(o *kernel.CacheAttention) func(*worker) {
	y, qkv, keys, values, at := newRef(b.r, o.Y), newRef(b.r, o.QKV), newRef(b.r, o.Keys), newRef(b.r, o.Values), newRef(b.r, o.At)
	t, d := o.Keys.Shape[1], o.Keys.Shape[2]
	hd, most := d/o.Heads, (t+15)&^15
	scale, ones := float32(1/math.Sqrt(float64(hd))), allOnes(most)
	origin := make([]int32, 1) // every row looks back to position 0
	b.need((d+1)*most+1, 0)
	return func(w *worker) {
		yb, qb, kb, vb, ab := y.of(w), qkv.of(w), keys.of(w), values.of(w), ints(at.of(w))
		for i := range w.active {
			pos := int(ab[i])
			in, out := qb[i*3*d:][:3*d], yb[i*d:][:d]
			past, seen := kb[i*t*d:][:t*d], vb[i*t*d:][:t*d]
			copy(past[pos*d:][:d], in[d:])
			copy(seen[pos*d:][:d], in[2*d:])
			n := pos + 1
			ld := (n + 15) &^ 15
			kt, s, sum := w.scratch[:d*ld], w.scratch[d*ld:][:ld], w.scratch[(d+1)*ld:][:1]
			w.p.transpose(kt, ld, past, d, n, d)
			for h := range o.Heads {
				w.product(gemmArgs{c: ptr(s), a: ptr(in[h*hd:]), b: ptr(kt[h*hd*ld:]), m: 1, n: ld, k: hd, ldc: ld, ars: d, aks: 1, bks: ld, bps: panel})
				w.p.softmaxCausal(s, sum, origin, ones, 1, 0, n, ld, ld, 0, scale, 1)
				w.product(gemmArgs{c: ptr(out[h*hd:]), a: ptr(s), b: ptr(seen[h*hd:]), m: 1, n: hd, k: n, ldc: hd, ars: ld, aks: 1, bks: d, bps: panel})
			}
		}
	}
}
