// Layer normalisation and its gradient, a warp a row.
//
// What a reader could break: the gradients of gamma and beta are sums over all rows, made in a
// fixed order whatever block runs first: a warp's rows in order, the warps of a block, the blocks
// of a gradient lane. norm_grad_lanes adds the blocks' sums, beside whatever waits for dx, so rows
// of a gradient lane must belong to consecutive blocks.
#include "ptx.cuh"

constexpr int warps = 8;

// mean[r] = Σ_c x[r,c] / d;  rstd[r] = 1/sqrt(Σ_c (x[r,c]-mean[r])² / d + eps)
// y[r,c] = (x[r,c]-mean[r])·rstd[r]·gamma[c] + beta[c]
// Rows are multiples of 4 and no longer than 128·V.
template <int V>
__device__ __forceinline__ void norm_rows(float *y, float *mean, float *rstd, const float *x, const float *gamma, const float *beta, int rows, int d,
                                          float eps) {
  const int lane = threadIdx_x % 32, r = blockIdx_x * warps + threadIdx_x / 32;
  if (r >= rows) return;
  x += (long)r * d, y += (long)r * d;
  f4 v[V], gm[V], bt[V];
  float sum = 0, squares = 0;
#pragma unroll
  for (int i = 0; i < V; i++) {
    int c = 4 * lane + 128 * i;
    v[i] = c < d ? load4(x + c) : f4{0, 0, 0, 0};
    gm[i] = c < d ? load4(gamma + c) : f4{0, 0, 0, 0};
    bt[i] = c < d ? load4(beta + c) : f4{0, 0, 0, 0};
  }
#pragma unroll
  for (int i = 0; i < V; i++) sum += sum4(v[i]);
  float mu = div_(warp_sum(sum), (float)d);
#pragma unroll
  for (int i = 0; i < V; i++) {
    v[i] -= mu;
    if (4 * lane + 128 * i < d) squares += sum4(v[i] * v[i]);
  }
  float rs = rcp(sqrtf_(div_(warp_sum(squares), (float)d) + eps));
#pragma unroll
  for (int i = 0; i < V; i++) {
    int c = 4 * lane + 128 * i;
    if (c < d) store4(y + c, v[i] * rs * gm[i] + bt[i]);
  }
  if (lane == 0) mean[r] = mu, rstd[r] = rs;
}

KERNEL __launch_bounds__(32 * warps) norm_128(float *y, float *mean, float *rstd, const float *x, const float *gamma, const float *beta, int rows, int d, float eps) {
  norm_rows<1>(y, mean, rstd, x, gamma, beta, rows, d, eps);
}
KERNEL __launch_bounds__(32 * warps) norm_512(float *y, float *mean, float *rstd, const float *x, const float *gamma, const float *beta, int rows, int d, float eps) {
  norm_rows<4>(y, mean, rstd, x, gamma, beta, rows, d, eps);
}

// The same for any d.
KERNEL __launch_bounds__(32 * warps) norm_any(float *y, float *mean, float *rstd, const float *x, const float *gamma, const float *beta, int rows, int d, float eps) {
  const int lane = threadIdx_x % 32, r = blockIdx_x * warps + threadIdx_x / 32;
  if (r >= rows) return;
  x += (long)r * d, y += (long)r * d;
  float sum = 0, squares = 0;
  for (int c = lane; c < d; c += 32) sum += x[c];
  float mu = div_(warp_sum(sum), (float)d);
  for (int c = lane; c < d; c += 32) squares += (x[c] - mu) * (x[c] - mu);
  float rs = rcp(sqrtf_(div_(warp_sum(squares), (float)d) + eps));
  for (int c = lane; c < d; c += 32) y[c] = (x[c] - mu) * rs * gamma[c] + beta[c];
  if (lane == 0) mean[r] = mu, rstd[r] = rs;
}

// With h = (x-mean)·rstd and e = dy·gamma, for each row:
// dx (+)= rstd·(e - mean(e) - h·mean(e·h))
// and in partial, 2·d sums per block, Σ_r dy[r,c]·h[r,c] and Σ_r dy[r,c] over the block's rows.
// Block b belongs to gradient lane b/blocks and takes `each` of its `chunk` rows.
template <int V>
__device__ __forceinline__ void norm_grad(float *dx, const float *dy, const float *x, const float *mean, const float *rstd, const float *gamma, float *partial, int rows, int d,
                                          int chunk, int each, int blocks, u32 addX) {
  __shared__ float sums[warps][2][128 * V] __attribute__((aligned(16)));
  const int lane = threadIdx_x % 32, warp = threadIdx_x / 32, l = blockIdx_x / blocks, first = l * blocks;
  int end = (l + 1) * chunk < rows ? (l + 1) * chunk : rows;
  int from = l * chunk + ((int)blockIdx_x - first) * each, to = from + each < end ? from + each : end;
  f4 dg[V] = {}, db[V] = {}, gm[V];
#pragma unroll
  for (int i = 0; i < V; i++) {
    int c = 4 * lane + 128 * i;
    gm[i] = c < d ? load4(gamma + c) : f4{0, 0, 0, 0};
  }
  for (int r = from + warp; r < to; r += warps) {
    f4 g[V], h[V], old[V];
    float mu = mean[r], rs = rstd[r], sumE = 0, sumEH = 0;
#pragma unroll
    for (int i = 0; i < V; i++) {
      int c = 4 * lane + 128 * i;
      g[i] = c < d ? load4(dy + (long)r * d + c) : f4{0, 0, 0, 0};
      h[i] = c < d ? load4(x + (long)r * d + c) : f4{0, 0, 0, 0};
      old[i] = c < d && addX ? load4(dx + (long)r * d + c) : f4{0, 0, 0, 0};
    }
#pragma unroll
    for (int i = 0; i < V; i++) {
      h[i] = 4 * lane + 128 * i < d ? (h[i] - mu) * rs : f4{0, 0, 0, 0};
      dg[i] += g[i] * h[i];
      db[i] += g[i];
      g[i] *= gm[i];
      sumE += sum4(g[i]);
      sumEH += sum4(g[i] * h[i]);
    }
    float meanE = div_(warp_sum(sumE), (float)d), meanEH = div_(warp_sum(sumEH), (float)d);
#pragma unroll
    for (int i = 0; i < V; i++) {
      int c = 4 * lane + 128 * i;
      if (c >= d) continue;
      store4(dx + (long)r * d + c, old[i] + (g[i] - meanE - h[i] * meanEH) * rs);
    }
  }
#pragma unroll
  for (int i = 0; i < V; i++) {
    store4(&sums[warp][0][4 * lane + 128 * i], dg[i]);
    store4(&sums[warp][1][4 * lane + 128 * i], db[i]);
  }
  sync();
#pragma unroll 1
  for (int e = threadIdx_x; e < 2 * d; e += 32 * warps) {
    int which = e >= d, c = e - which * d;
    float v = 0;
#pragma unroll
    for (int w = 0; w < warps; w++) v += sums[w][which][c];
    partial[(long)blockIdx_x * 2 * d + e] = v;
  }
}

