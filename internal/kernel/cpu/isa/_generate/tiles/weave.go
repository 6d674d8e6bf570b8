package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Byte offsets into the Go types weaveArgs and weaveStep, and what their fields say; tiles_amd64.go
// holds the two to each other.
const (
	offSteps    = 8
	offCount    = 16
	offSums     = 24
	offRing     = 32
	offX        = 40
	offFromDY   = 48
	offFromX    = 56
	offSumsLd   = 64
	offDYStride = 72
	offXStride  = 80
	offTiles    = 88
	offMasks    = 96
	offAdd      = 104

	stepA      = 0
	stepB      = 4
	stepC      = 8
	stepFetch  = 12
	stepAhead  = 16
	stepSrc    = 20
	stepDst    = 24
	stepDoes   = 28
	stepPacked = 30
	stepBytes  = 32

	doesStart    = 1
	doesMultiply = 2 // in every step that does anything
	doesFetch    = 4
	doesStore    = 8
	packedEven   = 1
	packedOdd    = 2
	packedPairs  = 3
	packedHalf   = 4
	packedShort  = 8

	fetchRows = 8
)

// The registers of the woven product beside those of the grid loops.
var (
	step     = RSI
	left     = RCX
	ring     = R13 // bytes of a row of tiles
	dyStride = R14
	xStride  = R15
	masks    = RDX // while packing; what the step does, before
)

// weaveFunc writes the woven product: the steps of tiles_weave.go, one after another.
func weaveFunc() {
	TEXT("weaveTiles", NOSPLIT, "func(t *[14]uintptr)")
	Pragma("noescape")
	Doc("C = start + DYᵀ·X by t.n > 0 steps, each a product of tiles and the packing of a tile.")
	Load(Param("t"), args)
	MOVQ(field(offConfig), tmp)
	tileConfigure(tmp)
	MOVL(U32(0xaaaaaaaa), EAX)
	KMOVD(EAX, K2)
	MOVQ(field(offSteps), step)
	MOVQ(field(offCount), left)
	MOVQ(field(offSumsLd), ldc)
	MOVQ(field(offTiles), ring)
	MOVQ(field(offDYStride), dyStride)
	MOVQ(field(offXStride), xStride)
	MOVQ(U32(64), unit)

	Label("step")
	MOVWLZX(Mem{Base: step, Disp: stepDoes}, EDX)
	TESTL(EDX, EDX)
	JEQ(LabelRef("pack"))
	unless("started", doesStart)
	CMPQ(field(offAdd), U8(0))
	JEQ(LabelRef("zero"))
	address(a0, stepC, offSums)
	tiles(2, 2, a0, ldc, tileLoad)
	JMP(LabelRef("started"))
	Label("zero")
	for t := range 4 {
		tileZero(t)
	}
	Label("started")
	address(a0, stepA, offRing)
	LEAQ(Mem{Base: a0, Index: ring, Scale: 1}, a1)
	address(b0, stepB, offX)
	LEAQ(Mem{Base: b0, Index: ring, Scale: 1}, b1)
	multiply(2, 2, func() {
		unless("fetched", doesFetch)
		address(tmp, stepFetch, offSums)
		CMPQ(field(offAdd), U8(0))
		JEQ(LabelRef("fetch"))
		address(tmp, stepAhead, offSums) // the block's own were just loaded
		Label("fetch")
		fetchSums(fetchRows, 2, PREFETCHT1)
		Label("fetched")
	})
	unless("pack", doesStore)
	address(a0, stepC, offSums)
	tiles(2, 2, a0, ldc, tileStore)

	Label("pack")
	MOVWLZX(Mem{Base: step, Disp: stepPacked}, EAX)
	TESTL(EAX, EAX)
	JEQ(LabelRef("next"))
	packs := []struct {
		kind int
		is   rowsThere
	}{{0, whole}, {packedHalf, firstHalf}, {packedShort, byMask}}
	name := func(kind int) string { return fmt.Sprintf("pack%d", kind) }
	for _, p := range packs {
		for kind := packedEven; kind <= packedPairs; kind++ {
			CMPL(EAX, U8(p.kind+kind))
			JEQ(LabelRef(name(p.kind + kind)))
		}
	}
	JMP(LabelRef("next"))
	for _, p := range packs {
		for kind := packedEven; kind <= packedPairs; kind++ {
			Label(name(p.kind + kind))
			switch kind {
			case packedEven:
				halfTile(0, p.is)
			case packedOdd:
				halfTile(1, p.is)
				joinHalves()
			case packedPairs:
				pairsTiles(p.is)
			}
			JMP(LabelRef("next"))
		}
	}

	Label("next")
	ADDQ(U8(stepBytes), step)
	DECQ(left)
	JNE(LabelRef("step"))
	tileRelease()
	VZEROUPPER()
	RET()
}

// unless jumps to the label where the step does not do it.
func unless(label string, bit uint8) {
	TESTB(U8(bit), DL)
	JEQ(LabelRef(label))
}

// address makes p the address of the step's offset into what the arguments point to.
func address(p GPPhysical, offset, base int) {
	MOVLQSX(Mem{Base: step, Disp: offset}, p)
	ADDQ(field(base), p)
}

