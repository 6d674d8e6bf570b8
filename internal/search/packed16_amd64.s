#include "textflag.h"
#include "go_asm.h"
#include "packed_lanes_amd64.h"

DATA denseIndex<>+0(SB)/8, $0x0003000200010000
DATA denseIndex<>+8(SB)/8, $0x0007000600050004
DATA denseIndex<>+16(SB)/8, $0x000b000a00090008
DATA denseIndex<>+24(SB)/8, $0x000f000e000d000c
DATA denseIndex<>+32(SB)/8, $0x0013001200110010
DATA denseIndex<>+40(SB)/8, $0x0017001600150014
DATA denseIndex<>+48(SB)/8, $0x001b001a00190018
DATA denseIndex<>+56(SB)/8, $0x001f001e001d001c
GLOBL denseIndex<>(SB), RODATA|NOPTR, $64

// The distances to where the ways at AX lead: Z2. Z8 to Z11: those to all places. Z31: 64 in each
// lane.
#define TO64 \
	VMOVDQU16 dense_to(SI)(AX*1), Z2 \
	VPERMI2W Z9, Z8, Z2

#define TO128 \
	VMOVDQU16 dense_to(SI)(AX*1), Z2 \
	VPTESTMW Z31, Z2, K1             \
	VMOVDQA64 Z2, Z3                 \
	VPERMI2W Z9, Z8, Z2              \
	VPERMI2W Z11, Z10, Z3            \
	VMOVDQU16 Z3, K1, Z2

// The distances from where they begin are added. Z27 to Z30: those from all places.
#define FROM64 \
	VMOVDQU16 dense_at(SI)(AX*1), Z3 \
	VPERMI2W Z28, Z27, Z3            \
	VPADDSW Z3, Z2, Z2

#define FROM128 \
	VMOVDQU16 dense_at(SI)(AX*1), Z3 \
	VPTESTMW Z31, Z3, K1             \
	VMOVDQA64 Z3, Z4                 \
	VPERMI2W Z28, Z27, Z3            \
	VPERMI2W Z30, Z29, Z4            \
	VMOVDQU16 Z4, K1, Z3             \
	VPADDSW Z3, Z2, Z2

// Where the order does not matter: Z6, Z7: what a route adds to a detour.
#define ROUTES \
	VMOVDQU16 dense_route(SI)(AX*1), Z3 \
	VPERMI2W Z7, Z6, Z3                 \
	VPADDSW Z3, Z2, Z2                  \
	VPCMPW $2, Z0, Z2, K2

// With limits. Z14, Z15: a route's spare.
#define ROUTESLIMITED \
	VMOVDQU16 dense_route(SI)(AX*1), Z3 \
	VMOVDQA64 Z3, Z4                    \
	VPERMI2W Z15, Z14, Z3               \
	VPERMI2W Z7, Z6, Z4                 \
	VPCMPW $2, Z3, Z2, K2               \
	VPADDSW Z4, Z2, Z2                  \
	VPCMPW $2, Z0, Z2, K2, K2

// Where it does: Z6, Z7: the load that a route has room for. Z12, Z13: tolls. Z20, Z21: extra.
#define LOADS \
	VMOVDQU16 dense_route(SI)(AX*1), Z5  \
	VMOVDQA64 Z5, Z4                     \
	VPERMI2W Z7, Z6, Z4                  \
	VPERMI2W Z21, Z20, Z5                \
	VPADDW dense_pre(SI)(AX*1), Z17, Z3  \
	VPADDW dense_suf(SI)(AX*1), Z18, Z16 \
	VPMAXSW Z16, Z3, Z3                  \
	VPSUBW Z4, Z3, Z3                    \
	VPCMPW $2, Z5, Z3, K2                \
	VPMAXSW Z23, Z3, Z3                  \
	VPERMI2W Z13, Z12, Z3                \
	VPADDSW Z3, Z2, Z2                   \
	VPCMPW $2, Z0, Z2, K2, K2

#define LOADSLIMITED \
	VMOVDQU16 dense_route(SI)(AX*1), Z5  \
	VMOVDQA64 Z5, Z3                     \
	VMOVDQA64 Z5, Z4                     \
	VPERMI2W Z15, Z14, Z3                \
	VPERMI2W Z7, Z6, Z4                  \
	VPERMI2W Z21, Z20, Z5                \
	VPCMPW $2, Z3, Z2, K2                \
	VPADDW dense_pre(SI)(AX*1), Z17, Z3  \
	VPADDW dense_suf(SI)(AX*1), Z18, Z16 \
	VPMAXSW Z16, Z3, Z3                  \
	VPSUBW Z4, Z3, Z3                    \
	VPCMPW $2, Z5, Z3, K2, K2            \
	VPMAXSW Z23, Z3, Z3                  \
	VPERMI2W Z13, Z12, Z3                \
	VPADDSW Z3, Z2, Z2                   \
	VPCMPW $2, Z0, Z2, K2, K2

