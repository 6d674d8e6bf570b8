#include "textflag.h"
#include "go_asm.h"
#include "packed_lanes_amd64.h"

DATA flatIndex<>+0(SB)/4, $0
DATA flatIndex<>+4(SB)/4, $1
DATA flatIndex<>+8(SB)/4, $2
DATA flatIndex<>+12(SB)/4, $3
DATA flatIndex<>+16(SB)/4, $4
DATA flatIndex<>+20(SB)/4, $5
DATA flatIndex<>+24(SB)/4, $6
DATA flatIndex<>+28(SB)/4, $7
DATA flatIndex<>+32(SB)/4, $8
DATA flatIndex<>+36(SB)/4, $9
DATA flatIndex<>+40(SB)/4, $10
DATA flatIndex<>+44(SB)/4, $11
DATA flatIndex<>+48(SB)/4, $12
DATA flatIndex<>+52(SB)/4, $13
DATA flatIndex<>+56(SB)/4, $14
DATA flatIndex<>+60(SB)/4, $15
GLOBL flatIndex<>(SB), RODATA|NOPTR, $64

// The addresses of the lists.
#define LISTS \
	MOVQ a+0(FP), DI            \
	MOVQ flatAsk_row(DI), R8    \
	MOVQ flatAsk_in(DI), BX     \
	MOVQ flatAsk_out(DI), CX    \
	MOVQ flatAsk_from(DI), DX   \
	MOVQ flatAsk_to(DI), R9     \
	MOVQ flatAsk_leg(DI), R10   \
	MOVQ flatAsk_spare(DI), R11 \
	MOVQ flatAsk_gets(DI), R12  \
	MOVQ flatAsk_gives(DI), R13 \
	MOVQ flatAsk_extra(DI), SI

// By AVX-512. Z0, Z1: the cheapest of each lane and its position. Z17 to Z22: what the customer
// asks. Z23: 0. Z24: tollCap. AX: the position in bytes. K2: the lanes whose position may be taken.

// All lanes of to: those of the list at base, by the places in places.
#define GATHER(base, places, to) \
	KXNORW K1, K1, K1 \
	VPXORD to, to, to \
	VPGATHERDD (base)(places*4), K1, to

// The overload that the customer makes: Z4.
#define OVER \
	VPSUBD (R12)(AX*1), Z17, Z4 \
	VPSUBD (R13)(AX*1), Z18, Z5 \
	VPMAXSD Z5, Z4, Z4

// Its price: Z4.
#define PRICE \
	VPMAXSD Z23, Z4, Z4 \
	VCVTDQ2PS Z4, Z4    \
	VMULPS Z19, Z4, Z4  \
	VMINPS Z24, Z4, Z4  \
	VCVTTPS2DQ Z4, Z4

// The detour and its price, with the distance from where the way begins: Z3. It must be as cheap as
// what was found, and the route's length and load must bear it.
#define DETOUR(from) \
	VPADDD from, Z3, Z3                \
	VPSUBD (R10)(AX*1), Z3, Z3         \
	VPCMPD $2, Z0, Z3, K2              \
	VPCMPD $2, (R11)(AX*1), Z3, K2, K2 \
	OVER                               \
	VPCMPD $2, (SI)(AX*1), Z4, K2, K2  \
	PRICE                              \
	VPADDD Z4, Z3, Z3                  \
	VPCMPD $2, Z0, Z3, K2, K2

// When service ends, by the arrival in Z5, which must be in time.
#define SERVE \
	VPCMPD $2, Z21, Z5, K2, K2 \
	VPMAXSD Z20, Z5, Z5        \
	VPADDD Z22, Z5, Z5

// The cheaper of what was found and of the positions at AX.
#define TAKE \
	VMOVDQA32 Z3, K2, Z0  \
	VMOVDQA32 Z26, K2, Z1 \
	VPADDD Z25, Z26, Z26  \
	ADDQ $64, AX

// Compares the position with a number of positions in flatAsk.
#define BEFORE(field) \
	MOVQ field(DI), R15 \
	SHLQ $2, R15        \
	CMPQ AX, R15

