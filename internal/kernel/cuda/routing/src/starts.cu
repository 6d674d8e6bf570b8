// Rollouts of many starts of one instance: sixteen starts a warp, the instance's projections once
// in shared memory, all products on tensor cores, all steps in one launch. starts.cuh says what a
// reader could break.
#include "decode.cuh"
#include "starts.cuh"

// choose picks row I's next node; e as tanh_softmax left it.
template <int NT, int I>
__device__ __forceinline__ int choose(const float (&th)[NT][4], const float (&e)[NT][4], const Distribution &w, u32 mask, int choice, float u, int recorded) {
  int t = threadIdx_x & 3;
  const int none = 1 << 20;
  if (choice == REPLAY) return recorded;
  int pick = none, last = 0;
  if (choice == GREEDY) {
#pragma unroll
    for (int T = NT - 1; T >= 0; T--)
#pragma unroll
      for (int b = 1; b >= 0; b--)
        if ((mask >> (2 * T + b) & 1) && th[T][2 * I + b] == w.top) pick = 8 * T + 2 * t + b;
    return quad_min(pick);
  }
  float edge = u * w.sum, before = 0;
#pragma unroll
  for (int T = 0; T < NT; T++) {
    float a = e[T][2 * I], b = e[T][2 * I + 1], run = a + b;
    float upTo = before + quad_before(run) + a;
    int j = 8 * T + 2 * t;
    if (b > 0 && upTo + b > edge) pick = smaller(pick, j + 1);
    if (a > 0 && upTo > edge) pick = smaller(pick, j);
    if (a > 0) last = j;
    if (b > 0) last = j + 1;
    before += shfl(run, (threadIdx_x & 28) | 3);
  }
  pick = quad_min(pick);
  last = quad_max(last);
  return pick == none ? last : pick;
}

// score adds the action's log-probability and the step's entropy to the row.
template <int NT, int I>
__device__ __forceinline__ void score(Row &row, const float (&th)[NT][4], const Distribution &w, float mult) {
  int t = threadIdx_x & 3;
  float z = 0;
#pragma unroll
  for (int T = 0; T < NT; T++)
#pragma unroll
    for (int b = 0; b < 2; b++)
      if (8 * T + 2 * t + b == row.action) z = (th[T][2 * I + b] - w.top) * mult;
  z = quad_sum(z);
  row.logProb += z - w.logSum;
  row.entropy += w.entropy;
}

