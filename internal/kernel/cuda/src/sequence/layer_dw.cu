// Weights' gradients of a joined layer by a warpgroup's products: DW[N,K] = DYᵀ·X over M rows, N and K small and M large. Each block sums
// a share of the rows for one tile of DW into a part of its own, and the parts are added in order (layer_fold.cu).
//
// What a reader could break: a stage is blocks of 64 columns, DY's and then X's, each STAGE rows of 128 bytes at a multiple of 1,024 bytes
// with vector q (eight columns) of row r at q ^ r%8. Rows are a product's terms, so both operands are read turned. A stage is filled
// again only after the barrier that follows the wait for its products. N and K are whole tiles; rows past the last are zeros.
#include "hopper.cuh"

constexpr int stepTerms = 128; // a step of 16 rows, in a descriptor's units

// add_products starts sums[64×128] += leftᵀ·right over 16 rows.
__device__ __forceinline__ void add_products(float (&sums)[64], u64 left, u64 right) {
  asm volatile(STEPS_BEGIN STEP("m64n128k16", NAMES_0_63, "%64", "%65", "yes", "1, 1") "}"
               : SUMS64(sums)
               : "l"(left), "l"(right)
               : "memory");
}
// add_sums is the same for a right operand of eight columns of ones, which lie anyhow.
__device__ __forceinline__ void add_sums(float (&sums)[4], u64 left, u64 ones) {
  asm volatile(STEPS_BEGIN STEP("m64n8k16", "%0,%1,%2,%3", "%4", "%5", "yes", "1, 0") "}"
               : SUMS4(sums, 0)
               : "l"(left), "l"(ones)
               : "memory");
}

// sync_first waits for the block's first THREADS threads: the others have gone home.
template <int THREADS> __device__ __forceinline__ void sync_first() { asm volatile("bar.sync 1, %0;" ::"n"(THREADS) : "memory"); }

extern __shared__ char stages[] __attribute__((aligned(1024)));

// bring starts the copy of ROWS rows of WIDTH columns into blocks of 64.
template <int WIDTH, int ROWS, int THREADS>
__device__ __forceinline__ void bring(u32 to, const Bf16 *from, int ld, int row0, int rows, int column0) {
  constexpr int across = WIDTH / 8, pieces = ROWS * across;
#pragma unroll
  for (int i = 0; i < (pieces + THREADS - 1) / THREADS; i++) {
    const int at = i * THREADS + threadIdx_x, r = at / across, q = at % across;
    if (pieces % THREADS && at >= pieces) break;
    const bool real = row0 + r < rows;
    copy16(to + q / 8 * (ROWS * tileRowBytes) + tile_place(r, q % 8), real ? from + (long)(row0 + r) * ld + column0 + 8 * q : from, real);
  }
}

