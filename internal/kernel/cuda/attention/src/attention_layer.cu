// The attention half of a layer of 128 columns and four heads in one kernel, for instances of at
// most 16 nodes, an instance a block, where one op does not fill a card: norm, queries, keys and
// values, attention with its distance bias, and the way back with bias and residual. The loops are
// those of kernel.Norm, kernel.Linear, kernel.Attention and kernel.Linear.
#include "attention_near.cuh"
#include "rows16.cuh"

constexpr int heads = 4, QKV = 3 * WIDTH, LONG = QKV + 16;

// h = norm(x), with mean and rstd;  qkv = h·wᵀ;  p, y = attention(qkv);  out = y·outᵀ + outBias + x
// A block has TILES instances; two of them were no faster. A warp has 48 columns of qkv, half the
// rows of a head, and 16 columns of the result. Shared: h, and then what attention gives
// [TILES·16][ROW] | qkv [TILES·16][LONG] | x, y [TILES·16].
template <int TILES> __device__ __forceinline__ void layer(float *out, float *h, float *mean, float *rstd, float *qkv, float *p, float *y,
    const float *x, const float *gamma, const float *beta, const float *w, const float *posX, const float *posY, const float *slope,
    const float *outW, const float *outBias, int n, int instances, float eps, float scale) {
  extern __shared__ float smem[] __attribute__((aligned(16)));
  float *hs = smem, *qkvs = hs + TILES * most * ROW, *xs = qkvs + TILES * most * LONG, *ys = xs + TILES * most;
  const int lane = threadIdx_x % 32, warp = threadIdx_x / 32, q = lane / 4, t = lane % 4;
  const Instances<TILES> in(n, instances);
  Weights<1, 4> ws[2];
  auto fetch = [&](int i) { // the i-th batch of the weights: 16 columns, four chunks
    const float *from[1] = {w + (long)(48 * warp + i / 2 * 16) * WIDTH};
    ws[i % 2].read(from, WIDTH, i % 2 * 4);
  };
  fetch(0), fetch(1);
  others_ended();
#pragma unroll
  for (int m = 0; m < TILES; m++) {
    bring_positions(xs + m * most, ys + m * most, posX + in.first(m), posY + in.first(m), n);
    norm_rows(hs + m * most * ROW, h, mean, rstd, x, gamma, beta, in.first(m), in.first(m) + n, eps, in.has[m]);
  }
  sync();
#pragma unroll
  for (int group = 0; group < 3; group++) {
    float acc[TILES][1][2][4] = {};
#pragma unroll
    for (int i = 0; i < 2; i++) {
      ws[i].multiply_rows(acc, hs, ROW, 4 * i);
      if (2 * group + i + 2 < 6) fetch(2 * group + i + 2);
    }
    const int at = 48 * warp + 16 * group + 4 * t;
#pragma unroll
    for (int i = 0; i < 2 * TILES; i++) {
      const f4 v = sums(acc[i / 2][0], i % 2);
      store4(qkvs + (q + 8 * i) * LONG + at, v);
      if (in.real(i)) store4(qkv + in.place(i) * QKV + at, v);
    }
  }
  const float *from[1] = {outW + (long)(16 * warp) * WIDTH};
  ws[0].read(from, WIDTH, 0), ws[1].read(from, WIDTH, 4);
  sync();
#pragma unroll
  for (int m = 0; m < TILES; m++) {
    constexpr int Q = 2;
    const int head = warp / 2, r = warp % 2 * 8 + q, i = r < n ? r : n - 1, at = head * 16 * Q;
    const float *rows = qkvs + m * most * LONG;
    f4 own[Q], got[Q];
#pragma unroll
    for (int u = 0; u < Q; u++) own[u] = load4(rows + i * LONG + at + 4 * t + 16 * u);
    float z[4];
    dots<Q>(z, own, rows + WIDTH + at, LONG, t);
    softmax(z, xs + m * most, ys + m * most, i, n, t, scale, slope[head]);
    const bool mine = r < n && in.has[m];
    if (mine) {
      float *to = p + (((long)in.index[m] * heads + head) * n + i) * most + t;
#pragma unroll
      for (int u = 0; u < 4; u++) to[4 * u] = z[u];
    }
    spread<Q>(got, z, rows + 2 * WIDTH + at, LONG, t);
    store_row<Q>(hs + (m * most + r) * ROW + at + 4 * t, got, 1.0f);
    if (mine) store_row<Q>(y + (in.first(m) + i) * WIDTH + at + 4 * t, got, 1.0f);
  }
  const int at = 16 * warp + 4 * t;
  sync();
  float acc[TILES][1][2][4] = {};
  ws[0].multiply_rows(acc, hs, ROW, 0), ws[1].multiply_rows(acc, hs, ROW, 4);
  const f4 bias = load4(outBias + at);
#pragma unroll
  for (int i = 0; i < 2 * TILES; i++)
    if (in.real(i)) store4(out + in.place(i) * WIDTH + at, sums(acc[i / 2][0], i % 2) + bias + load4(x + in.place(i) * WIDTH + at));
}

#define ATTENTION_LAYER(NAME, TILES)                                                                                                       \
  KERNEL __launch_bounds__(32 * WARPS, 3 - TILES) NAME(float *out, float *h, float *mean, float *rstd, float *qkv, float *p, float *y,      \
      const float *x, const float *gamma, const float *beta, const float *w, const float *posX, const float *posY, const float *slope,     \
      const float *outW, const float *outBias, int n, int instances, float eps, float scale) {                                             \
    layer<TILES>(out, h, mean, rstd, qkv, p, y, x, gamma, beta, w, posX, posY, slope, outW, outBias, n, instances, eps, scale);            \
  }
ATTENTION_LAYER(attention_layer_16, 1)
