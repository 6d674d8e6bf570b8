// Long sums, and short ones with results in fp32: rows come through shared memory. Their ends and
// sums take the registers that bf16_linear_short.cuh keeps rows in, and a copy under way takes
// none.
//
// What a reader could break: who holds which term. Each warp copies its rows into stages of its own
// and reads them there, so warps never wait for each other. A stage holds chunks of 32 terms, a
// row's four vectors of a chunk side by side, vector q of row r at q ^ r/2%4: eight rows of one q
// lie in different banks. B lies in shared memory as the lanes read it: of the 32 vectors for tile
// j and chunk c, the one for lane (g, t) is at 4g + (t ^ g/2) and holds terms 2t and 2t+1 of each
// of the chunk's four octets, of the column that g stands for in tile j.
#pragma once
#include "bf16_linear.cuh"

// A vector of B that a warp reads serves all its tiles of rows. Short sums are many warps, whose
// latencies overlap; long sums keep many sums.
constexpr int plainWarps = 16, plainTiles = 1, longWarps = 8, longTiles = 2, longStages = 4;

// Paired is the panel's order: the 32 vectors of tile j and chunk c are at 32·(j·tile + c·chunk),
// the terms of each in the tensor cores' pairs.
struct Paired {
  int chunks, tile, chunk;
  __device__ __forceinline__ int term(int c, int t, int r) const { return 32 * c + r / 2 * 8 + 2 * t + r % 2; }
  __device__ __forceinline__ int place(int spot, int c, int t) const { return (spot / 8 * tile + c * chunk) * 32 + spot % 8 * 4 + (t ^ spot % 8 / 2); }
};

// bring_panel fills the panel from W[n,k]: a thread turns the four octets of a chunk of one row of
// W. Rows and terms that W lacks are zeros.
template <bool WIDE, int THREADS> __device__ __forceinline__ void bring_panel(const Product &p, int column0, Paired l) {
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

// copy_rows starts the copy of one chunk of a tile of rows into its stage.
template <int TILES> __device__ __forceinline__ void copy_rows(u32 to, const Product &p, int row0, int chunk) {
  const int g = threadIdx_x % 32 / 4, t = threadIdx_x % 4, term = 32 * chunk + 8 * t;
  const Bf16 *from = p.x + (term < p.k ? term : 0);
  row0 = row0 < 0 ? 0 : row0;
#pragma unroll
  for (int i = 0; i < 2 * TILES; i++) copy16(to + (8 * i + g) * 64 + (t ^ g / 2) * 16, from + (long)least(row0 + 8 * i + g, p.m - 1) * p.ldx, true);
}

// Rows is what a lane holds of one chunk of a tile of rows: [i][s] are a tensor core's four words
// for rows 16i..16i+15 and terms 16s..16s+15.
template <int TILES> struct Rows { u4 v[TILES][2]; };

template <int TILES> __device__ __forceinline__ void take_rows(Rows<TILES> &to, u32 stage) {
  const int lane = threadIdx_x % 32, at = lane % 16 * 64 + (lane / 16 ^ lane % 8 / 2) * 16;
#pragma unroll
  for (int i = 0; i < TILES; i++)
#pragma unroll
    for (int s = 0; s < 2; s++) to.v[i][s] = upright4(stage + i * 1024 + (at ^ 32 * s));
}

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

// multiply adds the products of a chunk with four tiles of the panel; b is their first vector for
// this lane.
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

// near brings what the ends of a tile of rows read into the card's cache, 64 bytes at a time: that
// takes no registers.
template <int END, int ROWS, int COLUMNS> __device__ __forceinline__ void near(const Product &p, int row0, int column0) {
  if constexpr (END == PLAIN || END == GELU_GRAD) {
    constexpr int piece = END == PLAIN ? 16 : 32, across = COLUMNS / piece;
    if (END == PLAIN && !p.add) return;
    row0 = apart(row0), column0 = apart(column0);
#pragma unroll 1
    for (int i = 0; i < ROWS * across / 32; i++) {
      const int at = 32 * i + threadIdx_x % 32, row = least(row0 + at / across, p.m - 1), column = least(column0 + at % across * piece, p.n - 1);
      if (END == PLAIN)
        prefetch(p.add + (long)row * p.ldadd + column);
      else
        prefetch(p.pre + (long)row * p.ldpre + column);
    }
  }
}

// keep drops or scales the eight sums of one row, columns 4t..4t+3 of either half of a block of 32.
__device__ __forceinline__ void keep(float (&v)[4][2], const Product &p, u64 first, int row, int column) {
  u32 instance = (u32)((u64)(u32)row * p.inverse >> 32), node = row - instance * p.nodes;
  if (node >= p.nodes) instance++, node -= p.nodes; // the inverse is rounded down
  // the rounds' keys are made here: kept, they spill
  const Drop drop = {apart(p.drop.seed), p.drop.site, apart(p.drop.threshold), p.drop.scale};
  const u32 kept = drop_word(drop, first + instance, node, (p.n + 31) / 32, column / 32) >> threadIdx_x % 4 * 4;
#pragma unroll
  for (int j = 0; j < 4; j++)
#pragma unroll
    for (int e = 0; e < 2; e++) v[j][e] = kept & 1u << (j / 2 * 16 + j % 2 * 2 + e) ? v[j][e] * p.drop.scale : 0;
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
    } else
      finish_row(v, held, h, p, row, column);
  }
}

