// The optimizer over flat buffers: add up the gradient's lanes, clip by the norm, update; and the end of a step.
//
// What a reader could break: the norm is a sum in double precision in an order that the grid alone decides, and once a step is
// bad nothing here changes weights, moments, step or β^t again, so that the host can replay that step.
#include "ptx.cuh"

constexpr int threads = 256;

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
KERNEL __launch_bounds__(threads) adamw_sum(float *grads, double *squares, u32 *turn, Plan *plan, State *state, Metrics *metrics, const Control *control, int lanes,
                                          int laneSize, double beta1, double beta2, float maxNorm, int warmup) {
  double sum = 0;
  for (int i = 4 * (blockIdx_x * threads + threadIdx_x); i < laneSize; i += 4 * threads * gridDim_x) {
    f4 g = load4(grads + i);
#pragma unroll 8
    for (int l = 1; l < lanes; l++) g += load4(grads + (long)l * laneSize + i);
    store4(grads + i, g);
    sum += (double)g.x * g.x + (double)g.y * g.y + ((double)g.z * g.z + (double)g.w * g.w);
  }
  sum = block_sum(sum);
  if (threadIdx_x == 0) squares[blockIdx_x] = sum;
  if (!last_of(gridDim_x, turn)) return;
  sum = 0;
  for (int b = threadIdx_x; b < (int)gridDim_x; b += threads) sum += fresh(squares + b);
  sum = block_sum(sum);
  if (threadIdx_x != 0) return;
  double norm = sqrt64(sum);
  metrics->gradNorm += norm;
  if (metrics->badStep == 0 && !is_finite(norm)) {
    metrics->badStep = (long long)state->step + 1;
    metrics->badFirst = state->instances;
  }
  plan->apply = metrics->badStep == 0;
  if (!plan->apply) return;
  u64 step = state->step + 1;
  float rate = control->learningRate;
  if (warmup > 0 && step < (u64)warmup) rate *= div_((float)step, (float)warmup);
  state->step = step;
  state->beta1T *= beta1;
  state->beta2T *= beta2;
  plan->rate = rate;
  plan->scale = maxNorm > 0 && norm > (double)maxNorm ? (float)((double)maxNorm / (norm + 1e-6)) : 1.0f;
  plan->correct1 = (float)(1.0 / (1.0 - state->beta1T));
  plan->correct2 = (float)(1.0 / (1.0 - state->beta2T));
}

// g = grads·scale;  m = β1·m + (1-β1)·g;  v = β2·v + (1-β2)·g²
// w -= rate·(m·correct1/(sqrt(v·correct2)+eps) + decay·w)
KERNEL __launch_bounds__(threads) adamw_update(float *weights, float *m, float *v, const float *grads, const Plan *plan, int length, float beta1, float beta2, float eps,
                                             float decay) {
  int i = 4 * (blockIdx_x * threads + threadIdx_x);
  if (i >= length || !plan->apply) return;
  f4 g = load4(grads + i) * plan->scale, w = load4(weights + i);
  f4 mi = beta1 * load4(m + i) + (1.0f - beta1) * g;
  f4 vi = beta2 * load4(v + i) + (1.0f - beta2) * g * g;
#pragma unroll
  for (int j = 0; j < 4; j++) w[j] -= plan->rate * (div_(mi[j] * plan->correct1, sqrtf_(vi[j] * plan->correct2) + eps) + decay * w[j]);
  store4(m + i, mi);
  store4(v + i, vi);
  store4(weights + i, w);
}

// The last kernel of a step: the next one starts `batch` instances further on.
KERNEL advance(State *state, u32 batch) { state->instances += batch; }
