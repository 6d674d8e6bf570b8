// The optimizer over flat buffers: add up the gradient's lanes, clip by the norm, update; and the
// end of a step. Where something stands between the reduced gradient and its use, `reduce` adds up
// the lanes and adamw_sum starts from its one; otherwise adamw_sum does both.
//
// What a reader could break: the norm is a sum in double precision in an order that the grid alone
// decides, and once a step is bad nothing here changes weights, moments, step or β^t again, so that
// the host can replay that step.
#include "update.cuh"

constexpr int threads = 256;
constexpr int batch = 8; // lanes read at once

// structs.go has the same sizes and places.
static_assert(sizeof(Control) == 64 && sizeof(State) == 104 && sizeof(Metrics) == 280, "structs.go");
static_assert(__builtin_offsetof(State, scalars) == 40 && __builtin_offsetof(Metrics, badStep) == 264, "structs.go");

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

// cos(π·x) for x in [0,1], by its series about the nearer end; the first term left out is below
// 1e-17.
__device__ double cos_pi(double x) {
  const bool far = x > 0.5;
  const double a = 3.14159265358979323846 * (far ? 1 - x : x), s = a * a;
  double sum = 0;
  for (int k = 20; k > 0; k -= 2) sum = (1 + sum) * -s / (k * (k - 1));
  return far ? -1 - sum : 1 + sum;
}

// What the learning rate is multiplied by at step t, counted from 1: a rise to 1 at warmup, then,
// where total > 0, a cosine down to floor at total.
__device__ double schedule(double t, double warmup, double total, double floor) {
  if (t <= warmup) return t / warmup;
  if (total <= 0) return 1;
  const double x = ((t < total ? t : total) - warmup) / (total - warmup);
  return floor + (1 - floor) * (1 + cos_pi(x)) / 2;
}

// sum_lanes is Σ_lane grads[lane·laneSize + i] of four elements, lanes by the tree of
// kernel/tree.go: ((0+1)+(2+3))+((4+5)+(6+7)), groups of eight one after another. Then, where an
// update has parts, they are added up by the same tree: level l of `parts` keeps the sum of a whole
// block of 2^l parts until its neighbour is there. The last part gathers what is left.
__device__ __forceinline__ f4 sum_lanes(const float *grads, int lanes, int laneSize, int i, float *parts, u64 part, u32 every) {
  f4 g = {0, 0, 0, 0};
  for (int l = 0; l < lanes; l += batch) {
    f4 v[batch];
#pragma unroll
    for (int j = 0; j < batch; j++) v[j] = load4(grads + (long)(l + j < lanes ? l + j : 0) * laneSize + i);
#pragma unroll
    for (int step = 1; step < batch; step *= 2)
#pragma unroll
      for (int j = 0; j < batch; j += 2 * step)
        if (l + j + step < lanes) v[j] += v[j + step];
    g = l == 0 ? v[0] : g + v[0];
  }
  if (parts) {
    const bool last = part + 1 >= every;
    int l = 0;
    for (; part >> l != 0 && (last || (part >> l & 1)); l++)
      if (part >> l & 1) g = load4(parts + (long)l * laneSize + i) + g;
    if (!last) store4(parts + (long)l * laneSize + i, g);
  }
  return g;
}

// grads = the sum of its lanes and of the update's earlier parts, in lane 0.
KERNEL __launch_bounds__(threads, 4) reduce(float *grads, const State *state, int lanes, int laneSize, float *parts, u32 every) {
  const u64 part = parts ? state->part : 0;
  for (int i = 4 * (blockIdx_x * threads + threadIdx_x); i < laneSize; i += 4 * threads * gridDim_x)
    store4(grads + i, sum_lanes(grads, lanes, laneSize, i, parts, part, every));
}

// grads = the sum of all ranks' gradients, which lie one after another in `all`, by the tree.
KERNEL __launch_bounds__(threads, 4) reduce_ranks(float *grads, const float *all, int ranks, int laneSize) {
  for (int i = 4 * (blockIdx_x * threads + threadIdx_x); i < laneSize; i += 4 * threads * gridDim_x)
    store4(grads + i, sum_lanes(all, ranks, laneSize, i, nullptr, 0, 1));
}

