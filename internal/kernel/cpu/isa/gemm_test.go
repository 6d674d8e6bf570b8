//go:build unix

package isa

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"haul/internal/kernel/cpu/isa/isatest"
)

// product is one call of gemm with every operand its own slice, so that a test can place each.
type product struct {
	m, n, k                      int
	transposed                   bool // A is [k][m]
	packed                       bool // B is in panels
	bias, residual, inPlace      bool
	padA, padB, padC, padR, skew int // extra columns of each matrix; skew floats before each
}

// String goes by a type without it, which would else call itself.
func (p product) String() string {
	type fields product
	return fmt.Sprintf("%+v", fields(p))
}

// operands are the slices of one product; args points into them.
type operands struct {
	c, a, b, bias, r []float32
	args             GemmArgs
}

func start(s []float32) unsafe.Pointer {
	return unsafe.Pointer(unsafe.SliceData(s))
}

// build lays the product out in memory from alloc(n), whose last float is the last the call may
// touch.
func (p product) build(rng *rand.Rand, alloc func(n int) []float32) *operands {
	place := func(n int) []float32 {
		s := alloc(n + p.skew)[p.skew:]
		for i := range s {
			s[i] = rng.Float32()*2 - 1
		}
		return s
	}
	o := &operands{}
	g := &o.args
	g.M, g.N, g.K = p.m, p.n, p.k
	if p.transposed {
		g.ARS, g.AKS = 1, p.m+p.padA
		o.a = place(max(0, p.k-1)*g.AKS + p.m)
	} else {
		g.ARS, g.AKS = p.k+p.padA, 1
		o.a = place((p.m-1)*g.ARS + p.k)
	}
	full := (p.n - 1) / Panel
	if p.packed {
		g.BKS, g.BPS = Panel, p.k*Panel
		o.b = place(full*g.BPS + max(0, p.k-1)*Panel + p.n - full*Panel)
	} else {
		g.BKS, g.BPS = p.n+p.padB, Panel
		o.b = place(max(0, p.k-1)*g.BKS + p.n)
	}
	g.LDC = p.n + p.padC
	o.c = place((p.m-1)*g.LDC + p.n)
	if p.bias {
		o.bias = place(p.n)
		g.Bias = start(o.bias)
	}
	switch {
	case p.inPlace:
		g.R, g.LDR, o.r = start(o.c), g.LDC, o.c
	case p.residual:
		g.LDR = p.n + p.padR
		o.r = place((p.m-1)*g.LDR + p.n)
		g.R = start(o.r)
	}
	g.C, g.A, g.B = start(o.c), start(o.a), start(o.b)
	return o
}

// exact returns the product in float64 and, for each element, the sum of the absolute terms.
func (o *operands) exact() (want, size []float64) {
	g := &o.args
	want, size = make([]float64, g.M*g.N), make([]float64, g.M*g.N)
	for i := range g.M {
		for j := range g.N {
			add := func(v float64) {
				want[i*g.N+j] += v
				size[i*g.N+j] += math.Abs(v)
			}
			for l := range g.K {
				add(float64(o.a[i*g.ARS+l*g.AKS]) * float64(o.b[j/Panel*g.BPS+l*g.BKS+j%Panel]))
			}
			if o.bias != nil {
				add(float64(o.bias[j]))
			}
			if o.r != nil {
				add(float64(o.r[i*g.LDR+j]))
			}
		}
	}
	return want, size
}

// checkProduct runs the product and compares C with the float64 reference; the floats between C's
// rows must stay as they were. A sum of k+2 terms in any order is off by at most (k+2)·2⁻²⁴ of the
// sum of their absolute values.
func checkProduct(t interface{ Fatalf(string, ...any) }, gemm func(*GemmArgs), p product, o *operands) {
	want, size := o.exact()
	before := append([]float32(nil), o.c...)
	gemm(&o.args)
	bound := float64(p.k+2) * 0x1p-24
	for i, got := range o.c {
		r, j := i/o.args.LDC, i%o.args.LDC
		if j >= p.n {
			if got != before[i] {
				t.Fatalf("%v: wrote between rows, at row %d column %d", p, r, j)
			}
			continue
		}
		at := r*p.n + j
		if d := math.Abs(float64(got) - want[at]); !(d <= bound*size[at]) {
			t.Fatalf("%v: C[%d][%d] = %g, want %g", p, r, j, got, want[at])
		}
	}
}

func heap(n int) []float32 { return make([]float32, n) }

// eachSet runs the test for every instruction set this processor has; under the race detector for
// none.
func eachSet(t *testing.T, run func(t *testing.T, s *Primitives)) {
	if isatest.Raced {
		t.Skip("primitives start no goroutine")
	}
	for _, s := range Tables {
		t.Run(s.Name, func(t *testing.T) { run(t, s) })
	}
}

func TestProductSmall(t *testing.T) {
	eachSet(t, func(t *testing.T, s *Primitives) {
		rng := rand.New(rand.NewPCG(1, 2))
		for m := 1; m <= 14; m++ {
			for n := 1; n <= 80; n++ {
				for k := 0; k <= 9; k++ {
					bits := m + n*3 + k*7
					p := product{m: m, n: n, k: k, transposed: bits&1 != 0, packed: bits&2 != 0,
						bias: bits&4 != 0, residual: bits&8 != 0, inPlace: bits&16 != 0, padC: bits % 3}
					checkProduct(t, s.Gemm, p, p.build(rng, heap))
				}
			}
		}
	})
}

