package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Causal attention of one head 16 wide, by tiles of half depth: 16 lines of 16 bf16 of A, 8 lines
// of pairs of B. Scores are made turned, a line for each key and a lane for each of a block of
// sixteen queries: largest, sum and what follows are one lane's own, with no step across lanes, and
// what the next product reads is a conversion of two lines away.
//
// What a reader could break: keys and queries past the sequence's end are zero in their tiles, and
// masks are gathered for lanes that exist.

// Byte offsets into the Go type headArgs; heads_amd64.go holds the two to each other at compile
// time.
const (
	headConfig = 8 * iota
	headK      // keys as rows of A, the head's first column of the first block
	headV      // likewise
	headQ      // queries as columns of B, turned
	headDY     // likewise
	headStep   // bytes between blocks of the four
	headTurned // forward: values turned as A; backward: keys turned as A
	headQPairs // queries as rows of B
	headDPairs // dY likewise
	headFirst
	headT      // tokens
	headBlocks // of sixteen tokens
	headMask   // the head's groups of dropout bits; 0: nothing is dropped
	headLogSum
	headDots
	headY     // forward: the head's columns of Y; backward: of dQ
	headLd    // bytes between rows of those
	headDK    // the head's columns of dK, and dV
	headDV    // likewise
	headS     // scratch: scores
	headDP    // their gradient
	headP     // pairs of keys as B: forward of p, backward of dS
	headPA    // keys as A: of p
	headSA    // of dS
	headOut   // two results before they are turned
	headScale // two floats: what a score is multiplied by, and that times log2 e
	headKeep  // two floats: what a kept element is multiplied by, and that times the scale
	headBegin // the blocks of queries of a call, the end excluded
	headEnd
	headPanel // and its blocks of keys, which begin with a whole group
	headPanelEnd
	headRow  // bytes between blocks of queries of headPA and headSA
	headSumQ // scratch: a tile of dQ for each block of queries, and two of dK and dV for each of keys
	headSumK
	headReached // written by the call: the block's first block of keys, and the panel's last for it
	headLast
	headPlain // and the first block of keys that all of the block's queries look at
	headBytes
)

// The tiles: accumulators, two of A, two of B.
const (
	halfA = 4
	halfB = 6
)

const halfBytes = 512

// Registers that hold for a whole block.
var (
	line64 = R12 // 64: bytes between lines
	line32 = R11
	block  = RSI // the block's number
	from   = R9  // its first block of keys
	key    = R8  // the current block of keys
	bits   = R10 // of the table, at the key block's half of a group
)

var (
	zScale  = Z31 // scale · log2 e
	zShift  = Z30
	zFloor  = Z29
	zC3     = Z28
	zC2     = Z27
	zC1     = Z26
	zC0     = Z25
	zAllow  = Z24 // a bit for each key of the group that the lane's query looks at
	zKept   = Z23 // and for each that dropout keeps
	zFirst  = Z22 // of the lane's query
	zEnd    = Z21 // one past it
	zStride = Z20 // of its mask
	zTop    = Z19 // what is taken off: the largest score, or the log-sum, times log2 e
	zMix    = Z18 // the order that makes pairs
	zSum    = []VecPhysical{Z17, Z16}
	zKeep   = Z15 // backward: keep
	zKeepS  = Z14 // keep · scale
	zDots   = Z13 // -dots · scale
)

var lanesThere = K7

// exp2 is within 7.5e-5 of 2^f for |f| <= 1/2: a fiftieth of what rounding to bf16 may do.
var exp2 = []float32{0.055171669, 0.24261112, 0.69326099, 0.99992807}

const (
	// adding it rounds to an integer whose bits, biased for an exponent, are the low ones of the sum
	exp2Shift = 12582912 + 127
	exp2Floor = -126
)

var headConstants = map[string]Mem{}

// word is a constant of 32 bits.
func word(name string, v uint32) Mem {
	m, ok := headConstants[name]
	if !ok {
		m = GLOBL("heads_"+name, RODATA|NOPTR)
		DATA(0, U32(v))
		headConstants[name] = m
	}
	return m
}

func number32(name string, v float32) Mem { return word(name, math.Float32bits(v)) }

