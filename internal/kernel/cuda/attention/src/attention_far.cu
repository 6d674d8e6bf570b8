// Attention where a head of an instance is too large for shared memory: a warp a row, everything
// else read from global memory as often as it is needed. Slower, and bounded only by one row in
// shared memory.
//
// What a reader could break: nothing holds the matrix of score gradients here, so the kernel over
// columns makes them again from p, dy, v and the row means that the kernel over rows left in
// scratch.
#include "attention.cuh"

// Row is where warp `row` of the grid works: node i of head h of instance b.
struct Row {
  int b, h, i, head;
};
__device__ __forceinline__ Row row_of(int n, int heads) {
  int row = blockIdx_x * (blockDim_x / 32) + threadIdx_x / 32, head = row / n;
  return Row{head / heads, head % heads, row % n, head};
}

__device__ __forceinline__ float dot(const float *a, const float *b, int hd) {
  float sum = 0;
  for (int c = 0; c < hd; c++) sum += a[c] * b[c];
  return sum;
}

__device__ __forceinline__ float distance(const float *x, const float *y, int i, int j) {
  float dx = x[i] - x[j], dy = y[i] - y[j];
  return sqrtf_(dx * dx + dy * dy);
}

// As attention. Shared: a row [n] a warp.
KERNEL attention_far(float *y, float *p, const float *qkv, const float *posX, const float *posY, const float *slope, int instances, int n, int d, int heads, int pad,
                   float scale) {
  extern __shared__ float smem[] __attribute__((aligned(16)));
  const Row w = row_of(n, heads);
  if (w.b >= instances) return;
  const int lane = threadIdx_x % 32, hd = d / heads;
  float *z = smem + threadIdx_x / 32 * n;
  const float *in = qkv + (long)w.b * n * 3 * d + w.h * hd, *q = in + (long)w.i * 3 * d;
  const float *x = posX + (long)w.b * n, *yy = posY + (long)w.b * n;
  float top = -3e38f, sum = 0;
  for (int j = lane; j < n; j += 32) {
    float v = dot(q, in + d + (long)j * 3 * d, hd) * scale - slope[w.h] * distance(x, yy, w.i, j);
    z[j] = v;
    top = v > top ? v : top;
  }
  top = warp_max(top);
  for (int j = lane; j < n; j += 32) {
    z[j] = expf_(z[j] - top);
    sum += z[j];
  }
  const float inverse = rcp(warp_sum(sum));
  float *to = p + ((long)w.head * n + w.i) * pad;
  for (int j = lane; j < pad; j += 32) {
    if (j < n) z[j] *= inverse;
    to[j] = j < n ? z[j] : 0.0f;
  }
  syncwarp();
  for (int c = lane; c < hd; c += 32) {
    float out = 0;
    for (int j = 0; j < n; j++) out += z[j] * in[2 * d + (long)j * 3 * d + c];
    y[((long)w.b * n + w.i) * d + w.h * hd + c] = out;
  }
}

// dq of row i, its mean Σ_j p·dp and its part of the slope's gradient, by rows. Shared: a row [n] a
// warp.
KERNEL attention_far_rows(float *dqkv, float *mean, float *partial, const float *dy, const float *p, const float *qkv, const float *posX, const float *posY, int instances,
                        int n, int d, int heads, int pad, float scale) {
  extern __shared__ float smem[] __attribute__((aligned(16)));
  const Row w = row_of(n, heads);
  if (w.b >= instances) return;
  const int lane = threadIdx_x % 32, hd = d / heads;
  float *z = smem + threadIdx_x / 32 * n;
  const float *in = qkv + (long)w.b * n * 3 * d + w.h * hd, *g = dy + ((long)w.b * n + w.i) * d + w.h * hd;
  const float *x = posX + (long)w.b * n, *y = posY + (long)w.b * n, *prob = p + ((long)w.head * n + w.i) * pad;
  float sum = 0, steep = 0;
  for (int j = lane; j < n; j += 32) {
    z[j] = dot(g, in + 2 * d + (long)j * 3 * d, hd);
    sum += prob[j] * z[j];
  }
  sum = warp_sum(sum);
  for (int j = lane; j < n; j += 32) {
    float dz = prob[j] * (z[j] - sum);
    steep -= dz * distance(x, y, w.i, j);
    z[j] = dz * scale;
  }
  steep = warp_sum(steep);
  if (lane == 0) mean[(long)w.head * n + w.i] = sum, partial[(long)w.head * n + w.i] = steep;
  syncwarp();
  for (int c = lane; c < hd; c += 32) {
    float out = 0;
    for (int j = 0; j < n; j++) out += z[j] * in[d + (long)j * 3 * d + c];
    dqkv[((long)w.b * n + w.i) * 3 * d + w.h * hd + c] = out;
  }
}

// dk and dv of node w.i, by columns. Shared: two columns [n] a warp.
KERNEL attention_far_columns(float *dqkv, const float *mean, const float *dy, const float *p, const float *qkv, int instances, int n, int d, int heads, int pad,
                           float scale) {
  extern __shared__ float smem[] __attribute__((aligned(16)));
  const Row w = row_of(n, heads);
  if (w.b >= instances) return;
  const int lane = threadIdx_x % 32, hd = d / heads;
  float *z = smem + threadIdx_x / 32 * 2 * n, *prob = z + n;
  const float *in = qkv + (long)w.b * n * 3 * d + w.h * hd, *g = dy + (long)w.b * n * d + w.h * hd, *v = in + 2 * d + (long)w.i * 3 * d;
  for (int i = lane; i < n; i += 32) {
    prob[i] = p[((long)w.head * n + i) * pad + w.i];
    z[i] = prob[i] * (dot(g + (long)i * d, v, hd) - mean[(long)w.head * n + i]) * scale;
  }
  syncwarp();
  for (int c = lane; c < hd; c += 32) {
    float dk = 0, dv = 0;
    for (int i = 0; i < n; i++) {
      dk += z[i] * in[(long)i * 3 * d + c];
      dv += prob[i] * g[(long)i * d + c];
    }
    float *out = dqkv + ((long)w.b * n + w.i) * 3 * d + w.h * hd + c;
    out[d] = dk;
    out[2 * d] = dv;
  }
}

KERNEL attention_far_slope(float *dslope, const float *partial, int instances, int heads, int items, int gradLanes, int gradLaneSize, u32 add) {
  slope_grad_lanes(dslope, partial, instances, heads, items, gradLanes, gradLaneSize, add);
}
