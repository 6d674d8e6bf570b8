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
    const int l = apart((int)threadIdx_x) % 32; // worked out here: kept, they spill
    down = 2 * piece<HD>(l % 16, l / 16), across = 2 * piece<HD>(l % 8 + l / 16 * 8, l / 8 % 2);
  }
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

// The ten keys of Philox's rounds, two words each, are parameters of a kernel: an instruction takes
// them from constant memory, where made from the seed they would fill twenty registers through the
// loops.
#define ROUND_KEYS \
  u32 k0, u32 k1, u32 k2, u32 k3, u32 k4, u32 k5, u32 k6, u32 k7, u32 k8, u32 k9, u32 k10, u32 k11, u32 k12, u32 k13, u32 k14, u32 k15, u32 k16, u32 k17, u32 k18, u32 k19
#define THE_ROUND_KEYS {k0, k1, k2, k3, k4, k5, k6, k7, k8, k9, k10, k11, k12, k13, k14, k15, k16, k17, k18, k19}

// Masks makes drop_words of one instance.
struct Masks {
  u32 keys[20], site, below; // below: the threshold in a word's upper half
  u64 instance;

  __device__ __forceinline__ Words words(u32 row, u32 blocks, u32 block, u32 t) const {
    u32 c0 = (u32)instance, c1 = (u32)(instance >> 32), c2 = site << 24 | ((row * blocks + block) * 4 + t), c3 = dropPurpose;
#pragma unroll
    for (int i = 0; i < 10; i++) {
      const u64 p0 = (u64)0xD2511F53u * c0, p1 = (u64)0xCD9E8D57u * c2;
      c0 = (u32)(p1 >> 32) ^ c1 ^ keys[2 * i], c1 = (u32)p1;
      c2 = (u32)(p0 >> 32) ^ c3 ^ keys[2 * i + 1], c3 = (u32)p0;
    }
    return Words{{c0, c1, c2, c3}};
  }
};

// drop zeroes what is dropped of a block of 32 columns: rows g, of words w, and g+8. `below` is the
// threshold in a word's upper half, which spares the shift of every second number.
__device__ __forceinline__ void drop(float (&out)[4][4], const float (&s)[4][4], const Words &w, const Words &w8, u32 below) {
#pragma unroll
  for (int n = 0; n < 4; n++) {
    out[n][0] = w.w[n] << 16 >= below ? s[n][0] : 0.0f;
    out[n][1] = w.w[n] >= below ? s[n][1] : 0.0f;
    out[n][2] = w8.w[n] << 16 >= below ? s[n][2] : 0.0f;
    out[n][3] = w8.w[n] >= below ? s[n][3] : 0.0f;
  }
}

// What a kernel does about dropout: nothing, make its masks, read those that were made, or make
// them and leave them to be read: the gradient reads what attention made, a bit where it would make
// sixteen.
enum { WHOLE, MASKED, KEPT, MADE };

// Masks in memory are 16 bits a lane for 16 queries and 32 keys: bit n + 4·(e/2) + 8·(e%2) for
// element e of block n of eight keys. kept_at is where a lane's are of tile r and group J of a
// head.
typedef unsigned short Bits;
__device__ __forceinline__ long kept_at(int head, int tiles, int groups, int r, int J) { return ((((long)head * tiles + r) * groups + J) << 5) + threadIdx_x % 32; }

__device__ __forceinline__ void drop(float (&out)[4][4], const float (&s)[4][4], u32 bits) {
#pragma unroll
  for (int n = 0; n < 4; n++)
#pragma unroll
    for (int e = 0; e < 4; e++) out[n][e] = bits & 1u << (n + 4 * (e / 2) + 8 * (e % 2)) ? s[n][e] : 0.0f;
}

// kept_bits are those of the words of rows g and g+8.
__device__ __forceinline__ u32 kept_bits(const Words &w, const Words &w8, const Compared &limit) {
  u32 word = 0;
#pragma unroll
  for (int i = 0; i < 8; i++) word = word >> 1 | limit.keeps(i < 4 ? w.w[i] : w8.w[i - 4]);
  return (word >> 8 & 0xff) | (word >> 16 & 0xff00);
}
