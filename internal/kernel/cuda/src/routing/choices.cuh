// The decisions of an instance as the fp16 gradient takes them: sorted by the node that the vehicle stands at, start by start
// within a node.
//
// What a reader could break: a node's decisions fill whole groups of eight, and an instance's groups whole tiles of sixteen; what fills them up
// weighs nothing. Decisions at one node share their query but for the load left, so a score is a sum of two numbers,
// table[node][j] + cap·table[n][j], and its gradient is summed over a node's decisions before it meets a key or a query.
#pragma once
#include "haul.cuh"

struct Choice {
  u32 mask[4];  // allowed nodes, bit j%32 of word j/32
  float cap;    // load left / capacity
  float wa, we; // weights of log-probability and entropy in the loss
  int node;     // action, and from bit 16 on where the vehicle stands
} __attribute__((aligned(16)));

// table_at is the place of node j in a row of scores: a lane's nodes of two tiles of eight (law.cuh) side by side.
__device__ __forceinline__ int table_at(int j) { return (j & ~15) | ((j >> 1 & 3) << 2) | ((j >> 3 & 1) << 1) | (j & 1); }
