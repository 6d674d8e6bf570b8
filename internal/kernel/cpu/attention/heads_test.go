//go:build unix

package attention

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"haul/internal/kernel/cpu/isa"
	"haul/internal/kernel/cpu/isa/isatest"
	"haul/internal/kernel/cpu/run"
)

// headCase is attention of one instance with every operand its own slice.
type headCase struct {
	t, heads int
	width    int // of a head; 0: HeadWidth
	cut      int // a new sequence begins with one in so many tokens; 0: none
	drop     bool
	// blocks of a panel: of the gradient and, in fp32, forward; 0: as they are in use
	queries, keys int
}

func (h headCase) String() string {
	return fmt.Sprintf("T=%d H=%d width=%d cut=%d drop=%v panels=%dx%d", h.t, h.heads, h.hd(), h.cut, h.drop, h.queries, h.keys)
}

func (h headCase) hd() int {
	if h.width == 0 {
		return isa.HeadWidth
	}
	return h.width
}

// attender is one instance's, in fp32 or by tiles.
type attender interface {
	needForward() int
	needGrad() int
	forward(w *run.Worker, y, logSum, qkv []float32, first []int32, masks []uint16)
	grad(w *run.Worker, dqkv, dy, y, logSum, qkv []float32, first []int32, masks []uint16)
}

// attention cuts the case for the worker.
func (h headCase) attention(w *run.Worker, drop *run.Dropper) attender {
	d, b := h.heads*h.hd(), CausalRows
	c := newCausal(h.t, d, h.heads, b*h.keys, b*h.queries, b*h.keys)
	if h.queries == 0 {
		c = newCausal(h.t, d, h.heads, causalColumns, gradRows, gradColumns)
	}
	if drop != nil {
		c.drop, c.each = drop, groupsBefore(h.t)
	}
	if w.Tiles == nil {
		return &c
	}
	t := newHeads(c, panelQueries, panelKeys)
	if h.queries > 0 {
		t = newHeads(c, h.queries, h.keys)
	}
	return &t
}

