// Attention and its gradient for instances of at most 16 nodes, a block an instance, two warps a
// head. The loops they compute are those of kernel.Attention and kernel.AttentionGrad.
//
// What a reader could break: attention_near.cuh says who holds what; here rows past the end are
// zeros in shared memory.
#include "attention_near.cuh"

// z = scale·q_i·k_j - slope[h]·dist(i,j); p[b,h,i,:] = softmax(z), 0 from n on; y[b,i] = Σ_j
// p_j·v_j Shared: k and v [16][2·d] | x, y [16].
template <int Q>
__device__ __forceinline__ void near(float *y, float *p, const float *qkv, const float *posX, const float *posY, const float *slope, int n, int d, int heads,
                                     float scale) {
  extern __shared__ float smem[] __attribute__((aligned(16)));
  const int b = blockIdx_x, lane = threadIdx_x % 32, warp = threadIdx_x / 32, head = warp / 2, t = lane % 4;
  const int row = warp % 2 * 8 + lane / 4, i = row < n ? row : n - 1, at = head * 16 * Q;
  float *kv = smem, *xs = kv + most * 2 * d, *ys = xs + most;
  const float *in = qkv + (long)b * n * 3 * d;
  for (int r = warp; r < most; r += 2 * heads)
    for (int c = 4 * lane; c < 2 * d; c += 128) copy_async<4>(kv + r * 2 * d + c, r < n ? in + r * 3 * d + d + c : in, r < n ? 16 : 0);
  commit_copies();
  f4 q[Q];
#pragma unroll
  for (int u = 0; u < Q; u++) q[u] = load4(in + i * 3 * d + at + 4 * t + 16 * u);
  const float bias = slope[head];
  bring_positions(xs, ys, posX + (long)b * n, posY + (long)b * n, n);
  wait_copies<0>();
  sync();
  float z[4];
  dots<Q>(z, q, kv + at, 2 * d, t);
  softmax(z, xs, ys, i, n, t, scale, bias);
  p += (((long)b * heads + head) * n + i) * most + t;
#pragma unroll
  for (int u = 0; u < 4; u++)
    if (row < n) p[4 * u] = z[u];
  f4 out[Q];
  spread<Q>(out, z, kv + d + at, 2 * d, t);
  if (row < n) store_row<Q>(y + ((long)b * n + i) * d + at + 4 * t, out, 1.0f);
}

// slopes_of is the work of one warp: it leaves the instance's sums in partial, and for the last
// instance of a gradient lane adds them up: dslope_l[h] (+)= Σ_b partial[b·heads + h]. Gradient
// lanes without instances are written by the first block.
__device__ __forceinline__ void slopes_of(float *dslope, const float *slopes, float *partial, u32 *turns, int heads, int instances, int gradLanes, int gradLaneSize, u32 add) {
  const int lane = threadIdx_x % 32, b = blockIdx_x, chunk = (instances + gradLanes - 1) / gradLanes, l = b / chunk;
  const int count = (l + 1) * chunk < instances ? chunk : instances - l * chunk;
  if (lane < heads) partial[b * heads + lane] = slopes[2 * lane] + slopes[2 * lane + 1];
  if (b == 0 && lane < heads && !add)
    for (int empty = (instances + chunk - 1) / chunk; empty < gradLanes; empty++) dslope[(long)empty * gradLaneSize + lane] = 0;
  syncwarp();
  int turn = 0;
  if (lane == 0) {
    fence();
    turn = (int)take_turn(turns + l, count);
    fence();
  }
  if (shfl(turn, 0) != count - 1 || lane >= heads) return;
  float sum = fresh_sum<16>(partial + l * chunk * heads + lane, count, heads), *out = dslope + (long)l * gradLaneSize + lane;
  *out = add ? *out + sum : sum;
}

