// Products Y[M,N] = X[M,K]·B of rows in bf16 with a weight that stays in shared memory. Rows pass through registers only: each
// is read once and each result written once.
//
// What a reader could break: who holds which term and which column. A warp takes 16·TILES rows; lane (g, t) = (l/4, l%4). Of each
// chunk of 32 terms lane (g, t) reads terms 8t..8t+7 of rows g and g+8 in one vector. A tensor core numbers terms otherwise, but
// any order does as long as B keeps to it, so B lies in shared memory as the lanes read it: of the 32 vectors for tile j and
// chunk c, vector l holds terms 32c+8t..32c+8t+7 of the column that lane g stands for in tile j. Four tiles are a block of 32
// columns. For results in fp32 tile j's column i is column 8j+i, which is how dropout's calls are laid out; for results in
// bf16 it is column 8·(i/2) + 2j + i%2, so that a lane ends up with columns 8t..8t+7: one vector.
//
// Rows and terms that X lacks are read from its last row and first terms: what they give is not written, or multiplied by zeros.
#pragma once
#include "drop.cuh"
#include "half_linear_ptx.cuh"

constexpr int blockWarps = 8, blockThreads = 32 * blockWarps, tiles = 2, tileRows = 16 * tiles;

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
  Half *pre;
  const Half *x, *w; // w is [n,k], or turned [k,n]: its rows are the terms
  const float *bias, *add;
  int m, n, k, ldy, ldpre, ldx, ldadd, panel; // panel: columns a block takes, a multiple of 32
  Drop drop;
  u32 nodes, inverse; // rows an instance; 0xffffffff/nodes
  const State *state;
  u32 upward; // from the last rows to the first
};

// Sweep is a warp's way through the tiles of rows: neighbouring warps of the grid take neighbouring tiles.
struct Sweep {
  int tile, step, count, last;
  __device__ __forceinline__ Sweep(const Product &p)
      : tile(blockIdx_x * blockWarps + threadIdx_x / 32), step(gridDim_x * blockWarps), count((p.m + tileRows - 1) / tileRows),
        last(p.upward ? count - 1 : 0) {}
  // row is the first row of the tile `ahead` steps on; past the end, none of X's: fetch reads the nearest.
  __device__ __forceinline__ int row(int ahead) const {
    const int at = tile + ahead * step;
    return (last ? last - at : at) * tileRows;
  }
};

// GELU as gelu.cuh has it, with the reciprocal that is one instruction: exact to a few units in fp32's last place, which bf16 does not see.
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

// spot is where in the panel's tiles a column of its block stands: tile*8 + the tile's column.
template <bool NATURAL> __device__ __forceinline__ int spot(int column) {
  return NATURAL ? column : column / 32 * 32 + column % 8 / 2 * 8 + column % 32 / 8 * 2 + column % 2;
}

// Panel says where the 32 vectors of tile j and chunk c are: at 32·(j·tile + c·chunk).
struct Panel { int chunks, tile, chunk; };

// bring_panel fills the panel from W[n,k]: a vector is eight terms of one row of W. Rows and terms that W lacks are zeros.
template <bool NATURAL> __device__ __forceinline__ void bring_panel(u4 *panel, const Product &p, int column0, Panel l) {
  const int pieces = p.panel * l.chunks * 4;
#pragma unroll 8
  for (int i = threadIdx_x; i < pieces; i += blockThreads) {
    int octet = i % (4 * l.chunks), column = i / (4 * l.chunks), at = spot<NATURAL>(column);
    u4 v = {0, 0, 0, 0};
    if (column0 + column < p.n && 8 * octet < p.k) v = *(const u4 *)(p.w + (long)(column0 + column) * p.k + 8 * octet);
    panel[(at / 8 * l.tile + octet / 4 * l.chunk) * 32 + at % 8 * 4 + octet % 4] = v;
  }
}

