package cpu

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
	tileLines = 16                // rows of A, or columns of B, in a tile
	tileDepth = 32                // l in a tile
	tileWords = tileLines * 16    // pairs in a tile
	tileElems = 2 * tileWords     // bf16 in a tile
	tileBytes = 2 * tileElems     // a tile
	tileSlots = tileBytes / 4     // floats that take its place
	wideMask  = uint64(1<<32 - 1) // all columns of a tile
)

func ceil(n, unit int) int { return (n + unit - 1) / unit }

// tileFloats is how many floats of memory hold a matrix of `lines` rows of A, or columns of B, and
// depth k.
func tileFloats(lines, k int) int { return ceil(lines, tileLines) * ceil(k, tileDepth) * tileSlots }

// tileArgs describes one product of packed operands:
//
//	for i < m, j < n:
//	    C[i*ldc+j] = sum over l < k of A[i][l] * B[l][j] + bias[j] + R[i*ldr+j]
//
// where bias and r are not nil. R may be C itself. Strides count elements.
type tileArgs struct {
	c, a, b, bias, r unsafe.Pointer
	m, n, k          int
	ldc, ldr         int
	scratch          unsafe.Pointer // of tileSet.scratch floats
	// room for the products in fp32 of spreadTiles, so that they take none from the heap
	spread gemmArgs
	woven  weaveArgs // and for a product that packs on the way
}

// packing says which matrix a tile is of, and how it lies in the floats that are packed.
type packing uint8

const (
	rowsOfA    packing = iota // A[i][l] = src[i*stride+l]
	columnsOfA                // A[i][l] = src[l*stride+i]
	rowsOfB                   // B[l][j] = src[l*stride+j]
	columnsOfB                // B[l][j] = src[j*stride+l]
)

// pairs tells whether two rows of the source make the words of a line, instead of one.
func (p packing) pairs() bool { return p == columnsOfA || p == rowsOfB }

// packRun packs `tiles` tiles side by side in src, step bytes apart in dst, from `rows` rows and
// the columns of the mask.
type packRun func(dst *uint16, src *float32, stride, rows, tiles, step int, mask uint64)

// tileSet is one way to make products in bf16.
type tileSet struct {
	name    string
	set     string // of the other primitives that it stands beside; "" is any
	runs    [4]packRun
	product func(s *primitives, g *tileArgs)
	peak    func(rounds int) (flop float64) // nil: the primitives' own
	spreads bool                            // product wants scratch
	muon    bool                            // Muon's rounds are faster by product than in fp32

	// a weight's gradient, packed between its products; nil: packed before them
	weave func(g *weaveArgs)

	attend, attendGrad func(h *headArgs) // causal attention of a head; nil: in fp32

	gelu     func(y, x []float32) // of operands of products; nil: the primitives' own
	geluGrad func(dx, dy, x []float32)
}

// tileSets lists what this processor can run, fastest first; spread is always last.
var tileSets = append(vectorTiles(), &spreadTiles)

// pickTiles returns the named set with the primitives that it stands beside; for the name of an
// instruction set, what that has without tile registers; for "" and "auto", the fastest.
func pickTiles(name string) (*primitives, *tileSet, error) {
	for _, t := range tileSets {
		if t.set != "" && (t.name == name || name == "" || name == "auto") {
			p, err := pick(t.set)
			return p, t, err
		}
	}
	p, err := pick(name)
	if err != nil {
		return nil, nil, fmt.Errorf("instruction set %q is not available here; in bf16 this processor has %v", name, TileSets())
	}
	for _, t := range tileSets {
		if t.set == "" || t.set == p.name && t.peak == nil {
			return p, t, nil
		}
	}
	panic("cpu: no tiles") // spreadTiles stands beside any
}

// HasBF16 tells whether this processor multiplies in bf16 by itself.
func HasBF16() bool { return tileSets[0].set != "" }

// TileSets names the instruction sets this processor can multiply in bf16 with, fastest first.
// Those of Sets follow the ones that have bf16 of their own.
func TileSets() []string {
	var names []string
	for _, t := range tileSets {
		if t.set != "" {
			names = append(names, t.name)
		}
	}
	return append(names, Sets()...)
}

// pack fills the tiles at dst with a matrix of `lines` rows of A, or columns of B, and depth k.
func (t *tileSet) pack(kind packing, dst []float32, src []float32, stride, lines, k int) {
	depth := ceil(k, tileDepth)
	if lines == 0 || k == 0 {
		return
	}
	rows, cols := lines, k
	if kind.pairs() {
		rows, cols = k, lines
	}
	fits(len(dst) >= tileFloats(lines, k) && spans(src, rows, cols, stride))
	run, tile := t.runs[kind], func(i, l int) *uint16 { return (*uint16)(unsafe.Pointer(&dst[(i*depth+l)*tileSlots])) }
	if kind.pairs() {
		for l := range depth {
			at, rows := src[l*tileDepth*stride:], min(tileDepth, k-l*tileDepth)
			if whole := lines / tileLines; whole > 0 {
				run(tile(0, l), &at[0], 4*stride, rows, whole, depth*tileBytes, wideMask)
			}
			if left := lines % tileLines; left > 0 {
				run(tile(lines/tileLines, l), &at[lines-left], 4*stride, rows, 1, 0, 1<<left-1)
			}
		}
		return
	}
	for i := range ceil(lines, tileLines) {
		at, rows := src[i*tileLines*stride:], min(tileLines, lines-i*tileLines)
		if whole := k / tileDepth; whole > 0 {
			run(tile(i, 0), &at[0], 4*stride, rows, whole, tileBytes, wideMask)
		}
		if left := k % tileDepth; left > 0 {
			run(tile(i, depth-1), &at[k-left], 4*stride, rows, 1, 0, 1<<left-1)
		}
	}
}

