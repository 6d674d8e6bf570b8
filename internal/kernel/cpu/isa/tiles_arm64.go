package isa

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

var matrixTiles = TileSet{Name: "neon_bf16", set: neon.Name, Product: productBFMMLA, peak: peakBFMMLA,
	runs: [4]packRun{RowsOfA: packRowsNEON, ColumnsOfA: turnedRun(packPairsNEON), RowsOfB: packPairsNEON, ColumnsOfB: turnedRun(packRowsNEON)}}

// vectorTiles returns the sets that this processor and its operating system support.
func vectorTiles() []*TileSet {
	if hasBFMMLA() {
		return []*TileSet{&matrixTiles}
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

// productBFMMLA: see TileArgs for the loop. Blocks at the edges are made in a block of their own.
func productBFMMLA(p *Primitives, g *TileArgs) {
	if g.M == 0 || g.N == 0 {
		return
	}
	start, lds := g.R, 4*g.LDR
	switch {
	case g.R != nil && g.Bias != nil:
		for i := range g.M {
			c := unsafe.Slice(at(g.C, i*g.LDC), g.N)
			copy(c, unsafe.Slice(at(g.R, i*g.LDR), g.N))
			p.Add(c, unsafe.Slice((*float32)(g.Bias), g.N))
		}
		start, lds = g.C, 4*g.LDC
	case g.R == nil:
		start, lds = g.Bias, 0
	}
	depth := Ceil(g.K, TileDepth)
	if depth == 0 {
		productEmpty(g)
		return
	}
	var edge [bf16Side * bf16Side]float32
	for j := 0; j < g.N; j += bf16Side {
		for i := 0; i < g.M; i += bf16Side {
			t := bf16Block{c: unsafe.Add(g.C, 4*(i*g.LDC+j)), ldc: 4 * g.LDC, lds: lds, k: depth,
				a: unsafe.Add(g.A, i/TileLines*depth*TileBytes+i%TileLines*64), b: unsafe.Add(g.B, j/TileLines*depth*TileBytes+j%TileLines*4)}
			if start != nil {
				t.start = unsafe.Add(start, i*lds+4*j)
			}
			rows, cols := min(bf16Side, g.M-i), min(bf16Side, g.N-j)
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

var plainRuns = [2]packRun{packRunGo(RowsOfA), packRunGo(RowsOfB)}

// packRowsNEON packs lines of 32 columns; a tile with fewer is plain Go's.
func packRowsNEON(dst *uint16, src *float32, stride, rows, tiles, step int, mask uint64) {
	if bits.OnesCount64(mask) < TileDepth {
		plainRuns[0](dst, src, stride, rows, tiles, step, mask)
		return
	}
	for n := range tiles {
		tile := (*uint16)(unsafe.Add(unsafe.Pointer(dst), n*step))
		roundRowsNEON(tile, (*float32)(unsafe.Add(unsafe.Pointer(src), 4*n*TileDepth)), stride, rows)
		clear(unsafe.Slice(tile, tileElems)[rows*TileDepth:])
	}
}

// packPairsNEON packs pairs of rows of 16 columns; a tile with fewer columns or an odd row is plain
// Go's.
func packPairsNEON(dst *uint16, src *float32, stride, rows, tiles, step int, mask uint64) {
	if bits.OnesCount64(mask) < TileLines || rows%2 != 0 {
		plainRuns[1](dst, src, stride, rows, tiles, step, mask)
		return
	}
	for n := range tiles {
		tile := (*uint16)(unsafe.Add(unsafe.Pointer(dst), n*step))
		roundPairsNEON(tile, (*float32)(unsafe.Add(unsafe.Pointer(src), 4*n*TileLines)), stride, rows/2)
		clear(unsafe.Slice(tile, tileElems)[rows*TileLines:])
	}
}

// turnedRun is a packing whose tiles, sixteen lines of sixteen words, are those of another, lines
// for columns.
func turnedRun(run packRun) packRun {
	return func(dst *uint16, src *float32, stride, rows, tiles, step int, mask uint64) {
		run(dst, src, stride, rows, tiles, step, mask)
		var turned [TileSlots]float32
		for n := range tiles {
			tile := unsafe.Slice((*float32)(unsafe.Add(unsafe.Pointer(dst), n*step)), TileSlots)
			transposeBlocksNEON(turned[:], TileLines, tile, TileLines, TileLines, TileLines)
			copy(tile, turned[:])
		}
	}
}
