//go:build unix

package isa

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"haul/internal/kernel/cpu/isa/isatest"
)

// eachTiles runs the test for every way of this processor to multiply in bf16, beside every
// instruction set that it stands beside; under the race detector for none, as eachSet.
func eachTiles(t *testing.T, run func(t *testing.T, p *Primitives, s *TileSet)) {
	if isatest.Raced {
		t.Skip("primitives start no goroutine")
	}
	for _, s := range TileTables {
		for _, p := range Tables {
			if s.set == "" || s.set == p.Name {
				t.Run(s.Name+" beside "+p.Name, func(t *testing.T) { run(t, p, s) })
			}
		}
	}
}

// tileProduct is one product with every operand its own slice, so that a test can place each.
type tileProduct struct {
	m, n, k                      int
	turnedA, turnedB             bool // A is [k][m]; B is [n][k]
	bias, residual, inPlace      bool
	padA, padB, padC, padR, skew int
}

// String goes by a type without it, which would else call itself.
func (p tileProduct) String() string {
	type fields tileProduct
	return fmt.Sprintf("%+v", fields(p))
}

// build packs the product's operands and lays the rest out in memory from alloc(n), whose last
// float is the last the call may touch. It keeps the rounded operands.
func (p tileProduct) build(rng *rand.Rand, s *TileSet, alloc func(n int) []float32) (args TileArgs, c []float32, want, size []float64) {
	place := func(n int) []float32 {
		f := alloc(n + p.skew)[p.skew:]
		for i := range f {
			f[i] = rng.Float32()*2 - 1
		}
		return f
	}
	// rounded once, line by line, since every element of C reads them
	operand := func(lines int, turned bool, pad int, straight, other packing) (values []float64, tiles []float32) {
		tiles = isatest.Stale(TileFloats(lines, p.k))
		rows, cols, kind := lines, p.k, straight
		if turned {
			rows, cols, kind = p.k, lines, other
		}
		src, stride := place(max(0, (rows-1)*(cols+pad)+cols)), cols+pad
		s.Pack(kind, tiles, src, stride, lines, p.k)
		values = make([]float64, lines*p.k)
		for i := range lines {
			for l := range p.k {
				at := i*stride + l
				if turned {
					at = l*stride + i
				}
				values[i*p.k+l] = isatest.Rounded(src[at])
			}
		}
		return values, tiles
	}
	a, aTiles := operand(p.m, p.turnedA, p.padA, RowsOfA, ColumnsOfA)
	b, bTiles := operand(p.n, !p.turnedB, p.padB, ColumnsOfB, RowsOfB)
	args = TileArgs{A: Ptr(aTiles), B: Ptr(bTiles), M: p.m, N: p.n, K: p.k, LDC: p.n + p.padC, Scratch: Ptr(make([]float32, spreadFloats(p.k)))}
	c = place((p.m-1)*args.LDC + p.n)
	args.C = start(c)
	var bias, r []float32
	if p.bias {
		bias = place(p.n)
		args.Bias = start(bias)
	}
	switch {
	case p.inPlace:
		args.R, args.LDR, r = args.C, args.LDC, append([]float32(nil), c...)
	case p.residual:
		args.LDR = p.n + p.padR
		r = place((p.m-1)*args.LDR + p.n)
		args.R = start(r)
	}
	want, size = make([]float64, p.m*p.n), make([]float64, p.m*p.n)
	for i := range p.m {
		for j := range p.n {
			sum, total := 0.0, 0.0
			add := func(v float64) { sum, total = sum+v, total+math.Abs(v) }
			row, column := a[i*p.k:][:p.k], b[j*p.k:][:p.k]
			for l, v := range row {
				add(v * column[l])
			}
			if bias != nil {
				add(float64(bias[j]))
			}
			if r != nil {
				add(float64(r[i*args.LDR+j]))
			}
			want[i*p.n+j], size[i*p.n+j] = sum, total
		}
	}
	return args, c, want, size
}

