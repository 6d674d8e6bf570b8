// Instructions that compute capability 9.0 alone has: products by a warpgroup (four warps that begin at a multiple of four), barriers that
// count bytes, and copies of whole pieces of memory. Modules that include this are built for that capability (scripts/ptx). Nothing here
// knows a tensor.
//
// What a reader could break: a tile is rows of 64 bf16 terms, 128 bytes each, at a multiple of 1,024 bytes; vector q (eight terms) of row
// r is at q ^ r%8. A product reads it by descriptor, so what ordinary stores wrote there must pass `seal` and a barrier first.
#pragma once
#include "bf16.cuh"

constexpr int tileRowBytes = 128;

// tile_place is where vector q of row r of a tile is, in bytes.
__device__ __forceinline__ int tile_place(int r, int q) { return r * tileRowBytes + (q ^ r % 8) * 16; }

// tile_at describes a tile to a product. The next 16 terms of the same rows are 2 further on.
__device__ __forceinline__ u64 tile_at(u32 shared) { return 1ull << 62 | 64ull << 32 | 1ull << 16 | (shared & 0x3ffff) >> 4; }

// seal makes this thread's stores to shared memory visible to products.
__device__ __forceinline__ void seal() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// fewer_registers and more_registers move registers between the warpgroups of a block: all warps of one call them, in the branch that is
// their role.
template <int N> __device__ __forceinline__ void fewer_registers() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N)); }
template <int N> __device__ __forceinline__ void more_registers() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N)); }

// sync_group waits for the 128 threads of a warpgroup; 0 is sync()'s.
__device__ __forceinline__ void sync_group(int group) { asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory"); }

__device__ __forceinline__ void barrier_init(u32 at, u32 arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at), "r"(arrivals) : "memory"); }
__device__ __forceinline__ void barrier_inited() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
__device__ __forceinline__ void barrier_arrive(u32 at) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at) : "memory"); }
// barrier_expect arrives and lets the phase wait for that many bytes of bulk copies.
__device__ __forceinline__ void barrier_expect(u32 at, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at), "r"(bytes) : "memory"); }
// barrier_wait returns when the phase of that parity is over.
__device__ __forceinline__ void barrier_wait(u32 at, u32 parity) {
  asm volatile("{.reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1; @!done bra again;}" ::"r"(at),
      "r"(parity) : "memory");
}

// bulk_copy brings `bytes` from global to shared memory; the barrier's phase counts them.
__device__ __forceinline__ void bulk_copy(u32 to, const void *from, u32 bytes, u32 barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(from),
      "r"(bytes), "r"(barrier) : "memory");
}
// bulk_prefetch brings `bytes`, a multiple of 16, into the card's cache.
__device__ __forceinline__ void bulk_prefetch(const void *from, u32 bytes) {
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(bytes) : "memory"); }

// A product's sums: element e of block j of eight columns is row g + 8·(e/2) of the warp's sixteen, column 8j + 2t + e%2, with g = lane/4
// and t = lane%4.
#define SUMS4(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define SUMS16(d, i) SUMS4(d, i), SUMS4(d, i + 4), SUMS4(d, i + 8), SUMS4(d, i + 12)
#define SUMS64(d) SUMS16(d, 0), SUMS16(d, 16), SUMS16(d, 32), SUMS16(d, 48)
#define FRESH4(d, i) "=&f"(d[i]), "=&f"(d[i + 1]), "=&f"(d[i + 2]), "=&f"(d[i + 3])
#define FRESH16(d) FRESH4(d, 0), FRESH4(d, 4), FRESH4(d, 8), FRESH4(d, 12)
#define LEFT4(a, i) "r"(a[i]), "r"(a[i + 1]), "r"(a[i + 2]), "r"(a[i + 3])
#define LEFT8(a) LEFT4(a, 0), LEFT4(a, 4)

#define NAMES_0_15 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15}"
#define NAMES_0_63                                                                                                                        \
  "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35," \
  "%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}"
#define NAMES_64_79 "{%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79}"