// spreadTiles runs everywhere: tiles are packed in plain Go, and a product spreads them to fp32,
// block by block, for the primitives' own product, which makes the sums.
var spreadTiles = tileSet{name: "spread", product: productSpread, spreads: true,
	runs: [4]packRun{packRunGo(rowsOfA), packRunGo(columnsOfA), packRunGo(rowsOfB), packRunGo(columnsOfB)}}

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
	width := tileDepth
	if kind.pairs() {
		width = tileLines
	}
	return func(dst *uint16, src *float32, stride, rows, tiles, step int, mask uint64) {
		cols := min(width, bits.TrailingZeros64(^mask)) // a mask is a run of columns from the first
		for n := range tiles {
			tile := unsafe.Slice((*uint16)(unsafe.Add(unsafe.Pointer(dst), n*step)), tileElems)
			clear(tile)
			for r := range rows {
				row := unsafe.Slice((*float32)(unsafe.Add(unsafe.Pointer(src), r*stride+4*n*width)), cols)
				switch kind {
				case rowsOfA:
					roundTo(tile[r*tileDepth:], row, 1)
				case columnsOfA:
					roundTo(tile[r:], row, tileDepth)
				case rowsOfB:
					roundTo(tile[r/2*tileDepth+r%2:], row, 2)
				case columnsOfB:
					for c, x := range row {
						tile[c/2*tileDepth+2*r+c%2] = toBF16(x)
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
func spreadFloats(k int) int { return (panel + spreadRows) * max(1, k) }

// scratch is how many floats a product of depth k wants.
func (t *tileSet) scratch(k int) int {
	if t.spreads {
		return spreadFloats(k)
	}
	return 0
}

// productSpread: see tileArgs for the loop.
func productSpread(s *primitives, g *tileArgs) {
	bs := unsafe.Slice((*float32)(g.scratch), spreadFloats(g.k))
	as := bs[panel*g.k:]
	for j := 0; j < g.n; j += panel {
		n := min(panel, g.n-j)
		spreadB(bs, g, j, n)
		for i := 0; i < g.m; i += spreadRows {
			m := min(spreadRows, g.m-i)
			spreadA(as, g, i, m)
			g.spread = gemmArgs{c: unsafe.Add(g.c, 4*(i*g.ldc+j)), a: ptr(as), b: ptr(bs), m: m, n: n, k: g.k,
				ldc: g.ldc, ars: g.k, aks: 1, bks: panel, bps: panel * g.k, ldr: g.ldr}
			if g.bias != nil {
				g.spread.bias = unsafe.Add(g.bias, 4*j)
			}
			if g.r != nil {
				g.spread.r = unsafe.Add(g.r, 4*(i*g.ldr+j))
			}
			s.gemm(&g.spread)
		}
	}
}

// tileAt is a tile of line or column `line` and depth l of a packed operand.
func (g *tileArgs) tileAt(tiles unsafe.Pointer, line, l int) []uint16 {
	return unsafe.Slice((*uint16)(unsafe.Add(tiles, (line/tileLines*ceil(g.k, tileDepth)+l/tileDepth)*tileBytes)), tileElems)
}

// spreadA: as[r*k+l] = A[i+r][l] for r < m.
func spreadA(as []float32, g *tileArgs, i, m int) {
	for r := range m {
		for l := 0; l < g.k; l += tileDepth {
			from := g.tileAt(g.a, i+r, l)[(i+r)%tileLines*tileDepth:][:tileDepth]
			to := as[r*g.k+l:][:min(tileDepth, g.k-l)]
			for c := range to {
				to[c] = fromBF16(from[c])
			}
		}
	}
}

// spreadB: bs[l*panel+c] = B[l][j+c] for c < n, j a multiple of tileLines.
func spreadB(bs []float32, g *tileArgs, j, n int) {
	for c := 0; c < n; c += tileLines {
		wide := min(tileLines, n-c)
		for l := range g.k {
			from := g.tileAt(g.b, j+c, l)[l%tileDepth/2*tileDepth+l%2:]
			to := bs[l*panel+c:][:wide]
			for x := range to {
				to[x] = fromBF16(from[2*x])
			}
		}
	}
}

// productEmpty is a product over nothing: C = bias + R, whose sum is in C where there are both.
func productEmpty(g *tileArgs) {
	for i := range g.m {
		c := unsafe.Slice((*float32)(unsafe.Add(g.c, 4*i*g.ldc)), g.n)
		switch {
		case g.bias != nil && g.r != nil:
		case g.r != nil:
			copy(c, unsafe.Slice((*float32)(unsafe.Add(g.r, 4*i*g.ldr)), g.n))
		case g.bias != nil:
			copy(c, unsafe.Slice((*float32)(g.bias), g.n))
		default:
			clear(c)
		}
	}
}
