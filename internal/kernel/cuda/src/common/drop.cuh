// Which elements a dropout keeps, as kernel.Drop.Call says: one Philox call serves columns 2t and
// 2t+1 of the four groups of eight in a block of 32 columns, so that the four calls t = 0..3 of a
// block make one word of 32 decisions.
#pragma once
#include "haul.cuh"

struct Drop {
  u64 seed;
  // an element goes when its 16 bits lie below the threshold; 0: nothing is dropped
  u32 site, threshold;
  float scale;         // of what is kept
};

constexpr u32 dropPurpose = 8; // rng.Dropout

// drop_words are the 128 bits of call t of a block of 32 columns: column 8g + 2t + h of the block
// has half h of word g.
__device__ __forceinline__ Words drop_words(const Drop &p, u64 instance, u32 row, u32 blocks, u32 block, u32 t) {
  return philox(p.seed, instance, p.site << 24 | ((row * blocks + block) * 4 + t), dropPurpose);
}
__device__ __forceinline__ bool drop_keeps(const Drop &p, const Words &u, int g, int h) { return (u.w[g] >> 16 * h & 0xffff) >= p.threshold; }

// drop_mask is the word of a block, bit c for column c, made by four neighbouring lanes, t =
// lane%4, which all get it. Whole warps call it.
__device__ __forceinline__ u32 drop_mask(const Drop &p, u64 instance, u32 row, u32 blocks, u32 block, u32 t) {
  const Words u = drop_words(p, instance, row, blocks, block, t);
  u32 bits = 0;
#pragma unroll
  for (int g = 0; g < 4; g++)
#pragma unroll
    for (int h = 0; h < 2; h++) bits |= (u32)drop_keeps(p, u, g, h) << (8 * g + 2 * t + h);
#pragma unroll
  for (int m = 1; m <= 2; m *= 2) bits |= __builtin_bit_cast(u32, shfl_xor(__builtin_bit_cast(float, bits), m));
  return bits;
}

// Compared compares both halves of a word with the threshold at once: the lower 15 bits of each
// half reach it where their sum with `lift` has the half's upper bit; a threshold above 2¹⁵ asks
// for the number's own upper bit too, one up to it is reached by that bit alone.
struct Compared {
  u32 lift, low; // low: all ones where the threshold is at most 2¹⁵
  __device__ __forceinline__ Compared(u32 threshold) : lift(((threshold > 0x8000 ? 0x10000 : 0x8000) - threshold) * 0x10001u), low(threshold > 0x8000 ? 0 : 0xffffffff) {}
  // keeps has bit 15 for the lower half and bit 31 for the upper one.
  __device__ __forceinline__ u32 keeps(u32 v) const {
    const u32 sum = (v & 0x7fff7fffu) + lift;
    return ((sum & v) | ((sum | v) & low)) & 0x80008000u;
  }
};
