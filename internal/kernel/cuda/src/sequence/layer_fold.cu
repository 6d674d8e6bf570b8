// The gradient of a weight of 128 columns whose norm was folded into it (layer_pack.cu), from the parts of hat = DYᵀ·X, for X the norm's
// hat, and of sum, the column sums of DY (dense/bf16_linear_dw.cuh):
//
//   DW[n,k] (+)= hat[n,k]·gamma[k] + sum[n]·beta[k];  DBias[n] (+)= sum[n]
//   DGamma[k] (+)= Σ_n W[n,k]·hat[n,k];  DBeta[k] (+)= Σ_n W[n,k]·sum[n]
//
// What a reader could break: all of it is linear in hat and sum, so each gradient lane is made of its own parts, in order; rows n are
// added in an order that the grid alone decides.
#include "ptx.cuh"

constexpr int foldWidth = 128, foldThreads = 256, foldRows = 16, atOnce = foldThreads / foldWidth, batch = 8;

// Gradient lane blockIdx_y adds up parts [lane·each, (lane+1)·each); block blockIdx_x has foldRows rows. Scratch: for each lane and block
// the sums of DGamma and DBeta.
KERNEL __launch_bounds__(foldThreads)
    layer_fold(float *dw, float *dbias, float *dgamma, float *dbeta, float *scratch, u32 *turns, const float *parts,
        const float *w, const float *gamma, const float *beta, int n,
               int count, int each, int gradLaneSize, u32 addW, u32 addBias, u32 addGamma, u32 addBeta) {
  __shared__ float shares[2][atOnce][foldWidth];
  const int k = threadIdx_x % foldWidth, half = threadIdx_x / foldWidth, lane = blockIdx_y;
  const int from = lane * each, to = from + each < count ? from + each : count;
  const long size = (long)n * foldWidth + n, at0 = (long)lane * gradLaneSize;
  const float scale = gamma[k], shift = beta[k];
  float g = 0, b = 0;
#pragma unroll 2
  for (int i = half; i < foldRows; i += atOnce) {
    const int row = blockIdx_x * foldRows + i;
    if (row >= n) break;
    float hat = 0, sum = 0;
    for (int p = from; p < to; p += batch) {
      float v[batch], s[batch];
#pragma unroll
      for (int j = 0; j < batch; j++) {
        const float *part = parts + (p + j) * size;
        v[j] = p + j < to ? part[(long)row * foldWidth + k] : 0, s[j] = p + j < to ? part[(long)n * foldWidth + row] : 0;
      }
#pragma unroll
      for (int j = 0; j < batch; j++) hat += v[j], sum += s[j];
    }
    const float weight = w[(long)row * foldWidth + k];
    float *out = dw + at0 + (long)row * foldWidth + k;
    *out = (addW ? *out : 0) + (hat * scale + sum * shift);
    if (dbias && k == 0) dbias[at0 + row] = (addBias ? dbias[at0 + row] : 0) + sum;
    g += weight * hat, b += weight * sum;
  }
  shares[0][half][k] = g, shares[1][half][k] = b;
  sync();
  const int which = half; // 0: gamma, 1: beta
  float sum = 0;
#pragma unroll
  for (int i = 0; i < atOnce; i++) sum += shares[which][i][k];
  float *own = scratch + (long)lane * gridDim_x * 2 * foldWidth + which * foldWidth + k;
  own[(long)blockIdx_x * 2 * foldWidth] = sum;
  if (!last_of(gridDim_x, turns + lane)) return;
  float *out = (which ? dbeta : dgamma) + at0 + k;
  *out = ((which ? addBeta : addGamma) ? *out : 0) + fresh_sum<8>(own, gridDim_x, 2 * foldWidth);
}
static_assert(atOnce == 2, "one half of the block for each of gamma and beta");
