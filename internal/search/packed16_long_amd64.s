#include "textflag.h"
#include "go_asm.h"
#include "packed_lanes_amd64.h"

DATA longIndex<>+0(SB)/8, $0x0003000200010000
DATA longIndex<>+8(SB)/8, $0x0007000600050004
DATA longIndex<>+16(SB)/8, $0x000b000a00090008
DATA longIndex<>+24(SB)/8, $0x000f000e000d000c
GLOBL longIndex<>(SB), RODATA|NOPTR, $32

// The distances to where the ways at AX lead: Z2. Z8 to Z15: those to all places. Z30, Z31: 32 and
// 64 in each lane.
#define TO64 \
	VPMOVZXWD dense_to(SI)(AX*1), Z2 \
	VPTESTMD Z30, Z2, K1             \
	VMOVDQA64 Z2, Z3                 \
	VPERMI2D Z9, Z8, Z2              \
	VPERMI2D Z11, Z10, Z3            \
	VMOVDQA32 Z3, K1, Z2

#define TO128 \
	VPMOVZXWD dense_to(SI)(AX*1), Z2 \
	VPTESTMD Z30, Z2, K1             \
	VPTESTMD Z31, Z2, K3             \
	VMOVDQA64 Z2, Z3                 \
	VMOVDQA64 Z2, Z4                 \
	VMOVDQA64 Z2, Z5                 \
	VPERMI2D Z9, Z8, Z2              \
	VPERMI2D Z11, Z10, Z3            \
	VPERMI2D Z13, Z12, Z4            \
	VPERMI2D Z15, Z14, Z5            \
	VMOVDQA32 Z3, K1, Z2             \
	VMOVDQA32 Z5, K1, Z4             \
	VMOVDQA32 Z4, K3, Z2

// The distances from where they begin are added.
#define FROM64 \
	VPMOVZXWD dense_at(SI)(AX*1), Z3 \
	VPTESTMD Z30, Z3, K1             \
	VMOVDQA64 Z3, Z4                 \
	VMOVDQU32 (R8), Z5               \
	VPERMI2D 64(R8), Z5, Z3          \
	VMOVDQU32 128(R8), Z5            \
	VPERMI2D 192(R8), Z5, Z4         \
	VMOVDQA32 Z4, K1, Z3             \
	VPADDD Z3, Z2, Z2

#define FROM128 \
	VPMOVZXWD dense_at(SI)(AX*1), Z3 \
	VPTESTMD Z30, Z3, K1             \
	VPTESTMD Z31, Z3, K3             \
	VMOVDQA64 Z3, Z4                 \
	VMOVDQA64 Z3, Z28                \
	VMOVDQA64 Z3, Z29                \
	VMOVDQU32 (R8), Z5               \
	VPERMI2D 64(R8), Z5, Z3          \
	VMOVDQU32 128(R8), Z5            \
	VPERMI2D 192(R8), Z5, Z4         \
	VMOVDQU32 256(R8), Z5            \
	VPERMI2D 320(R8), Z5, Z28        \
	VMOVDQU32 384(R8), Z5            \
	VPERMI2D 448(R8), Z5, Z29        \
	VMOVDQA32 Z4, K1, Z3             \
	VMOVDQA32 Z29, K1, Z28           \
	VMOVDQA32 Z28, K3, Z3            \
	VPADDD Z3, Z2, Z2

// Detours of positions that are not in use are cut, so that what is added does not wrap. Z27: the
// most that they may be.
#define LEG \
	VPSUBD dense_long(SI)(AX*2), Z2, Z2 \
	VPMINSD Z27, Z2, Z2

// Where the order does not matter: Z6, Z7: what a route adds to a detour.
#define ROUTES \
	VPMOVZXWD dense_route(SI)(AX*1), Z3 \
	VPERMI2D Z7, Z6, Z3                 \
	VPADDD Z3, Z2, Z2                   \
	VPCMPD $2, Z0, Z2, K2

// With limits. Z18, Z19: a route's slack.
#define ROUTESLIMITED \
	VPMOVZXWD dense_route(SI)(AX*1), Z3 \
	VMOVDQA64 Z3, Z4                    \
	VPERMI2D Z19, Z18, Z3               \
	VPERMI2D Z7, Z6, Z4                 \
	VPCMPD $2, Z3, Z2, K2               \
	VPADDD Z4, Z2, Z2                   \
	VPCMPD $2, Z0, Z2, K2, K2

// Where it does: Z6, Z7: the load that a route has room for. Z20, Z21: extra. Z22, Z23: tolls.
#define OVERLOAD \
	VPERMI2D Z7, Z6, Z4                \
	VPERMI2D Z21, Z20, Z5              \
	VPMOVSXWD dense_pre(SI)(AX*1), Z3  \
	VPMOVSXWD dense_suf(SI)(AX*1), Z28 \
	VPADDD Z16, Z3, Z3                 \
	VPADDD Z17, Z28, Z28               \
	VPMAXSD Z28, Z3, Z3                \
	VPSUBD Z4, Z3, Z3