// words is a table of constants.
func words(name string, n int, of func(i int) uint32) Mem {
	m, ok := headConstants[name]
	if !ok {
		m = GLOBL("heads_"+name, RODATA|NOPTR)
		for i := range n {
			DATA(4*i, U32(of(i)))
		}
		headConstants[name] = m
	}
	return m
}

func count16() Mem { return words("count", 16, func(i int) uint32 { return uint32(i) }) }

// headStart configures the tiles and begins with the first block.
func headStart() {
	MOVQ(field(headConfig), RAX)
	tileConfigure(RAX)
	MOVQ(U32(64), line64)
	MOVQ(U32(32), line32)
}

// headVectors loads the vectors that turning spends.
func headVectors() {
	VBROADCASTSS(field(headScale+4), zScale)
	VBROADCASTSS(number32("shift", exp2Shift), zShift)
	VBROADCASTSS(number32("floor", exp2Floor), zFloor)
	for i, z := range []VecPhysical{zC3, zC2, zC1, zC0} {
		VBROADCASTSS(number32(fmt.Sprint("exp", 3-i), exp2[i]), z)
	}
	VMOVDQU32(words("mix", 16, func(i int) uint32 { return uint32(i) | uint32(i+16)<<16 }), zMix)
	VPTERNLOGD(U8(0xff), zKept, zKept, zKept)
}

// headLanes prepares a block's lanes: which exist, what their queries look at, and how far apart
// their masks lie.
func headLanes() {
	MOVQ(block, RAX)
	SHLQ(U8(4), RAX) // the first query
	MOVQ(field(headT), RCX)
	SUBQ(RAX, RCX)
	MOVL(U32(0xffff), EDX)
	CMPQ(RCX, U8(16))
	JGE(LabelRef("full"))
	MOVL(U32(1), EDX)
	SHLL(CL, EDX)
	DECL(EDX)
	Label("full")
	KMOVW(EDX, lanesThere)
	MOVQ(field(headFirst), RBX)
	VMOVDQU32_Z(Mem{Base: RBX, Index: RAX, Scale: 4}, lanesThere, zFirst)
	INCQ(RAX)
	VPBROADCASTD(EAX, zEnd)
	VPADDD(count16(), zEnd, zEnd)
	MOVQ(block, RAX)
	SHRQ(U8(1), RAX)
	INCQ(RAX) // groups of a row
	VPBROADCASTD(EAX, zStride)
	VPMULLD(count16(), zStride, zStride)
}

// headReach finds the block's first block of keys.
func headReach() {
	MOVQ(field(headFirst), RAX)
	MOVQ(block, R15)
	SHLQ(U8(6), R15)
	MOVLQSX(Mem{Base: RAX, Index: R15, Scale: 1}, from)
	SARQ(U8(4), from)
}

// headSeen finds the first block of keys that all of the block's queries look at, up to the block's
// own, of which they see a part.
func headSeen() {
	MOVQ(block, RAX)
	SHLQ(U8(4), RAX)
	ADDQ(U8(15), RAX)
	MOVQ(field(headT), RBX)
	DECQ(RBX)
	CMPQ(RAX, RBX)
	CMOVQGT(RBX, RAX)
	MOVQ(field(headFirst), RBX)
	MOVLQSX(Mem{Base: RBX, Index: RAX, Scale: 4}, RAX) // of the last query: none begins later
	ADDQ(U8(15), RAX)
	SARQ(U8(4), RAX)
	MOVQ(RAX, field(headPlain))
}

// headCases runs through a block of keys: all of whose pairs count, all but what dropout takes, or
// only some. It has the bits of the keys' group in zAllow where they are needed and, where kept is
// set, those of dropout in zKept.
func headCases(name string, kept bool, body func(seen, dropped bool)) {
	LEAQ(words("bits", 32, func(i int) uint32 { return 1 << i }), bits)
	MOVQ(key, RAX)
	ANDQ(U8(1), RAX)
	SHLQ(U8(6), RAX)
	ADDQ(RAX, bits)
	if kept {
		headKept(name)
	}
	CMPQ(key, field(headPlain))
	JLT(LabelRef(name + "part"))
	CMPQ(key, block)
	JGE(LabelRef(name + "part"))
	if kept {
		CMPQ(field(headMask), U8(0))
		JNE(LabelRef(name + "dropped"))
	}
	body(true, false)
	JMP(LabelRef(name + "through"))
	if kept {
		Label(name + "dropped")
		body(true, true)
		JMP(LabelRef(name + "through"))
	}
	Label(name + "part")
	headAllow()
	body(false, true)
	Label(name + "through")
}

