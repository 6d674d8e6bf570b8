// What a policy's decoder reads, from the last layer's result, in one kernel, for instances of at
// most 16 nodes and batches too small to fill a card with one op: norm, projections, the pointer's
// projection, and the mean over nodes with its own, two instances a block. The loops are those of
// kernel.Norm, kernel.Linear, kernel.MeanNodes and kernel.Linear.
#include "rows16.cuh"

constexpr int PROJ = 4 * WIDTH, TILES = 2;

// h = norm(x), with means and rstd; proj = h·wᵀ; pointer = proj[3·128:]·pointerWᵀ; mean = Σ h / n;
// graph = mean·graphWᵀ A warp has 16 of each 128 columns.
KERNEL __launch_bounds__(32 * WARPS, 1) head_forward(float *proj, float *pointer, float *graph, float *h, float *means, float *rstd,
    float *mean, const float *x, const float *gamma, const float *beta, const float *w, const float *pointerW, const float *graphW, int n,
    int instances, float eps) {
  __shared__ float hs[TILES * 16 * ROW] __attribute__((aligned(16)));
  // what the pointer is projected from
  __shared__ float ps[TILES * 16 * ROW] __attribute__((aligned(16)));
  // row m is the mean of instance m, the others are zeros
  __shared__ float ms[16 * ROW] __attribute__((aligned(16)));
  const int lane = threadIdx_x % 32, warp = threadIdx_x / 32, q = lane / 4, t = lane % 4, at = 16 * warp + 4 * t;
  const Instances<TILES> in(n, instances);
  Weights<1, 4> ws[2];
  auto fetch = [&](int i) { // the i-th batch of the weights: 16 columns, four chunks
    // of the projections the last comes first, since the pointer waits for it
    const int k = i / 2;
    const float *from[1] = {(k < 4 ? w + (k + 3) % 4 * WIDTH * WIDTH : k == 4 ? pointerW : graphW) + 16 * warp * WIDTH};
    ws[i % 2].read(from, WIDTH, i % 2 * 4);
  };
  fetch(0), fetch(1);
  others_ended();
#pragma unroll
  for (int m = 0; m < TILES; m++)
    norm_rows(hs + m * 16 * ROW, h, means, rstd, x, gamma, beta, in.first(m), in.first(m) + n, eps, in.has[m]);
  sync();
  {
    const int m = threadIdx_x / WIDTH, c = threadIdx_x % WIDTH; // a thread a column and instance
    float sum = 0;
    for (int r = 0; r < n; r++) sum += hs[(m * 16 + r) * ROW + c];
    sum = div_(sum, (float)n);
    ms[m * ROW + c] = sum;
#pragma unroll
    for (int r = TILES + m; r < 16; r += TILES) ms[r * ROW + c] = 0;
    if (m == 0 || in.has[TILES - 1]) mean[((long)blockIdx_x * TILES + m) * WIDTH + c] = sum;
  }
#pragma unroll
  for (int k = 0; k < 6; k++) {
    if (k == 4) sync(); // the pointer's terms and the means are there
    float acc[TILES][1][2][4] = {};
    const float *left = k < 4 ? hs : k == 4 ? ps : ms;
    const int tiles = k < 5 ? TILES : 1;
#pragma unroll
    for (int i = 0; i < 2; i++) {
      ws[i].multiply_rows(acc, left, ROW, 4 * i, tiles);
      if (2 * k + i + 2 < 12) fetch(2 * k + i + 2);
    }
#pragma unroll
    for (int i = 0; i < 2 * tiles; i++) {
      const f4 v = sums(acc[i / 2][0], i % 2);
      if (k == 0) store4(ps + (q + 8 * i) * ROW + at, v);
      if (k < 4 && in.real(i)) store4(proj + in.place(i) * PROJ + (k + 3) % 4 * WIDTH + at, v);
      if (k == 4 && in.real(i)) store4(pointer + in.place(i) * WIDTH + at, v);
      if (k == 5 && i == 0 && q < TILES && (q == 0 || in.has[TILES - 1])) store4(graph + ((long)blockIdx_x * TILES + q) * WIDTH + at, v);
    }
  }
}
