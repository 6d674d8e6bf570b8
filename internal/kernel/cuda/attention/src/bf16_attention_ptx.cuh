// Instructions that attention over bf16 adds to those of the products. Nothing here knows a tensor.
#pragma once
#include "bf16.cuh"

// matrices reads four 8×8 matrices of bf16 numbers; lane l gives where row l%8 of matrix l/8
// begins. With g = lane/4, t = lane%4, m[i] is row g, columns 2t and 2t+1 of matrix i.
__device__ __forceinline__ void matrices(u32 (&m)[4], u32 at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3]) : "r"(at) : "memory");
}

// upper packs two fp32 numbers that are bf16 numbers already.
__device__ __forceinline__ Bf16x2 upper(float first, float second) {
  u32 r;
  asm("prmt.b32 %0, %1, %2, 0x7632;" : "=r"(r) : "f"(first), "f"(second));
  return r;
}

__device__ __forceinline__ float larger(float a, float b) {
  float r;
  asm("max.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}

// opaque hides where a value comes from: a constant stays in its register; a branch that begins
// with it is not turned into choices that the path around it would pay for too.
__device__ __forceinline__ int opaque(int v) {
  asm volatile("" : "+r"(v));
  return v;
}