// headAllow makes the bits of the keys' group of 32 that each query looks at.
func headAllow() {
	MOVQ(key, RAX)
	ANDQ(I8(-2), RAX)
	SHLQ(U8(4), RAX)
	VPBROADCASTD(EAX, Z0) // the group's first key
	VPXORD(Z3, Z3, Z3)
	VPTERNLOGD(U8(0xff), Z4, Z4, Z4)
	VPSUBD(Z0, zFirst, Z1)
	VPSUBD(Z0, zEnd, Z2)
	VPMAXSD(Z3, Z1, Z1)
	VPMAXSD(Z3, Z2, Z2)
	VPSLLVD(Z1, Z4, Z1) // from the first on; none past 31
	VPSLLVD(Z2, Z4, Z2)
	VPANDND(Z1, Z2, zAllow)
}

// headKept gathers the bits of the keys' group that dropout keeps, at its first block of keys.
func headKept(name string) {
	MOVQ(field(headMask), RBX)
	TESTQ(RBX, RBX)
	JEQ(LabelRef(name + "known"))
	TESTQ(U32(1), key)
	JEQ(LabelRef(name + "even"))
	CMPQ(key, from)
	JNE(LabelRef(name + "known"))
	Label(name + "even")
	MOVQ(block, RAX) // 16·(band+1)·(band + block%2) groups lie before the block's
	SHRQ(U8(1), RAX)
	MOVQ(block, RCX)
	ANDQ(U8(1), RCX)
	ADDQ(RAX, RCX)
	INCQ(RAX)
	IMULQ(RAX, RCX)
	SHLQ(U8(4), RCX)
	MOVQ(key, RAX)
	SHRQ(U8(1), RAX)
	ADDQ(RAX, RCX)
	LEAQ(Mem{Base: RBX, Index: RCX, Scale: 4}, RBX)
	KMOVW(lanesThere, K1)
	VPXORD(zKept, zKept, zKept)
	VPGATHERDD(Mem{Base: RBX, Index: zStride, Scale: 4}, K1, zKept)
	Label(name + "known")
}

// bit is the operand of key r's bit in the group.
func bit(r int) Mem { return Mem{Base: bits, Disp: 4 * r} }

// headExp: z = 2^(z·scale - top) where the query looks at key r, which all do where seen is set,
// else zero. It uses w and f.
func headExp(r int, seen bool, z, w, f VecPhysical, k OpmaskPhysical) {
	VFMSUB213PS(zTop, zScale, z)
	VMAXPS(z, zFloor, z) // a maximum returns its first operand when one is not a number
	VADDPS(zShift, z, w)
	VSUBPS(zShift, w, f)
	VSUBPS(f, z, f)
	VPSLLD(U8(23), w, w)
	VMOVAPS(zC3, z)
	VFMADD213PS(zC2, f, z)
	VFMADD213PS(zC1, f, z)
	VFMADD213PS(zC0, f, z)
	if seen {
		VMULPS(w, z, z)
		return
	}
	VPTESTMD_BCST(bit(r), zAllow, k)
	VMULPS_Z(w, z, k, z)
}

// headScores multiplies the key blocks' rows of A at a, with columns in tile b, into the lines at
// to.
func headScores(name string, a, to, b int) {
	MOVQ(field(headStep), RDX)
	MOVQ(from, RCX)
	IMULQ(RDX, RCX)
	ADDQ(field(a), RCX)
	MOVQ(from, RBX)
	SHLQ(U8(10), RBX)
	ADDQ(field(to), RBX)
	MOVQ(field(headLast), RAX)
	SUBQ(from, RAX)
	INCQ(RAX)
	Label(name)
	for i := range 4 {
		tileLoad(halfA+i%2, RCX, line64, 0)
		tileZero(i)
		tileDot(i, halfA+i%2, b)
		tileStore(i, RBX, line64, 0)
		if i == 3 {
			break
		}
		ADDQ(RDX, RCX)
		ADDQ(U32(1024), RBX)
		DECQ(RAX)
		JEQ(LabelRef(name + "done"))
	}
	ADDQ(RDX, RCX)
	ADDQ(U32(1024), RBX)
	DECQ(RAX)
	JNE(LabelRef(name))
	Label(name + "done")
}

