//go:build unix

package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
)

// headCase is attention of one instance with every operand its own slice.
type headCase struct {
	t, heads int
	cut      int // a new sequence begins with one in so many tokens; 0: none
	drop     bool
	// blocks of a panel of the gradient; 0: as they are in use
	queries, keys int
}

func (h headCase) String() string {
	return fmt.Sprintf("T=%d H=%d cut=%d drop=%v panels=%dx%d", h.t, h.heads, h.cut, h.drop, h.queries, h.keys)
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

// headRun is what attention of one instance was given and made.
type headRun struct {
	qkv, dy, y, logSum, dqkv []float32
	first                    []int32
	kept                     func(h, i, j int) float64
}

// runHeads draws operands and runs both directions.
func runHeads(s *tileSet, x headCase, alloc func(n int) []float32) headRun {
	rng := rand.New(rand.NewPCG(uint64(x.t), uint64(x.heads)))
	n, d := x.t, x.heads*headWidth
	place := func(n int) []float32 {
		f := alloc(n)
		for i := range f {
			f[i] = float32(rng.NormFloat64())
		}
		return f
	}
	if x.queries == 0 {
		x.queries, x.keys = panelQueries, panelKeys
	}
	c := newHeads(causal{t: n, d: d, heads: x.heads, hd: headWidth, scale: 0.25}, x.queries, x.keys)
	var masks []uint16
	r := headRun{kept: func(h, i, j int) float64 { return 1 }}
	if x.drop {
		c.each, c.drop = groupsBefore(n), &dropper{scale: 1.25}
		words := words32(alloc(x.heads * c.each))
		for i := range words {
			words[i] = rng.Uint32() | rng.Uint32()
		}
		masks = halves(words)
		r.kept = func(h, i, j int) float64 { return 1.25 * float64(words[h*c.each+groupsBefore(i)+j/32]>>(j%32)&1) }
	}
	from := 0
	r.first = ints(alloc(n))
	for i := range r.first {
		if x.cut > 0 && rng.IntN(x.cut) == 0 {
			from = i
		}
		r.first[i] = int32(from)
	}
	r.qkv, r.dy, r.y, r.logSum, r.dqkv = place(n*3*d), place(n*d), place(n*d), place(x.heads*n), place(n*3*d)
	w := &worker{p: sets[0], tiles: s, stop: new(atomic.Bool), scratch: stale(max(c.needForward(), c.needGrad()))}
	c.forward(w, r.y, r.logSum, r.qkv, r.first, masks)
	c.grad(w, r.dqkv, r.dy, r.y, r.logSum, r.qkv, r.first, masks)
	return r
}

// checkHeads compares both directions with float64 on rounded operands. Beside those, p and the
// gradient of a score are rounded, each by at most 2⁻⁸ of itself, and an exponential is off by
// 7.5e-5; fp32's own errors, of scores of a few units too, are well below 2⁻¹². Of long sequences
// it takes every so many tokens, as queries and as keys.
func checkHeads(t *testing.T, s *tileSet, x headCase, every int, alloc func(n int) []float32) {
	t.Helper()
	const off = 0x1p-8 + 0x1p-12 + 7.5e-5
	n, d := x.t, x.heads*headWidth
	r := runHeads(s, x, alloc)
	qkv, dy, y, logSum, dqkv, first, kept := r.qkv, r.dy, r.y, r.logSum, r.dqkv, r.first, r.kept
	taken := func(i int) bool { return i%every == 0 || i == n-1 }

	want, size := make([]float64, n*3*d), make([]float64, n*3*d)
	at := func(f []float32, stride, i, column int) float64 { return rounded(f[i*stride+column]) }
	check := func(what string, got float32, want, bound float64) {
		if e := math.Abs(float64(got) - want); !(e <= bound) {
			t.Fatalf("%v: %s = %g, want %g: off by %.2g, bound %.2g", x, what, got, want, e, bound)
		}
	}
	score, slope := make([]float64, n), make([]float64, n)
	for h := range x.heads {
		for i := range n {
			low, sum, whole := int(first[i]), 0.0, taken(i)
			clear(score)
			clear(slope)
			for j := low; j <= i; j++ {
				if !whole && !taken(j) {
					continue
				}
				for l := range headWidth {
					score[j] += 0.25 * at(qkv, 3*d, i, h*headWidth+l) * at(qkv, 3*d, j, d+h*headWidth+l)
					slope[j] += at(dy, d, i, h*headWidth+l) * at(qkv, 3*d, j, 2*d+h*headWidth+l)
				}
				sum += math.Exp(score[j])
			}
			if whole {
				check(fmt.Sprintf("log sum %d.%d", h, i), logSum[h*n+i], math.Log(sum), 1e-4)
			}
			dots := 0.0
			for l := range headWidth {
				out, all := 0.0, 0.0
				for j := low; j <= i && whole; j++ {
					v := math.Exp(score[j]) / sum * kept(h, i, j) * at(qkv, 3*d, j, 2*d+h*headWidth+l)
					out, all = out+v, all+math.Abs(v)
				}
				if whole {
					check(fmt.Sprintf("y %d.%d.%d", h, i, l), y[i*d+h*headWidth+l], out, off*all)
				}
				dots += float64(dy[i*d+h*headWidth+l]) * float64(y[i*d+h*headWidth+l])
			}
			for j := low; j <= i; j++ {
				if !whole && !taken(j) {
					continue
				}
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
		if taken(e / (3 * d)) {
			check(fmt.Sprintf("dqkv %d.%d", e/(3*d), e%(3*d)), got, want[e], off*size[e])
		}
	}
}

// TestHeads: every number of tokens up to more than two groups of dropout bits, then about larger
// blocks, then about panels and past them, where some of the tokens are compared.
func TestHeads(t *testing.T) {
	eachHeads(t, func(t *testing.T, s *tileSet) {
		sizes := []int{79, 80, 81, 96, 111, 164}
		for n := 1; n <= 66; n++ {
			sizes = append(sizes, n)
		}
		for i, n := range sizes {
			checkHeads(t, s, headCase{t: n, heads: 1 + i%4, cut: []int{0, 3, 20}[i%3], drop: i%2 == 0}, 1, stale)
			checkHeads(t, s, headCase{t: n, heads: 1, cut: []int{0, 3, 20}[(i+1)%3], drop: i%2 == 0, queries: 1 + i%3, keys: 2}, 1, stale)
		}
		for i, n := range []int{255, 256, 257, 271, 272, 273, 511, 512, 513, 1023, 1024, 1025, 4095, 4097} {
			checkHeads(t, s, headCase{t: n, heads: 1, cut: []int{0, 300}[i%2], drop: i%3 == 0}, 1+n/4, stale)
		}
	})
}

// TestHeadsPanels: panels of any size leave the same bits.
func TestHeadsPanels(t *testing.T) {
	eachHeads(t, func(t *testing.T, s *tileSet) {
		for _, n := range []int{33, 160, 511, 512, 513, 1025, 4097} {
			for _, cut := range []int{0, 100} {
				x := headCase{t: n, heads: 2, cut: cut, drop: true, queries: 1 << 20, keys: 1 << 20}
				panels := [][2]int{{panelQueries, panelKeys}, {1, 2}, {3, 4}, {5, 2}}
				if n > 2000 {
					x.queries, x.keys, panels = 50, 130, panels[:1]
				}
				want := runHeads(s, x, stale).dqkv
				for _, panel := range panels {
					x.queries, x.keys = panel[0], panel[1]
					if !slices.Equal(runHeads(s, x, stale).dqkv, want) {
						t.Errorf("%v: the gradient has other bits than in larger panels", x)
					}
				}
			}
		}
	})
}

// TestHeadsGuarded: nothing beyond an operand is touched, at whatever alignment a page's edge
// gives.
func TestHeadsGuarded(t *testing.T) {
	eachHeads(t, func(t *testing.T, s *tileSet) {
		for _, n := range []int{1, 15, 16, 17, 31, 33, 47, 80} {
			for _, front := range []bool{false, true} {
				checkHeads(t, s, headCase{t: n, heads: 3, cut: 9, drop: true, queries: 2, keys: 2}, 1, func(n int) []float32 { return guarded(t, n, front) })
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
			c := newHeads(causal{t: n, d: d, heads: 1, hd: d, scale: 0.25}, panelQueries, panelKeys)
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