// func flatBestAVX512(a *flatAsk) (cost, at int32)
TEXT ·flatBestAVX512(SB), NOSPLIT, $0-16
	LISTS
	VPBROADCASTD flatAsk_most(DI), Z0
	VPBROADCASTD flatAsk_get(DI), Z17
	VPBROADCASTD flatAsk_give(DI), Z18
	VBROADCASTSS flatAsk_toll(DI), Z19
	VPBROADCASTD flatAsk_early(DI), Z20
	VPBROADCASTD flatAsk_late(DI), Z21
	VPBROADCASTD flatAsk_service(DI), Z22
	VPTERNLOGD $0xff, Z1, Z1, Z1 // -1
	VPADDD Z1, Z0, Z0            // below most
	VPXORD Z23, Z23, Z23
	MOVL $0x4d800000, AX         // tollCap as a float32
	VPBROADCASTD AX, Z24
	MOVL $16, AX
	VPBROADCASTD AX, Z25
	VMOVDQU32 flatIndex<>(SB), Z26
	XORQ AX, AX

	CMPL flatAsk_timed(DI), $0
	JE customers
	MOVQ flatAsk_ready(DI), R14
	MOVQ flatAsk_due(DI), R15

	// Customers with windows: a branch on what passes by its distance is taken as often as not,
	// and costs more than what it saves.
timed:
	VMOVDQU32 (R9)(AX*1), Z2
	GATHER(R8, Z2, Z3)
	GATHER(CX, Z2, Z6)
	OVER
	VPCMPD $2, (SI)(AX*1), Z4, K2
	PRICE
	VMOVDQU32 (R14)(AX*1), Z5
	VPADDD (BX)(AX*1), Z5, Z5
	SERVE
	VPADDD Z6, Z5, Z5
	VPCMPD $2, (R15)(AX*1), Z5, K2, K2
	VPADDD (R8)(AX*1), Z3, Z3
	VPSUBD (R10)(AX*1), Z3, Z3
	VPCMPD $2, (R11)(AX*1), Z3, K2, K2
	VPADDD Z4, Z3, Z3
	VPCMPD $2, Z0, Z3, K2, K2
	TAKE
	MOVQ flatAsk_mid(DI), R13
	SHLQ $2, R13
	CMPQ AX, R13
	MOVQ flatAsk_gives(DI), R13
	JLT timed
	JMP heads

	// Customers: the way begins at the place of the same number.
customers:
	VMOVDQU32 (R9)(AX*1), Z2
	GATHER(R8, Z2, Z3)
	DETOUR((R8)(AX*1))
	TAKE
	BEFORE(flatAsk_mid)
	JLT customers

	// The starts of routes.
heads:
	BEFORE(flatAsk_end)
	JGE reduce

starts:
	VMOVDQU32 (R9)(AX*1), Z2
	VMOVDQU32 (DX)(AX*1), Z7
	GATHER(R8, Z2, Z3)
	GATHER(R8, Z7, Z4)
	DETOUR(Z4)
	CMPL flatAsk_timed(DI), $0
	JE startsTake
	KMOVW K2, K1
	VPXORD Z5, Z5, Z5
	VPGATHERDD (BX)(Z7*4), K1, Z5
	MOVQ flatAsk_ready(DI), R15
	VPADDD (R15)(AX*1), Z5, Z5
	SERVE
	KMOVW K2, K1
	VPXORD Z6, Z6, Z6
	VPGATHERDD (CX)(Z2*4), K1, Z6
	VPADDD Z6, Z5, Z5
	MOVQ flatAsk_due(DI), R15
	VPCMPD $2, (R15)(AX*1), Z5, K2, K2

startsTake:
	TAKE
	BEFORE(flatAsk_end)
	JLT starts

reduce:
	CHEAPEST

DATA flatToll<>+0(SB)/8, $0x4d8000004d800000
DATA flatToll<>+8(SB)/8, $0x4d8000004d800000
DATA flatToll<>+16(SB)/8, $0x4d8000004d800000
DATA flatToll<>+24(SB)/8, $0x4d8000004d800000
GLOBL flatToll<>(SB), RODATA|NOPTR, $32

DATA flatEight<>+0(SB)/8, $0x0000000800000008
DATA flatEight<>+8(SB)/8, $0x0000000800000008
DATA flatEight<>+16(SB)/8, $0x0000000800000008
DATA flatEight<>+24(SB)/8, $0x0000000800000008
GLOBL flatEight<>(SB), RODATA|NOPTR, $32

// By AVX2. Y0, Y1: the cheapest of each lane and its position. Y8 to Y13: what the customer asks.
// Y14: the positions at AX. Y15: the lanes whose position is refused.

// All lanes of to: those of the list at base, by the places in places.
#define GATHER2(base, places, to) \
	VPCMPEQD Y7, Y7, Y7 \
	VPGATHERDD Y7, (base)(places*4), to

