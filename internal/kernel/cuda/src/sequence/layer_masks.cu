// The masks of a layer's two dropouts of the residual stream's branches, a word for each of a row's
// four lanes, as layer.cuh reads them. They are made apart from the passes that use them, forward
// and back, because integer arithmetic by many small threads hides its latency where a pass of few
// large ones does not.
#include "drop.cuh"

constexpr int maskThreads = 256;

KERNEL __launch_bounds__(maskThreads) layer_masks(u32 *masks1, u32 *masks2, int m, u32 nodes, const State *state, u64 seed1,
    u32 site1, u32 threshold1, float, u64 seed2,
                                                  u32 site2, u32 threshold2, float) {
  const u32 at = blockIdx_x * maskThreads + threadIdx_x, row = at / 4;
  if (row >= (u32)m) return;
  const Drop drop = blockIdx_y ? Drop{seed2, site2, threshold2, 0} : Drop{seed1, site1, threshold1, 0};
  const u64 instance = state->instances + row / nodes;
  const Compared threshold(drop.threshold);
  u32 bits = 0;
#pragma unroll
  for (int b = 0; b < 4; b++) {
    const Words u = drop_words(drop, instance, row % nodes, 4, b, at % 4);
#pragma unroll
    for (int j = 0; j < 4; j++) bits = bits >> 1 | threshold.keeps(u.w[j]);
  }
  (blockIdx_y ? masks2 : masks1)[at] = bits;
}
