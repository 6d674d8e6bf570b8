// The feed-forward half of a layer of 128 columns in one kernel, for batches too small to fill a
// card with one op: norm, gated unit of 256, and the way back with bias and residual, 16 rows a
// block. The loops are those of kernel.Norm, kernel.Linear, kernel.GLU and kernel.Linear.
#include "rows16.cuh"

constexpr int FEED = 256, LONG = FEED + 16;

// h = norm(x), with mean and rstd; g = h·gateᵀ + gateBias; u = g[:F]·sigmoid(g[F:]); y = u·downᵀ +
// downBias + x A block has TILES·16 rows; 32 of them were no faster. A warp has 32 columns of
// either half of g, and 16 of y. Shared: h [TILES·16][ROW] | u [TILES·16][LONG].
template <int TILES> __device__ __forceinline__ void feed(float *y, float *h, float *mean, float *rstd, float *g, float *u, const float *x,
    const float *gamma, const float *beta, const float *gate, const float *gateBias, const float *down, const float *downBias, int rows,
    float eps) {
  extern __shared__ float smem[] __attribute__((aligned(16)));
  float *hs = smem, *us = hs + TILES * 16 * ROW;
  const int lane = threadIdx_x % 32, warp = threadIdx_x / 32, q = lane / 4, t = lane % 4;
  const int first = blockIdx_x * TILES * 16;
  Weights<2, 2> w[2];
  // the i-th batch of the gate's weights: 16 columns of either half, two chunks
  auto fetch = [&](int i) {
    const float *from[2];
    from[0] = gate + (long)(32 * warp + i / 4 * 16) * WIDTH;
    from[1] = from[0] + (long)FEED * WIDTH;
    w[i % 2].read(from, WIDTH, i % 4 * 2);
  };
  fetch(0), fetch(1);
  others_ended();
#pragma unroll
  for (int m = 0; m < TILES; m++) norm_rows(hs + m * 16 * ROW, h, mean, rstd, x, gamma, beta, first + 16 * m, rows, eps);
  sync();
#pragma unroll
  for (int group = 0; group < 2; group++) {
    float acc[TILES][2][2][4] = {};
#pragma unroll
    for (int i = 0; i < 4; i++) {
      w[i % 2].multiply_rows(acc, hs, ROW, 2 * i);
      if (4 * group + i + 2 < 8) fetch(4 * group + i + 2);
    }
    const int n = 32 * warp + 16 * group + 4 * t;
    const f4 biasA = load4(gateBias + n), biasB = load4(gateBias + FEED + n);
#pragma unroll
    for (int i = 0; i < 2 * TILES; i++) {
      const int r = q + 8 * i;
      const long at = first + r;
      const f4 p = sums(acc[i / 2][0], i % 2) + biasA, s = sums(acc[i / 2][1], i % 2) + biasB;
      const f4 v = p * f4{sigmoid_(s.x), sigmoid_(s.y), sigmoid_(s.z), sigmoid_(s.w)};
      store4(us + r * LONG + n, v);
      if (at >= rows) continue;
      store4(g + at * 2 * FEED + n, p), store4(g + at * 2 * FEED + FEED + n, s);
      store4(u + at * FEED + n, v);
    }
  }
  Weights<1, 4> d[2];
  const float *from[1] = {down + (long)(16 * warp) * FEED};
  d[0].read(from, FEED, 0), d[1].read(from, FEED, 4);
  const int n = 16 * warp + 4 * t;
  sync();
  float acc[TILES][1][2][4] = {};
#pragma unroll
  for (int i = 0; i < FEED / 64; i++) {
    d[i % 2].multiply_rows(acc, us, LONG, 4 * i);
    if (i + 2 < FEED / 64) d[i % 2].read(from, FEED, 4 * i + 8);
  }
  const f4 bias = load4(downBias + n);
#pragma unroll
  for (int i = 0; i < 2 * TILES; i++) {
    const long at = first + q + 8 * i;
    if (at < rows) store4(y + at * WIDTH + n, sums(acc[i / 2][0], i % 2) + bias + load4(x + at * WIDTH + n));
  }
}

#define FEED_FORWARD(NAME, TILES)                                                                                                        \
  KERNEL __launch_bounds__(32 * WARPS, 3 - TILES) NAME(float *y, float *h, float *mean, float *rstd, float *g, float *u, const float *x,   \
      const float *gamma, const float *beta, const float *gate, const float *gateBias, const float *down, const float *downBias, int rows, \
      float eps) {                                                                                                                         \
    feed<TILES>(y, h, mean, rstd, g, u, x, gamma, beta, gate, gateBias, down, downBias, rows, eps);                                        \
  }
FEED_FORWARD(feed_forward_16, 1)
