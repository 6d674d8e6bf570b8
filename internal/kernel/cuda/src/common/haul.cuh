// What every kernel of Haul shares: CUDA's builtins for clang without NVIDIA's headers, the blocks
// of device memory that Go reads and writes, and Philox. Structs here mirror structs.go byte for
// byte; a test compares the sizes.
#pragma once

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define KERNEL extern "C" __global__ void

typedef unsigned int u32;
typedef unsigned long long u64;

#define threadIdx_x __nvvm_read_ptx_sreg_tid_x()
#define blockIdx_x __nvvm_read_ptx_sreg_ctaid_x()
#define blockIdx_y __nvvm_read_ptx_sreg_ctaid_y()
#define blockIdx_z __nvvm_read_ptx_sreg_ctaid_z()
#define blockDim_x __nvvm_read_ptx_sreg_ntid_x()
#define gridDim_x __nvvm_read_ptx_sreg_nctaid_x()

__device__ __forceinline__ void sync() { __syncthreads(); }
__device__ __forceinline__ void syncwarp() { asm volatile("bar.warp.sync 0xffffffff;" ::: "memory"); }

// Values shared by the lanes of a warp.
__device__ __forceinline__ float shfl_xor(float v, int mask) {
  float r;
  asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, 0xffffffff;" : "=f"(r) : "f"(v), "r"(mask));
  return r;
}
__device__ __forceinline__ float shfl(float v, int lane) {
  float r;
  asm volatile("shfl.sync.idx.b32 %0, %1, %2, 31, 0xffffffff;" : "=f"(r) : "f"(v), "r"(lane));
  return r;
}
__device__ __forceinline__ int shfl(int v, int lane) {
  int r;
  asm volatile("shfl.sync.idx.b32 %0, %1, %2, 31, 0xffffffff;" : "=r"(r) : "r"(v), "r"(lane));
  return r;
}
__device__ __forceinline__ u32 ballot(bool p) {
  u32 r;
  asm volatile("{.reg .pred q; setp.ne.u32 q, %1, 0; vote.sync.ballot.b32 %0, q, 0xffffffff;}" : "=r"(r) : "r"((u32)p));
  return r;
}
__device__ __forceinline__ float warp_sum(float v) {
  for (int m = 16; m > 0; m >>= 1) v += shfl_xor(v, m);
  return v;
}
__device__ __forceinline__ float warp_max(float v) {
  for (int m = 16; m > 0; m >>= 1) { float o = shfl_xor(v, m); v = o > v ? o : v; }
  return v;
}

// Elementary functions, without libdevice: ex2.approx and lg2.approx are accurate to about 2 ulp.
__device__ __forceinline__ float ex2(float x) { float r; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x)); return r; }
__device__ __forceinline__ float lg2(float x) { float r; asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x)); return r; }
__device__ __forceinline__ float expf_(float x) { return ex2(x * 1.4426950408889634f); }
__device__ __forceinline__ float logf_(float x) { return lg2(x) * 0.6931471805599453f; }
__device__ __forceinline__ float rcp(float x) { float r; asm("rcp.rn.f32 %0, %1;" : "=f"(r) : "f"(x)); return r; }
__device__ __forceinline__ float sqrtf_(float x) { float r; asm("sqrt.rn.f32 %0, %1;" : "=f"(r) : "f"(x)); return r; }
__device__ __forceinline__ float div_(float a, float b) { float r; asm("div.rn.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b)); return r; }
__device__ __forceinline__ float fma_(float a, float b, float c) { float r; asm("fma.rn.f32 %0, %1, %2, %3;" : "=f"(r) : "f"(a), "f"(b), "f"(c)); return r; }
__device__ __forceinline__ float sigmoid_(float x) { return rcp(1.0f + expf_(-x)); }

// Blocks of device memory that Go reads and writes (structs.go). What coefficients, scalars and
// sums mean is the program's.
struct Control { float learningRate, temperature, coefficients[14]; };
struct State { u64 step, instances; double beta1T, beta2T; u64 part; double scalars[8]; };
struct Metrics {
  double gradNorm, sums[32];
  long long badStep; // what follows outlives a read of the sums
  u64 badFirst;      // first instance of the bad step
};

// Philox4x32-10, as internal/rng.
struct Words { u32 w[4]; };
__device__ __forceinline__ Words philox(u64 seed, u64 index, u32 draw, u32 purpose) {
  u32 k0 = (u32)seed, k1 = (u32)(seed >> 32);
  u32 c0 = (u32)index, c1 = (u32)(index >> 32), c2 = draw, c3 = purpose;
#pragma unroll
  for (int i = 0; i < 10; i++) {
    u64 p0 = (u64)0xD2511F53u * c0, p1 = (u64)0xCD9E8D57u * c2;
    c0 = (u32)(p1 >> 32) ^ c1 ^ k0; c1 = (u32)p1;
    c2 = (u32)(p0 >> 32) ^ c3 ^ k1; c3 = (u32)p0;
    k0 += 0x9E3779B9u; k1 += 0xBB67AE85u;
  }
  return Words{{c0, c1, c2, c3}};
}
__device__ __forceinline__ u32 below(u32 u, u32 n) { return (u32)(((u64)u * n) >> 32); }
__device__ __forceinline__ float unit(u32 u) { return (float)(u >> 8) * 0x1p-24f; }
