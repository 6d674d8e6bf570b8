//go:build unix

package isa

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"haul/internal/kernel/cpu/isa/isatest"
)

// shape is the size of one call of each primitive: rows of n columns, ld apart.
type shape struct{ rows, n, ld int }

func (s shape) String() string { return fmt.Sprintf("%dx%d/%d", s.rows, s.n, s.ld) }

// rowCall is one call of a primitive. Its floats are all in buffers, so that a test can place,
// spoil and compare them; run uses them in the order of sizes.
type rowCall struct {
	name   string
	sizes  []int
	fill   func(b [][]float32) // after the buffers were filled with uniform values in [-2, 2)
	run    func(s *Primitives, b [][]float32) float64
	length int                         // of the longest sum behind one result
	gain   func(b [][]float32) float64 // how far a rounding error of an input can grow; nil: 1
}

func uniform(rng *rand.Rand, s []float32, low, high float32) {
	for i := range s {
		s[i] = low + (high-low)*rng.Float32()
	}
}

// probabilities makes the first n columns of each row a distribution.
func probabilities(rng *rand.Rand, p []float32, s shape) {
	for r := range s.rows {
		row := p[r*s.ld:][:s.n]
		uniform(rng, row, 0.01, 1)
		var sum float32
		for _, v := range row {
			sum += v
		}
		for j := range row {
			row[j] /= sum
		}
	}
}

// randomMask allows about half of the columns, at least one a row, and sets bits beyond n, which
// mean nothing.
func randomMask(rng *rand.Rand, s shape, words int) []uint64 {
	m := make([]uint64, s.rows*words)
	for i := range m {
		m[i] = rng.Uint64()
	}
	for r := range s.rows {
		j := rng.IntN(s.n)
		m[r*words+j>>6] |= 1 << (j & 63)
	}
	return m
}

func randomWords[T uint16 | uint32](rng *rand.Rand, n int) []T {
	m := make([]T, n)
	for i := range m {
		m[i] = T(rng.Uint64())
	}
	return m
}

// causalReach makes up stretches for causal attention: at most n rows, each of at least one column,
// some from before the first column on, some up to past the last.
func causalReach(rng *rand.Rand, s shape) (from int, first []int32, end int) {
	rows := min(s.rows, s.n)
	from, end = 16*rng.IntN(3), 1+rng.IntN(s.n-rows+1)
	if rng.IntN(3) == 0 {
		end += s.n
	}
	for r := range rows {
		low := from + rng.IntN(min(end+r, s.n))
		if rng.IntN(3) == 0 {
			low = rng.IntN(from + 1)
		}
		first = append(first, int32(low))
	}
	return from, first, end
}

func maxOf(s []float32) float64 {
	top := 1.0
	for _, v := range s {
		if a := math.Abs(float64(v)); a > top { // false for NaN
			top = a
		}
	}
	return top
}

