// What the kernels that choose a position share: the end of each, the cheapest position of all
// lanes, and the order in which dense lists of both widths ask.

// The least of the four lanes of X2 goes to all of them; the greatest of X4 likewise.
#define LEAST \
	VPSHUFD $0x4e, X2, X3 \
	VPMINSD X3, X2, X2    \
	VPSHUFD $0xb1, X2, X3 \
	VPMINSD X3, X2, X2

#define GREATEST \
	VPSHUFD $0x4e, X4, X5 \
	VPMAXSD X5, X4, X4    \
	VPSHUFD $0xb1, X4, X5 \
	VPMAXSD X5, X4, X4

// Answers the cost in X2 and the position in X4.
#define ANSWER \
	VMOVD X2, AX        \
	MOVL AX, cost+8(FP) \
	VMOVD X4, AX        \
	MOVL AX, at+12(FP)  \
	VZEROUPPER          \
	RET

// Answers the least cost of the 16 lanes of Z0, and of the positions in Z1 that cost as much the
// last one.
#define CHEAPEST \
	VEXTRACTI64X4 $1, Z0, Y2     \
	VPMINSD Y2, Y0, Y2           \
	VEXTRACTI128 $1, Y2, X3      \
	VPMINSD X3, X2, X2           \
	LEAST                        \
	VPBROADCASTD X2, Z3          \
	VPCMPEQD Z3, Z0, K1          \
	VPTERNLOGD $0xff, Z4, Z4, Z4 \
	VMOVDQA32 Z1, K1, Z4         \
	VEXTRACTI64X4 $1, Z4, Y5     \
	VPMAXSD Y5, Y4, Y4           \
	VEXTRACTI128 $1, Y4, X5      \
	VPMAXSD X5, X4, X4           \
	GREATEST                     \
	ANSWER

// The loop for what is asked of dense lists: customers of one kind or mixed (dense_gets and
// dense_extra are then read by LOAD, a second half at half), 64 places or 128, with limits or
// without. It needs the macros SCAN, TO, FROM, ADDED, ROUTES and LOADS, and ends at reduce.
#define SCANASKED(half, LOAD) \
	XORQ AX, AX                                            \
	MOVL denseAsk_limited(DI), BX                          \
	MOVL denseAsk_wide(DI), CX                             \
	CMPL denseAsk_mixed(DI), $0                            \
	JNE mixed                                              \
	ADDED(0, Z6)                                           \
	ADDED(half, Z7)                                        \
	TESTL CX, CX                                           \
	JNE wide                                               \
	TESTL BX, BX                                           \
	JNE plainL                                             \
	SCAN(plain, others, TO64, FROM64, ROUTES)              \
	SCAN(plainL, othersL, TO64, FROM64, ROUTESLIMITED)     \
wide:                                                      \
	TESTL BX, BX                                           \
	JNE plainWL                                            \
	SCAN(plainW, othersW, TO128, FROM128, ROUTES)          \
	SCAN(plainWL, othersWL, TO128, FROM128, ROUTESLIMITED) \
mixed:                                                     \
	LOAD dense_gets(SI), Z6                                \
	LOAD dense_gets+half(SI), Z7                           \
	LOAD dense_extra(SI), Z20                              \
	LOAD dense_extra+half(SI), Z21                         \
	TESTL CX, CX                                           \
	JNE mixedWide                                          \
	TESTL BX, BX                                           \
	JNE plainML                                            \
	SCAN(plainM, othersM, TO64, FROM64, LOADS)             \
	SCAN(plainML, othersML, TO64, FROM64, LOADSLIMITED)    \
mixedWide:                                                 \
	TESTL BX, BX                                           \
	JNE plainMWL                                           \
	SCAN(plainMW, othersMW, TO128, FROM128, LOADS)         \
	SCAN(plainMWL, othersMWL, TO128, FROM128, LOADSLIMITED)
