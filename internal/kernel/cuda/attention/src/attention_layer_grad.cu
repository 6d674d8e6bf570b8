// The way back through the attention half of a layer of 128 columns and four heads in one kernel,
// for instances of at most 16 nodes, an instance a block, where one op does not fill a card:
// through the last product, attention, the first product and the norm. The loops are those of
// kernel.LinearGradX, kernel.AttentionGrad, kernel.LinearGradX and kernel.NormGrad.
//
// What a reader could break: dx is another tensor than dy, which the weights' gradients still read.
// Gradients of gamma, beta and the slopes are left as sums of a block, which half_lanes adds in the
// order of the blocks.
#include "attention_near.cuh"
#include "rows16.cuh"

constexpr int heads = 4, QKV = 3 * WIDTH, LONG = QKV + 16, SCORES = most * (most + 1), SUMS = 2 * WIDTH + heads;

// da = dy·out;  dqkv = attention's gradient;  dh = dqkv·w;  dx = dy + the norm's gradient from dh
// A warp has 16 columns of da, then half the rows of a head, then 32 columns of dh over half of the
// terms.
KERNEL __launch_bounds__(32 * WARPS, 2) attention_layer_grad(float *dx, float *dqkv, float *partial, const float *dy, const float *qkv,
    const float *p, const float *posX, const float *posY, const float *x, const float *mean, const float *rstd, const float *gamma,
    const float *w, const float *outW, int n, float scale) {
  // q, k and v, then their gradients, and then sums
  __shared__ float qkvs[most * LONG] __attribute__((aligned(16)));
  __shared__ float as[most * ROW] __attribute__((aligned(16)));    // da, and then dh
  // dy, and then p and dz of each head
  __shared__ float ys[most * ROW] __attribute__((aligned(16)));
  __shared__ float xs[most], py[most], slopes[WARPS];
  static_assert(heads * 2 * SCORES <= most * ROW, "p and dz have room");
  const int b = blockIdx_x, lane = threadIdx_x % 32, warp = threadIdx_x / 32, q = lane / 4, t = lane % 4;
  const long first = (long)b * n;
  Across<2, 4> ow[2];
  ow[0].read(outW + 16 * warp, WIDTH, 0), ow[1].read(outW + 16 * warp, WIDTH, 4);
  others_ended();
#pragma unroll
  for (int i = 0; i < 6; i++) {
    const int e = i * 32 * WARPS + threadIdx_x, r = e / (QKV / 4), c = 4 * (e % (QKV / 4));
    copy_async<4>(qkvs + r * LONG + c, r < n ? qkv + (first + r) * QKV + c : qkv, r < n ? 16 : 0);
  }
  commit_copies();
  bring_positions(xs, py, posX + first, posY + first, n);
  Stream s;
  s.read(dy, first, first + n), s.read_norm(x, mean, rstd, first, first + n);
  s.keep(ys);
  wait_copies<0>();
  sync();
  {
    float acc[2][4] = {};
    ow[0].multiply_rows(acc, ys, 0), ow[1].multiply_rows(acc, ys, 4);
#pragma unroll
    for (int e = 0; e < 2; e++)
      store4(as + (q + 8 * e) * ROW + 16 * warp + 4 * t, f4{acc[0][2 * e], acc[1][2 * e], acc[0][2 * e + 1], acc[1][2 * e + 1]});
  }
  sync();
  constexpr int Q = 2;
  const int head = warp / 2, row = warp % 2 * 8 + q, i = row < n ? row : n - 1, at = head * 16 * Q;
  float *ps = ys + head * 2 * SCORES, *zs = ps + SCORES;
  f4 dq[Q], dk[Q] = {}, dv[Q] = {};
  {
    f4 g[Q];
    float pr[4], dz[4], mu = 0, steep = 0;
    const float *in = p + (((long)b * heads + head) * n + i) * most + t;
#pragma unroll
    for (int u = 0; u < 4; u++) pr[u] = row < n ? in[4 * u] : 0.0f;
#pragma unroll
    for (int u = 0; u < Q; u++) g[u] = load4(as + i * ROW + at + 4 * t + 16 * u);
    dots<Q>(dz, g, qkvs + 2 * WIDTH + at, LONG, t);
#pragma unroll
    for (int u = 0; u < 4; u++) mu += pr[u] * dz[u];
    mu = quad_sum(mu);
#pragma unroll
    for (int u = 0; u < 4; u++) {
      const int j = 4 * u + t;
      dz[u] = pr[u] * (dz[u] - mu);
      steep -= dz[u] * distance(xs, py, i, j);
      ps[row * (most + 1) + j] = pr[u];
      zs[row * (most + 1) + j] = dz[u];
    }
    steep = warp_sum(steep);
    if (lane == 0) slopes[warp] = steep;
    spread<Q>(dq, dz, qkvs + WIDTH + at, LONG, t);
  }
  sync();
#pragma unroll 8
  for (int k = 0; k < most; k++) { // row is node j here
    const float pk = ps[k * (most + 1) + row], zk = zs[k * (most + 1) + row];
#pragma unroll
    for (int u = 0; u < Q; u++) {
      dk[u] += zk * load4(qkvs + k * LONG + at + 4 * t + 16 * u);
      dv[u] += pk * load4(as + k * ROW + at + 4 * t + 16 * u);
    }
  }
  Across<4, 2> ws[2];
  const float *from = half_weight<12>(w);
  auto fetch = [&](Across<4, 2> &to, int i) { to.read(from, WIDTH, 2 * i); };
  fetch(ws[0], 0), fetch(ws[1], 1);
  sync(); // whoever reads q, k and v is done
  float *mine = qkvs + row * LONG + at + 4 * t;
  store_row<Q>(mine, dq, scale), store_row<Q>(mine + WIDTH, dk, scale), store_row<Q>(mine + 2 * WIDTH, dv, 1.0f);
  if (row < n) {
    float *to = dqkv + (first + row) * QKV + at + 4 * t;
    store_row<Q>(to, dq, scale), store_row<Q>(to + WIDTH, dk, scale), store_row<Q>(to + 2 * WIDTH, dv, 1.0f);
  }
  if (threadIdx_x < heads) partial[(long)b * SUMS + 2 * WIDTH + threadIdx_x] = slopes[2 * threadIdx_x] + slopes[2 * threadIdx_x + 1];
  sync();
  const float *terms = qkvs + warp / 4 * (QKV / 2);
  half_terms<6, 2>(as, ws, [&](u32(&a)[2][4], int c) { operand(a, terms, LONG, c); }, fetch);
  s.norm_grad(dx, partial + (long)b * SUMS, as, gamma, qkvs, first, first + n);
}
