//go:build unix

package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"testing"
)

// headCase is attention of one instance with every operand its own slice.
type headCase struct {
	t, heads int
	cut      int // a new sequence begins with one in so many tokens; 0: none
	drop     bool
}

func (h headCase) String() string {
	return fmt.Sprintf("T=%d H=%d cut=%d drop=%v", h.t, h.heads, h.cut, h.drop)
}

// eachHeads runs the test for the sets that attend by tiles.
func eachHeads(t *testing.T, run func(t *testing.T, s *tileSet)) {
	some := false
	for _, s := range tileSets {
		if s.attend != nil {
			some = true
			t.Run(s.name, func(t *testing.T) { run(t, s) })
		}
	}
	if !some {
		t.Skip("no tiles here that attend")
	}
}

// checkHeads compares both directions with float64 on rounded operands. Beside those, p and the
// gradient of a score are rounded, each by at most 2⁻⁸ of itself, and an exponential is off by
// 7.5e-5; fp32's own errors, of scores of a few units too, are well below 2⁻¹².
func checkHeads(t *testing.T, s *tileSet, x headCase, alloc func(n int) []float32) {
	t.Helper()
	const off = 0x1p-8 + 0x1p-12 + 7.5e-5
	rng := rand.New(rand.NewPCG(uint64(x.t), uint64(x.heads)))
	n, d := x.t, x.heads*headWidth
	place := func(n int) []float32 {
		f := alloc(n)
		for i := range f {
			f[i] = float32(rng.NormFloat64())
		}
		return f
	}
	c := heads{causal{t: n, d: d, heads: x.heads, hd: headWidth, scale: 0.25}, ceil(n, tileLines), ceil(d, tileDepth), ceil(n, tileDepth)}
	var masks []uint16
	kept := func(h, i, j int) float64 { return 1 }
	if x.drop {
		c.each, c.drop = groupsBefore(n), &dropper{scale: 1.25}
		words := words32(alloc(x.heads * c.each))
		for i := range words {
			words[i] = rng.Uint32() | rng.Uint32()
		}
		masks = halves(words)
		kept = func(h, i, j int) float64 { return 1.25 * float64(words[h*c.each+groupsBefore(i)+j/32]>>(j%32)&1) }
	}
	first, from := ints(alloc(n)), 0
	for i := range first {
		if x.cut > 0 && rng.IntN(x.cut) == 0 {
			from = i
		}
		first[i] = int32(from)
	}
	qkv, dy, y, logSum, dqkv := place(n*3*d), place(n*d), place(n*d), place(x.heads*n), place(n*3*d)
	w := &worker{p: sets[0], tiles: s, stop: new(atomic.Bool), scratch: stale(max(c.needForward(), c.needGrad()))}
	c.forward(w, y, logSum, qkv, first, masks)
	c.grad(w, dqkv, dy, y, logSum, qkv, first, masks)

	want, size := make([]float64, n*3*d), make([]float64, n*3*d)
	at := func(f []float32, stride, i, column int) float64 { return rounded(f[i*stride+column]) }
	check := func(what string, got float32, want, bound float64) {
		if e := math.Abs(float64(got) - want); !(e <= bound) {
			t.Fatalf("%v: %s = %g, want %g: off by %.2g, bound %.2g", x, what, got, want, e, bound)
		}
	}
	for h := range x.heads {
		for i := range n {
			low, sum := int(first[i]), 0.0
			score, slope := make([]float64, i+1), make([]float64, i+1)
			for j := low; j <= i; j++ {
				for l := range headWidth {
					score[j] += 0.25 * at(qkv, 3*d, i, h*headWidth+l) * at(qkv, 3*d, j, d+h*headWidth+l)
					slope[j] += at(dy, d, i, h*headWidth+l) * at(qkv, 3*d, j, 2*d+h*headWidth+l)
				}
				sum += math.Exp(score[j])
			}
			check(fmt.Sprintf("log sum %d.%d", h, i), logSum[h*n+i], math.Log(sum), 1e-4)
			dots := 0.0
			for l := range headWidth {
				out, all := 0.0, 0.0
				for j := low; j <= i; j++ {
					v := math.Exp(score[j]) / sum * kept(h, i, j) * at(qkv, 3*d, j, 2*d+h*headWidth+l)
					out, all = out+v, all+math.Abs(v)
				}
				check(fmt.Sprintf("y %d.%d.%d", h, i, l), y[i*d+h*headWidth+l], out, off*all)
				dots += float64(dy[i*d+h*headWidth+l]) * float64(y[i*d+h*headWidth+l])
			}
			for j := low; j <= i; j++ {
				p := math.Exp(score[j] - float64(logSum[h*n+i]))
				ds, m := 0.25*p*(kept(h, i, j)*slope[j]-dots), p*kept(h, i, j)
				for l := range headWidth {
					add := func(row, column int, v float64) {
						want[row*3*d+column] += v
						size[row*3*d+column] += math.Abs(v) + 0.25*p*math.Abs(dots)*0x1p-10
					}
					add(i, h*headWidth+l, ds*at(qkv, 3*d, j, d+h*headWidth+l))
					add(j, d+h*headWidth+l, ds*at(qkv, 3*d, i, h*headWidth+l))
					add(j, 2*d+h*headWidth+l, m*at(dy, d, i, h*headWidth+l))
				}
			}
		}
	}
	for e, got := range dqkv {
		check(fmt.Sprintf("dqkv %d.%d", e/(3*d), e%(3*d)), got, want[e], off*size[e])
	}
}

