// The optimizer over flat buffers: add up the gradient's lanes, clip by the norm, update; and the end of a step.
//
// What a reader could break: the norm is a sum in double precision in an order that the grid alone decides, and once a step is
// bad nothing here changes weights, moments, step or β^t again, so that the host can replay that step.
#include "ptx.cuh"

constexpr int threads = 256;
constexpr int batch = 8; // lanes read at once

// structs.go has the same sizes and places.
static_assert(sizeof(Control) == 16 && sizeof(State) == 48 && sizeof(Metrics) == 88, "structs.go");
static_assert(__builtin_offsetof(State, emaSteps) == 40 && __builtin_offsetof(Metrics, badStep) == 72, "structs.go");

// What the second kernel needs to know of the first.
struct Plan {
  float rate, scale, correct1, correct2; // learning rate, clip factor, 1/(1-β^t)
  u32 apply;
};
static_assert(sizeof(Plan) == 20, "adamw.go");

__device__ __forceinline__ bool is_finite(double x) { return (__builtin_bit_cast(u64, x) >> 52 & 0x7ff) != 0x7ff; }

// block_sum adds v over the block; thread 0 has the result.
__device__ __forceinline__ double block_sum(double v) {
  __shared__ double part[threads / 32];
  for (int m = 16; m > 0; m >>= 1) v += shfl_xor(v, m);
  sync();
  if (threadIdx_x % 32 == 0) part[threadIdx_x / 32] = v;
  sync();
  double sum = 0;
  if (threadIdx_x == 0)
    for (int w = 0; w < threads / 32; w++) sum += part[w];
  return sum;
}

// grads[i] = Σ_lane grads[lane·laneSize + i], lanes in order; squares[block] = Σ_i grads[i]². The last block adds up the
// norm, checks it and writes plan, state and metrics.
KERNEL __launch_bounds__(threads, 4) adamw_sum(float *grads, double *squares, u32 *turn, Plan *plan, State *state, Metrics *metrics, const Control *control, int lanes,
                                          int laneSize, double beta1, double beta2, float maxNorm, int warmup) {
  double sum = 0;
  for (int i = 4 * (blockIdx_x * threads + threadIdx_x); i < laneSize; i += 4 * threads * gridDim_x) {
    f4 g = {0, 0, 0, 0};
    for (int l = 0; l < lanes; l += batch) {
      f4 v[batch];
#pragma unroll
      for (int j = 0; j < batch; j++) v[j] = load4(grads + (long)(l + j < lanes ? l + j : 0) * laneSize + i);
#pragma unroll
      for (int j = 0; j < batch; j++) g += l + j < lanes ? v[j] : f4{0, 0, 0, 0};
    }
    store4(grads + i, g);
    sum += (double)g.x * g.x + (double)g.y * g.y + ((double)g.z * g.z + (double)g.w * g.w);
  }
  sum = block_sum(sum);
  if (threadIdx_x == 0) squares[blockIdx_x] = sum;
  if (!last_of(gridDim_x, turn)) return;
  // Everything is read before the first write, so that the reads travel together.
  State s = *state;
  long long badStep = metrics->badStep;
  double norms = metrics->gradNorm;
  float rate = control->learningRate;
  const int mine = (int)threadIdx_x, all = (int)gridDim_x;
  sum = block_sum(mine < all ? fresh_sum<4>(squares + mine, (all - mine + threads - 1) / threads, threads) : 0);
  if (threadIdx_x != 0) return;
  double norm = sqrt64(sum);
  metrics->gradNorm = norms + norm;
  if (badStep == 0 && !is_finite(norm)) {
    badStep = (long long)s.step + 1;
    metrics->badStep = badStep;
    metrics->badFirst = s.instances;
  }
  plan->apply = badStep == 0;
  if (badStep != 0) return;
  s.step++;
  s.beta1T *= beta1;
  s.beta2T *= beta2;
  if (warmup > 0 && s.step < (u64)warmup) rate *= div_((float)s.step, (float)warmup);
  state->step = s.step;
  state->beta1T = s.beta1T;
  state->beta2T = s.beta2T;
  plan->rate = rate;
  plan->scale = maxNorm > 0 && norm > (double)maxNorm ? (float)((double)maxNorm / (norm + 1e-6)) : 1.0f;
  plan->correct1 = (float)(1.0 / (1.0 - s.beta1T));
  plan->correct2 = (float)(1.0 / (1.0 - s.beta2T));
}

// g = grads·scale;  m = β1·m + (1-β1)·g;  v = β2·v + (1-β2)·g²
// w -= rate·(m·correct1/(sqrt(v·correct2)+eps) + decay·w)
KERNEL __launch_bounds__(threads) adamw_update(float *weights, float *m, float *v, const float *grads, const Plan *plan, int length, float beta1, float beta2, float eps,
                                             float decay) {
  int i = 4 * (blockIdx_x * threads + threadIdx_x);
  if (i >= length) return;
  f4 g = load4(grads + i), w = load4(weights + i), mi = load4(m + i), vi = load4(v + i);
  const Plan p = *plan;
  if (!p.apply) return;
  g *= p.scale;
  mi = beta1 * mi + (1.0f - beta1) * g;
  vi = beta2 * vi + (1.0f - beta2) * g * g;
#pragma unroll
  for (int j = 0; j < 4; j++) w[j] -= p.rate * (div_(mi[j] * p.correct1, sqrtf_(vi[j] * p.correct2) + eps) + decay * w[j]);
  store4(m + i, mi);
  store4(v + i, vi);
  store4(weights + i, w);
}

// The last kernel of a step: the next one starts `batch` instances further on.
KERNEL advance(State *state, u32 batch) { state->instances += batch; }
