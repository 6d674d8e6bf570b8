// What kernel.Decoder adds to a score beside the pointer's dot product, as a table per instance,
// and the way back from the gradient of such tables to the pairs' queries and keys. Biases
// (distribution.cuh) reads the tables.
//
// What a reader could break: a table of gradients has `loads` rows past the nodes', a multiple of
// the context's features: row k is a part of feature k modulo their number. Each stands for its
// weights in the products, so nobody adds the parts up before. Sums run in one order, so they are
// the same in every run.
#include "choices.cuh"
#include "decision.cuh"
#include "distribution.cuh"
#if CONTEXTS > 1
#include "half.cuh"
#endif

#define NEAR_FLOOR 1e-4f // kernel.NearFloor

// a block's square of results, and how many terms it has at a time
constexpr int SIDE = 64, DEEP = 16, LINE = SIDE + 4;

// own_row is the context feature that row n + k of a table belongs to.
__device__ __forceinline__ int own_row(int k) { return CONTEXTS == 1 ? 0 : k % CONTEXTS; }

// square: sum[a][b] += Σ over k < terms of left(k, 4y + a)·right(k, 4x + b), 256 threads, x and y
// of the thread 0..15. The functions are asked for every k < terms, rows and columns 0..63, and
// give zero where there is nothing. Shared memory: 2·DEEP·LINE floats.
template <class L, class R>
__device__ __forceinline__ void square(float (&sum)[4][4], int terms, bool leftByTerm, bool rightByTerm, L left, R right) {
  float *lefts = smem, *rights = smem + DEEP * LINE;
  int tid = threadIdx_x, x = tid & 15, y = tid >> 4;
  for (int from = 0; from < terms; from += DEEP) {
    sync();
#pragma unroll
    for (int p = tid; p < DEEP * SIDE; p += 256) {
      // neighbours read side by side
      int k = leftByTerm ? p % DEEP : p / SIDE, at = leftByTerm ? p / DEEP : p % SIDE;
      lefts[k * LINE + at] = from + k < terms ? left(from + k, at) : 0.0f;
      k = rightByTerm ? p % DEEP : p / SIDE, at = rightByTerm ? p / DEEP : p % SIDE;
      rights[k * LINE + at] = from + k < terms ? right(from + k, at) : 0.0f;
    }
    sync();
#pragma unroll
    for (int k = 0; k < DEEP; k++) {
      float4_ a = four(lefts + k * LINE + 4 * y), b = four(rights + k * LINE + 4 * x);
#pragma unroll
      for (int r = 0; r < 4; r++)
#pragma unroll
        for (int c = 0; c < 4; c++) sum[r][c] = fma_(a[r], b[c], sum[r][c]);
    }
  }
}

// bias_tables, for instance blockIdx_x, rows from 64·blockIdx_y and columns from 64·blockIdx_z on:
//
//	biases[cur][table_at(j)] = k·(query_cur·key_j) + near·log2(distance(cur, j)² + floor)
//	row n + f: k·(weights_f·key_j), f a context feature;   zero past the last
//
// pair is null where pairs have no scores, near 0 where distances have none.
KERNEL __launch_bounds__(256) bias_tables(float *biases, const float *pair, const float *pairLoad, const float *posX, const float *posY, int n, int stride,
                                          int d, int wide, float k, float near) {
  int i = blockIdx_x, row0 = SIDE * blockIdx_y, col0 = SIDE * blockIdx_z, x = threadIdx_x & 15, y = threadIdx_x >> 4;
  float sum[4][4] = {};
  if (pair) {
    const float *own = pair + (u64)i * n * stride;
    square(
        sum, d, true, true,
        [&](int c, int r) {
          int cur = row0 + r;
          return cur < n ? own[(u64)cur * stride + c] : cur < n + CONTEXTS ? pairLoad[own_row(cur - n) * d + c] : 0.0f;
        },
        [&](int c, int r) { return col0 + r < n ? own[(u64)(col0 + r) * stride + d + c] : 0.0f; });
  }
  biases += (u64)i * (n + CONTEXTS) * wide;
  posX += i * n;
  posY += i * n;
#pragma unroll
  for (int r = 0; r < 4; r++)
#pragma unroll
    for (int c = 0; c < 4; c++) {
      int cur = row0 + 4 * y + r, j = col0 + 4 * x + c;
      if (cur >= n + CONTEXTS || j >= wide) continue;
      float v = j < n ? sum[r][c] * k : 0.0f;
      if (near != 0 && cur < n && j < n) {
        float dx = posX[j] - posX[cur], dy = posY[j] - posY[cur];
        v = fma_(near, lg2(fma_(dx, dx, fma_(dy, dy, NEAR_FLOOR))), v);
      }
      biases[cur * wide + table_at(j)] = v;
    }
}

