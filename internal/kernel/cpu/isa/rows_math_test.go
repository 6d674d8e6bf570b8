//go:build unix

package isa

import (
	"math"
	"testing"
)

// The elementary functions are reached through the primitives that use them, against float64. The
// bounds are the roundings each needs beside the polynomial's own 4.4e-9: a few half ulps, stated
// in units of 2^-23 of the result; the errors found are logged with -v.
const unit = 1.0 / (1 << 23)

// worst logs the largest of errors(x) over a sweep and holds it under bound.
func worst(t *testing.T, name string, bound float64, xs []float32, errors func(i int) float64) {
	t.Helper()
	top, where := 0.0, float32(0)
	for i, x := range xs {
		if e := errors(i); !(e <= top) {
			top, where = e, x
		}
	}
	t.Logf("%s: %.2f units at %g", name, top/unit, where)
	if !(top <= bound*unit) {
		t.Errorf("%s is off by %.2f units at %g, more than %g", name, top/unit, where, bound)
	}
}

// sweep returns count values from low to high and as many near zero.
func sweep(low, high float64, count int) []float32 {
	var xs []float32
	for i := range count {
		x := low + (high-low)*float64(i)/float64(count-1)
		xs = append(xs, float32(x), float32(x*math.Exp2(-float64(i%30))))
	}
	return xs
}

func relative(got float32, want float64) float64 {
	return math.Abs(float64(got)-want) / math.Abs(want)
}

// TestSigmoidAccuracy: exp, an addition and a division, each relative to the result, down to the
// smallest normal numbers.
func TestSigmoidAccuracy(t *testing.T) {
	eachSet(t, func(t *testing.T, s *Primitives) {
		xs := sweep(-87, 87, 100_000)
		g, y := make([]float32, 2*len(xs)), make([]float32, len(xs))
		copy(g[len(xs):], xs)
		for i := range xs {
			g[i] = 1
		}
		s.GLU(y, g, 1, len(xs))
		worst(t, "sigmoid", 2, xs, func(i int) float64 { return relative(y[i], 1/(1+math.Exp(-float64(xs[i])))) })
	})
}

// TestExpAccuracy: a softmax over {0, x} gives e^x/(1+e^x); its ratio has the error of exp and of
// two roundings.
func TestExpAccuracy(t *testing.T) {
	eachSet(t, func(t *testing.T, s *Primitives) {
		xs := sweep(-87, 0, 50_000)
		p := make([]float32, 2*len(xs))
		for i, x := range xs {
			p[2*i+1] = x
		}
		mask := make([]uint64, len(xs))
		for i := range mask {
			mask[i] = 3
		}
		s.SoftmaxMask(p, mask, len(xs), 2, 2, 1, 1)
		worst(t, "exp", 2, xs, func(i int) float64 {
			want := math.Exp(float64(xs[i]))
			if want < 0x1p-125 {
				return 0 // the quotient by 1+e^x may leave the normal range
			}
			return math.Abs(float64(p[2*i+1])/float64(p[2*i])-want) / want
		})
	})
}

// TestTanhAccuracy: exp - 1, an addition and a division, relative to the result also near zero.
func TestTanhAccuracy(t *testing.T) {
	eachSet(t, func(t *testing.T, s *Primitives) {
		xs := sweep(-12, 12, 100_000)
		n := len(xs)
		mask := make([]uint64, Words(n))
		for i := range mask {
			mask[i] = ^uint64(0)
		}
		p, lp, th, ent := make([]float32, n), make([]float32, n), make([]float32, n), make([]float32, 1)
		s.Pointer(p, lp, th, ent, xs, mask, 1, n, n, Words(n), 1, 1)
		worst(t, "tanh", 3, xs, func(i int) float64 {
			if xs[i] == 0 {
				return math.Abs(float64(th[i]))
			}
			return relative(th[i], math.Tanh(float64(xs[i])))
		})
	})
}

// TestLogAccuracy: n equal scores have log-probability -ln n.
func TestLogAccuracy(t *testing.T) {
	eachSet(t, func(t *testing.T, s *Primitives) {
		var xs, got []float32
		for n := 2; n <= 3000; n++ {
			mask := make([]uint64, Words(n))
			for i := range mask {
				mask[i] = ^uint64(0)
			}
			p, lp, th, ent := make([]float32, n), make([]float32, n), make([]float32, n), make([]float32, 1)
			s.Pointer(p, lp, th, ent, th, mask, 1, n, n, Words(n), 1, 1)
			xs, got = append(xs, float32(n)), append(got, lp[0])
		}
		worst(t, "log", 1.5, xs, func(i int) float64 { return relative(got[i], -math.Log(float64(xs[i]))) })
	})
}

// TestExtremes: no finite or infinite input makes a NaN, and the limits are exact.
func TestExtremes(t *testing.T) {
	inf := float32(math.Inf(1))
	eachSet(t, func(t *testing.T, s *Primitives) {
		xs := []float32{0, 104, 1e3, 1e10, 3e38, inf}
		for _, x := range xs {
			y := make([]float32, 2)
			s.GLU(y[:1], []float32{1, x}, 1, 1)
			s.GLU(y[1:], []float32{1, -x}, 1, 1)
			if want := Sigmoid(x); y[0] != want || !(y[1] <= 0x1p-126 || x == 0) {
				t.Errorf("sigmoid(±%g) = %g, %g; want %g", x, y[0], y[1], want)
			}
			p := []float32{0, -x}
			s.SoftmaxMask(p, []uint64{3}, 1, 2, 2, 1, 1)
			if x > 0 && (p[0] != 1 || p[1] != 0) {
				t.Errorf("softmax(0, %g) = %v", -x, p)
			}
			var lp, th, ent [2]float32
			s.Pointer(p, lp[:], th[:], ent[:1], []float32{x, -x}, []uint64{3}, 1, 2, 2, 1, 1, 10)
			if x > 0 && (th != [2]float32{1, -1}) || ent[0] != ent[0] {
				t.Errorf("tanh(±%g) = %v, entropy %g", x, th, ent[0])
			}
		}
	})
}

// TestGeluAccuracy: to a few roundings of the larger of 1 and x, and zero far below it.
func TestGeluAccuracy(t *testing.T) {
	eachSet(t, func(t *testing.T, s *Primitives) {
		xs := sweep(-30, 30, 100_000)
		y, dx, ones := make([]float32, len(xs)), make([]float32, len(xs)), make([]float32, len(xs))
		for i := range ones {
			ones[i] = 1
		}
		s.GELU(y, xs)
		s.GELUGrad(dx, ones, xs)
		exact := func(i int) (g, slope float64) {
			x := float64(xs[i])
			th := math.Tanh(math.Sqrt(2/math.Pi) * (x + 0.044715*x*x*x))
			return x / 2 * (1 + th), (1+th)/2 + x/2*(1-th*th)*math.Sqrt(2/math.Pi)*(1+3*0.044715*x*x)
		}
		worst(t, "gelu", 2, xs, func(i int) float64 {
			g, _ := exact(i)
			return math.Abs(float64(y[i])-g) / max(1, math.Abs(g))
		})
		worst(t, "gelu's slope", 6, xs, func(i int) float64 {
			_, slope := exact(i)
			return math.Abs(float64(dx[i]) - slope)
		})
		for i, x := range xs {
			if s != &Plain && x < -10 && (y[i] != 0 || dx[i] != 0) {
				t.Fatalf("gelu(%g) = %g, slope %g, want zeros", x, y[i], dx[i])
			}
		}
	})
}
