// What causal attention over bf16 and its gradient share: where a head's rows lie in shared memory,
// products of 16×16 tiles, the mask of dropout.
//
// What a reader could break: a tensor core takes operands in registers that follow each other, so
// the four matrices of a tile of 16 rows and 16 columns are read in the order that the operand has
// them: left half first, rows 0-7 and 8-15, for left operands and for turned right ones (`down`);
// upper half first for right operands (`across`). Rows of HD numbers are made of pieces of eight;
// the exclusive or of `piece` puts a column of eight pieces into different banks, and is the same
// for every tile.
#pragma once
#include "drop.cuh"
#include "bf16_attention_ptx.cuh"

#define LOG2E 1.4426950408889634f
#define LN2 0.6931471805599453f

// piece is where columns 8·c.. of row r lie, in numbers; rows have HD = 16, 32 or 64.
template <int HD> __device__ __forceinline__ int piece(int r, int c) {
  const int turn = HD == 16 ? r >> 2 & 1 : HD == 32 ? r >> 1 & 3 : r & 7;
  return r * HD + 8 * (c ^ turn);
}

// Tiles reads tiles of one matrix in shared memory.
template <int HD> struct Tiles {
  // bytes: the matrix, and this lane's piece of the tile of its first rows and columns in either
  // order
  u32 at, down, across;

  __device__ __forceinline__ Tiles(u32 at) : at(at) {
    const int l = apart((u32)threadIdx_x) % 32; // worked out here: kept, they spill
    down = 2 * piece<HD>(l % 16, l / 16), across = 2 * piece<HD>(l % 8 + l / 16 * 8, l / 8 % 2);
  }
  __device__ __forceinline__ Tiles(const Tiles &like, u32 at) : at(at), down(like.down), across(like.across) {}
  // Rows from `row`, a multiple of 16; columns from 16·c. left: the left operand. right: columns
  // are terms; m[0..1] are rows 0-7, m[2..3] rows 8-15. turned: rows are terms; m[0..1] are columns
  // 0-7, m[2..3] columns 8-15.
  __device__ __forceinline__ void left(u32 (&m)[4], int row, int c) const { matrices(m, at + 2 * row * HD + (down ^ 32 * c)); }
  __device__ __forceinline__ void right(u32 (&m)[4], int row, int c) const { matrices(m, at + 2 * row * HD + (across ^ 32 * c)); }
  __device__ __forceinline__ void turned(u32 (&m)[4], int row, int c) const {
    const u4 v = turned4(at + 2 * row * HD + (down ^ 32 * c));
    m[0] = v.x, m[1] = v.y, m[2] = v.z, m[3] = v.w;
  }
};

// c[16×8] += a·b.
__device__ __forceinline__ void multiply(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  mma_bf16(c[0], c[1], c[2], c[3], a[0], a[1], a[2], a[3], b0, b1);
}

// left makes the left operand of 16 rows and columns 16·a.. of a result of 32 columns.
__device__ __forceinline__ void left(u32 (&out)[4], const float (&s)[4][4], int a) {
  out[0] = bf16x2(s[2 * a][0], s[2 * a][1]), out[1] = bf16x2(s[2 * a][2], s[2 * a][3]);
  out[2] = bf16x2(s[2 * a + 1][0], s[2 * a + 1][1]), out[3] = bf16x2(s[2 * a + 1][2], s[2 * a + 1][3]);
}

// Philox's keys, two words a round, and the levels of keep_32 are parameters of a kernel: an
// instruction takes them from constant memory, where made from seed and threshold they would fill
// registers through the loops.
#define DECIDED_BY                                                                                                                       \
  u32 k0, u32 k1, u32 k2, u32 k3, u32 k4, u32 k5, u32 k6, u32 k7, u32 k8, u32 k9, u32 k10, u32 k11, u32 k12, u32 k13, u32 l0, u32 l1, u32 l2, u32 l3, u32 l4, u32 l5, \
      u32 l6, u32 l7, u32 l8, u32 l9, u32 l10, u32 l11, u32 l12, u32 l13, u32 l14, u32 l15
#define WHAT_DECIDES {k0, k1, k2, k3, k4, k5, k6, k7, k8, k9, k10, k11, k12, k13}, {l0, l1, l2, l3, l4, l5, l6, l7, l8, l9, l10, l11, l12, l13, l14, l15}

