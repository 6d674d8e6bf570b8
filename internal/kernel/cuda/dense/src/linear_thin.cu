// Layers whose input has four columns: what counts is writing the result, or reading its gradient,
// once. A warp has 128 columns of a row, a lane four of them.
//
// What a reader could break: gradients of weights are sums over all rows, made in a fixed order
// whatever block runs first: a warp's rows in order, the warps of a block, the blocks of a gradient
// lane.
#include "ptx.cuh"

constexpr int warps = 8, K = 4, SUMS = K + 1; // of a column: a weight each, and the bias

// y[r,n] = Σ_k x[r,k]·w[n,k] + bias[n]. The block's y is which 128 columns.
KERNEL __launch_bounds__(32 * warps) linear_thin(float *y, const float *x, const float *w, const float *bias, int rows, int n, int ldy) {
  const int c = blockIdx_y * 128 + 4 * (threadIdx_x % 32), step = gridDim_x * warps;
  if (c >= n) return;
  f4 column[4], b = bias ? load4(bias + c) : f4{0, 0, 0, 0};
#pragma unroll
  for (int i = 0; i < 4; i++) column[i] = load4(w + (c + i) * K);
#pragma unroll 4
  for (int r = blockIdx_x * warps + threadIdx_x / 32; r < rows; r += step) {
    const f4 v = load4(x + (long)r * K);
    f4 out = b;
#pragma unroll
    for (int i = 0; i < 4; i++) out[i] += sum4(v * column[i]);
    store4(y + (long)r * ldy + c, out);
  }
}

// For gradient lane l, over its `chunk` rows: dw_l[n,k] (+)= Σ_r dy[r,n]·x[r,k]; dbias_l[n] (+)=
// Σ_r dy[r,n]. Block b of `blocks` a lane takes `each` rows. partial holds n·SUMS sums per block,
// turns a counter per lane. n is 128.
KERNEL __launch_bounds__(32 * warps) linear_thin_dw(float *dw, float *dbias, const float *dy, const float *x, float *partial,
    u32 *turns, int rows, int lddy, int chunk, int each, int blocks, int gradLaneSize, u32 addW, u32 addBias) {
  constexpr int n = 128;
  __shared__ float sums[warps][SUMS][n] __attribute__((aligned(16)));
  const int lane = threadIdx_x % 32, warp = threadIdx_x / 32, l = blockIdx_x / blocks, first = l * blocks;
  const int end = (l + 1) * chunk < rows ? (l + 1) * chunk : rows, from = l * chunk + ((int)blockIdx_x - first) * each,
      to = from + each < end ? from + each : end;
  f4 sum[SUMS] = {};
#pragma unroll 4
  for (int r = from + warp; r < to; r += warps) {
    const f4 g = load4(dy + (long)r * lddy + 4 * lane), v = load4(x + (long)r * K);
#pragma unroll
    for (int k = 0; k < K; k++) sum[k] += v[k] * g;
    sum[K] += g;
  }
#pragma unroll
  for (int k = 0; k < SUMS; k++) store4(&sums[warp][k][4 * lane], sum[k]);
  sync();
  for (int e = threadIdx_x; e < SUMS * n; e += 32 * warps) {
    float v = 0;
#pragma unroll
    for (int w = 0; w < warps; w++) v += sums[w][e / n][e % n];
    partial[(long)blockIdx_x * SUMS * n + e] = v;
  }
  if (!last_of(blocks, turns + l)) return;
  for (int e = threadIdx_x; e < SUMS * n; e += 32 * warps) {
    const float v = fresh_sum<16>(partial + (long)first * SUMS * n + e, blocks, SUMS * n);
    const int k = e / n, c = e % n;
    if (k == K && !dbias) continue;
    float *out = (long)l * gradLaneSize + (k < K ? dw + c * K + k : dbias + c);
    *out = (k < K ? addW : addBias) ? *out + v : v;
  }
}
