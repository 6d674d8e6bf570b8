package attention

import (
	"math"

	"haul/internal/kernel"
	"haul/internal/kernel/cpu/isa"
	"haul/internal/kernel/cpu/run"
)

// cacheAttention attends one token an instance. Keys lie as they were written, so they are turned
// for each step: a step reads all of them once anyway. The queries of a group are the rows of one
// product with the head of keys that they share.
func cacheAttention(b *run.Binder, o *kernel.CacheAttention) func(*run.Worker) {
	y, qkv, keys, values, at := b.Ref(o.Y), b.Ref(o.QKV), b.Ref(o.Keys), b.Ref(o.Values), b.Ref(o.At)
	t, kept, d, group := o.Keys.Shape[1], o.Keys.Cols(), o.Y.Cols(), o.Group()
	hd, most, wide := d/o.Heads, (t+15)&^15, d+2*kept
	scale, ones := float32(1/math.Sqrt(float64(hd))), allOnes(most)
	origin := make([]int32, 1) // every row looks back to position 0
	b.Need((kept+group)*most+1, 0)
	return func(w *run.Worker) {
		yb, qb, kb, vb, ab := y.Of(w), qkv.Of(w), keys.Of(w), values.Of(w), isa.Ints(at.Of(w))
		for i := range w.Active {
			pos := int(ab[i])
			in, out := qb[i*wide:][:wide], yb[i*d:][:d]
			past, seen := kb[i*t*kept:][:t*kept], vb[i*t*kept:][:t*kept]
			copy(past[pos*kept:][:kept], in[d:])
			copy(seen[pos*kept:][:kept], in[d+kept:])
			n := pos + 1
			ld := (n + 15) &^ 15
			kt, s, sum := w.Scratch[:kept*ld], w.Scratch[kept*ld:][:group*ld], w.Scratch[(kept+group)*ld:][:1]
			w.Prims.Transpose(kt, ld, past, kept, n, kept)
			for k := 0; k < kept; k += hd { // where a head of keys begins
				h := k * group // and the queries of its group
				w.Product(isa.GemmArgs{C: isa.Ptr(s), A: isa.Ptr(in[h:]), B: isa.Ptr(kt[k*ld:]), M: group, N: ld, K: hd, LDC: ld, ARS: hd, AKS: 1, BKS: ld, BPS: isa.Panel})
				for g := range group {
					w.Prims.SoftmaxCausal(s[g*ld:], sum, origin, ones, 1, 0, n, ld, ld, 0, scale, 1)
				}
				w.Product(isa.GemmArgs{C: isa.Ptr(out[h:]), A: isa.Ptr(s), B: isa.Ptr(seen[k:]), M: group, N: hd, K: n, LDC: hd, ARS: ld, AKS: 1, BKS: kept, BPS: isa.Panel})
			}
		}
	}
}
