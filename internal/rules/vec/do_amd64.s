#include "textflag.h"

// Operations on blocks of 64 words by AVX-512F: four vectors of 16 words. Each is the loop of the
// same name in do.go. No operation depends on alignment, and none is fused.

#define BINARY(OP, at) \
	VMOVDQU32 at(SI), Z0; \
	OP at(DX), Z0, Z0;    \
	VMOVDQU32 Z0, at(DI)

#define OPERANDS \
	MOVQ d+0(FP), DI;  \
	MOVQ a+8(FP), SI;  \
	MOVQ b+16(FP), DX

#define BINARY4(OP) \
	OPERANDS;        \
	BINARY(OP, 0);   \
	BINARY(OP, 64);  \
	BINARY(OP, 128); \
	BINARY(OP, 192); \
	VZEROUPPER;      \
	RET

// VMINPS returns its second operand if one is NaN or both are zeros. The bits of both orders joined
// by or are NaN if either is, and -0 if either zero is.
#define FMIN(at) \
	VMOVDQU32 at(SI), Z0; \
	VMOVDQU32 at(DX), Z1; \
	VMINPS Z1, Z0, Z2;    \
	VMINPS Z0, Z1, Z3;    \
	VPORD Z2, Z3, Z0;     \
	VMOVDQU32 Z0, at(DI)

// The greatest is the least of the negated, negated. Z4 has the signs.
#define FMAX(at) \
	VPXORD at(SI), Z4, Z0; \
	VPXORD at(DX), Z4, Z1; \
	VMINPS Z1, Z0, Z2;     \
	VMINPS Z0, Z1, Z3;     \
	VPORD Z2, Z3, Z0;      \
	VPXORD Z0, Z4, Z0;     \
	VMOVDQU32 Z0, at(DI)

#define CONSTANT(OP, at) \
	OP at(SI), Z4, Z0;     \
	VMOVDQU32 Z0, at(DI)

#define CONSTANT4(OP, word) \
	OPERANDS;            \
	MOVL word, AX;       \
	VPBROADCASTD AX, Z4; \
	CONSTANT(OP, 0);     \
	CONSTANT(OP, 64);    \
	CONSTANT(OP, 128);   \
	CONSTANT(OP, 192);   \
	VZEROUPPER;          \
	RET

#define UNARY(OP, at) \
	OP at(SI), Z0;       \
	VMOVDQU32 Z0, at(DI)

#define UNARY4(OP) \
	OPERANDS;       \
	UNARY(OP, 0);   \
	UNARY(OP, 64);  \
	UNARY(OP, 128); \
	UNARY(OP, 192); \
	VZEROUPPER;     \
	RET

// COMPARE joins 16 bits to AX, from the highest words down.
#define COMPARE(OP, how, at) \
	VMOVDQU32 at(SI), Z0;     \
	OP how, at(DX), Z0, K1;   \
	KMOVW K1, CX;             \
	SHLQ $16, AX;             \
	ORQ CX, AX

#define COMPARE4(OP, how) \
	MOVQ a+0(FP), SI;      \
	MOVQ b+8(FP), DX;      \
	XORL AX, AX;           \
	COMPARE(OP, how, 192); \
	COMPARE(OP, how, 128); \
	COMPARE(OP, how, 64);  \
	COMPARE(OP, how, 0);   \
	MOVQ AX, ret+16(FP);   \
	VZEROUPPER;            \
	RET

#define CHOOSE(at) \
	KMOVW CX, K1;                  \
	SHRQ $16, CX;                  \
	VMOVDQU32 at(DX), Z0;          \
	VPBLENDMD at(SI), Z0, K1, Z0;  \
	VMOVDQU32 Z0, at(DI)

// func addAVX512(d, a, b *Block)
TEXT ·addAVX512(SB), NOSPLIT, $0-24
	BINARY4(VPADDD)

// func subAVX512(d, a, b *Block)
TEXT ·subAVX512(SB), NOSPLIT, $0-24
	BINARY4(VPSUBD)

// func mulAVX512(d, a, b *Block)
TEXT ·mulAVX512(SB), NOSPLIT, $0-24
	BINARY4(VPMULLD)

// func andAVX512(d, a, b *Block)
TEXT ·andAVX512(SB), NOSPLIT, $0-24
	BINARY4(VPANDD)

// func orAVX512(d, a, b *Block)
TEXT ·orAVX512(SB), NOSPLIT, $0-24
	BINARY4(VPORD)

// func xorAVX512(d, a, b *Block)
TEXT ·xorAVX512(SB), NOSPLIT, $0-24
	BINARY4(VPXORD)

