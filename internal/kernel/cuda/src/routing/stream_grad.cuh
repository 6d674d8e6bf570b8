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

// near_one is a power of two that brings what a weight becomes on its way to a dot product near a
// quarter: fp16 holds 2^16 times as much and, less exactly, 2^-22 of it. Where nothing weighs, all
// starts being of one length, 2^100 times nothing stays nothing: twice as far infinity is near.
__device__ __forceinline__ float near_one(float most) {
  const int e = 252 - ((as_int(most) >> 23) & 255);
  return as_float((u32)(e < 1 ? 1 : smaller(e, 227)) << 23);
}
