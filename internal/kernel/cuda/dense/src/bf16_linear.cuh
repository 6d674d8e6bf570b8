// Products Y[M,N] = X[M,K]·B of rows in bf16 with a weight that stays in shared memory: the job,
// the order of its columns, and what becomes of its sums. Each row is read once and each result
// written once. How rows come is in bf16_linear_short.cuh and bf16_linear_ring.cuh.
//
// What a reader could break: who holds which column. A warp takes 16·TILES rows; lane (g, t) =
// (l/4, l%4) ends up with columns 2t and 2t+1 of each tile of eight columns, and four tiles are a
// block of 32. For results in fp32 tile j's column i is column 16·(j/2) + 4·(i/2) + 2·(j%2) + i%2,
// so that a lane has columns 4t..4t+3 of both halves of the block; in bf16 it is column 8·(i/2) +
// 2j + i%2, and the lane has columns 8t..8t+7: whole vectors.
//
// Rows and terms that X lacks are read from its nearest row and first terms: what they give is not
// written, or multiplied by zeros.
#pragma once
#include "drop.cuh"
#include "bf16.cuh"

// What becomes of a sum, plus its bias where there is one.
enum End {
  PLAIN,    // fp32: add + drop(sum)
  COMPACT,  // bf16
  GELU,     // bf16: pre = sum, y = GELU(sum)
  GELU_GRAD // bf16: sum·GELU'(pre)
};

// Product is a launch's job. Strides are in elements.
struct Product {
  void *y;
  Bf16 *pre;
  const Bf16 *x, *w; // w is [n,k], or turned [k,n]: its rows are the terms
  const float *bias, *add;
  int m, n, k, ldy, ldpre, ldx, ldadd, panel; // panel: columns a block takes, a multiple of 32
  Drop drop;
  u32 nodes, inverse; // rows an instance; 0xffffffff/nodes
  const State *state;
  u32 upward; // from the last rows to the first
};

// Sweep is a warp's way through the tiles of ROWS rows: neighbouring warps of the grid take
// neighbouring tiles.
template <int WARPS, int ROWS> struct Sweep {
  int tile, step, count, last;
  __device__ __forceinline__ Sweep(const Product &p)
      : tile(blockIdx_x * WARPS + threadIdx_x / 32), step(gridDim_x * WARPS), count((p.m + ROWS - 1) / ROWS), last(p.upward ? count - 1 : 0) {}
  // row is the first row of the tile `ahead` steps on; past the end, none of X's: who reads takes
  // the nearest.
  __device__ __forceinline__ int row(int ahead) const {
    const int at = tile + ahead * step;
    return (last ? last - at : at) * ROWS;
  }
};


// column_of is the column that stands at a spot of the panel's tiles, tile*8 + the tile's column;
// spot_of is its inverse.
template <bool WIDE> __device__ __forceinline__ int column_of(int spot) {
  const int block = spot / 32 * 32, j = spot % 32 / 8, i = spot % 8;
  return WIDE ? block + j / 2 * 16 + i / 2 * 4 + j % 2 * 2 + i % 2 : block + i / 2 * 8 + j * 2 + i % 2;
}
template <bool WIDE> __device__ __forceinline__ int spot_of(int column) {
  const int block = column / 32 * 32, c = column % 32;
  return WIDE ? block + c / 16 * 16 + c / 2 % 2 * 8 + c % 16 / 4 * 2 + c % 2 : block + c % 8 / 2 * 8 + c / 8 * 2 + c % 2;
}

extern __shared__ u4 panel[] __attribute__((aligned(1024)));

template <int THREADS> __device__ __forceinline__ void bring_bias(float *bias, const Product &p, int column0) {
  for (int i = threadIdx_x; i < p.panel; i += THREADS) bias[i] = p.bias && column0 + i < p.n ? p.bias[column0 + i] : 0;
}

// bring_turned_panel fills the panel from W[k,n]: a thread turns eight terms of eight columns.
// ORDER says where they go: vector t of chunk c holds terms term(c, t, 0..7), and the one of a spot
// is at place(spot, c, t). Rows and terms that W lacks are zeros.
template <bool WIDE, int THREADS, class ORDER> __device__ __forceinline__ void bring_turned_panel(const Product &p, int column0, ORDER l) {
  const int octets = p.panel / 8, pieces = octets * l.chunks * 4;
  for (int i = threadIdx_x; i < pieces; i += THREADS) {
    int t = i % 4, octet = i / 4 % octets, c = i / 4 / octets;
    u4 row[8];
#pragma unroll
    for (int r = 0; r < 8; r++) {
      int term = l.term(c, t, r), column = column0 + 8 * octet;
      row[r] = u4{0, 0, 0, 0};
      if (term < p.k && column < p.n) row[r] = *(const u4 *)(p.w + (long)term * p.n + column);
    }
#pragma unroll
    for (int e = 0; e < 8; e++) {
      u4 v;
#pragma unroll
      for (int q = 0; q < 4; q++)
        v[q] = e % 2 ? high_halves(row[2 * q][e / 2], row[2 * q + 1][e / 2]) : low_halves(row[2 * q][e / 2], row[2 * q + 1][e / 2]);
      panel[l.place(spot_of<WIDE>(8 * octet + e), c, t)] = v;
    }
  }
}