// blockColumns loads tile b with the block's columns of B.
func blockColumns(off, b int) {
	MOVQ(field(headStep), RCX)
	IMULQ(block, RCX)
	ADDQ(field(off), RCX)
	tileLoad(b, RCX, line64, 0)
}

// headSum multiplies what is turned as A with the pairs of keys: 16 columns of the head × the
// block's queries, added to tile 0.
func headSum(name string) {
	MOVQ(from, RCX)
	SHLQ(U8(9), RCX)
	ADDQ(field(headP), RCX)
	MOVQ(from, key)
	Label(name)
	MOVQ(key, RAX) // half a tile: 32 bytes of each line
	SHRQ(U8(1), RAX)
	SHLQ(U8(10), RAX)
	MOVQ(key, RBX)
	ANDQ(U8(1), RBX)
	SHLQ(U8(5), RBX)
	ADDQ(RBX, RAX)
	ADDQ(field(headTurned), RAX)
	tileLoad(halfA, RAX, line64, 0)
	tileLoad(halfB, RCX, line64, 0)
	tileDot(0, halfA, halfB)
	ADDQ(U32(halfBytes), RCX)
	INCQ(key)
	CMPQ(key, field(headLast))
	JLE(LabelRef(name))
}

// headTurn writes the block's rows of the result in tile 0, by way of headOut, each lane times
// scale where there is one. It spends all vectors.
func headTurn(name string, scale ...VecPhysical) {
	MOVQ(field(headOut), RBX)
	tileStore(0, RBX, line64, 0)
	for i := range 16 {
		VMOVUPS(Mem{Base: RBX, Disp: 64 * i}, vectors[i])
		for _, z := range scale {
			VMULPS(z, vectors[i], vectors[i])
		}
	}
	turn()
	MOVQ(block, RAX)
	SHLQ(U8(4), RAX)
	MOVQ(field(headT), RCX)
	SUBQ(RAX, RCX) // rows
	MOVQ(field(headLd), RDX)
	IMULQ(RDX, RAX)
	ADDQ(field(headY), RAX)
	for i := range 16 {
		VMOVUPS(vectors[i], Mem{Base: RAX})
		ADDQ(RDX, RAX)
		if i < 15 {
			DECQ(RCX)
			JEQ(LabelRef(name))
		}
	}
	Label(name)
}

// headLog: out = ln x of every lane, x normal: x = 2^k·f with f in [√½, √2), s = (f-1)/(f+1), |s| <
// 0.172, and ln f = 2s(1 + s²/3 + s⁴/5 + s⁶/7 + s⁸/9). It uses vectors 0 to 4.
func headLog(x, out VecPhysical) {
	k, f, s, t := Z0, Z1, Z2, Z3
	VPSUBD_BCST(word("rootHalf", 0x3f3504f3), x, k)
	VPANDD_BCST(word("fraction", 0x007fffff), k, f)
	VPADDD_BCST(word("rootHalf", 0x3f3504f3), f, f)
	VPSRAD(U8(23), k, k)
	VCVTDQ2PS(k, k)
	VSUBPS_BCST(number32("one", 1), f, s)
	VADDPS_BCST(number32("one", 1), f, t)
	VDIVPS(t, s, s)
	VMULPS(s, s, t)
	VBROADCASTSS(number32("ninth", 1.0/9), out)
	for i, name := range []string{"seventh", "fifth", "third", "one"} {
		VFMADD213PS_BCST(number32(name, 1/float32(7-2*i)), t, out)
	}
	VADDPS(s, s, s)
	VMULPS(s, out, out)
	VFMADD231PS_BCST(number32("ln2", math.Ln2), k, out)
	VSUBPS(x, x, t) // zero, or not a number where x is not finite
	VADDPS(t, out, out)
}

// declareHead opens a function of one argument, a head seen as words.
func declareHead(name string) {
	TEXT(name, NOSPLIT, fmt.Sprintf("func(t *[%d]uintptr)", headBytes/8))
	Pragma("noescape")
	Load(Param("t"), args)
}
