//go:build unix

package isa

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"haul/internal/kernel/cpu/isa/isatest"
)

// TestWeaveOrder walks the steps as the assembly does and keeps what every place of the ring and of
// X's tiles holds: each product reads the tiles it is meant to, in the order of l, and every block
// of C begins and ends once.
func TestWeaveOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.IntRange(1, sumRows).Draw(t, "rows")
		out, in := blockLines*rapid.IntRange(1, 6).Draw(t, "out"), blockLines*rapid.IntRange(1, 6).Draw(t, "in")
		w := weaveWalk{rows: rows, in: in, depth: int32(Ceil(rows, TileDepth)),
			dyStride: int32(out + rapid.IntRange(0, 40).Draw(t, "pad of dY")), xStride: int32(in + rapid.IntRange(0, 40).Draw(t, "pad of X")),
			ring: map[int32]int32{}, x: map[int32]int32{}, done: map[int32]bool{}, half: -1, next: -1}
		for n, s := range weaveOrder(rows, out, in, int(w.dyStride), int(w.xStride), true) {
			if err := w.step(s); err != nil {
				t.Fatalf("step %d, %+v: %v", n, s, err)
			}
		}
		if want := out / blockLines * (in / blockLines); len(w.done) != want {
			t.Fatalf("%d blocks, want %d", len(w.done), want)
		}
	})
}

type weaveWalk struct {
	rows, in          int
	depth             int32
	dyStride, xStride int32
	ring, x           map[int32]int32 // source of each tile, by its place
	done              map[int32]bool  // blocks of C
	half              int32           // source of the half that waits, -1: none
	block, next       int32           // the block under way and its next l, -1: none
	ahead             int32           // the block that is fetched for the next
}

func (w *weaveWalk) step(s weaveStep) error {
	if s.does&weaveStart != 0 {
		if w.next >= 0 || w.done[s.c] {
			return fmt.Errorf("a block begins twice")
		}
		if len(w.done) > 0 && w.ahead != s.c {
			return fmt.Errorf("fetched ahead the block at %d", w.ahead)
		}
		w.block, w.next = s.c, 0
	}
	if s.does&weaveMultiply != 0 {
		if err := w.multiply(s); err != nil {
			return err
		}
	}
	if s.does&weaveStore != 0 {
		if w.next != w.depth {
			return fmt.Errorf("a block ends after %d of %d", w.next, w.depth)
		}
		w.done[w.block], w.next = true, -1
	}
	return w.pack(s)
}

func (w *weaveWalk) multiply(s weaveStep) error {
	if s.c != w.block || w.next < 0 || w.next >= w.depth {
		return fmt.Errorf("a product outside of its block")
	}
	i, j := w.block/4/int32(w.in)/blockLines, w.block/4%int32(w.in)/blockLines
	for half := range int32(2) {
		at := half * w.depth * TileBytes
		if got, want := w.ring[s.a+at], 4*(w.next*TileDepth*w.dyStride+i*blockLines+half*TileLines); got != want+1 {
			return fmt.Errorf("the ring holds what lies at %d, not at %d", got-1, want)
		}
		if got, want := w.x[s.b+at], 4*(w.next*TileDepth*w.xStride+j*blockLines+half*TileLines); got != want+1 {
			return fmt.Errorf("X's tile holds what lies at %d, not at %d", got-1, want)
		}
	}
	if rows := fetchRows * w.next; s.does&weaveFetch != 0 {
		if s.fetch != w.block+4*rows*int32(w.in) {
			return fmt.Errorf("fetches at %d", s.fetch)
		}
		w.ahead = s.ahead - 4*rows*int32(w.in)
	}
	w.next++
	return nil
}

// pack keeps sources from one on, so that an empty place is none of them.
func (w *weaveWalk) pack(s weaveStep) error {
	kind, is, stride := s.packed&3, s.packed&^3, w.dyStride
	if kind == weavePairs {
		stride = w.xStride
	}
	if kind == weaveNone {
		return nil
	}
	want := int16(0)
	if there := w.rows % TileDepth; s.src/4/stride/TileDepth == w.depth-1 && there != 0 {
		want = map[bool]int16{true: weaveHalf, false: weaveShort}[there == TileLines]
	}
	if is != want {
		return fmt.Errorf("of the tile's rows what is there is %d, not %d", is, want)
	}
	switch kind {
	case weaveEven:
		if w.half >= 0 {
			return fmt.Errorf("a half is lost")
		}
		w.half = s.src
	case weaveOdd:
		if w.half != s.src {
			return fmt.Errorf("two halves of different tiles")
		}
		w.ring[s.dst], w.half = s.src+1, -1
	default:
		w.x[s.dst], w.x[s.dst+w.depth*TileBytes] = s.src+1, s.src+4*TileLines+1
	}
	return nil
}

