// Which elements a dropout keeps, as kernel.Drop.Word says: one Philox call decides about 32
// columns of a row, or 32 keys of a query.
#pragma once
#include "haul.cuh"

struct Drop {
  u64 seed;
  // an element goes when its 16 bits lie below the threshold; 0: nothing is dropped
  u32 site, threshold;
  float scale;         // of what is kept
};

constexpr u32 dropPurpose = 8; // rng.Dropout

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

// keep_32 is kernel.Keep: the decisions about 32 elements by the four words of a call. levels[b] is
// all ones where the threshold's bit b is clear: the smaller numbers stay. It takes bits from..to-1
// of them, from 0 on.
__device__ __forceinline__ u32 keep_32(u32 keep, const u32 (&words)[4], const u32 (&levels)[16], int from, int to) {
#pragma unroll
  for (int b = 0; b < 16; b++) {
    if (b < from || b >= to) continue;
    const u32 w = words[b % 4];
    keep = majority(keep, b < 4 ? rotated(w, 2) : b < 8 ? rotated(w, 3) : b < 12 ? rotated(w, 1) ^ rotated(words[(b + 1) % 4], 2) : w, levels[b]);
  }
  return keep;
}

// drop_word has bit c where column 32·block + c of a row is kept.
__device__ __forceinline__ u32 drop_word(const Drop &p, u64 instance, u32 row, u32 blocks, u32 block) {
  u32 levels[16], k0 = (u32)p.seed, k1 = (u32)(p.seed >> 32);
  u32 c[4] = {(u32)instance, (u32)(instance >> 32), p.site << 24 | (row * blocks + block), dropPurpose};
#pragma unroll
  for (int i = 0; i < shortRounds; i++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) philox_round(c[0], c[1], c[2], c[3], k0, k1);
#pragma unroll
  for (int b = 0; b < 16; b++) levels[b] = p.threshold >> b & 1 ? 0 : 0xffffffff;
  return keep_32(0xffffffff, c, levels, 0, 16);
}