// Room is a block's shared memory: the panel, each warp's stages, the bias.
template <int WARPS> struct Room {
  u32 stages; // this warp's
  float *bias;
  __device__ __forceinline__ Room(const Product &p, int chunks, int stageBytes) {
    const int panelBytes = p.panel * chunks * 64;
    stages = shared_at(panel) + panelBytes + threadIdx_x / 32 * stageBytes;
    bias = (float *)((char *)panel + panelBytes + WARPS * stageBytes);
  }
  template <int END, bool TURNED> __device__ __forceinline__ void fill(const Product &p, int column0, Paired l) {
    bring_bias<32 * WARPS>(bias, p, column0);
    if (TURNED)
      bring_turned_panel<END == PLAIN, 32 * WARPS>(p, column0, l);
    else
      bring_panel<END == PLAIN, 32 * WARPS>(p, column0, l);
    sync();
  }
};

// lane_panel is where a lane's vectors begin.
__device__ __forceinline__ const u4 *lane_panel() {
  const int lane = threadIdx_x % 32;
  return panel + (lane ^ lane / 8);
}

// plain_sums is the block's work where a row has at most 32·CHUNKS terms and results are fp32: a
// warp keeps a tile of rows in registers, goes through the panel's columns, and has the next tile
// under way meanwhile.
template <bool TURNED, int CHUNKS> __device__ __forceinline__ void plain_sums(const Product &p) {
  constexpr int tileRows = 16 * plainTiles, chunkBytes = 64 * tileRows;
  const int column0 = blockIdx_y * p.panel, columns = p.n - column0 < p.panel ? p.n - column0 : p.panel;
  Sweep<plainWarps, tileRows> sweep(p);
  Room<plainWarps> room(p, CHUNKS, CHUNKS * chunkBytes);
  auto copy = [&](int row0) {
#pragma unroll
    for (int c = 0; c < CHUNKS; c++) copy_rows<plainTiles>(room.stages + c * chunkBytes, p, row0, c);
    commit_copies();
  };
  Held<PLAIN> ahead[plainTiles];
  auto hold_ahead = [&](int row0, int column) {
    row0 = row0 < 0 ? 0 : row0;
#pragma unroll
    for (int i = 0; i < plainTiles; i++) hold(ahead[i], p, row0 + 16 * i, column0 + column);
  };
  copy(sweep.row(0));
  hold_ahead(sweep.row(0), 0);
  room.template fill<PLAIN, TURNED>(p, column0, Paired{CHUNKS, CHUNKS, 1});
  const u64 first = p.drop.threshold ? p.state->instances : 0;
#pragma unroll 1
  for (; sweep.tile < sweep.count; sweep.tile += sweep.step) {
    const int row0 = sweep.row(0), nextRow = sweep.row(1);
    Rows<plainTiles> rows[CHUNKS];
    wait_copies<0>();
    syncwarp(); // every lane's part has come
#pragma unroll
    for (int c = 0; c < CHUNKS; c++) take_rows(rows[c], room.stages + c * chunkBytes);
    syncwarp(); // and has been read
    copy(nextRow);
    const u4 *b = lane_panel();
#pragma unroll 1
    for (int column = 0; column < columns; column += 32, b += 4 * CHUNKS * 32) {
      Held<PLAIN> held[plainTiles];
#pragma unroll
      for (int i = 0; i < plainTiles; i++) held[i] = ahead[i];
      const bool last = column + 32 >= columns;
      hold_ahead(last ? nextRow : row0, last ? 0 : column + 32);
      Sums<plainTiles> sums;
      begin_sums<PLAIN>(sums, room.bias + column);
#pragma unroll
      for (int c = 0; c < CHUNKS; c++) multiply<CHUNKS>(sums, rows[c], b + c * 32);
#pragma unroll
      for (int i = 0; i < plainTiles; i++) finish(sums.v[i], held[i], p, first, row0 + 16 * i, column0 + column);
    }
  }
  wait_copies<0>();
}

