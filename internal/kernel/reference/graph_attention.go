package reference

// edge is a score of kernel.GraphAttention before leaky: what head h of node i makes of node j.
func edge[F Float](score, far Matrix[F], posX, posY []F, h, i, j int) F {
	heads := far.Cols
	return score.Row(i)[h] + score.Row(j)[heads+h] - far.Row(i)[h]*distance(posX, posY, i, j)
}

// GraphAttention is kernel.GraphAttention for one instance: y [N,D], p [H·N,≥N], v [N,D], score
// [N,2H], far [N,H] and coordinates.
func GraphAttention[F Float](y, p, v, score, far Matrix[F], posX, posY []F, leak F) {
	n, heads := y.Rows, far.Cols
	w := y.Cols / heads
	for h := range heads {
		for i := range n {
			row := p.Row(h*n + i)
			clear(row[n:])
			for j := range n {
				if row[j] = edge(score, far, posX, posY, h, i, j); !(row[j] > 0) {
					row[j] *= leak
				}
			}
			softmax(row[:n])
			out := y.Row(i)[h*w:][:w]
			clear(out)
			for j := range n {
				for c, x := range v.Row(j)[h*w:][:w] {
					out[c] += row[j] * x
				}
			}
		}
	}
}

// GraphAttentionGrad is kernel.GraphAttentionGrad for one instance. dp_j = dy·v_j is the gradient
// of a probability, p_j·(dp_j - Σ p·dp) that of a score, and leaky passes on all of it or the share
// leak.
func GraphAttentionGrad[F Float](dv, dscore, dfar, dy, p, v, score, far Matrix[F], posX, posY []F, leak F) {
	n, heads := dy.Rows, far.Cols
	w := dy.Cols / heads
	for i := range n {
		clear(dv.Row(i))
		clear(dscore.Row(i))
		clear(dfar.Row(i))
	}
	dp := make([]F, n)
	for h := range heads {
		for i := range n {
			row, g := p.Row(h*n + i)[:n], dy.Row(i)[h*w:][:w]
			for j := range n {
				dp[j] = dot(g, v.Row(j)[h*w:][:w])
			}
			mean := dot(row, dp)
			for j := range n {
				dz := row[j] * (dp[j] - mean)
				if !(edge(score, far, posX, posY, h, i, j) > 0) {
					dz *= leak
				}
				dscore.Row(i)[h] += dz
				dscore.Row(j)[heads+h] += dz
				dfar.Row(i)[h] -= dz * distance(posX, posY, i, j)
				for c, x := range g {
					dv.Row(j)[h*w+c] += row[j] * x
				}
			}
		}
	}
}