#define NORM_GRAD(NAME, V)                                                                                                                     \
  KERNEL __launch_bounds__(32 * warps) NAME(float *dx, const float *dy, const float *x, const float *mean, const float *rstd, const float *gamma, \
                                            float *partial, int rows, int d, int chunk, int each, int blocks, u32 addX) {                       \
    norm_grad<V>(dx, dy, x, mean, rstd, gamma, partial, rows, d, chunk, each, blocks, addX);                                                    \
  }
NORM_GRAD(norm_grad_128, 1)
NORM_GRAD(norm_grad_512, 4)

// For gradient lane l, the block's y: dgamma_l[c] (+)= Σ over its blocks of partial[c]; dbeta_l[c]
// (+)= the same of partial[d+c]
KERNEL __launch_bounds__(32 * warps) norm_grad_lanes(float *dgamma, float *dbeta, const float *partial, int d, int blocks, int gradLaneSize, u32 addGamma, u32 addBeta) {
  const int e = blockIdx_x * 32 * warps + threadIdx_x, l = blockIdx_y;
  if (e >= 2 * d) return;
  const float *from = partial + (long)l * blocks * 2 * d + e;
  float v = 0;
#pragma unroll 16
  for (int b = 0; b < blocks; b++) v += from[(long)b * 2 * d];
  float *out = e < d ? dgamma + (long)l * gradLaneSize + e : dbeta + (long)l * gradLaneSize + e - d;
  *out = (e < d ? addGamma : addBeta) ? *out + v : v;
}

// dx alone, for any d.
KERNEL __launch_bounds__(32 * warps) norm_grad_any(float *dx, const float *dy, const float *x, const float *mean, const float *rstd, const float *gamma, int rows, int d, u32 addX) {
  const int lane = threadIdx_x % 32, r = blockIdx_x * warps + threadIdx_x / 32;
  if (r >= rows) return;
  x += (long)r * d, dy += (long)r * d, dx += (long)r * d;
  float mu = mean[r], rs = rstd[r], sumE = 0, sumEH = 0;
  for (int c = lane; c < d; c += 32) {
    float e = dy[c] * gamma[c];
    sumE += e;
    sumEH += e * ((x[c] - mu) * rs);
  }
  float meanE = div_(warp_sum(sumE), (float)d), meanEH = div_(warp_sum(sumEH), (float)d);
  for (int c = lane; c < d; c += 32) {
    float v = (dy[c] * gamma[c] - meanE - (x[c] - mu) * rs * meanEH) * rs;
    dx[c] = addX ? dx[c] + v : v;
  }
}

// dgamma and dbeta alone, for any d: block (tile, gradient lane) has 32 columns, warp w every
// warps-th of its rows.
KERNEL __launch_bounds__(32 * warps) norm_grad_sums(float *dgamma, float *dbeta, const float *dy, const float *x, const float *mean, const float *rstd, int rows, int d, int chunk,
                                          int gradLaneSize, u32 addGamma, u32 addBeta) {
  __shared__ float sums[2][warps][32];
  const int lane = threadIdx_x % 32, warp = threadIdx_x / 32, c = blockIdx_x * 32 + lane, l = blockIdx_y;
  int end = (l + 1) * chunk < rows ? (l + 1) * chunk : rows;
  float dg = 0, db = 0;
  if (c < d)
    for (int r = l * chunk + warp; r < end; r += warps) {
      float g = dy[(long)r * d + c];
      dg += g * ((x[(long)r * d + c] - mean[r]) * rstd[r]);
      db += g;
    }
  sums[0][warp][lane] = dg;
  sums[1][warp][lane] = db;
  sync();
  if (warp > 1 || c >= d) return;
  float v = 0;
  for (int w = 0; w < warps; w++) v += sums[warp][w][lane];
  float *out = (warp == 0 ? dgamma : dbeta) + (long)l * gradLaneSize + c;
  *out = (warp == 0 ? addGamma : addBeta) ? *out + v : v;
}
