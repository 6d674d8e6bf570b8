// Attention with a distance bias on tensor cores, and its gradient, for 17 to 128 nodes and heads
// of 16 or 32: no matrix of probabilities in memory. The loops they compute are those of
// kernel.Attention and kernel.AttentionGrad; of P they keep one number per row, the base-2
// logarithm of the row's sum. TILES, a module's, is how many tiles of eight nodes a head has at
// most. attention_tiles.cuh says what a reader could break.
#include "attention_tiles.cuh"


constexpr int ROWS = 8 * TILES;             // nodes that a head has room for
constexpr int maxWarps = TILES > 16 ? 12 : 8;   // of a block, a multiple of four
constexpr int threads = TILES > 16 ? 288 : 256;
constexpr int ACROSS = ROWS + 4;            // floats of a row of score gradients

// Block is what a block works on: `each` heads of an instance, `tiles` warps a head, 16 rows a
// warp. A thread brings columns 4q.. of head h of every step-th row from r0 on.
template <int HD> struct Block {
  int n, d, b, head0, tiles, own, tile, h, q, r0, step;

  __device__ __forceinline__ Block(int n, int heads, int each) : n(n), d(heads * HD) {
    const int blocks = heads / each, warp = threadIdx_x / 32, wide = each * HD / 4;
    b = blockIdx_x / blocks, head0 = blockIdx_x % blocks * each;
    tiles = (n + 15) / 16, own = warp / tiles, tile = warp % tiles;
    h = threadIdx_x % wide / (HD / 4), q = threadIdx_x % (HD / 4), r0 = threadIdx_x / wide, step = 128 / HD * tiles;
  }
};

// bring_positions leaves x and y of every node side by side, zeros past the end.
__device__ __forceinline__ void bring_positions(f2 *xy, const float *posX, const float *posY, int b, int n) {
  for (int i = threadIdx_x; i < ROWS; i += blockDim_x) xy[i] = i < n ? f2{posX[(long)b * n + i], posY[(long)b * n + i]} : f2{0, 0};
}

constexpr int batch = 4; // rows that a thread has under way

// kept[b,h,i] = log2 Σ_j 2^z_ij with z = (scale·q_i·k_j - slope[h]·dist(i,j))·log2(e); y[b,i] = Σ_j
// 2^(z_ij - kept_i)·v_j Shared: for each head k, v [ROWS][HD] | x, y [ROWS].
template <int HD>
__device__ __forceinline__ void attend(float *y, float *kept, const float *qkv, const float *posX, const float *posY,
    const float *slope, int n, int heads, int each, float scale) {
  extern __shared__ float smem[] __attribute__((aligned(16)));
  const Block<HD> w(n, heads, each);
  const int lane = threadIdx_x % 32, g = lane / 4, t = lane % 4, stride = 3 * w.d, head = w.head0 + w.own, r = 16 * w.tile + g;
  const float *in = qkv + (long)w.b * n * stride;
  f2 *xy = (f2 *)(smem + each * 2 * ROWS * HD);
  Side<HD> query;
  query.read(in + head * HD, stride, r, n - 1, scale * LOG2E);
  {
    float *keys = smem + w.h * 2 * ROWS * HD, *values = keys + ROWS * HD;
    const float *from = in + w.d + (w.head0 + w.h) * HD + 4 * w.q;
    for (int r0 = w.r0; r0 < ROWS; r0 += batch * w.step) {
      f4 k[batch], v[batch];
#pragma unroll
      for (int i = 0; i < batch; i++) {
        const int row = r0 + i * w.step;
        k[i] = row < n ? load4(from + (long)row * stride) : f4{0, 0, 0, 0};
        v[i] = row < n ? load4(from + (long)row * stride + w.d) : f4{0, 0, 0, 0};
      }
#pragma unroll
      for (int i = 0; i < batch; i++) {
        const int row = r0 + i * w.step, at = place<HD>(row, w.q);
        if (row < ROWS) store4(keys + at, rounded(k[i])), store4(values + at, rounded(v[i]));
      }
    }
  }
  bring_positions(xy, posX, posY, w.b, n);
  const float bias = slope[head] * LOG2E;
  sync();
  const float *keys = smem + w.own * 2 * ROWS * HD, *values = keys + ROWS * HD;
  const f2 a = xy[r < n ? r : n - 1], a8 = xy[r + 8 < n ? r + 8 : n - 1];
  int at[HD / 16];
#pragma unroll
  for (int c = 0; c < HD / 16; c++) at[c] = place<HD>(g, 4 * c + t);
  float p[TILES][4], top[2] = {-3e38f, -3e38f};
#pragma unroll
  for (int T = 0; T < TILES; T++) {
    float dist[4];
    across<HD>(p[T], query, keys + 8 * T * HD, at);
    far(dist, a, a8, xy + 8 * T);
#pragma unroll
    for (int e = 0; e < 4; e++) p[T][e] -= bias * dist[e];
    if (8 * T + 8 > n)
#pragma unroll
      for (int e = 0; e < 4; e++)
        if (8 * T + 2 * t + e % 2 >= n) p[T][e] = -3e38f;
#pragma unroll
    for (int e = 0; e < 4; e++) top[e / 2] = higher(top[e / 2], p[T][e]);
  }
  float sum[2] = {0, 0};
#pragma unroll
  for (int x = 0; x < 2; x++) {
    top[x] = higher(top[x], shfl_xor(top[x], 1));
    top[x] = higher(top[x], shfl_xor(top[x], 2));
  }
#pragma unroll
  for (int T = 0; T < TILES; T++)
#pragma unroll
    for (int e = 0; e < 4; e++) {
      p[T][e] = ex2(p[T][e] - top[e / 2]);
      sum[e / 2] += p[T][e];
    }
  const Down<HD> rows;
  float o[HD / 8][4] = {};
#pragma unroll
  for (int T = 0; T < TILES; T++) {
    u32 pa[4];
    left(pa, p[T]);
    down<HD>(o, pa, values + 8 * T * HD, rows);
  }
  sum[0] = quad_sum(sum[0]), sum[1] = quad_sum(sum[1]);
  write<HD>(y + (long)w.b * n * w.d + head * HD, w.d, r, n, o, rcp(sum[0]), rcp(sum[1]));
  if (t == 0)
#pragma unroll
    for (int x = 0; x < 2; x++)
      if (r + 8 * x < n) kept[((long)w.b * heads + head) * n + r + 8 * x] = top[x] + lg2(sum[x]);
}