// rowCalls returns a call of every primitive for one shape.
func rowCalls(rng *rand.Rand, s shape) []rowCall {
	rows, n, ld := s.rows, s.n, s.ld
	all, wide := rows*n, rows*ld
	w := Words(n) + rng.IntN(2)
	mask := randomMask(rng, s, w)
	act := make([]int32, rows)
	for i := range act {
		act[i] = int32(rng.IntN(n))
	}
	w16, w32 := (n+15)/16+rng.IntN(2), (n+31)/32+rng.IntN(2)
	bits16, bits32 := randomWords[uint16](rng, rows*w16+w16), randomWords[uint32](rng, rows*w32)
	from, first, end := causalReach(rng, s)
	none := func(f func(s *Primitives, b [][]float32)) func(*Primitives, [][]float32) float64 {
		return func(s *Primitives, b [][]float32) float64 { f(s, b); return 0 }
	}
	adam := &AdamArgs{LR: 0.01, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, Decay: 0.01, Correct1: 10, Correct2: 1000, Scale: 0.5}
	var calls []rowCall
	def := func(name string, length int, sizes []int, fill func(b [][]float32), run func(*Primitives, [][]float32) float64) *rowCall {
		if fill == nil {
			fill = func([][]float32) {}
		}
		calls = append(calls, rowCall{name: name, sizes: sizes, fill: fill, run: run, length: length})
		return &calls[len(calls)-1]
	}
	def("norm", n, []int{all, rows, rows, all, n, n}, nil, none(func(s *Primitives, b [][]float32) {
		s.Norm(b[0], b[1], b[2], b[3], b[4], b[5], rows, n, 1e-5)
		// 1/σ, of a difference of close values
	})).gain = func(b [][]float32) float64 { return maxOf(b[2]) * maxOf(b[2]) }
	for _, accumulate := range []bool{false, true} {
		def(fmt.Sprintf("normGrad,%v", accumulate), n+rows, []int{all, n, n, all, all, rows, rows, n}, nil, none(func(s *Primitives, b [][]float32) {
			s.NormGrad(b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], rows, n, accumulate)
			// products of up to four values of [-2, 2) and their like
		})).gain = func([][]float32) float64 { return 64 }
		def(fmt.Sprintf("colSum,%v", accumulate), rows, []int{n, max(0, wide-ld+n)}, nil, none(func(s *Primitives, b [][]float32) {
			s.ColSum(b[0], b[1], rows, n, ld, accumulate)
		}))
	}
	def("glu", 1, []int{all, 2 * all}, nil, none(func(s *Primitives, b [][]float32) { s.GLU(b[0], b[1], rows, n) }))
	def("gluGrad", 1, []int{2 * all, all, 2 * all}, nil, none(func(s *Primitives, b [][]float32) { s.GLUGrad(b[0], b[1], b[2], rows, n) }))
	def("gelu", 1, []int{all, all}, nil, none(func(s *Primitives, b [][]float32) { s.GELU(b[0], b[1]) }))
	def("geluGrad", 1, []int{all, all, all}, nil, none(func(s *Primitives, b [][]float32) { s.GELUGrad(b[0], b[1], b[2]) }))
	// e²
	def("exp", 1, []int{all, all}, nil, none(func(s *Primitives, b [][]float32) { s.Exp(b[0], b[1]) })).gain = func([][]float32) float64 { return 8 }
	def("distances", 1, []int{n * ld, n, n}, nil, none(func(s *Primitives, b [][]float32) { s.Distances(b[0], b[1], b[2], n, ld) }))
	def("softmaxBias", n, []int{wide, wide}, nil, none(func(s *Primitives, b [][]float32) {
		s.SoftmaxBias(b[0], b[1], rows, n, ld, 0.25, 1.5)
	}))
	weights := func(b [][]float32) { probabilities(rng, b[1], s) }
	def("softmaxBiasGrad", n+rows, []int{wide, wide, wide}, weights, func(s *Primitives, b [][]float32) float64 {
		return float64(s.SoftmaxBiasGrad(b[0], b[1], b[2], rows, n, ld, 0.25))
	}).gain = func([][]float32) float64 { return 8 } // ds·dist
	def("softmaxGrad", n, []int{wide, wide}, weights, none(func(s *Primitives, b [][]float32) {
		s.SoftmaxGrad(b[0], b[1], rows, n, ld, 0.25)
	}))
	def("softmaxMask", n, []int{wide}, nil, none(func(s *Primitives, b [][]float32) {
		s.SoftmaxMask(b[0], mask, rows, n, ld, w, 0.25)
	}))
	tall := shape{min(rows, n), n, ld} // no more rows than columns
	def("softmaxCausal", n, []int{tall.rows * ld, tall.rows}, nil, none(func(s *Primitives, b [][]float32) {
		s.SoftmaxCausal(b[0], b[1], first, bits16, tall.rows, from, end, n, ld, w16, 0.25, 1.25)
	}))
	def("softmaxCausal,shared", n, []int{tall.rows * ld, tall.rows}, nil, none(func(s *Primitives, b [][]float32) {
		s.SoftmaxCausal(b[0], b[1], first, bits16, tall.rows, from, end, n, ld, 0, 0.25, 1)
	}))
	def("softmaxCausalGrad", 1, []int{tall.rows * ld, tall.rows * ld, tall.rows, tall.rows}, nil, none(func(s *Primitives, b [][]float32) {
		s.SoftmaxCausalGrad(b[0], b[1], b[2], b[3], first, bits16, tall.rows, from, end, n, ld, w16, 0.25, 1.25)
	})).gain = func([][]float32) float64 { return 50 } // e^2.5·(2.5 + 2)
	def("rowDots", n, []int{rows, max(0, wide-ld+n), max(0, wide-ld+n)}, nil, none(func(s *Primitives, b [][]float32) {
		s.RowDots(b[0], b[1], b[2], rows, n, ld)
	})).gain = func([][]float32) float64 { return 4 }
	def("drop", 1, []int{all, all, all}, nil, none(func(s *Primitives, b [][]float32) {
		s.Drop(b[0], b[1], b[2], bits32, rows, n, w32, 1.25)
	}))
	def("drop,inplace", 1, []int{all}, nil, none(func(s *Primitives, b [][]float32) {
		s.Drop(b[0], b[0], nil, bits32, rows, n, w32, 1.25)
	}))
	def("pointer", n, []int{wide, wide, wide, rows, wide}, nil, none(func(s *Primitives, b [][]float32) {
		s.Pointer(b[0], b[1], b[2], b[3], b[4], mask, rows, n, ld, w, 0.5, 10)
	})).gain = func([][]float32) float64 { return 20 } // lp reaches -20
	def("pointer,inplace", n, []int{wide, wide, wide, rows}, nil, none(func(s *Primitives, b [][]float32) {
		s.Pointer(b[0], b[1], b[2], b[3], b[0], mask, rows, n, ld, w, 0.5, 10)
	})).gain = func([][]float32) float64 { return 20 }
	def("pointerGrad", 1, []int{wide, wide, wide, wide, rows, rows, rows}, weights, none(func(s *Primitives, b [][]float32) {
		s.PointerGrad(b[0], b[1], b[2], b[3], b[4], b[5], b[6], act, rows, n, ld, 0.5, 10)
		// p·(a + e·(lp + ent))·mult·(1-th²), with |th| to 2
	})).gain = func([][]float32) float64 { return 400 }
	def("query", 1, []int{all, all, all, all}, nil, none(func(s *Primitives, b [][]float32) { s.Query(b[0], b[1], b[2], b[3], 0.75) }))
	def("transpose", 1, []int{n * (rows + 3), max(0, wide-ld+n)}, nil, none(func(s *Primitives, b [][]float32) {
		s.Transpose(b[0], rows+3, b[1], ld, rows, n)
	}))
	def("add4", 1, []int{all, all, all, all}, nil, none(func(s *Primitives, b [][]float32) { s.Add4(b[0], b[1], b[2], b[3]) }))
	def("add", 1, []int{all, all}, nil, none(func(s *Primitives, b [][]float32) { s.Add(b[0], b[1]) }))
	def("sumSquares", 1, []int{all}, nil, func(s *Primitives, b [][]float32) float64 { return s.SumSquares(b[0]) })
	def("adamw", 1, []int{all, all, all, all}, func(b [][]float32) { uniform(rng, b[2], 0, 1) }, none(func(s *Primitives, b [][]float32) {
		s.AdamW(b[0], b[1], b[2], b[3], adam)
	}))
	def("scale", 1, []int{all}, nil, none(func(s *Primitives, b [][]float32) { s.Scale(b[0], 0.7) }))
	def("momentum", 1, []int{all, all, all}, nil, none(func(s *Primitives, b [][]float32) { s.Momentum(b[0], b[1], b[2], 0.95, 0.7) }))
	def("descend", 1, []int{all, all}, nil, none(func(s *Primitives, b [][]float32) { s.Descend(b[0], b[1], 0.01, 2.3, 0.1) }))
	return calls
}

