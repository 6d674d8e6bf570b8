// The decisions of an instance as the streamed gradient takes them: sorted by the node that the
// vehicle stands at, start by start within a node, one behind the other, and filled up to whole
// tiles of sixteen by what weighs nothing. What was allowed lies beside them, mask_words words a
// decision, bit j%32 of word j/32 for node j, and the node in `stands`.
#pragma once
#include "stream.cuh"

struct Taken {
  float seen[CONTEXTS]; // the vehicle's context
  float wa, we;         // weights of log-probability and entropy in the loss
  int action;
#if CONTEXTS > 1
  int pad[(8 - 3 - CONTEXTS) & 3];
#endif
} __attribute__((aligned(16)));

// mask_words is how many words a decision's mask has: whole pieces of 128 nodes.
__device__ __forceinline__ int mask_words(int n) { return 4 * ((n + 127) / 128); }
