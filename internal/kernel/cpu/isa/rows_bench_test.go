//go:build unix

package isa

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// BenchmarkRows times each primitive on a shard of the model: 176 tokens (16 routes of 11 nodes) of
// width 128, a gate of 256, 8 heads of attention over 11 or 101 nodes, and a pass over 400,000
// weights. Every eighth call starts from the inputs again, before what works in place has shrunk
// them to subnormal numbers.
func BenchmarkRows(b *testing.B) {
	cases := []struct {
		shape
		names string
	}{
		{shape{176, 128, 128}, "norm normGrad,false normGrad,true colSum,true transpose gelu geluGrad query"},
		{shape{176, 256, 256}, "glu gluGrad"},
		{shape{1408, 11, 16}, "softmaxBias softmaxBiasGrad softmaxMask softmaxGrad"},
		{shape{808, 101, 112}, "softmaxBias softmaxBiasGrad softmaxMask softmaxGrad"},
		{shape{176, 11, 16}, "pointer pointerGrad"},
		{shape{176, 101, 112}, "pointer pointerGrad"},
		{shape{11, 11, 16}, "distances transpose"},
		{shape{1, 400_000, 400_000}, "adamw sumSquares add"},
	}
	for _, k := range cases {
		rng := rand.New(rand.NewPCG(1, 1))
		for _, c := range rowCalls(rng, k.shape) {
			if !strings.Contains(" "+k.names+" ", " "+c.name+" ") {
				continue
			}
			for _, set := range Tables {
				b.Run(fmt.Sprintf("%s/%s/%s", c.name, k.shape, set.Name), func(b *testing.B) {
					buf := c.buffers(rng, heap)
					fresh := clones(buf, heap)
					for i := 0; b.Loop(); i++ {
						if i%8 == 0 {
							for k := range fresh {
								copy(buf[k], fresh[k])
							}
						}
						c.run(set, buf)
					}
				})
			}
		}
	}
}
