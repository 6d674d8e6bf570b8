#include "textflag.h"

// Which keys of a and b are below the one in Z4: x, and which are below or equal: y. A bit per key.
#define BELOW(a, b, x, y) \
	VPCMPUQ $1, Z4, a, K1 \
	VPCMPUQ $1, Z4, b, K2 \
	VPCMPUQ $2, Z4, a, K3 \
	VPCMPUQ $2, Z4, b, K4 \
	KUNPCKBW K1, K2, K1   \
	KUNPCKBW K3, K4, K3   \
	KMOVW K1, x           \
	KMOVW K3, y

// Puts the customer at AX at its rank. R12: the keys below its own, R13: those below or equal.
// BX: the bit of AX. R9: the bits of all keys.
#define PLACE \
	LEAQ -1(BX), R10      \
	ANDQ R10, R13         \
	ORQ R13, R12          \
	ANDQ R9, R12          \
	POPCNTQ R12, R12      \
	MOVL (SI)(AX*4), R11  \
	MOVL R11, (R8)(R12*4) \
	ADDQ BX, BX           \
	INCQ AX

// func rankAVX512(keys *uint64, n int, list, of *int32)
//
// The rank of a key is how many are below it, or equal and before it. Z0 to Z3: all keys.
TEXT ·rankAVX512(SB), NOSPLIT, $0-32
	MOVQ keys+0(FP), DI
	MOVQ n+8(FP), CX
	MOVQ list+16(FP), R8
	MOVQ of+24(FP), SI
	MOVL $1, R9
	SHLQ CX, R9
	DECQ R9      // all
	XORL AX, AX
	MOVL $1, BX  // this one
	VMOVDQU64 (DI), Z0
	VMOVDQU64 64(DI), Z1
	CMPQ CX, $16
	JGT many

few:
	CMPQ AX, CX
	JGE done
	VPBROADCASTQ (DI)(AX*8), Z4
	BELOW(Z0, Z1, R12, R13)
	PLACE
	JMP few

many:
	VMOVDQU64 128(DI), Z2
	VMOVDQU64 192(DI), Z3

manyNext:
	CMPQ AX, CX
	JGE done
	VPBROADCASTQ (DI)(AX*8), Z4
	BELOW(Z0, Z1, R12, R13)
	BELOW(Z2, Z3, DX, R11)
	SHLQ $16, DX
	SHLQ $16, R11
	ORQ DX, R12
	ORQ R11, R13
	PLACE
	JMP manyNext

done:
	VZEROUPPER
	RET
