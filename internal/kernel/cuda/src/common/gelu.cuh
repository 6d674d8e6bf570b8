// GELU in its tanh form, x/2·(1 + tanh u) with u = √(2/π)·(x + 0.044715·x³), and its derivative.
// Both are written by the sigmoid s of 2u, since (1 + tanh u)/2 = s: nothing cancels.
#pragma once
#include "haul.cuh"

constexpr float geluRoot = 0.79788456080286535588f, geluCube = 0.044715f;

__device__ __forceinline__ float gelu(float x) { return x * sigmoid_(2 * geluRoot * (x + geluCube * x * x * x)); }
__device__ __forceinline__ float gelu_slope(float x) {
  const float s = sigmoid_(2 * geluRoot * (x + geluCube * x * x * x));
  return s + x * s * (1 - s) * (2 * geluRoot) * (1 + 3 * geluCube * x * x);
}

// Gelu is both at once for results in bf16, by the card's own tanh: one instruction of the unit for
// special functions in place of two, and at most 2^-11 off, an eighth of what rounding to bf16
// takes from a number near 1.
struct Gelu {
  float value, slope;
  __device__ __forceinline__ explicit Gelu(float x) {
    const float square = x * x;
    float t;
    asm("tanh.approx.f32 %0, %1;" : "=f"(t) : "f"(x * (geluRoot + geluRoot * geluCube * square)));
    const float s = 0.5f * t + 0.5f;
    value = x * s;
    slope = s + (value - value * s) * (2 * geluRoot + 6 * geluRoot * geluCube * square);
  }
};
