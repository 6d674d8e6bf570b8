package reference

// distance is how far nodes i and j are apart.
func distance[F Float](x, y []F, i, j int) F {
	dx, dy := x[i]-x[j], y[i]-y[j]
	return sqrt(dx*dx + dy*dy)
}

// softmax replaces z by its softmax.
func softmax[F Float](z []F) {
	top := z[0]
	for _, v := range z {
		top = max(top, v)
	}
	var sum F
	for j, v := range z {
		z[j] = exp(v - top)
		sum += z[j]
	}
	for j := range z {
		z[j] /= sum
	}
}

// Attention is kernel.Attention for one instance: y [N,D], p [H·N,≥N], qkv [N,3D], coordinates and
// slope.
func Attention[F Float](y, p, qkv Matrix[F], posX, posY, slope []F) {
	n, d, heads := y.Rows, y.Cols, len(slope)
	w := d / heads
	scale := 1 / sqrt(F(w))
	for h := range heads {
		for i := range n {
			row := p.Row(h*n + i)
			clear(row[n:])
			q := qkv.Row(i)[h*w:][:w]
			for j := range n {
				k := qkv.Row(j)[d+h*w:][:w]
				row[j] = dot(q, k)*scale - slope[h]*distance(posX, posY, i, j)
			}
			softmax(row[:n])
			out := y.Row(i)[h*w:][:w]
			clear(out)
			for j := range n {
				for c, v := range qkv.Row(j)[2*d+h*w:][:w] {
					out[c] += row[j] * v
				}
			}
		}
	}
}

// AttentionGrad is kernel.AttentionGrad for one instance. With z the scores before the softmax,
// dp_j = dy·v_j, dz_j = p_j·(dp_j - Σ p·dp), and z = q·k·scale - slope·distance gives the rest.
func AttentionGrad[F Float](dqkv Matrix[F], dslope []F, dy, p, qkv Matrix[F], posX, posY []F) {
	n, d, heads := dy.Rows, dy.Cols, len(dslope)
	w := d / heads
	scale := 1 / sqrt(F(w))
	for i := range n {
		clear(dqkv.Row(i))
	}
	dp := make([]F, n)
	for h := range heads {
		for i := range n {
			row, g := p.Row(h*n + i)[:n], dy.Row(i)[h*w:][:w]
			for j := range n {
				dp[j] = dot(g, qkv.Row(j)[2*d+h*w:][:w])
			}
			mean := dot(row, dp)
			for j := range n {
				dz := row[j] * (dp[j] - mean)
				dslope[h] -= dz * distance(posX, posY, i, j)
				q, k := qkv.Row(i)[h*w:][:w], qkv.Row(j)[d+h*w:][:w]
				dq, dk, dv := dqkv.Row(i)[h*w:][:w], dqkv.Row(j)[d+h*w:][:w], dqkv.Row(j)[2*d+h*w:][:w]
				for c := range w {
					dq[c] += dz * scale * k[c]
					dk[c] += dz * scale * q[c]
					dv[c] += row[j] * g[c]
				}
			}
		}
	}
}
