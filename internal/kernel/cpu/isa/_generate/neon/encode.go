package main

import "fmt"

// What a reader could break: Go's assembler knows few of NEON's floating-point instructions, so
// vector instructions are written as words. Each line carries its meaning in the notation of Arm's
// manual; neon_encoding_test.go assembles that text where binutils for arm64 is installed and
// compares. General registers and branches are Go's own instructions.

// V is a vector register, R a general one.
type (
	V uint32
	R uint32
)

func (r R) String() string { return fmt.Sprintf("R%d", uint32(r)) }

// word emits one instruction by its bits.
func (f *fn) word(bits uint32, format string, args ...any) {
	f.line("WORD $0x%08x // %s", bits, fmt.Sprintf(format, args...))
}

// three emits d = op(n, m) over four floats or words.
func (f *fn) three(bits uint32, name string, d, n, m V) {
	f.word(bits|uint32(m)<<16|uint32(n)<<5|uint32(d), "%s v%d.4s, v%d.4s, v%d.4s", name, d, n, m)
}

// two emits d = op(n) over four floats or words.
func (f *fn) two(bits uint32, name string, d, n V) {
	f.word(bits|uint32(n)<<5|uint32(d), "%s v%d.4s, v%d.4s", name, d, n)
}

// bitwise emits d = op(n, m) over sixteen bytes.
func (f *fn) bitwise(bits uint32, name string, d, n, m V) {
	f.word(bits|uint32(m)<<16|uint32(n)<<5|uint32(d), "%s v%d.16b, v%d.16b, v%d.16b", name, d, n, m)
}

func (f *fn) fadd(d, n, m V)  { f.three(0x4e20d400, "fadd", d, n, m) }
func (f *fn) fsub(d, n, m V)  { f.three(0x4ea0d400, "fsub", d, n, m) }
func (f *fn) fmul(d, n, m V)  { f.three(0x6e20dc00, "fmul", d, n, m) }
func (f *fn) fdiv(d, n, m V)  { f.three(0x6e20fc00, "fdiv", d, n, m) }
func (f *fn) fmax(d, n, m V)  { f.three(0x4e20f400, "fmax", d, n, m) }
func (f *fn) fmin(d, n, m V)  { f.three(0x4ea0f400, "fmin", d, n, m) }
func (f *fn) fmla(d, n, m V)  { f.three(0x4e20cc00, "fmla", d, n, m) } // d += n·m
func (f *fn) fmls(d, n, m V)  { f.three(0x4ea0cc00, "fmls", d, n, m) } // d -= n·m
func (f *fn) faddp(d, n, m V) { f.three(0x6e20d400, "faddp", d, n, m) }
func (f *fn) fmaxp(d, n, m V) { f.three(0x6e20f400, "fmaxp", d, n, m) }
func (f *fn) fcmgt(d, n, m V) { f.three(0x6ea0e400, "fcmgt", d, n, m) } // all ones where n > m
func (f *fn) add(d, n, m V)   { f.three(0x4ea08400, "add", d, n, m) }
func (f *fn) sub(d, n, m V)   { f.three(0x6ea08400, "sub", d, n, m) }
func (f *fn) cmeq(d, n, m V)  { f.three(0x6ea08c00, "cmeq", d, n, m) }
func (f *fn) cmgt(d, n, m V)  { f.three(0x4ea03400, "cmgt", d, n, m) } // signed
func (f *fn) cmge(d, n, m V)  { f.three(0x4ea03c00, "cmge", d, n, m) }
func (f *fn) cmhs(d, n, m V)  { f.three(0x6ea03c00, "cmhs", d, n, m) } // unsigned n >= m
func (f *fn) cmtst(d, n, m V) { f.three(0x4ea08c00, "cmtst", d, n, m) }
func (f *fn) uzp1(d, n, m V)  { f.three(0x4e801800, "uzp1", d, n, m) }
func (f *fn) uzp2(d, n, m V)  { f.three(0x4e805800, "uzp2", d, n, m) }
func (f *fn) trn1(d, n, m V)  { f.three(0x4e802800, "trn1", d, n, m) }
func (f *fn) trn2(d, n, m V)  { f.three(0x4e806800, "trn2", d, n, m) }

func (f *fn) zip1(d, n, m V) { f.three(0x4e803800, "zip1", d, n, m) }
func (f *fn) zip2(d, n, m V) { f.three(0x4e807800, "zip2", d, n, m) }

