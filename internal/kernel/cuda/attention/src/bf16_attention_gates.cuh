// Gates that warps of a block wait at, in place of barriers of the block.
#pragma once
#include "haul.cuh"

// A gate is a barrier in shared memory, whose phases have parities 0, 1, 0 and so on. All lanes
// of a warp arrive: what each has read and written then comes before what follows the gate.
__device__ __forceinline__ void gate_new(u32 at, u32 arrivals) { asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(at), "r"(arrivals) : "memory"); }
__device__ __forceinline__ void gate_arrive(u32 at) { asm volatile("{.reg .b64 t; mbarrier.arrive.shared.b64 t, [%0];}" ::"r"(at) : "memory"); }
// gate_copies lets this thread arrive when its copies so far are done.
__device__ __forceinline__ void gate_copies(u32 at) { asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(at) : "memory"); }
// gate_open tells whether the phase of that parity is over, gate_wait returns when it is.
__device__ __forceinline__ bool gate_open(u32 at, u32 parity) {
  u32 r;
  asm volatile("{.reg .pred done; mbarrier.test_wait.parity.shared.b64 done, [%1], %2; selp.u32 %0, 1, 0, done;}" : "=r"(r) : "r"(at), "r"(parity) : "memory");
  return r;
}
__device__ __forceinline__ void gate_wait(u32 at, u32 parity) {
  asm volatile("{.reg .pred done; again: mbarrier.test_wait.parity.shared.b64 done, [%0], %1; @!done bra again;}" ::"r"(at), "r"(parity) : "memory");
}
