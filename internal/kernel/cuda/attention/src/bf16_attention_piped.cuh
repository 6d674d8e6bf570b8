// Attention of narrow heads in steps of 16 keys that overlap: the next step's scores are
// multiplied, and the masks and values of the last one, while the powers of this one are made.
//
// What a reader could break: scores are relative to zero, so that nobody looks for the largest.
// Where a row's sum is too large or too small for that at the end, `steep`, the rows begin again,
// carefully, by Attending alone. Steps take no notice of what follows the last pair: its
// lookahead is thrown away.
//
// Keys lie in shared memory so that a lane's two columns of a product are keys 16 apart
// (`turned_row`). Then one word holds a lane's masks of two columns in bits 15 and 31, a
// multiplication away, and what is dropped is negative where a packed product leaves out numbers
// below zero. Half as many logical instructions go to masks as with words of bytes.
#pragma once
#include "bf16_attention_steps.cuh"

// turned_row is where key `row` lies among the 32 of its group: 16h + 4n + t at 8n + 2t + h.
__device__ __forceinline__ int turned_row(int row) { return (row & ~31) + row % 16 * 2 + row / 16 % 2; }

// Known is a choice that a template makes.
template <bool B> struct Known {
  static constexpr bool value = B;
};

struct Piped {
  using Rows = Attending<16, true, true>;
  float s[2][4];  // scores of this step
  u32 k[4];       // keys of the next
  u32 p[4], v[4]; // powers of the last, and its values
  Dropped masks;  // of the last

  // score makes scores of 16 keys from j on, whose operands are m; where queries do not see all
  // keys, EDGE, minus infinity for those they do not.
  template <bool EDGE> __device__ __forceinline__ static void score(float (&out)[2][4], const Rows &rows, const u32 (&m)[4], int j) {
    if (!EDGE) {
      const float zero[4] = {};
      multiply(out[0], zero, rows.q[0], m[0], m[1]), multiply(out[1], zero, rows.q[0], m[2], m[3]);
      return;
    }
    // Columns 8n + 2t + h of a group are keys 16h + 4n + t.
    const int at = (j & ~31) + (j / 16 % 2) * 8 + threadIdx_x % 4;
#pragma unroll
    for (int n = 0; n < 2; n++) {
      float from[4];
#pragma unroll
      for (int e = 0; e < 4; e++) from[e] = outside(at + 4 * n + e % 2 * 16, rows.from[e / 2], rows.i[e / 2]) ? -__builtin_inff() : 0;
      multiply(out[n], from, rows.q[0], m[2 * n], m[2 * n + 1]);
    }
  }
  // begin begins with pair P, whose keys begin where those of `keys` do.
  template <bool EDGE> __device__ __forceinline__ void begin(const Rows &rows, const Tiles<16> &keys, int P) {
    keys.right(k, 0, 0);
    score<EDGE>(s, rows, k, 64 * P);
    keys.right(k, 16, 0);
#pragma unroll
    for (int e = 0; e < 4; e++) p[e] = v[e] = 0;
    masks.x[0] = masks.x[1] = 0;
  }
  // pair takes pair P: its keys and values, and `after` the keys of the next one. next(n) is
  // called between the powers, n from 0 to 31.
  template <bool EDGE, class NEXT>
  __device__ __forceinline__ void pair(Rows &rows, const Tiles<16> &keys, const Tiles<16> &values, const Tiles<16> &after, u32 word, int P, NEXT &&next) {
#pragma unroll
    for (int a = 0; a < 4; a++) {
      float then[2][4];
      if (a < 3) score<EDGE>(then, rows, k, 64 * P + 16 * (a + 1));
      else score<false>(then, rows, k, 0);
      if (a < 2) keys.right(k, 16 * (a + 2), 0);
      else after.right(k, 16 * (a - 2), 0);
      u32 own[4];
      values.turned(own, 16 * a, 0);
#pragma unroll
      for (int n = 0; n < 8; n++) {
        asm volatile("ex2.approx.ftz.f32 %0, %1;" : "=f"(s[n / 4][n % 4]) : "f"(s[n / 4][n % 4]));
        if (n % 2 == 0) p[n / 2] = masks.drop(p[n / 2], (a + 1) % 2, n / 2);
        next(8 * a + n);
      }
      multiply(rows.o[0], p, v[0], v[1]), multiply(rows.o[1], p, v[2], v[3]);
      p[0] = bf16x2(s[0][0], s[0][1]), p[1] = bf16x2(s[0][2], s[0][3]), p[2] = bf16x2(s[1][0], s[1][1]), p[3] = bf16x2(s[1][2], s[1][3]);
      multiply(rows.sum, p, ones, ones);
      if (a % 2 == 0) masks.spread(word, a / 2);
#pragma unroll
      for (int e = 0; e < 4; e++) v[e] = own[e], s[0][e] = then[0][e], s[1][e] = then[1][e];
    }
  }
  // end takes what is left of the last step.
  __device__ __forceinline__ void end(Rows &rows) {
#pragma unroll
    for (int e = 0; e < 4; e++) p[e] = masks.drop(p[e], 1, e);
    multiply(rows.o[0], p, v[0], v[1]), multiply(rows.o[1], p, v[2], v[3]);
  }
};