// halves emits d = op(n, m) over eight numbers of 16 bits.
func (f *fn) halves(bits uint32, name string, d, n, m V) {
	f.word(bits|uint32(m)<<16|uint32(n)<<5|uint32(d), "%s v%d.8h, v%d.8h, v%d.8h", name, d, n, m)
}
func (f *fn) zip1Halves(d, n, m V) { f.halves(0x4e403800, "zip1", d, n, m) }
func (f *fn) zip2Halves(d, n, m V) { f.halves(0x4e407800, "zip2", d, n, m) }

// bfmmla emits d += n·mᵀ: n is two rows of four bf16, m two columns, d two by two floats. The
// processor must have FEAT_BF16, as for the rounding to bf16 below it.
func (f *fn) bfmmla(d, n, m V) {
	f.word(0x6e40ec00|uint32(m)<<16|uint32(n)<<5|uint32(d), "bfmmla v%d.4s, v%d.8h, v%d.8h", d, n, m)
}
func (f *fn) bfcvtn(d, n V) {
	f.word(0x0ea16800|uint32(n)<<5|uint32(d), "bfcvtn v%d.4h, v%d.4s", d, n)
}
func (f *fn) bfcvtn2(d, n V) {
	f.word(0x4ea16800|uint32(n)<<5|uint32(d), "bfcvtn2 v%d.8h, v%d.4s", d, n)
}

func (f *fn) fsqrt(d, n V) { f.two(0x6ea1f800, "fsqrt", d, n) }
func (f *fn) fneg(d, n V)  { f.two(0x6ea0f800, "fneg", d, n) }
func (f *fn) fabs(d, n V)  { f.two(0x4ea0f800, "fabs", d, n) }
func (f *fn) scvtf(d, n V) { f.two(0x4e21d800, "scvtf", d, n) }

func (f *fn) and(d, n, m V) { f.bitwise(0x4e201c00, "and", d, n, m) }
func (f *fn) orr(d, n, m V) { f.bitwise(0x4ea01c00, "orr", d, n, m) }
func (f *fn) eor(d, n, m V) { f.bitwise(0x6e201c00, "eor", d, n, m) }
func (f *fn) bic(d, n, m V) { f.bitwise(0x4e601c00, "bic", d, n, m) } // n and not m
func (f *fn) bsl(d, n, m V) { f.bitwise(0x6e601c00, "bsl", d, n, m) } // d's bits pick n, else m

func (f *fn) move(d, n V) {
	f.word(0x4ea01c00|uint32(n)<<16|uint32(n)<<5|uint32(d), "mov v%d.16b, v%d.16b", d, n)
}
func (f *fn) clear(d V) { f.eor(d, d, d) }

func (f *fn) shl(d, n V, by uint32) {
	f.word(0x4f005400|(32+by)<<16|uint32(n)<<5|uint32(d), "shl v%d.4s, v%d.4s, #%d", d, n, by)
}
func (f *fn) ushr(d, n V, by uint32) {
	f.word(0x6f000400|(64-by)<<16|uint32(n)<<5|uint32(d), "ushr v%d.4s, v%d.4s, #%d", d, n, by)
}
func (f *fn) sshr(d, n V, by uint32) {
	f.word(0x4f000400|(64-by)<<16|uint32(n)<<5|uint32(d), "sshr v%d.4s, v%d.4s, #%d", d, n, by)
}

// element emits d += n·m[i].
func (f *fn) element(d, n, m V, i uint32) {
	f.word(0x4f801000|(i&1)<<21|uint32(m)<<16|(i>>1)<<11|uint32(n)<<5|uint32(d), "fmla v%d.4s, v%d.4s, v%d.s[%d]", d, n, m, i)
}

// splatLane fills d with lane i of n; splatWord with the low word of r.
func (f *fn) splatLane(d, n V, i uint32) {
	f.word(0x4e000400|(i<<3|4)<<16|uint32(n)<<5|uint32(d), "dup v%d.4s, v%d.s[%d]", d, n, i)
}
func (f *fn) splatWord(d V, r R) {
	f.word(0x4e040c00|uint32(r)<<5|uint32(d), "dup v%d.4s, w%d", d, r)
}