// grads = the sum of its lanes, as `reduce`; squares[block] = Σ_i grads[i]². The last block adds up
// the norm, checks it and writes update, state and metrics. With every > 1 the step is one part of
// several, and only the last part's update applies; parts is null where `reduce` has added them up.
KERNEL __launch_bounds__(threads, 4) adamw_sum(float *grads, double *squares, u32 *turn, Update *update, State *state, Metrics *metrics, const Control *control, int lanes,
                                          int laneSize, double beta1, double beta2, float maxNorm, int warmup, int total, float floor, float *parts, u32 every) {
  double sum = 0;
  // the last block changes it when every block has come that far
  const u64 part = every > 1 ? state->part : 0;
  for (int i = 4 * (blockIdx_x * threads + threadIdx_x); i < laneSize; i += 4 * threads * gridDim_x) {
    const f4 g = sum_lanes(grads, lanes, laneSize, i, parts, part, every);
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
  const bool whole = every <= 1 || part + 1 >= every;
  if (every > 1) state->part = whole ? 0 : part + 1;
  if (whole) metrics->gradNorm = norms + norm;
  if (badStep == 0 && !is_finite(norm)) {
    badStep = (long long)s.step + 1;
    metrics->badStep = badStep;
    metrics->badFirst = s.instances;
  }
  update->apply = whole && badStep == 0;
  if (!whole || badStep != 0) return;
  s.step++;
  s.beta1T *= beta1;
  s.beta2T *= beta2;
  rate = (float)((double)rate * schedule((double)s.step, warmup, total, floor));
  state->step = s.step;
  state->beta1T = s.beta1T;
  state->beta2T = s.beta2T;
  update->rate = rate;
  update->scale = maxNorm > 0 && norm > (double)maxNorm ? (float)((double)maxNorm / (norm + 1e-6)) : 1.0f;
  update->correct1 = (float)(1.0 / (1.0 - s.beta1T));
  update->correct2 = (float)(1.0 / (1.0 - s.beta2T));
}

// g = grads·scale;  m = β1·m + (1-β1)·g;  v = β2·v + (1-β2)·g²
// w -= rate·(m·correct1/(sqrt(v·correct2)+eps) + decay·w)
// half, where it is not null, gets the weights in bf16. Where Muon has blocks, `pieces` lists the
// sixteens of elements that are in none, and length is theirs alone; else it is null.
KERNEL __launch_bounds__(threads) adamw_update(float *weights, u32 *half, float *m, float *v, const float *grads, const Update *update, const int *pieces, int length, float beta1,
                                             float beta2, float eps, float decay) {
  int i = 4 * (blockIdx_x * threads + threadIdx_x);
  if (i >= length) return;
  if (pieces) i = 16 * pieces[i / 16] + i % 16;
  f4 g = load4(grads + i), w = load4(weights + i), mi = load4(m + i), vi = load4(v + i);
  const Update p = *update;
  if (!p.apply) return;
  g *= p.scale;
  mi = beta1 * mi + (1.0f - beta1) * g;
  vi = beta2 * vi + (1.0f - beta2) * g * g;
#pragma unroll
  for (int j = 0; j < 4; j++) w[j] -= p.rate * (div_(mi[j] * p.correct1, sqrtf_(vi[j] * p.correct2) + eps) + decay * w[j]);
  store4(m + i, mi);
  store4(v + i, vi);
  store4(weights + i, w);
  if (half) *(u2 *)(half + i / 2) = u2{bf16x2(w.x, w.y), bf16x2(w.z, w.w)};
}

// half = weights in bf16, two to a word.
KERNEL __launch_bounds__(threads) halve(u32 *half, const float *weights, int pairs) {
  int i = blockIdx_x * threads + threadIdx_x;
  if (i < pairs) half[i] = bf16x2(weights[2 * i], weights[2 * i + 1]);
}

// The last kernel of a step: the next one starts `batch` instances further on and, where it begins
// another update, behind the `skip` that other processes have.
KERNEL advance(State *state, u32 batch, u32 skip) { state->instances += batch + (state->part == 0 ? skip : 0); }
