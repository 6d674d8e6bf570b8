// DW[N,K] = DYᵀ·X over M rows in bf16, N and K small and M large: each block sums a share of the
// rows for one tile of DW into a part of its own, and the parts are added in order.
//
// What a reader could break: a stage holds rows of DY and of X as memory has them, except that
// vector q (eight columns) of row r is at q ^ r%8, so that the eight rows of one column's vectors
// lie in different banks. Both operands are read turned.
#include "bf16.cuh"

constexpr int stageRows = 64;

// Shape: NW×KW warps, each with 16·TILES rows and 64 columns of DW; STAGES-1 stages are loaded
// ahead.
template <int NW, int KW, int TILES, int STAGES> struct Shape {
  static constexpr int threads = 32 * NW * KW, rows = NW * TILES * 16, columns = KW * 64;
  static constexpr int yBytes = stageRows * rows * 2, stageBytes = yBytes + stageRows * columns * 2, stages = STAGES;
};

extern __shared__ u4 ring[] __attribute__((aligned(16)));

// bring starts the copy of stageRows rows of WIDTH columns; what lies outside the matrix is zeros.
template <int WIDTH, int THREADS> __device__ __forceinline__ void bring(u32 to, const Bf16 *from, int ld, int row0, int rows, int column0, int columns) {
  constexpr int across = WIDTH / 8, pieces = stageRows * across / THREADS;
  static_assert(stageRows * across % THREADS == 0 && across % 8 == 0, "whole pieces, whole groups of eight vectors");
#pragma unroll
  for (int i = 0; i < pieces; i++) {
    int at = i * THREADS + threadIdx_x, r = at / across, q = at % across;
    bool real = row0 + r < rows && column0 + 8 * q < columns;
    copy16(to + (r * across + (q ^ r % 8)) * 16, real ? from + (long)(row0 + r) * ld + column0 + 8 * q : from, real);
  }
}

// Block (tile, share) sums stages share, share+shares, ... into part `share`: N·K numbers of DW,
// then N column sums of DY. So all blocks are near the same rows at any time, and those of one
// share read them from memory once.
template <class S, int NW, int KW, int TILES>
__device__ __forceinline__ void gradient(float *parts, const Bf16 *dy, const Bf16 *x, int m, int n, int k, int lddy, int ldx, int shares, u32 biased) {
  const int lane = threadIdx_x % 32, warp = threadIdx_x / 32, g = lane / 4, t = lane % 4, wn = warp % NW, wk = warp / NW;
  const int across = (k + S::columns - 1) / S::columns, count = across * ((n + S::rows - 1) / S::rows);
  const int tile = blockIdx_x % count, share = blockIdx_x / count, n0 = tile / across * S::rows, k0 = tile % across * S::columns;
  const int rounds = ((m + stageRows - 1) / stageRows - share + shares - 1) / shares;
  const bool summing = biased && k0 == 0 && wk == 0;
  const u32 base = shared_at(ring);

  auto begin = [&](int round) {
    if (round < rounds) {
      u32 at = base + round % S::stages * S::stageBytes;
      int row = (round * shares + share) * stageRows;
      bring<S::rows, S::threads>(at, dy, lddy, row, m, n0, n);
      bring<S::columns, S::threads>(at + S::yBytes, x, ldx, row, m, k0, k);
    }
    commit_copies();
  };

  // A lane's place in the first 16 rows of a stage, for each pair of vectors it reads.
  u32 atY[TILES], atX[4];
#pragma unroll
  for (int i = 0; i < TILES; i++)
    atY[i] = (lane / 16 * 8 + lane % 8) * S::rows * 2 + ((wn * TILES + i) * 2 + lane / 8 % 2 ^ lane % 8) * 16;
#pragma unroll
  for (int j = 0; j < 4; j++)
    atX[j] = S::yBytes + lane % 16 * S::columns * 2 + (wk * 8 + 2 * j + lane / 16 ^ lane % 8) * 16;

  float sums[TILES][8][4] = {}, biases[TILES][4] = {};
#pragma unroll 1
  for (int round = 1 - S::stages; round < rounds; round++) {
    if (round >= 0) {
      wait_copies<S::stages - 2>();
      sync(); // this round's rows are everyone's, and the stage of the round before is free
    }
    begin(round + S::stages - 1);
    if (round < 0) continue;
    const u32 stage = base + round % S::stages * S::stageBytes;
#pragma unroll
    for (int r = 0; r < stageRows; r += 16) {
      u4 a[TILES];
#pragma unroll
      for (int i = 0; i < TILES; i++) a[i] = turned4(stage + atY[i] + r * S::rows * 2);
#pragma unroll
      for (int j = 0; j < 4; j++) {
        u4 b = turned4(stage + atX[j] + r * S::columns * 2);
#pragma unroll
        for (int e = 0; e < 2; e++)
#pragma unroll
          for (int i = 0; i < TILES; i++) {
            float(&c)[4] = sums[i][2 * j + e];
            mma_bf16(c[0], c[1], c[2], c[3], a[i].x, a[i].y, a[i].z, a[i].w, b[2 * e], b[2 * e + 1]);
          }
      }
      if (summing)
#pragma unroll
        for (int i = 0; i < TILES; i++) {
          constexpr u32 ones = 0x3f803f80;
          float(&c)[4] = biases[i];
          mma_bf16(c[0], c[1], c[2], c[3], a[i].x, a[i].y, a[i].z, a[i].w, ones, ones);
        }
    }
  }

  float *part = parts + (long)share * (n * k + n);
#pragma unroll
  for (int i = 0; i < TILES; i++)
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const int row = n0 + (wn * TILES + i) * 16 + 8 * h + g;
      if (row >= n) continue;
      if (summing && t == 0) part[(long)n * k + row] = biases[i][2 * h];
#pragma unroll
      for (int j = 0; j < 8; j++) {
        const int column = k0 + wk * 64 + 8 * j + 2 * t;
        if (column >= k) continue;
        float *at = part + (long)row * k + column;
        if (k % 2 == 0 && n % 2 == 0)
          *(f2 *)at = f2{sums[i][j][2 * h], sums[i][j][2 * h + 1]};
        else {
          at[0] = sums[i][j][2 * h];
          if (column + 1 < k) at[1] = sums[i][j][2 * h + 1];
        }
      }
    }
}