// checkTiles compares C with the float64 sum of the rounded operands. A product of two bf16 is
// exact in fp32, and a sum of k+2 terms in any order is off by at most (k+2)·2⁻²⁴ of the sum of
// their absolute values.
func checkTiles(t interface{ Fatalf(string, ...any) }, prims *Primitives, s *TileSet, p tileProduct, rng *rand.Rand, alloc func(n int) []float32) {
	args, c, want, size := p.build(rng, s, alloc)
	before := append([]float32(nil), c...)
	s.Product(prims, &args)
	bound := float64(p.k+2) * 0x1p-24
	for i, got := range c {
		r, j := i/args.LDC, i%args.LDC
		if j >= p.n {
			if got != before[i] {
				t.Fatalf("%v: wrote between rows, at row %d column %d", p, r, j)
			}
			continue
		}
		if d := math.Abs(float64(got) - want[r*p.n+j]); !(d <= bound*size[r*p.n+j]) {
			t.Fatalf("%v: C[%d][%d] = %g, want %g", p, r, j, got, want[r*p.n+j])
		}
	}
}

func TestTilesSmall(t *testing.T) {
	eachTiles(t, func(t *testing.T, prims *Primitives, s *TileSet) {
		rng := rand.New(rand.NewPCG(1, 2))
		for _, m := range []int{1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 50} {
			for _, n := range []int{1, 2, 9, 15, 16, 17, 31, 32, 33, 48, 49, 65} {
				for _, k := range []int{0, 1, 2, 3, 15, 16, 17, 31, 32, 33, 65} {
					bits := m + n*3 + k*7
					p := tileProduct{m: m, n: n, k: k, turnedA: bits&1 != 0, turnedB: bits&2 != 0,
						bias: bits&4 != 0, residual: bits&8 != 0, inPlace: bits&16 != 0, padC: bits % 3}
					checkTiles(t, prims, s, p, rng, heap)
				}
			}
		}
	})
}

func TestTilesRandom(t *testing.T) {
	eachTiles(t, func(t *testing.T, prims *Primitives, s *TileSet) {
		rapid.Check(t, func(t *rapid.T) {
			flag := func(name string) bool { return rapid.Bool().Draw(t, name) }
			pad := func(name string) int { return rapid.IntRange(0, 33).Draw(t, name) }
			p := tileProduct{
				m: rapid.IntRange(1, 110).Draw(t, "m"), n: rapid.IntRange(1, 110).Draw(t, "n"), k: rapid.IntRange(0, 100).Draw(t, "k"),
				turnedA: flag("turned A"), turnedB: flag("turned B"), bias: flag("bias"), residual: flag("residual"), inPlace: flag("in place"),
				padA: pad("pad A"), padB: pad("pad B"), padC: pad("pad C"), padR: pad("pad R"), skew: rapid.IntRange(0, 15).Draw(t, "skew"),
			}
			checkTiles(t, prims, s, p, rand.New(rand.NewPCG(3, rapid.Uint64().Draw(t, "seed"))), heap)
		})
	})
}

// TestTilesGuarded puts every operand but the tiles against a page without access, at its end and
// at its start.
func TestTilesGuarded(t *testing.T) {
	eachTiles(t, func(t *testing.T, prims *Primitives, s *TileSet) {
		rng := rand.New(rand.NewPCG(4, 4))
		for _, front := range []bool{false, true} {
			for _, m := range []int{1, 2, 13, 16, 17, 33} {
				for _, n := range []int{1, 7, 15, 16, 17, 31, 33, 50, 64, 65} {
					for _, k := range []int{1, 3, 33, 48} {
						bits := m + n + k
						p := tileProduct{m: m, n: n, k: k, turnedA: bits&1 != 0, turnedB: bits&2 != 0, bias: bits&4 == 0, residual: bits&8 == 0, inPlace: bits&24 == 8}
						checkTiles(t, prims, s, p, rng, func(n int) []float32 { return isatest.Guarded(t, n, front) })
					}
				}
			}
		}
	})
}

