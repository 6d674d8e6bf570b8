// What the routing kernels add to haul.cuh: shared memory, reductions over a warp and over a quad (the
// four lanes that hold one row of a matrix fragment), and the tf32 matrix product.
//
// What a reader could break: a fragment's k index may be any permutation, so long as both operands use the
// same. Here lane t of a quad holds k = 2t and 2t+1 of every eight (PTX names them t and t+4): an
// accumulator is then the next product's left operand as it stands, without a shuffle.
#pragma once
#include "haul.cuh"

extern __shared__ float smem[];

#define FULL 0xffffffff
#define INFINITE __builtin_inff()
#define LOG2E 1.4426950408889634f
#define LN2 0.6931471805599453f

// Vector types, not structs: clang 19 splits the copy of a struct between global and shared memory and gives one half a
// generic store of a shared address.
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
__device__ __forceinline__ u32 tf32(float x) { u32 r; asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(x)); return r; }
__device__ __forceinline__ void mma_tf32(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// opaque hides that a value never changes: the compiler would otherwise copy a whole loop for each of its values.
__device__ __forceinline__ int opaque(int v) { asm volatile("" : "+r"(v)); return v; }
