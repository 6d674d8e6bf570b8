package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// panelBytes is a row of a panel of B.
const panelBytes = 256

// copyFunc writes the copy of a panel of B to rows that follow each other.
func (s set) copyFunc() {
	TEXT("copy"+s.name, NOSPLIT, "func(dst, src *float32, stride, rows int)")
	Pragma("noescape")
	Doc(fmt.Sprintf("Copies rows > 0 rows of %d bytes, stride bytes apart, to rows that follow each other.", panelBytes))
	Load(Param("dst"), pc)
	Load(Param("src"), pb)
	Load(Param("stride"), bks)
	Load(Param("rows"), count)
	Label("row")
	n := panelBytes / s.bytes
	for j := range n {
		s.load(Mem{Base: pb, Disp: j * s.bytes}, s.regs[j])
	}
	for j := range n {
		s.store(s.regs[j], Mem{Base: pc, Disp: j * s.bytes})
	}
	ADDQ(bks, pb)
	ADDQ(U32(panelBytes), pc)
	DECQ(count)
	JNE(LabelRef("row"))
	VZEROUPPER()
	RET()
}
