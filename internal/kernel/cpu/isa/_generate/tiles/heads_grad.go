package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// headGradFunc writes attention's gradient of a head, by panels of queries and keys: however long a
// sequence is, what a panel leaves stays in cache. A block of queries leaves p and dS of the
// panel's keys as A, which the keys' own gradients are summed from when all blocks are done. Sums
// that another panel goes on with are laid aside as they are, so that panels of any size give the
// same bits.
func headGradFunc() {
	declareHead("attendHeadGrad")
	Doc("A panel of the gradient of attendHead: dQ, dK and dV from dY, with the scores made again.")
	headStart()
	MOVQ(field(headBegin), block)
	Label("block")
	headReach()
	MOVQ(from, field(headReached))
	MOVQ(field(headPanel), RAX)
	CMPQ(from, RAX)
	CMOVQLT(RAX, from)
	MOVQ(field(headPanelEnd), RAX)
	DECQ(RAX)
	CMPQ(block, RAX)
	CMOVQLT(block, RAX)
	MOVQ(RAX, field(headLast))
	CMPQ(from, RAX)
	JGT(LabelRef("next"))
	headVectors()
	blockColumns(headQ, halfB)
	headScores("scores", headK, headS, halfB)
	blockColumns(headDY, halfB+1)
	headScores("slopes", headV, headDP, halfB+1)
	headLanes()
	headSeen()
	VBROADCASTSS(field(headKeep), zKeep)
	VBROADCASTSS(field(headKeep+4), zKeepS)
	MOVQ(block, RAX)
	SHLQ(U8(6), RAX)
	MOVQ(field(headLogSum), RBX)
	VMOVUPS_Z(Mem{Base: RBX, Index: RAX, Scale: 1}, lanesThere, zTop)
	VMULPS_BCST(number32("log2e", math.Log2E), zTop, zTop)
	MOVQ(field(headDots), RBX)
	VMOVUPS_Z(Mem{Base: RBX, Index: RAX, Scale: 1}, lanesThere, zDots)
	VMULPS_BCST(field(headScale), zDots, zDots)
	VPXORD_BCST(word("minus", 1<<31), zDots, zDots)

	MOVQ(from, key)
	MOVQ(from, RDX)
	SHLQ(U8(10), RDX)
	MOVQ(RDX, R14)
	ADDQ(field(headS), RDX)
	ADDQ(field(headDP), R14)
	MOVQ(from, R13)
	SHLQ(U8(9), R13)
	ADDQ(field(headP), R13)
	MOVQ(block, R15) // the tile of A of this block's first keys
	IMULQ(field(headRow), R15)
	MOVQ(from, RAX)
	SHLQ(U8(9), RAX)
	ADDQ(RAX, R15)
	Label("exp")
	headCases("kept", true, headSlopes)
	ADDQ(U32(1024), RDX)
	ADDQ(U32(1024), R14)
	ADDQ(U32(halfBytes), R13)
	ADDQ(U32(halfBytes), R15)
	INCQ(key)
	CMPQ(key, field(headLast))
	JLE(LabelRef("exp"))

	// dQ: of the block's first panel it begins with zero, after its last one it is whole.
	MOVQ(block, R13)
	SHLQ(U8(10), R13)
	ADDQ(field(headSumQ), R13)
	tileZero(0)
	CMPQ(from, field(headReached))
	JEQ(LabelRef("fresh"))
	tileLoad(0, R13, line64, 0)
	Label("fresh")
	headSum("sum")
	CMPQ(block, field(headLast))
	JEQ(LabelRef("whole"))
	tileStore(0, R13, line64, 0)
	JMP(LabelRef("next"))
	Label("whole")
	headTurn("turned")
	Label("next")
	INCQ(block)
	CMPQ(block, field(headEnd))
	JLT(LabelRef("block"))
	headKeys()
	tileRelease()
	VZEROUPPER()
	RET()
}

// headSlopes makes p and dS = p·(kept dP - dots)·scale of a block of keys.
func headSlopes(seen, dropped bool) {
	MOVQ(field(headPA), RAX)
	ADDQ(R15, RAX)
	MOVQ(field(headSA), RBX)
	ADDQ(R15, RBX)
	for r := 0; r < 16; r += 2 {
		for u := range 2 {
			z, g, slope := vectors[u], vectors[6+u], Mem{Base: R14, Disp: 64 * (r + u)}
			VMOVUPS(Mem{Base: RDX, Disp: 64 * (r + u)}, z)
			headExp(r+u, seen, z, vectors[2+u], vectors[4+u], K1)
			VMOVAPS(zDots, g)
			if !dropped {
				VFMADD231PS(slope, zKeepS, g)
				VMULPS(z, g, g)
				continue
			}
			VPTESTMD_BCST(bit(r+u), zKept, K2)
			VFMADD231PS(slope, zKeepS, K2, g)
			VMULPS(z, g, g)
			VMULPS_Z(zKeep, z, K2, z)
		}
		cvt(8, 1, 0)
		VMOVDQU32(vectors[8], Mem{Base: RAX, Disp: 32 * r})
		cvt(9, 7, 6)
		VMOVDQU32(vectors[9], Mem{Base: RBX, Disp: 32 * r})
		VPERMW(vectors[9], zMix, vectors[9])
		VMOVDQU32(vectors[9], Mem{Base: R13, Disp: 32 * r})
	}
}