// TestTilesAllocateNothing: packing and products of every set, those for processors without bf16 of
// their own among them, take nothing from the heap.
func TestTilesAllocateNothing(t *testing.T) {
	eachTiles(t, func(t *testing.T, prims *Primitives, s *TileSet) {
		const m, n, k = 75, 70, 83
		x, w, c := make([]float32, m*k), make([]float32, n*k), make([]float32, m*n)
		a, b := make([]float32, TileFloats(m, k)), make([]float32, TileFloats(n, k))
		g := &TileArgs{C: Ptr(c), R: Ptr(c), Bias: Ptr(w), A: Ptr(a), B: Ptr(b), M: m, N: n, K: k, LDC: n, LDR: n, Scratch: Ptr(make([]float32, spreadFloats(k)))}
		sums := NewRowSums(s, k, 2*blockLines, blockLines, n, blockLines, true)
		other, room, dw := new(TileArgs), make([]float32, sums.Need()), make([]float32, 2*blockLines*blockLines)
		if got := testing.AllocsPerRun(3, func() {
			sums.Product(prims, other, dw, w, x, true, room)
			s.Pack(RowsOfA, a, x, k, m, k)
			s.Pack(ColumnsOfB, b, w, k, n, k)
			s.Product(prims, g)
		}); got != 0 {
			t.Errorf("%v allocations a product", got)
		}
	})
}

// TestTilesBits: an element has the same bits whatever rows and columns are computed beside it.
func TestTilesBits(t *testing.T) {
	eachTiles(t, func(t *testing.T, prims *Primitives, s *TileSet) {
		rng := rand.New(rand.NewPCG(5, 6))
		const m, n, k = 75, 70, 83
		x, w := make([]float32, m*k), make([]float32, n*k)
		for _, v := range [][]float32{x, w} {
			for i := range v {
				v[i] = rng.Float32()*2 - 1
			}
		}
		product := func(x, w []float32, m, n int) []float32 {
			a, b, c := make([]float32, TileFloats(m, k)), make([]float32, TileFloats(n, k)), make([]float32, m*n)
			s.Pack(RowsOfA, a, x, k, m, k)
			s.Pack(ColumnsOfB, b, w, k, n, k)
			s.Product(prims, &TileArgs{C: Ptr(c), A: Ptr(a), B: Ptr(b), M: m, N: n, K: k, LDC: n, Scratch: Ptr(make([]float32, spreadFloats(k)))})
			return c
		}
		whole := product(x, w, m, n)
		for _, cut := range [][4]int{{3, 5, 40, 33}, {17, 0, 32, 70}, {31, 20, 2, 17}, {74, 69, 1, 1}} {
			i, j, rows, cols := cut[0], cut[1], cut[2], cut[3]
			if rows == 1 && s.Spreads {
				continue // fp32's product of one row has an order of its own
			}
			for e, got := range product(x[i*k:], w[j*k:], rows, cols) {
				if want := whole[(i+e/cols)*n+j+e%cols]; math.Float32bits(got) != math.Float32bits(want) {
					t.Fatalf("cut %v: row %d column %d has %x, want %x", cut, e/cols, e%cols, got, want)
				}
			}
		}
	})
}

// TestPackTiles: every set packs the same bytes as plain Go, special numbers and ragged ends
// included.
func TestPackTiles(t *testing.T) {
	special := []float32{0, float32(math.Copysign(0, -1)), 1, -1.00390625, 1.00390625, 1.01171875, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()),
		math.MaxFloat32, -math.MaxFloat32, 1e-40, -1e-40, 0x1p-126, 3.5}
	eachTiles(t, func(t *testing.T, _ *Primitives, s *TileSet) {
		rapid.Check(t, func(t *rapid.T) {
			kind := packing(rapid.IntRange(0, 3).Draw(t, "kind"))
			lines, k, pad := rapid.IntRange(1, 50).Draw(t, "lines"), rapid.IntRange(1, 80).Draw(t, "k"), rapid.IntRange(0, 5).Draw(t, "pad")
			rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
			rows, cols := lines, k
			if kind.pairs() {
				rows, cols = k, lines
			}
			src := make([]float32, (rows-1)*(cols+pad)+cols)
			for i := range src {
				src[i] = float32(rng.NormFloat64())
				if rng.IntN(4) == 0 {
					src[i] = special[rng.IntN(len(special))]
				}
			}
			got, want := isatest.Stale(TileFloats(lines, k)), isatest.Stale(TileFloats(lines, k))
			s.Pack(kind, got, src, cols+pad, lines, k)
			spreadTiles.Pack(kind, want, src, cols+pad, lines, k)
			for i := range want {
				if g, w := math.Float32bits(got[i]), math.Float32bits(want[i]); g != w {
					t.Fatalf("kind %d, %d×%d: word %d is %08x, want %08x", kind, lines, k, i, g, w)
				}
			}
		})
	})
}

