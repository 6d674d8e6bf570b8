// The decisions of an instance as the fp16 gradient takes them: sorted by the node that the vehicle
// stands at, start by start within a node.
//
// What a reader could break: a node's decisions fill whole groups of eight, and an instance's
// groups whole tiles of sixteen; what fills them up weighs nothing. Decisions at one node share
// their query but for the context, so a score is a sum, table[node][j] + cap·table[n][j], and its
// gradient is summed over a node's decisions before it meets a key or a query. Each context feature
// has a row of the table from n on.
#pragma once
#include "rules.cuh"

// Past 128 nodes, up to 136, the mask goes on in bits 8 to 15 of `node`.
#if TILES > 16
#define PRESENT 144        // numbers of an instance in walk_sorted's `present`
#define ACTION(node) ((node) & 0xff)
#else
#define PRESENT 128
#define ACTION(node) ((node) & 0xffff)
#endif

struct Choice {
  u32 mask[4];  // allowed nodes, bit j%32 of word j/32
#if CONTEXTS > 1
  u32 seen[4];  // context features, fp16, two to a word; zero past the last
  int view;     // a decision of the first step, as from the start's customer
#else
  float cap;    // load left / capacity
#endif
  float wa, we; // weights of log-probability and entropy in the loss
  int node;     // action, and from bit 16 on where the vehicle stands
} __attribute__((aligned(16)));

// before sums `count` numbers in shared memory in order: each becomes what comes before it, and the
// last, beyond them, the sum. By one warp.
__device__ __forceinline__ void before(int *numbers, int count) {
  int lane = threadIdx_x & 31, sum = 0;
  for (int s = 0; s < count; s += 32) {
    int mine = s + lane < count ? numbers[s + lane] : 0, run = mine;
#pragma unroll
    for (int d = 1; d < 32; d <<= 1) {
      int low = shfl(run, lane - d);
      if (lane >= d) run += low;
    }
    if (s + lane < count) numbers[s + lane] = sum + run - mine;
    sum += shfl(run, 31);
  }
  if (lane == 0) numbers[count] = sum;
}
