// Instructions that compute capability 9.0 alone has: products by a warpgroup (four warps that
// begin at a multiple of four), barriers that count bytes, and copies of whole pieces of memory.
// Modules that include this are built for that capability (scripts/ptx). Nothing here knows a
// tensor.
//
// What a reader could break: a tile is rows of 64 bf16 terms, 128 bytes each, at a multiple of
// 1,024 bytes; vector q (eight terms) of row r is at q ^ r%8. A product reads it by descriptor, so
// what ordinary stores wrote there must pass `seal` and a barrier first.
#pragma once
#include "bf16.cuh"

constexpr int tileRowBytes = 128;

// tile_place is where vector q of row r of a tile is, in bytes.
__device__ __forceinline__ int tile_place(int r, int q) { return r * tileRowBytes + (q ^ r % 8) * 16; }

// tile_at describes a tile to a product. The next 16 terms of the same rows are 2 further on.
__device__ __forceinline__ u64 tile_at(u32 shared) { return 1ull << 62 | 64ull << 32 | 1ull << 16 | (shared & 0x3ffff) >> 4; }

// seal makes this thread's stores to shared memory visible to products.
__device__ __forceinline__ void seal() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// fewer_registers and more_registers move registers between the warpgroups of a block: all warps of
// one call them, in the branch that is their role.
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
// bring_tile brings a box of 64 columns of a matrix, described to the copy engine (cu.Tiles), from
// `column` and `row` on, to a tile; the barrier's phase counts its bytes. What lies outside the
// matrix is zeros.
__device__ __forceinline__ void bring_tile(u32 to, const void *matrix, int column, int row, u32 barrier) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(to),
      "l"(matrix), "r"(column), "r"(row), "r"(barrier) : "memory");
}
// The same of a matrix that lies as blocks of 64 columns, one behind the other: rows of one block.
__device__ __forceinline__ void bring_block(u32 to, const void *matrix, int row, int block, u32 barrier) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(to),
      "l"(matrix), "r"(0), "r"(row), "r"(block), "r"(barrier) : "memory");
}
// bulk_prefetch brings `bytes`, a multiple of 16, into the card's cache.
__device__ __forceinline__ void bulk_prefetch(const void *from, u32 bytes) {
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(bytes) : "memory"); }

// A product's sums: element e of block j of eight columns is row g + 8·(e/2) of the warp's sixteen,
// column 8j + 2t + e%2, with g = lane/4 and t = lane%4. A left operand in registers: left[4s..4s+3]
// are the warp's sixteen rows, terms 16s..16s+15: rows g and g+8 of terms 2t and 2t+1, then of
// terms 2t+8 and 2t+9.
#define SUMS4(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define SUMS16(d, i) SUMS4(d, i), SUMS4(d, i + 4), SUMS4(d, i + 8), SUMS4(d, i + 12)
#define SUMS64(d) SUMS16(d, 0), SUMS16(d, 16), SUMS16(d, 32), SUMS16(d, 48)
#define FRESH4(d, i) "=&f"(d[i]), "=&f"(d[i + 1]), "=&f"(d[i + 2]), "=&f"(d[i + 3])
#define FRESH16(d, i) FRESH4(d, i), FRESH4(d, i + 4), FRESH4(d, i + 8), FRESH4(d, i + 12)
#define LEFT4(a, i) "r"(a[i]), "r"(a[i + 1]), "r"(a[i + 2]), "r"(a[i + 3])
#define LEFT8(a) LEFT4(a, 0), LEFT4(a, 4)
#define HELD4(a, i) "+r"(a[i]), "+r"(a[i + 1]), "+r"(a[i + 2]), "+r"(a[i + 3])
#define HELD8(a) HELD4(a, 0), HELD4(a, 4)

#define NAMES_0_15 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15"
#define NAMES_0_31 NAMES_0_15 ",%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define NAMES_0_63                                                                                                          \
  NAMES_0_31 ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58," \
             "%59,%60,%61,%62,%63"
#define NAMES_64_127                                                                                                          \
  ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94," \
  "%95,%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,%112,%113,%114,%115,%116,%117,%118,%119,%120," \
  "%121,%122,%123,%124,%125,%126,%127"

