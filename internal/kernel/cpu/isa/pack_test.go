package isa

import (
	"testing"

	"pgregory.net/rapid"

	"haul/internal/kernel/cpu/isa/isatest"
)

func TestPack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, k := rapid.IntRange(1, 200).Draw(t, "n"), rapid.IntRange(1, 200).Draw(t, "k")
		w := make([]float32, n*k)
		for i := range w {
			w[i] = float32(i + 1)
		}
		forward, transposed := isatest.Stale(PackedLen(n, k)), isatest.Stale(PackedLen(k, n))
		packWeights(forward, w, n, k)
		packStraight(transposed, w, n, k)
		for i, got := range forward {
			j, l := i/(k*Panel)*Panel+i%Panel, i/Panel%k
			var want float32
			if j < n {
				want = w[j*k+l]
			}
			if got != want {
				t.Fatalf("%d×%d: packed column %d, row %d is %g, want %g", n, k, j, l, got, want)
			}
		}
		for i, got := range transposed {
			j, l := i/(n*Panel)*Panel+i%Panel, i/Panel%n
			var want float32
			if j < k {
				want = w[l*k+j]
			}
			if got != want {
				t.Fatalf("%d×%d: transposed column %d, row %d is %g, want %g", n, k, j, l, got, want)
			}
		}
	})
}