// long_sums is the block's work for rows of any length and a panel of 32·BLOCKS columns: a warp
// keeps the sums of a tile of rows in registers and goes through the terms, copies longStages-1
// chunks ahead of the arithmetic and into the next tile.
template <int END, bool TURNED, int BLOCKS> __device__ __forceinline__ void long_sums(const Product &p) {
  constexpr int tileRows = 16 * longTiles, chunkBytes = 64 * tileRows, parts = BLOCKS * longTiles, ahead = 4;
  const int column0 = blockIdx_y * p.panel, chunks = (p.k + 127) / 128 * 4;
  static_assert(longStages == 4, "rows of a panel are padded to four chunks");
  Sweep<longWarps, tileRows> sweep(p);
  Room<longWarps> room(p, chunks, longStages * chunkBytes);
#pragma unroll
  for (int c = 0; c < longStages - 1; c++) {
    copy_rows<longTiles>(room.stages + c * chunkBytes, p, sweep.row(0), c);
    commit_copies();
  }
  room.template fill<END, TURNED>(p, column0, Paired{chunks, 1, 4 * BLOCKS});
#pragma unroll 1
  for (; sweep.tile < sweep.count; sweep.tile += sweep.step) {
    const int row0 = sweep.row(0);
    Sums<longTiles> sums[BLOCKS];
#pragma unroll
    for (int block = 0; block < BLOCKS; block++) begin_sums<END>(sums[block], room.bias + 32 * block);
    const u4 *b = lane_panel();
#pragma unroll 1
    for (int chunk = 0; chunk < chunks; chunk += longStages, b += longStages * 4 * BLOCKS * 32) {
      const bool last = chunk + longStages == chunks;
      const int nextRow = last ? sweep.row(1) : row0, nextChunk = last ? 0 : chunk + longStages;
      if (last) near<END, tileRows, 32 * BLOCKS>(p, row0, column0);
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
    // Nothing but the sums is kept through them, or registers spill: what the ends need is read,
    // and their addresses are computed, here.
    const int doneRow = apart(row0), doneColumn = apart(column0);
    const u64 first = END == PLAIN && p.drop.threshold ? p.state->instances : 0;
    Held<END> held[ahead]; // of a part: 16 rows of a block of columns
    auto hold_part = [&](int part) { hold(held[part % ahead], p, doneRow + part / BLOCKS * 16, doneColumn + part % BLOCKS * 32); };
#pragma unroll
    for (int part = 0; part < ahead; part++) hold_part(part);
#pragma unroll
    for (int part = 0; part < parts; part++) {
      const int i = part / BLOCKS, block = part % BLOCKS;
      finish(sums[block].v[i], held[part % ahead], p, first, doneRow + 16 * i, doneColumn + 32 * block);
      if (part + ahead < parts) hold_part(part + ahead);
    }
  }
  wait_copies<0>();
}

// The kernels with fp32 results for up to 64 and 128 terms.
#define PLAIN_PRODUCTS(NAME, TURNED)                                     \
  PRODUCT_KERNEL(NAME##_short_64, plainWarps, (plain_sums<TURNED, 2>))   \
  PRODUCT_KERNEL(NAME##_short_128, plainWarps, (plain_sums<TURNED, 4>))
// The kernels of one end for any number of terms, with panels of 64 and 128 columns.
#define LONG_PRODUCTS(NAME, END, TURNED)                                   \
  PRODUCT_KERNEL(NAME##_long_64, longWarps, (long_sums<END, TURNED, 2>))   \
  PRODUCT_KERNEL(NAME##_long_128, longWarps, (long_sums<END, TURNED, 4>))