// rowsThere says which of a tile's 32 rows are there: all, the first sixteen, or those of the
// masks.
type rowsThere int

const (
	whole rowsThere = iota
	firstHalf
	byMask
)

// begin loads what row needs.
func (r rowsThere) begin() {
	if r == byMask {
		MOVQ(field(offMasks), masks)
	}
}

// join makes `to` bf16 of row n at low and of row m at high, zeros where one is not there; spare
// and the register after it are free.
func (r rowsThere) join(to byte, low, high Mem, n, m int, spare byte) {
	for i, row := range []Mem{low, high} {
		v := vectors[int(spare)+i]
		if r != byMask {
			VMOVUPS(row, v)
			continue
		}
		KMOVW(Mem{Base: masks, Disp: 2 * [2]int{n, m}[i]}, K1)
		VMOVUPS_Z(row, K1, v)
	}
	cvt(to, spare+1, spare)
}

// halfTile turns the even rows, or the odd, of 32 × 16 floats to eight registers from 16 or 24 on:
// register c has, word by word, the columns 2c and 2c+1 of every second row. Rows come in by the
// bits of their number: bit 3 by the conversion, which joins two rows, 4 by lanes, 1 by halves of
// lanes and 2 by words, so that the words are in their order in the end.
func halfTile(odd int, is rowsThere) {
	is.begin()
	address(a0, stepSrc, offFromDY)
	if odd != 0 {
		ADDQ(dyStride, a0)
	}
	parts := []GPPhysical{a0, a1}
	if is == firstHalf {
		parts = parts[:1]
	} else {
		MOVQ(dyStride, a1)
		SHLQ(U8(4), a1)
		ADDQ(a0, a1)
	}
	v := func(i int) VecPhysical { return vectors[i] }
	for x := range 4 {
		for high, p := range parts {
			n := 16*high + 2*x + odd
			is.join(byte(4*high+x), Mem{Base: p}, Mem{Base: p, Index: dyStride, Scale: 8}, n, n+8, byte(8+4*high))
			if x < 3 {
				LEAQ(Mem{Base: p, Index: dyStride, Scale: 2}, p)
			}
		}
	}
	if is == firstHalf {
		for x := range 4 {
			VPXORD(v(4+x), v(4+x), v(4+x))
		}
	}
	for x := range 4 {
		VSHUFI32X4(U8(0x88), v(4+x), v(x), v(8+x))
		VSHUFI32X4(U8(0xdd), v(4+x), v(x), v(12+x))
	}
	for c := range 2 {
		for r := range 2 {
			first, second := v(8+4*c+2*r), v(9+4*c+2*r)
			VPUNPCKLQDQ(second, first, v(4*c+r))
			VPUNPCKHQDQ(second, first, v(4*c+2+r))
		}
	}
	to := 16 + 8*odd
	for c := 0; c < 8; c += 2 {
		VSHUFPS(U8(0x88), v(c+1), v(c), v(to+c))
		VSHUFPS(U8(0xdd), v(c+1), v(c), v(to+c+1))
	}
}

// joinHalves pairs the rows of both halves and stores the tile.
func joinHalves() {
	address(a0, stepDst, offRing)
	for c := range 8 {
		even, odd, low, high := vectors[16+c], vectors[24+c], vectors[2*c], vectors[2*c+1]
		VPSLLD(U8(16), odd, low)
		VPBLENDMW(low, even, K2, low)
		VPSRLD(U8(16), even, high)
		VPBLENDMW(odd, high, K2, high)
		VMOVDQU32(low, Mem{Base: a0, Disp: 128 * c})
		VMOVDQU32(high, Mem{Base: a0, Disp: 128*c + 64})
	}
}

// pairsTiles packs two tiles of X side by side and leaves the registers of a half alone.
func pairsTiles(is rowsThere) {
	is.begin()
	address(a0, stepSrc, offFromX)
	address(b0, stepDst, offX)
	LEAQ(Mem{Base: b0, Index: ring, Scale: 1}, b1)
	VMOVDQU32(interleave, Z15)
	lines := 16
	if is == firstHalf {
		lines = 8
		VPXORD(Z14, Z14, Z14)
		for _, tile := range []GPPhysical{b0, b1} {
			for i := lines; i < 16; i++ {
				VMOVDQU32(Z14, Mem{Base: tile, Disp: 64 * i})
			}
		}
	}
	for i := range lines {
		for half, tile := range []GPPhysical{b0, b1} {
			pair := (2*i + half) % 4 * 3
			is.join(byte(pair), Mem{Base: a0, Disp: 64 * half}, Mem{Base: a0, Index: xStride, Scale: 1, Disp: 64 * half}, 2*i, 2*i+1, byte(pair+1))
			VPERMW(vectors[pair], Z15, vectors[pair])
			VMOVDQU32(vectors[pair], Mem{Base: tile, Disp: 64 * i})
		}
		if i < lines-1 {
			LEAQ(Mem{Base: a0, Index: xStride, Scale: 2}, a0)
		}
	}
}