#define GRADIENT(NAME, NW, KW, TILES, STAGES, BLOCKS)                                                                                           \
  KERNEL __launch_bounds__(32 * NW * KW, BLOCKS) linear_dw_##NAME(float *parts, const Bf16 *dy, const Bf16 *x, int m, int n, int k, int lddy,   \
                                                                 int ldx, int shares, u32 biased) {                                             \
    gradient<Shape<NW, KW, TILES, STAGES>, NW, KW, TILES>(parts, dy, x, m, n, k, lddy, ldx, shares, biased);                                    \
  }
GRADIENT(256x128, 4, 2, 4, 4, 1)
GRADIENT(192x128, 4, 2, 3, 5, 1)
GRADIENT(128x256, 2, 4, 4, 4, 1)
GRADIENT(128x128, 2, 2, 4, 3, 2)

constexpr int sumThreads = 256, batch = 8;

// Gradient lane l (+)= parts [l·each, (l+1)·each), in order. One without parts is written too.
KERNEL __launch_bounds__(sumThreads) linear_dw_sum(float *dw, float *dbias, const float *parts, int n, int k, int count, int each, int gradLaneSize,
                                                   u32 addW, u32 addBias) {
  const int size = n * k + n, at = blockIdx_x * sumThreads + threadIdx_x, from = blockIdx_y * each, to = from + each < count ? from + each : count;
  const bool bias = at >= n * k;
  if (at >= size || (bias && !dbias)) return;
  float *out = (bias ? dbias + (at - n * k) : dw + at) + (long)blockIdx_y * gradLaneSize;
  float sum = (bias ? addBias : addW) ? *out : 0;
  for (int i = from; i < to; i += batch) {
    float v[batch];
#pragma unroll
    for (int j = 0; j < batch; j++) v[j] = i + j < to ? parts[(long)(i + j) * size + at] : 0;
#pragma unroll
    for (int j = 0; j < batch; j++) sum += v[j];
  }
  *out = sum;
}

// narrow rounds an fp32 matrix to bf16, its rows padded with zeros to whole vectors.
KERNEL __launch_bounds__(sumThreads) narrow(Bf16 *to, const float *from, int m, int n, int ld) {
  const int octets = (n + 7) / 8;
  for (long at = blockIdx_x * sumThreads + threadIdx_x; at < (long)m * octets; at += gridDim_x * sumThreads) {
    const float *row = from + at / octets * ld;
    const int column = at % octets * 8;
    float v[8];
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] = column + i < n ? row[column + i] : 0;
    *(u4 *)(to + at * 8) = u4{bf16x2(v[0], v[1]), bf16x2(v[2], v[3]), bf16x2(v[4], v[5]), bf16x2(v[6], v[7])};
  }
}