#if CONTEXTS > 1
// context_operands makes right operands of the rows from n on of table blockIdx_x, tiles of eight
// nodes by eight features: two fp16 numbers for each number, the second what the first lacks, zero
// past the last feature (half.cuh). A thread has features 2t and 2t+1 of a node. 32 threads a tile.
KERNEL __launch_bounds__(512) context_operands(u2 *operands, const float *tables, int n, int wide) {
  const int tile = threadIdx_x >> 5, g = threadIdx_x >> 2 & 7, t = threadIdx_x & 3;
  tables += (u64)blockIdx_x * (n + CONTEXTS) * wide + n * wide + table_at(8 * tile + g);
  float v[2], high[2];
#pragma unroll
  for (int e = 0; e < 2; e++) v[e] = 2 * t + e < CONTEXTS ? tables[(2 * t + e) * wide] : 0.0f;
  const Half2 first = half2(v[0], v[1]);
  high[0] = floats(first).x, high[1] = floats(first).y;
  operands[(u64)blockIdx_x * (4 * wide) + threadIdx_x] = u2{first, half2(v[0] - high[0], v[1] - high[1])};
}

// bias_sorted, for the decisions of instance blockIdx_x + first that walk_sorted (half_walk.cu) has
// sorted by node, block blockIdx_y of `parts` for every parts-th node: dbiases[cur][j] = Σ over
// decisions at cur of du_j, and of feature f dbiases[n + features·blockIdx_y + f][j] = Σ of f·du_j.
// du rows have `across` numbers; a thread has two nodes, 64 threads. Shared memory: n + 1 words.
KERNEL __launch_bounds__(64) bias_sorted(float *dbiases, const u32 *dus, const Choice *choices, const int *present, int first, int n, int room, int across,
                                         int wide, int parts) {
  const int local = blockIdx_x, lane = threadIdx_x, mine = blockIdx_y;
  int *from = (int *)smem;
  for (int j = lane; j < n; j += 64) from[j] = (present[(first + local) * 128 + j] + 7) & ~7;
  sync();
  if (lane < 32) before(from, n);
  sync();
  if (2 * lane >= wide) return;
  dbiases += (u64)local * (n + parts * CONTEXTS) * wide + 2 * lane;
  choices += (u64)local * room;
  dus += (u64)local * room * (across / 2) + lane;
  const bool has = 2 * lane < across;
  float2_ seen[CONTEXTS] = {};
  for (int cur = mine; cur < n; cur += parts) {
    float2_ sum = {0, 0};
    if (has)
      for (int k = from[cur]; k < from[cur + 1]; k += 4) {
        u32 du[4];
        u4 features[4];
#pragma unroll
        for (int e = 0; e < 4; e++) du[e] = dus[(u64)(k + e) * (across / 2)], features[e] = *(const u4 *)choices[k + e].seen;
#pragma unroll
        for (int e = 0; e < 4; e++) {
          const float2_ d = floats(du[e]);
          sum += d;
#pragma unroll
          for (int f = 0; f < CONTEXTS; f++) {
            const float2_ pair = floats(features[e][f / 2]);
            const float x = f & 1 ? pair.y : pair.x;
            seen[f].x = fma_(x, d.x, seen[f].x);
            seen[f].y = fma_(x, d.y, seen[f].y);
          }
        }
      }
    *(float2_ *)(dbiases + cur * wide) = sum;
  }
#pragma unroll
  for (int f = 0; f < CONTEXTS; f++) *(float2_ *)(dbiases + (n + mine * CONTEXTS + f) * wide) = seen[f];
}
#else
// bias_sorted, for the decisions of instance blockIdx_x + first that walk_sorted (half_walk.cu) has
// sorted by node, block blockIdx_y of `loads` for every loads-th node: dbiases[cur][j] = Σ over
// decisions at cur of du_j, and dbiases[n + blockIdx_y][j] = Σ of cap·du_j. du rows have `across`
// numbers; a thread has two nodes. Shared memory: n + 1 words.
#if TILES > 16
#define BIAS_THREADS 96
#else
#define BIAS_THREADS 64
#endif
KERNEL __launch_bounds__(BIAS_THREADS) bias_sorted(float *dbiases, const u32 *dus, const Choice *choices, const int *present, int first, int n, int room, int across,
                                         int wide, int loads) {
  int local = blockIdx_x, lane = threadIdx_x, mine = blockIdx_y;
  int *from = (int *)smem;
  for (int j = lane; j < n; j += BIAS_THREADS) from[j] = (present[(first + local) * PRESENT + j] + 7) & ~7;
  sync();
  if (lane < 32) before(from, n);
  sync();
  if (2 * lane >= wide) return;
  dbiases += (u64)local * (n + loads) * wide + 2 * lane;
  choices += (u64)local * room;
  dus += (u64)local * room * (across / 2) + lane;
  bool has = 2 * lane < across;
  float2_ load = {0, 0};
  for (int cur = mine; cur < n; cur += loads) {
    float2_ sum = {0, 0};
    if (has)
      for (int k = from[cur]; k < from[cur + 1]; k += 8) {
        u32 du[8];
        float cap[8];
#pragma unroll
        for (int e = 0; e < 8; e++) du[e] = dus[(u64)(k + e) * (across / 2)], cap[e] = choices[k + e].cap;
#pragma unroll
        for (int e = 0; e < 8; e++) {
          float a, b;
          asm("{.reg .b16 l, h; mov.b32 {l, h}, %2; cvt.f32.f16 %0, l; cvt.f32.f16 %1, h;}" : "=f"(a), "=f"(b) : "r"(du[e]));
          sum.x += a;
          sum.y += b;
          load.x = fma_(cap[e], a, load.x);
          load.y = fma_(cap[e], b, load.y);
        }
      }
    *(float2_ *)(dbiases + cur * wide) = sum;
  }
  *(float2_ *)(dbiases + (n + mine) * wide) = load;
}

