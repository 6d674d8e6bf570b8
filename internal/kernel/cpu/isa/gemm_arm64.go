package isa

// What a reader could break: an element is one chain of FMAs in the order of l that starts from
// bias + R, in every tile, so that C's bits depend on its own row, column and k alone. They are the
// bits of the AVX sets for m > 1.

import (
	"runtime"
	"unsafe"
)

//go:generate go run -C _generate ./neon -out ../neon_arm64.s -stubs ../neon_stubs_arm64.go -pkg isa

// neonTile is what the assembly reads: tiles of one to four rows, one below the other, over one
// strip of columns. Strides count bytes. The caller's GemmArgs keeps the matrices alive.
type neonTile struct {
	c, a, b, bias, r              unsafe.Pointer
	tiles, k                      int
	ldc, ars, aks, bks, ldr, cols int
}

// The generator knows the fields by these offsets.
var _ = [1]struct{}{}[unsafe.Sizeof(neonTile{})-13*8|
	unsafe.Offsetof(neonTile{}.tiles)-40|unsafe.Offsetof(neonTile{}.ldc)-56|unsafe.Offsetof(neonTile{}.cols)-96]

// tileRows and strip are the rows and the columns of a whole tile.
const (
	tileRows = 4
	strip    = 16
)

// gemmNEON walks C strip after strip: sixteen columns of B, k deep, stay in the first cache while
// the rows of A go by.
func gemmNEON(g *GemmArgs) {
	for j := 0; j < g.N; {
		cols := 1
		switch {
		case g.N-j >= strip:
			cols = strip
		case g.N-j >= 4:
			cols = 4
		default:
			cols = g.N - j
		}
		t := neonTile{
			b: unsafe.Add(g.B, (j/Panel*g.BPS+j%Panel)*4),
			k: g.K, ldc: g.LDC * 4, ars: g.ARS * 4, aks: g.AKS * 4, bks: g.BKS * 4, ldr: g.LDR * 4, cols: cols,
		}
		if g.Bias != nil {
			t.bias = unsafe.Add(g.Bias, j*4)
		}
		whole := g.M / tileRows
		if whole > 0 {
			t.at(g, 0, j, whole)
			t.run(tileRows)
		}
		if rest := g.M % tileRows; rest > 0 {
			t.at(g, whole*tileRows, j, 1)
			t.run(rest)
		}
		j += cols
	}
	runtime.KeepAlive(g)
}

// at places the tile at row i and column j.
func (t *neonTile) at(g *GemmArgs, i, j, tiles int) {
	t.tiles = tiles
	t.c = unsafe.Add(g.C, (i*g.LDC+j)*4)
	t.a = unsafe.Add(g.A, i*g.ARS*4)
	if g.R != nil {
		t.r = unsafe.Add(g.R, (i*g.LDR+j)*4)
	}
}

// run calls the tile's function by name: one that is looked up would make t escape to the heap.
func (t *neonTile) run(rows int) {
	switch {
	case t.cols == strip && t.aks == 4:
		t.whole(rows)
	case t.cols == strip && t.ars == 4 && rows == tileRows:
		tilesTurned4NEON(t)
	case t.cols == strip:
		t.any(rows)
	case t.cols == 4:
		t.vector(rows)
	default:
		t.few(rows)
	}
}

func (t *neonTile) whole(rows int) {
	switch rows {
	case 4:
		tilesWhole4NEON(t)
	case 3:
		tilesWhole3NEON(t)
	case 2:
		tilesWhole2NEON(t)
	default:
		tilesWhole1NEON(t)
	}
}

func (t *neonTile) any(rows int) {
	switch rows {
	case 4:
		tilesAny4NEON(t)
	case 3:
		tilesAny3NEON(t)
	case 2:
		tilesAny2NEON(t)
	default:
		tilesAny1NEON(t)
	}
}

func (t *neonTile) vector(rows int) {
	switch rows {
	case 4:
		tilesVector4NEON(t)
	case 3:
		tilesVector3NEON(t)
	case 2:
		tilesVector2NEON(t)
	default:
		tilesVector1NEON(t)
	}
}

func (t *neonTile) few(rows int) {
	switch rows {
	case 4:
		tilesFew4NEON(t)
	case 3:
		tilesFew3NEON(t)
	case 2:
		tilesFew2NEON(t)
	default:
		tilesFew1NEON(t)
	}
}

// peakNEON: sixteen sums of four floats that wait only on themselves.
func peakNEON(rounds int) (flop float64) {
	peakLoopNEON(rounds)
	return float64(rounds) * 16 * 4 * 2
}