// buffers fills the buffers of a call from alloc.
func (c *rowCall) buffers(rng *rand.Rand, alloc func(n int) []float32) [][]float32 {
	var b [][]float32
	for _, n := range c.sizes {
		s := alloc(n)
		uniform(rng, s, -2, 2)
		b = append(b, s)
	}
	c.fill(b)
	return b
}

func clones(b [][]float32, alloc func(n int) []float32) [][]float32 {
	var out [][]float32
	for _, s := range b {
		t := alloc(len(s))
		copy(t, s)
		out = append(out, t)
	}
	return out
}

// verify runs the call on plain Go and on s and compares everything they may have written. The
// bound is one of forward error: each of `length` additions in the two sums, and some dozen
// operations about them, may round by half an ulp of the largest value, which the inputs hold to a
// few units; gain says where a call goes beyond that.
func (c *rowCall) verify(t interface{ Fatalf(string, ...any) }, s *Primitives, at string, b, got [][]float32) {
	want := clones(b, heap)
	wr, gr := c.run(&Plain, want), c.run(s, got)
	gain := 1.0
	if c.gain != nil {
		gain = c.gain(want)
	}
	const ulp = 1.0 / (1 << 23)
	bound := ulp * float64(12+c.length) * gain
	differs := func(g, w float64) bool {
		if math.IsNaN(w) {
			return !math.IsNaN(g)
		}
		return !(math.Abs(g-w) <= bound*max(1, math.Abs(w)))
	}
	if differs(gr, wr) {
		t.Fatalf("%s %s %s: returned %g, want %g", s.Name, c.name, at, gr, wr)
	}
	for i := range want {
		for j, w := range want[i] {
			if differs(float64(got[i][j]), float64(w)) {
				t.Fatalf("%s %s %s: argument %d [%d] = %g, want %g within %.2g", s.Name, c.name, at, i, j, got[i][j], w, bound)
			}
		}
	}
}

