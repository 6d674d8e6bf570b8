//go:build unix

package isa

import (
	"math"
	"testing"

	"haul/internal/kernel/cpu/isa/isatest"
)

// eachNear runs the test for the sets that have a GELU for operands in bf16.
func eachNear(t *testing.T, run func(t *testing.T, s *TileSet)) {
	some := false
	for _, s := range TileTables {
		if s.GELU != nil {
			some = true
			t.Run(s.Name, func(t *testing.T) { run(t, s) })
		}
	}
	if !some {
		t.Skip("no set here has one")
	}
}

// TestGELUNear holds GELU and its slope to what their comments say, over all that is not flat, and
// to exactly nothing and everything beyond.
func TestGELUNear(t *testing.T) {
	eachNear(t, func(t *testing.T, s *TileSet) {
		var x, ones []float32
		for v := -12.0; v <= 12; v += 1e-4 {
			x, ones = append(x, float32(v)), append(ones, 1)
		}
		x, ones = append(x, 0, 3e38, -3e38), append(ones, 1, 1, 1)
		y, slope := make([]float32, len(x)), make([]float32, len(x))
		s.GELU(y, x)
		s.GELUGrad(slope, ones, x)
		for i, v := range x {
			v := float64(v)
			th := math.Tanh(math.Sqrt(2/math.Pi) * (v + 0.044715*v*v*v))
			if e := math.Abs(float64(y[i]) - v/2*(1+th)); !(e <= 3e-4) && math.Abs(v) < 1e30 {
				t.Fatalf("gelu(%g) = %g, off by %.2g", v, y[i], e)
			}
			want := (1+th)/2 + v/2*(1-th*th)*math.Sqrt(2/math.Pi)*(1+3*0.044715*v*v)
			if math.Abs(v) > 30 {
				want = (1 + th) / 2
			}
			if e := math.Abs(float64(slope[i]) - want); !(e <= 8e-4) {
				t.Fatalf("the slope at %g is %g, off by %.2g", v, slope[i], e)
			}
			if v <= -4 && (y[i] != 0 || slope[i] != 0) || v >= 4 && (y[i] != x[i] || slope[i] != 1) || v == 0 && y[i] != 0 {
				t.Fatalf("at %g: %g, slope %g", v, y[i], slope[i])
			}
		}
	})
}

// TestGELUNearGuarded: any length, in place, at a page's edge; what is not a number stays none.
func TestGELUNearGuarded(t *testing.T) {
	eachNear(t, func(t *testing.T, s *TileSet) {
		for n := range 140 {
			for _, front := range []bool{false, true} {
				x, dy, want := isatest.Guarded(t, n, front), isatest.Guarded(t, n, front), make([]float32, n)
				for i := range x {
					x[i], dy[i] = float32(i%17)-8.3, float32(i)
				}
				if n > 0 {
					x[n-1] = float32(math.NaN())
				}
				s.GELU(want, x)
				slopes := make([]float32, n)
				s.GELUGrad(slopes, dy, x)
				s.GELUGrad(dy, dy, x)
				s.GELU(x, x)
				for i := range x {
					last := i == n-1
					if last != (x[i] != x[i]) || last != (dy[i] != dy[i]) || !last && (x[i] != want[i] || dy[i] != slopes[i]) {
						t.Fatalf("%d of %d: %g, want %g; slope %g, want %g", i, n, x[i], want[i], dy[i], slopes[i])
					}
				}
			}
		}
	})
}
