// Attention with a distance bias on tensor cores, and its gradient, for any number of nodes and
// heads of 16 or 32: keys, or queries, pass through shared memory `span` at a time, a multiple of
// 64, and the softmax goes along 64 at a time. The loops they compute are those of kernel.Attention
// and kernel.AttentionGrad; of P they keep one number per row, the base-2 logarithm of the row's
// sum. attention_tiles.cuh says what a reader could break.
#include "attention_tiles.cuh"

constexpr int SPAN = 64;     // nodes of a step
constexpr int maxWarps = 8;  // of a block, sixteen nodes each

// Place is where a block works: head h of instance b, nodes from first on.
struct Place {
  int b, h, first;
  __device__ __forceinline__ Place(int heads) : b(blockIdx_x / heads), h(blockIdx_x % heads), first(blockIdx_y * (blockDim_x / 2)) {}
};

// rows_of is how many rows of a span there are to bring, in whole tiles of eight.
__device__ __forceinline__ int rows_of(int span, int from, int n) {
  const int left = (n - from + 7) & ~7;
  return left < span ? left : span;
}

constexpr int BATCH = 4; // rows that a thread has under way

// bring copies `rows` rows of a head's columns from row `from` on, rounded, zeros past n: of keys
// and values, or queries and gradients.
template <int HD>
__device__ __forceinline__ void bring(float *to, float *to2, const float *src, const float *src2, long stride, long stride2, int from, int rows, int n) {
  const int q = threadIdx_x % (HD / 4), step = blockDim_x / (HD / 4);
  for (int r0 = threadIdx_x / (HD / 4); r0 < rows; r0 += BATCH * step) {
    f4 u[BATCH], v[BATCH];
#pragma unroll
    for (int i = 0; i < BATCH; i++) {
      const int row = from + r0 + i * step;
      const bool real = row < n && r0 + i * step < rows;
      u[i] = real ? load4(src + row * stride + 4 * q) : f4{0, 0, 0, 0};
      v[i] = real ? load4(src2 + row * stride2 + 4 * q) : f4{0, 0, 0, 0};
    }
#pragma unroll
    for (int i = 0; i < BATCH; i++) {
      const int row = r0 + i * step, at = place<HD>(row, q);
      if (row < rows) store4(to + at, rounded(u[i])), store4(to2 + at, rounded(v[i]));
    }
  }
}

__device__ __forceinline__ void bring_positions(f2 *xy, const float *posX, const float *posY, int from, int rows, int n) {
  for (int k = threadIdx_x; k < rows; k += blockDim_x) xy[k] = from + k < n ? f2{posX[from + k], posY[from + k]} : f2{0, 0};
}

__device__ __forceinline__ f2 position(const float *posX, const float *posY, int i, int n) {
  i = i < n ? i : n - 1;
  return f2{posX[i], posY[i]};
}

// Row dot products of two matrices of HD columns at rows r and r + 8, in all lanes of a quad.
template <int HD> __device__ __forceinline__ f2 row_dots(const float *a, const float *b, long stride, int r, int n) {
  const int t = threadIdx_x % 4;
  f2 out;
#pragma unroll
  for (int x = 0; x < 2; x++) {
    float sum = 0;
    const int row = r + 8 * x;
    if (row < n)
#pragma unroll
      for (int c = 0; c < HD / 16; c++) sum += sum4(load4(a + row * stride + 16 * c + 4 * t) * load4(b + row * stride + 16 * c + 4 * t));
    out[x] = quad_sum(sum);
  }
  return out;
}