// GROUPS warpgroups, each with DOWN blocks of 64 rows and ACROSS blocks of 128 columns of DW; STAGE rows at a time, STAGES-1 of them
// ahead. Block (tile, share) sums stages share, share+shares, ... into part `share`: N·K numbers of DW, then N column sums of DY. So all
// blocks are near the same rows at any time, and those of one share read them from memory once.
template <int GROUPS, int DOWN, int ACROSS, int STAGE, int STAGES>
__device__ __forceinline__ void gradient(float *parts, const Bf16 *dy, const Bf16 *x, int m, int n, int k, int shares, int at) {
  constexpr int threads = 128 * GROUPS, rows = GROUPS * DOWN * 64, columns = ACROSS * 128, block = STAGE * tileRowBytes,
      yBytes = rows / 64 * block, stageBytes = yBytes + columns / 64 * block;
  const int lane = threadIdx_x % 32, warp = threadIdx_x / 32, g = lane / 4, t = lane % 4, group = warp / 4;
  const int across = k / columns, count = across * (n / rows);
  const int tile = at % count, share = at / count, n0 = tile / across * rows, k0 = tile % across * columns;
  const int rounds = ((m + STAGE - 1) / STAGE - share + shares - 1) / shares;
  const bool summing = k0 == 0;
  const u32 base = shared_at(stages), ones = base + STAGES * stageBytes;
  if (threadIdx_x < 64) *(u32 *)(stages + STAGES * stageBytes + 4 * threadIdx_x) = 0x3f803f80;

  auto begin = [&](int round) {
    if (round < rounds) {
      const u32 at = base + round % STAGES * stageBytes;
      const int row = (round * shares + share) * STAGE;
      bring<rows, STAGE, threads>(at, dy, n, row, m, n0);
      bring<columns, STAGE, threads>(at + yBytes, x, k, row, m, k0);
    }
    commit_copies();
  };
#pragma unroll
  for (int i = 0; i < STAGES - 1; i++) begin(i);
  float sums[DOWN * ACROSS][64] = {}, biases[DOWN][4] = {};
#pragma unroll 1
  for (int round = 0; round < rounds; round++) {
    wait_copies<STAGES - 2>();
    seal();
    sync_first<threads>(); // this round's rows are everyone's, and the stage of the round before is free
    const u32 stage = base + round % STAGES * stageBytes;
    begin_products();
#pragma unroll
    for (int step = 0; step < STAGE / 16; step++)
#pragma unroll
      for (int i = 0; i < DOWN; i++) {
        const u64 left = turned_at(stage + (group * DOWN + i) * block, block) + step * stepTerms;
#pragma unroll
        for (int j = 0; j < ACROSS; j++)
          add_products(sums[i * ACROSS + j], left, turned_at(stage + yBytes + 2 * j * block, block) + step * stepTerms);
        if (summing) add_sums(biases[i], left, 8ull << 32 | 8ull << 16 | (ones & 0x3ffff) >> 4);
      }
    end_products();
    begin(round + STAGES - 1);
#pragma unroll
    for (int i = 0; i < DOWN * ACROSS; i++) wait_products(sums[i]);
#pragma unroll
    for (int i = 0; i < DOWN; i++) wait_products(biases[i]);
  }

  float *part = parts + (long)share * (n * k + n);
#pragma unroll
  for (int i = 0; i < DOWN; i++)
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const int row = n0 + (group * DOWN + i) * 64 + warp % 4 * 16 + 8 * h + g;
      if (summing && t == 0) part[(long)n * k + row] = biases[i][2 * h];
#pragma unroll
      for (int j = 0; j < ACROSS; j++)
#pragma unroll
        for (int c = 0; c < 16; c++)
          *(f2 *)(part + (long)row * k + k0 + 128 * j + 8 * c + 2 * t) =
              f2{sums[i * ACROSS + j][4 * c + 2 * h], sums[i * ACROSS + j][4 * c + 2 * h + 1]};
    }
}

// Weights of a layer, all in one launch: tiles and stages by N and K, so many shares of the rows for each, a weight's blocks after those of
// the one before. A weight without shares is not asked for.
#define JOB(i) float *parts##i, const Bf16 *dy##i, const Bf16 *x##i, int shares##i
#define TILES(i, N, K, GROUPS, DOWN, ACROSS, STAGE, STAGES)                                                                 \
  {                                                                                                                         \
    constexpr int tiles = N / (64 * GROUPS * DOWN) * (K / (128 * ACROSS));                                                  \
    if (at < tiles * shares##i) {                                                                                           \
      if (threadIdx_x < 128 * GROUPS)                                                                                       \
        gradient<GROUPS, DOWN, ACROSS, STAGE, STAGES>(parts##i, dy##i, x##i, m, N, K, shares##i, at);                       \
      return;                                                                                                               \
    }                                                                                                                       \
    at -= tiles * shares##i;                                                                                                \
  }
KERNEL __launch_bounds__(384, 1) layer_dw(JOB(0), JOB(1), JOB(2), JOB(3), int m) {
  int at = blockIdx_x;
  TILES(0, 128, 512, 2, 1, 2, 32, 9)
  TILES(1, 512, 128, 2, 2, 1, 32, 9)
  TILES(2, 128, 128, 2, 1, 1, 64, 7)
  TILES(3, 384, 128, 3, 2, 1, 32, 7)
}