// rowSumsCase is a weight's gradient with every operand against memory that may not be touched.
type rowSumsCase struct {
	rows, out, in, padDY, padX int
	add, far, front            bool
}

func (c rowSumsCase) check(t interface {
	Helper()
	Fatalf(string, ...any)
}, prims *Primitives, s *TileSet, rng *rand.Rand, alloc func(n int) []float32) {
	fill := func(n int) []float32 {
		f := alloc(n)
		for i := range f {
			f[i] = rng.Float32()*2 - 1
		}
		return f
	}
	dyStride, xStride := c.out+c.padDY, c.in+c.padX
	dy, x, dw := fill((c.rows-1)*dyStride+c.out), fill((c.rows-1)*xStride+c.in), fill(c.out*c.in)
	before := append([]float32(nil), dw...)
	sums := NewRowSums(s, c.rows, c.out, c.in, dyStride, xStride, c.far)
	sums.Product(prims, new(TileArgs), dw, dy, x, c.add, isatest.Stale(sums.Need()))
	bound := float64(c.rows+2) * 0x1p-24
	// rounded once, by columns, since every element of dW reads two
	columns := func(src []float32, stride, n int) []float64 {
		out := make([]float64, n*c.rows)
		for j := range n {
			for l := range c.rows {
				out[j*c.rows+l] = isatest.Rounded(src[l*stride+j])
			}
		}
		return out
	}
	dys, xs := columns(dy, dyStride, c.out), columns(x, xStride, c.in)
	for i := range c.out {
		for j := range c.in {
			var want, size float64
			if c.add {
				want, size = float64(before[i*c.in+j]), math.Abs(float64(before[i*c.in+j]))
			}
			column := xs[j*c.rows:][:c.rows]
			for l, d := range dys[i*c.rows:][:c.rows] {
				v := d * column[l]
				want, size = want+v, size+math.Abs(v)
			}
			if got := dw[i*c.in+j]; !(math.Abs(float64(got)-want) <= bound*size) {
				t.Fatalf("%+v: dW[%d][%d] = %g, want %g", c, i, j, got, want)
			}
		}
	}
	if s.Weave == nil || s.Spreads {
		return
	}
	// Packed first: the same bits.
	other := *s
	other.Weave = nil
	first := NewRowSums(&other, c.rows, c.out, c.in, dyStride, xStride, c.far)
	first.Product(prims, new(TileArgs), before, dy, x, c.add, isatest.Stale(first.Need()))
	for i := range dw {
		if math.Float32bits(dw[i]) != math.Float32bits(before[i]) {
			t.Fatalf("%+v: element %d has %x, packed first %x", c, i, math.Float32bits(dw[i]), math.Float32bits(before[i]))
		}
	}
}

// eachRowSums is eachTiles, with one more set that walks the steps in plain Go, so that what the
// assembly is told is tested on any processor.
func eachRowSums(t *testing.T, run func(t *testing.T, p *Primitives, s *TileSet)) {
	eachTiles(t, run)
	walked := spreadTiles
	walked.Weave = weaveWalked
	t.Run("steps in plain Go", func(t *testing.T) { run(t, &Plain, &walked) })
}

