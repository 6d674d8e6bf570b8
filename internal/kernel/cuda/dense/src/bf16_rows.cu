// Layer normalisation, its gradient and dropout where one side is held in bf16: the residual stream
// and its gradient are fp32, what matrix products read is bf16. A warp a row, and a few rows at a
// time, for these kernels only move data.
//
// What a reader could break: the gradients of gamma and beta are sums over all rows in the order of
// norm.cu: a warp's rows, the warps of a block, the blocks of a gradient lane, which are
// consecutive.
#include "drop.cuh"
#include "bf16.cuh"

constexpr int warps = 8;

__device__ __forceinline__ void store4(Bf16 *p, f4 v) { *(u2 *)p = u2{bf16x2(v.x, v.y), bf16x2(v.z, v.w)}; }
__device__ __forceinline__ f4 load4(const Bf16 *p) {
  u2 v = *(const u2 *)p;
  return f4{bf16_low(v.x), bf16_high(v.x), bf16_low(v.y), bf16_high(v.y)};
}

// own_sum adds up N numbers of every lane, and gives a lane the sum of number lane·N/32: lanes
// halve the numbers they carry on with while they halve their distance, which takes 6 exchanges for
// four numbers and not 20.
__device__ __forceinline__ float own_sum(const float (&x)[1]) { return warp_sum(x[0]); }
__device__ __forceinline__ float own_sum(const float (&x)[2]) {
  const bool late = threadIdx_x & 16;
  float sum = (late ? x[1] : x[0]) + shfl_xor(late ? x[0] : x[1], 16);
#pragma unroll
  for (int m = 8; m > 0; m /= 2) sum += shfl_xor(sum, m);
  return sum;
}
__device__ __forceinline__ float own_sum(const float (&x)[4]) {
  const bool late = threadIdx_x & 16, odd = threadIdx_x & 8;
  const float a = (late ? x[2] : x[0]) + shfl_xor(late ? x[0] : x[2], 16), b = (late ? x[3] : x[1]) + shfl_xor(late ? x[1] : x[3], 16);
  float sum = (odd ? b : a) + shfl_xor(odd ? a : b, 8);
#pragma unroll
  for (int m = 4; m > 0; m /= 2) sum += shfl_xor(sum, m);
  return sum;
}

// mean[r] = Σ_c x[r,c] / d;  rstd[r] = 1/sqrt(Σ_c (x[r,c]-mean[r])² / d + eps)
// y[r,c] = (x[r,c]-mean[r])·rstd[r]·gamma[c] + beta[c]
// d is a multiple of 4 and at most 128·V. A warp has R rows, all under way at once.
template <int V, int R>
__device__ __forceinline__ void norm_rows(Bf16 *y, float *mean, float *rstd, const float *x, const float *gamma, const float *beta, int rows, int d, float eps) {
  const int lane = threadIdx_x % 32, r0 = (blockIdx_x * warps + threadIdx_x / 32) * R, own = r0 + lane * R / 32;
  const f4 zero = {0, 0, 0, 0};
  f4 v[R][V];
  float part[R] = {};
#pragma unroll
  for (int k = 0; k < R; k++)
#pragma unroll
    for (int i = 0; i < V; i++) {
      int c = 4 * lane + 128 * i;
      v[k][i] = c < d && r0 + k < rows ? load4(x + (long)(r0 + k) * d + c) : zero;
    }
#pragma unroll
  for (int k = 0; k < R; k++)
#pragma unroll
    for (int i = 0; i < V; i++) part[k] += sum4(v[k][i]);
  const float mu = div_(own_sum(part), (float)d);
#pragma unroll
  for (int k = 0; k < R; k++) {
    const float m = shfl(mu, 32 / R * k);
    part[k] = 0;
#pragma unroll
    for (int i = 0; i < V; i++) {
      v[k][i] -= m;
      if (4 * lane + 128 * i < d) part[k] += sum4(v[k][i] * v[k][i]);
    }
  }
  const float rs = rcp(sqrtf_(div_(own_sum(part), (float)d) + eps));
#pragma unroll
  for (int k = 0; k < R; k++) part[k] = shfl(rs, 32 / R * k);
#pragma unroll
  for (int i = 0; i < V; i++) {
    int c = 4 * lane + 128 * i;
    if (c >= d) continue;
    f4 gm = load4(gamma + c), bt = load4(beta + c);
#pragma unroll
    for (int k = 0; k < R; k++)
      if (r0 + k < rows) store4(y + (long)(r0 + k) * d + c, v[k][i] * part[k] * gm + bt);
  }
  if (lane % (32 / R) == 0 && own < rows) mean[own] = mu, rstd[own] = rs;
}

