// The masks of a layer's two dropouts of the residual stream's branches, a word for each of a row's
// four lanes, as layer.cuh reads them. They are made apart from the passes that use them, forward
// and back, because integer arithmetic by many small threads hides its latency where a pass of few
// large ones does not.
#include "drop.cuh"

constexpr int maskThreads = 256;

// gathered has bits 0, 8, 16 and 24 of a word next to each other.
__device__ __forceinline__ u32 gathered(u32 w) { return (w & 0x01010101u) * 0x01020408u >> 24 & 15; }

KERNEL __launch_bounds__(maskThreads) layer_masks(u32 *masks1, u32 *masks2, int m, u32 nodes, const State *state, u64 seed1,
    u32 site1, u32 threshold1, float, u64 seed2,
                                                  u32 site2, u32 threshold2, float) {
  const u32 at = blockIdx_x * maskThreads + threadIdx_x, row = at / 4;
  const Drop drop = blockIdx_y ? Drop{seed2, site2, threshold2, 0} : Drop{seed1, site1, threshold1, 0};
  const u64 instance = state->instances + row / nodes;
  // Thread b of a row's four has what is kept of columns 32b to 32b+31; thread t wants of each of
  // them elements 2t and 2t+1 of four blocks of eight.
  const u32 made = drop_word(drop, instance, row % nodes, 4, at % 4);
  u32 bits = 0;
#pragma unroll
  for (int b = 0; b < 4; b++) {
    const u32 own = (u32)shfl((int)made, (threadIdx_x & 28) + b) >> 2 * (at % 4);
    bits |= (gathered(own) | gathered(own >> 1) << 16) << 4 * b;
  }
  if (row < (u32)m) (blockIdx_y ? masks2 : masks1)[at] = bits;
}
