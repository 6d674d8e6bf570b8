package reference

import "haul/internal/kernel"

// GRU is kernel.GRU for one instance: h and prev [T,D], gates [T,4D], x [T,3D], state [D].
func GRU[F Float](h, prev, gates, x, w Matrix[F], bias, state []F, o *kernel.GRU) {
	d := h.Cols
	before := state
	for t := range h.Rows {
		copy(prev.Row(t), before)
		g, in := gates.Row(t), x.Row(t)
		for j := range d {
			u := func(gate int) F { return dot(prev.Row(t), w.Row(gate*d+j)) + bias[gate*d+j] }
			r, z, m := sigmoid(in[j]+u(0)), sigmoid(in[d+j]+u(1)), u(2)
			c := tanh(in[2*d+j] + r*m)
			g[j], g[d+j], g[2*d+j], g[3*d+j] = r, z, c, m
			h.Row(t)[j] = (1-z)*c + z*prev.Row(t)[j]
		}
		before = h.Row(t)
	}
	if o.Carry {
		copy(state, before)
	}
}

// GRUGrad is kernel.GRUGrad for one instance, of the same shapes.
func GRUGrad[F Float](dx, dh, gates, prev, w Matrix[F]) {
	d := dh.Cols
	for t := dh.Rows - 1; t >= 0; t-- {
		g, out := gates.Row(t), dx.Row(t)
		for j, slope := range dh.Row(t) {
			r, z, c, m := g[j], g[d+j], g[2*d+j], g[3*d+j]
			dc := slope * (1 - z) * (1 - c*c)
			dz := slope * (prev.Row(t)[j] - c) * z * (1 - z)
			dr := dc * m * r * (1 - r)
			out[j], out[d+j], out[2*d+j] = dr, dz, dc
			g[j], g[d+j], g[2*d+j] = dr, dz, dc*r
			if t > 0 {
				dh.Row(t - 1)[j] += slope * z
			}
		}
		if t == 0 {
			break
		}
		for k := range 3 * d {
			for j, v := range w.Row(k) {
				dh.Row(t - 1)[j] += g[k] * v
			}
		}
	}
}