// headKeys sums the gradients of keys and values, block by block of the panel's keys, over the
// blocks of its queries that reach them. The first that do are those of the keys themselves.
func headKeys() {
	MOVQ(field(headBegin), block)
	headReach()
	MOVQ(from, key)
	MOVQ(field(headPanel), RAX)
	CMPQ(key, RAX)
	CMOVQLT(RAX, key)
	Label("keys")
	MOVQ(field(headBegin), block)
	CMPQ(key, block)
	CMOVQGT(key, block)
	MOVQ(field(headRow), RDX)
	MOVQ(block, RAX) // tile (block, key) of A
	IMULQ(RDX, RAX)
	MOVQ(key, R15)
	SHLQ(U8(9), R15)
	ADDQ(R15, RAX)
	MOVQ(field(headPA), RBX)
	ADDQ(RAX, RBX)
	MOVQ(field(headSA), RCX)
	ADDQ(RAX, RCX)
	MOVQ(block, R13)
	SHLQ(U8(9), R13)
	MOVQ(R13, R14)
	ADDQ(field(headQPairs), R13)
	ADDQ(field(headDPairs), R14)
	tileZero(0)
	tileZero(1)
	CMPQ(key, field(headBegin))
	JGE(LabelRef("queries"))
	keySums(tileLoad)
	Label("queries")
	tileLoad(halfA, RCX, line32, 0)
	tileLoad(halfB, R13, line64, 0)
	tileDot(0, halfA, halfB)
	tileLoad(halfA+1, RBX, line32, 0)
	tileLoad(halfB+1, R14, line64, 0)
	tileDot(1, halfA+1, halfB+1)
	ADDQ(RDX, RBX)
	ADDQ(RDX, RCX)
	ADDQ(U32(halfBytes), R13)
	ADDQ(U32(halfBytes), R14)
	INCQ(block)
	CMPQ(block, field(headBlocks))
	JGE(LabelRef("summed"))
	headReach()
	CMPQ(from, key)
	JGT(LabelRef("summed"))
	CMPQ(block, field(headEnd))
	JLT(LabelRef("queries"))
	keySums(tileStore) // queries of the next panels reach the keys too
	JMP(LabelRef("nextKeys"))
	Label("summed")
	MOVQ(key, RAX)
	SHLQ(U8(4), RAX)
	MOVQ(field(headLd), RDX)
	IMULQ(RAX, RDX)
	MOVQ(field(headT), R13)
	SUBQ(RAX, R13) // rows left
	MOVQ(field(headLd), R14)
	for i, off := range []int{headDK, headDV} {
		label := "whole" + string(rune('0'+i))
		MOVQ(field(off), RBX)
		ADDQ(RDX, RBX)
		CMPQ(R13, U8(16))
		JGE(LabelRef(label))
		MOVQ(field(headOut), RCX)
		tileStore(i, RCX, line64, 0)
		MOVQ(R13, RAX)
		Label(label + "row")
		VMOVUPS(Mem{Base: RCX}, vectors[0])
		VMOVUPS(vectors[0], Mem{Base: RBX})
		ADDQ(line64, RCX)
		ADDQ(R14, RBX)
		DECQ(RAX)
		JNE(LabelRef(label + "row"))
		JMP(LabelRef(label + "done"))
		Label(label)
		tileStore(i, RBX, R14, 0)
		Label(label + "done")
	}
	Label("nextKeys")
	INCQ(key)
	CMPQ(key, field(headPanelEnd))
	JLT(LabelRef("keys"))
}

// keySums loads or stores the sums of dK and dV of a block of keys that are not whole.
func keySums(move func(t int, base, index GPPhysical, disp int)) {
	MOVQ(key, RAX)
	SHLQ(U8(11), RAX)
	ADDQ(field(headSumK), RAX)
	move(0, RAX, line64, 0)
	ADDQ(U32(1024), RAX)
	move(1, RAX, line64, 0)
}