// rollout_starts is rollout_row (rollout.cu) for rows [16·warp, 16·warp+16) of instance
// blockIdx_x's starts, from blockIdx_y·16·warps on; n <= 8·NT nodes, heads of hd columns, a
// multiple of eight.
template <int NT>
__device__ __forceinline__ void rollout_starts(int *actions, int *steps, float *length, float *logProb, float *entropy, const float *proj,
                                               const float *pointer, const float *graph, const float *load, const float *posX, const float *posY,
                                               const Customer *instances, const Control *control, const State *state, u64 seed, u32 purpose,
                                               int capacity, int n, int stride, int heads, int hd, int starts, int limit, int choice,
                                               int begins, float scale, float pointerScale, const float *biases, int wide) {
  int i = blockIdx_x, warp = threadIdx_x >> 5, lane = threadIdx_x & 31, g = lane >> 2, t4 = lane & 3;
  int d = heads * hd, start = (blockIdx_y * (blockDim_x >> 5) + warp) * 16 + g;
  proj += (u64)i * n * stride;
  Instance in;
  float *p = lay<NT>(in, d);
  float *x = p; p += 8 * NT;
  float *y = p; p += 8 * NT;
  Customer *customers = (Customer *)p;
  fetch<NT>(in, proj, stride, pointer + (u64)i * n * d, graph + (u64)i * d, load, n, d);
  for (int j = threadIdx_x; j < 8 * NT; j += blockDim_x) {
    x[j] = j < n ? posX[i * n + j] : 0.0f;
    y[j] = j < n ? posY[i * n + j] : 0.0f;
    customers[j] = customer(instances + i * n, j, n);
  }
  sync();

  float mult = div_(10.0f, control->temperature);
  const Biases bias(biases, i, n, wide);
  u64 index = state->instances + i;
  u32 depot = t4 == 0 ? 1 : 0;
  Row row[2];
#pragma unroll
  for (int r = 0; r < 2; r++) row[r] = begin(instances + i * n, start + 8 * r >= starts, n, capacity);
  u64 at[2] = {((u64)i * starts + start) * limit, ((u64)i * starts + start + 8) * limit};
#pragma unroll 1
  for (int t = 0; t < limit; t++) {
    if (ballot(!row[0].done || !row[1].done) == 0) break;
    choice = opaque(choice);
    u32 mask[2] = {0, 0};
    bool ask[2];
#pragma unroll
    for (int T = 0; T < NT; T++)
#pragma unroll
      for (int b = 0; b < 2; b++) {
        Customer c = customers[8 * T + 2 * t4 + b];
        if (row[0].vehicle.fits(c)) mask[0] |= 1u << (2 * T + b);
        if (row[1].vehicle.fits(c)) mask[1] |= 1u << (2 * T + b);
      }
#pragma unroll
    for (int r = 0; r < 2; r++) {
      mask[r] = row[r].vehicle.allowed(mask[r], row[r].served, depot);
      int count = quad_sum(__builtin_popcount(mask[r]));
      int bit = mask[r] ? __builtin_ctz(mask[r]) : 0;
      row[r].action = quad_min(mask[r] ? 8 * (bit >> 1) + 2 * t4 + (bit & 1) : 1 << 20);
      bool first = begins == FORCED && t == 0;
      ask[r] = asks(row[r], first, count);
      if (first) row[r].action = start + 8 * r + 1;
      if (choice == REPLAY && !row[r].done && (first || ask[r])) row[r].action = actions[at[r] + t];
    }
    if (ballot(ask[0] || ask[1])) {
      float dots[NT][4], e[NT][4], mine = 0;
      if (choice == SAMPLE) { // lane parity: which of the quad's two rows this lane draws for
        Words w = philox(seed, index, (u32)(start + 8 * (t4 & 1)) << 16 | (u32)t >> 2, purpose);
        u32 low = t & 1 ? w.w[1] : w.w[0], high = t & 1 ? w.w[3] : w.w[2];
        mine = unit(t & 2 ? high : low);
      }
      const Vehicle &v0 = row[0].vehicle, &v1 = row[1].vehicle;
      // past the last start too
      int from0 = smaller(seen(v0, begins, t, start), n - 1), from1 = smaller(seen(v1, begins, t, start + 8), n - 1);
      forward<NT, false>(dots, in, heads, hd, proj + (u64)from0 * stride, proj + (u64)from1 * stride, sole(v0.context(capacity)), sole(v1.context(capacity)), mask[0],
                         mask[1], scale, 0, 0);
      biased<NT, 0>(dots, bias, from0, sole(v0.context(capacity)));
      biased<NT, 1>(dots, bias, from1, sole(v1.context(capacity)));
      Distribution w0 = tanh_softmax<NT, 0>(dots, e, mask[0], pointerScale, mult), w1 = tanh_softmax<NT, 1>(dots, e, mask[1], pointerScale, mult);
      int a0 = choose<NT, 0>(dots, e, w0, mask[0], choice, shfl(mine, lane & 28), row[0].action);
      int a1 = choose<NT, 1>(dots, e, w1, mask[1], choice, shfl(mine, (lane & 28) | 1), row[1].action);
      Row s0 = row[0], s1 = row[1];
      s0.action = a0;
      s1.action = a1;
      score<NT, 0>(s0, dots, w0, mult);
      score<NT, 1>(s1, dots, w1, mult);
      if (ask[0]) row[0] = s0;
      if (ask[1]) row[1] = s1;
    }
    move<2, 1>(row, actions, at, t, x, y, customers, capacity, choice);
  }
#pragma unroll
  for (int r = 0; r < 2; r++)
    if (start + 8 * r < starts)
      keep(actions, steps, length, logProb, entropy, row[r], at[r], i * starts + start + 8 * r, limit, choice, begins);
}

#define STARTS(NAME, NT)                                                                                                        \
  KERNEL __launch_bounds__(256, 1) NAME(int *actions, int *steps, float *length, float *logProb, float *entropy, const float *proj, \
                                     const float *pointer, const float *graph, const float *load, const float *posX, const float *posY, \
                                     const Customer *instances, const Control *control, const State *state, u64 seed, u32 purpose, int capacity, \
                                     int n, int stride, int heads, int hd, int starts, int limit, int choice, int begins, float scale, \
                                     float pointerScale, const float *biases, int wide) {                                         \
    rollout_starts<NT>(actions, steps, length, logProb, entropy, proj, pointer, graph, load, posX, posY, instances, control, state, seed, \
                       purpose, capacity, n, stride, heads, hd, starts, limit, choice, begins, scale, pointerScale, biases, wide); \
  }

STARTS(rollout_starts_16, 2)
STARTS(rollout_starts_32, 4)
STARTS(rollout_starts_56, 7)
STARTS(rollout_starts_104, 13)
STARTS(rollout_starts_128, 16)