// TestHeads: every number of tokens up to more than two groups of dropout bits, then about larger
// blocks.
func TestHeads(t *testing.T) {
	eachHeads(t, func(t *testing.T, s *tileSet) {
		sizes := []int{79, 80, 81, 96, 111, 164}
		for n := 1; n <= 66; n++ {
			sizes = append(sizes, n)
		}
		for i, n := range sizes {
			checkHeads(t, s, headCase{n, 1 + i%4, []int{0, 3, 20}[i%3], i%2 == 0}, stale)
		}
	})
}

// TestHeadsGuarded: nothing beyond an operand is touched, at whatever alignment a page's edge
// gives.
func TestHeadsGuarded(t *testing.T) {
	eachHeads(t, func(t *testing.T, s *tileSet) {
		for _, n := range []int{1, 15, 16, 17, 31, 33, 47, 80} {
			for _, front := range []bool{false, true} {
				checkHeads(t, s, headCase{n, 3, 9, true}, func(n int) []float32 { return guarded(t, n, front) })
			}
		}
	})
}

// TestHeadsKeepNaN: what is not a number in a query, a key that is looked at or a value reaches the
// result.
func TestHeadsKeepNaN(t *testing.T) {
	eachHeads(t, func(t *testing.T, s *tileSet) {
		const n, d = 20, headWidth
		for part := range 3 {
			c := heads{causal{t: n, d: d, heads: 1, hd: d, scale: 0.25}, ceil(n, tileLines), ceil(d, tileDepth), ceil(n, tileDepth)}
			qkv, y, logSum, first := make([]float32, n*3*d), make([]float32, n*d), make([]float32, n), make([]int32, n)
			qkv[17*3*d+part*d+5] = float32(math.NaN())
			w := &worker{p: sets[0], tiles: s, stop: new(atomic.Bool), scratch: stale(c.needForward())}
			c.forward(w, y, logSum, qkv, first, nil)
			if v := y[17*d+5]; v == v {
				t.Errorf("part %d: the token's own result is %g", part, v)
			}
			if part < 2 && logSum[17] == logSum[17] {
				t.Errorf("part %d: the token's log sum is %g", part, logSum[17])
			}
		}
	})
}