// Products are under way while their warpgroup does other work: begin_products stands before the
// first of a batch, end_products after its last. wait_products says that all batches are there:
// what it names may be read from then on. Until then nobody touches sums, nor the registers and the
// shared memory of operands, and no instruction but a product writes into registers that one takes.
__device__ __forceinline__ void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void end_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wait_products(float (&a)[64]) { asm volatile("wgmma.wait_group.sync.aligned 0;" : SUMS64(a)::"memory"); }
// wait_earlier says that all batches but the last are there, whose operands may be overwritten
// then; sums are still nobody's.
__device__ __forceinline__ void wait_earlier() { asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory"); }
__device__ __forceinline__ void wait_products(float (&a)[32]) {
  asm volatile("wgmma.wait_group.sync.aligned 0;" : SUMS16(a, 0), SUMS16(a, 16)::"memory");
}
// The registers that products take are named where others are written meanwhile: they keep their
// values until the wait. To the compiler a product that has begun needs them no more, and around a
// loop ptxas gives them to whoever makes the next operand before the wait. No warning says so, and
// no sanitizer sees it.
__device__ __forceinline__ void wait_products(float (&a)[64], u32 (&first)[8], u32 (&second)[8]) {
  asm volatile("wgmma.wait_group.sync.aligned 0;" : SUMS64(a), HELD8(first), HELD8(second)::"memory");
}
__device__ __forceinline__ void wait_products(float (&a)[32], u32 (&left)[4][8]) {
  asm volatile("wgmma.wait_group.sync.aligned 0;"
               : SUMS16(a, 0), SUMS16(a, 16), HELD8(left[0]), HELD8(left[1]), HELD8(left[2]), HELD8(left[3])::"memory");
}
__device__ __forceinline__ void wait_products(float (&a)[64], u32 (&left)[4][8]) {
  asm volatile("wgmma.wait_group.sync.aligned 0;" : SUMS64(a), HELD8(left[0]), HELD8(left[1]), HELD8(left[2]), HELD8(left[3])::"memory");
}
__device__ __forceinline__ void wait_products(float (&a)[4]) { asm volatile("wgmma.wait_group.sync.aligned 0;" : SUMS4(a, 0)::"memory"); }

// Steps of 16 terms: with no, sums begin anew.
#define STEP(SHAPE, d, a, b, add, turned) \
  "wgmma.mma_async.sync.aligned." SHAPE ".f32.bf16.bf16 {" d "}, " a ", " b ", " add ", 1, 1, " turned ";\n\t"
#define STEPS_BEGIN "{.reg .pred no, yes; .reg .b64 x, y;\n\tsetp.ne.b32 no, 0, 0; setp.eq.b32 yes, 0, 0;\n\t"
// Eight steps over 128 terms: both operands are two tiles of 64 rows, 512 units of 16 bytes apart.
#define NEXT_STEP(SHAPE, d, a, b, by) "add.s64 x, " a ", " by "; add.s64 y, " b ", " by ";\n\t" STEP(SHAPE, d, "x", "y", "yes", "0, 0")
#define EIGHT_STEPS(SHAPE, d, a, b)                                                                                        \
  STEPS_BEGIN STEP(SHAPE, d, a, b, "no", "0, 0") NEXT_STEP(SHAPE, d, a, b, "2") NEXT_STEP(SHAPE, d, a, b, "4")                 \
  NEXT_STEP(SHAPE, d, a, b, "6") NEXT_STEP(SHAPE, d, a, b, "512") NEXT_STEP(SHAPE, d, a, b, "514")                             \
  NEXT_STEP(SHAPE, d, a, b, "516") NEXT_STEP(SHAPE, d, a, b, "518") "}"

// begin_made starts sums[64×64] = left·rightᵀ over 128 terms; each is two tiles of 64 rows, one
// after the other.
__device__ __forceinline__ void begin_made(float (&sums)[32], u64 left, u64 right) {
  asm volatile(EIGHT_STEPS("m64n64k16", NAMES_0_31, "%32", "%33") : FRESH16(sums, 0), FRESH16(sums, 16) : "l"(left), "l"(right) : "memory");
}

// The same with left in registers, 128 terms as a lane holds them of sums; whoever waits for it
// names it (wait_products).
#define LEFT_STEP(a, b, add) STEP("m64n64k16", NAMES_0_31, "{" a "}", b, add, "0")
#define NEXT_LEFT(a, by) "add.s64 y, %64, " by ";\n\t" LEFT_STEP(a, "y", "yes")
__device__ __forceinline__ void begin_made(float (&sums)[32], const u32 (&left)[4][8], u64 right) {
  asm volatile(STEPS_BEGIN LEFT_STEP("%32,%33,%34,%35", "%64", "no") NEXT_LEFT("%36,%37,%38,%39", "2") NEXT_LEFT("%40,%41,%42,%43", "4")
               NEXT_LEFT("%44,%45,%46,%47", "6") NEXT_LEFT("%48,%49,%50,%51", "512") NEXT_LEFT("%52,%53,%54,%55", "514")
               NEXT_LEFT("%56,%57,%58,%59", "516") NEXT_LEFT("%60,%61,%62,%63", "518") "}"
               : FRESH16(sums, 0), FRESH16(sums, 16)
               : LEFT8(left[0]), LEFT8(left[1]), LEFT8(left[2]), LEFT8(left[3]), "l"(right)
               : "memory");
}

#define REGISTER_STEP(a, b, turned) STEP("m64n128k16", NAMES_0_63, "{" a "}", b, "yes", turned)
#define FOUR_STEPS(turned, by1, by2, by3)                                                                                   \
  STEPS_BEGIN REGISTER_STEP("%64,%65,%66,%67", "%80", turned) "add.s64 y, %80, " by1 ";\n\t"                                  \
  REGISTER_STEP("%68,%69,%70,%71", "y", turned) "add.s64 y, %80, " by2 ";\n\t" REGISTER_STEP("%72,%73,%74,%75", "y", turned)    \
  "add.s64 y, %80, " by3 ";\n\t" REGISTER_STEP("%76,%77,%78,%79", "y", turned) "}"

// begin_taken starts sums[64×128] += left·rightᵀ over 64 terms; right is a tile of 128 rows, left
// in registers.
__device__ __forceinline__ void begin_taken(float (&sums)[64], const u32 (&first)[8], const u32 (&second)[8], u64 right) {
  asm volatile(FOUR_STEPS("0", "2", "4", "6") : SUMS64(sums) : LEFT8(first), LEFT8(second), "l"(right) : "memory");
}
// The same with left in shared memory, a tile of 64 rows; `begin_all` begins the sums anew.
#define FOUR_TILE_STEPS(add)                                                                                                \
  STEPS_BEGIN STEP("m64n128k16", NAMES_0_63, "%64", "%65", add, "0, 0") NEXT_STEP("m64n128k16", NAMES_0_63, "%64", "%65", "2") \
  NEXT_STEP("m64n128k16", NAMES_0_63, "%64", "%65", "4") NEXT_STEP("m64n128k16", NAMES_0_63, "%64", "%65", "6") "}"
__device__ __forceinline__ void begin_taken(float (&sums)[64], u64 left, u64 right) {
  asm volatile(FOUR_TILE_STEPS("yes") : SUMS64(sums) : "l"(left), "l"(right) : "memory");
}
__device__ __forceinline__ void begin_all(float (&sums)[64], u64 left, u64 right) {
  asm volatile(FOUR_TILE_STEPS("no")
               : FRESH16(sums, 0), FRESH16(sums, 16), FRESH16(sums, 32), FRESH16(sums, 48)
               : "l"(left), "l"(right)
               : "memory");
}
// begin_turned starts sums[64×128] += left·right over 64 terms, which are rows of right: two tiles
// of 64 columns (turned_at).
__device__ __forceinline__ void begin_turned(float (&sums)[64], const u32 (&first)[8], const u32 (&second)[8], u64 right) {
  asm volatile(FOUR_STEPS("1", "128", "256", "384") : SUMS64(sums) : LEFT8(first), LEFT8(second), "l"(right) : "memory");
}
// turned_at describes columns of 128 bytes a row whose rows are terms: eight rows are 1,024 bytes,
// the next 64 columns `apart` bytes on. The next 16 terms are 128 further on.
__device__ __forceinline__ u64 turned_at(u32 shared, int apart) {
  return 1ull << 62 | 64ull << 32 | (u64)(apart >> 4) << 16 | (shared & 0x3ffff) >> 4;
}
