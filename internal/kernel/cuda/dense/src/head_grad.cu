// The way back through what a policy's decoder reads in one kernel, for instances of at most 16
// nodes, an instance a block: through the pointer's projection, the projections, the mean over
// nodes with its own, and the norm. The loops are those of kernel.LinearGradX, kernel.MeanNodesGrad
// and kernel.NormGrad. What every node gets of the mean's gradient is the same row, so that
// projection adds terms to the other one.
#include "rows16.cuh"

constexpr int PROJ = 4 * WIDTH, LONG = PROJ + 16;

// dproj[3·128:] = dpointer·pointerW; dh = dproj·w + dgraph/n·graphW; dx = the norm's gradient from
// dh A warp has 16 columns of the first, then 32 columns of dh over half of the terms.
KERNEL __launch_bounds__(32 * WARPS, 2) head_grad(float *dx, float *dproj, float *partial, const float *dpointer, const float *dgraph,
    const float *x, const float *mean, const float *rstd, const float *gamma, const float *w, const float *pointerW, const float *graphW,
    int n) {
  __shared__ float ys[16 * ROW] __attribute__((aligned(16)));  // dpointer, and then dh
  __shared__ float ds[16 * LONG] __attribute__((aligned(16))); // dproj, and then sums
  __shared__ float gs[WIDTH] __attribute__((aligned(16)));     // dgraph/n
  const int b = blockIdx_x, lane = threadIdx_x % 32, warp = threadIdx_x / 32, q = lane / 4, t = lane % 4, half = warp / 4;
  const long first = (long)b * n;
  Across<2, 4> pw[2];
  pw[0].read_turned<8>(pointerW + 16 * warp, WIDTH, 0), pw[1].read_turned<8>(pointerW + 16 * warp, WIDTH, 4);
  others_ended();
#pragma unroll
  for (int i = 0; i < 6; i++) {
    const int e = i * 32 * WARPS + threadIdx_x, r = e / (3 * WIDTH / 4), c = 4 * (e % (3 * WIDTH / 4));
    copy_async<4>(ds + r * LONG + c, r < n ? dproj + (first + r) * PROJ + c : dproj, r < n ? 16 : 0);
  }
#pragma unroll
  for (int i = 0; i < 2; i++) {
    const int r = 2 * warp + i;
    copy_async<4>(ys + r * ROW + 4 * lane, r < n ? dpointer + (first + r) * WIDTH + 4 * lane : dpointer, r < n ? 16 : 0);
  }
  commit_copies();
  if (threadIdx_x < WIDTH) gs[threadIdx_x] = div_(dgraph[(long)b * WIDTH + threadIdx_x], (float)n);
  wait_copies<0>();
  sync();
  {
    float acc[2][4] = {};
#pragma unroll
    for (int c = 0; c < CHUNKS; c++) {
      u32 a[2][4];
      operand(a, ys, ROW, turned<8>(c));
      pw[c / 4].multiply(acc, a, c % 4);
    }
#pragma unroll
    for (int e = 0; e < 2; e++) {
      const int r = q + 8 * e, c = 3 * WIDTH + 16 * warp + 4 * t;
      const f4 v = {acc[0][2 * e], acc[1][2 * e], acc[0][2 * e + 1], acc[1][2 * e + 1]};
      store4(ds + r * LONG + c, v);
      if (r < n) store4(dproj + (first + r) * PROJ + c, v);
    }
  }
  Across<4, 2> ws[2];
  const float *from = half_weight<16>(w), *fromGraph = half_weight<4>(graphW);
  auto fetch = [&](Across<4, 2> &to, int i) { i < 8 ? to.read_turned<16>(from, WIDTH, 2 * i) : to.read_turned<4>(fromGraph, WIDTH, 2 * (i - 8)); };
  fetch(ws[0], 0), fetch(ws[1], 1);
  Stream s = {};
  s.read_norm(x, mean, rstd, first, first + n);
  sync();
  half_terms<10, 2>(ys, ws, [&](u32(&a)[2][4], int c) {
    if (c < 16) operand(a, ds + half * PROJ / 2, LONG, turned<16>(c));
    else operand(a, gs + half * WIDTH / 2, 0, turned<4>(c - 16));
  }, fetch);
  s.norm_grad(dx, partial + (long)b * 2 * WIDTH, ys, gamma, ds, first, first + n);
}