// Masks makes drop_word of one instance, which `of` names before a word is made.
//
// A word's draw reaches but half of Philox's numbers in each of the first two rounds, and the other
// halves are the same for a whole instance: `fixed` are they, with the keys they meet.
struct Masks {
  u32 keys[2 * shortRounds], levels[16], site;
  u32 fixed[4];

  __device__ __forceinline__ void of(u64 instance) {
    u32 low, high, low1, high1;
    wide_product(low, high, 0xD2511F53u, (u32)instance);
    wide_product(low1, high1, 0xCD9E8D57u, high ^ dropPurpose ^ keys[1]);
    fixed[0] = (u32)(instance >> 32) ^ keys[0], fixed[1] = high1 ^ keys[2], fixed[2] = low ^ keys[3], fixed[3] = low1;
  }
  __device__ __forceinline__ u32 draw(u32 row, u32 blocks, u32 block) const { return site << 24 | (row * blocks + block); }
  template <u32 RATE = 0> __device__ __forceinline__ u32 word(u32 draw) const;
};

// Word makes Masks::word step by step, between other instructions, where they are written.
struct Word {
  u32 c[4];
  u32 keep;

  __device__ __forceinline__ Word(u32 draw) { c[2] = draw; }
  __device__ __forceinline__ static void product(u32 &low, u32 &high, u32 a, u32 b) {
    asm volatile("{.reg .u64 t; mul.wide.u32 t, %2, %3; mov.b64 {%0, %1}, t;}" : "=r"(low), "=r"(high) : "r"(a), "r"(b));
  }
  __device__ __forceinline__ void round(const Masks &masks, int i) {
    u32 low0, high0, low1, high1;
    if (i == 0) {
      product(low1, high1, 0xCD9E8D57u, c[2]);
      c[0] = high1 ^ masks.fixed[0], c[1] = low1;
    } else if (i == 1) {
      product(low0, high0, 0xD2511F53u, c[0]);
      c[0] = c[1] ^ masks.fixed[1], c[1] = masks.fixed[3], c[2] = high0 ^ masks.fixed[2], c[3] = low0;
    } else {
      product(low0, high0, 0xD2511F53u, c[0]), product(low1, high1, 0xCD9E8D57u, c[2]);
      asm volatile("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(c[0]) : "r"(high1), "r"(c[1]), "r"(masks.keys[2 * i]));
      asm volatile("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(c[2]) : "r"(high0), "r"(c[3]), "r"(masks.keys[2 * i + 1]));
      c[1] = low1, c[3] = low0;
    }
  }
  // levels takes bits from..to-1 of the weights' numbers, from 0 on. RATE is what they are compared
  // with, where that is known: then one instruction takes a sum of two bits, and some take none.
  template <u32 RATE = 0> __device__ __forceinline__ void levels(const Masks &masks, int from, int to) {
    if (from == 0) keep = 0xffffffff;
    if (RATE == 0) {
      keep = keep_32(keep, c, masks.levels, from, to);
      return;
    }
#pragma unroll
    for (int b = 0; b < 16; b++) {
      if (b < from || b >= to) continue;
      const u32 w = c[b % 4], bit = b < 4 ? rotated(w, 2) : b < 8 ? rotated(w, 3) : b < 12 ? rotated(w, 1) ^ rotated(c[(b + 1) % 4], 2) : w;
      keep = RATE >> b & 1 ? keep & bit : keep | bit;
    }
  }
};

template <u32 RATE> __device__ __forceinline__ u32 Masks::word(u32 draw) const {
  Word made(draw);
#pragma unroll
  for (int i = 0; i < shortRounds; i++) made.round(*this, i);
  made.levels<RATE>(*this, 0, 16);
  return made.keep;
}

// What a kernel does about dropout: nothing, make its masks, read those that were made, or make
// them and leave them to be read: the gradient reads what attention made.
enum { WHOLE, MASKED, KEPT, MADE };

// Masks in memory are a word for a query and 32 keys, bit c for key c: for each tile of 16 queries
// and each pair of groups of keys 32 words, lane l's of query l%16 and group l/16 of the pair.
// kept_at is where those of tile r and pair P of a head begin.
__device__ __forceinline__ long kept_at(int head, int tiles, int pairs, int r, int P) { return (((long)head * tiles + r) * pairs + P) << 5; }

// upper_bits has, of byte n, n < 4, of two words all bits of a half each where the byte's upper bit
// is set: the low half for the first word.
__device__ __forceinline__ u32 upper_bits(u32 a, u32 b, int n) {
  u32 r;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(0xcc88 + 0x1111 * n));
  return r;
}
