package isa

import (
	"fmt"
	"math"
	"math/bits"
	"unsafe"
)

// Products in bf16. Both operands are packed as tiles of 1 KiB, sixteen lines of sixteen words,
// where a word is a pair of bf16 of neighbouring l: line i, word p of a tile of A holds A[i][2p]
// and A[i][2p+1], and line p, word j of a tile of B holds B[2p][j] and B[2p+1][j]. A's tiles run
// along l, then down the rows; B's along l, then across the columns.
//
// What a reader could break: what lies past the ends of a matrix is zero in its tiles, because zero
// times what an old buffer holds there may not be a number; an operand is rounded to the nearest
// bf16, ties to even, whoever packs it; sums are fp32 and begin with bias + R. The order of a sum
// is its set's own: the same for every element, whatever its row, column or neighbours.

const (
	TileLines = 16                // rows of A, or columns of B, in a tile
	TileDepth = 32                // l in a tile
	tileWords = TileLines * 16    // pairs in a tile
	tileElems = 2 * tileWords     // bf16 in a tile
	TileBytes = 2 * tileElems     // a tile
	TileSlots = TileBytes / 4     // floats that take its place
	wideMask  = uint64(1<<32 - 1) // all columns of a tile
)

func Ceil(n, unit int) int { return (n + unit - 1) / unit }

// TileFloats is how many floats of memory hold a matrix of `lines` rows of A, or columns of B, and
// depth k.
func TileFloats(lines, k int) int { return Ceil(lines, TileLines) * Ceil(k, TileDepth) * TileSlots }

// TileArgs describes one product of packed operands:
//
//	for i < m, j < n:
//	    C[i*ldc+j] = sum over l < k of A[i][l] * B[l][j] + bias[j] + R[i*ldr+j]
//
// where bias and r are not nil. R may be C itself. Strides count elements.
type TileArgs struct {
	C, A, B, Bias, R unsafe.Pointer
	M, N, K          int
	LDC, LDR         int
	Scratch          unsafe.Pointer // of TileSet.scratch floats
	// room for the products in fp32 of spreadTiles, so that they take none from the heap
	spread GemmArgs
	woven  weaveArgs // and for a product that packs on the way
}

// packing says which matrix a tile is of, and how it lies in the floats that are packed.
type packing uint8

const (
	RowsOfA    packing = iota // A[i][l] = src[i*stride+l]
	ColumnsOfA                // A[i][l] = src[l*stride+i]
	RowsOfB                   // B[l][j] = src[l*stride+j]
	ColumnsOfB                // B[l][j] = src[j*stride+l]
)

// pairs tells whether two rows of the source make the words of a line, instead of one.
func (p packing) pairs() bool { return p == ColumnsOfA || p == RowsOfB }

// packRun packs `tiles` tiles side by side in src, step bytes apart in dst, from `rows` rows and
// the columns of the mask.
type packRun func(dst *uint16, src *float32, stride, rows, tiles, step int, mask uint64)

// TileSet is one way to make products in bf16.
type TileSet struct {
	Name    string
	set     string // of the other primitives that it stands beside; "" is any
	runs    [4]packRun
	Product func(s *Primitives, g *TileArgs)
	peak    func(rounds int) (flop float64) // nil: the primitives' own
	Spreads bool                            // product wants scratch
	Muon    bool                            // Muon's rounds are faster by product than in fp32

	// a weight's gradient, packed between its products; nil: packed before them
	Weave func(g *weaveArgs)

	Attend, AttendGrad func(h *HeadArgs) // causal attention of a head; nil: in fp32

	GELU     func(y, x []float32) // of operands of products; nil: the primitives' own
	GELUGrad func(dx, dy, x []float32)
}

// TileTables lists what this processor can run, fastest first; spread is always last.
var TileTables = append(vectorTiles(), &spreadTiles)