func TestProductRandom(t *testing.T) {
	eachSet(t, func(t *testing.T, s *Primitives) {
		rapid.Check(t, func(t *rapid.T) {
			flag := func(name string) bool { return rapid.Bool().Draw(t, name) }
			pad := func(name string) int { return rapid.IntRange(0, 33).Draw(t, name) }
			p := product{
				m: rapid.IntRange(1, 220).Draw(t, "m"), n: rapid.IntRange(1, 200).Draw(t, "n"), k: rapid.IntRange(0, 300).Draw(t, "k"),
				transposed: flag("transposed"), packed: flag("packed"), bias: flag("bias"), residual: flag("residual"), inPlace: flag("in place"),
				padA: pad("pad A"), padB: pad("pad B"), padC: pad("pad C"), padR: pad("pad R"), skew: rapid.IntRange(0, 15).Draw(t, "skew"),
			}
			checkProduct(t, s.Gemm, p, p.build(rand.New(rand.NewPCG(3, rapid.Uint64().Draw(t, "seed"))), heap))
		})
	})
}

// TestProductGuarded puts every operand against a page without access, at its end and at its start.
func TestProductGuarded(t *testing.T) {
	type size struct{ m, n, k int }
	sizes := []size{{200, 79, 200}} // blocked over rows and over k
	for _, m := range []int{1, 2, 5, 13} {
		for _, n := range []int{1, 7, 8, 15, 17, 31, 33, 50, 64, 65, 101, 112} {
			for _, k := range []int{1, 3, 11} {
				sizes = append(sizes, size{m, n, k})
			}
		}
	}
	eachSet(t, func(t *testing.T, s *Primitives) {
		rng := rand.New(rand.NewPCG(4, 4))
		for _, front := range []bool{false, true} {
			for _, z := range sizes {
				for bits := range 4 {
					p := product{m: z.m, n: z.n, k: z.k, transposed: bits&1 != 0, packed: bits&2 != 0,
						bias: true, residual: bits != 1, inPlace: bits == 2}
					checkProduct(t, s.Gemm, p, p.build(rng, func(n int) []float32 { return isatest.Guarded(t, n, front) }))
				}
			}
		}
	})
}

// TestProductBits: an element has the same bits in every instruction set with assembly that has
// FMA, and, for m > 1, whatever rows are computed beside it.
func TestProductBits(t *testing.T) {
	if len(Tables) == 1 {
		t.Skip("no assembly for this processor")
	}
	rapid.Check(t, func(t *rapid.T) {
		p := product{m: rapid.IntRange(1, 220).Draw(t, "m"), n: rapid.IntRange(1, 140).Draw(t, "n"), k: rapid.IntRange(1, 300).Draw(t, "k"),
			bias: rapid.Bool().Draw(t, "bias"), residual: rapid.Bool().Draw(t, "residual"), packed: rapid.Bool().Draw(t, "packed")}
		o := p.build(rand.New(rand.NewPCG(5, 6)), heap)
		run := func(gemm func(*GemmArgs), g GemmArgs, from, rows int) []float32 {
			c := make([]float32, rows*g.N)
			g.C, g.LDC = start(c), g.N
			g.M, g.A = rows, unsafe.Add(g.A, from*g.ARS*4)
			if g.R != nil {
				g.R = unsafe.Add(g.R, from*g.LDR*4)
			}
			gemm(&g)
			return c
		}
		whole := run(Tables[0].Gemm, o.args, 0, p.m)
		same := func(what string, got, want []float32) {
			for i, v := range got {
				if math.Float32bits(v) != math.Float32bits(want[i]) {
					t.Fatalf("%v: %s: row %d column %d has %x, want %x", p, what, i/p.n, i%p.n, v, want[i])
				}
			}
		}
		for _, s := range Tables[:len(Tables)-1] {
			own := whole
			if s.Name == "sse" { // rounds each product
				own = run(s.Gemm, o.args, 0, p.m)
			} else {
				same(s.Name, run(s.Gemm, o.args, 0, p.m), whole)
			}
			if p.m >= 4 {
				cut := rapid.IntRange(2, p.m-2).Draw(t, "cut")
				same(s.Name+", rows above the cut", run(s.Gemm, o.args, 0, cut), own[:cut*p.n])
				same(s.Name+", rows below the cut", run(s.Gemm, o.args, cut, p.m-cut), own[cut*p.n:])
			}
		}
	})
}

// TestProductCopied: lending scratch changes neither the bits nor what memory a product touches.
func TestProductCopied(t *testing.T) {
	eachSet(t, func(t *testing.T, s *Primitives) {
		for i, z := range [][3]int{{256, 64, 1}, {261, 130, 97}, {256, 128, 96}, {300, 79, 200}, {384, 128, 176}} {
			for _, front := range []bool{false, true} {
				p := product{m: z[0], n: z[1], k: z[2], transposed: true, bias: i == 1, residual: i == 3, inPlace: i > 3}
				o := p.build(rand.New(rand.NewPCG(7, 8)), func(n int) []float32 { return isatest.Guarded(t, n, front) })
				c := append([]float32(nil), o.c...)
				plain := o.args
				plain.C = start(c)
				if p.inPlace {
					plain.R = plain.C
				}
				s.Gemm(&plain)
				o.args.Scratch = start(isatest.Guarded(t, GemmScratch, front))
				s.Gemm(&o.args)
				for e := range c {
					if math.Float32bits(o.c[e]) != math.Float32bits(c[e]) {
						t.Fatalf("%v: row %d column %d has %x with scratch, %x without", p, e/p.n, e%p.n, o.c[e], c[e])
					}
				}
			}
		}
	})
}
