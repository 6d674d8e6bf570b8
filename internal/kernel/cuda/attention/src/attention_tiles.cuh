// Attention's products over the columns of a head and over nodes, on tensor cores in tf32, for
// heads of 16 or 32: what attention_tiles.cu and attention_stream.cu share.
//
// What a reader could break: who holds what. With g = lane/4 and t = lane%4, an accumulator c[4] is
// row g in c[0], c[1] and row g+8 in c[2], c[3], at columns 2t and 2t+1 of eight. Any order of
// terms and columns does as long as both operands keep to it, and here
//
//   terms that are columns of a head:  lane t has 4t..4t+3 of every 16, two steps of a tensor core
//   terms that are nodes:              lane t has 2t and 2t+1 of every eight, as an accumulator
//                                      has them: a result is the next left operand
//   columns of a head in a result:     column g of tile c is HD/8·g + c, so that lane t ends with
//                                      HD/4 neighbours of a row
//
// so every read of shared memory is a vector, and `place` puts the vectors of a quarter of a warp
// into different banks in either direction.
#pragma once
#include "attention.cuh"

constexpr float LOG2E = 1.4426950408889634f;

__device__ __forceinline__ float root(float x) {
  float r;
  asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}
__device__ __forceinline__ float higher(float a, float b) {
  float r;
  asm("max.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}
__device__ __forceinline__ float quad_sum(float v) {
  v += shfl_xor(v, 1);
  return v + shfl_xor(v, 2);
}
__device__ __forceinline__ float rounded(float x) { return __builtin_bit_cast(float, tf32(x)); }
__device__ __forceinline__ f4 rounded(f4 v) { return f4{rounded(v.x), rounded(v.y), rounded(v.z), rounded(v.w)}; }
__device__ __forceinline__ u32 bits(float x) { return __builtin_bit_cast(u32, x); }

// place is where columns 4q.. of row r lie in a matrix of HD columns in shared memory.
template <int HD> __device__ __forceinline__ int place(int r, int q) {
  if (HD == 32) return r * 32 + 4 * (q ^ (r & 6) ^ (r & 1) << 2);
  return (r ^ (r >> 1 & 1)) * 16 + 4 * (q ^ (r & 4) >> 1);
}

// c[16×8] += a·b.
__device__ __forceinline__ void multiply(float (&c)[4], const u32 (&a)[4], float b0, float b1) {
  mma_tf32(c[0], c[1], c[2], c[3], a[0], a[1], a[2], a[3], bits(b0), bits(b1));
}

// Side is one operand of a product over a head's columns: 16 rows of a matrix in global memory,
// times `scale`.
template <int HD> struct Side {
  u32 a[HD / 8][4];

  // Rows r and r+8 of `last`+1; rows past the end repeat the last.
  __device__ __forceinline__ void read(const float *from, int stride, int r, int last, float scale) {
    const int t = threadIdx_x % 4, lower = r < last ? r : last, upper = r + 8 < last ? r + 8 : last;
#pragma unroll
    for (int c = 0; c < HD / 16; c++) {
      const f4 v = load4(from + (long)lower * stride + 16 * c + 4 * t) * scale,
          w = load4(from + (long)upper * stride + 16 * c + 4 * t) * scale;
#pragma unroll
      for (int s = 0; s < 2; s++) {
        u32(&to)[4] = a[2 * c + s];
        to[0] = tf32(v[2 * s]), to[1] = tf32(w[2 * s]), to[2] = tf32(v[2 * s + 1]), to[3] = tf32(w[2 * s + 1]);
      }
    }
  }
};

// across: s = a·matrixᵀ for the tile of eight rows at `tile` of a matrix in shared memory; at[c] is
// place(g, 4c+t).
template <int HD> __device__ __forceinline__ void across(float (&s)[4], const Side<HD> &a, const float *tile, const int (&at)[HD / 16]) {
  s[0] = s[1] = s[2] = s[3] = 0;
#pragma unroll
  for (int c = 0; c < HD / 16; c++) {
    const f4 v = load4(tile + at[c]);
    multiply(s, a.a[2 * c], v.x, v.y);
    multiply(s, a.a[2 * c + 1], v.z, v.w);
  }
}

// Down is where a lane reads HD/8 columns of rows 2t and 2t+1 of a tile.
template <int HD> struct Down {
  int even, odd;
  __device__ __forceinline__ Down() {
    const int g = threadIdx_x % 32 / 4, t = threadIdx_x % 4;
    even = HD == 32 ? place<32>(2 * t, g) : place<16>(2 * t, g / 2) + 2 * (g & 1);
    odd = HD == 32 ? place<32>(2 * t + 1, g) : place<16>(2 * t + 1, g / 2) + 2 * (g & 1);
  }
};

// down: out += w·matrix for one tile of eight nodes, w rounded, in an accumulator's order.
template <int HD> __device__ __forceinline__ void down(float (&out)[HD / 8][4], const u32 (&w)[4], const float *tile, const Down<HD> &at) {
  if (HD == 32) {
    const f4 u = load4(tile + at.even), v = load4(tile + at.odd);
#pragma unroll
    for (int c = 0; c < 4; c++) multiply(out[c], w, u[c], v[c]);
  } else {
    const f2 u = *(const f2 *)(tile + at.even), v = *(const f2 *)(tile + at.odd);
#pragma unroll
    for (int c = 0; c < 2; c++) multiply(out[c], w, u[c], v[c]);
  }
}

// left makes a left operand over nodes of an accumulator.
__device__ __forceinline__ void left(u32 (&a)[4], const float (&c)[4]) {
  a[0] = tf32(c[0]), a[1] = tf32(c[2]), a[2] = tf32(c[1]), a[3] = tf32(c[3]);
}

// write puts rows r and r+8 of a result, times their scales, into global memory, as far as they are
// below n.
template <int HD> __device__ __forceinline__ void write(float *to, int stride, int r, int n, const float (&o)[HD / 8][4], float scale,
    float scale8) {
  const int t = threadIdx_x % 4;
#pragma unroll
  for (int x = 0; x < 2; x++) {
    const int row = r + 8 * x;
    const float by = x ? scale8 : scale;
    if (row >= n) continue;
    float *at = to + (long)row * stride + HD / 4 * t;
    if (HD == 32) {
#pragma unroll
      for (int h = 0; h < 2; h++) store4(at + 4 * h, f4{o[0][2 * x + h], o[1][2 * x + h], o[2][2 * x + h], o[3][2 * x + h]} * by);
    } else {
      store4(at, f4{o[0][2 * x], o[1][2 * x], o[0][2 * x + 1], o[1][2 * x + 1]} * by);
    }
  }
}

// far are the distances of nodes (x, y) and (x8, y8) to nodes 2t and 2t+1 of a tile, in an
// accumulator's order.
__device__ __forceinline__ void far(float (&out)[4], f2 a, f2 a8, const f2 *tile) {
  const f4 v = *(const f4 *)(tile + 2 * (threadIdx_x % 4));
#pragma unroll
  for (int e = 0; e < 4; e++) {
    const float dx = (e < 2 ? a.x : a8.x) - (e % 2 ? v.z : v.x), dy = (e < 2 ? a.y : a8.y) - (e % 2 ? v.w : v.y);
    out[e] = root(dx * dx + dy * dy);
  }
}
