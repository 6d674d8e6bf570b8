package cpu

import (
	"testing"

	"pgregory.net/rapid"
)

func TestPack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, k := rapid.IntRange(1, 200).Draw(t, "n"), rapid.IntRange(1, 200).Draw(t, "k")
		w := make([]float32, n*k)
		for i := range w {
			w[i] = float32(i + 1)
		}
		forward, transposed := stale(packedLen(n, k)), stale(packedLen(k, n))
		packWeights(forward, w, n, k)
		packStraight(transposed, w, n, k)
		for i, got := range forward {
			j, l := i/(k*panel)*panel+i%panel, i/panel%k
			var want float32
			if j < n {
				want = w[j*k+l]
			}
			if got != want {
				t.Fatalf("%d×%d: packed column %d, row %d is %g, want %g", n, k, j, l, got, want)
			}
		}
		for i, got := range transposed {
			j, l := i/(n*panel)*panel+i%panel, i/panel%n
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

// stale is a buffer full of what must be overwritten.
func stale(n int) []float32 {
	s := make([]float32, n)
	for i := range s {
		s[i] = -1
	}
	return s
}