KERNEL __launch_bounds__(32 * warps, 5) bf16_norm_128(Bf16 *y, float *mean, float *rstd, const float *x, const float *gamma, const float *beta, int rows, int d, float eps) {
  norm_rows<1, 4>(y, mean, rstd, x, gamma, beta, rows, d, eps);
}
KERNEL __launch_bounds__(32 * warps) bf16_norm_512(Bf16 *y, float *mean, float *rstd, const float *x, const float *gamma, const float *beta, int rows, int d, float eps) {
  norm_rows<4, 1>(y, mean, rstd, x, gamma, beta, rows, d, eps);
}

// afresh hides that a place follows from the one before: it is made from the row again, and not
// kept as a 64-bit address for every tensor.
__device__ __forceinline__ u32 afresh(u32 v) {
  asm volatile("" : "+r"(v));
  return v;
}

// With h = (x-mean)·rstd and e = dy·gamma, for each row:
// dx (+)= rstd·(e - mean(e) - h·mean(e·h))
// and for gradient lane l, over its rows: dgamma_l[c] (+)= Σ_r dy[r,c]·h[r,c]; dbeta_l[c] (+)= Σ_r
// dy[r,c] Block b belongs to gradient lane b/blocks and takes `each` of its `chunk` rows. partial
// holds 2·d sums per block, turns a counter per gradient lane.
template <int V, int R>
__device__ __forceinline__ void norm_grad(float *dx, float *dgamma, float *dbeta, const Bf16 *dy, const float *x, const float *mean, const float *rstd,
                                          const float *gamma, float *partial, u32 *turns, int rows, int d, int chunk, int each, int blocks, int gradLaneSize,
                                          u32 addX, u32 addGamma, u32 addBeta) {
  __shared__ float sums[warps][2][128 * V] __attribute__((aligned(16)));
  const int lane = threadIdx_x % 32, warp = threadIdx_x / 32, l = blockIdx_x / blocks, first = l * blocks;
  int end = (l + 1) * chunk < rows ? (l + 1) * chunk : rows;
  int from = l * chunk + ((int)blockIdx_x - first) * each, to = from + each < end ? from + each : end;
  const f4 zero = {0, 0, 0, 0};
  f4 dg[V] = {}, db[V] = {}, gm[V];
#pragma unroll
  for (int i = 0; i < V; i++) {
    int c = 4 * lane + 128 * i;
    gm[i] = c < d ? load4(gamma + c) : zero;
  }
#pragma unroll 1
  for (int r0 = from + warp; r0 < to; r0 += R * warps) {
    f4 g[R][V], h[R][V], old[R][V];
    float mu[R], rs[R];
    u32 at[R]; // this lane's first element of a row
#pragma unroll
    for (int k = 0; k < R; k++) {
      int r = r0 + k * warps;
      at[k] = afresh((u32)r * d + 4 * lane);
      mu[k] = r < to ? mean[r] : 0, rs[k] = r < to ? rstd[r] : 0;
#pragma unroll
      for (int i = 0; i < V; i++) {
        bool inside = 4 * lane + 128 * i < d && r < to;
        g[k][i] = inside ? load4(dy + at[k] + 128 * i) : zero;
        h[k][i] = inside ? load4(x + at[k] + 128 * i) : zero;
        old[k][i] = inside && addX ? load4(dx + at[k] + 128 * i) : zero;
      }
    }
    float part[2 * R] = {}; // Σ e and Σ e·h of every row
#pragma unroll
    for (int k = 0; k < R; k++)
#pragma unroll
      for (int i = 0; i < V; i++) {
        h[k][i] = (h[k][i] - mu[k]) * rs[k]; // past the row's end g is 0
        dg[i] += g[k][i] * h[k][i];
        db[i] += g[k][i];
        g[k][i] *= gm[i];
        part[2 * k] += sum4(g[k][i]);
        part[2 * k + 1] += sum4(g[k][i] * h[k][i]);
      }
    const float own = div_(own_sum(part), (float)d);
#pragma unroll
    for (int k = 0; k < R; k++) {
      const int r = r0 + k * warps;
      const float meanE = shfl(own, 16 / R * (2 * k)), meanEH = shfl(own, 16 / R * (2 * k + 1));
#pragma unroll
      for (int i = 0; i < V; i++) {
        if (4 * lane + 128 * i < d && r < to) store4(dx + at[k] + 128 * i, old[k][i] + (g[k][i] - meanE - h[k][i] * meanEH) * rs[k]);
      }
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
  if (!last_of(blocks, turns + l)) return;
#pragma unroll 1
  for (int e = threadIdx_x; e < 2 * d; e += 32 * warps) {
    float v = fresh_sum<16>(partial + (long)first * 2 * d + e, blocks, 2 * d);
    float *out = e < d ? dgamma + (long)l * gradLaneSize + e : dbeta + (long)l * gradLaneSize + e - d;
    *out = (e < d ? addGamma : addBeta) ? *out + v : v;
  }
}

#define NORM_GRAD(NAME, V, R, LEAST)                                                                                                           \
  KERNEL __launch_bounds__(32 * warps, LEAST) NAME(float *dx, float *dgamma, float *dbeta, const Bf16 *dy, const float *x, const float *mean,  \
                                                   const float *rstd, const float *gamma, float *partial, u32 *turns, int rows, int d, int chunk, int each, \
                                                   int blocks, int gradLaneSize, u32 addX, u32 addGamma, u32 addBeta) {                            \
    norm_grad<V, R>(dx, dgamma, dbeta, dy, x, mean, rstd, gamma, partial, turns, rows, d, chunk, each, blocks, gradLaneSize, addX, addGamma, addBeta); \
  }
NORM_GRAD(bf16_norm_grad_128, 1, 2, 3)
NORM_GRAD(bf16_norm_grad_512, 4, 1, 1)

// y[r,c] = kept ? x[r,c]·scale : 0, by the mask of kernel.Drop: `nodes` rows an instance, d
// columns, a multiple of 8. A thread takes eight columns.
KERNEL __launch_bounds__(256) bf16_dropout(Bf16 *y, const float *x, const State *state, u64 seed, u32 site, u32 threshold, float scale, int rows, int nodes, int d) {
  const u32 e = blockIdx_x * blockDim_x + threadIdx_x, blocks = (d + 31) / 32, r = e / (4 * blocks), block = e / 4 % blocks, t = e % 4;
  const u32 kept = drop_word(Drop{seed, site, threshold, scale}, state->instances + r / nodes, r % nodes, blocks, block) >> 8 * t;
  const u32 c = 32 * block + 8 * t;
  if (r >= (u32)rows || c >= (u32)d) return;
  x += (long)r * d + c;
  f4 v[2] = {load4(x) * scale, load4(x + 4) * scale};
#pragma unroll
  for (int i = 0; i < 8; i++) v[i / 4][i % 4] = kept >> i & 1 ? v[i / 4][i % 4] : 0.0f;
  *(u4 *)(y + (long)r * d + c) = u4{bf16x2(v[0].x, v[0].y), bf16x2(v[0].z, v[0].w), bf16x2(v[1].x, v[1].y), bf16x2(v[1].z, v[1].w)};
}

// The same in any mixture of types and for any width, with a residual: y = residual + drop(x). Bit
// 0 of inBf16: y is in bf16, bit 1: x, bit 2: residual.
__device__ __forceinline__ float either(const void *p, long at, u32 bf16) {
  return bf16 ? __builtin_bit_cast(float, (u32)((const Bf16 *)p)[at] << 16) : ((const float *)p)[at];
}
KERNEL __launch_bounds__(256) bf16_dropout_any(void *y, const void *x, const void *residual, const State *state, u64 seed, u32 site, u32 threshold, float scale, int rows,
                                             int nodes, int d, u32 inBf16) {
  const u32 e = blockIdx_x * blockDim_x + threadIdx_x, blocks = (d + 31) / 32, r = e / (4 * blocks), block = e / 4 % blocks, t = e % 4;
  if (r >= (u32)rows) return;
  const Drop drop{seed, site, threshold, scale};
  const u32 kept = drop_word(drop, state->instances + r / nodes, r % nodes, blocks, block);
  for (int i = 0; i < 8; i++) {
    const int c = 32 * block + 8 * (i / 2) + 2 * t + i % 2;
    if (c >= d) continue;
    const long at = (long)r * d + c;
    float v = kept >> c % 32 & 1 ? either(x, at, inBf16 & 2) * scale : 0.0f;
    if (residual) v += either(residual, at, inBf16 & 4);
    if (inBf16 & 1)
      ((Bf16 *)y)[at] = (Bf16)bf16x2(v, 0.0f);
    else
      ((float *)y)[at] = v;
  }
}
