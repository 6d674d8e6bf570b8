// A decision of a recorded route: what walk (rollout_grad.cu) leaves for the gradient on tensor
// cores.
#pragma once
#include "haul.cuh"

struct Decision {
  u32 mask[4]; // allowed nodes, bit j%32 of word j/32
  int cur, action;
  float cap;    // load left / capacity
  float wa, we; // weights of log-probability and entropy in the loss
  int pad[3];   // 48 bytes: whole 16-byte words
} __attribute__((aligned(16)));
