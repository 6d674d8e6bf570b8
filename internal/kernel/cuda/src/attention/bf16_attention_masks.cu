// The dropout masks of causal attention over bf16, for attention and its gradient to read: a bit where each would make sixteen. A kernel
// apart, because integer arithmetic by many small threads hides its latency where attention's few large ones do not.
#include "bf16_attention.cuh"

constexpr int maskThreads = 256;

// A warp makes the masks of 16 queries of a head for every group of 32 keys that they see.
KERNEL __launch_bounds__(maskThreads) bf16_attention_masks(Bits *bits, const int *first, const State *state, u32 site,
    u32 threshold, float, ROUND_KEYS, int tokens, int heads,
                                                          int count) {
  const int at = (blockIdx_x * maskThreads + threadIdx_x) / 32, tiles = (tokens + 15) / 16, groups = (tokens + 31) / 32,
      g = threadIdx_x % 32 / 4, t = threadIdx_x % 4;
  const int head = at / tiles, r = at % tiles, b = head / heads; // of all instances' heads; the instance
  if (head >= count) return;
  const Masks masks = {THE_ROUND_KEYS, site, 0, state->instances + b};
  const Compared limit(threshold);
  const u32 row = head % heads * tokens + 16 * r + g;
  for (int J = first[(long)b * tokens + 16 * r] / 32; J <= r / 2; J++) {
    const Words w = masks.words(row, groups, J, t), w8 = masks.words(row + 8, groups, J, t);
    u32 word = 0;
#pragma unroll
    for (int i = 0; i < 8; i++) word = word >> 1 | limit.keeps(i < 4 ? w.w[i] : w8.w[i - 4]);
    bits[kept_at(head, tiles, groups, r, J)] = (Bits)((word >> 8 & 0xff) | (word >> 16 & 0xff00));
  }
}
