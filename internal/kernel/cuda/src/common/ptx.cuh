// Instructions that the dense kernels use and C++ has no word for: asynchronous copies, tensor
// cores, the turn of a block. Nothing here knows a tensor.
#pragma once
#include "haul.cuh"

typedef float f4 __attribute__((ext_vector_type(4)));
typedef float f2 __attribute__((ext_vector_type(2)));
typedef u32 u2 __attribute__((ext_vector_type(2)));

__device__ __forceinline__ f4 load4(const float *p) { return *(const f4 *)p; }
__device__ __forceinline__ void store4(float *p, f4 v) { *(f4 *)p = v; }
__device__ __forceinline__ float sum4(f4 v) { return (v.x + v.y) + (v.z + v.w); }

// copy_async brings VEC floats (4 or 1) from global to shared memory; of their bytes only `valid`
// are read, the rest are zeros. It is done when wait_copies says so.
template <int VEC> __device__ __forceinline__ void copy_async(float *dst, const float *src, int valid) {
  u32 at;
  asm volatile("{.reg .u64 t; cvta.to.shared.u64 t, %1; cvt.u32.u64 %0, t;}" : "=r"(at) : "l"(dst));
  if (VEC == 4)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(src), "r"(valid) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(at), "l"(src), "r"(valid) : "memory");
}
__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// wait_copies waits until at most PENDING of this thread's groups are under way.
template <int PENDING> __device__ __forceinline__ void wait_copies() { asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory"); }

// A tensor core's operands: one tf32 number, or two bf16 numbers with the first in the low half.
typedef u32 Tf32;
typedef u32 Bf16x2;
// tf32 rounds for a tensor core, which drops the low 13 bits: adding 0.36 to 0.72 of the last place
// kept leaves no bias and at most 0.72 of it as an error (cvt.rna 0.5), keeps what needs no
// rounding, infinities and NaN, and is one instruction, not three.
__device__ __forceinline__ Tf32 tf32(float x) { return __builtin_bit_cast(u32, x * 1.000352f); }
__device__ __forceinline__ Bf16x2 bf16x2(float first, float second) {
  u32 r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(second), "f"(first));
  return r;
}

// c[16×8] += a·b over 8 (tf32) or 16 (bf16) terms, by a whole warp. With g = lane/4, t = lane%4: c0
// and c1 are row g, columns 2t and 2t+1, c2 and c3 row g+8; a0 and a2 are row g, a1 and a3 row g+8;
// b0 and b1 column g. Term t (bf16: 2t, 2t+1) is in a0, a1, b0; term t+4 (2t+8, 2t+9) in a2, a3,
// b1.
__device__ __forceinline__ void mma_tf32(float &c0, float &c1, float &c2, float &c3, Tf32 a0, Tf32 a1, Tf32 a2, Tf32 a3, Tf32 b0, Tf32 b1) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
               : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
__device__ __forceinline__ void mma_bf16(float &c0, float &c1, float &c2, float &c3, Bf16x2 a0, Bf16x2 a1, Bf16x2 a2, Bf16x2 a3, Bf16x2 b0,
                                         Bf16x2 b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
               : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

__device__ __forceinline__ double shfl_xor(double v, int mask) {
  double r;
  asm volatile("{.reg .b32 lo, hi; mov.b64 {lo, hi}, %1; shfl.sync.bfly.b32 lo, lo, %2, 31, 0xffffffff; "
               "shfl.sync.bfly.b32 hi, hi, %2, 31, 0xffffffff; mov.b64 %0, {lo, hi};}"
               : "=d"(r)
               : "d"(v), "r"(mask));
  return r;
}
__device__ __forceinline__ double sqrt64(double x) {
  double r;
  asm("sqrt.rn.f64 %0, %1;" : "=d"(r) : "d"(x));
  return r;
}
__device__ __forceinline__ f4 warp_sum(f4 v) { return f4{warp_sum(v.x), warp_sum(v.y), warp_sum(v.z), warp_sum(v.w)}; }
__device__ __forceinline__ f4 warp_max(f4 v) { return f4{warp_max(v.x), warp_max(v.y), warp_max(v.z), warp_max(v.w)}; }

// take_turn adds one to a counter that returns to 0 after `of` turns, and says which turn this was.
__device__ __forceinline__ u32 take_turn(u32 *counter, u32 of) {
  u32 r;
  asm volatile("atom.global.inc.u32 %0, [%1], %2;" : "=r"(r) : "l"(counter), "r"(of - 1) : "memory");
  return r;
}
__device__ __forceinline__ void fence() { asm volatile("membar.gl;" ::: "memory"); }

// last_of tells every thread of the block that `of` blocks sharing the counter have come here and
// this one is the last, so it may read what the others wrote before. The counter starts at 0 and is
// 0 again afterwards.
__device__ __forceinline__ bool last_of(u32 of, u32 *counter) {
  __shared__ u32 turn;
  sync();
  // one fence speaks for all: the barriers order it after the others' writes and before their reads
  if (threadIdx_x == 0) {
    fence();
    turn = take_turn(counter, of);
    fence();
  }
  sync();
  return turn == of - 1;
}
// fresh reads past this multiprocessor's cache: for what another block wrote in the same launch.
__device__ __forceinline__ float fresh(const float *p) { return *(const volatile float *)p; }
__device__ __forceinline__ double fresh(const double *p) { return *(const volatile double *)p; }

// fresh_sum adds count numbers, `step` apart, in order, BATCH reads at a time under way.
template <int BATCH, class T> __device__ __forceinline__ T fresh_sum(const T *p, int count, int step) {
  T sum = 0;
  for (int i = 0; i < count; i += BATCH) {
    T v[BATCH];
#pragma unroll
    for (int j = 0; j < BATCH; j++) v[j] = i + j < count ? fresh(p + (long)(i + j) * step) : 0;
#pragma unroll
    for (int j = 0; j < BATCH; j++) sum += v[j];
  }
  return sum;
}
