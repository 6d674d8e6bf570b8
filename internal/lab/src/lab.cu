// The kernels of the lab's experiments: simple implementations of the work that the five reports
// discuss. None is used in training.
//
// Contenders compute the same numbers: the experiments compare results before they compare times.
#include "haul.cuh"

constexpr int threads = 256;

__device__ __forceinline__ float leg(float dx, float dy) { return sqrtf_(dx * dx + dy * dy); }

// out[r] = length of tour r, for r in [first, first+count), from coordinates: one warp per route,
// in one launch.
KERNEL __launch_bounds__(threads) route_costs(float *out, const float *x, const float *y, const int *tours, int stride, int nodes, int first, int count) {
  int r = (blockIdx_x * threads + threadIdx_x) / 32, lane = threadIdx_x % 32;
  if (r >= count) return;
  r += first;
  const float *px = x + r * nodes, *py = y + r * nodes;
  const int *tour = tours + r * stride;
  float sum = 0;
  for (int t = lane + 1; t < stride; t += 32) {
    int a = tour[t - 1], b = tour[t];
    sum += leg(px[a] - px[b], py[a] - py[b]);
  }
  sum = warp_sum(sum);
  if (lane == 0) out[r] = sum;
}

// The cost of one route by its distance matrix, in two launches: legs[t] =
// dist[tour[t], tour[t+1]], then their sum.
KERNEL one_gather(float *legs, const float *dist, const int *tour, int count, int nodes) {
  int t = threadIdx_x;
  if (t < count) legs[t] = dist[tour[t] * nodes + tour[t + 1]];
}
KERNEL one_sum(float *out, const float *legs, int count) {
  float sum = 0;
  for (int t = threadIdx_x; t < count; t += 32) sum += legs[t];
  sum = warp_sum(sum);
  if (threadIdx_x == 0) *out = sum;
}

// All routes with one operation per launch, as a tensor library does it: stack the matrices, build
// the indices and the mask, gather, mask, sum. A row has steps = stride - 1 legs; those after its
// tour's length are masked.
KERNEL __launch_bounds__(threads) all_stack(float *stacked, const float *dist, int n) {
  int i = blockIdx_x * threads + threadIdx_x;
  if (i < n) stacked[i] = dist[i];
}
KERNEL __launch_bounds__(threads) all_index(int *index, const int *tours, int rows, int steps, int nodes) {
  int i = blockIdx_x * threads + threadIdx_x;
  if (i >= rows * steps) return;
  int r = i / steps, t = i % steps;
  const int *tour = tours + r * (steps + 1);
  index[i] = (r * nodes + tour[t]) * nodes + tour[t + 1];
}
KERNEL __launch_bounds__(threads) all_mask(float *mask, const int *lengths, int rows, int steps) {
  int i = blockIdx_x * threads + threadIdx_x;
  if (i < rows * steps) mask[i] = i % steps < lengths[i / steps] - 1 ? 1.0f : 0.0f;
}
KERNEL __launch_bounds__(threads) all_gather(float *legs, const float *stacked, const int *index, int n) {
  int i = blockIdx_x * threads + threadIdx_x;
  if (i < n) legs[i] = stacked[index[i]];
}
KERNEL __launch_bounds__(threads) all_apply(float *masked, const float *legs, const float *mask, int n) {
  int i = blockIdx_x * threads + threadIdx_x;
  if (i < n) masked[i] = legs[i] * mask[i];
}
KERNEL __launch_bounds__(threads) all_sum(float *out, const float *masked, int rows, int steps) {
  int r = (blockIdx_x * threads + threadIdx_x) / 32, lane = threadIdx_x % 32;
  if (r >= rows) return;
  float sum = 0;
  for (int t = lane; t < steps; t += 32) sum += masked[r * steps + t];
  sum = warp_sum(sum);
  if (lane == 0) out[r] = sum;
}

// dist[b,i,j] from coordinates, computed on the GPU instead of copied.
KERNEL __launch_bounds__(threads) distances(float *dist, const float *x, const float *y, int rows, int nodes) {
  int i = blockIdx_x * threads + threadIdx_x;
  if (i >= rows * nodes * nodes) return;
  int b = i / (nodes * nodes), u = i / nodes % nodes, v = i % nodes;
  dist[i] = leg(x[b * nodes + u] - x[b * nodes + v], y[b * nodes + u] - y[b * nodes + v]);
}

// A link of a chain of small kernels.
KERNEL __launch_bounds__(threads) link(float *y, int n) {
  int i = blockIdx_x * threads + threadIdx_x;
  if (i < n) y[i] = fma_(y[i], 0.5f, 1.0f);
}

// y = rounds multiply-adds on x: work of adjustable length.
KERNEL __launch_bounds__(threads) busy(float *y, const float *x, int n, int rounds) {
  for (int i = blockIdx_x * threads + threadIdx_x; i < n; i += threads * gridDim_x) {
    float v = x[i];
    for (int r = 0; r < rounds; r++) v = fma_(v, 0.9999f, 0.0001f);
    y[i] = v;
  }
}

// AdamW, one pass at a time, and all passes in one. The learning rate includes the corrections of
// the moments.
KERNEL __launch_bounds__(threads) adam_scale(float *scaled, const float *g, int n, float scale) {
  int i = blockIdx_x * threads + threadIdx_x;
  if (i < n) scaled[i] = g[i] * scale;
}
KERNEL __launch_bounds__(threads) adam_first(float *m, const float *g, int n, float beta) {
  int i = blockIdx_x * threads + threadIdx_x;
  if (i < n) m[i] = beta * m[i] + (1.0f - beta) * g[i];
}
KERNEL __launch_bounds__(threads) adam_second(float *v, const float *g, int n, float beta) {
  int i = blockIdx_x * threads + threadIdx_x;
  if (i < n) v[i] = beta * v[i] + (1.0f - beta) * g[i] * g[i];
}
KERNEL __launch_bounds__(threads) adam_decay(float *w, int n, float keep) {
  int i = blockIdx_x * threads + threadIdx_x;
  if (i < n) w[i] *= keep;
}
KERNEL __launch_bounds__(threads) adam_apply(float *w, const float *m, const float *v, int n, float rate, float eps) {
  int i = blockIdx_x * threads + threadIdx_x;
  if (i < n) w[i] -= rate * div_(m[i], sqrtf_(v[i]) + eps);
}
KERNEL __launch_bounds__(threads) adam_fused(float *w, float *m, float *v, const float *g, int n, float scale, float beta1, float beta2, float keep, float rate, float eps) {
  int i = blockIdx_x * threads + threadIdx_x;
  if (i >= n) return;
  float gi = g[i] * scale;
  float mi = beta1 * m[i] + (1.0f - beta1) * gi, vi = beta2 * v[i] + (1.0f - beta2) * gi * gi;
  m[i] = mi;
  v[i] = vi;
  w[i] = w[i] * keep - rate * div_(mi, sqrtf_(vi) + eps);
}
