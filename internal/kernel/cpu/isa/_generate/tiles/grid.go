package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Tiles 0..3 are the accumulators, row by row of the block; then two tiles of A, two of B.
const (
	tileA = 4
	tileB = 6
)

// The registers of the grid loops.
var (
	a0, a1 = RBX, R8 // the block's tiles of A at the current k
	b0, b1 = R9, R10 // of B
	unit   = R11     // 64: a packed tile's rows follow each other
	ldc    = R12     // bytes between rows of C
	lds    = R13     // and of what it starts from
	c      = RSI
	start  = RDX
	count  = RCX
	cols   = R14
	depth  = R15 // bytes of a row of tiles, over all of k
	tmp    = RAX
)

// shapes are the blocks that a grid can be made of, by its field shape.
var shapes = [][2]int{{2, 2}, {2, 1}, {1, 2}, {1, 1}}

// gridsFunc writes the function that computes grids one after another. Configuring and releasing
// the tiles takes longer than a small grid, so that a grid with its predecessor's configuration
// keeps it.
func gridsFunc() {
	TEXT("tileGrids", NOSPLIT, "func(t *[14]uintptr, n int)")
	Pragma("noescape")
	Doc("C = start + A·B on each of n > 0 grids that lie one after another: t.rows × t.cols blocks of tiles.")
	Load(Param("t"), args)
	n, err := Param("n").Resolve()
	if err != nil {
		panic(err)
	}
	MOVQ(field(offConfig), tmp)
	Label("configure")
	tileConfigure(tmp)
	Label("grid")
	MOVQ(U32(64), unit)
	MOVQ(field(offLdc), ldc)
	MOVQ(field(offDepth), depth)
	MOVQ(field(offShape), tmp)
	for i, shape := range shapes[1:] {
		CMPQ(tmp, U8(i+1))
		JEQ(LabelRef(shapeName(shape[0], shape[1])))
	}
	for _, shape := range shapes {
		Label(shapeName(shape[0], shape[1]))
		grid(shape[0], shape[1])
		JMP(LabelRef("done"))
	}
	Label("done")
	ADDQ(U32(gridBytes), args)
	DECQ(n.Addr)
	JEQ(LabelRef("end"))
	MOVQ(field(offConfig), tmp)
	CMPQ(tmp, field(offConfig-gridBytes))
	JEQ(LabelRef("grid"))
	JMP(LabelRef("configure"))
	Label("end")
	tileRelease()
	RET()
}

func shapeName(nr, nc int) string { return fmt.Sprintf("shape%dx%d", nr, nc) }

// grid writes t.rows × t.cols blocks of nr × nc tiles. A block is summed over all of k in tile
// registers.
func grid(nr, nc int) {
	label := func(name string) string { return fmt.Sprintf("%s%dx%d", name, nr, nc) }
	Label(label("row"))
	MOVQ(field(offC), c)
	MOVQ(field(offStart), start)
	MOVQ(field(offB), b0)
	MOVQ(b0, field(offStrip))
	MOVQ(field(offCols), cols)
	Label(label("col"))
	TESTQ(start, start)
	JEQ(LabelRef(label("zero")))
	MOVQ(field(offLds), lds)
	tiles(nr, nc, start, lds, tileLoad)
	ADDQ(U32(uint32(64*nc)), start)
	JMP(LabelRef(label("started")))
	Label(label("zero"))
	for i := range nr {
		for j := range nc {
			tileZero(2*i + j)
		}
	}
	Label(label("started"))
	MOVQ(field(offA), a0)
	if nr > 1 {
		LEAQ(Mem{Base: a0, Index: depth, Scale: 1}, a1)
	}
	if nc > 1 {
		LEAQ(Mem{Base: b0, Index: depth, Scale: 1}, b1)
	}
	// Where the sums go is fetched in the first four steps of l.
	const fetches = 4
	MOVQ(c, tmp)
	MOVQ(field(offK), count)
	CMPQ(count, U8(fetches))
	JLE(LabelRef(label("fetching")))
	MOVQ(U32(fetches), count)
	Label(label("fetching"))
	depthStep(nr, nc, true)
	DECQ(count)
	JNE(LabelRef(label("fetching")))
	MOVQ(field(offK), count)
	SUBQ(U8(fetches), count)
	JLE(LabelRef(label("summed")))
	Label(label("depth"))
	depthStep(nr, nc, false)
	DECQ(count)
	JNE(LabelRef(label("depth")))
	Label(label("summed"))
	tiles(nr, nc, c, ldc, tileStore)
	ADDQ(U32(uint32(64*nc)), c)
	MOVQ(field(offStrip), b0)
	for range nc {
		ADDQ(depth, b0)
	}
	MOVQ(b0, field(offStrip))
	DECQ(cols)
	JNE(LabelRef(label("col")))

	// The next row of blocks.
	MOVQ(depth, tmp)
	IMUL3Q(U8(nr), tmp, tmp)
	ADDQ(tmp, field(offA))
	IMUL3Q(U8(16*nr), ldc, tmp)
	ADDQ(tmp, field(offC))
	MOVQ(field(offStart), start)
	TESTQ(start, start)
	JEQ(LabelRef(label("next")))
	MOVQ(field(offLds), lds)
	IMUL3Q(U8(16*nr), lds, tmp)
	ADDQ(tmp, field(offStart))
	Label(label("next"))
	DECQ(field(offRows))
	JNE(LabelRef(label("row")))
}

