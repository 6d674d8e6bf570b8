// Which elements a dropout keeps. Weights of attention: kernel.Drop.Weights. All others, as
// kernel.Drop.Call says: one Philox call serves columns 2t and 2t+1 of the four groups of eight in
// a block of 32 columns, so that the four calls t = 0..3 of a block make one word of 32 decisions.
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

// majority has the bits that two of three words have.
__device__ __forceinline__ u32 majority(u32 a, u32 b, u32 c) {
  u32 r;
  asm("lop3.b32 %0, %1, %2, %3, 0xe8;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
  return r;
}

constexpr int shortRounds = 7; // rng.ShortRounds

// wide_product is the product of two words. Its halves are words of their own, so that three words
// are joined by one instruction.
__device__ __forceinline__ void wide_product(u32 &low, u32 &high, u32 a, u32 b) {
  asm("{.reg .u64 t; mul.wide.u32 t, %2, %3; mov.b64 {%0, %1}, t;}" : "=r"(low), "=r"(high) : "r"(a), "r"(b));
}
__device__ __forceinline__ void philox_round(u32 &c0, u32 &c1, u32 &c2, u32 &c3, u32 k0, u32 k1) {
  u32 low0, high0, low1, high1;
  wide_product(low0, high0, 0xD2511F53u, c0), wide_product(low1, high1, 0xCD9E8D57u, c2);
  c0 = high1 ^ c1 ^ k0, c1 = low1;
  c2 = high0 ^ c3 ^ k1, c3 = low0;
}

// rotated has in bit c of a word what w has in bit c + 8·by.
__device__ __forceinline__ u32 rotated(u32 w, int by) {
  u32 r;
  asm("prmt.b32 %0, %1, %1, %2;" : "=r"(r) : "r"(w), "n"(by == 1 ? 0x0321 : by == 2 ? 0x1032 : 0x2103));
  return r;
}

// keep_weights is kernel.Keep: the decisions about 32 weights of attention by the four words of a
// call. levels[b] is all ones where the threshold's bit b is clear: the smaller numbers stay. It
// takes bits from..to-1 of them, from 0 on.
__device__ __forceinline__ u32 keep_weights(u32 keep, const u32 (&words)[4], const u32 (&levels)[16], int from, int to) {
#pragma unroll
  for (int b = 0; b < 16; b++) {
    if (b < from || b >= to) continue;
    const u32 w = words[b % 4];
    keep = majority(keep, b < 4 ? rotated(w, 2) : b < 8 ? rotated(w, 3) : b < 12 ? rotated(w, 1) ^ rotated(words[(b + 1) % 4], 2) : w, levels[b]);
  }
  return keep;
}

// weight_mask is the word of 32 weights of a query, as kernel.Drop.Weights says.
__device__ __forceinline__ u32 weight_mask(const Drop &p, u64 instance, u32 row, u32 blocks, u32 block) {
  u32 levels[16], k0 = (u32)p.seed, k1 = (u32)(p.seed >> 32);
  u32 c[4] = {(u32)instance, (u32)(instance >> 32), p.site << 24 | (row * blocks + block), dropPurpose};
#pragma unroll
  for (int i = 0; i < shortRounds; i++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) philox_round(c[0], c[1], c[2], c[3], k0, k1);
#pragma unroll
  for (int b = 0; b < 16; b++) levels[b] = p.threshold >> b & 1 ? 0 : 0xffffffff;
  return keep_weights(0xffffffff, c, levels, 0, 16);
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