// PickTiles returns the named set with the primitives that it stands beside; for the name of an
// instruction set, what that has without tile registers; for "" and "auto", the fastest.
func PickTiles(name string) (*Primitives, *TileSet, error) {
	for _, t := range TileTables {
		if t.set != "" && (t.Name == name || name == "" || name == "auto") {
			p, err := pick(t.set)
			return p, t, err
		}
	}
	p, err := pick(name)
	if err != nil {
		return nil, nil, fmt.Errorf("instruction set %q is not available here; in bf16 this processor has %v", name, TileSets())
	}
	for _, t := range TileTables {
		if t.set == "" || t.set == p.Name && t.peak == nil {
			return p, t, nil
		}
	}
	panic("cpu: no tiles") // spreadTiles stands beside any
}

// HasBF16 tells whether this processor multiplies in bf16 by itself.
func HasBF16() bool { return TileTables[0].set != "" }

// TileSets names the instruction sets this processor can multiply in bf16 with, fastest first.
// Those of Sets follow the ones that have bf16 of their own.
func TileSets() []string {
	var names []string
	for _, t := range TileTables {
		if t.set != "" {
			names = append(names, t.Name)
		}
	}
	return append(names, Sets()...)
}

// Pack fills the tiles at dst with a matrix of `lines` rows of A, or columns of B, and depth k.
func (t *TileSet) Pack(kind packing, dst []float32, src []float32, stride, lines, k int) {
	depth := Ceil(k, TileDepth)
	if lines == 0 || k == 0 {
		return
	}
	rows, cols := lines, k
	if kind.pairs() {
		rows, cols = k, lines
	}
	Fits(len(dst) >= TileFloats(lines, k) && spans(src, rows, cols, stride))
	run, tile := t.runs[kind], func(i, l int) *uint16 { return (*uint16)(unsafe.Pointer(&dst[(i*depth+l)*TileSlots])) }
	if kind.pairs() {
		for l := range depth {
			at, rows := src[l*TileDepth*stride:], min(TileDepth, k-l*TileDepth)
			if whole := lines / TileLines; whole > 0 {
				run(tile(0, l), &at[0], 4*stride, rows, whole, depth*TileBytes, wideMask)
			}
			if left := lines % TileLines; left > 0 {
				run(tile(lines/TileLines, l), &at[lines-left], 4*stride, rows, 1, 0, 1<<left-1)
			}
		}
		return
	}
	for i := range Ceil(lines, TileLines) {
		at, rows := src[i*TileLines*stride:], min(TileLines, lines-i*TileLines)
		if whole := k / TileDepth; whole > 0 {
			run(tile(i, 0), &at[0], 4*stride, rows, whole, TileBytes, wideMask)
		}
		if left := k % TileDepth; left > 0 {
			run(tile(i, depth-1), &at[k-left], 4*stride, rows, 1, 0, 1<<left-1)
		}
	}
}

// spreadTiles runs everywhere: tiles are packed in plain Go, and a product spreads them to fp32,
// block by block, for the primitives' own product, which makes the sums.
var spreadTiles = TileSet{Name: "spread", Product: productSpread, Spreads: true,
	runs: [4]packRun{packRunGo(RowsOfA), packRunGo(ColumnsOfA), packRunGo(RowsOfB), packRunGo(ColumnsOfB)}}

