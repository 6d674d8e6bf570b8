package cpu

import (
	"math/bits"
	"runtime"
	"unsafe"
)

// Products in bf16 by BFMMLA, where the processor has it. The order of a sum: from start, for every
// four l in turn two products of neighbouring l, added to each other and then to the sum, each
// rounded to odd; numbers below the normal ones are zero. That is what the instruction does unless
// a system asks for extended bf16, which none here does.

// bf16Block is what the assembly reads: a block of eight rows and columns of C. Strides count
// bytes.
type bf16Block struct {
	c, start, a, b unsafe.Pointer // start: what the sums start from, nil: nothing
	k              int            // tiles
	ldc, lds       int
}

// The generator knows the fields by these offsets.
var _ = [1]struct{}{}[unsafe.Sizeof(bf16Block{})-7*8|unsafe.Offsetof(bf16Block{}.a)-16|unsafe.Offsetof(bf16Block{}.k)-32|unsafe.Offsetof(bf16Block{}.lds)-48]

var matrixTiles = tileSet{name: "neon_bf16", set: neon.name, product: productBFMMLA, peak: peakBFMMLA,
	runs: [4]packRun{rowsOfA: packRowsNEON, columnsOfA: turnedRun(packPairsNEON), rowsOfB: packPairsNEON, columnsOfB: turnedRun(packRowsNEON)}}

// vectorTiles returns the sets that this processor and its operating system support.
func vectorTiles() []*tileSet {
	if hasBFMMLA() {
		return []*tileSet{&matrixTiles}
	}
	return nil
}

// peakBFMMLA: sixteen products of 2 × 4 and 4 × 2 a round.
func peakBFMMLA(rounds int) (flop float64) {
	peakLoopBF16NEON(rounds)
	return float64(rounds) * 16 * 2 * 2 * 4 * 2
}

// bf16Side is the rows and columns of a block.
const bf16Side = 8

// productBFMMLA: see tileArgs for the loop. Blocks at the edges are made in a block of their own.
func productBFMMLA(p *primitives, g *tileArgs) {
	if g.m == 0 || g.n == 0 {
		return
	}
	start, lds := g.r, 4*g.ldr
	switch {
	case g.r != nil && g.bias != nil:
		for i := range g.m {
			c := unsafe.Slice(at(g.c, i*g.ldc), g.n)
			copy(c, unsafe.Slice(at(g.r, i*g.ldr), g.n))
			p.add(c, unsafe.Slice((*float32)(g.bias), g.n))
		}
		start, lds = g.c, 4*g.ldc
	case g.r == nil:
		start, lds = g.bias, 0
	}
	depth := ceil(g.k, tileDepth)
	if depth == 0 {
		productEmpty(g)
		return
	}
	var edge [bf16Side * bf16Side]float32
	for j := 0; j < g.n; j += bf16Side {
		for i := 0; i < g.m; i += bf16Side {
			t := bf16Block{c: unsafe.Add(g.c, 4*(i*g.ldc+j)), ldc: 4 * g.ldc, lds: lds, k: depth,
				a: unsafe.Add(g.a, i/tileLines*depth*tileBytes+i%tileLines*64), b: unsafe.Add(g.b, j/tileLines*depth*tileBytes+j%tileLines*4)}
			if start != nil {
				t.start = unsafe.Add(start, i*lds+4*j)
			}
			rows, cols := min(bf16Side, g.m-i), min(bf16Side, g.n-j)
			if rows == bf16Side && cols == bf16Side {
				blockBF16NEON(&t)
				continue
			}
			whole := t
			if start != nil {
				for r := range rows {
					copy(edge[r*bf16Side:][:cols], unsafe.Slice((*float32)(unsafe.Add(t.start, r*lds)), cols))
				}
				whole.start, whole.lds = unsafe.Pointer(&edge), 4*bf16Side
			}
			whole.c, whole.ldc = unsafe.Pointer(&edge), 4*bf16Side
			blockBF16NEON(&whole)
			for r := range rows {
				copy(unsafe.Slice((*float32)(unsafe.Add(t.c, r*t.ldc)), cols), edge[r*bf16Side:])
			}
		}
	}
	runtime.KeepAlive(g)
}

var plainRuns = [2]packRun{packRunGo(rowsOfA), packRunGo(rowsOfB)}

// packRowsNEON packs lines of 32 columns; a tile with fewer is plain Go's.
func packRowsNEON(dst *uint16, src *float32, stride, rows, tiles, step int, mask uint64) {
	if bits.OnesCount64(mask) < tileDepth {
		plainRuns[0](dst, src, stride, rows, tiles, step, mask)
		return
	}
	for n := range tiles {
		tile := (*uint16)(unsafe.Add(unsafe.Pointer(dst), n*step))
		roundRowsNEON(tile, (*float32)(unsafe.Add(unsafe.Pointer(src), 4*n*tileDepth)), stride, rows)
		clear(unsafe.Slice(tile, tileElems)[rows*tileDepth:])
	}
}

// packPairsNEON packs pairs of rows of 16 columns; a tile with fewer columns or an odd row is plain
// Go's.
func packPairsNEON(dst *uint16, src *float32, stride, rows, tiles, step int, mask uint64) {
	if bits.OnesCount64(mask) < tileLines || rows%2 != 0 {
		plainRuns[1](dst, src, stride, rows, tiles, step, mask)
		return
	}
	for n := range tiles {
		tile := (*uint16)(unsafe.Add(unsafe.Pointer(dst), n*step))
		roundPairsNEON(tile, (*float32)(unsafe.Add(unsafe.Pointer(src), 4*n*tileLines)), stride, rows/2)
		clear(unsafe.Slice(tile, tileElems)[rows*tileLines:])
	}
}

// turnedRun is a packing whose tiles, sixteen lines of sixteen words, are those of another, lines
// for columns.
func turnedRun(run packRun) packRun {
	return func(dst *uint16, src *float32, stride, rows, tiles, step int, mask uint64) {
		run(dst, src, stride, rows, tiles, step, mask)
		var turned [tileSlots]float32
		for n := range tiles {
			tile := unsafe.Slice((*float32)(unsafe.Add(unsafe.Pointer(dst), n*step)), tileSlots)
			transposeBlocksNEON(turned[:], tileLines, tile, tileLines, tileLines, tileLines)
			copy(tile, turned[:])
		}
	}
}
