package cpu

import (
	"math"

	"haul/internal/kernel"
)

// cacheAttention attends one token an instance. Keys lie as they were written, so they are turned
// for each step: a step reads all of them once anyway. The queries of a group are the rows of one
// product with the head of keys that they share.
func (b *binder) cacheAttention(o *kernel.CacheAttention) func(*worker) {
	y, qkv, keys, values, at := newRef(b.r, o.Y), newRef(b.r, o.QKV), newRef(b.r, o.Keys), newRef(b.r, o.Values), newRef(b.r, o.At)
	t, kept, d, group := o.Keys.Shape[1], o.Keys.Cols(), o.Y.Cols(), o.Group()
	hd, most, wide := d/o.Heads, (t+15)&^15, d+2*kept
	scale, ones := float32(1/math.Sqrt(float64(hd))), allOnes(most)
	origin := make([]int32, 1) // every row looks back to position 0
	b.need((kept+group)*most+1, 0)
	return func(w *worker) {
		yb, qb, kb, vb, ab := y.of(w), qkv.of(w), keys.of(w), values.of(w), ints(at.of(w))
		for i := range w.active {
			pos := int(ab[i])
			in, out := qb[i*wide:][:wide], yb[i*d:][:d]
			past, seen := kb[i*t*kept:][:t*kept], vb[i*t*kept:][:t*kept]
			copy(past[pos*kept:][:kept], in[d:])
			copy(seen[pos*kept:][:kept], in[d+kept:])
			n := pos + 1
			ld := (n + 15) &^ 15
			kt, s, sum := w.scratch[:kept*ld], w.scratch[kept*ld:][:group*ld], w.scratch[(kept+group)*ld:][:1]
			w.p.transpose(kt, ld, past, kept, n, kept)
			for k := 0; k < kept; k += hd { // where a head of keys begins
				h := k * group // and the queries of its group
				w.product(gemmArgs{c: ptr(s), a: ptr(in[h:]), b: ptr(kt[k*ld:]), m: group, n: ld, k: hd, ldc: ld, ars: hd, aks: 1, bks: ld, bps: panel})
				for g := range group {
					w.p.softmaxCausal(s[g*ld:], sum, origin, ones, 1, 0, n, ld, ld, 0, scale, 1)
				}
				w.product(gemmArgs{c: ptr(out[h:]), a: ptr(s), b: ptr(seen[k:]), m: group, n: hd, k: n, ldc: hd, ars: ld, aks: 1, bks: kept, bps: panel})
			}
		}
	}
}
