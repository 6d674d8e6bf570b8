//go:build unix

package attention

import (
	"testing"

	"haul/internal/kernel/cpu/isa"
	"haul/internal/kernel/cpu/isa/isatest"
	"haul/internal/kernel/cpu/run"
)

// TestCausal: attention in fp32, on every set, with heads of many widths, about blocks and small
// panels; on the fastest set about the panels in use and past them, where some of the tokens are
// compared.
func TestCausal(t *testing.T) {
	for i, p := range isa.Tables {
		t.Run(p.Name, func(t *testing.T) {
			w := &run.Worker{Prims: p}
			for k, n := range []int{1, 2, 15, 16, 17, 31, 32, 33, 47, 48, 49, 64, 65, 80, 81} {
				for v, width := range []int{1, 7, 8, 16, 17, 32, 63, 64, 65} {
					if (k+v+i)%3 > 0 && p != isa.Tables[0] {
						continue
					}
					x := headCase{t: n, heads: 1 + (k+v)%2, width: width, cut: []int{0, 3, 20}[(k+v)%3], drop: (k+v)%2 == 0}
					checkHeads(t, w, x, 1, isatest.Stale)
					x.queries, x.keys = 1+k%3, 1+v%3
					checkHeads(t, w, x, 1, isatest.Stale)
				}
			}
		})
	}
	for i, n := range []int{255, 256, 257, 511, 512, 513, 1023, 1024, 1025, 4095, 4097, 8192} {
		checkHeads(t, &run.Worker{Prims: isa.Tables[0]}, headCase{t: n, heads: 1, width: []int{16, 64}[i%2], cut: []int{0, 0, 300}[i%3], drop: i%4 > 1}, 1+n/4, isatest.Stale)
	}
}

// TestCausalGuarded: nothing beyond an operand is touched.
func TestCausalGuarded(t *testing.T) {
	for _, n := range []int{1, 16, 17, 33, 50} {
		for _, front := range []bool{false, true} {
			x := headCase{t: n, heads: 2, width: 8, cut: 9, drop: true, queries: 1, keys: 2}
			checkHeads(t, &run.Worker{Prims: isa.Tables[0]}, x, 1, func(n int) []float32 { return isatest.Guarded(t, n, front) })
		}
	}
}
