// Weights' gradients of a joined layer by a warpgroup's products: DW[N,K] = DYᵀ·X over M rows, N
// and K small and M large. Each block sums a share of the rows for one tile of DW into a part of
// its own, and the parts are added in order (layer_fold.cu).
//
// What a reader could break: a stage is blocks of 64 columns, DY's and then X's, each STAGE rows of
// 128 bytes at a multiple of 1,024 bytes with vector q (eight columns) of row r at q ^ r%8, as the
// copy engine leaves them. Rows are a product's terms, so both operands are read turned. A stage is
// filled again only after the barrier that follows the wait for its products. N and K are whole
// tiles; rows past the last are zeros.
#include "hopper.cuh"

constexpr int stepTerms = 128; // a step of 16 rows, in a descriptor's units
constexpr int onesBytes = 256;

// add_products starts sums[64×128] += leftᵀ·right over 16 rows, and sums of the left's columns: the
// 128 columns of right are followed by eight of ones.
__device__ __forceinline__ void add_products(float (&sums)[1][64], float (&totals)[4], u64 left, u64 right, u64) {
  asm volatile(STEPS_BEGIN STEP("m64n136k16", NAMES_0_63 ",%64,%65,%66,%67", "%68", "%69", "yes", "1, 1") "}"
               : SUMS64(sums[0]), SUMS4(totals, 0)
               : "l"(left), "l"(right)
               : "memory");
}
// The same for 256 columns, which are as many as a product takes: the sums are a product of their
// own, of ones that lie anyhow.
__device__ __forceinline__ void add_products(float (&sums)[2][64], float (&totals)[4], u64 left, u64 right, u64 ones) {
  asm volatile(STEPS_BEGIN STEP("m64n256k16", NAMES_0_63 NAMES_64_127, "%128", "%129", "yes", "1, 1") "}"
               : SUMS64(sums[0]), SUMS64(sums[1])
               : "l"(left), "l"(right)
               : "memory");
  asm volatile(STEPS_BEGIN STEP("m64n8k16", "%0,%1,%2,%3", "%4", "%5", "yes", "1, 0") "}"
               : SUMS4(totals, 0)
               : "l"(left), "l"(ones)
               : "memory");
}

// sync_first waits for the block's first THREADS threads: the others have gone home.
template <int THREADS> __device__ __forceinline__ void sync_first() { asm volatile("bar.sync 1, %0;" ::"n"(THREADS) : "memory"); }

extern __shared__ char stages[] __attribute__((aligned(1024)));

// bring_columns brings rows of 64 columns, of a matrix of rows or of one of such blocks.
template <bool BLOCKS> __device__ __forceinline__ void bring_columns(u32 to, const void *matrix, int block, int row, u32 barrier) {
  if (BLOCKS) bring_block(to, matrix, row, block, barrier);
  else bring_tile(to, matrix, 64 * block, row, barrier);
}