#define TOLL \
	VPMAXSD Z24, Z3, Z3   \
	VPERMI2D Z23, Z22, Z3 \
	VPADDD Z3, Z2, Z2     \
	VPCMPD $2, Z0, Z2, K2, K2

#define LOADS \
	VPMOVZXWD dense_route(SI)(AX*1), Z5 \
	VMOVDQA64 Z5, Z4                    \
	OVERLOAD                            \
	VPCMPD $2, Z5, Z3, K2               \
	TOLL

#define LOADSLIMITED \
	VPMOVZXWD dense_route(SI)(AX*1), Z5 \
	VMOVDQA64 Z5, Z4                    \
	VMOVDQA64 Z5, Z3                    \
	VPERMI2D Z19, Z18, Z3               \
	VPCMPD $2, Z3, Z2, K2               \
	OVERLOAD                            \
	VPCMPD $2, Z5, Z3, K2, K2           \
	TOLL

// The cheaper of what was found and of the positions at AX.
#define TAKE \
	VMOVDQA32 Z2, K2, Z0  \
	VMOVDQA32 Z26, K2, Z1 \
	VPADDD Z25, Z26, Z26  \
	ADDQ $32, AX

// All positions: plain ones, whose ways begin at the place of the same number, and the others.
#define SCAN(plain, others, TO, FROM, ROUTE) \
plain:                        \
	CMPQ AX, R10              \
	JGE others                \
	TO                        \
	VPADDD (R8)(AX*2), Z2, Z2 \
	LEG                       \
	ROUTE                     \
	TAKE                      \
	JMP plain                 \
others:                       \
	TO                        \
	FROM                      \
	LEG                       \
	ROUTE                     \
	TAKE                      \
	CMPQ AX, R11              \
	JLT others                \
	JMP reduce

// What a route adds to a detour: the toll of its overload, or as much as makes it too long.
#define ADDED(at, sum) \
	VPMOVSXWD dense_gets+at(SI), Z2  \
	VPMOVSXWD dense_gives+at(SI), Z3 \
	VPMOVSXWD dense_extra+at(SI), Z4 \
	VPSUBD Z2, Z16, Z2               \
	VPSUBD Z3, Z17, Z3               \
	VPMAXSD Z3, Z2, Z2               \
	VPCMPD $2, Z4, Z2, K1            \
	VPMAXSD Z24, Z2, Z2              \
	VPERMI2D Z23, Z22, Z2            \
	VMOVDQA64 Z27, sum               \
	VMOVDQA32 Z2, K1, sum

// func denseLongQuick(a *denseAsk) (cost, at int32)
//
// Z0, Z1: the cheapest of each lane and its position. AX: the position in bytes of 16 bits.
TEXT ·denseLongQuick(SB), NOSPLIT, $0-16
	MOVQ a+0(FP), DI
	MOVQ denseAsk_longIn(DI), R8
	MOVQ denseAsk_longOut(DI), R9
	MOVQ denseAsk_row(DI), AX
	SHLQ $9, AX // a row has 512 bytes
	ADDQ AX, R8
	ADDQ AX, R9
	MOVQ denseAsk_lists(DI), SI
	MOVQ denseAsk_plain(DI), R10
	SHLQ $1, R10
	MOVQ denseAsk_end(DI), R11
	SHLQ $1, R11
	VMOVDQU32 (R9), Z8
	VMOVDQU32 64(R9), Z9
	VMOVDQU32 128(R9), Z10
	VMOVDQU32 192(R9), Z11
	VMOVDQU32 256(R9), Z12
	VMOVDQU32 320(R9), Z13
	VMOVDQU32 384(R9), Z14
	VMOVDQU32 448(R9), Z15
	VMOVDQU32 denseAsk_longTolls(DI), Z22
	VMOVDQU32 denseAsk_longTolls+64(DI), Z23
	VMOVDQU32 dense_slack(SI), Z18
	VMOVDQU32 dense_slack+64(SI), Z19
	VPBROADCASTD denseAsk_most(DI), Z0
	VPBROADCASTD denseAsk_get(DI), Z16
	VPBROADCASTD denseAsk_give(DI), Z17
	VPTERNLOGD $0xff, Z1, Z1, Z1 // -1
	VPADDD Z1, Z0, Z0            // below most
	VPXORD Z24, Z24, Z24
	VPSRLD $2, Z1, Z27           // 1<<30 - 1
	VPABSD Z1, Z31
	VPSLLD $4, Z31, Z25          // 16
	VPSLLD $5, Z31, Z30          // 32
	VPSLLD $6, Z31, Z31          // 64
	VPMOVZXWD longIndex<>(SB), Z26
	SCANASKED(32, VPMOVSXWD)

reduce:
	CHEAPEST
