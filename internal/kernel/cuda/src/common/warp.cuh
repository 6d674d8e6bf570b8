// What the routing kernels add to haul.cuh: shared memory, shuffles and arithmetic that is never
// fused.
#pragma once
#include "haul.cuh"

extern __shared__ float smem[];

#define FULL 0xffffffff
#define INFINITE __builtin_inff()
#define LOG2E 1.4426950408889634f
#define LN2 0.6931471805599453f

// Vector types, not structs: clang 19 splits the copy of a struct between global and shared memory
// and gives one half a generic store of a shared address.
typedef float float2_ __attribute__((ext_vector_type(2)));
typedef float float4_ __attribute__((ext_vector_type(4)));

__device__ __forceinline__ float2_ two(const float *p) { return *(const float2_ *)p; }
__device__ __forceinline__ float4_ four(const float *p) { return *(const float4_ *)p; }

__device__ __forceinline__ float rcp_fast(float x) { float r; asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x)); return r; }
// mul_ is never fused with an addition, so that route lengths are the CPU's bit for bit.
__device__ __forceinline__ float mul_(float a, float b) { float r; asm("mul.rn.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b)); return r; }
__device__ __forceinline__ float add_(float a, float b) { float r; asm("add.rn.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b)); return r; }
__device__ __forceinline__ int shfl_xor(int v, int mask) {
  int r;
  asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, 0xffffffff;" : "=r"(r) : "r"(v), "r"(mask));
  return r;
}
// shfl_up gives lane - d's value; the first d lanes keep their own.
__device__ __forceinline__ float shfl_up(float v, int d) {
  float r;
  asm volatile("shfl.sync.up.b32 %0, %1, %2, 0, 0xffffffff;" : "=f"(r) : "f"(v), "r"(d));
  return r;
}
__device__ __forceinline__ int redux_max(int v) {
  int r;
  asm volatile("redux.sync.max.s32 %0, %1, 0xffffffff;" : "=r"(r) : "r"(v));
  return r;
}
// opaque hides that a value never changes: the compiler would otherwise copy a whole loop for each
// of its values.
__device__ __forceinline__ int opaque(int v) { asm volatile("" : "+r"(v)); return v; }
