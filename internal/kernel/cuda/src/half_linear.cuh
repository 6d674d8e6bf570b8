// Products Y[M,N] = X[M,K]·B of rows in bf16 with a weight that stays in shared memory. Each row is read once and each result
// written once.
//
// What a reader could break: who holds which term and which column. A warp takes 16·TILES rows, which it alone copies into a stage of its own
// and reads from there, so warps never wait for each other. Lane (g, t) = (l/4, l%4). A stage holds chunks of 32 terms, a row's four
// vectors of a chunk side by side, vector q of row r at q ^ r/2%4: eight rows of one q lie in different banks.
// B lies in shared memory as the lanes read it: of the 32 vectors for tile j and chunk c, the one for lane (g, t) is at 4g + (t ^ g/2) and
// holds terms 2t and 2t+1 of each of the chunk's four octets, of the column that g stands for in tile j. Four tiles are a block of 32
// columns. For results in fp32 tile j's column i is column 16·(j/2) + 4·(i/2) + 2·(j%2) + i%2, so that a lane ends up with columns 4t..4t+3
// of both halves of the block; in bf16 it is column 8·(i/2) + 2j + i%2, and the lane has columns 8t..8t+7: whole vectors.
//
// Rows and terms that X lacks are read from its nearest row and first terms: what they give is not written, or multiplied by zeros.
#pragma once
#include "drop.cuh"
#include "half_linear_ptx.cuh"

// A vector of B that a warp reads serves all its tiles of rows. Short sums are many warps, whose latencies overlap; where the end takes many
// registers, more warps with one tile each. Long sums keep many sums.
constexpr int plainWarps = 16, plainTiles = 1, shortWarps = 12, shortTiles = 2, longWarps = 8, longTiles = 2, longStages = 4;

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