// Sums are a lane's part of a block of 32 columns: [i][j][2h+e] is row 16i + 8h + g, column 2t+e of
// tile j.
template <int TILES> struct Sums { float v[TILES][4][4]; };

// Held is what the end of 16 rows of a block of columns reads from memory: pre, or what is added.
// The first row is one of X's.
template <int END> struct Held {};
template <> struct Held<GELU_GRAD> { u4 v[2]; };
template <> struct Held<PLAIN> { f4 v[2][2]; };

template <int END> __device__ __forceinline__ void hold(Held<END> &to, const Product &p, int row0, int column) {
  const int g = threadIdx_x % 32 / 4, t = threadIdx_x % 4;
#pragma unroll
  for (int h = 0; h < 2; h++) {
    const int row = least(row0 + 8 * h + g, p.m - 1);
    if constexpr (END == GELU_GRAD) to.v[h] = stream4(p.pre + (long)row * p.ldpre + least(column + 8 * t, p.n - 8));
    if constexpr (END == PLAIN)
#pragma unroll
      for (int j = 0; j < 2; j++) to.v[h][j] = stream4(p.add + (long)row * p.ldadd + least(column + 16 * j + 4 * t, p.n - 4), p.add);
  }
}

// GELU as gelu.cuh has it, with the reciprocal that is one instruction: exact to a few units in
// fp32's last place, which bf16 does not see.
__device__ __forceinline__ float quick_gate(float x) {
  constexpr float scale = -2 * 1.4426950408889634f * 0.79788456080286535588f; // -2·log2 e·√(2/π)
  return rcp_approx(1.0f + ex2(x * fma_(x * x, scale * 0.044715f, scale)));
}
__device__ __forceinline__ float quick_gelu(float x) { return x * quick_gate(x); }
__device__ __forceinline__ float quick_gelu_slope(float x) {
  constexpr float scale = 2 * 0.79788456080286535588f;
  const float s = quick_gate(x);
  return fma_(x * fma_(-s, s, s), fma_(x * x, 3 * scale * 0.044715f, scale), s);
}

// finish_row writes a lane's eight results of one row in bf16, row h of those held.
template <int END> __device__ __forceinline__ void finish_row(float (&v)[4][2], const Held<END> &held, int h, const Product &p, int row, int column) {
  const int t = threadIdx_x % 4;
  u4 out, pre;
#pragma unroll
  for (int j = 0; j < 4; j++) {
    if constexpr (END == GELU) {
      pre[j] = bf16x2(v[j][0], v[j][1]);
      v[j][0] = quick_gelu(v[j][0]), v[j][1] = quick_gelu(v[j][1]);
    }
    if constexpr (END == GELU_GRAD) v[j][0] *= quick_gelu_slope(bf16_low(held.v[h][j])), v[j][1] *= quick_gelu_slope(bf16_high(held.v[h][j]));
    out[j] = bf16x2(v[j][0], v[j][1]);
  }
  if (row >= p.m || column + 8 * t >= p.n) return;
  *(u4 *)((Bf16 *)p.y + (long)row * p.ldy + column + 8 * t) = out;
  if constexpr (END == GELU) *(u4 *)(p.pre + (long)row * p.ldpre + column + 8 * t) = pre;
}

// PRODUCT_KERNEL is a kernel that does WORK with a block of WARPS warps, one a multiprocessor.
#define PRODUCT_PARAMETERS                                                                                                                     \
  void *y, Bf16 *pre, const Bf16 *x, const Bf16 *w, const float *bias, const float *add, int m, int n, int k, int ldy, int ldpre, int ldx,    \
      int ldadd, int panel, const State *state, u64 seed, u32 site, u32 threshold, float scale, u32 nodes, u32 inverse, u32 upward
#define PRODUCT                                                                                                                                \
  Product { y, pre, x, w, bias, add, m, n, k, ldy, ldpre, ldx, ldadd, panel, {seed, site, threshold, scale}, nodes, inverse, state, upward }
#define PRODUCT_KERNEL(NAME, WARPS, WORK) \
  KERNEL __launch_bounds__(32 * (WARPS), 1) NAME(PRODUCT_PARAMETERS) { WORK(PRODUCT); }
