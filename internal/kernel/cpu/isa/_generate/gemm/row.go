package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// chains is how many partial sums the one-row loops keep, to cover the latency of an FMA.
const chains = 4

// rowFunc writes the product of one row of A: element j is the sum of four chains, each over
// l mod 4, the first starting from bias + R. The last vector is always masked.
func (s set) rowFunc(v int) {
	declare(s.fn("row", v, false))
	Doc(fmt.Sprintf("C = bias + R + A·B for one row by %d vectors of columns, in %d chains over k.", v, chains))
	t := block{s, chains, v, true} // chain c takes the registers of row c
	Load(Param("t"), args)
	s.mask()
	t.rows = 1
	t.start(func(s string) string { return s })
	t.rows = chains
	for c := 1; c < chains; c++ {
		for j := range v {
			t.zero(t.acc(c, j))
		}
	}
	MOVQ(field(offA), pa[0])
	MOVQ(field(offAks), aks)
	MOVQ(field(offB), pb)
	MOVQ(field(offBks), bks)
	MOVQ(field(offK), count)
	SUBQ(U8(chains), count)
	JLT(LabelRef("rest"))
	Label("unrolled")
	for c := range chains {
		t.chainStep(c)
	}
	SUBQ(U8(chains), count)
	JGE(LabelRef("unrolled"))
	Label("rest")
	ADDQ(U8(chains), count)
	for c := range chains - 1 {
		JEQ(LabelRef("join"))
		t.chainStep(c)
		DECQ(count)
	}
	Label("join")
	MOVQ(field(offC), pc)
	for j := range v {
		VADDPS(t.acc(1, j), t.acc(0, j), t.acc(0, j))
		VADDPS(t.acc(3, j), t.acc(2, j), t.acc(2, j))
		VADDPS(t.acc(2, j), t.acc(0, j), t.acc(0, j))
		t.storeCols(t.acc(0, j), j, Mem{Base: pc})
	}
	VZEROUPPER()
	RET()
}

func (t block) chainStep(c int) {
	x := t.broadcast(c)
	VBROADCASTSS(Mem{Base: pa[0]}, x)
	ADDQ(aks, pa[0])
	for j := range t.v {
		t.loadCols(Mem{Base: pb}, j, t.b(j))
		VFMADD231PS(t.b(j), x, t.acc(c, j))
	}
	ADDQ(bks, pb)
}

// peakFunc writes the loop that sets the peak: independent FMAs, enough to hide their latency.
func (s set) peakFunc() {
	TEXT("peak"+s.name, NOSPLIT, "func(rounds int)")
	Doc(fmt.Sprintf("Runs rounds × %d FMAs of %d lanes that wait on nothing but themselves.", peakFMAs, s.bytes/4))
	for r := range peakFMAs {
		s.zero(s.regs[r])
	}
	x := s.regs[peakFMAs]
	s.zero(x)
	Load(Param("rounds"), count)
	Label("loop")
	for r := range peakFMAs {
		VFMADD231PS(x, x, s.regs[r])
	}
	DECQ(count)
	JNE(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

const peakFMAs = 12
