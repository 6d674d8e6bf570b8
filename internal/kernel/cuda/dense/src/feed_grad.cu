// The way back through the feed-forward half of a layer of 128 columns in one kernel, for batches
// too small to fill a card with one op: through the second product, the gated unit, the first
// product and the norm, sixteen rows a block. The loops are those of kernel.LinearGradX,
// kernel.GLUGrad, kernel.LinearGradX and kernel.NormGrad.
//
// What a reader could break: dx is another tensor than dy, which the weights' gradients still read.
// Gradients of gamma and beta are left as sums of a block, which half_lanes adds in the order of
// the blocks.
#include "rows16.cuh"

constexpr int FEED = 256, LONG = 2 * FEED + 16;

// du = dy·down; dg = the gated unit's gradient; dh = dg·gate; dx = dy + the norm's gradient from dh
// A warp has 32 columns of du, then 32 columns of dh over half of the terms.
KERNEL __launch_bounds__(32 * WARPS, 2) feed_grad(float *dx, float *dg, float *partial, const float *dy, const float *g, const float *x,
    const float *mean, const float *rstd, const float *gamma, const float *gate, const float *down, int rows) {
  __shared__ float ys[16 * ROW] __attribute__((aligned(16)));  // dy, and then dh
  __shared__ float gs[16 * LONG] __attribute__((aligned(16))); // g, and then dg, and then sums
  const int lane = threadIdx_x % 32, warp = threadIdx_x / 32, q = lane / 4, t = lane % 4;
  const long first = (long)blockIdx_x * 16;
  Across<4, 2> w[2];
  const float *from = down + 32 * warp;
  w[0].read(from, FEED, 0), w[1].read(from, FEED, 2);
  others_ended();
#pragma unroll
  for (int i = 0; i < 8; i++) {
    const int e = i * 32 * WARPS + threadIdx_x, r = e / (2 * FEED / 4), c = 4 * (e % (2 * FEED / 4));
    const bool real = first + r < rows;
    copy_async<4>(gs + r * LONG + c, real ? g + (first + r) * 2 * FEED + c : g, real ? 16 : 0);
  }
  commit_copies();
  Stream s;
  s.read(dy, first, rows), s.read_norm(x, mean, rstd, first, rows);
  s.keep(ys);
  wait_copies<0>();
  sync();
  float acc[4][4] = {};
#pragma unroll
  for (int i = 0; i < 4; i++) {
    w[i % 2].multiply_rows(acc, ys, 2 * i);
    if (i + 2 < 4) w[i % 2].read(from, FEED, 2 * (i + 2));
  }
  from = half_weight<16>(gate);
  auto fetch = [&](Across<4, 2> &to, int i) { to.read(from, WIDTH, 2 * i); };
  fetch(w[0], 0), fetch(w[1], 1);
#pragma unroll
  for (int e = 0; e < 2; e++)
#pragma unroll
    for (int y = 0; y < 2; y++) {
      const int r = q + 8 * e, n = 32 * warp + 8 * t + 4 * y;
      const f4 du = {acc[0][2 * e + y], acc[1][2 * e + y], acc[2][2 * e + y], acc[3][2 * e + y]};
      const f4 p = load4(gs + r * LONG + n), z = load4(gs + r * LONG + FEED + n);
      const f4 sg = {sigmoid_(z.x), sigmoid_(z.y), sigmoid_(z.z), sigmoid_(z.w)};
      const f4 dp = du * sg, dz = du * p * sg * (1.0f - sg);
      store4(gs + r * LONG + n, dp), store4(gs + r * LONG + FEED + n, dz);
      if (first + r >= rows) continue;
      store4(dg + (first + r) * 2 * FEED + n, dp), store4(dg + (first + r) * 2 * FEED + FEED + n, dz);
    }
  sync();
  const float *mine = gs + warp / 4 * FEED;
  half_terms<8, 2>(ys, w, [&](u32(&a)[2][4], int c) { operand(a, mine, LONG, c); }, fetch);
  s.norm_grad(dx, partial + (long)blockIdx_x * 2 * WIDTH, ys, gamma, gs, first, rows);
}

// For gradient lane l, the block's y, of `each` blocks, all of them `blocks`: out[c] (+)= Σ
// partial[c] over its blocks, where c is a column of gamma, then of beta, then one of `heads`
// slopes. Blocks' sums are `width` apart.
KERNEL __launch_bounds__(32) half_lanes(float *dgamma, float *dbeta, float *dslope, const float *partial, int each, int blocks, int width,
    int heads, int gradLaneSize, u32 addGamma, u32 addBeta, u32 addSlope) {
  const int e = blockIdx_x * 32 + threadIdx_x, l = blockIdx_y, from = l * each, to = from + each < blocks ? from + each : blocks;
  if (e >= 2 * WIDTH + heads) return;
  float v = 0;
#pragma unroll 16
  for (int b = from; b < to; b++) v += partial[(long)b * width + e];
  float *out = (long)l * gradLaneSize + (e < WIDTH ? dgamma + e : e < 2 * WIDTH ? dbeta + (e - WIDTH) : dslope + (e - 2 * WIDTH));
  *out = (e < WIDTH ? addGamma : e < 2 * WIDTH ? addBeta : addSlope) ? *out + v : v;
}
