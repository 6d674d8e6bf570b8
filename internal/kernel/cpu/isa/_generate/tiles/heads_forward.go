package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// headFunc writes attention's forward of a head.
func headFunc() {
	declareHead("attendHead")
	Doc("Attention of one head 16 wide: Y = drop(softmax(scale·Q·Kᵀ))·V, and the logarithm of each row's sum.")
	headStart()
	XORQ(block, block)
	Label("block")
	headVectors()
	headReach()
	MOVQ(block, field(headLast))
	blockColumns(headQ, halfB)
	headScores("scores", headK, headS, halfB)
	headLanes()
	headSeen()

	// The largest score of each query.
	for i := range 4 {
		VBROADCASTSS(number32("least", float32(-3.4e38)), vectors[8+i])
	}
	MOVQ(from, key)
	MOVQ(from, RDX)
	SHLQ(U8(10), RDX)
	ADDQ(field(headS), RDX)
	Label("largest")
	headCases("seen", false, func(seen, _ bool) {
		for r := range 16 {
			score, most := Mem{Base: RDX, Disp: 64 * r}, vectors[8+r%4]
			if seen {
				VMAXPS(score, most, most)
				continue
			}
			VPTESTMD_BCST(bit(r), zAllow, K1)
			VMAXPS(score, most, K1, most)
		}
	})
	ADDQ(U32(1024), RDX)
	INCQ(key)
	CMPQ(key, block)
	JLE(LabelRef("largest"))
	VMAXPS(vectors[9], vectors[8], vectors[8])
	VMAXPS(vectors[11], vectors[10], vectors[10])
	VMAXPS(vectors[10], vectors[8], vectors[8])
	VMULPS(zScale, vectors[8], zTop)

	// The exponentials, their sum, and those that are kept as pairs of keys.
	for _, z := range zSum {
		VPXORD(z, z, z)
	}
	MOVQ(from, key)
	MOVQ(from, RDX)
	SHLQ(U8(10), RDX)
	ADDQ(field(headS), RDX)
	MOVQ(from, R13)
	SHLQ(U8(9), R13)
	ADDQ(field(headP), R13)
	Label("exp")
	headCases("kept", true, func(seen, dropped bool) {
		for r := 0; r < 16; r += 2 {
			for u := range 2 {
				z := vectors[u]
				VMOVUPS(Mem{Base: RDX, Disp: 64 * (r + u)}, z)
				headExp(r+u, seen, z, vectors[2+u], vectors[4+u], K1)
				VADDPS(z, zSum[u], zSum[u])
				if dropped {
					VPTESTMD_BCST(bit(r+u), zKept, K2)
					VMOVAPS_Z(z, K2, z)
				}
			}
			cvt(6, 1, 0)
			VPERMW(vectors[6], zMix, vectors[6])
			VMOVDQU32(vectors[6], Mem{Base: R13, Disp: 32 * r})
		}
	})
	ADDQ(U32(1024), RDX)
	ADDQ(U32(halfBytes), R13)
	INCQ(key)
	CMPQ(key, block)
	JLE(LabelRef("exp"))
	tileZero(0)
	headSum("sum")

	// log Σ = top·ln 2 + ln(sum), by way of sum = 2^k·f with f in [√½, √2).
	sum := zSum[0]
	VADDPS(zSum[1], sum, sum)
	headLog(sum, vectors[7])
	VFMADD231PS_BCST(number32("ln2", math.Ln2), zTop, vectors[7])
	MOVQ(block, RAX)
	SHLQ(U8(6), RAX)
	ADDQ(field(headLogSum), RAX)
	VMOVUPS(vectors[7], lanesThere, Mem{Base: RAX})

	VBROADCASTSS(field(headKeep), vectors[0])
	VDIVPS(sum, vectors[0], sum)
	headTurn("turned", sum)
	INCQ(block)
	CMPQ(block, field(headBlocks))
	JLT(LabelRef("block"))
	tileRelease()
	VZEROUPPER()
	RET()
}