// kept[b,h,i] = log2 Σ_j 2^z_ij with z = (scale·q_i·k_j - slope[h]·dist(i,j))·log2(e); y[b,i] = Σ_j
// 2^(z_ij - kept_i)·v_j, for nodes i of the block, sixteen a warp.
template <int HD>
__device__ __forceinline__ void attend(float *y, float *kept, const float *qkv, const float *posX, const float *posY, const float *slope, int n, int heads,
                                       float scale, int span) {
  extern __shared__ float smem[] __attribute__((aligned(16)));
  float *keys = smem, *values = keys + span * HD;
  f2 *xy = (f2 *)(values + span * HD);
  const Place w(heads);
  const int lane = threadIdx_x % 32, g = lane / 4, t = lane % 4, d = heads * HD, stride = 3 * d, r = w.first + threadIdx_x / 32 * 16 + g;
  const float *in = qkv + (long)w.b * n * stride + w.h * HD;
  posX += (long)w.b * n, posY += (long)w.b * n;
  Side<HD> query;
  query.read(in, stride, r, n - 1, scale * LOG2E);
  const f2 a = position(posX, posY, r, n), a8 = position(posX, posY, r + 8, n);
  const float bias = slope[w.h] * LOG2E;
  const Down<HD> rows;
  int at[HD / 16];
#pragma unroll
  for (int c = 0; c < HD / 16; c++) at[c] = place<HD>(g, 4 * c + t);
  float o[HD / 8][4] = {}, top[2] = {-3e38f, -3e38f}, sum[2] = {0, 0};
#pragma unroll 1
  for (int from = 0; from < n; from += SPAN) {
    const int here = from % span;
    if (here == 0) {
      const int count = rows_of(span, from, n);
      sync();
      bring<HD>(keys, values, in + d, in + 2 * d, stride, stride, from, count, n);
      bring_positions(xy, posX, posY, from, count, n);
      sync();
    }
    float p[SPAN / 8][4], high[2] = {top[0], top[1]};
#pragma unroll
    for (int T = 0; T < SPAN / 8; T++) {
      if (from + 8 * T >= n) break; // no tile of nodes past the last
      float dist[4];
      across<HD>(p[T], query, keys + (here + 8 * T) * HD, at);
      far(dist, a, a8, xy + here + 8 * T);
#pragma unroll
      for (int e = 0; e < 4; e++) {
        p[T][e] = from + 8 * T + 2 * t + e % 2 < n ? p[T][e] - bias * dist[e] : -3e38f;
        high[e / 2] = higher(high[e / 2], p[T][e]);
      }
    }
#pragma unroll
    for (int x = 0; x < 2; x++) {
      high[x] = higher(high[x], shfl_xor(high[x], 1));
      high[x] = higher(high[x], shfl_xor(high[x], 2));
      const float less = ex2(top[x] - high[x]);
      top[x] = high[x];
      sum[x] *= less;
#pragma unroll
      for (int c = 0; c < HD / 8; c++) o[c][2 * x] *= less, o[c][2 * x + 1] *= less;
    }
#pragma unroll
    for (int T = 0; T < SPAN / 8; T++) {
      if (from + 8 * T >= n) break;
      u32 pa[4];
#pragma unroll
      for (int e = 0; e < 4; e++) {
        p[T][e] = ex2(p[T][e] - top[e / 2]);
        sum[e / 2] += p[T][e];
      }
      left(pa, p[T]);
      down<HD>(o, pa, values + (here + 8 * T) * HD, rows);
    }
  }
  sum[0] = quad_sum(sum[0]), sum[1] = quad_sum(sum[1]);
  write<HD>(y + (long)w.b * n * d + w.h * HD, d, r, n, o, rcp(sum[0]), rcp(sum[1]));
  if (t == 0)
#pragma unroll
    for (int x = 0; x < 2; x++)
      if (r + 8 * x < n) kept[((long)w.b * heads + w.h) * n + r + 8 * x] = top[x] + lg2(sum[x]);
}

