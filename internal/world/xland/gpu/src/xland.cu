// Environments of XLand-MiniGrid on a card, a thread each: xland.cuh says what they do.
#include "haul.cuh"
#define FN __device__ __forceinline__
#define SLOW __device__ __attribute__((noinline))
#include "xland.cuh"

constexpr int threads = 128;

#define BATCH                                                                                                                                        \
  u8 *views, float *paid, u8 *ended, u32 *state, u8 *grids, const u8 *programs, const int *task, const Room *room, const u8 *blank, const float *rewards, \
      const u8 *can, int n

KERNEL __launch_bounds__(threads) xland_start(BATCH) {
  int i = blockIdx_x * threads + threadIdx_x;
  if (i < n) begin(Batch{views, paid, ended, state, grids, programs, task, {room, blank, rewards, can}, n}, i);
}

KERNEL __launch_bounds__(threads) xland_step(BATCH, const u8 *actions, int steps) {
  int i = blockIdx_x * threads + threadIdx_x;
  if (i < n) advance(Batch{views, paid, ended, state, grids, programs, task, {room, blank, rewards, can}, n}, actions, steps, i);
}