// bring_turned_panel fills it from W[k,n]: a thread turns eight terms of eight columns.
template <bool NATURAL> __device__ __forceinline__ void bring_turned_panel(u4 *panel, const Product &p, int column0, Panel l) {
  const int octets = p.panel / 8, pieces = octets * l.chunks * 4;
  for (int i = threadIdx_x; i < pieces; i += blockThreads) {
    int t = i % 4, octet = i / 4 % octets, c = i / 4 / octets;
    u4 row[8];
#pragma unroll
    for (int r = 0; r < 8; r++) {
      int term = 32 * c + 8 * t + r, column = column0 + 8 * octet;
      row[r] = u4{0, 0, 0, 0};
      if (term < p.k && column < p.n) row[r] = *(const u4 *)(p.w + (long)term * p.n + column);
    }
#pragma unroll
    for (int e = 0; e < 8; e++) {
      u4 v;
#pragma unroll
      for (int q = 0; q < 4; q++)
        v[q] = e % 2 ? high_halves(row[2 * q][e / 2], row[2 * q + 1][e / 2]) : low_halves(row[2 * q][e / 2], row[2 * q + 1][e / 2]);
      int at = spot<NATURAL>(8 * octet + e);
      panel[(at / 8 * l.tile + c * l.chunk) * 32 + at % 8 * 4 + t] = v;
    }
  }
}

// Rows is what a lane holds of one chunk of a tile of rows: [i][h] is row 16i + 8h + g.
struct Rows { u4 v[tiles][2]; };

__device__ __forceinline__ int least(int a, int b) { return a < b ? a : b; }

__device__ __forceinline__ void fetch(Rows &to, const Product &p, int row0, int chunk) {
  const int g = threadIdx_x % 32 / 4, term = 32 * chunk + threadIdx_x % 4 * 8, at = term < p.k ? term : 0;
  row0 = row0 < 0 ? 0 : row0;
#pragma unroll
  for (int i = 0; i < tiles; i++)
#pragma unroll
    for (int h = 0; h < 2; h++) to.v[i][h] = stream4(p.x + (long)least(row0 + 16 * i + 8 * h + g, p.m - 1) * p.ldx + at);
}

// Sums are a lane's part of a block of 32 columns: [i][j][2h+e] is row 16i + 8h + g, column 2t+e of tile j.
struct Sums { float v[tiles][4][4]; };

// multiply adds the products of a chunk with four tiles of the panel; b is their first vector for this lane.
template <int STEP> __device__ __forceinline__ void multiply(Sums &to, const Rows &a, const u4 *b) {
  u4 w[4];
#pragma unroll
  for (int j = 0; j < 4; j++) w[j] = b[32 * STEP * j];
#pragma unroll
  for (int half = 0; half < 4; half += 2)
#pragma unroll
    for (int j = 0; j < 4; j++)
#pragma unroll
      for (int i = 0; i < tiles; i++)
        mma_bf16(to.v[i][j][0], to.v[i][j][1], to.v[i][j][2], to.v[i][j][3], a.v[i][0][half], a.v[i][1][half], a.v[i][0][half + 1],
                 a.v[i][1][half + 1], w[j][half], w[j][half + 1]);
}

// Held is what the end of 16 rows of a block of columns reads from memory: pre, or what is added.
template <int END> struct Held {};
template <> struct Held<GELU_GRAD> { u4 v[2]; };
template <> struct Held<PLAIN> { f2 v[2][4]; };

template <int END> __device__ __forceinline__ void hold(Held<END> &to, const Product &p, int row0, int column) {
  const int g = threadIdx_x % 32 / 4, t = threadIdx_x % 4;
#pragma unroll
  for (int h = 0; h < 2; h++) {
    const int row = least(row0 + 8 * h + g, p.m - 1);
    if constexpr (END == GELU_GRAD) to.v[h] = stream4(p.pre + (long)row * p.ldpre + least(column + 8 * t, p.n - 8));
    if constexpr (END == PLAIN)
#pragma unroll
      for (int j = 0; j < 4; j++) to.v[h][j] = stream2(p.add + (long)row * p.ldadd + least(column + 8 * j + 2 * t, p.n - 2), p.add);
  }
}

// keep drops or scales the eight sums of one row, which one call of Philox serves.
__device__ __forceinline__ void keep(float (&v)[4][2], const Product &p, u64 first, int row, int column) {
  u32 instance = (u32)((u64)(u32)row * p.inverse >> 32), node = row - instance * p.nodes;
  if (node >= p.nodes) instance++, node -= p.nodes; // the inverse is rounded down
  const Words bits = drop_words(p.drop, first + instance, node, (p.n + 31) / 32, column / 32, threadIdx_x % 4);
#pragma unroll
  for (int j = 0; j < 4; j++)
#pragma unroll
    for (int e = 0; e < 2; e++) v[j][e] = drop_keeps(p.drop, bits, j, e) ? v[j][e] * p.drop.scale : 0;
}

