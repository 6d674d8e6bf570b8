package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// tileFunc writes a function that computes t.tiles tiles, one below the other, of t.rows rows by v
// vectors of columns; the rows pick one of the loops, each unrolled for its count.
func (s set) tileFunc(v int, masked bool) {
	declare(s.fn("tiles", v, masked))
	Doc(fmt.Sprintf("C = bias + R + A·B on t.tiles blocks of t.rows <= %d rows by %d vectors of columns.", s.most[v], v))
	Load(Param("t"), args)
	if masked {
		s.mask()
	}
	MOVQ(field(offC), pc)
	MOVQ(field(offLdc), ldc)
	MOVQ(field(offArs), ars)
	MOVQ(field(offAks), aks)
	MOVQ(field(offBks), bks)
	MOVQ(field(offTiles), tiles)
	MOVQ(field(offRows), tmp)
	for rows := s.most[v]; rows > 1; rows-- {
		CMPQ(tmp, U8(rows))
		JEQ(LabelRef(fmt.Sprintf("rows%d", rows)))
	}
	for rows := 1; rows <= s.most[v]; rows++ {
		Label(fmt.Sprintf("rows%d", rows))
		block{s, rows, v, masked}.loop()
		VZEROUPPER()
		RET()
	}
}

// loop writes the loop over tiles for one count of rows.
func (t block) loop() {
	label := func(s string) string { return fmt.Sprintf("%s%d", s, t.rows) }
	Label(label("tile"))
	t.start(label)
	MOVQ(field(offA), pa[0])
	for p := 1; p*3 < t.rows; p++ {
		LEAQ(Mem{Base: pa[p-1], Index: ars, Scale: 2}, pa[p])
		ADDQ(ars, pa[p])
	}
	MOVQ(field(offB), pb)

	unroll := 4
	if t.masked {
		unroll = 2
	}
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
	Label(label("single"))
	t.step()
	DECQ(count)
	JNE(LabelRef(label("single")))

	Label(label("store"))
	for i := range t.rows {
		for j := range t.v {
			t.storeCols(t.acc(i, j), j, Mem{Base: pc})
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
func (t block) start(label func(string) string) {
	MOVQ(field(offBias), tmp)
	TESTQ(tmp, tmp)
	JEQ(LabelRef(label("nobias")))
	for j := range t.v {
		t.loadCols(Mem{Base: tmp}, j, t.acc(0, j))
	}
	for i := 1; i < t.rows; i++ {
		for j := range t.v {
			VMOVAPS(t.acc(0, j), t.acc(i, j))
		}
	}
	JMP(LabelRef(label("biased")))
	Label(label("nobias"))
	for i := range t.rows {
		for j := range t.v {
			t.zero(t.acc(i, j))
		}
	}
	Label(label("biased"))
	MOVQ(field(offR), tmp)
	TESTQ(tmp, tmp)
	JEQ(LabelRef(label("started")))
	for i := range t.rows {
		for j := range t.v {
			t.loadCols(Mem{Base: tmp}, j, t.b(j))
			VADDPS(t.b(j), t.acc(i, j), t.acc(i, j))
		}
		ADDQ(field(offLdr), tmp)
	}
	MOVQ(tmp, field(offR))
	Label(label("started"))
}

// step adds the products of one l and moves on to the next.
func (t block) step() {
	for j := range t.v {
		t.loadCols(Mem{Base: pb}, j, t.b(j))
	}
	ADDQ(bks, pb)
	for i := range t.rows {
		x := t.broadcast(i)
		VBROADCASTSS(row(i), x)
		for j := range t.v {
			VFMADD231PS(t.b(j), x, t.acc(i, j))
		}
	}
	for p := 0; p*3 < t.rows; p++ {
		ADDQ(aks, pa[p])
	}
}