// Sweep is a warp's way through the tiles of ROWS rows: neighbouring warps of the grid take neighbouring tiles.
template <int WARPS, int ROWS> struct Sweep {
  int tile, step, count, last;
  __device__ __forceinline__ Sweep(const Product &p)
      : tile(blockIdx_x * WARPS + threadIdx_x / 32), step(gridDim_x * WARPS), count((p.m + ROWS - 1) / ROWS), last(p.upward ? count - 1 : 0) {}
  // row is the first row of the tile `ahead` steps on; past the end, none of X's: copy_rows and hold read the nearest.
  __device__ __forceinline__ int row(int ahead) const {
    const int at = tile + ahead * step;
    return (last ? last - at : at) * ROWS;
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

// column_of is the column that stands at a spot of the panel's tiles, tile*8 + the tile's column; spot_of is its inverse.
template <bool WIDE> __device__ __forceinline__ int column_of(int spot) {
  const int block = spot / 32 * 32, j = spot % 32 / 8, i = spot % 8;
  return WIDE ? block + j / 2 * 16 + i / 2 * 4 + j % 2 * 2 + i % 2 : block + i / 2 * 8 + j * 2 + i % 2;
}
template <bool WIDE> __device__ __forceinline__ int spot_of(int column) {
  const int block = column / 32 * 32, c = column % 32;
  return WIDE ? block + c / 16 * 16 + c / 2 % 2 * 8 + c % 16 / 4 * 2 + c % 2 : block + c % 8 / 2 * 8 + c / 8 * 2 + c % 2;
}

// Panel says where the 32 vectors of tile j and chunk c are: at 32·(j·tile + c·chunk).
struct Panel {
  int chunks, tile, chunk;
  __device__ __forceinline__ int place(int spot, int c, int t) const { return (spot / 8 * tile + c * chunk) * 32 + spot % 8 * 4 + (t ^ spot % 8 / 2); }
};

// bring_panel fills the panel from W[n,k]: a thread turns the four octets of a chunk of one row of W. Rows and terms that W lacks are zeros.
template <bool WIDE, int THREADS> __device__ __forceinline__ void bring_panel(u4 *panel, const Product &p, int column0, Panel l) {
  const int pieces = p.panel * l.chunks;
#pragma unroll 2
  for (int i = threadIdx_x; i < pieces; i += THREADS) {
    const int spot = i % p.panel, c = i / p.panel, column = column0 + column_of<WIDE>(spot);
    u4 octet[4];
#pragma unroll
    for (int o = 0; o < 4; o++) {
      octet[o] = u4{0, 0, 0, 0};
      if (column < p.n && 32 * c + 8 * o < p.k) octet[o] = *(const u4 *)(p.w + (long)column * p.k + 32 * c + 8 * o);
    }
#pragma unroll
    for (int t = 0; t < 4; t++) panel[l.place(spot, c, t)] = u4{octet[0][t], octet[1][t], octet[2][t], octet[3][t]};
  }
}

// bring_turned_panel fills it from W[k,n]: a thread turns eight terms of eight columns.
template <bool WIDE, int THREADS> __device__ __forceinline__ void bring_turned_panel(u4 *panel, const Product &p, int column0, Panel l) {
  const int octets = p.panel / 8, pieces = octets * l.chunks * 4;
  for (int i = threadIdx_x; i < pieces; i += THREADS) {
    int t = i % 4, octet = i / 4 % octets, c = i / 4 / octets;
    u4 row[8];
#pragma unroll
    for (int r = 0; r < 8; r++) {
      int term = 32 * c + r / 2 * 8 + 2 * t + r % 2, column = column0 + 8 * octet;
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

__device__ __forceinline__ int least(int a, int b) { return a < b ? a : b; }

// copy_rows starts the copy of one chunk of a tile of rows into its stage.
template <int TILES> __device__ __forceinline__ void copy_rows(u32 to, const Product &p, int row0, int chunk) {
  const int g = threadIdx_x % 32 / 4, t = threadIdx_x % 4, term = 32 * chunk + 8 * t;
  const Half *from = p.x + (term < p.k ? term : 0);
  row0 = row0 < 0 ? 0 : row0;
#pragma unroll
  for (int i = 0; i < 2 * TILES; i++) copy16(to + (8 * i + g) * 64 + (t ^ g / 2) * 16, from + (long)least(row0 + 8 * i + g, p.m - 1) * p.ldx, true);
}

// Rows is what a lane holds of one chunk of a tile of rows: [i][s] are a tensor core's four words for rows 16i..16i+15 and terms 16s..16s+15.
template <int TILES> struct Rows { u4 v[TILES][2]; };

template <int TILES> __device__ __forceinline__ void take_rows(Rows<TILES> &to, u32 stage) {
  const int lane = threadIdx_x % 32, at = lane % 16 * 64 + (lane / 16 ^ lane % 8 / 2) * 16;
#pragma unroll
  for (int i = 0; i < TILES; i++)
#pragma unroll
    for (int s = 0; s < 2; s++) to.v[i][s] = upright4(stage + i * 1024 + (at ^ 32 * s));
}

// Sums are a lane's part of a block of 32 columns: [i][j][2h+e] is row 16i + 8h + g, column 2t+e of tile j.
template <int TILES> struct Sums { float v[TILES][4][4]; };

// begin_sums starts from the bias, which begins at the block's first column.
template <int END, int TILES> __device__ __forceinline__ void begin_sums(Sums<TILES> &to, const float *bias) {
  const int t = threadIdx_x % 4;
  f4 first[2] = {};
  if (END == PLAIN)
    first[0] = load4(bias + 4 * t), first[1] = load4(bias + 16 + 4 * t);
  else if (END != GELU_GRAD)
    first[0] = load4(bias + 8 * t), first[1] = load4(bias + 8 * t + 4);
#pragma unroll
  for (int i = 0; i < TILES; i++)
#pragma unroll
    for (int j = 0; j < 4; j++)
#pragma unroll
      for (int e = 0; e < 4; e++) to.v[i][j][e] = first[j / 2][j % 2 * 2 + e % 2];
}

// multiply adds the products of a chunk with four tiles of the panel; b is their first vector for this lane.
template <int STEP, int TILES> __device__ __forceinline__ void multiply(Sums<TILES> &to, const Rows<TILES> &a, const u4 *b) {
  u4 w[4];
#pragma unroll
  for (int j = 0; j < 4; j++) w[j] = b[32 * STEP * j];
#pragma unroll
  for (int s = 0; s < 2; s++)
#pragma unroll
    for (int j = 0; j < 4; j++)
#pragma unroll
      for (int i = 0; i < TILES; i++) {
        float(&c)[4] = to.v[i][j];
        const u4 &r = a.v[i][s];
        mma_bf16(c[0], c[1], c[2], c[3], r.x, r.y, r.z, r.w, w[j][2 * s], w[j][2 * s + 1]);
      }
}

// Held is what the end of 16 rows of a block of columns reads from memory: pre, or what is added.
template <int END> struct Held {};
template <> struct Held<GELU_GRAD> { u4 v[2]; };
template <> struct Held<PLAIN> { f4 v[2][2]; };

template <int END> __device__ __forceinline__ void hold(Held<END> &to, const Product &p, int row0, int column) {
  const int g = threadIdx_x % 32 / 4, t = threadIdx_x % 4;
  row0 = row0 < 0 ? 0 : row0;
#pragma unroll
  for (int h = 0; h < 2; h++) {
    const int row = least(row0 + 8 * h + g, p.m - 1);
    if constexpr (END == GELU_GRAD) to.v[h] = stream4(p.pre + (long)row * p.ldpre + least(column + 8 * t, p.n - 8));
    if constexpr (END == PLAIN)
#pragma unroll
      for (int j = 0; j < 2; j++) to.v[h][j] = stream4(p.add + (long)row * p.ldadd + least(column + 16 * j + 4 * t, p.n - 4), p.add);
  }
}

// keep drops or scales the eight sums of one row. Columns 4t..4t+3 of a half belong to two calls of Philox, which lanes t and t^2 make between
// them and then exchange what the other needs.
__device__ __forceinline__ void keep(float (&v)[4][2], const Product &p, u64 first, int row, int column) {
  u32 instance = (u32)((u64)(u32)row * p.inverse >> 32), node = row - instance * p.nodes;
  if (node >= p.nodes) instance++, node -= p.nodes; // the inverse is rounded down
  const int t = threadIdx_x % 4;
  const bool upper = t / 2;
  const Drop drop = {apart(p.drop.seed), p.drop.site, p.drop.threshold, p.drop.scale}; // the rounds' keys are made here: kept, they spill
  const Words made = drop_words(drop, first + instance, node, (p.n + 31) / 32, column / 32, t % 2 * 2 + t / 2);
  Words bits; // word j has columns 16·(j/2) + 4t + 2·(j%2) and the next
#pragma unroll
  for (int a = 0; a < 4; a += 2) {
    const u32 low = made.w[a], high = made.w[a + 1], other = shfl_xor(upper ? low : high, 2);
    bits.w[a] = upper ? other : low, bits.w[a + 1] = upper ? high : other;
  }
#pragma unroll
  for (int j = 0; j < 4; j++)
#pragma unroll
    for (int e = 0; e < 2; e++) v[j][e] = drop_keeps(p.drop, bits, j, e) ? v[j][e] * p.drop.scale : 0;
}

// finish writes 16 rows of a block of columns.
template <int END>
__device__ __forceinline__ void finish(const float (&sums)[4][4], const Held<END> &held, const Product &p, u64 first, int row0, int column) {
  const int g = threadIdx_x % 32 / 4, t = threadIdx_x % 4;
#pragma unroll
  for (int h = 0; h < 2; h++) {
    const int row = row0 + 8 * h + g;
    float v[4][2];
#pragma unroll
    for (int j = 0; j < 4; j++) v[j][0] = sums[j][2 * h], v[j][1] = sums[j][2 * h + 1];
    if constexpr (END == PLAIN) {
      if (p.drop.threshold) keep(v, p, first, row, column);
      float *to = (float *)p.y + (long)row * p.ldy + column + 4 * t;
#pragma unroll
      for (int j = 0; j < 2; j++)
        if (row < p.m && column + 16 * j + 4 * t < p.n) store4(to + 16 * j, f4{v[2 * j][0], v[2 * j][1], v[2 * j + 1][0], v[2 * j + 1][1]} + held.v[h][j]);
    } else {
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

extern __shared__ u4 panel[] __attribute__((aligned(1024)));

// Room is a block's shared memory: the panel, each warp's stages, the bias.
template <int WARPS> struct Room {
  u32 stages; // this warp's
  float *bias;
  __device__ __forceinline__ Room(const Product &p, int chunks, int stageBytes) {
    const int panelBytes = p.panel * chunks * 64;
    stages = shared_at(panel) + panelBytes + threadIdx_x / 32 * stageBytes;
    bias = (float *)((char *)panel + panelBytes + WARPS * stageBytes);
  }
  template <int END, bool TURNED> __device__ __forceinline__ void fill(const Product &p, int column0, Panel l) {
    for (int i = threadIdx_x; i < p.panel; i += 32 * WARPS) bias[i] = p.bias && column0 + i < p.n ? p.bias[column0 + i] : 0;
    if (TURNED)
      bring_turned_panel<END == PLAIN, 32 * WARPS>(panel, p, column0, l);
    else
      bring_panel<END == PLAIN, 32 * WARPS>(panel, p, column0, l);
    sync();
  }
};

// lane_panel is where a lane's vectors begin.
__device__ __forceinline__ const u4 *lane_panel() {
  const int lane = threadIdx_x % 32;
  return panel + (lane ^ lane / 8);
}

// short_sums is the block's work where a row has at most 32·CHUNKS terms: a warp keeps a tile of rows in registers, goes through the panel's
// columns, and has the next tile under way meanwhile.
template <int END, bool TURNED, int CHUNKS> __device__ __forceinline__ void short_sums(const Product &p) {
  constexpr int warps = END == PLAIN ? plainWarps : shortWarps, tiles = END == PLAIN ? plainTiles : shortTiles;
  constexpr int tileRows = 16 * tiles, chunkBytes = 64 * tileRows;
  const int column0 = blockIdx_y * p.panel, columns = p.n - column0 < p.panel ? p.n - column0 : p.panel;
  Sweep<warps, tileRows> sweep(p);
  Room<warps> room(p, CHUNKS, CHUNKS * chunkBytes);
  auto copy = [&](int row0) {
#pragma unroll
    for (int c = 0; c < CHUNKS; c++) copy_rows<tiles>(room.stages + c * chunkBytes, p, row0, c);
    commit_copies();
  };
  Held<END> ahead[tiles];
  auto hold_ahead = [&](int row0, int column) {
#pragma unroll
    for (int i = 0; i < tiles; i++) hold(ahead[i], p, row0 + 16 * i, column0 + column);
  };
  copy(sweep.row(0));
  hold_ahead(sweep.row(0), 0);
  room.template fill<END, TURNED>(p, column0, Panel{CHUNKS, CHUNKS, 1});
  const u64 first = END == PLAIN && p.drop.threshold ? p.state->instances : 0;
#pragma unroll 1
  for (; sweep.tile < sweep.count; sweep.tile += sweep.step) {
    const int row0 = sweep.row(0), nextRow = sweep.row(1);
    Rows<tiles> rows[CHUNKS];
    wait_copies<0>();
    syncwarp(); // every lane's part has come
#pragma unroll
    for (int c = 0; c < CHUNKS; c++) take_rows(rows[c], room.stages + c * chunkBytes);
    syncwarp(); // and has been read
    copy(nextRow);
    const u4 *b = lane_panel();
#pragma unroll 1
    for (int column = 0; column < columns; column += 32, b += 4 * CHUNKS * 32) {
      Held<END> held[tiles];
#pragma unroll
      for (int i = 0; i < tiles; i++) held[i] = ahead[i];
      const bool last = column + 32 >= columns;
      hold_ahead(last ? nextRow : row0, last ? 0 : column + 32);
      Sums<tiles> sums;
      begin_sums<END>(sums, room.bias + column);
#pragma unroll
      for (int c = 0; c < CHUNKS; c++) multiply<CHUNKS>(sums, rows[c], b + c * 32);
#pragma unroll
      for (int i = 0; i < tiles; i++) finish(sums.v[i], held[i], p, first, row0 + 16 * i, column0 + column);
    }
  }
  wait_copies<0>();
}

// long_sums is the block's work for rows of any length and a panel of 32·BLOCKS columns: a warp keeps the sums of a tile of rows in
// registers and goes through the terms, copies longStages-1 chunks ahead of the arithmetic and into the next tile.
template <int END, bool TURNED, int BLOCKS> __device__ __forceinline__ void long_sums(const Product &p) {
  constexpr int tileRows = 16 * longTiles, chunkBytes = 64 * tileRows, ahead = 2;
  const int column0 = blockIdx_y * p.panel, chunks = (p.k + 127) / 128 * 4;
  static_assert(longStages == 4, "rows of a panel are padded to four chunks");
  Sweep<longWarps, tileRows> sweep(p);
  Room<longWarps> room(p, chunks, longStages * chunkBytes);
#pragma unroll
  for (int c = 0; c < longStages - 1; c++) {
    copy_rows<longTiles>(room.stages + c * chunkBytes, p, sweep.row(0), c);
    commit_copies();
  }
  room.template fill<END, TURNED>(p, column0, Panel{chunks, 1, 4 * BLOCKS});
  const u64 first = END == PLAIN && p.drop.threshold ? p.state->instances : 0;
#pragma unroll 1
  for (; sweep.tile < sweep.count; sweep.tile += sweep.step) {
    const int row0 = sweep.row(0);
    Held<END> held[ahead]; // of 16 rows of a block: all rows of the first, then of the next
    auto hold_part = [&](int part, int row0) { hold(held[part % ahead], p, row0 + part % longTiles * 16, column0 + part / longTiles * 32); };
#pragma unroll
    for (int part = 0; part < ahead; part++) hold_part(part, row0);
    Sums<longTiles> sums[BLOCKS];
#pragma unroll
    for (int block = 0; block < BLOCKS; block++) begin_sums<END>(sums[block], room.bias + 32 * block);
    const u4 *b = lane_panel();
#pragma unroll 1
    for (int chunk = 0; chunk < chunks; chunk += longStages, b += longStages * 4 * BLOCKS * 32) {
      const bool last = chunk + longStages == chunks;
      const int nextRow = last ? sweep.row(1) : row0, nextChunk = last ? 0 : chunk + longStages;
#pragma unroll
      for (int c = 0; c < longStages; c++) {
        wait_copies<longStages - 2>();
        syncwarp(); // this chunk is every lane's, and the stage of the chunk before is free
        copy_rows<longTiles>(room.stages + (c + longStages - 1) % longStages * chunkBytes, p, c ? nextRow : row0, c ? nextChunk + c - 1 : chunk + longStages - 1);
        commit_copies();
        Rows<longTiles> rows;
        take_rows(rows, room.stages + c * chunkBytes);
#pragma unroll
        for (int block = 0; block < BLOCKS; block++) multiply<1>(sums[block], rows, b + (c * BLOCKS + block) * 4 * 32);
      }
    }
    const int doneRow = apart(row0); // addresses are computed anew: kept through the sums, they spill
#pragma unroll
    for (int part = 0; part < BLOCKS * longTiles; part++) {
      const int i = part % longTiles, block = part / longTiles;
      finish(sums[block].v[i], held[part % ahead], p, first, doneRow + 16 * i, column0 + 32 * block);
      if (part + ahead < BLOCKS * longTiles) hold_part(part + ahead, doneRow);
    }
  }
  wait_copies<0>();
}

// The kernels of one end: short sums of up to 64 and 128 terms, long sums for panels of 64 and 128 columns.
#define PRODUCT_PARAMETERS                                                                                                                     \
  void *y, Half *pre, const Half *x, const Half *w, const float *bias, const float *add, int m, int n, int k, int ldy, int ldpre, int ldx,    \
      int ldadd, int panel, const State *state, u64 seed, u32 site, u32 threshold, float scale, u32 nodes, u32 inverse, u32 upward
#define PRODUCT                                                                                                                                \
  Product { y, pre, x, w, bias, add, m, n, k, ldy, ldpre, ldx, ldadd, panel, {seed, site, threshold, scale}, nodes, inverse, state, upward }
#define PRODUCT_KERNEL(NAME, WARPS, WORK) \
  KERNEL __launch_bounds__(32 * (WARPS), 1) NAME(PRODUCT_PARAMETERS) { WORK(PRODUCT); }
#define PRODUCTS(NAME, END, TURNED)                                                                     \
  PRODUCT_KERNEL(NAME##_short_64, END == PLAIN ? plainWarps : shortWarps, (short_sums<END, TURNED, 2>))  \
  PRODUCT_KERNEL(NAME##_short_128, END == PLAIN ? plainWarps : shortWarps, (short_sums<END, TURNED, 4>)) \
  PRODUCT_KERNEL(NAME##_long_64, longWarps, (long_sums<END, TURNED, 2>))                                 \
  PRODUCT_KERNEL(NAME##_long_128, longWarps, (long_sums<END, TURNED, 4>))
