//go:build unix

package isa

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkProduct times the products of a step's shard on one core, then the small ones of
// attention (per head and instance) and of the decoder.
func BenchmarkProduct(b *testing.B) {
	type shape struct {
		name string
		product
	}
	var shapes []shape
	for _, layer := range [][2]int{{4, 128}, {128, 384}, {128, 128}, {128, 512}, {256, 128}} {
		in, out := layer[0], layer[1]
		shapes = append(shapes,
			shape{"forward", product{m: 176, k: in, n: out, packed: true, bias: true}},
			shape{"dX", product{m: 176, k: out, n: in, packed: true}},
			shape{"dW", product{m: out, k: 176, n: in, transposed: true, inPlace: true}})
	}
	for _, nodes := range []int{11, 21, 51, 101} {
		pad := (nodes+15)&^15 - nodes
		shapes = append(shapes,
			shape{"scores", product{m: nodes, k: 32, n: nodes, padA: 96, padB: pad, padC: pad}},
			shape{"mix", product{m: nodes, k: nodes, n: 32, padA: pad, padB: 96, padC: 96}},
			shape{"decode", product{m: 1, k: 32, n: nodes, padB: pad}},
			shape{"decode", product{m: 1, k: nodes, n: 32, padB: 96}})
	}
	shapes = append(shapes, shape{"decode", product{m: 1, k: 128, n: 128, packed: true}})
	for _, s := range Tables[:max(1, len(Tables)-1)] {
		for _, sh := range shapes {
			b.Run(fmt.Sprintf("%s/%s/%dx%dx%d", s.Name, sh.name, sh.m, sh.k, sh.n), func(b *testing.B) {
				o := sh.build(rand.New(rand.NewPCG(1, 1)), heap)
				for b.Loop() {
					s.Gemm(&o.args)
				}
				b.ReportMetric(2*float64(o.args.M)*float64(o.args.N)*float64(o.args.K)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			})
		}
	}
}