// TestRowsSmall covers every size around the vectors' widths, with fences of a known value about
// each buffer.
func TestRowsSmall(t *testing.T) {
	const fence, wall = float32(-12345.5), 16
	eachSet(t, func(t *testing.T, set *Primitives) {
		rng := rand.New(rand.NewPCG(1, 2))
		for n := 1; n <= 40; n++ {
			for rows := 0; rows <= 5; rows++ {
				for _, ld := range []int{(n + 15) / 16 * 16, n, n + rng.IntN(40)} {
					s := shape{rows, n, ld}
					for _, c := range rowCalls(rng, s) {
						var fenced [][]float32
						got := clones(c.buffers(rng, heap), func(n int) []float32 {
							f := make([]float32, n+2*wall)
							for i := range f {
								f[i] = fence
							}
							fenced = append(fenced, f)
							return f[wall : wall+n : wall+n]
						})
						c.verify(t, set, s.String(), clones(got, heap), got)
						for i, f := range fenced {
							for j := range wall {
								if f[j] != fence || f[len(f)-1-j] != fence {
									t.Fatalf("%s %s: argument %d was written outside", c.name, s, i)
								}
							}
						}
					}
				}
			}
		}
	})
}

func TestRowsRandom(t *testing.T) {
	eachSet(t, func(t *testing.T, set *Primitives) {
		rapid.Check(t, func(t *rapid.T) {
			n := rapid.IntRange(1, 300).Draw(t, "n")
			s := shape{rapid.IntRange(0, 20).Draw(t, "rows"), n, n + rapid.IntRange(0, 40).Draw(t, "pad")}
			rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
			calls := rowCalls(rng, s)
			c := calls[rapid.IntRange(0, len(calls)-1).Draw(t, "primitive")]
			b := c.buffers(rng, heap)
			c.verify(t, set, s.String(), b, clones(b, heap))
		})
	})
}