// func shlAVX512(d, a, b *Block)
TEXT ·shlAVX512(SB), NOSPLIT, $0-24
	BINARY4(VPSLLVD)

// func shrAVX512(d, a, b *Block)
TEXT ·shrAVX512(SB), NOSPLIT, $0-24
	BINARY4(VPSRAVD)

// func leastAVX512(d, a, b *Block)
TEXT ·leastAVX512(SB), NOSPLIT, $0-24
	BINARY4(VPMINSD)

// func greatestAVX512(d, a, b *Block)
TEXT ·greatestAVX512(SB), NOSPLIT, $0-24
	BINARY4(VPMAXSD)

// func faddAVX512(d, a, b *Block)
TEXT ·faddAVX512(SB), NOSPLIT, $0-24
	BINARY4(VADDPS)

// func fsubAVX512(d, a, b *Block)
TEXT ·fsubAVX512(SB), NOSPLIT, $0-24
	BINARY4(VSUBPS)

// func fmulAVX512(d, a, b *Block)
TEXT ·fmulAVX512(SB), NOSPLIT, $0-24
	BINARY4(VMULPS)

// func fdivAVX512(d, a, b *Block)
TEXT ·fdivAVX512(SB), NOSPLIT, $0-24
	BINARY4(VDIVPS)

// func fminAVX512(d, a, b *Block)
TEXT ·fminAVX512(SB), NOSPLIT, $0-24
	OPERANDS
	FMIN(0)
	FMIN(64)
	FMIN(128)
	FMIN(192)
	VZEROUPPER
	RET

// func fmaxAVX512(d, a, b *Block)
TEXT ·fmaxAVX512(SB), NOSPLIT, $0-24
	OPERANDS
	MOVL $0x80000000, AX
	VPBROADCASTD AX, Z4
	FMAX(0)
	FMAX(64)
	FMAX(128)
	FMAX(192)
	VZEROUPPER
	RET

// func fnegAVX512(d, a, b *Block)
TEXT ·fnegAVX512(SB), NOSPLIT, $0-24
	CONSTANT4(VPXORD, $0x80000000)

// func fabsAVX512(d, a, b *Block)
TEXT ·fabsAVX512(SB), NOSPLIT, $0-24
	CONSTANT4(VPANDD, $0x7fffffff)

// func fsqrtAVX512(d, a, b *Block)
TEXT ·fsqrtAVX512(SB), NOSPLIT, $0-24
	UNARY4(VSQRTPS)

// func floatAVX512(d, a, b *Block)
TEXT ·floatAVX512(SB), NOSPLIT, $0-24
	UNARY4(VCVTDQ2PS)

// func eqAVX512(a, b *Block) uint64
TEXT ·eqAVX512(SB), NOSPLIT, $0-24
	COMPARE4(VPCMPD, $0)

// func ltAVX512(a, b *Block) uint64
TEXT ·ltAVX512(SB), NOSPLIT, $0-24
	COMPARE4(VPCMPD, $1)

// func leAVX512(a, b *Block) uint64
TEXT ·leAVX512(SB), NOSPLIT, $0-24
	COMPARE4(VPCMPD, $2)

// func feqAVX512(a, b *Block) uint64
TEXT ·feqAVX512(SB), NOSPLIT, $0-24
	COMPARE4(VCMPPS, $0)

// func fltAVX512(a, b *Block) uint64
TEXT ·fltAVX512(SB), NOSPLIT, $0-24
	COMPARE4(VCMPPS, $1)

// func fleAVX512(a, b *Block) uint64
TEXT ·fleAVX512(SB), NOSPLIT, $0-24
	COMPARE4(VCMPPS, $2)

// func chooseAVX512(d *Block, mask uint64, yes, no *Block)
TEXT ·chooseAVX512(SB), NOSPLIT, $0-32
	MOVQ d+0(FP), DI
	MOVQ mask+8(FP), CX
	MOVQ yes+16(FP), SI
	MOVQ no+24(FP), DX
	CHOOSE(0)
	CHOOSE(64)
	CHOOSE(128)
	CHOOSE(192)
	VZEROUPPER
	RET

// func fillAVX512(to *Block, word uint32)
TEXT ·fillAVX512(SB), NOSPLIT, $0-12
	MOVQ to+0(FP), DI
	MOVL word+8(FP), AX
	VPBROADCASTD AX, Z0
	VMOVDQU32 Z0, 0(DI)
	VMOVDQU32 Z0, 64(DI)
	VMOVDQU32 Z0, 128(DI)
	VMOVDQU32 Z0, 192(DI)
	VZEROUPPER
	RET