// With dp_j = dy_i·v_j and dz_j = p_j·(dp_j - Σ p·dp):
// dq_i = scale·Σ_j dz_ij·k_j; dk_j = scale·Σ_i dz_ij·q_i; dv_j = Σ_i p_ij·dy_i; dslope[h] -= Σ
// dz_ij·dist(i,j) Shared: q, k and v [16][3·d] | dy [16][d] | p and dz [heads][2][16][17] | x, y
// [16] | a sum a warp. The warp past those of the heads is there where dslope is.
template <int Q>
__device__ __forceinline__ void near_grad(float *dqkv, float *dslope, const float *dy, const float *p, const float *qkv, const float *posX, const float *posY,
                                          float *partial, u32 *turns, int n, int d, int heads, float scale, int instances, int gradLanes, int gradLaneSize, u32 add) {
  extern __shared__ float smem[] __attribute__((aligned(16)));
  const int b = blockIdx_x, lane = threadIdx_x % 32, warp = threadIdx_x / 32, head = warp / 2, t = lane % 4;
  const int row = warp % 2 * 8 + lane / 4, i = row < n ? row : n - 1, at = head * 16 * Q + 4 * t;
  float *rows = smem, *grads = rows + most * 3 * d, *scores = grads + most * d, *xs = scores + heads * 2 * most * (most + 1), *ys = xs + most, *slopes = ys + most;
  const float *in = qkv + (long)b * n * 3 * d, *from = dy + (long)b * n * d;
  for (int e = 4 * threadIdx_x; e < most * 3 * d; e += 4 * blockDim_x) copy_async<4>(rows + e, e < n * 3 * d ? in + e : in, e < n * 3 * d ? 16 : 0);
  for (int e = 4 * threadIdx_x; e < most * d; e += 4 * blockDim_x) copy_async<4>(grads + e, e < n * d ? from + e : from, e < n * d ? 16 : 0);
  commit_copies();
  bring_positions(xs, ys, posX + (long)b * n, posY + (long)b * n, n);
  if (warp == 2 * heads) {
    wait_copies<0>();
    sync();
    sync();
    slopes_of(dslope, slopes, partial, turns, heads, instances, gradLanes, gradLaneSize, add);
    return;
  }
  f4 g[Q];
  float w[4], dz[4];
#pragma unroll
  for (int u = 0; u < Q; u++) g[u] = load4(from + i * d + at + 16 * u);
  p += (((long)b * heads + head) * n + i) * most + t;
#pragma unroll
  for (int u = 0; u < 4; u++) w[u] = p[4 * u];
  wait_copies<0>();
  sync();
  dots<Q>(dz, g, rows + 2 * d + at - 4 * t, 3 * d, t);
  float mean = 0, steep = 0;
#pragma unroll
  for (int u = 0; u < 4; u++) {
    if (row >= n) w[u] = 0;
    mean += w[u] * dz[u];
  }
  mean = quad_sum(mean);
  float *ps = scores + head * 2 * most * (most + 1), *zs = ps + most * (most + 1);
#pragma unroll
  for (int u = 0; u < 4; u++) {
    int j = 4 * u + t;
    dz[u] = w[u] * (dz[u] - mean);
    steep -= dz[u] * distance(xs, ys, i, j);
    ps[row * (most + 1) + j] = w[u];
    zs[row * (most + 1) + j] = dz[u];
  }
  steep = warp_sum(steep);
  if (lane == 0) slopes[warp] = steep;
  sync();
  float *out = dqkv + ((long)b * n + i) * 3 * d + at;
  f4 dq[Q], dk[Q] = {}, dv[Q] = {};
  spread<Q>(dq, dz, rows + d + at - 4 * t, 3 * d, t);
#pragma unroll 8
  for (int k = 0; k < most; k++) { // row is node j here
    float pk = ps[k * (most + 1) + row], zk = zs[k * (most + 1) + row];
#pragma unroll
    for (int u = 0; u < Q; u++) {
      dk[u] += zk * load4(rows + k * 3 * d + at + 16 * u);
      dv[u] += pk * load4(grads + k * d + at + 16 * u);
    }
  }
  if (row >= n) return;
  store_row<Q>(out, dq, scale);
  store_row<Q>(out + d, dk, scale);
  store_row<Q>(out + 2 * d, dv, 1.0f);
}

KERNEL __launch_bounds__(64 * maxHeads) attention_near_16(float *y, float *p, const float *qkv, const float *posX, const float *posY, const float *slope, int n, int d,
                                                         int heads, float scale) {
  near<1>(y, p, qkv, posX, posY, slope, n, d, heads, scale);
}
KERNEL __launch_bounds__(64 * maxHeads) attention_near_32(float *y, float *p, const float *qkv, const float *posX, const float *posY, const float *slope, int n, int d,
                                                         int heads, float scale) {
  near<2>(y, p, qkv, posX, posY, slope, n, d, heads, scale);
}
KERNEL __launch_bounds__(64 * maxHeads + 32) attention_near_grad_16(float *dqkv, float *dslope, const float *dy, const float *p, const float *qkv, const float *posX,
                                                                   const float *posY, float *partial, u32 *turns, int n, int d, int heads, float scale, int instances,
                                                                   int gradLanes, int gradLaneSize, u32 add) {
  near_grad<1>(dqkv, dslope, dy, p, qkv, posX, posY, partial, turns, n, d, heads, scale, instances, gradLanes, gradLaneSize, add);
}
KERNEL __launch_bounds__(64 * maxHeads + 32) attention_near_grad_32(float *dqkv, float *dslope, const float *dy, const float *p, const float *qkv, const float *posX,
                                                                   const float *posY, float *partial, u32 *turns, int n, int d, int heads, float scale, int instances,
                                                                   int gradLanes, int gradLaneSize, u32 add) {
  near_grad<2>(dqkv, dslope, dy, p, qkv, posX, posY, partial, turns, n, d, heads, scale, instances, gradLanes, gradLaneSize, add);
}