// With p_ij = 2^(z_ij - kept_i), dz_ij = p_ij·(dy_i·v_j - dy_i·y_i), for nodes j of the block:
// dk_j = scale·Σ_i dz_ij·q_i; dv_j = Σ_i p_ij·dy_i; partial -= Σ dz_ij·dist(i,j), and the last
// block of all sums those to dslope. `ranges` blocks have a head.
template <int HD>
__device__ __forceinline__ void attend_columns(float *dqkv, float *dslope, const float *dy, const float *y, const float *kept, const float *qkv,
                                               const float *posX, const float *posY, const float *slope, float *partial, u32 *turn, int n, int heads,
                                               float scale, int instances, int ranges, int gradLanes, int gradLaneSize, u32 add, int span) {
  extern __shared__ float smem[] __attribute__((aligned(16)));
  float *q = smem, *dys = q + span * HD;
  f2 *xy = (f2 *)(dys + span * HD);
  float *dot = (float *)(xy + span), *sums = dot + span;
  __shared__ float slopes[maxWarps];
  const Place w(heads);
  const int lane = threadIdx_x % 32, g = lane / 4, t = lane % 4, d = heads * HD, stride = 3 * d, r = w.first + threadIdx_x / 32 * 16 + g;
  const float *in = qkv + (long)w.b * n * stride + w.h * HD, *gy = dy + (long)w.b * n * d + w.h * HD, *oy = y + (long)w.b * n * d + w.h * HD;
  const float *xs = posX + (long)w.b * n, *ys = posY + (long)w.b * n;
  kept += ((long)w.b * heads + w.h) * n;
  Side<HD> key, value;
  key.read(in + d, stride, r, n - 1, scale * LOG2E);
  value.read(in + 2 * d, stride, r, n - 1, 1.0f);
  const f2 a = position(xs, ys, r, n), a8 = position(xs, ys, r + 8, n);
  const bool real[2] = {r < n, r + 8 < n};
  const float bias = slope[w.h] * LOG2E;
  const Down<HD> rows;
  int at[HD / 16];
#pragma unroll
  for (int c = 0; c < HD / 16; c++) at[c] = place<HD>(g, 4 * c + t);
  float dk[HD / 8][4] = {}, dv[HD / 8][4] = {}, steep = 0;
#pragma unroll 1
  for (int from = 0; from < n; from += SPAN) {
    const int here = from % span;
    if (here == 0) {
      const int count = rows_of(span, from, n);
      sync();
      bring<HD>(q, dys, in, gy, stride, d, from, count, n);
      bring_positions(xy, xs, ys, from, count, n);
      // rows' dot products of gradients and results, HD/4 lanes a row; whole warps go round
      // together
      for (int k = threadIdx_x; k - (int)(threadIdx_x % 32) < count * (HD / 4); k += blockDim_x) {
        const int row = k / (HD / 4), c = k % (HD / 4);
        const bool real = from + row < n && row < count;
        float part = real ? sum4(load4(gy + (long)(from + row) * d + 4 * c) * load4(oy + (long)(from + row) * d + 4 * c)) : 0.0f;
#pragma unroll
        for (int m = 1; m < HD / 4; m *= 2) part += shfl_xor(part, m);
        if (c == 0 && row < count) dot[row] = part, sums[row] = real ? kept[from + row] : 3e38f;
      }
      sync();
    }
#pragma unroll 2
    for (int T = 0; T < SPAN / 8 && from + 8 * T < n; T++) {
      float p[4], s[4], dist[4];
      u32 m[4];
      const int tile = here + 8 * T;
      across<HD>(p, key, q + tile * HD, at);
      across<HD>(s, value, dys + tile * HD, at);
      far(dist, a, a8, xy + tile);
      const f2 sum = *(const f2 *)(sums + tile + 2 * t), mean = *(const f2 *)(dot + tile + 2 * t);
#pragma unroll
      for (int e = 0; e < 4; e++) {
        p[e] = real[e / 2] ? ex2(p[e] - bias * dist[e] - (e % 2 ? sum.y : sum.x)) : 0.0f;
        s[e] = p[e] * (s[e] - (e % 2 ? mean.y : mean.x));
        steep -= s[e] * dist[e];
      }
      left(m, p);
      down<HD>(dv, m, dys + tile * HD, rows);
      left(m, s);
      down<HD>(dk, m, q + tile * HD, rows);
    }
  }
  float *out = dqkv + (long)w.b * n * stride + w.h * HD;
  write<HD>(out + d, stride, r, n, dk, scale, scale);
  write<HD>(out + 2 * d, stride, r, n, dv, 1.0f, 1.0f);
  if (!dslope) return;
  steep = warp_sum(steep);
  if (lane == 0) slopes[threadIdx_x / 32] = steep;
  sync();
  if (threadIdx_x == 0) {
    float sum = 0;
    for (int k = 0; k < (int)blockDim_x / 32; k++) sum += slopes[k];
    partial[((long)w.b * heads + w.h) * ranges + blockIdx_y] = sum;
  }
  if (last_of(gridDim_x * ranges, turn)) slope_grad_lanes(dslope, partial, instances, heads, ranges, gradLanes, gradLaneSize, add);
}

