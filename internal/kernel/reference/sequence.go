package reference

import (
	"math"

	"haul/internal/kernel"
)

// Embed is kernel.Embed for one instance: y [T,D], index [T·F].
func Embed[F Float](y Matrix[F], index []int32, tables []Matrix[F]) {
	fields := len(index) / y.Rows
	for m := range y.Rows {
		row := y.Row(m)
		clear(row)
		for f, table := range tables {
			if i := index[m*fields+f]; i >= 0 {
				for c, v := range table.Row(int(i)) {
					row[c] += v
				}
			}
		}
	}
}

// EmbedGrad is kernel.EmbedGrad for one instance; an absent table has no gradient.
func EmbedGrad[F Float](dtables []Matrix[F], dy Matrix[F], index []int32) {
	fields := len(index) / dy.Rows
	for m := range dy.Rows {
		for f, table := range dtables {
			if i := index[m*fields+f]; i >= 0 && table.Data != nil {
				row := table.Row(int(i))
				for c, v := range dy.Row(m) {
					row[c] += v
				}
			}
		}
	}
}

// Rotate is kernel.Rotate for one instance: y and x [T,(H+2K)·W], index [T·F].
func Rotate[F Float](y, x Matrix[F], index []int32, o *kernel.Rotate) {
	fields, w := len(index)/y.Rows, y.Cols/(o.Heads+2*o.KVHeads)
	for m := range y.Rows {
		from, to := x.Row(m), y.Row(m)
		copy(to, from)
		position := int(index[(m+1)*fields-1])
		if position < 0 {
			continue
		}
		for head := 0; head < (o.Heads+o.KVHeads)*w; head += w { // of queries, then of keys
			for j := range w / 2 {
				sin, cos := math.Sincos(o.Angle(position, j, w))
				if o.Back {
					sin = -sin
				}
				a, b := from[head+j], from[head+j+w/2]
				to[head+j], to[head+j+w/2] = a*F(cos)-b*F(sin), b*F(cos)+a*F(sin)
			}
		}
	}
}

// Spread is kernel.Spread for one instance: y [T,3·heads·W], x [T,(heads+2·kv)·W].
func Spread[F Float](y, x Matrix[F], heads, kv int) {
	w := y.Cols / (3 * heads)
	for m := range y.Rows {
		for c := range y.Cols {
			y.Row(m)[c] = x.Row(m)[spreadFrom(c, heads, kv, w)]
		}
	}
}

// SpreadGrad is kernel.SpreadGrad for one instance.
func SpreadGrad[F Float](dx, dy Matrix[F], heads, kv int) {
	w := dy.Cols / (3 * heads)
	for m := range dy.Rows {
		clear(dx.Row(m))
		for c, v := range dy.Row(m) {
			dx.Row(m)[spreadFrom(c, heads, kv, w)] += v
		}
	}
}

// spreadFrom is the column of x that column c of y is a copy of.
func spreadFrom(c, heads, kv, w int) int {
	head, column := c/w, c%w
	switch group := heads / kv; {
	case head < heads:
		return c
	case head < 2*heads:
		return (heads+(head-heads)/group)*w + column
	default:
		return (heads+kv+(head-2*heads)/group)*w + column
	}
}

// CausalAttention is kernel.CausalAttention for the instance of global index `instance`: y [T,D],
// logSum [H,T], qkv [T,3D], first [T].
func CausalAttention[F Float](y, logSum, qkv Matrix[F], first []int32, d kernel.Drop, instance uint64) {
	n, width, heads := y.Rows, y.Cols, logSum.Rows
	w := width / heads
	for h := range heads {
		for i := range n {
			from := int(first[i])
			s := causalScores(qkv, h, heads, from, i)
			sum := logSumExp(s)
			logSum.Row(h)[i] = sum
			out := y.Row(i)[h*w:][:w]
			clear(out)
			for j := from; j <= i; j++ {
				p := exp(s[j-from]-sum) * dropped[F](d, instance, h*n+i, j, n)
				for c, v := range qkv.Row(j)[2*width+h*w:][:w] {
					out[c] += p * v
				}
			}
		}
	}
}

// causalScores are q_i·k_j/√w of head h for j from `from` to i.
func causalScores[F Float](qkv Matrix[F], h, heads, from, i int) []F {
	width := qkv.Cols / 3
	w := width / heads
	scale := 1 / sqrt(F(w))
	s := make([]F, i-from+1)
	for j := range s {
		s[j] = dot(qkv.Row(i)[h*w:][:w], qkv.Row(from + j)[width+h*w:][:w]) * scale
	}
	return s
}

// logSumExp is log Σ exp z.
func logSumExp[F Float](z []F) F {
	top := z[0]
	for _, v := range z {
		top = max(top, v)
	}
	var sum F
	for _, v := range z {
		sum += exp(v - top)
	}
	return top + log(sum)
}

// CausalAttentionGrad is kernel.CausalAttentionGrad for one instance. With p the probabilities and
// m what dropout multiplies them by, dp_j = m_j·(dy·v_j), dz_j = p_j·(dp_j - Σ p·dp), dv_j =
// m_j·p_j·dy.
func CausalAttentionGrad[F Float](dqkv, dy, logSum, qkv Matrix[F], first []int32, d kernel.Drop, instance uint64) {
	n, width, heads := dy.Rows, dy.Cols, logSum.Rows
	w := width / heads
	scale := 1 / sqrt(F(w))
	for i := range n {
		clear(dqkv.Row(i))
	}
	for h := range heads {
		for i := range n {
			from, g := int(first[i]), dy.Row(i)[h*w:][:w]
			p := causalScores(qkv, h, heads, from, i)
			m, dp := make([]F, len(p)), make([]F, len(p))
			for e := range p {
				j := from + e
				p[e] = exp(p[e] - logSum.Row(h)[i])
				m[e] = dropped[F](d, instance, h*n+i, j, n)
				dp[e] = m[e] * dot(g, qkv.Row(j)[2*width+h*w:][:w])
			}
			mean := dot(p, dp)
			for e := range p {
				j, dz := from+e, p[e]*(dp[e]-mean)
				q, k := qkv.Row(i)[h*w:][:w], qkv.Row(j)[width+h*w:][:w]
				dq, dk, dv := dqkv.Row(i)[h*w:][:w], dqkv.Row(j)[width+h*w:][:w], dqkv.Row(j)[2*width+h*w:][:w]
				for c := range w {
					dq[c] += dz * scale * k[c]
					dk[c] += dz * scale * q[c]
					dv[c] += m[e] * p[e] * g[c]
				}
			}
		}
	}
}

// CacheAttention is kernel.CacheAttention for one instance: y [D], qkv [D+2K], keys and values
// [T,K].
func CacheAttention[F Float](y, qkv []F, keys, values Matrix[F], at, heads int) {
	width, kept := len(y), keys.Cols
	w, group := width/heads, width/kept
	copy(keys.Row(at), qkv[width:][:kept])
	copy(values.Row(at), qkv[width+kept:])
	p := make([]F, at+1)
	for h := range heads {
		shared := h / group * w // where the group's head begins
		for j := range p {
			p[j] = dot(qkv[h*w:][:w], keys.Row(j)[shared:][:w]) / sqrt(F(w))
		}
		softmax(p)
		out := y[h*w:][:w]
		clear(out)
		for j := range p {
			for c, v := range values.Row(j)[shared:][:w] {
				out[c] += p[j] * v
			}
		}
	}
}