// Instructions over two doubles, or over the two halves of a register.
func (f *fn) fcvtl(d, n V) { f.word(0x0e617800|uint32(n)<<5|uint32(d), "fcvtl v%d.2d, v%d.2s", d, n) }
func (f *fn) fcvtl2(d, n V) {
	f.word(0x4e617800|uint32(n)<<5|uint32(d), "fcvtl2 v%d.2d, v%d.4s", d, n)
}
func (f *fn) fmlaWide(d, n, m V) {
	f.word(0x4e60cc00|uint32(m)<<16|uint32(n)<<5|uint32(d), "fmla v%d.2d, v%d.2d, v%d.2d", d, n, m)
}
func (f *fn) faddWide(d, n, m V) {
	f.word(0x4e60d400|uint32(m)<<16|uint32(n)<<5|uint32(d), "fadd v%d.2d, v%d.2d, v%d.2d", d, n, m)
}
func (f *fn) faddpScalarWide(d, n V) {
	f.word(0x7e70d800|uint32(n)<<5|uint32(d), "faddp d%d, v%d.2d", d, n)
}
func (f *fn) umull(d, n, m V) {
	f.word(0x2ea0c000|uint32(m)<<16|uint32(n)<<5|uint32(d), "umull v%d.2d, v%d.2s, v%d.2s", d, n, m)
}
func (f *fn) umull2(d, n, m V) {
	f.word(0x6ea0c000|uint32(m)<<16|uint32(n)<<5|uint32(d), "umull2 v%d.2d, v%d.4s, v%d.4s", d, n, m)
}
func (f *fn) trn1Wide(d, n, m V) {
	f.word(0x4ec02800|uint32(m)<<16|uint32(n)<<5|uint32(d), "trn1 v%d.2d, v%d.2d, v%d.2d", d, n, m)
}
func (f *fn) trn2Wide(d, n, m V) {
	f.word(0x4ec06800|uint32(m)<<16|uint32(n)<<5|uint32(d), "trn2 v%d.2d, v%d.2d, v%d.2d", d, n, m)
}

// Memory. at is a byte offset and a multiple of 16.
func (f *fn) ldr(d V, base R, at uint32) {
	f.word(0x3dc00000|at/16<<10|uint32(base)<<5|uint32(d), "ldr q%d, [x%d, #%d]", d, base, at)
}
func (f *fn) str(d V, base R, at uint32) {
	f.word(0x3d800000|at/16<<10|uint32(base)<<5|uint32(d), "str q%d, [x%d, #%d]", d, base, at)
}
func (f *fn) ldrAt(d V, base, index R) {
	f.word(0x3ce06800|uint32(index)<<16|uint32(base)<<5|uint32(d), "ldr q%d, [x%d, x%d]", d, base, index)
}
func (f *fn) strAt(d V, base, index R) {
	f.word(0x3ca06800|uint32(index)<<16|uint32(base)<<5|uint32(d), "str q%d, [x%d, x%d]", d, base, index)
}

// ldp reads two registers from neighbouring sixteen bytes.
func (f *fn) ldp(d, e V, base R, at uint32) {
	f.word(0xad400000|at/16<<15|uint32(e)<<10|uint32(base)<<5|uint32(d), "ldp q%d, q%d, [x%d, #%d]", d, e, base, at)
}

// splatFrom fills d with the float at base and moves base on by a register.
func (f *fn) splatFrom(d V, base, by R) {
	f.word(0x4dc0c800|uint32(by)<<16|uint32(base)<<5|uint32(d), "ld1r {v%d.4s}, [x%d], x%d", d, base, by)
}

// splatMem fills d with the float at base.
func (f *fn) splatMem(d V, base R) {
	f.word(0x4d40c800|uint32(base)<<5|uint32(d), "ld1r {v%d.4s}, [x%d]", d, base)
}

// One float at base, which moves on by four bytes: the first lane alone, the others zero; lane i.
func (f *fn) ldrFirst(d V, base R) {
	f.word(0xbc404400|uint32(base)<<5|uint32(d), "ldr s%d, [x%d], #4", d, base)
}
func (f *fn) ldrLane(d V, i uint32, base R) {
	f.word(0x0ddf8000|(i>>1)<<30|(i&1)<<12|uint32(base)<<5|uint32(d), "ld1 {v%d.s}[%d], [x%d], #4", d, i, base)
}
func (f *fn) strLane(d V, i uint32, base R) {
	f.word(0x0d9f8000|(i>>1)<<30|(i&1)<<12|uint32(base)<<5|uint32(d), "st1 {v%d.s}[%d], [x%d], #4", d, i, base)
}
