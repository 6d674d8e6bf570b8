// Losses with their gradients: classifiers over tokens, and the clipped policy loss. All sums run
// in a fixed order.
#include "ptx.cuh"

constexpr int threads = 128, mostHeads = 4;

// crossentropy, a block an instance, a thread a token: kernel.CrossEntropy for up to four
// classifiers side by side, of n0, n1, ... of the c columns. dlogits may be null.
KERNEL __launch_bounds__(threads) crossentropy(float *dlogits, const float *logits, const int *labels, float *sums, int tokens, int c, int heads, int n0, int n1,
                                              int n2, int n3, float smoothing, float weight) {
  __shared__ float parts[3 * mostHeads][threads / 32];
  const int b = blockIdx_x, widths[mostHeads] = {n0, n1, n2, n3};
  float sum[mostHeads][3] = {};
  for (int t = threadIdx_x; t < tokens; t += threads) {
    const long row = (long)b * tokens + t;
    long at = row * c;
#pragma unroll
    for (int g = 0; g < mostHeads; g++) {
      if (g >= heads) continue;
      const int n = widths[g], label = labels[row * heads + g];
      const float *z = logits + at;
      float *dz = dlogits ? dlogits + at : nullptr;
      at += n;
      if (label < 0) {
        for (int k = 0; dz && k < n; k++) dz[k] = 0;
        continue;
      }
      float top = z[0], total = 0, apart = 0;
      int best = 0;
      for (int k = 1; k < n; k++)
        if (z[k] > top) top = z[k], best = k;
      for (int k = 0; k < n; k++) total += expf_(z[k] - top);
      const float logSum = top + logf_(total), even = div_(smoothing, (float)n);
      for (int k = 0; k < n; k++) {
        const float logp = z[k] - logSum, q = even + (k == label ? 1 - smoothing : 0.0f);
        apart -= q * logp;
        if (dz) dz[k] = weight * (expf_(logp) - q);
      }
      sum[g][0] += apart;
      sum[g][1] += 1;
      sum[g][2] += best == label;
    }
  }
#pragma unroll
  for (int e = 0; e < 3 * mostHeads; e++) {
    if (e >= 3 * heads) continue;
    float v = warp_sum(sum[e / 3][e % 3]);
    if (threadIdx_x % 32 == 0) parts[e][threadIdx_x / 32] = v;
  }
  sync();
  const int e = threadIdx_x;
  if (e >= 3 * heads) return;
  float v = 0;
  for (int w = 0; w < threads / 32; w++) v += parts[e][w];
  sums[(long)b * 3 * heads + e] = v;
}

// ppo, a thread a row, `tokens` rows an instance: kernel.PPO. The policy loss has a slope where its
// unclipped side is the smaller; the entropy's is -p·(log p + entropy).
KERNEL __launch_bounds__(threads) ppo(float *dout, const float *out, const float *sample, float *sums, int rows, int tokens, int actions, float clip,
                                     float valueCoef, float entropyCoef, float weight) {
  const int r = blockIdx_x * threads + threadIdx_x;
  if (r >= rows) return;
  out += (long)r * (actions + 1), dout += (long)r * (actions + 1), sample += 4l * r, sums += 4l * tokens * (r / tokens) + r % tokens;
  const int action = (int)sample[0];
  float top = out[0], total = 0, entropy = 0;
  for (int k = 1; k < actions; k++) top = out[k] > top ? out[k] : top;
  for (int k = 0; k < actions; k++) total += expf_(out[k] - top);
  const float logSum = top + logf_(total);
  for (int k = 0; k < actions; k++) entropy -= expf_(out[k] - logSum) * (out[k] - logSum);
  // past fp32's range a factor of 0 would make it no number
  const float ratio = expf_(__builtin_fminf(out[action] - logSum - sample[1], 88.0f)), lo = 1 - clip, hi = 1 + clip;
  const float free = ratio * sample[2], held = (ratio < lo ? lo : ratio > hi ? hi : ratio) * sample[2];
  const float slope = free <= held ? -free : 0; // of the policy loss by log π(action)
  for (int k = 0; k < actions; k++) {
    const float logp = out[k] - logSum, p = expf_(logp);
    dout[k] = weight * ((k == action ? slope : 0.0f) - slope * p + entropyCoef * p * (logp + entropy));
  }
  const float miss = out[actions] - sample[3];
  dout[actions] = weight * 2 * valueCoef * miss;
  sums[0] = free < held ? -free : -held;
  sums[tokens] = miss * miss;
  sums[2 * tokens] = entropy;
  sums[3 * tokens] = ratio < lo || ratio > hi ? 1.0f : 0.0f;
}