// GROUPS warpgroups, each with DOWN blocks of 64 rows and ACROSS blocks of 128 columns of DW; STAGE
// rows at a time. While the products of a stage are under way those of the one before end and the
// one after comes, so STAGES-2 are ahead. Block (tile, share) sums stages share, share+shares, ...
// into part `share`: N·K numbers of DW, then N column sums of DY. So all blocks are near the same
// rows at any time, and those of one share read them from memory once. YBLOCKS,
// XBLOCKS: the matrix lies as blocks of 64 columns.
template <int GROUPS, int DOWN, int ACROSS, int STAGE, int STAGES, bool YBLOCKS, bool XBLOCKS>
__device__ __forceinline__ void gradient(float *parts, const void *dy, const void *x, int m, int n, int k, int shares, int at) {
  constexpr int threads = 128 * GROUPS, rows = GROUPS * DOWN * 64, columns = ACROSS * 128, block = STAGE * tileRowBytes,
      yBytes = rows / 64 * block, bytes = yBytes + columns / 64 * block, stageBytes = bytes + (ACROSS == 1 ? block : 0);
  const int lane = threadIdx_x % 32, warp = threadIdx_x / 32, g = lane / 4, t = lane % 4, group = warp / 4;
  const int across = k / columns, count = across * (n / rows);
  const int tile = at % count, share = at / count, n0 = tile / across * rows, k0 = tile % across * columns;
  const int rounds = ((m + STAGE - 1) / STAGE - share + shares - 1) / shares;
  const u32 base = shared_at(stages), ones = base + STAGES * stageBytes, barriers = ones + onesBytes;
  auto fill = [&](int from, int size) {
    for (int i = 4 * threadIdx_x; i < size; i += 4 * threads) *(u32 *)(stages + from + i) = 0x3f803f80;
  };
  fill(STAGES * stageBytes, onesBytes);
  for (int i = 0; i < STAGES; i++) fill(i * stageBytes + bytes, stageBytes - bytes);
  if (threadIdx_x == 0) {
    for (int i = 0; i < STAGES; i++) barrier_init(barriers + 8 * i, 1);
    barrier_inited();
  }
  seal();
  sync_first<threads>();

  auto begin = [&](int round) { // one thread's work
    if (threadIdx_x != 0 || round >= rounds) return;
    const u32 at = base + round % STAGES * stageBytes, barrier = barriers + round % STAGES * 8;
    const int row = (round * shares + share) * STAGE;
    barrier_expect(barrier, bytes);
#pragma unroll
    for (int i = 0; i < rows / 64; i++) bring_columns<YBLOCKS>(at + i * block, dy, n0 / 64 + i, row, barrier);
#pragma unroll
    for (int i = 0; i < columns / 64; i++) bring_columns<XBLOCKS>(at + yBytes + i * block, x, k0 / 64 + i, row, barrier);
  };
#pragma unroll 1
  for (int i = 0; i < STAGES - 2; i++) begin(i);
  float sums[DOWN][ACROSS][64] = {}, totals[DOWN][4] = {};
#pragma unroll 1
  for (int round = 0; round < rounds; round++) {
    barrier_wait(barriers + round % STAGES * 8, round / STAGES % 2);
    // the products of the round before the last have ended for everyone: their stage is free
    sync_first<threads>();
    const u32 stage = base + round % STAGES * stageBytes;
    begin_products();
#pragma unroll
    for (int step = 0; step < STAGE / 16; step++)
#pragma unroll
      for (int i = 0; i < DOWN; i++)
        add_products(sums[i], totals[i], turned_at(stage + (group * DOWN + i) * block, block) + step * stepTerms,
            turned_at(stage + yBytes, block) + step * stepTerms, 8ull << 32 | 8ull << 16 | (ones & 0x3ffff) >> 4);
    end_products();
    begin(round + STAGES - 2);
    wait_earlier();
  }

  float *part = parts + (long)share * (n * k + n);
#pragma unroll
  for (int i = 0; i < DOWN; i++) {
    wait_products(totals[i]);
#pragma unroll
    for (int j = 0; j < ACROSS; j++) wait_products(sums[i][j]);
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const int row = n0 + (group * DOWN + i) * 64 + warp % 4 * 16 + 8 * h + g;
      if (k0 == 0 && t == 0) part[(long)n * k + row] = totals[i][2 * h];
#pragma unroll
      for (int j = 0; j < ACROSS; j++)
#pragma unroll
        for (int c = 0; c < 16; c++)
          *(f2 *)(part + (long)row * k + k0 + 128 * j + 8 * c + 2 * t) = f2{sums[i][j][4 * c + 2 * h], sums[i][j][4 * c + 2 * h + 1]};
    }
  }
}

// Weights of a layer, all in one launch: tiles and stages by N and K, so many shares of the rows
// for each, a weight's blocks after those of the one before. A weight without shares is not asked
// for.
#define JOB(i) float *parts##i, const void *dy##i, const void *x##i, int shares##i
#define TILES(i, N, K, GROUPS, DOWN, ACROSS, STAGE, STAGES, YBLOCKS, XBLOCKS)                                               \
  {                                                                                                                         \
    constexpr int tiles = N / (64 * GROUPS * DOWN) * (K / (128 * ACROSS));                                                  \
    if (at < tiles * shares##i) {                                                                                           \
      if (threadIdx_x < 128 * GROUPS)                                                                                       \
        gradient<GROUPS, DOWN, ACROSS, STAGE, STAGES, YBLOCKS, XBLOCKS>(parts##i, dy##i, x##i, m, N, K, shares##i, at);     \
      return;                                                                                                               \
    }                                                                                                                       \
    at -= tiles * shares##i;                                                                                                \
  }
KERNEL __launch_bounds__(384, 1) layer_dw(JOB(0), JOB(1), JOB(2), JOB(3), int m) {
  int at = blockIdx_x;
  TILES(0, 128, 512, 2, 1, 2, 32, 9, false, true)
  TILES(1, 512, 128, 2, 2, 1, 32, 8, true, false)
  TILES(2, 128, 128, 2, 1, 1, 64, 5, false, false)
  TILES(3, 384, 128, 3, 2, 1, 32, 6, false, false)
}
