// Advantages and the step's sums. All sums run in a fixed order.
#include "haul.cuh"

enum { SHARED_MEAN, GIVEN, RUNNING };

// advantage, a warp an instance: adv = (length - base)·weight, with base the mean over starts, the given one, or the running
// mean; before the first running mean base is the mean over starts and adv 0.
KERNEL advantage(float *adv, const float *length, float *base, const State *state, int instances, int starts, int mode, float weight) {
  int i = (blockIdx_x * blockDim_x + threadIdx_x) >> 5, lane = threadIdx_x & 31;
  if (i >= instances) return;
  bool unset = mode == RUNNING && state->emaSteps == 0;
  float b = 0;
  if (mode == SHARED_MEAN || unset) {
    for (int s = lane; s < starts; s += 32) b += length[i * starts + s];
    b = div_(warp_sum(b), (float)starts);
  } else if (mode == RUNNING) {
    b = (float)state->ema;
  } else {
    b = base[i];
  }
  for (int s = lane; s < starts; s += 32) adv[i * starts + s] = unset ? 0.0f : (length[i * starts + s] - b) * weight;
  if (mode != GIVEN && lane == 0) base[i] = b;
}

// log_: x = m·2^e with m in [sqrt(1/2), sqrt(2)); log m = 2·atanh((m-1)/(m+1)) by its series, to double precision.
__device__ double log_(double x) {
  u64 bits = __builtin_bit_cast(u64, x);
  if (!(x > 0) || bits >> 52 == 0x7ff || bits >> 52 == 0) return x == 0 ? -__builtin_inf() : x > 0 ? x : __builtin_nan("");
  int e = (int)(bits >> 52) - 1023;
  double m = __builtin_bit_cast(double, (bits & 0xfffffffffffffull) | 0x3ff0000000000000ull);
  if (m > 1.4142135623730951) {
    m *= 0.5;
    e++;
  }
  double s = (m - 1) / (m + 1), q = s * s, sum = 0;
  for (int k = 21; k >= 1; k -= 2) sum = sum * q + 1.0 / k;
  return e * 0.69314718055994530942 + 2 * s * sum;
}

// tally, one block of 1024: adds the step to the metrics, and its mean length to the running mean where decay > 0 (decay is
// a double's bits). Thread k adds rows k, k+1024, ..., then sums meet in a tree.
KERNEL __launch_bounds__(1024) tally(Metrics *metrics, State *state, const Control *control, const float *length, const float *logProb,
                                     const float *entropy, const int *steps, const float *adv, const float *base, u64 decay, int rows,
                                     int starts) {
  __shared__ double sums[6][1024];
  int tid = threadIdx_x;
  double v[6] = {};
  for (int i = tid; i < rows; i += 1024) {
    double c = length[i];
    v[0] += c;
    v[1] += log_(c);
    v[2] += base[i / starts];
    v[3] += entropy[i];
    v[4] += (double)adv[i] * logProb[i];
    v[5] += steps[i];
  }
  for (int k = 0; k < 6; k++) sums[k][tid] = v[k];
  for (int half = 512; half > 0; half >>= 1) {
    sync();
    if (tid < half)
      for (int k = 0; k < 6; k++) sums[k][tid] += sums[k][tid + half];
  }
  if (tid != 0) return;
  metrics->steps++;
  metrics->trajectory += rows;
  metrics->cost += sums[0][0];
  metrics->logCost += sums[1][0];
  metrics->baseCost += sums[2][0];
  metrics->entropy += sums[3][0];
  metrics->loss += sums[4][0] - (double)control->entropy * sums[3][0] / rows;
  metrics->actions += (long long)sums[5][0];
  double keep = __builtin_bit_cast(double, decay);
  if (keep > 0) {
    double mean = sums[0][0] / rows;
    state->ema = state->emaSteps == 0 ? mean : keep * state->ema + (1 - keep) * mean;
    state->emaSteps++;
  }
}

// tally_tokens, one block of 256: adds the classifiers' sums [rows, 3·heads] to metrics.heads. Thread k adds rows k, k+256, ..., then sums
// meet in a tree.
KERNEL __launch_bounds__(256) tally_tokens(Metrics *metrics, const float *sums, int rows, int heads) {
  __shared__ double part[6][256];
  const int tid = threadIdx_x, columns = 3 * heads;
  for (int c = 0; c < columns; c++) {
    double v = 0;
    for (int r = tid; r < rows; r += 256) v += sums[(long)r * columns + c];
    part[c][tid] = v;
  }
  for (int half = 128; half > 0; half >>= 1) {
    sync();
    if (tid < half)
      for (int c = 0; c < columns; c++) part[c][tid] += part[c][tid + half];
  }
  sync();
  if (tid >= heads) return;
  HeadSums *h = metrics->heads + tid;
  h->loss += part[3 * tid][0];
  h->labels += (long long)part[3 * tid + 1][0];
  h->hits += (long long)part[3 * tid + 2][0];
}
