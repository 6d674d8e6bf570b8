// The gradient of a weight of 128 columns whose norm was folded into it (layer_pack.cu), from the
// parts of hat = DYᵀ·X, for X the norm's hat, and of sum, the column sums of DY
// (dense/bf16_linear_dw.cuh):
//
//   DW[n,k] (+)= hat[n,k]·gamma[k] + sum[n]·beta[k];  DBias[n] (+)= sum[n]
//   DGamma[k] (+)= Σ_n W[n,k]·hat[n,k];  DBeta[k] (+)= Σ_n W[n,k]·sum[n]
//
// What a reader could break: all of it is linear in hat and sum, so each gradient lane is made of
// its own parts, in order; rows n are added in an order that the grid alone decides.
#include "ptx.cuh"

constexpr int foldWidth = 128, foldThreads = 256, foldRows = 4, atOnce = foldThreads / foldWidth, batch = 8;

// Fold is such a weight's parts, and where its gradients go. adds: bits 0 to 3, that there is one
// already of w, bias, gamma, beta.
struct Fold {
  float *dw, *dbias, *dgamma, *dbeta, *scratch;
  u32 *turns;
  const float *parts, *w, *gamma, *beta;
  int n, count, each;
  u32 adds;
};

// fold is the work of one block for gradient lane blockIdx_y, which adds up parts [lane·each,
// (lane+1)·each): foldRows rows, of `blocks` such blocks. Scratch: for each lane and block the sums
// of DGamma and DBeta.
__device__ __forceinline__ void fold(const Fold &f, int block, int blocks, int gradLaneSize) {
  __shared__ float shares[2][atOnce][foldWidth];
  const int k = threadIdx_x % foldWidth, half = threadIdx_x / foldWidth, lane = blockIdx_y;
  const int from = lane * f.each, to = from + f.each < f.count ? from + f.each : f.count;
  const long size = (long)f.n * foldWidth + f.n, at0 = (long)lane * gradLaneSize;
  const float scale = f.gamma[k], shift = f.beta[k];
  float g = 0, b = 0;
#pragma unroll 2
  for (int i = half; i < foldRows; i += atOnce) {
    const int row = block * foldRows + i;
    if (row >= f.n) break;
    float hat = 0, sum = 0;
    for (int p = from; p < to; p += batch) {
      float v[batch], s[batch];
#pragma unroll
      for (int j = 0; j < batch; j++) {
        const float *part = f.parts + (p + j) * size;
        v[j] = p + j < to ? part[(long)row * foldWidth + k] : 0, s[j] = p + j < to ? part[(long)f.n * foldWidth + row] : 0;
      }
#pragma unroll
      for (int j = 0; j < batch; j++) hat += v[j], sum += s[j];
    }
    const float weight = f.w[(long)row * foldWidth + k];
    float *out = f.dw + at0 + (long)row * foldWidth + k;
    *out = (f.adds & 1 ? *out : 0) + (hat * scale + sum * shift);
    if (f.dbias && k == 0) f.dbias[at0 + row] = (f.adds & 2 ? f.dbias[at0 + row] : 0) + sum;
    g += weight * hat, b += weight * sum;
  }
  shares[0][half][k] = g, shares[1][half][k] = b;
  sync();
  const int which = half; // 0: gamma, 1: beta
  float sum = 0;
#pragma unroll
  for (int i = 0; i < atOnce; i++) sum += shares[which][i][k];
  float *own = f.scratch + (long)lane * blocks * 2 * foldWidth + which * foldWidth + k;
  own[(long)block * 2 * foldWidth] = sum;
  if (!last_of(blocks, f.turns + lane)) return;
  float *out = (which ? f.dbeta : f.dgamma) + at0 + k;
  *out = (f.adds & (which ? 8 : 4) ? *out : 0) + fresh_sum<32>(own, blocks, 2 * foldWidth);
}

// Plain is a weight's parts with no norm before it, `size` numbers of it and then n of its bias;
// adds as above.
struct Plain {
  float *dw, *dbias;
  const float *parts;
  int size, n, count, each;
  u32 adds;
};

__device__ __forceinline__ void add_up(const Plain &p, int block, int gradLaneSize) {
  const int at = block * foldThreads + threadIdx_x, from = blockIdx_y * p.each, to = from + p.each < p.count ? from + p.each : p.count;
  if (at >= p.size + p.n) return;
  const bool bias = at >= p.size;
  float *out = (bias ? p.dbias + (at - p.size) : p.dw + at) + (long)blockIdx_y * gradLaneSize;
  float sum = p.adds & (bias ? 2 : 1) ? *out : 0;
  for (int i = from; i < to; i += batch) {
    float v[batch];
#pragma unroll
    for (int j = 0; j < batch; j++) v[j] = i + j < to ? p.parts[(long)(i + j) * (p.size + p.n) + at] : 0;
#pragma unroll
    for (int j = 0; j < batch; j++) sum += v[j];
  }
  *out = sum;
}

// All weights of a launch of layer_dw.cu at once: blocks of fold 0, of fold 1, of plain 2, of plain
// 3. One without rows is not asked for.
#define FOLD(i)                                                                                                                     \
  float *dw##i, float *dbias##i, float *dgamma##i, float *dbeta##i, float *scratch##i, u32 *turns##i, const float *parts##i,        \
      const float *w##i, const float *gamma##i, const float *beta##i, int n##i, int count##i, int each##i, u32 adds##i
#define THE_FOLD(i)                                                                                                                 \
  {dw##i, dbias##i, dgamma##i, dbeta##i, scratch##i, turns##i, parts##i, w##i, gamma##i, beta##i, n##i, count##i, each##i, adds##i}
#define PLAIN(i) float *dw##i, float *dbias##i, const float *parts##i, int size##i, int n##i, int count##i, int each##i, u32 adds##i
#define THE_PLAIN(i) {dw##i, dbias##i, parts##i, size##i, n##i, count##i, each##i, adds##i}
KERNEL __launch_bounds__(foldThreads) layer_fold(FOLD(0), FOLD(1), PLAIN(2), PLAIN(3), int gradLaneSize) {
  const int blocks0 = (n0 + foldRows - 1) / foldRows, blocks1 = (n1 + foldRows - 1) / foldRows,
            blocks2 = (size2 + n2 + foldThreads - 1) / foldThreads;
  int at = blockIdx_x;
  if (at < blocks0 + blocks1) {
    const bool second = at >= blocks0;
    const Fold f = second ? Fold THE_FOLD(1) : Fold THE_FOLD(0);
    return fold(f, second ? at - blocks0 : at, second ? blocks1 : blocks0, gradLaneSize);
  }
  at -= blocks0 + blocks1;
  const bool second = at >= blocks2;
  const Plain p = second ? Plain THE_PLAIN(3) : Plain THE_PLAIN(2);
  add_up(p, second ? at - blocks2 : at, gradLaneSize);
}
static_assert(atOnce == 2, "one half of the block for each of gamma and beta");
