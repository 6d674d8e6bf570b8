package sequence

import (
	"haul/internal/kernel"
	"haul/internal/kernel/cpu/run"
)

// Recurrent layers go token by token over all instances of a shard at once: a token's product has
// as many rows as the shard has instances. What a reader could break: rows past the batch's end are
// computed like any other, with what their memory holds, and add zeros to gradients.

// steepest is as far as exponentials of the gates are taken: their fp32 is 1 or 0 by then.
const steepest = 80

// exponents writes to out what e is raised to for the logistic function of x + u.
func exponents(out, x, u []float32) {
	for j, v := range x {
		out[j] = min(-(v + u[j]), steepest)
	}
}

func gru(b *run.Binder, o *kernel.GRU) func(*run.Worker) {
	h, prev, gates, x := b.Ref(o.H), b.Ref(o.Prev), b.Ref(o.Gates), b.Ref(o.X)
	bias, state := b.Ref(o.Bias), b.Ref(o.State)
	n, t, d := o.Dims()
	multiply := b.ByWeight(b.Runner.Sets[o.W.Set].Forward(o.W.Offset), n, d, 3*d, t*d, 4*t*d, 0)
	b.Need(2*n*d, 0)
	return func(w *run.Worker) {
		hb, pb, gb, xb, sb := h.Of(w), prev.Of(w), gates.Of(w), x.Of(w), state.Of(w)
		for i := range n {
			copy(pb[i*t*d:][:d], sb[i*d:][:d])
		}
		for s := range t {
			multiply(w, gb[4*s*d:], pb[s*d:], bias.Of(w), nil)
			e := w.Scratch[:2*n*d]
			for i := range n {
				at := i*t + s
				exponents(e[2*i*d:][:2*d], xb[3*at*d:][:2*d], gb[4*at*d:][:2*d])
			}
			w.Prims.Exp(e, e)
			for i := range n {
				at := i*t + s
				// instances before have been read from where this one's candidate goes
				g, c, in := gb[4*at*d:][:4*d], e[i*d:][:d], xb[(3*at+2)*d:][:d]
				for j, v := range e[2*i*d:][:2*d] {
					g[j] = 1 / (1 + v)
				}
				copy(g[3*d:], g[2*d:3*d])
				for j, u := range g[3*d:] {
					// tanh v = 2/(1+e^-2v) - 1
					c[j] = min(-2*(in[j]+float32(g[j]*u)), steepest)
				}
			}
			e = e[:n*d]
			w.Prims.Exp(e, e)
			for i := range n {
				at := i*t + s
				g, out, before := gb[4*at*d:][:3*d], hb[at*d:][:d], pb[at*d:][:d]
				for j, v := range e[i*d:][:d] {
					z, c := g[d+j], 2/(1+v)-1
					g[2*d+j] = c
					out[j] = float32((1-z)*c) + float32(z*before[j])
				}
				switch {
				case s+1 < t:
					copy(pb[(at+1)*d:][:d], out)
				case o.Carry:
					copy(sb[i*d:][:d], out)
				}
			}
		}
	}
}

func gruGrad(b *run.Binder, o *kernel.GRUGrad) func(*run.Worker) {
	dx, dh, gates, prev := b.Ref(o.DX), b.Ref(o.DH), b.Ref(o.Gates), b.Ref(o.Prev)
	n, t, d := o.Dims()
	multiply := b.ByWeight(b.Runner.Sets[o.W.Set].Transposed(o.W.Offset), n, 3*d, d, 4*t*d, t*d, t*d)
	return func(w *run.Worker) {
		xb, hb, gb, pb := dx.Of(w), dh.Of(w), gates.Of(w), prev.Of(w)
		for s := t - 1; s >= 0; s-- {
			for i := range n {
				at := i*t + s
				out, g, before := xb[3*at*d:][:3*d], gb[4*at*d:][:4*d], pb[at*d:][:d]
				var sum []float32
				if s > 0 {
					sum = hb[(at-1)*d:][:d]
				}
				for j, slope := range hb[at*d:][:d] {
					r, z, c, m := g[j], g[d+j], g[2*d+j], g[3*d+j]
					dc := slope * (1 - z) * (1 - c*c)
					dz := slope * (before[j] - c) * z * (1 - z)
					dr := dc * m * r * (1 - r)
					out[j], out[d+j], out[2*d+j] = dr, dz, dc
					g[j], g[d+j], g[2*d+j] = dr, dz, dc*r
					if sum != nil {
						sum[j] += float32(slope * z)
					}
				}
			}
			if s > 0 {
				multiply(w, hb[(s-1)*d:], gb[4*s*d:], nil, hb[(s-1)*d:])
			}
		}
	}
}
