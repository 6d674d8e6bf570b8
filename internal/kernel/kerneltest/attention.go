package kerneltest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"haul/internal/kernel"
)

// shape is N nodes, H heads of W columns.
type shape struct{ nodes, heads, width int }

// shapes are small ones in full (every N, every H, every W), random ones, then the models' own.
// With -short, for a sanitizer, they are a few.
func shapes() []shape {
	var out []shape
	if testing.Short() && !raced {
		return append(out, shape{2, 3, 3}, shape{7, 2, 5}, shape{13, 6, 4}, shape{20, 1, 8}, shape{67, 2, 8}, shape{11, 4, 32})
	}
	for n := 2; n <= 20; n++ {
		out = append(out, shape{n, 1 + n%8, 1 + n%5})
	}
	for h := 1; h <= 8; h++ {
		out = append(out, shape{7, h, 3})
	}
	for w := 1; w <= 40; w++ {
		out = append(out, shape{5 + w%4, 1 + w%3, w})
	}
	random := rand.New(rand.NewPCG(12, 1))
	for range 10 {
		out = append(out, shape{2 + random.IntN(70), 1 + random.IntN(8), 1 + random.IntN(40)})
	}
	return append(out, shape{11, 4, 32}, shape{21, 4, 64}, shape{51, 8, 16}, shape{101, 8, 16})
}

// few keeps the suite quick where instances are large: their number is not what such a shape is
// for.
func few(dev kernel.Device, nodes int) int {
	if nodes <= 8 {
		return batchFor(dev, nodes)
	}
	return min(dev.ShardSize(nodes), 6) + 1
}

func testAttention(t *testing.T, dev kernel.Device) {
	for i, s := range shapes() {
		if !tries(dev, i) {
			continue
		}
		n, d := s.nodes, s.heads*s.width
		// The softmax turns a score's absolute error into a relative one, and scores of standard normal
		// queries and keys reach a few units.
		c := trial{nodes: n, batch: few(dev, n), amplify: 4}
		c.what, c.record = fmt.Sprintf("attention N=%d H=%d W=%d", n, s.heads, s.width), func(r *recording) {
			r.do(&kernel.Attention{Y: r.out("y", n+s.width, n, d), P: r.out("p", n+s.width, s.heads, n, kernel.Pad(n)), QKV: r.in("qkv", n, 3*d),
				PosX: r.in("x", n), PosY: r.in("y0", n), Slope: r.weight("slope", s.heads), Heads: s.heads})
		}
		c.try(t, dev)

		c.what, c.record = fmt.Sprintf("attention.grad N=%d H=%d W=%d", n, s.heads, s.width), func(r *recording) {
			r.do(&kernel.AttentionGrad{DQKV: r.out("dqkv", n+s.width, n, 3*d), DSlope: r.grad(r.weight("slope", s.heads), r.prog.Batch*n*n),
				DY: r.in("dy", n, d), P: r.given("p", probabilities(r, s), s.heads, n, kernel.Pad(n)), QKV: r.in("qkv", n, 3*d),
				PosX: r.in("x", n), PosY: r.in("y0", n), Heads: s.heads})
		}
		c.try(t, dev)
	}
}

func testGraphAttention(t *testing.T, dev kernel.Device) {
	for i, s := range shapes() {
		if !tries(dev, i) {
			continue
		}
		n, d := s.nodes, s.heads*s.width
		c := trial{nodes: n, batch: few(dev, n), amplify: 4}
		c.what, c.record = fmt.Sprintf("gat N=%d H=%d W=%d", n, s.heads, s.width), func(r *recording) {
			r.do(&kernel.GraphAttention{Y: r.out("y", n, n, d), P: r.out("p", n, s.heads, n, kernel.Pad(n)), V: r.in("v", n, d),
				Score: r.in("score", n, 2*s.heads), Far: r.in("far", n, s.heads), PosX: r.in("x", n), PosY: r.in("y0", n), Heads: s.heads, Leak: 0.2})
		}
		c.try(t, dev)

		c.what, c.record = fmt.Sprintf("gat.grad N=%d H=%d W=%d", n, s.heads, s.width), func(r *recording) {
			r.do(&kernel.GraphAttentionGrad{DV: r.out("dv", n, n, d), DScore: r.out("dscore", n+s.width, n, 2*s.heads), DFar: r.out("dfar", n+s.width, n, s.heads),
				DY: r.in("dy", n, d), P: r.given("p", probabilities(r, s), s.heads, n, kernel.Pad(n)), V: r.in("v", n, d),
				Score: r.in("score", n, 2*s.heads), Far: r.in("far", n, s.heads), PosX: r.in("x", n), PosY: r.in("y0", n), Heads: s.heads, Leak: 0.2})
		}
		c.try(t, dev)
	}
}

// probabilities are rows of [.., Pad(N)] that sum to one, zero in the padding.
func probabilities(r *recording, s shape) []float32 {
	pad := kernel.Pad(s.nodes)
	out := r.normals("p", r.prog.Batch*s.heads*s.nodes*pad)
	for at := 0; at < len(out); at += pad {
		row := out[at:][:pad]
		clear(row[s.nodes:])
		var sum float32
		for j, v := range row {
			row[j] = v * v
			sum += row[j]
		}
		for j := range row {
			row[j] /= sum
		}
	}
	return out
}