// Steps of 16 terms. RS: sums over 128 columns, left operand in registers. SS: sums over 32 columns, both operands in shared memory.
#define RS_STEP(d, a, b) "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 " d ", " a ", " b ", yes, 1, 1, 0;\n\t"
#define SS_STEP(d, a, b, add) "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 " d ", " a ", " b ", " add ", 1, 1, 0, 0;\n\t"
#define PRODUCT_BEGIN "{.reg .pred no, yes; .reg .b64 x, y;\n\tsetp.ne.b32 no, 0, 0; setp.eq.b32 yes, 0, 0;\n\twgmma.fence.sync.aligned;\n\t"
#define PRODUCT_END "wgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned 0;}"
// Eight steps over 128 terms: each operand is two tiles of 64 rows, 512 units of 16 bytes apart.
#define SS_STEPS(d, a, b)                                                                          \
  SS_STEP(d, a, b, "no")                                                                           \
  "add.s64 x, " a ", 2; add.s64 y, " b ", 2;\n\t" SS_STEP(d, "x", "y", "yes")                      \
  "add.s64 x, " a ", 4; add.s64 y, " b ", 4;\n\t" SS_STEP(d, "x", "y", "yes")                      \
  "add.s64 x, " a ", 6; add.s64 y, " b ", 6;\n\t" SS_STEP(d, "x", "y", "yes")                      \
  "add.s64 x, " a ", 512; add.s64 y, " b ", 512;\n\t" SS_STEP(d, "x", "y", "yes")                  \
  "add.s64 x, " a ", 514; add.s64 y, " b ", 514;\n\t" SS_STEP(d, "x", "y", "yes")                  \
  "add.s64 x, " a ", 516; add.s64 y, " b ", 516;\n\t" SS_STEP(d, "x", "y", "yes")                  \
  "add.s64 x, " a ", 518; add.s64 y, " b ", 518;\n\t" SS_STEP(d, "x", "y", "yes")

// product_narrow is sums[64×32] = left·rightᵀ over 128 terms. left is two tiles of 64 rows, one after the other; right is 32 rows of such
// two.
__device__ __forceinline__ void product_narrow(float (&sums)[16], u64 left, u64 right) {
  asm volatile(PRODUCT_BEGIN SS_STEPS(NAMES_0_15, "%16", "%17") PRODUCT_END : FRESH16(sums) : "l"(left), "l"(right) : "memory");
}

// product_wide is sums[64×128] += left·rightᵀ over 32 terms; right is a tile of 128 rows. left[4s..4s+3] are the warp's sixteen rows,
// terms 16s..16s+15: rows g and g+8 of terms 2t and 2t+1, then of terms 2t+8 and 2t+9.
__device__ __forceinline__ void product_wide(float (&sums)[64], const u32 (&left)[8], u64 right) {
  asm volatile(PRODUCT_BEGIN RS_STEP(NAMES_0_63, "{%64,%65,%66,%67}", "%72")
               "add.s64 y, %72, 2;\n\t" RS_STEP(NAMES_0_63, "{%68,%69,%70,%71}", "y") PRODUCT_END
               : SUMS64(sums)
               : LEFT8(left), "l"(right)
               : "memory");
}
// product_wider is the same over 64 terms.
__device__ __forceinline__ void product_wider(float (&sums)[64], const u32 (&first)[8], const u32 (&second)[8], u64 right) {
  asm volatile(PRODUCT_BEGIN RS_STEP(NAMES_0_63, "{%64,%65,%66,%67}", "%80")
               "add.s64 y, %80, 2;\n\t" RS_STEP(NAMES_0_63, "{%68,%69,%70,%71}", "y")
               "add.s64 y, %80, 4;\n\t" RS_STEP(NAMES_0_63, "{%72,%73,%74,%75}", "y")
               "add.s64 y, %80, 6;\n\t" RS_STEP(NAMES_0_63, "{%76,%77,%78,%79}", "y") PRODUCT_END
               : SUMS64(sums)
               : LEFT8(first), LEFT8(second), "l"(right)
               : "memory");
}

