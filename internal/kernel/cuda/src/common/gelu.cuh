// GELU in its tanh form, x/2·(1 + tanh u) with u = √(2/π)·(x + 0.044715·x³), and its derivative. Both are written by the
// sigmoid s of 2u, since (1 + tanh u)/2 = s: nothing cancels.
#pragma once
#include "haul.cuh"

constexpr float geluRoot = 0.79788456080286535588f, geluCube = 0.044715f;

__device__ __forceinline__ float gelu(float x) { return x * sigmoid_(2 * geluRoot * (x + geluCube * x * x * x)); }
__device__ __forceinline__ float gelu_slope(float x) {
  const float s = sigmoid_(2 * geluRoot * (x + geluCube * x * x * x));
  return s + x * s * (1 - s) * (2 * geluRoot) * (1 + 3 * geluCube * x * x);
}
