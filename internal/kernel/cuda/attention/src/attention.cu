// Multi-head self-attention with a distance bias, and its gradient, a block a head of an instance.
// The loops they compute are those of kernel.Attention and kernel.AttentionGrad.
//
// What a reader could break: a head's slices live in shared memory for the whole block. Where they
// do not fit, the kernels of attention_far.cu are launched instead; the sizes here and in
// attention.go must agree.
#include "attention.cuh"

constexpr int maxWarps = 8;

// z = scale·q_i·k_j - slope[h]·dist(i,j); p[b,h,i,:] = softmax(z), 0 from n to pad; y[b,i] = Σ_j
// p_j·v_j Shared: q, k, v [n][ld] | entries [warps][n] f4 | x, y [n].
KERNEL __launch_bounds__(32 * maxWarps) attention(float *y, float *p, const float *qkv, const float *posX, const float *posY, const float *slope, int n, int d, int heads,
                                          int pad, float scale, u32 vec) {
  extern __shared__ float smem[] __attribute__((aligned(16)));
  const Head h = head_of(n, d, heads, vec);
  const int b = blockIdx_x / heads, head = blockIdx_x % heads;
  const int lane = threadIdx_x % 32, warp = threadIdx_x / 32, warps = blockDim_x / 32;
  float *q = smem, *k = q + n * h.ld, *v = k + n * h.ld, *entries = v + n * h.ld + warp * 4 * n;
  float *xs = v + n * h.ld + warps * 4 * n, *ys = xs + n;
  const float *in = qkv + (long)b * n * 3 * d + head * h.hd;
  bring_slice(q, in, 3 * d, h);
  bring_slice(k, in + d, 3 * d, h);
  bring_slice(v, in + 2 * d, 3 * d, h);
  for (int i = threadIdx_x; i < n; i += blockDim_x) xs[i] = posX[(long)b * n + i], ys[i] = posY[(long)b * n + i];
  const float bias = slope[head];
  p += (long)blockIdx_x * n * pad;
  sync();
  for (int i0 = 4 * warp; i0 < n; i0 += 4 * warps) {
    f4 top = {-3e38f, -3e38f, -3e38f, -3e38f};
    for (int j0 = 0; j0 < n; j0 += 128) {
      f4 z[4];
      dots(z, q, k, i0, j0, h);
#pragma unroll
      for (int u = 0; u < 4; u++) {
        int j = j0 + 32 * u + lane;
        if (j >= n) break;
        z[u] = z[u] * scale - bias * distances(xs, ys, i0, j, n);
#pragma unroll
        for (int r = 0; r < 4; r++) top[r] = z[u][r] > top[r] ? z[u][r] : top[r];
        store4(entries + 4 * j, z[u]);
      }
    }
    top = warp_max(top);
    f4 sum = {0, 0, 0, 0};
    for (int j = lane; j < n; j += 32) {
      f4 e = load4(entries + 4 * j) - top;
      e = f4{expf_(e.x), expf_(e.y), expf_(e.z), expf_(e.w)};
      store4(entries + 4 * j, e);
      sum += e;
    }
    sum = warp_sum(sum);
    const f4 inverse = {rcp(sum.x), rcp(sum.y), rcp(sum.z), rcp(sum.w)};
    for (int j = lane; j < pad; j += 32) {
      f4 e = {0, 0, 0, 0};
      if (j < n) {
        e = load4(entries + 4 * j) * inverse;
        store4(entries + 4 * j, e);
      }
#pragma unroll
      for (int r = 0; r < 4; r++)
        if (i0 + r < n) p[(long)(i0 + r) * pad + j] = e[r];
    }
    syncwarp();
    spread(y + (long)b * n * d + head * h.hd, d, i0, entries, 4, v, h);
    syncwarp();
  }
}

