// Instructions that the kernels over bf16 tensors use beside those of ptx.cuh. Nothing here knows a
// tensor.
#pragma once
#include "ptx.cuh"

typedef unsigned short Bf16; // a bf16 number
typedef u32 u4 __attribute__((ext_vector_type(4)));

// stream4 reads eight bf16 numbers that no one reads again, past this multiprocessor's cache.
__device__ __forceinline__ u4 stream4(const Bf16 *p) {
  u4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
  return v;
}
// With floats it reads four, or none and gives zeros; the kernel may overwrite them later.
__device__ __forceinline__ f4 stream4(const float *p, bool real) {
  f4 v;
  asm volatile("{.reg .pred q; setp.ne.u32 q, %5, 0; mov.f32 %0, 0f00000000; mov.f32 %1, 0f00000000; mov.f32 %2, 0f00000000; mov.f32 %3, 0f00000000; "
               "@q ld.global.L1::no_allocate.v4.f32 {%0,%1,%2,%3}, [%4];}"
               : "=&f"(v.x), "=&f"(v.y), "=&f"(v.z), "=&f"(v.w)
               : "l"(p), "r"((u32)real));
  return v;
}
// prefetch brings 64 bytes into the card's cache, which the kernel reads soon.
__device__ __forceinline__ void prefetch(const void *p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p)); }

// prefetch_line brings the 128 bytes around p.
__device__ __forceinline__ void prefetch_line(const void *p) {
  prefetch((const void *)((u64)p & ~127ull)), prefetch((const void *)(((u64)p & ~127ull) + 64));
}
__device__ __forceinline__ int least(int a, int b) { return a < b ? a : b; }

__device__ __forceinline__ u32 shared_at(const void *p) {
  u32 at;
  asm("{.reg .u64 t; cvta.to.shared.u64 t, %1; cvt.u32.u64 %0, t;}" : "=r"(at) : "l"(p));
  return at;
}
// copy16 brings 16 bytes from global to shared memory, or zeros; it is done when wait_copies says
// so.
__device__ __forceinline__ void copy16(u32 to, const Bf16 *from, bool real) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(real ? 16 : 0) : "memory");
}
// turned4 reads four 8×8 matrices of bf16, transposed: lane l gives the place of row l%8 of matrix
// l/8, and gets of each matrix rows 2t and 2t+1 of column g, with g = l/4 and t = l%4.
__device__ __forceinline__ u4 turned4(u32 at) {
  u4 v;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(at) : "memory");
  return v;
}

// upright4 reads them as they lie: lane l gets of each matrix columns 2t and 2t+1 of row g.
__device__ __forceinline__ u4 upright4(u32 at) {
  u4 v;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(at) : "memory");
  return v;
}

__device__ __forceinline__ u32 shfl_xor(u32 v, int mask) { return __builtin_bit_cast(u32, shfl_xor(__builtin_bit_cast(float, v), mask)); }

// apart hides where a value comes from, so that what is computed from it is computed anew.
template <class T> __device__ __forceinline__ T apart(T v) {
  if constexpr (sizeof(T) == 8)
    asm volatile("" : "+l"(v));
  else
    asm volatile("" : "+r"(v));
  return v;
}

// low_halves and high_halves put one half of each of two words side by side, a's low.
__device__ __forceinline__ u32 low_halves(u32 a, u32 b) { return (a & 0xffff) | b << 16; }
__device__ __forceinline__ u32 high_halves(u32 a, u32 b) { return a >> 16 | (b & 0xffff0000); }

__device__ __forceinline__ float bf16_low(u32 v) { return __builtin_bit_cast(float, v << 16); }
__device__ __forceinline__ float bf16_high(u32 v) { return __builtin_bit_cast(float, v & 0xffff0000); }

__device__ __forceinline__ float rcp_approx(float x) {
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}