// TestRowsGuarded runs against pages with no access on either side of each buffer.
func TestRowsGuarded(t *testing.T) {
	eachSet(t, func(t *testing.T, set *Primitives) {
		rng := rand.New(rand.NewPCG(3, 4))
		for _, s := range []shape{{1, 1, 1}, {3, 11, 16}, {2, 7, 7}, {3, 17, 20}, {5, 101, 112}, {4, 128, 128}, {2, 33, 71}, {2, 1001, 1008}} {
			for i := range rowCalls(rng, s) {
				c := rowCalls(rng, s)[i]
				for _, front := range []bool{false, true} {
					t.Run("", func(t *testing.T) {
						b := c.buffers(rng, heap)
						c.verify(t, set, s.String(), b, clones(b, func(n int) []float32 { return isatest.Guarded(t, n, front) }))
					})
				}
			}
		}
	})
}

// TestRowsBits: the same arguments give the same bits at every alignment.
func TestRowsBits(t *testing.T) {
	eachSet(t, func(t *testing.T, set *Primitives) {
		rng := rand.New(rand.NewPCG(5, 6))
		for _, s := range []shape{{5, 11, 16}, {3, 101, 112}, {4, 128, 128}} {
			for _, c := range rowCalls(rng, s) {
				b := c.buffers(rng, heap)
				first := clones(b, heap)
				ret := c.run(set, first)
				for skew := range 16 {
					again := clones(b, func(n int) []float32 { return make([]float32, n+skew)[skew:] })
					if r := c.run(set, again); r != ret {
						t.Fatalf("%s %s: returned %g at offset %d, %g at 0", c.name, s, r, skew, ret)
					}
					for i := range first {
						for j := range first[i] {
							if math.Float32bits(first[i][j]) != math.Float32bits(again[i][j]) {
								t.Fatalf("%s %s: argument %d [%d] differs at offset %d", c.name, s, i, j, skew)
							}
						}
					}
				}
			}
		}
	})
}

// TestRowsExact: passes that neither fuse nor reorder have plain Go's bits, so that a run's fp32
// update is the same on every set.
func TestRowsExact(t *testing.T) {
	eachSet(t, func(t *testing.T, set *Primitives) {
		rng := rand.New(rand.NewPCG(11, 12))
		for _, c := range rowCalls(rng, shape{7, 131, 131}) {
			switch c.name {
			case "add", "add4", "scale", "momentum", "descend":
			default:
				continue
			}
			want := c.buffers(rng, heap)
			got := clones(want, heap)
			c.run(&Plain, want)
			c.run(set, got)
			for i := range want {
				if !slices.Equal(got[i], want[i]) {
					t.Errorf("%s: argument %d differs from plain Go's", c.name, i)
				}
			}
		}
	})
}

// TestRowsNaN: a NaN anywhere in an input makes NaN what it makes NaN in plain Go.
func TestRowsNaN(t *testing.T) {
	eachSet(t, func(t *testing.T, set *Primitives) {
		rng := rand.New(rand.NewPCG(7, 8))
		for _, s := range []shape{{3, 21, 32}, {6, 11, 16}} {
			for _, c := range rowCalls(rng, s) {
				for i, size := range c.sizes {
					for _, bits := range []uint32{0x7fc00000, 0xffc00001, 0x7fffffff} {
						b := c.buffers(rng, heap)
						for _, j := range []int{0, size / 2, max(0, size-1)} {
							b[i][j] = math.Float32frombits(bits)
							c.verify(t, set, fmt.Sprintf("%s with NaN in argument %d", s, i), b, clones(b, heap))
						}
					}
				}
			}
		}
	})
}

// TestSumSquaresIsDouble: the sum of 100,000 squares, of sizes float32 could not even hold, is
// right to the rounding of float64.
func TestSumSquaresIsDouble(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	x := make([]float32, 100_003)
	uniform(rng, x, -1e25, 1e25)
	want := Plain.SumSquares(x)
	eachSet(t, func(t *testing.T, set *Primitives) {
		if got := set.SumSquares(x); math.Abs(got-want) > float64(len(x))*0x1p-53*want {
			t.Errorf("%g, want %g", got, want)
		}
	})
}
