// Graph attention: scores are sums over a pair of nodes, and leaky between the sum and the softmax
// keeps them from parting into one term per node. A warp a row, as attention_far.
//
// What a reader could break: the gradient of a score is made twice, by rows and by columns, from
// p, dy, v and the row means that the kernel over rows left in scratch. Both ask `edge` on which
// side of 0 the score was, so its order of operations is the forward kernel's.
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

// edge is from_i + to_j - far_i·dist; score is [n,2H], far [n,H], both of one instance from the
// head's column on.
__device__ __forceinline__ float edge(const float *score, const float *far, int i, int j, int heads, float dist) {
  return score[(long)i * 2 * heads] + score[(long)j * 2 * heads + heads] - far[(long)i * heads] * dist;
}

// z = leaky(edge); p[b,h,i,:] = softmax(z), 0 from n to pad; y[b,i] = Σ_j p_ij·v_j. Shared: a row
// [n] a warp.
KERNEL graph_attention(float *y, float *p, const float *v, const float *score, const float *far, const float *posX, const float *posY, int instances, int n, int d, int heads,
                     int pad, float leak) {
  extern __shared__ float smem[] __attribute__((aligned(16)));
  const Row w = row_of(n, heads);
  if (w.b >= instances) return;
  const int lane = threadIdx_x % 32, hd = d / heads;
  float *z = smem + threadIdx_x / 32 * n;
  const float *s = score + (long)w.b * n * 2 * heads + w.h, *f = far + (long)w.b * n * heads + w.h;
  const float *x = posX + (long)w.b * n, *yy = posY + (long)w.b * n, *in = v + (long)w.b * n * d + w.h * hd;
  float top = -3e38f, sum = 0;
  for (int j = lane; j < n; j += 32) {
    float e = edge(s, f, w.i, j, heads, distance(x, yy, w.i, j));
    e = e > 0 ? e : leak * e;
    z[j] = e;
    top = e > top ? e : top;
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
    for (int j = 0; j < n; j++) out += z[j] * in[(long)j * d + c];
    y[((long)w.b * n + w.i) * d + w.h * hd + c] = out;
  }
}

// By rows: mean = Σ_j p·dp with dp_j = dy_i·v_j, dfrom_i = Σ_j dz and dfar_i = -Σ_j dz·dist.
// Shared: a row [n] a warp.
KERNEL graph_attention_rows(float *dscore, float *dfar, float *mean, const float *dy, const float *p, const float *v, const float *score, const float *far,
                          const float *posX, const float *posY, int instances, int n, int d, int heads, int pad, float leak) {
  extern __shared__ float smem[] __attribute__((aligned(16)));
  const Row w = row_of(n, heads);
  if (w.b >= instances) return;
  const int lane = threadIdx_x % 32, hd = d / heads;
  float *z = smem + threadIdx_x / 32 * n;
  const float *s = score + (long)w.b * n * 2 * heads + w.h, *f = far + (long)w.b * n * heads + w.h;
  const float *x = posX + (long)w.b * n, *y = posY + (long)w.b * n, *in = v + (long)w.b * n * d + w.h * hd;
  const float *g = dy + ((long)w.b * n + w.i) * d + w.h * hd, *prob = p + ((long)w.head * n + w.i) * pad;
  float sum = 0, from = 0, steep = 0;
  for (int j = lane; j < n; j += 32) {
    z[j] = dot(g, in + (long)j * d, hd);
    sum += prob[j] * z[j];
  }
  sum = warp_sum(sum);
  for (int j = lane; j < n; j += 32) {
    float dist = distance(x, y, w.i, j), dz = prob[j] * (z[j] - sum);
    if (!(edge(s, f, w.i, j, heads, dist) > 0)) dz *= leak;
    from += dz;
    steep -= dz * dist;
  }
  from = warp_sum(from);
  steep = warp_sum(steep);
  if (lane == 0) {
    mean[(long)w.head * n + w.i] = sum;
    dscore[((long)w.b * n + w.i) * 2 * heads + w.h] = from;
    dfar[((long)w.b * n + w.i) * heads + w.h] = steep;
  }
}

// By columns: dto_j = Σ_i dz and dv_j = Σ_i p_ij·dy_i of node j = w.i. Shared: a column [n] a warp.
KERNEL graph_attention_columns(float *dv, float *dscore, const float *mean, const float *dy, const float *p, const float *v, const float *score, const float *far,
                             const float *posX, const float *posY, int instances, int n, int d, int heads, int pad, float leak) {
  extern __shared__ float smem[] __attribute__((aligned(16)));
  const Row w = row_of(n, heads);
  if (w.b >= instances) return;
  const int lane = threadIdx_x % 32, hd = d / heads;
  float *prob = smem + threadIdx_x / 32 * n;
  const float *s = score + (long)w.b * n * 2 * heads + w.h, *f = far + (long)w.b * n * heads + w.h;
  const float *x = posX + (long)w.b * n, *y = posY + (long)w.b * n, *in = v + ((long)w.b * n + w.i) * d + w.h * hd, *g = dy + (long)w.b * n * d + w.h * hd;
  float to = 0;
  for (int i = lane; i < n; i += 32) {
    prob[i] = p[((long)w.head * n + i) * pad + w.i];
    float dz = prob[i] * (dot(g + (long)i * d, in, hd) - mean[(long)w.head * n + i]);
    if (!(edge(s, f, i, w.i, heads, distance(x, y, i, w.i)) > 0)) dz *= leak;
    to += dz;
  }
  to = warp_sum(to);
  if (lane == 0) dscore[((long)w.b * n + w.i) * 2 * heads + heads + w.h] = to;
  syncwarp();
  for (int c = lane; c < hd; c += 32) {
    float out = 0;
    for (int i = 0; i < n; i++) out += prob[i] * g[(long)i * d + c];
    dv[((long)w.b * n + w.i) * d + w.h * hd + c] = out;
  }
}
