// The policy's distribution of one decode step, from the pointer's dot products on, and reductions
// over a quad: the four lanes that hold one row of a matrix fragment. kernel.Decoder states the
// formulas.
//
// Fragments: lane = 4g + t. An accumulator c[4] of rows x columns holds row g in c[0], c[1] and row
// g+8 in c[2], c[3], at columns 2t and 2t+1 of its tile of eight. Node masks follow: bit 2T+b of a
// lane's mask is node 8T+2t+b, so that 32 bits a row are enough for 128 nodes.
#pragma once
#include "rules.cuh"

// table_at is the place of node j in a row of a table of scores: a lane's nodes of two tiles of
// eight side by side.
__device__ __forceinline__ int table_at(int j) { return (j & ~15) | ((j >> 1 & 3) << 2) | ((j >> 3 & 1) << 1) | (j & 1); }

enum { SAMPLE, GREEDY, REPLAY }; // kernel.Choice

__device__ __forceinline__ float as_float(u32 x) { return __builtin_bit_cast(float, x); }
__device__ __forceinline__ int as_int(float x) { return __builtin_bit_cast(int, x); }

__device__ __forceinline__ float quad_sum(float v) { v += shfl_xor(v, 1); return v + shfl_xor(v, 2); }
__device__ __forceinline__ int quad_sum(int v) { v += shfl_xor(v, 1); return v + shfl_xor(v, 2); }
__device__ __forceinline__ float larger(float a, float b) { return a > b ? a : b; }
__device__ __forceinline__ float quad_max(float v) { v = larger(v, shfl_xor(v, 1)); return larger(v, shfl_xor(v, 2)); }
__device__ __forceinline__ int smaller(int a, int b) { return a < b ? a : b; }
__device__ __forceinline__ int quad_min(int v) { v = smaller(v, shfl_xor(v, 1)); return smaller(v, shfl_xor(v, 2)); }
__device__ __forceinline__ int quad_max(int v) { return -quad_min(-v); }

// near_one is a power of two that brings what a weight becomes on its way to a dot product near a
// quarter: fp16 holds 2^16 times as much and, less exactly, 2^-22 of it. Where nothing weighs, all
// starts being of one length, 2^100 times nothing stays nothing: twice as far infinity is near.
__device__ __forceinline__ float near_one(float most) {
  const int e = 252 - ((as_int(most) >> 23) & 255);
  return as_float((u32)(e < 1 ? 1 : smaller(e, 227)) << 23);
}

// warp_top is the largest v of the warp, by the order that floats share with sign-folded integers.
__device__ __forceinline__ float warp_top(float v) {
  int i = as_int(v);
  i = redux_max(i ^ ((i >> 31) & 0x7fffffff));
  return as_float((u32)(i ^ ((i >> 31) & 0x7fffffff)));
}

__device__ __forceinline__ float tanh_(float x) { return 1.0f - 2.0f * rcp_fast(ex2(x * (2.0f * LOG2E)) + 1.0f); }

// Biases is what kernel.Decoder adds to the scores of an instance's nodes beside the pointer's dot
// product, as bias_tables (biases.cu) leaves it: row `at` is for decisions made at that node, and
// the rows from n on are multiplied by the context's features. null where nothing is added. A
// kernel gets it in the unit of its own sums.
struct Biases {
  const float *table;
  int wide, n;

  __device__ __forceinline__ Biases(const float *all, int i, int n, int wide) : table(all ? all + (u64)i * (n + CONTEXTS) * wide : 0), wide(wide), n(n) {}
  __device__ __forceinline__ float operator()(int at, float cap, int j) const {
    const int place = table_at(j);
    return fma_(cap, table[n * wide + place], table[at * wide + place]);
  }
  __device__ __forceinline__ float operator()(int at, const Context &seen, int j) const {
    const int place = table_at(j);
    float sum = fma_(seen.part[0], table[n * wide + place], table[at * wide + place]);
#pragma unroll
    for (int k = 1; k < CONTEXTS; k++) sum = fma_(seen.part[k], table[(n + k) * wide + place], sum);
    return sum;
  }
};

// Distribution is one row's, after tanh: logit = mult·th, log-probability = mult·(th - top) -
// logSum.
struct Distribution { float top, sum, logSum, entropy; };

// tanh_softmax turns row I's dots into th = tanh(dots·scale), in place, and exp(mult·(th - top))
// into e (0 where masked).
template <int NT, int I>
__device__ __forceinline__ Distribution tanh_softmax(float (&dots)[NT][4], float (&e)[NT][4], u32 mask, float scale, float mult) {
  Distribution w;
  w.top = -INFINITE;
#pragma unroll
  for (int T = 0; T < NT; T++)
#pragma unroll
    for (int b = 0; b < 2; b++) {
      float th = tanh_(dots[T][2 * I + b] * scale);
      dots[T][2 * I + b] = th;
      if (mask >> (2 * T + b) & 1) w.top = larger(w.top, th);
    }
  w.top = quad_max(w.top);
  w.sum = 0;
  float mean = 0;
#pragma unroll
  for (int T = 0; T < NT; T++)
#pragma unroll
    for (int b = 0; b < 2; b++) {
      float z = (dots[T][2 * I + b] - w.top) * mult;
      float x = mask >> (2 * T + b) & 1 ? ex2(z * LOG2E) : 0.0f;
      e[T][2 * I + b] = x;
      w.sum += x;
      if (x > 0) mean += x * z;
    }
  w.sum = quad_sum(w.sum);
  mean = quad_sum(mean);
  w.logSum = logf_(w.sum);
  w.entropy = w.logSum - div_(mean, w.sum);
  return w;
}
