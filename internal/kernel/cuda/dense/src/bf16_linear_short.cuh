// Short sums with results in bf16: a row has at most 128 terms. Rows pass through registers only,
// read straight from memory while the tile before is multiplied, so that shared memory carries
// nothing but the weight; results in bf16 leave registers enough for that. Those in fp32, and
// longer sums, are bf16_linear_ring.cuh's.
//
// What a reader could break: who holds which term. Of each chunk of 32 terms lane (g, t) reads
// terms 8t..8t+7 of rows g and g+8 in one vector. A tensor core numbers terms otherwise, but any
// order does as long as B keeps to it, so B lies in shared memory as the lanes read it: of the 32
// vectors for tile j and chunk c, vector l holds terms 32c+8t..32c+8t+7 of the column that lane g
// stands for in tile j.
#pragma once
#include "bf16_linear.cuh"

constexpr int shortWarps = 8, shortTiles = 2;

// Natural is the panel's order: the chunks of a tile one after the other, the terms of a vector as
// W has them.
template <int CHUNKS> struct Natural {
  static constexpr int chunks = CHUNKS;
  __device__ __forceinline__ int term(int c, int t, int r) const { return 32 * c + 8 * t + r; }
  __device__ __forceinline__ int place(int spot, int c, int t) const { return (spot / 8 * CHUNKS + c) * 32 + spot % 8 * 4 + t; }
};

// bring_panel fills the panel from W[n,k]: a vector is eight terms of one row of W. Rows and terms
// that W lacks are zeros.
template <int CHUNKS> __device__ __forceinline__ void bring_panel(const Product &p, int column0, Natural<CHUNKS> l) {
  const int pieces = p.panel * CHUNKS * 4;
#pragma unroll 8
  for (int i = threadIdx_x; i < pieces; i += 32 * shortWarps) {
    int octet = i % (4 * CHUNKS), column = i / (4 * CHUNKS);
    u4 v = {0, 0, 0, 0};
    if (column0 + column < p.n && 8 * octet < p.k) v = *(const u4 *)(p.w + (long)(column0 + column) * p.k + 8 * octet);
    panel[l.place(spot_of<false>(column), octet / 4, octet % 4)] = v;
  }
}

// Vectors is what a lane holds of one chunk of a tile of rows: [i][h] is row 16i + 8h + g.
struct Vectors { u4 v[shortTiles][2]; };

__device__ __forceinline__ void fetch(Vectors &to, const Product &p, int row0, int chunk) {
  const int g = threadIdx_x % 32 / 4, term = 32 * chunk + threadIdx_x % 4 * 8, at = term < p.k ? term : 0;
  row0 = row0 < 0 ? 0 : row0;
#pragma unroll
  for (int i = 0; i < shortTiles; i++)
#pragma unroll
    for (int h = 0; h < 2; h++) to.v[i][h] = stream4(p.x + (long)least(row0 + 16 * i + 8 * h + g, p.m - 1) * p.ldx + at);
}

// multiply adds the products of a chunk with four tiles of the panel; b is their first vector for
// this lane.
template <int CHUNKS> __device__ __forceinline__ void multiply(Sums<shortTiles> &to, const Vectors &a, const u4 *b) {
  u4 w[4];
#pragma unroll
  for (int j = 0; j < 4; j++) w[j] = b[32 * CHUNKS * j];
#pragma unroll
  for (int half = 0; half < 4; half += 2)
#pragma unroll
    for (int j = 0; j < 4; j++)
#pragma unroll
      for (int i = 0; i < shortTiles; i++) {
        float(&c)[4] = to.v[i][j];
        mma_bf16(c[0], c[1], c[2], c[3], a.v[i][0][half], a.v[i][1][half], a.v[i][0][half + 1], a.v[i][1][half + 1], w[j][half], w[j][half + 1]);
      }
}

// finish_biased writes 16 rows of a block of columns. bias begins at its first column.
template <int END>
__device__ __forceinline__ void finish_biased(const float (&sums)[4][4], const Held<END> &held, const Product &p, const float *bias, int row0, int column) {
  const int g = threadIdx_x % 32 / 4, t = threadIdx_x % 4;
#pragma unroll
  for (int h = 0; h < 2; h++) {
    float v[4][2];
#pragma unroll
    for (int j = 0; j < 4; j++) v[j][0] = sums[j][2 * h], v[j][1] = sums[j][2 * h + 1];
    if (END != GELU_GRAD) {
      f4 add[2] = {load4(bias + 8 * t), load4(bias + 8 * t + 4)};
#pragma unroll
      for (int j = 0; j < 4; j++) v[j][0] += add[j / 2][j % 2 * 2], v[j][1] += add[j / 2][j % 2 * 2 + 1];
    }
    finish_row(v, held, h, p, row0 + 8 * h + g, column);
  }
}

// short_sums is the block's work where a row has at most 32·CHUNKS terms: a warp keeps a tile of
// rows in registers, goes through the panel's columns, and has the next tile under way meanwhile.
template <int END, bool TURNED, int CHUNKS> __device__ __forceinline__ void short_sums(const Product &p) {
  static_assert(END != PLAIN, "results in bf16");
  const int lane = threadIdx_x % 32, column0 = blockIdx_y * p.panel, columns = p.n - column0 < p.panel ? p.n - column0 : p.panel;
  Sweep<shortWarps, 16 * shortTiles> sweep(p);
  Vectors next[CHUNKS];
#pragma unroll
  for (int c = 0; c < CHUNKS; c++) fetch(next[c], p, sweep.row(0), c);
  float *bias = (float *)(panel + p.panel * CHUNKS * 4);
  bring_bias<32 * shortWarps>(bias, p, column0);
  if constexpr (TURNED)
    bring_turned_panel<false, 32 * shortWarps>(p, column0, Natural<CHUNKS>());
  else
    bring_panel(p, column0, Natural<CHUNKS>());
  sync();
#pragma unroll 1
  for (; sweep.tile < sweep.count; sweep.tile += sweep.step) {
    const int row0 = sweep.row(0), nextRow = sweep.row(1);
    Vectors rows[CHUNKS];
#pragma unroll
    for (int c = 0; c < CHUNKS; c++) rows[c] = next[c];
#pragma unroll
    for (int c = 0; c < CHUNKS; c++) fetch(next[c], p, nextRow, c);
    Held<END> held[shortTiles], ahead[shortTiles]; // one block of columns ahead
    auto hold_ahead = [&](int column) {
#pragma unroll
      for (int i = 0; i < shortTiles; i++) hold(ahead[i], p, row0 + 16 * i, column0 + column);
    };
    hold_ahead(0);
    const u4 *b = panel + lane;
#pragma unroll 1
    for (int column = 0; column < columns; column += 32, b += 4 * CHUNKS * 32) {
#pragma unroll
      for (int i = 0; i < shortTiles; i++) held[i] = ahead[i];
      hold_ahead(column + 32);
      Sums<shortTiles> sums = {};
#pragma unroll
      for (int c = 0; c < CHUNKS; c++) multiply<CHUNKS>(sums, rows[c], b + c * 32);
#pragma unroll
      for (int i = 0; i < shortTiles; i++) finish_biased(sums.v[i], held[i], p, bias + column, row0 + 16 * i, column0 + column);
    }
  }
}

// The kernels of one end, for up to 64 and 128 terms.
#define SHORT_PRODUCTS(NAME, END, TURNED)                                    \
  PRODUCT_KERNEL(NAME##_short_64, shortWarps, (short_sums<END, TURNED, 2>))  \
  PRODUCT_KERNEL(NAME##_short_128, shortWarps, (short_sums<END, TURNED, 4>))