// With dp_j = dy_i·v_j and dz_j = p_j·(dp_j - Σ p·dp):
// dq_i = scale·Σ_j dz_ij·k_j; dk_j = scale·Σ_i dz_ij·q_i; dv_j = Σ_i p_ij·dy_i; dslope[h] -= Σ
// dz_ij·dist(i,j) Shared: q, k, v, dy [n][ld] | s [n][wide], p and then scale·dz | entries
// [warps][n] f4 | x, y [n] | a sum a warp. partial is a sum a block; the last block adds them up
// into the gradient's lanes, gradLanes of them.
KERNEL __launch_bounds__(32 * maxWarps) attention_grad(float *dqkv, float *dslope, const float *dy, const float *p, const float *qkv, const float *posX, const float *posY,
                                               float *partial, u32 *turn, int n, int d, int heads, int pad, float scale, u32 vec, int instances, int gradLanes,
                                               int gradLaneSize, u32 add) {
  extern __shared__ float smem[] __attribute__((aligned(16)));
  const Head h = head_of(n, d, heads, vec);
  const int b = blockIdx_x / heads, head = blockIdx_x % heads, columns = (n + 3) / 4, wide = 4 * (columns | 1);
  const int lane = threadIdx_x % 32, warp = threadIdx_x / 32, warps = blockDim_x / 32;
  float *q = smem, *k = q + n * h.ld, *v = k + n * h.ld, *g = v + n * h.ld, *s = g + n * h.ld;
  float *entries = s + n * wide + warp * 4 * n, *xs = s + n * wide + warps * 4 * n, *ys = xs + n, *slopes = ys + n;
  const float *in = qkv + (long)b * n * 3 * d + head * h.hd;
  float *out = dqkv + (long)b * n * 3 * d + head * h.hd;
  bring_slice(q, in, 3 * d, h);
  bring_slice(k, in + d, 3 * d, h);
  bring_slice(v, in + 2 * d, 3 * d, h);
  bring_slice(g, dy + (long)b * n * d + head * h.hd, d, h);
  p += (long)blockIdx_x * n * pad;
  for (int e = threadIdx_x; e < n * columns; e += blockDim_x) {
    int i = e / columns, j = 4 * (e % columns); // p has zeros from n on
    store4(s + i * wide + j, load4(p + (long)i * pad + j));
  }
  for (int i = threadIdx_x; i < n; i += blockDim_x) xs[i] = posX[(long)b * n + i], ys[i] = posY[(long)b * n + i];
  sync();
  for (int j0 = 4 * warp; j0 < n; j0 += 4 * warps) spread(out + 2 * d, 3 * d, j0, s + j0, wide, g, h);
  sync(); // p is read as columns above, and overwritten by rows below
  float steep = 0;
  for (int i0 = 4 * warp; i0 < n; i0 += 4 * warps) {
    f4 mean = {0, 0, 0, 0};
    for (int j0 = 0; j0 < n; j0 += 128) {
      f4 dp[4];
      dots(dp, g, v, i0, j0, h);
#pragma unroll
      for (int u = 0; u < 4; u++) {
        int j = j0 + 32 * u + lane;
        if (j >= n) break;
#pragma unroll
        for (int r = 0; r < 4; r++)
          if (i0 + r < n) mean[r] += s[(i0 + r) * wide + j] * dp[u][r];
        store4(entries + 4 * j, dp[u]);
      }
    }
    mean = warp_sum(mean);
    for (int j = lane; j < n; j += 32) {
      f4 dz = load4(entries + 4 * j) - mean;
#pragma unroll
      for (int r = 0; r < 4; r++) dz[r] *= i0 + r < n ? s[(i0 + r) * wide + j] : 0.0f;
      steep -= sum4(dz * distances(xs, ys, i0, j, n));
      dz *= scale;
      store4(entries + 4 * j, dz);
#pragma unroll
      for (int r = 0; r < 4; r++)
        if (i0 + r < n) s[(i0 + r) * wide + j] = dz[r];
    }
    syncwarp();
    spread(out, 3 * d, i0, entries, 4, k, h);
    syncwarp();
  }
  steep = warp_sum(steep);
  if (lane == 0) slopes[warp] = steep;
  sync();
  for (int j0 = 4 * warp; j0 < n; j0 += 4 * warps) spread(out + d, 3 * d, j0, s + j0, wide, q, h);
  if (!dslope) return;
  if (threadIdx_x == 0) {
    float sum = 0;
    for (int w = 0; w < warps; w++) sum += slopes[w];
    partial[blockIdx_x] = sum;
  }
  if (last_of(gridDim_x, turn)) slope_grad_lanes(dslope, partial, instances, heads, 1, gradLanes, gradLaneSize, add);
}