// TestBF16Rounding: the conversion is to nearest, ties to even.
func TestBF16Rounding(t *testing.T) {
	for _, c := range []struct {
		x    uint32
		want uint16
	}{{0x3f800000, 0x3f80}, {0x3f808000, 0x3f80}, {0x3f808001, 0x3f81}, {0x3f818000, 0x3f82}, {0x3f817fff, 0x3f81}, {0x7f7fffff, 0x7f80}, {0x80000001, 0x8000},
		{0x7f800000, 0x7f80}, {0xff800000, 0xff80}, {0x7f800001, 0x7fc0}, {0x00800000, 0x0080}} {
		if got := toBF16(math.Float32frombits(c.x)); got != c.want {
			t.Errorf("%08x is %04x, want %04x", c.x, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Float32Range(-1e30, 1e30).Draw(t, "x")
		if x != 0 && math.Abs(float64(x)) < 0x1p-126 {
			return
		}
		if got := float64(fromBF16(toBF16(x))); got != isatest.Rounded(x) {
			t.Fatalf("%g is %g, want %g", x, got, isatest.Rounded(x))
		}
	})
}

// TestLayerBlocks: packing and multiplying block by block gives the bits of one product.
func TestLayerBlocks(t *testing.T) {
	eachTiles(t, func(t *testing.T, prims *Primitives, s *TileSet) {
		rng := rand.New(rand.NewPCG(8, 9))
		fill := func(n int) []float32 {
			v := make([]float32, n)
			for i := range v {
				v[i] = rng.Float32()*2 - 1
			}
			return v
		}
		same := func(what string, got, want []float32) {
			t.Helper()
			for i := range want {
				if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
					t.Fatalf("%s: element %d has %x, want %x", what, i, got[i], want[i])
				}
			}
		}
		const rows, in, out = 2*max(layerRows, sumRows) + 37, 19, 45
		x, w, bias, r := fill(rows*in), fill(out*in), fill(out), fill(rows*out)
		a, b, scratch := fill(TileFloats(rows, in)), fill(TileFloats(out, in)), fill(spreadFloats(rows))
		s.Pack(RowsOfA, a, x, in, rows, in)
		s.Pack(ColumnsOfB, b, w, in, out, in)
		g := TileArgs{B: Ptr(b), Bias: Ptr(bias), R: Ptr(r), M: rows, N: out, K: in, LDC: out, LDR: out}
		want, got := fill(rows*out), fill(rows*out)
		whole := g
		whole.C, whole.A, whole.Scratch = Ptr(want), Ptr(a), Ptr(scratch)
		s.Product(prims, &whole)
		g.C = Ptr(got)
		s.ByWeight(prims, &g, x, in, fill(s.NeedByWeight(rows, in)))
		same("rows", got, want)

		dw := fill(out * in)
		a, b = fill(TileFloats(out, rows)), fill(TileFloats(in, rows))
		s.Pack(ColumnsOfA, a, got, out, out, rows)
		s.Pack(RowsOfB, b, x, in, in, rows)
		wanted := append([]float32(nil), dw...)
		whole = TileArgs{C: Ptr(wanted), R: Ptr(wanted), A: Ptr(a), B: Ptr(b), M: out, N: in, K: rows, LDC: in, LDR: in, Scratch: Ptr(scratch)}
		s.Product(prims, &whole)
		sums := NewRowSums(s, rows, out, in, out, in, false)
		sums.Product(prims, &g, dw, got, x, true, fill(sums.Need()))
		if prims == &Plain { // plain Go adds R last, so a block's sum is another
			return
		}
		same("a weight's gradient", dw, wanted)
	})
}
