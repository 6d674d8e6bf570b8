// What the kernels that update need to know of the one that took the norm.
#pragma once
#include "ptx.cuh"

struct Update {
  float rate, scale, correct1, correct2; // learning rate, clip factor, 1/(1-β^t)
  u32 apply;
};
static_assert(sizeof(Update) == 20, "adamw.go");
