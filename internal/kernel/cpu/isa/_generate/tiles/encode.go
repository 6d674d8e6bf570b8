package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// code emits the bytes of one instruction, with what a disassembler makes of them beside them: a
// test of the package compares the two.
func code(says string, bytes ...byte) {
	Comment(says)
	for _, b := range bytes {
		Instruction(&ir.Instruction{Opcode: "BYTE", Operands: []Op{U8(b)}})
	}
}

var general = []GPPhysical{RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11, R12, R13, R14, R15}

var generalNames = []string{"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"}

// number is a general register's place in encodings.
func number(r GPPhysical) byte {
	for i, n := range general {
		if r == n {
			return byte(i)
		}
	}
	panic("no general register")
}

// The mandatory prefixes of VEX and EVEX.
const (
	prefixNone = 0
	prefixF3   = 2
	prefixF2   = 3
)

// vex emits an instruction of map 0F38 with three bytes of prefix: vvvv is the third operand, base
// and index (0 where there is none) are registers of memory.
func vex(says string, prefix, vvvv, index, base, opcode byte, rest ...byte) {
	code(says, append([]byte{0xc4, 0x80 | (^index>>3&1)<<6 | (^base>>3&1)<<5 | 2, (^vvvv&15)<<3 | prefix, opcode}, rest...)...)
}

// tileAt is the ModRM, SIB and displacement of tile t at base + index, displaced by a byte.
func tileAt(t int, base, index GPPhysical, disp int) []byte {
	if disp < 0 || disp > 127 {
		panic("displacement past a byte")
	}
	return []byte{0x44 | byte(t)<<3, number(index)&7<<3 | number(base)&7, byte(disp)}
}

// tileText is the same for people.
func tileText(base, index GPPhysical, disp int) string {
	return fmt.Sprintf("[%s+%s*1+%#x]", generalNames[number(base)], generalNames[number(index)], disp)
}

func tileLoad(t int, base, index GPPhysical, disp int) {
	says := fmt.Sprintf("tileloadd tmm%d,%s", t, tileText(base, index, disp))
	vex(says, prefixF2, 0, number(index), number(base), 0x4b, tileAt(t, base, index, disp)...)
}

func tileStore(t int, base, index GPPhysical, disp int) {
	says := fmt.Sprintf("tilestored %s,tmm%d", tileText(base, index, disp), t)
	vex(says, prefixF3, 0, number(index), number(base), 0x4b, tileAt(t, base, index, disp)...)
}

func tileZero(t int) { vex(fmt.Sprintf("tilezero tmm%d", t), prefixF2, 0, 0, 0, 0x49, 0xc0|byte(t)<<3) }

// tileDot: c += a·b.
func tileDot(c, a, b int) {
	vex(fmt.Sprintf("tdpbf16ps tmm%d,tmm%d,tmm%d", c, a, b), prefixF3, byte(b), 0, 0, 0x5c, 0xc0|byte(c)<<3|byte(a))
}

// tileConfigure loads the configuration that base points to.
func tileConfigure(base GPPhysical) {
	if number(base)&7 == 4 || number(base)&7 == 5 {
		panic("base needs more bytes")
	}
	vex(fmt.Sprintf("ldtilecfg [%s]", generalNames[number(base)]), prefixNone, 0, 0, number(base), 0x49, number(base)&7)
}

func tileRelease() { vex("tilerelease", prefixNone, 0, 0, 0, 0x49, 0xc0) }

// evex emits a 512-bit instruction of map 0F38 on registers.
func evex(says string, prefix, opcode byte, dst, src1, src2 byte) {
	code(says, 0x62, (^dst>>3&1)<<7|(^src2>>4&1)<<6|(^src2>>3&1)<<5|(^dst>>4&1)<<4|2,
		(^src1&15)<<3|4|prefix, 0x40|(^src1>>4&1)<<3, opcode, 0xc0|dst&7<<3|src2&7)
}

// cvt: dst = sixteen bf16 of low, then sixteen of high, rounded to nearest even.
func cvt(dst, high, low byte) {
	evex(fmt.Sprintf("vcvtne2ps2bf16 zmm%d,zmm%d,zmm%d", dst, high, low), prefixF2, 0x72, dst, high, low)
}

// dotBroadcast: acc += the pairs of b times the pair at base + disp, disp a multiple of four.
func dotBroadcast(acc, b byte, base GPPhysical, disp int) {
	if disp%4 != 0 || disp/4 > 127 || number(base)&7 == 4 {
		panic("no such displacement or base")
	}
	says := fmt.Sprintf("vdpbf16ps zmm%d,zmm%d,DWORD BCST [%s+%#x]", acc, b, generalNames[number(base)], disp)
	code(says, 0x62, (^acc>>3&1)<<7|1<<6|(^number(base)>>3&1)<<5|(^acc>>4&1)<<4|2, (^b&15)<<3|4|prefixF3, 0x50|(^b>>4&1)<<3, 0x52,
		0x40|acc&7<<3|number(base)&7, byte(disp/4))
}