// toBF16 rounds to the nearest bf16, ties to even; numbers below the normal ones become zero.
func toBF16(x float32) uint16 {
	b := math.Float32bits(x)
	switch {
	case x != x:
		return uint16(b>>16) | 0x40
	case b&0x7f800000 == 0:
		return uint16(b >> 16 & 0x8000)
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

func fromBF16(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// packRunGo is packRun in plain Go.
func packRunGo(kind packing) packRun {
	width := TileDepth
	if kind.pairs() {
		width = TileLines
	}
	return func(dst *uint16, src *float32, stride, rows, tiles, step int, mask uint64) {
		cols := min(width, bits.TrailingZeros64(^mask)) // a mask is a run of columns from the first
		for n := range tiles {
			tile := unsafe.Slice((*uint16)(unsafe.Add(unsafe.Pointer(dst), n*step)), tileElems)
			clear(tile)
			for r := range rows {
				row := unsafe.Slice((*float32)(unsafe.Add(unsafe.Pointer(src), r*stride+4*n*width)), cols)
				switch kind {
				case RowsOfA:
					roundTo(tile[r*TileDepth:], row, 1)
				case ColumnsOfA:
					roundTo(tile[r:], row, TileDepth)
				case RowsOfB:
					roundTo(tile[r/2*TileDepth+r%2:], row, 2)
				case ColumnsOfB:
					for c, x := range row {
						tile[c/2*TileDepth+2*r+c%2] = toBF16(x)
					}
				}
			}
		}
	}
}

// roundTo puts numbers rounded to bf16 `step` places apart.
func roundTo(dst []uint16, src []float32, step int) {
	at := 0
	for _, x := range src {
		dst[at] = toBF16(x)
		at += step
	}
}

// spreadRows is how many rows of A are spread at once.
const spreadRows = 64

// spreadFloats is the scratch that a product of depth k needs where tiles are spread.
func spreadFloats(k int) int { return (Panel + spreadRows) * max(1, k) }

// Scratch is how many floats a product of depth k wants.
func (t *TileSet) Scratch(k int) int {
	if t.Spreads {
		return spreadFloats(k)
	}
	return 0
}

// productSpread: see TileArgs for the loop.
func productSpread(s *Primitives, g *TileArgs) {
	bs := unsafe.Slice((*float32)(g.Scratch), spreadFloats(g.K))
	as := bs[Panel*g.K:]
	for j := 0; j < g.N; j += Panel {
		n := min(Panel, g.N-j)
		spreadB(bs, g, j, n)
		for i := 0; i < g.M; i += spreadRows {
			m := min(spreadRows, g.M-i)
			spreadA(as, g, i, m)
			g.spread = GemmArgs{C: unsafe.Add(g.C, 4*(i*g.LDC+j)), A: Ptr(as), B: Ptr(bs), M: m, N: n, K: g.K,
				LDC: g.LDC, ARS: g.K, AKS: 1, BKS: Panel, BPS: Panel * g.K, LDR: g.LDR}
			if g.Bias != nil {
				g.spread.Bias = unsafe.Add(g.Bias, 4*j)
			}
			if g.R != nil {
				g.spread.R = unsafe.Add(g.R, 4*(i*g.LDR+j))
			}
			s.Gemm(&g.spread)
		}
	}
}

// tileAt is a tile of line or column `line` and depth l of a packed operand.
func (g *TileArgs) tileAt(tiles unsafe.Pointer, line, l int) []uint16 {
	return unsafe.Slice((*uint16)(unsafe.Add(tiles, (line/TileLines*Ceil(g.K, TileDepth)+l/TileDepth)*TileBytes)), tileElems)
}

// spreadA: as[r*k+l] = A[i+r][l] for r < m.
func spreadA(as []float32, g *TileArgs, i, m int) {
	for r := range m {
		for l := 0; l < g.K; l += TileDepth {
			from := g.tileAt(g.A, i+r, l)[(i+r)%TileLines*TileDepth:][:TileDepth]
			to := as[r*g.K+l:][:min(TileDepth, g.K-l)]
			for c := range to {
				to[c] = fromBF16(from[c])
			}
		}
	}
}

// spreadB: bs[l*panel+c] = B[l][j+c] for c < n, j a multiple of TileLines.
func spreadB(bs []float32, g *TileArgs, j, n int) {
	for c := 0; c < n; c += TileLines {
		wide := min(TileLines, n-c)
		for l := range g.K {
			from := g.tileAt(g.B, j+c, l)[l%TileDepth/2*TileDepth+l%2:]
			to := bs[l*Panel+c:][:wide]
			for x := range to {
				to[x] = fromBF16(from[2*x])
			}
		}
	}
}

// productEmpty is a product over nothing: C = bias + R, whose sum is in C where there are both.
func productEmpty(g *TileArgs) {
	for i := range g.M {
		c := unsafe.Slice((*float32)(unsafe.Add(g.C, 4*i*g.LDC)), g.N)
		switch {
		case g.Bias != nil && g.R != nil:
		case g.R != nil:
			copy(c, unsafe.Slice((*float32)(unsafe.Add(g.R, 4*i*g.LDR)), g.N))
		case g.Bias != nil:
			copy(c, unsafe.Slice((*float32)(g.Bias), g.N))
		default:
			clear(c)
		}
	}
}