// product_both is product_wide(wide, ...), and product_narrow(narrow, ...) of the next operands, under way at once.
__device__ __forceinline__ void product_both(float (&wide)[64], const u32 (&left)[8], u64 right, float (&narrow)[16], u64 nextLeft,
    u64 nextRight) {
  asm volatile(PRODUCT_BEGIN RS_STEP(NAMES_0_63, "{%80,%81,%82,%83}", "%88")
               "add.s64 y, %88, 2;\n\t" RS_STEP(NAMES_0_63, "{%84,%85,%86,%87}", "y")
               SS_STEPS(NAMES_64_79, "%89", "%90") PRODUCT_END
               : SUMS64(wide), FRESH16(narrow)
               : LEFT8(left), "l"(right), "l"(nextLeft), "l"(nextRight)
               : "memory");
}

// Products whose operands and sums are named one after the other, and waited for together: begin_products stands before the first,
// end_products after the last, and wait_products says that what it names is there. Until then nobody touches sums, nor the registers and the
// shared memory of operands.
__device__ __forceinline__ void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void end_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wait_products(float (&a)[64]) { asm volatile("wgmma.wait_group.sync.aligned 0;" : SUMS64(a)::"memory"); }
__device__ __forceinline__ void wait_products(float (&a)[32], float (&b)[32]) {
  asm volatile("wgmma.wait_group.sync.aligned 0;" : SUMS16(a, 0), SUMS16(a, 16), SUMS16(b, 0), SUMS16(b, 16)::"memory");
}
__device__ __forceinline__ void wait_products(float (&a)[4]) { asm volatile("wgmma.wait_group.sync.aligned 0;" : SUMS4(a, 0)::"memory"); }

#define NAMES_0_31                                                                                                          \
  "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}"
#define FRESH16_AT(d, i) FRESH4(d, i), FRESH4(d, i + 4), FRESH4(d, i + 8), FRESH4(d, i + 12)
#define SS64_STEP(a, b, add) \
  "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " NAMES_0_31 ", " a ", " b ", " add ", 1, 1, 0, 0;\n\t"
#define SS64_NEXT(by) "add.s64 x, %32, " by "; add.s64 y, %33, " by ";\n\t" SS64_STEP("x", "y", "yes")

// begin_hidden starts sums[64×64] = left·rightᵀ over 128 terms; both are two tiles of 64 rows.
__device__ __forceinline__ void begin_hidden(float (&sums)[32], u64 left, u64 right) {
  asm volatile("{.reg .pred no, yes; .reg .b64 x, y;\n\tsetp.ne.b32 no, 0, 0; setp.eq.b32 yes, 0, 0;\n\t" SS64_STEP("%32", "%33", "no")
               SS64_NEXT("2") SS64_NEXT("4") SS64_NEXT("6") SS64_NEXT("512") SS64_NEXT("514") SS64_NEXT("516") SS64_NEXT("518") "}"
               : FRESH16_AT(sums, 0), FRESH16_AT(sums, 16)
               : "l"(left), "l"(right)
               : "memory");
}
#define TURNED_STEP(a, b) "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 " NAMES_0_63 ", " a ", " b ", yes, 1, 1, 1;\n\t"
// begin_turned starts sums[64×128] += left·right over 64 terms, the rows of right: two tiles of 64 columns (turned_at).
__device__ __forceinline__ void begin_turned(float (&sums)[64], const u32 (&first)[8], const u32 (&second)[8], u64 right) {
  asm volatile("{.reg .pred yes; .reg .b64 y;\n\tsetp.eq.b32 yes, 0, 0;\n\t" TURNED_STEP("{%64,%65,%66,%67}", "%80")
               "add.s64 y, %80, 128;\n\t" TURNED_STEP("{%68,%69,%70,%71}", "y")
               "add.s64 y, %80, 256;\n\t" TURNED_STEP("{%72,%73,%74,%75}", "y")
               "add.s64 y, %80, 384;\n\t" TURNED_STEP("{%76,%77,%78,%79}", "y") "}"
               : SUMS64(sums)
               : LEFT8(first), LEFT8(second), "l"(right)
               : "memory");
}
// turned_at describes columns, 128 bytes a row, whose rows are terms: eight rows are 1,024 bytes, the next 64 columns `apart` bytes on. The
// next 16 terms are 128 further on.
__device__ __forceinline__ u64 turned_at(u32 shared, int apart) {
  return 1ull << 62 | 64ull << 32 | (u64)(apart >> 4) << 16 | (shared & 0x3ffff) >> 4;
}