// weaveWalked does what the assembly does, with sums in the order of l.
func weaveWalked(g *weaveArgs) {
	var sums [blockLines][blockLines]float32
	half := int32(-1)
	floats := func(p unsafe.Pointer, at int32, n int) []float32 {
		return unsafe.Slice((*float32)(unsafe.Add(p, at)), n)
	}
	tile := func(p unsafe.Pointer, at int32) *uint16 { return (*uint16)(unsafe.Add(p, at)) }
	for _, s := range unsafe.Slice(g.steps, g.n) {
		for i := range sums {
			row := floats(g.c, s.c+int32(i*g.ldc), blockLines)
			switch {
			case s.does&weaveStart == 0:
			case g.add != 0:
				copy(sums[i][:], row)
			default:
				clear(sums[i][:])
			}
			if s.does&weaveMultiply != 0 {
				a := unsafe.Slice(tile(g.ring, s.a+int32(i/TileLines*g.depth)), tileElems)[i%TileLines*TileDepth:]
				for j := range sums[i] {
					b := unsafe.Slice(tile(g.x, s.b+int32(j/TileLines*g.depth)), tileElems)[j%TileLines*2:]
					for l := range TileDepth {
						sums[i][j] += fromBF16(a[l]) * fromBF16(b[l/2*TileDepth+l%2])
					}
				}
			}
			if s.does&weaveStore != 0 {
				copy(row, sums[i][:])
			}
		}
		rows := TileDepth
		switch s.packed &^ 3 {
		case weaveHalf:
			rows = TileLines
		case weaveShort:
			rows = bytes.Index(unsafe.Slice((*byte)(unsafe.Pointer(g.masks)), 2*TileDepth), []byte{0}) / 2
		}
		switch s.packed & 3 {
		case weaveEven:
			half = s.src
		case weaveOdd:
			if half != s.src {
				panic("two halves of different tiles")
			}
			packRunGo(ColumnsOfA)(tile(g.ring, s.dst), &floats(unsafe.Pointer(g.fromDY), s.src, 1)[0], g.dyStride, rows, 1, 0, wideMask)
		case weavePairs:
			packRunGo(RowsOfB)(tile(g.x, s.dst), &floats(unsafe.Pointer(g.fromX), s.src, 1)[0], g.xStride, rows, 2, g.depth, wideMask)
		}
	}
}

// TestRowSums: a weight's gradient is the sum of the rounded operands, whether or not it can be
// woven, and reads nothing past their ends.
func TestRowSums(t *testing.T) {
	eachRowSums(t, func(t *testing.T, prims *Primitives, s *TileSet) {
		rng := rand.New(rand.NewPCG(6, 7))
		for n, rows := range []int{1, 2, 16, 17, 31, 32, 33, 63, 64, 100, 176, 191, sumRows, sumRows + 1, 2*sumRows + 40} {
			for m, size := range [][2]int{{32, 32}, {64, 32}, {32, 64}, {96, 96}, {33, 32}, {32, 31}} {
				c := rowSumsCase{rows: rows, out: size[0], in: size[1], padDY: n % 3 * 7, padX: m % 2 * 5, add: (n+m)%2 == 0, far: n%2 == 0, front: (n+m)%3 == 0}
				c.check(t, prims, s, rng, func(n int) []float32 { return isatest.Guarded(t, n, c.front) })
			}
		}
	})
}

func TestRowSumsRandom(t *testing.T) {
	eachRowSums(t, func(t *testing.T, prims *Primitives, s *TileSet) {
		rapid.Check(t, func(t *rapid.T) {
			width := func(name string) int {
				if rapid.Bool().Draw(t, name+" in blocks") {
					return blockLines * rapid.IntRange(1, 4).Draw(t, name)
				}
				return rapid.IntRange(1, 70).Draw(t, name)
			}
			c := rowSumsCase{rows: rapid.IntRange(1, sumRows+40).Draw(t, "rows"), out: width("out"), in: width("in"),
				padDY: rapid.IntRange(0, 33).Draw(t, "pad of dY"), padX: rapid.IntRange(0, 33).Draw(t, "pad of X"), add: rapid.Bool().Draw(t, "add"), far: rapid.Bool().Draw(t, "far")}
			c.check(t, prims, s, rand.New(rand.NewPCG(3, rapid.Uint64().Draw(t, "seed"))), heap)
		})
	})
}

// No rows: nothing is added, or everything is zero.
func TestRowSumsOfNothing(t *testing.T) {
	eachRowSums(t, func(t *testing.T, prims *Primitives, s *TileSet) {
		for _, add := range []bool{false, true} {
			dw := []float32{3}
			sums := NewRowSums(s, 0, 1, 1, 1, 1, false)
			sums.Product(prims, new(TileArgs), dw, nil, nil, add, make([]float32, sums.Need()))
			if want := map[bool]float32{false: 0, true: 3}[add]; dw[0] != want {
				t.Errorf("add %v: %g, want %g", add, dw[0], want)
			}
		}
	})
}
