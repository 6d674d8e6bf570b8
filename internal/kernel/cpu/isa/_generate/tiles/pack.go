package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// interleave is the order that makes pairs of two rows of sixteen.
var interleave Mem

// packFunc writes the packing of tiles that lie side by side in a matrix of floats. Word p of line
// i of a tile is
//
//	rows:  the elements 2p and 2p+1 of row i        pairs: element p of the rows 2i and 2i+1
//
// and turned exchanges lines and words. Rows that are not there, and columns that the mask leaves
// out, are zero.
func packFunc(pairs, turned bool) {
	name, rowsOf := "packRows", "rows"
	if pairs {
		name, rowsOf = "packPairs", "pairs of rows"
	}
	if turned {
		name += "Turned"
	}
	if pairs && interleave.Base == nil {
		interleave = GLOBL("interleave", RODATA|NOPTR)
		for i := range 16 {
			DATA(4*i, U32(uint32(i)|uint32(i+16)<<16))
		}
	}
	TEXT(name, NOSPLIT, "func(dst *uint16, src *float32, stride, rows, tiles, step int, mask uint64)")
	Pragma("noescape")
	how := ""
	if turned {
		how = ", turned"
	}
	Doc(fmt.Sprintf("Packs tiles > 0 tiles of %s%s, side by side in src, to tiles step bytes apart; stride counts bytes.", rowsOf, how))
	dst, src, stride, rows, left, step, at := RDI, RSI, RDX, RCX, R8, R9, R10
	Load(Param("dst"), dst)
	Load(Param("src"), src)
	Load(Param("stride"), stride)
	Load(Param("rows"), rows)
	Load(Param("tiles"), left)
	Load(Param("step"), step)
	Load(Param("mask"), at)
	KMOVW(R10L, K1)
	SHRQ(U8(16), at)
	KMOVW(R10L, K2)

	Label("tile")
	MOVQ(src, at)
	if pairs {
		VMOVDQU32(interleave, Z30)
	}
	for i := range 16 {
		to := vectors[i]
		if pairs {
			CMPQ(rows, U8(2*i))
			JLE(LabelRef(fmt.Sprintf("none%d", i)))
			VMOVUPS_Z(Mem{Base: at}, K1, Z28)
			VPXORD(Z29, Z29, Z29)
			CMPQ(rows, U8(2*i+1))
			JLE(LabelRef(fmt.Sprintf("half%d", i)))
			VMOVUPS_Z(Mem{Base: at, Index: stride, Scale: 1}, K1, Z29)
			Label(fmt.Sprintf("half%d", i))
			cvt(byte(i), 29, 28)
			VPERMW(to, Z30, to)
			LEAQ(Mem{Base: at, Index: stride, Scale: 2}, at)
		} else {
			CMPQ(rows, U8(i))
			JLE(LabelRef(fmt.Sprintf("none%d", i)))
			VMOVUPS_Z(Mem{Base: at}, K1, Z28)
			VMOVUPS_Z(Mem{Base: at, Disp: 64}, K2, Z29)
			cvt(byte(i), 29, 28)
			ADDQ(stride, at)
		}
	}
	JMP(LabelRef("loaded"))
	for i := range 16 {
		Label(fmt.Sprintf("none%d", i))
		VPXORD(vectors[i], vectors[i], vectors[i])
	}
	Label("loaded")
	if turned {
		turn()
	}
	for i := range 16 {
		VMOVDQU32(vectors[i], Mem{Base: dst, Disp: 64 * i})
	}
	if pairs {
		ADDQ(U32(64), src)
	} else {
		ADDQ(U32(128), src)
	}
	ADDQ(step, dst)
	DECQ(left)
	JNE(LabelRef("tile"))
	VZEROUPPER()
	RET()
}

// turn transposes the 16×16 words of registers 0..15, through the other sixteen.
func turn() {
	r := func(i int) VecPhysical { return vectors[i] }
	t := func(i int) VecPhysical { return vectors[16+i] }
	for i := 0; i < 16; i += 2 {
		VPUNPCKLDQ(r(i+1), r(i), t(i))
		VPUNPCKHDQ(r(i+1), r(i), t(i+1))
	}
	for i := 0; i < 16; i += 4 {
		for k := range 2 {
			VPUNPCKLQDQ(t(i+k+2), t(i+k), r(i+2*k))
			VPUNPCKHQDQ(t(i+k+2), t(i+k), r(i+2*k+1))
		}
	}
	for k := range 4 {
		VSHUFI32X4(U8(0x88), r(4+k), r(k), t(k))
		VSHUFI32X4(U8(0x88), r(12+k), r(8+k), t(4+k))
		VSHUFI32X4(U8(0xdd), r(4+k), r(k), t(8+k))
		VSHUFI32X4(U8(0xdd), r(12+k), r(8+k), t(12+k))
	}
	for k := range 4 {
		VSHUFI32X4(U8(0x88), t(4+k), t(k), r(k))
		VSHUFI32X4(U8(0xdd), t(4+k), t(k), r(8+k))
		VSHUFI32X4(U8(0x88), t(12+k), t(8+k), r(4+k))
		VSHUFI32X4(U8(0xdd), t(12+k), t(8+k), r(12+k))
	}
}
