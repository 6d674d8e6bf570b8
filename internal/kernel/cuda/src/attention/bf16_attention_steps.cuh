// The steps of causal attention over bf16 and of its gradient that do not know where keys, values
// and sums lie: both for heads held whole in shared memory and for those streamed through it.
#pragma once
#include "bf16_attention.cuh"

constexpr float huge = 0x1p60f; // a row's sum above it goes over to a larger score

__device__ __forceinline__ float quad_sum(float v) {
  v += shfl_xor(v, 1);
  return v + shfl_xor(v, 2);
}

__device__ __forceinline__ int last(int row, int tokens) { return row < tokens ? row : tokens - 1; }

// Queries are 16 rows of q as left operands, and where the sequences of this lane's two rows begin.
template <int K> struct Queries {
  u32 q[K][4];
  int from[2];

  __device__ __forceinline__ void read(const Bf16 *head, const int *first, int tile, int tokens, int d, int hd) {
    const int g = threadIdx_x % 32 / 4, t = threadIdx_x % 4;
#pragma unroll
    for (int x = 0; x < 2; x++) {
      const int i = last(16 * tile + g + 8 * x, tokens);
      from[x] = first[i];
#pragma unroll
      for (int k = 0; k < 2 * K; k++) q[k / 2][k % 2 * 2 + x] = 8 * k < hd ? *(const u32 *)(head + (long)i * 3 * d + 8 * k + 2 * t) : 0;
    }
  }
};

// scores are q·k for tile r and group J, minus infinity where the query does not see the key: `i`
// are this lane's queries, `from` where their sequences begin, `highest` where the tile's last
// does.
template <int HD>
__device__ __forceinline__ void scores(float (&s)[4][4], const u32 (&q)[HD / 16][4], const Tiles<HD> &keys, int r, int J, const int (&i)[2], const int (&from)[2],
                                       int highest) {
#pragma unroll
  for (int n = 0; n < 4; n++)
#pragma unroll
    for (int e = 0; e < 4; e++) s[n][e] = 0;
#pragma unroll
  for (int a = 0; a < 2; a++)
#pragma unroll
    for (int k = 0; k < HD / 16; k++) {
      u32 m[4];
      keys.right(m, 32 * J + 16 * a, k);
      multiply(s[2 * a], q[k], m[0], m[1]);
      multiply(s[2 * a + 1], q[k], m[2], m[3]);
    }
  if (J != r / 2 && 32 * J >= highest) return;
  const int j = opaque(32 * J + 2 * (threadIdx_x % 4));
#pragma unroll
  for (int n = 0; n < 4; n++)
#pragma unroll
    for (int e = 0; e < 4; e++)
      if (8 * n + e % 2 > i[e / 2] - j || 8 * n + e % 2 < from[e / 2] - j) s[n][e] = -__builtin_inff();
}

// largest raises top to the rows' largest scores.
__device__ __forceinline__ void largest(float (&top)[2], const float (&s)[4][4]) {
#pragma unroll
  for (int x = 0; x < 2; x++) {
    float most = top[x];
#pragma unroll
    for (int n = 0; n < 4; n++) most = larger(most, larger(s[n][2 * x], s[n][2 * x + 1]));
    most = larger(most, shfl_xor(most, 1));
    top[x] = larger(most, shfl_xor(most, 2));
  }
}

// powers puts 2^((s - top)·unit) in the place of s, and this lane's sums of them into part.
__device__ __forceinline__ void powers(float (&part)[2], float (&s)[4][4], const float (&top)[2], float unit) {
#pragma unroll
  for (int x = 0; x < 2; x++) {
    part[x] = 0;
#pragma unroll
    for (int n = 0; n < 4; n++)
#pragma unroll
      for (int e = 2 * x; e < 2 * x + 2; e++) {
        s[n][e] = ex2(s[n][e] * unit - top[x] * unit);
        part[x] += s[n][e];
      }
  }
}

__device__ __forceinline__ float dot2(u32 a, u32 b) { return bf16_low(a) * bf16_low(b) + bf16_high(a) * bf16_high(b); }

// same_bits is c[16×8] = a·b in fp16: c0 is row g, columns 2t and 2t+1, c1 row g+8.
__device__ __forceinline__ void same_bits(u32 &c0, u32 &c1, const u32 (&a)[4], u32 b0, u32 b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%8,%8};"
               : "=r"(c0), "=r"(c1)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "r"(0));
}

// turn gives a result's 16 columns from 16·a on as the left operand of a product over its rows: a
// tensor core multiplies them by the unit matrix, with the operand's columns read as rows. It takes
// their bits for fp16 numbers, which are finite while |x| < 2^121, and so gives them back packed
// and as they were. m is what `left` made of them.
__device__ __forceinline__ void turn(u32 (&out)[4], const u32 (&m)[4], const u32 (&one)[4]) {
  same_bits(out[0], out[1], one, m[0], m[2]);
  same_bits(out[2], out[3], one, m[1], m[3]);
}

// write puts 16 rows from `row` on into dqkv, from which `to` is the head's first column.
template <int N> __device__ __forceinline__ void write(Bf16 *to, const float (&c)[N][4], float scale, int row, int tokens, int d, int hd) {
  const int g = threadIdx_x % 32 / 4, t = threadIdx_x % 4;
#pragma unroll
  for (int x = 0; x < 2; x++)
    if (row + g + 8 * x < tokens)
#pragma unroll
      for (int n = 0; n < N; n++)
        if (8 * n < hd) *(u32 *)(to + (long)(row + g + 8 * x) * 3 * d + 8 * n + 2 * t) = bf16x2(c[n][2 * x] * scale, c[n][2 * x + 1] * scale);
}

__device__ __forceinline__ f4 pack(const float (&c)[4]) { return f4{c[0], c[1], c[2], c[3]}; }
__device__ __forceinline__ void unpack(float (&c)[4], f4 v) { c[0] = v.x, c[1] = v.y, c[2] = v.z, c[3] = v.w; }