// finish writes 16 rows of a block of columns. bias begins at its first column.
template <int END>
__device__ __forceinline__ void finish(const float (&sums)[4][4], const Held<END> &held, const Product &p, const float *bias, u64 first, int row0, int column) {
  const int g = threadIdx_x % 32 / 4, t = threadIdx_x % 4;
#pragma unroll
  for (int h = 0; h < 2; h++) {
    const int row = row0 + 8 * h + g;
    float v[4][2];
#pragma unroll
    for (int j = 0; j < 4; j++) v[j][0] = sums[j][2 * h], v[j][1] = sums[j][2 * h + 1];
    if constexpr (END == PLAIN) {
#pragma unroll
      for (int j = 0; j < 4; j++) {
        f2 add = *(const f2 *)(bias + 8 * j + 2 * t);
        v[j][0] += add.x, v[j][1] += add.y;
      }
      if (p.drop.threshold) keep(v, p, first, row, column);
      if (row >= p.m) continue;
      float *to = (float *)p.y + (long)row * p.ldy + column + 2 * t;
#pragma unroll
      for (int j = 0; j < 4; j++)
        if (column + 8 * j + 2 * t < p.n) *(f2 *)(to + 8 * j) = f2{v[j][0], v[j][1]} + held.v[h][j];
    } else {
      if (END != GELU_GRAD) {
        f4 add[2] = {load4(bias + 8 * t), load4(bias + 8 * t + 4)};
#pragma unroll
        for (int j = 0; j < 4; j++) v[j][0] += add[j / 2][j % 2 * 2], v[j][1] += add[j / 2][j % 2 * 2 + 1];
      }
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
      if (row >= p.m || column + 8 * t >= p.n) continue;
      *(u4 *)((Half *)p.y + (long)row * p.ldy + column + 8 * t) = out;
      if constexpr (END == GELU) *(u4 *)(p.pre + (long)row * p.ldpre + column + 8 * t) = pre;
    }
  }
}

extern __shared__ u4 panel[] __attribute__((aligned(16)));

// begin_block fills panel and bias and returns the bias's place, behind the panel.
template <int END, bool TURNED> __device__ __forceinline__ const float *begin_block(const Product &p, int column0, Panel l) {
  float *bias = (float *)(panel + p.panel * l.chunks * 4);
  for (int i = threadIdx_x; i < p.panel; i += blockThreads) bias[i] = p.bias && column0 + i < p.n ? p.bias[column0 + i] : 0;
  if (TURNED)
    bring_turned_panel<END == PLAIN>(panel, p, column0, l);
  else
    bring_panel<END == PLAIN>(panel, p, column0, l);
  sync();
  return bias;
}

// short_sums is the block's work where a row has at most 32·CHUNKS terms: a warp keeps a tile of rows in registers, goes through the panel's
// columns, and has the next tile under way meanwhile.
template <int END, bool TURNED, int CHUNKS> __device__ __forceinline__ void short_sums(const Product &p) {
  const int lane = threadIdx_x % 32, column0 = blockIdx_y * p.panel, columns = p.n - column0 < p.panel ? p.n - column0 : p.panel;
  Sweep sweep(p);
  Rows next[CHUNKS];
#pragma unroll
  for (int c = 0; c < CHUNKS; c++) fetch(next[c], p, sweep.row(0), c);
  const float *bias = begin_block<END, TURNED>(p, column0, Panel{CHUNKS, CHUNKS, 1});
  const u64 first = END == PLAIN && p.drop.threshold ? p.state->instances : 0;
#pragma unroll 1
  for (; sweep.tile < sweep.count; sweep.tile += sweep.step) {
    const int row0 = sweep.row(0), nextRow = sweep.row(1);
    Rows rows[CHUNKS];
#pragma unroll
    for (int c = 0; c < CHUNKS; c++) rows[c] = next[c];
#pragma unroll
    for (int c = 0; c < CHUNKS; c++) fetch(next[c], p, nextRow, c);
    Held<END> held[tiles], ahead[tiles];
    auto hold_all = [&](Held<END>(&to)[tiles], int column) {
#pragma unroll
      for (int i = 0; i < tiles; i++) hold(to[i], p, row0 + 16 * i, column0 + column);
    };
    if (END == GELU_GRAD) hold_all(ahead, 0);
    const u4 *b = panel + lane;
#pragma unroll 1
    for (int column = 0; column < columns; column += 32, b += 4 * CHUNKS * 32) {
      if (END == GELU_GRAD) { // few registers: read one block of columns ahead
#pragma unroll
        for (int i = 0; i < tiles; i++) held[i] = ahead[i];
        hold_all(ahead, column + 32);
      } else
        hold_all(held, column);
      Sums sums = {};
#pragma unroll
      for (int c = 0; c < CHUNKS; c++) multiply<CHUNKS>(sums, rows[c], b + c * 32);
#pragma unroll
      for (int i = 0; i < tiles; i++) finish(sums.v[i], held[i], p, bias + column, first, row0 + 16 * i, column0 + column);
    }
  }
}