// The cheaper of what was found and of the positions at AX.
#define TAKE \
	VMOVDQU16 Z2, K2, Z0  \
	VMOVDQU16 Z26, K2, Z1 \
	VPADDW Z25, Z26, Z26  \
	ADDQ $64, AX

// All positions: plain ones, whose ways begin at the place of the same number, and the others.
#define SCAN(plain, others, TO, FROM, ROUTE) \
plain:                                  \
	CMPQ AX, R10                        \
	JGE others                          \
	TO                                  \
	VPADDSW (R8)(AX*1), Z2, Z2          \
	VPSUBSW dense_leg(SI)(AX*1), Z2, Z2 \
	ROUTE                               \
	TAKE                                \
	JMP plain                           \
others:                                 \
	TO                                  \
	FROM                                \
	VPSUBSW dense_leg(SI)(AX*1), Z2, Z2 \
	ROUTE                               \
	TAKE                                \
	CMPQ AX, R11                        \
	JLT others                          \
	JMP reduce

// What a route adds to a detour: the toll of its overload, or denseBar.
#define ADDED(at, sum) \
	VPSUBW dense_gets+at(SI), Z17, Z2     \
	VPSUBW dense_gives+at(SI), Z18, Z3    \
	VPMAXSW Z3, Z2, Z2                    \
	VPCMPW $2, dense_extra+at(SI), Z2, K1 \
	VPMAXSW Z23, Z2, Z2                   \
	VPERMI2W Z13, Z12, Z2                 \
	VMOVDQA64 Z24, sum                    \
	VMOVDQU16 Z2, K1, sum

// func denseBestQuick(a *denseAsk) (cost, at int32)
//
// Z0, Z1: the cheapest of each lane and its position. AX: the position in bytes.
TEXT ·denseBestQuick(SB), NOSPLIT, $0-16
	MOVQ a+0(FP), DI
	MOVQ denseAsk_in(DI), R8
	MOVQ denseAsk_out(DI), R9
	MOVQ denseAsk_row(DI), AX
	SHLQ $8, AX // a row has 256 bytes
	ADDQ AX, R8
	ADDQ AX, R9
	MOVQ denseAsk_lists(DI), SI
	MOVQ denseAsk_plain(DI), R10
	SHLQ $1, R10
	MOVQ denseAsk_end(DI), R11
	SHLQ $1, R11
	VMOVDQU16 (R9), Z8
	VMOVDQU16 64(R9), Z9
	VMOVDQU16 128(R9), Z10
	VMOVDQU16 192(R9), Z11
	VMOVDQU16 (R8), Z27
	VMOVDQU16 64(R8), Z28
	VMOVDQU16 128(R8), Z29
	VMOVDQU16 192(R8), Z30
	VMOVDQU16 denseAsk_tolls(DI), Z12
	VMOVDQU16 denseAsk_tolls+64(DI), Z13
	VMOVDQU16 dense_spare(SI), Z14
	VMOVDQU16 dense_spare+64(SI), Z15
	VPBROADCASTW denseAsk_most(DI), Z0
	VPBROADCASTW denseAsk_get(DI), Z17
	VPBROADCASTW denseAsk_give(DI), Z18
	VPTERNLOGD $0xff, Z1, Z1, Z1 // -1
	VPADDW Z1, Z0, Z0            // below most
	VPXORD Z23, Z23, Z23
	VPSRLW $1, Z1, Z24           // denseBar
	VPABSW Z1, Z31
	VPSLLW $5, Z31, Z25          // 32
	VPSLLW $6, Z31, Z31          // 64
	VMOVDQU16 denseIndex<>(SB), Z26
	SCANASKED(64, VMOVDQU16)

	// The cheapest of all lanes, and of those that cost the same the last position. The least
	// number without a sign is found at once.
reduce:
	VPSLLW $9, Z31, Z5           // the sign
	VEXTRACTI64X4 $1, Z0, Y2
	VPMINSW Y2, Y0, Y2
	VEXTRACTI128 $1, Y2, X3
	VPMINSW X3, X2, X2
	VPXOR X5, X2, X2
	VPHMINPOSUW X2, X2
	VPXOR X5, X2, X2
	VPBROADCASTW X2, Z3
	VPCMPEQW Z3, Z0, K1
	VPTERNLOGD $0xff, Z4, Z4, Z4
	VMOVDQU16 Z1, K1, Z4
	VEXTRACTI64X4 $1, Z4, Y3
	VPMAXSW Y3, Y4, Y4
	VEXTRACTI128 $1, Y4, X3
	VPMAXSW X3, X4, X4
	VMOVDQA64 Z24, Z3
	VPSUBW X4, X3, X4
	VPHMINPOSUW X4, X4
	VMOVD X2, AX
	MOVWLSX AX, AX
	MOVL AX, cost+8(FP)
	VMOVD X4, CX
	MOVWLZX CX, CX
	MOVL $const_denseBar, AX
	SUBL CX, AX
	MOVL AX, at+12(FP)
	VZEROUPPER
	RET