#endif

// bias_listed is the same for decisions in the order of walk (rollout_grad.cu), a block an
// instance, a thread a node, one row for the load. Shared memory: n·wide floats.
KERNEL __launch_bounds__(128) bias_listed(float *dbiases, const float *dus, const Decision *decisions, const int *order, const int *counts, int n, int room,
                                          int across, int wide) {
  int local = blockIdx_x, j = threadIdx_x, count = counts[local];
  if (j >= wide) return;
  decisions += (u64)local * room;
  order += (u64)local * room;
  dus += (u64)local * room * across;
  dbiases += (u64)local * (n + 1) * wide + j;
  for (int cur = 0; cur < n; cur++) smem[cur * wide + j] = 0;
  float load = 0;
  if (j < across) {
#pragma unroll 4
    for (int k = 0; k < count; k++) {
      const Decision &r = decisions[order[k]];
      float du = dus[(u64)k * across + j];
      smem[r.cur * wide + j] += du;
      load = fma_(r.cap, du, load);
    }
  }
  for (int cur = 0; cur < n; cur++) dbiases[cur * wide] = smem[cur * wide + j];
  dbiases[n * wide] = load;
}

// back_pairs, for instance blockIdx_x, rows from 64·blockIdx_y on, columns from 64·(blockIdx_z / 2)
// on:
//
//	blockIdx_z even: dquery_cur = Σ over j of dbiases[cur][j]·key_j
//	                 dloads[k] = Σ over j of dbiases[n + k][j]·key_j, k < loads
//	odd:             dkey_j = Σ over cur of dbiases[cur][j]·query_cur
//	                        + Σ over k of dbiases[n + k][j]·pairLoad
//
// all times k and, where gradients were brought near one, over ups.
KERNEL __launch_bounds__(256) back_pairs(float *dpair, float *dloads, const float *dbiases, const float *pair, const float *pairLoad, const float *ups, int n,
                                         int loads, int stride, int dstride, int d, int wide, float k) {
  int i = blockIdx_x, row0 = SIDE * blockIdx_y, col0 = SIDE * (blockIdx_z >> 1), x = threadIdx_x & 15, y = threadIdx_x >> 4;
  bool keys = blockIdx_z & 1;
  int rows = keys ? n : n + loads;
  if (row0 >= rows) return;
  pair += (u64)i * n * stride;
  dbiases += (u64)i * (n + loads) * wide;
  dpair += (u64)i * n * dstride;
  if (ups) k *= rcp(ups[i]);
  float sum[4][4] = {};
  if (keys)
    square(
        sum, n + loads, false, false, [&](int cur, int r) { return row0 + r < n ? dbiases[cur * wide + row0 + r] : 0.0f; },
        [&](int cur, int c) { return col0 + c >= d ? 0.0f : cur < n ? pair[(u64)cur * stride + col0 + c] : pairLoad[own_row(cur - n) * d + col0 + c]; });
  else
    square(
        sum, n, true, false, [&](int j, int r) { return row0 + r < rows ? dbiases[(row0 + r) * wide + j] : 0.0f; },
        [&](int j, int c) { return col0 + c < d ? pair[(u64)j * stride + d + col0 + c] : 0.0f; });
#pragma unroll
  for (int r = 0; r < 4; r++)
#pragma unroll
    for (int c = 0; c < 4; c++) {
      int row = row0 + 4 * y + r, col = col0 + 4 * x + c;
      if (row >= rows || col >= d) continue;
      float v = sum[r][c] * k;
      if (keys)
        dpair[(u64)row * dstride + d + col] = v;
      else if (row < n)
        dpair[(u64)row * dstride + col] = v;
      else
        dloads[((u64)i * loads + row - n) * d + col] = v;
    }
}