// depthStep writes the products of one step of l and moves on; where asked to, it fetches 4·nr of
// the rows that the sums go to.
func depthStep(nr, nc int, fetch bool) {
	multiply(nr, nc, func() {
		if fetch {
			fetchSums(4*nr, nc, PREFETCHT0)
		}
	})
	for _, p := range []GPPhysical{a0, a1, b0, b1} {
		if p == a1 && nr == 1 || p == b1 && nc == 1 {
			continue
		}
		ADDQ(U32(tileBytes), p)
	}
}

// multiply adds the product of the tiles at a0, a1 and b0, b1 to the block's sums, with something
// else in the middle.
func multiply(nr, nc int, between func()) {
	tileLoad(tileB, b0, unit, 0)
	tileLoad(tileA, a0, unit, 0)
	tileDot(0, tileA, tileB)
	if nr > 1 {
		tileLoad(tileA+1, a1, unit, 0)
		tileDot(2, tileA+1, tileB)
	}
	between()
	if nc > 1 {
		tileLoad(tileB+1, b1, unit, 0)
		tileDot(1, tileA, tileB+1)
	}
	if nr > 1 && nc > 1 {
		tileDot(3, tileA+1, tileB+1)
	}
}

// fetchSums fetches rows of C, nc tiles wide, from tmp on.
func fetchSums(rows, nc int, into func(Op)) {
	for range rows {
		for j := range nc {
			into(Mem{Base: tmp, Disp: 64 * j})
		}
		ADDQ(ldc, tmp)
	}
}

// tiles moves the block's accumulators between registers and a matrix at p, its rows ld bytes
// apart.
func tiles(nr, nc int, p, ld GPPhysical, move func(t int, base, index GPPhysical, disp int)) {
	for i := range nr {
		at := p
		if i > 0 {
			MOVQ(ld, tmp)
			SHLQ(U8(4), tmp)
			ADDQ(p, tmp)
			at = tmp
		}
		for j := range nc {
			move(2*i+j, at, ld, 64*j)
		}
	}
}

// peakFunc writes the loop that sets the peak: products of tiles that are there already. They hold
// numbers: over zeroed tiles the loop is faster than any product can be, and keeps its speed where
// a neighbour on the same core halves theirs.
func peakFunc() {
	TEXT("peakTiles", NOSPLIT, "func(config *byte, operands *uint16, rounds int)")
	Pragma("noescape")
	Doc(fmt.Sprintf("Runs rounds × %d products of four tiles of operands, four accumulators in turn.", peakDots))
	Load(Param("config"), tmp)
	tileConfigure(tmp)
	Load(Param("operands"), a0)
	MOVQ(U32(64), unit)
	for t := range 4 {
		tileZero(t)
		tileLoad(4+t, a0, unit, 0)
		ADDQ(U32(tileBytes), a0)
	}
	Load(Param("rounds"), count)
	Label("loop")
	for i := range peakDots {
		tileDot(i%4, tileA+i/2%2, tileB+i%2)
	}
	DECQ(count)
	JNE(LabelRef("loop"))
	tileRelease()
	RET()
}

const peakDots = 8