// The detour and its price, with the distance from where the way begins: Y3.
#define DETOUR2(from) \
	VPADDD from, Y3, Y3           \
	VPSUBD (R10)(AX*1), Y3, Y3    \
	VPCMPGTD (R11)(AX*1), Y3, Y15 \
	VPSUBD (R12)(AX*1), Y8, Y4    \
	VPSUBD (R13)(AX*1), Y9, Y5    \
	VPMAXSD Y5, Y4, Y4            \
	VPCMPGTD (SI)(AX*1), Y4, Y5   \
	VPOR Y5, Y15, Y15             \
	VPXOR Y5, Y5, Y5              \
	VPMAXSD Y5, Y4, Y4            \
	VCVTDQ2PS Y4, Y4              \
	VMULPS Y10, Y4, Y4            \
	VMINPS flatToll<>(SB), Y4, Y4 \
	VCVTTPS2DQ Y4, Y4             \
	VPADDD Y4, Y3, Y3             \
	VPCMPGTD Y0, Y3, Y5           \
	VPOR Y5, Y15, Y15

// Windows, by the time in Y5 that the way to the customer takes.
#define TIMES2 \
	MOVQ flatAsk_ready(DI), R15  \
	VPADDD (R15)(AX*1), Y5, Y5   \
	VPCMPGTD Y12, Y5, Y4         \
	VPOR Y4, Y15, Y15            \
	VPMAXSD Y11, Y5, Y5          \
	VPADDD Y13, Y5, Y5           \
	GATHER2(CX, Y2, Y4)          \
	VPADDD Y4, Y5, Y5            \
	MOVQ flatAsk_due(DI), R15    \
	VPCMPGTD (R15)(AX*1), Y5, Y4 \
	VPOR Y4, Y15, Y15

// The cheaper of what was found and of the positions at AX.
#define TAKE2 \
	VPBLENDVB Y15, Y0, Y3, Y0        \
	VPBLENDVB Y15, Y1, Y14, Y1       \
	VPADDD flatEight<>(SB), Y14, Y14 \
	ADDQ $32, AX

// func flatBestAVX2(a *flatAsk) (cost, at int32)
TEXT ·flatBestAVX2(SB), NOSPLIT, $0-16
	LISTS
	VPBROADCASTD flatAsk_most(DI), Y0
	VPBROADCASTD flatAsk_get(DI), Y8
	VPBROADCASTD flatAsk_give(DI), Y9
	VBROADCASTSS flatAsk_toll(DI), Y10
	VPBROADCASTD flatAsk_early(DI), Y11
	VPBROADCASTD flatAsk_late(DI), Y12
	VPBROADCASTD flatAsk_service(DI), Y13
	VPCMPEQD Y1, Y1, Y1 // -1
	VPADDD Y1, Y0, Y0   // below most
	VMOVDQU flatIndex<>(SB), Y14
	XORQ AX, AX

	// Customers: the way begins at the place of the same number.
customers:
	VMOVDQU (R9)(AX*1), Y2
	GATHER2(R8, Y2, Y3)
	DETOUR2((R8)(AX*1))
	CMPL flatAsk_timed(DI), $0
	JE customersTake
	VMOVDQU (BX)(AX*1), Y5
	TIMES2

customersTake:
	TAKE2
	BEFORE(flatAsk_mid)
	JLT customers

	// The starts of routes.
	BEFORE(flatAsk_end)
	JGE reduce

starts:
	VMOVDQU (R9)(AX*1), Y2
	GATHER2(R8, Y2, Y3)
	VMOVDQU (DX)(AX*1), Y6
	GATHER2(R8, Y6, Y4)
	DETOUR2(Y4)
	CMPL flatAsk_timed(DI), $0
	JE startsTake
	GATHER2(BX, Y6, Y5)
	TIMES2

startsTake:
	TAKE2
	BEFORE(flatAsk_end)
	JLT starts

	// The cheapest of all lanes, and of those that cost the same the last position.
reduce:
	VEXTRACTI128 $1, Y0, X3
	VPMINSD X3, X0, X2
	LEAST
	VPBROADCASTD X2, Y3
	VPCMPEQD Y3, Y0, Y4
	VPCMPEQD Y5, Y5, Y5
	VPBLENDVB Y4, Y1, Y5, Y4
	VEXTRACTI128 $1, Y4, X5
	VPMAXSD X5, X4, X4
	GREATEST
	ANSWER
