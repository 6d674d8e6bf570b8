// What the gradients of a layer's two passes share.
//
// What a reader could break: between the head and the first layer the stream's gradient is in bf16,
// like all that a pass makes of it, and in fp32 while a pass has it. WIDE: it is in fp32 in memory
// too, for networks whose head is not joined.
#pragma once
#include "layer.cuh"

// put_sums leaves them in the group's matrix in bf16.
__device__ __forceinline__ void put_sums(char *matrix, const float (&v)[64], int own) {
  own = apart(own); // places are worked out here: kept, they spill
#pragma unroll
  for (int h = 0; h < 2; h++)
#pragma unroll
    for (int j = 0; j < 16; j++) put(matrix, own + 8 * h, j, v[4 * j + 2 * h], v[4 * j + 2 * h + 1]);
}

// norm_grad makes the stream's gradient of what it was, two elements by `was` of a thread, and what
// comes through a norm whose hat has the gradient `sums` and lies in the group's matrix.
template <class F> __device__ __forceinline__ void norm_grad(float (&sums)[64], const char *matrix, const float (&rstd)[2], int own, F was) {
  own = apart(own);
  const int thread = apart((int)threadIdx_x);
#pragma unroll
  for (int h = 0; h < 2; h++) {
    const float r = rstd[h];
    float mean = 0, along = 0;
#pragma unroll
    for (int j = 0; j < 16; j++) {
      const u32 v = get(matrix, own + 8 * h, j);
      const float a = sums[4 * j + 2 * h], b = sums[4 * j + 2 * h + 1];
      mean += a + b, along += a * bf16_low(v) + b * bf16_high(v);
    }
    mean = quad_sum(mean) * (1.0f / layerWidth), along = quad_sum(along) * (1.0f / layerWidth);
#pragma unroll
    for (int j = 0; j < 16; j++) {
      const u32 v = get(matrix, own + 8 * h, j);
      const f2 x = was(j, h, thread);
      float &a = sums[4 * j + 2 * h], &b = sums[4 * j + 2 * h + 1];
      a = x.x + r * (a - mean - bf16_low(v) * along), b = x.y + r * (b - mean - bf16_high(v) * along);
    }
  }
}