// eachHeads runs the test for the sets that attend by tiles.
func eachHeads(t *testing.T, do func(t *testing.T, w *run.Worker)) {
	some := false
	for _, s := range isa.TileTables {
		if s.Attend != nil {
			some = true
			t.Run(s.Name, func(t *testing.T) { do(t, &run.Worker{Prims: isa.Tables[0], Tiles: s}) })
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
func runHeads(w *run.Worker, x headCase, alloc func(n int) []float32) headRun {
	rng := rand.New(rand.NewPCG(uint64(x.t), uint64(x.heads)))
	n, d := x.t, x.heads*x.hd()
	place := func(n int) []float32 {
		f := alloc(n)
		for i := range f {
			f[i] = float32(rng.NormFloat64())
		}
		return f
	}
	var masks []uint16
	var drop *run.Dropper
	r := headRun{kept: func(h, i, j int) float64 { return 1 }}
	if x.drop {
		each := groupsBefore(n)
		drop = &run.Dropper{Scale: 1.25}
		words := isatest.Words32(alloc(x.heads * each))
		for i := range words {
			words[i] = rng.Uint32() | rng.Uint32()
		}
		masks = run.Halves(words)
		r.kept = func(h, i, j int) float64 { return 1.25 * float64(words[h*each+groupsBefore(i)+j/32]>>(j%32)&1) }
	}
	from := 0
	r.first = isa.Ints(alloc(n))
	for i := range r.first {
		if x.cut > 0 && rng.IntN(x.cut) == 0 {
			from = i
		}
		r.first[i] = int32(from)
	}
	r.qkv, r.dy, r.y, r.logSum, r.dqkv = place(n*3*d), place(n*d), place(n*d), place(x.heads*n), place(n*3*d)
	c := x.attention(w, drop)
	w.Stop, w.Scratch = new(atomic.Bool), isatest.Stale(max(c.needForward(), c.needGrad()))
	c.forward(w, r.y, r.logSum, r.qkv, r.first, masks)
	c.grad(w, r.dqkv, r.dy, r.y, r.logSum, r.qkv, r.first, masks)
	return r
}

// checkHeads compares both directions with float64, by tiles on rounded operands. Beside those, p
// and the gradient of a score are rounded, each by at most 2⁻⁸ of itself, and an exponential is off
// by 7.5e-5; fp32's own errors, of scores of a few units too, are well below 2⁻¹², and by
// themselves below 2⁻¹⁶. Of long sequences it takes every so many tokens, as queries and as keys.
func checkHeads(t *testing.T, w *run.Worker, x headCase, every int, alloc func(n int) []float32) {
	t.Helper()
	off, logOff, dotsOff, exact := 0x1p-8+0x1p-12+7.5e-5, 1e-4, 0x1p-10, isatest.Rounded
	if w.Tiles == nil {
		off, logOff, dotsOff, exact = 0x1p-16, 0x1p-16, 1, func(v float32) float64 { return float64(v) }
	}
	n, hd, d := x.t, x.hd(), x.heads*x.hd()
	scale := 1 / math.Sqrt(float64(hd))
	r := runHeads(w, x, alloc)
	qkv, dy, y, logSum, dqkv, first, kept := r.qkv, r.dy, r.y, r.logSum, r.dqkv, r.first, r.kept
	taken := func(i int) bool { return i%every == 0 || i == n-1 }

	want, size := make([]float64, n*3*d), make([]float64, n*3*d)
	at := func(f []float32, stride, i, column int) float64 { return exact(f[i*stride+column]) }
	check := func(what string, got float32, want, bound float64) {
		if e := math.Abs(float64(got) - want); !(e <= bound) {
			t.Fatalf("%v: %s = %g, want %g: off by %.2g, bound %.2g", x, what, got, want, e, bound)
		}
	}
	score, slope := make([]float64, n), make([]float64, n)
	for h := range x.heads {
		for i := range n {
			low, sum, whole := int(first[i]), 0.0, taken(i)
			clear(score[low : i+1])
			clear(slope[low : i+1])
			for j := low; j <= i; j++ {
				if !whole && !taken(j) {
					continue
				}
				for l := range hd {
					score[j] += scale * at(qkv, 3*d, i, h*hd+l) * at(qkv, 3*d, j, d+h*hd+l)
					slope[j] += at(dy, d, i, h*hd+l) * at(qkv, 3*d, j, 2*d+h*hd+l)
				}
				sum += math.Exp(score[j])
			}
			if whole {
				check(fmt.Sprintf("log sum %d.%d", h, i), logSum[h*n+i], math.Log(sum), logOff)
			}
			dots, most := 0.0, 0.0
			for l := range hd {
				out, all := 0.0, 0.0
				for j := low; j <= i && whole; j++ {
					v := math.Exp(score[j]) / sum * kept(h, i, j) * at(qkv, 3*d, j, 2*d+h*hd+l)
					out, all = out+v, all+math.Abs(v)
				}
				if whole {
					check(fmt.Sprintf("y %d.%d.%d", h, i, l), y[i*d+h*hd+l], out, off*all)
				}
				product := float64(dy[i*d+h*hd+l]) * float64(y[i*d+h*hd+l])
				dots, most = dots+product, most+math.Abs(product)
			}
			for j := low; j <= i; j++ {
				if !whole && !taken(j) {
					continue
				}
				p := math.Exp(score[j] - float64(logSum[h*n+i]))
				ds, m := scale*p*(kept(h, i, j)*slope[j]-dots), p*kept(h, i, j)
				for l := range hd {
					add := func(row, column int, v float64) {
						want[row*3*d+column] += v
						size[row*3*d+column] += math.Abs(v) + scale*p*most*dotsOff
					}
					add(i, h*hd+l, ds*at(qkv, 3*d, j, d+h*hd+l))
					add(j, d+h*hd+l, ds*at(qkv, 3*d, i, h*hd+l))
					add(j, 2*d+h*hd+l, m*at(dy, d, i, h*hd+l))
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
	eachHeads(t, func(t *testing.T, w *run.Worker) {
		sizes := []int{79, 80, 81, 96, 111, 164}
		for n := 1; n <= 66; n++ {
			sizes = append(sizes, n)
		}
		for i, n := range sizes {
			checkHeads(t, w, headCase{t: n, heads: 1 + i%4, cut: []int{0, 3, 20}[i%3], drop: i%2 == 0}, 1, isatest.Stale)
			checkHeads(t, w, headCase{t: n, heads: 1, cut: []int{0, 3, 20}[(i+1)%3], drop: i%2 == 0, queries: 1 + i%3, keys: 2}, 1, isatest.Stale)
		}
		for i, n := range []int{255, 256, 257, 271, 272, 273, 511, 512, 513, 1023, 1024, 1025, 4095, 4097} {
			checkHeads(t, w, headCase{t: n, heads: 1, cut: []int{0, 300}[i%2], drop: i%3 == 0}, 1+n/4, isatest.Stale)
		}
	})
}

// TestHeadsPanels: panels of any size leave the same bits.
func TestHeadsPanels(t *testing.T) {
	eachHeads(t, func(t *testing.T, w *run.Worker) {
		for _, n := range []int{33, 160, 511, 512, 513, 1025, 4097} {
			for _, cut := range []int{0, 100} {
				x := headCase{t: n, heads: 2, cut: cut, drop: true, queries: 1 << 20, keys: 1 << 20}
				panels := [][2]int{{panelQueries, panelKeys}, {1, 2}, {3, 4}, {5, 2}}
				if n > 2000 {
					x.queries, x.keys, panels = 50, 130, panels[:1]
				}
				want := runHeads(w, x, isatest.Stale).dqkv
				for _, panel := range panels {
					x.queries, x.keys = panel[0], panel[1]
					if !slices.Equal(runHeads(w, x, isatest.Stale).dqkv, want) {
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
	eachHeads(t, func(t *testing.T, w *run.Worker) {
		for _, n := range []int{1, 15, 16, 17, 31, 33, 47, 80} {
			for _, front := range []bool{false, true} {
				checkHeads(t, w, headCase{t: n, heads: 3, cut: 9, drop: true, queries: 2, keys: 2}, 1, func(n int) []float32 { return isatest.Guarded(t, n, front) })
			}
		}
	})
}

// TestHeadsKeepNaN: what is not a number in a query, a key that is looked at or a value reaches the
// result.
func TestHeadsKeepNaN(t *testing.T) {
	eachHeads(t, func(t *testing.T, w *run.Worker) {
		const n, d = 20, isa.HeadWidth
		for part := range 3 {
			c := headCase{t: n, heads: 1}.attention(w, nil)
			qkv, y, logSum, first := make([]float32, n*3*d), make([]float32, n*d), make([]float32, n), make([]int32, n)
			qkv[17*3*d+part*d+5] = float32(math.NaN())
			w.Stop, w.Scratch = new(atomic.Bool), isatest.Stale(c.needForward())
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