// long_sums is the block's work for rows of any length and a panel of 32·BLOCKS columns: a warp keeps the sums of a tile of rows in
// registers and goes through the terms, four chunks ahead of the arithmetic and into the next tile.
template <int END, bool TURNED, int BLOCKS> __device__ __forceinline__ void long_sums(const Product &p) {
  const int lane = threadIdx_x % 32, column0 = blockIdx_y * p.panel, chunks = (p.k + 127) / 128 * 4;
  Sweep sweep(p);
  Rows ring[4];
#pragma unroll
  for (int c = 0; c < 4; c++) fetch(ring[c], p, sweep.row(0), c);
  const float *bias = begin_block<END, TURNED>(p, column0, Panel{chunks, 1, 4 * BLOCKS});
  const u64 first = END == PLAIN && p.drop.threshold ? p.state->instances : 0;
#pragma unroll 1
  for (; sweep.tile < sweep.count; sweep.tile += sweep.step) {
    const int row0 = sweep.row(0);
    Sums sums[BLOCKS] = {};
    const u4 *b = panel + lane;
#pragma unroll 1
    for (int chunk = 0; chunk < chunks; chunk += 4, b += 4 * 4 * BLOCKS * 32) {
      const bool last = chunk + 4 == chunks;
      const int nextRow = last ? sweep.row(1) : row0, nextChunk = last ? 0 : chunk + 4;
#pragma unroll
      for (int c = 0; c < 4; c++) {
#pragma unroll
        for (int block = 0; block < BLOCKS; block++) multiply<1>(sums[block], ring[c], b + (c * BLOCKS + block) * 4 * 32);
        fetch(ring[c], p, nextRow, nextChunk + c);
      }
    }
#pragma unroll
    for (int block = 0; block < BLOCKS; block++)
#pragma unroll
      for (int i = 0; i < tiles; i++) {
        Held<END> held;
        hold(held, p, row0 + 16 * i, column0 + 32 * block);
        finish(sums[block].v[i], held, p, bias + 32 * block, first, row0 + 16 * i, column0 + 32 * block);
      }
  }
}

// The kernels of one end: short sums of up to 64 and 128 terms, long sums for panels of 64 and 128 columns.
#define PRODUCT_PARAMETERS                                                                                                                     \
  void *y, Half *pre, const Half *x, const Half *w, const float *bias, const float *add, int m, int n, int k, int ldy, int ldpre, int ldx,    \
      int ldadd, int panel, const State *state, u64 seed, u32 site, u32 threshold, float scale, u32 nodes, u32 inverse, u32 upward
#define PRODUCT                                                                                                                                \
  Product { y, pre, x, w, bias, add, m, n, k, ldy, ldpre, ldx, ldadd, panel, {seed, site, threshold, scale}, nodes, inverse, state, upward }
#define PRODUCT_KERNEL(NAME, WORK) \
  KERNEL __launch_bounds__(blockThreads, 1) NAME(PRODUCT_PARAMETERS) { WORK(PRODUCT); }
#define PRODUCTS(NAME, END, TURNED)                               \
  PRODUCT_KERNEL(NAME##_short_64, (short_sums<END, TURNED, 2>))   \
  PRODUCT_KERNEL(NAME##_short_128, (short_sums<END, TURNED, 4>))  \
  PRODUCT_KERNEL(NAME##_long_64, (long_sums<END, TURNED, 2>))     \
  PRODUCT_KERNEL(NAME##_long_128, (long_sums<END, TURNED, 4>))