// With p_ij = 2^(z_ij - kept_i), dz_ij = p_ij·(dy_i·v_j - dy_i·y_i):
// dq_i = scale·Σ_j dz_ij·k_j; dk_j = scale·Σ_i dz_ij·q_i; dv_j = Σ_i p_ij·dy_i; dslope[h] -= Σ
// dz_ij·dist(i,j) A warp has 16 nodes j in the first half, where it leaves dz in shared memory, and
// the same nodes as i in the second. Shared: x, y [ROWS] | a sum a warp | for each head q, dy, k
// [ROWS][HD], dz [ROWS][ACROSS], dy·y [ROWS], kept [ROWS].
template <int HD>
__device__ __forceinline__ void attend_grad(float *dqkv, float *dslope, const float *dy, const float *y, const float *kept,
    const float *qkv, const float *posX, const float *posY, const float *slope, float *partial, u32 *turn, int n, int heads, int each,
    float scale, int instances, int gradLanes, int gradLaneSize, u32 add) {
  extern __shared__ float smem[] __attribute__((aligned(16)));
  constexpr int whole = 3 * ROWS * HD + ROWS * ACROSS + 2 * ROWS;
  const Block<HD> w(n, heads, each);
  const int lane = threadIdx_x % 32, g = lane / 4, t = lane % 4, stride = 3 * w.d, head = w.head0 + w.own, r = 16 * w.tile + g;
  const float *in = qkv + (long)w.b * n * stride;
  f2 *xy = (f2 *)smem;
  float *slopes = smem + 2 * ROWS, *heap = slopes + maxWarps;
  Side<HD> key, value;
  key.read(in + w.d + head * HD, stride, r, n - 1, scale * LOG2E);
  value.read(in + 2 * w.d + head * HD, stride, r, n - 1, 1.0f);
  {
    float *q = heap + w.h * whole, *dys = q + ROWS * HD, *k = dys + ROWS * HD, *dot = q + 3 * ROWS * HD + ROWS * ACROSS, *sums = dot + ROWS;
    const long column = (w.head0 + w.h) * HD + 4 * w.q, first = (long)w.b * n;
    const float *from = in + column, *fromY = y + first * w.d + column, *fromDY = dy + first * w.d + column;
    kept += ((long)w.b * heads + w.head0 + w.h) * n;
    for (int r0 = w.r0; r0 - w.r0 < ROWS; r0 += 2 * w.step) { // whole warps go round together
      f4 rq[2], rk[2], rg[2], ry[2];
#pragma unroll
      for (int i = 0; i < 2; i++) {
        const int row = r0 + i * w.step;
        const bool real = row < n;
        rq[i] = real ? load4(from + (long)row * stride) : f4{0, 0, 0, 0};
        rk[i] = real ? load4(from + (long)row * stride + w.d) : f4{0, 0, 0, 0};
        rg[i] = real ? load4(fromDY + (long)row * w.d) : f4{0, 0, 0, 0};
        ry[i] = real ? load4(fromY + (long)row * w.d) : f4{0, 0, 0, 0};
      }
#pragma unroll
      for (int i = 0; i < 2; i++) {
        const int row = r0 + i * w.step, at = place<HD>(row, w.q);
        float part = sum4(rg[i] * ry[i]);
#pragma unroll
        for (int m = 1; m < HD / 4; m *= 2) part += shfl_xor(part, m);
        if (row >= ROWS) continue;
        store4(q + at, rounded(rq[i])), store4(dys + at, rounded(rg[i])), store4(k + at, rounded(rk[i]));
        if (w.q == 0) dot[row] = part, sums[row] = row < n ? kept[row] : 3e38f;
      }
    }
  }
  bring_positions(xy, posX, posY, w.b, n);
  const float bias = slope[head] * LOG2E;
  sync();
  float *q = heap + w.own * whole, *dys = q + ROWS * HD, *k = dys + ROWS * HD, *dz = k + ROWS * HD, *dot = dz + ROWS * ACROSS,
      *sums = dot + ROWS;
  const Down<HD> rows;
  float *out = dqkv + (long)w.b * n * stride + head * HD;
  {
    const f2 a = xy[r < n ? r : n - 1], a8 = xy[r + 8 < n ? r + 8 : n - 1];
    const bool real[2] = {r < n, r + 8 < n};
    int at[HD / 16];
#pragma unroll
    for (int c = 0; c < HD / 16; c++) at[c] = place<HD>(g, 4 * c + t);
    float dk[HD / 8][4] = {}, dv[HD / 8][4] = {}, steep = 0;
#pragma unroll 1
    for (int T = 0; 8 * T < n; T++) {
      float p[4], s[4], dist[4];
      u32 m[4];
      across<HD>(p, key, q + 8 * T * HD, at);
      across<HD>(s, value, dys + 8 * T * HD, at);
      far(dist, a, a8, xy + 8 * T);
      const f2 sum = *(const f2 *)(sums + 8 * T + 2 * t), mean = *(const f2 *)(dot + 8 * T + 2 * t);
#pragma unroll
      for (int e = 0; e < 4; e++) {
        p[e] = real[e / 2] ? ex2(p[e] - bias * dist[e] - (e % 2 ? sum.y : sum.x)) : 0.0f;
        s[e] = p[e] * (s[e] - (e % 2 ? mean.y : mean.x));
        steep -= s[e] * dist[e];
      }
      left(m, p);
      down<HD>(dv, m, dys + 8 * T * HD, rows);
      left(m, s);
      down<HD>(dk, m, q + 8 * T * HD, rows);
      float *to = dz + (8 * T + 2 * t) * ACROSS + r;
      to[0] = __builtin_bit_cast(float, m[0]), to[ACROSS] = __builtin_bit_cast(float, m[2]);
      if (r + 8 < ROWS) to[8] = __builtin_bit_cast(float, m[1]), to[ACROSS + 8] = __builtin_bit_cast(float, m[3]);
    }
    write<HD>(out + w.d, stride, r, n, dk, scale, scale);
    write<HD>(out + 2 * w.d, stride, r, n, dv, 1.0f, 1.0f);
    steep = warp_sum(steep);
    if (lane == 0) slopes[threadIdx_x / 32] = steep;
  }
  sync();
  {
    const float *row = dz + r * ACROSS + 2 * t, *row8 = dz + (r + 8 < ROWS ? r + 8 : r) * ACROSS + 2 * t;
    float dq[HD / 8][4] = {};
#pragma unroll 2
    for (int T = 0; 8 * T < n; T++) {
      const f2 u = *(const f2 *)(row + 8 * T), v = *(const f2 *)(row8 + 8 * T);
      const u32 m[4] = {bits(u.x), bits(v.x), bits(u.y), bits(v.y)};
      down<HD>(dq, m, k + 8 * T * HD, rows);
    }
    write<HD>(out, stride, r, n, dq, scale, scale);
  }
  if (!dslope) return;
  if (w.tile == 0 && lane == 0) {
    float sum = 0;
    for (int i = 0; i < w.tiles; i++) sum += slopes[threadIdx_x / 32 + i];
    partial[(long)w.b * heads + head] = sum;
  }
  if (last_of(gridDim_x, turn)) slope_grad_lanes(dslope, partial, instances, heads, 1, gradLanes, gradLaneSize, add);
}

#define ATTENTION(HD)                                                                                                                     \
  KERNEL __launch_bounds__(threads, 2) attention_tiles_##HD(float *y, float *kept, const float *qkv, const float *posX,             \
      const float *posY, const float *slope, int n, int heads, int each, float scale) {                                                   \
    attend<HD>(y, kept, qkv, posX, posY, slope, n, heads, each, scale);                                                                   \
  }                                                                                                                                       \
  KERNEL __launch_bounds__(threads, TILES > 16 ? 1 : 2) attention_tiles_grad_##HD(float *dqkv, float *dslope, const float *dy, const float *y,       \
      const float *kept, const float *qkv, const float *posX, const float *posY, const float *slope, float *partial, u32 *turn, int n,    \
      int heads, int each, float scale, int instances, int gradLanes, int gradLaneSize, u32 add) {                                        \
    attend_grad<HD>(dqkv, dslope, dy, y, kept, qkv, posX, posY, slope, partial, turn, n, heads, each, scale, instances, gradLanes,        \
        gradLaneSize, add);                                                                                                               \
  }
ATTENTION(16)
ATTENTION(32)
