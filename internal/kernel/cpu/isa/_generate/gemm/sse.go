package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// The product for processors without AVX2: SSE2, which every amd64 processor has. What a reader
// could break: there is no FMA, so an element is one chain of a rounded product and a rounded sum
// per l, in the order of l, from bias + R, in every tile; its bits are not those of the FMA sets.

// sseRows is the most rows of a tile: with two vectors of columns they take twelve accumulators.
const sseRows = 6

var sseRegs = []VecPhysical{X0, X1, X2, X3, X4, X5, X6, X7, X8, X9, X10, X11, X12, X13, X14, X15}

// sse is a tile of rows by v vectors of columns; v = 0 is a single column.
type sse struct{ rows, v int }

func (t sse) columns() int               { return max(1, t.v) }
func (t sse) acc(i, j int) VecPhysical   { return sseRegs[i*t.columns()+j] }
func (t sse) b(j int) VecPhysical        { return sseRegs[12+j] }
func (t sse) load(m Mem, to VecPhysical) { pick(t.v == 0, MOVSS, MOVUPS)(m, to) }

func pick(first bool, a, b func(x, y Op)) func(x, y Op) {
	if first {
		return a
	}
	return b
}

// sseFunc writes a function that computes t.tiles tiles, one below the other.
func sseFunc(v int) {
	name := fmt.Sprintf("tiles128x%d", v)
	what := fmt.Sprintf("%d vectors of columns", v)
	if v == 0 {
		what = "one column"
	}
	declare(name)
	Doc(fmt.Sprintf("C = bias + R + A·B on t.tiles blocks of t.rows <= %d rows by %s.", sseRows, what))
	Load(Param("t"), args)
	MOVQ(field(offC), pc)
	MOVQ(field(offLdc), ldc)
	MOVQ(field(offArs), ars)
	MOVQ(field(offAks), aks)
	MOVQ(field(offBks), bks)
	MOVQ(field(offTiles), tiles)
	MOVQ(field(offRows), tmp)
	for rows := sseRows; rows > 1; rows-- {
		CMPQ(tmp, U8(rows))
		JEQ(LabelRef(fmt.Sprintf("rows%d", rows)))
	}
	for rows := 1; rows <= sseRows; rows++ {
		Label(fmt.Sprintf("rows%d", rows))
		sse{rows, v}.loop()
		RET()
	}
}

// loop writes the loop over tiles for one count of rows.
func (t sse) loop() {
	label := func(s string) string { return fmt.Sprintf("%s%d", s, t.rows) }
	Label(label("tile"))
	t.start(label)
	MOVQ(field(offA), pa[0])
	for p := 1; p*3 < t.rows; p++ {
		LEAQ(Mem{Base: pa[p-1], Index: ars, Scale: 2}, pa[p])
		ADDQ(ars, pa[p])
	}
	MOVQ(field(offB), pb)
	const unroll = 2
	MOVQ(field(offK), count)
	SUBQ(U8(unroll), count)
	JLT(LabelRef(label("rest")))
	Label(label("unrolled"))
	for range unroll {
		t.step()
	}
	SUBQ(U8(unroll), count)
	JGE(LabelRef(label("unrolled")))
	Label(label("rest"))
	ADDQ(U8(unroll), count)
	JEQ(LabelRef(label("store")))
	t.step()
	Label(label("store"))
	for i := range t.rows {
		for j := range t.columns() {
			pick(t.v == 0, MOVSS, MOVUPS)(t.acc(i, j), Mem{Base: pc, Disp: 16 * j})
		}
		ADDQ(ldc, pc)
	}
	// The next tile's A starts rows further down.
	MOVQ(field(offA), pa[0])
	IMUL3Q(U8(t.rows), ars, tmp)
	ADDQ(tmp, pa[0])
	MOVQ(pa[0], field(offA))
	DECQ(tiles)
	JNE(LabelRef(label("tile")))
}

// start fills the accumulators with bias + R, either of which may be absent, and moves R down a
// tile.
func (t sse) start(label func(string) string) {
	MOVQ(field(offBias), tmp)
	TESTQ(tmp, tmp)
	JEQ(LabelRef(label("nobias")))
	for j := range t.columns() {
		t.load(Mem{Base: tmp, Disp: 16 * j}, t.acc(0, j))
	}
	for i := 1; i < t.rows; i++ {
		for j := range t.columns() {
			MOVAPS(t.acc(0, j), t.acc(i, j))
		}
	}
	JMP(LabelRef(label("biased")))
	Label(label("nobias"))
	for i := range t.rows {
		for j := range t.columns() {
			XORPS(t.acc(i, j), t.acc(i, j))
		}
	}
	Label(label("biased"))
	MOVQ(field(offR), tmp)
	TESTQ(tmp, tmp)
	JEQ(LabelRef(label("started")))
	for i := range t.rows {
		for j := range t.columns() {
			t.load(Mem{Base: tmp, Disp: 16 * j}, t.b(j))
			ADDPS(t.b(j), t.acc(i, j))
		}
		ADDQ(field(offLdr), tmp)
	}
	MOVQ(tmp, field(offR))
	Label(label("started"))
}

// step adds the products of one l and moves on to the next. An instruction overwrites one of its
// operands, so the broadcast is copied for all columns but the last.
func (t sse) step() {
	for j := range t.columns() {
		t.load(Mem{Base: pb, Disp: 16 * j}, t.b(j))
	}
	ADDQ(bks, pb)
	for i := range t.rows {
		MOVSS(row(i), X14)
		if t.v > 0 {
			SHUFPS(U8(0), X14, X14)
		}
		for j := range t.columns() {
			x := VecPhysical(X14)
			if j < t.columns()-1 {
				x = X15
				MOVAPS(X14, X15)
			}
			MULPS(t.b(j), x)
			ADDPS(x, t.acc(i, j))
		}
	}
	for p := 0; p*3 < t.rows; p++ {
		ADDQ(aks, pa[p])
	}
}

// ssePeak writes the loop that sets the peak: products and sums that wait on nothing but
// themselves, as many of the one as of the other.
func ssePeak() {
	TEXT("peak128", NOSPLIT, "func(rounds int)")
	Doc(fmt.Sprintf("Runs rounds × %d products and as many sums of 4 lanes that wait on nothing but themselves.", ssePeaks))
	for _, r := range sseRegs {
		XORPS(r, r)
	}
	Load(Param("rounds"), count)
	Label("loop")
	for i := range ssePeaks {
		MULPS(X14, sseRegs[i])
		ADDPS(X15, sseRegs[ssePeaks+i])
	}
	DECQ(count)
	JNE(LabelRef("loop"))
	RET()
}

const ssePeaks = 6