// dq_i = scale·Σ_j dz_ij·k_j for nodes i of the block.
template <int HD>
__device__ __forceinline__ void attend_rows(float *dqkv, const float *dy, const float *y, const float *kept, const float *qkv, const float *posX,
                                            const float *posY, const float *slope, int n, int heads, float scale, int span) {
  extern __shared__ float smem[] __attribute__((aligned(16)));
  float *keys = smem, *values = keys + span * HD;
  f2 *xy = (f2 *)(values + span * HD);
  const Place w(heads);
  const int lane = threadIdx_x % 32, g = lane / 4, t = lane % 4, d = heads * HD, stride = 3 * d, r = w.first + threadIdx_x / 32 * 16 + g;
  const float *in = qkv + (long)w.b * n * stride + w.h * HD, *gy = dy + (long)w.b * n * d + w.h * HD, *oy = y + (long)w.b * n * d + w.h * HD;
  const float *xs = posX + (long)w.b * n, *ys = posY + (long)w.b * n;
  kept += ((long)w.b * heads + w.h) * n;
  Side<HD> query, grad;
  query.read(in, stride, r, n - 1, scale * LOG2E);
  grad.read(gy, d, r, n - 1, 1.0f);
  const f2 a = position(xs, ys, r, n), a8 = position(xs, ys, r + 8, n), mean = row_dots<HD>(gy, oy, d, r, n);
  const float less[2] = {kept[r < n ? r : n - 1], kept[r + 8 < n ? r + 8 : n - 1]}, bias = slope[w.h] * LOG2E;
  const Down<HD> rows;
  int at[HD / 16];
#pragma unroll
  for (int c = 0; c < HD / 16; c++) at[c] = place<HD>(g, 4 * c + t);
  float dq[HD / 8][4] = {};
#pragma unroll 1
  for (int from = 0; from < n; from += SPAN) {
    const int here = from % span;
    if (here == 0) {
      const int count = rows_of(span, from, n);
      sync();
      bring<HD>(keys, values, in + d, in + 2 * d, stride, stride, from, count, n);
      bring_positions(xy, xs, ys, from, count, n);
      sync();
    }
#pragma unroll 2
    for (int T = 0; T < SPAN / 8 && from + 8 * T < n; T++) {
      float p[4], s[4], dist[4];
      u32 m[4];
      const int tile = here + 8 * T;
      across<HD>(p, query, keys + tile * HD, at);
      across<HD>(s, grad, values + tile * HD, at);
      far(dist, a, a8, xy + tile);
#pragma unroll
      for (int e = 0; e < 4; e++) {
        const float x = from + 8 * T + 2 * t + e % 2 < n ? ex2(p[e] - bias * dist[e] - less[e / 2]) : 0.0f;
        s[e] = x * (s[e] - mean[e / 2]);
      }
      left(m, s);
      down<HD>(dq, m, keys + tile * HD, rows);
    }
  }
  write<HD>(dqkv + (long)w.b * n * stride + w.h * HD, stride, r, n, dq, scale, scale);
}

#define ATTENTION(HD)                                                                                                                     \
  KERNEL __launch_bounds__(32 * maxWarps, 2) attention_stream_##HD(float *y, float *kept, const float *qkv, const float *posX,            \
      const float *posY, const float *slope, int n, int heads, float scale, int span) {                                                             \
    attend<HD>(y, kept, qkv, posX, posY, slope, n, heads, scale, span);                                                                         \
  }                                                                                                                                       \
  KERNEL __launch_bounds__(32 * maxWarps, 2) attention_stream_columns_##HD(float *dqkv, float *dslope, const float *dy, const float *y,   \
      const float *kept, const float *qkv, const float *posX, const float *posY, const float *slope, float *partial, u32 *turn, int n,    \
      int heads, float scale, int instances, int ranges, int gradLanes, int gradLaneSize, u32 add, int span) {                                      \
    attend_columns<HD>(dqkv, dslope, dy, y, kept, qkv, posX, posY, slope, partial, turn, n, heads, scale, instances, ranges, gradLanes,   \
        gradLaneSize, add, span);                                                                                                               \
  }                                                                                                                                       \
  KERNEL __launch_bounds__(32 * maxWarps, 2) attention_stream_rows_##HD(float *dqkv, const float *dy, const float *y, const float *kept,  \
      const float *qkv, const float *posX, const float *posY, const float *slope, int n, int heads, float scale, int span) {                        \
    attend_rows<HD>(dqkv, dy, y, kept, qkv, posX, posY, slope, n, heads, scale, span);                                                          \
  }
ATTENTION(16)
ATTENTION(32)
