// Queries and keys turned by their tokens' positions, and the gradient, which turns them back. A
// thread has one element; either side may be held in bf16.
//
// What a reader could break: turns are [positions][2][width/2] cosines and sines, as rotate.go
// writes them, and an odd width's last column stays as it is.
#include "bf16.cuh"

__device__ __forceinline__ float at(const float *p, long i) { return p[i]; }
__device__ __forceinline__ float at(const Bf16 *p, long i) { return bf16_low(p[i]); }
__device__ __forceinline__ void put(float *p, long i, float v) { p[i] = v; }
__device__ __forceinline__ void put(Bf16 *p, long i, float v) { p[i] = (Bf16)bf16x2(v, 0.0f); }

// y[m, c] of a row's columns c: where c is one of those that turn, c and c + width/2 of a head are
// a point that goes round.
template <class Y, class X>
__device__ __forceinline__ void rotate(Y *y, const X *x, const int *index, const float *turns, u32 n, int columns, int turned, int width, int fields, float sign) {
  const u32 e = blockIdx_x * blockDim_x + threadIdx_x;
  if (e >= n) return;
  const u32 m = e / columns;
  const int c = e % columns, j = c % width, half = width / 2, position = index[(long)(m + 1) * fields - 1];
  const float own = at(x, e);
  if (c >= turned || position < 0 || j >= 2 * half) {
    put(y, e, own);
    return;
  }
  const float *turn = turns + (long)position * 2 * half + j % half;
  const float cosine = turn[0], sine = sign * turn[half];
  if (j < half)
    put(y, e, own * cosine - at(x, (long)e + half) * sine);
  else
    put(y, e, own * cosine + at(x, (long)e - half) * sine);
}

#define ROTATE(name, Y, X)                                                                                                                                       \
  KERNEL __launch_bounds__(256) name(Y *y, const X *x, const int *index, const float *turns, u32 n, int columns, int turned, int width, int fields, float sign) { \
    rotate(y, x, index, turns, n, columns, turned, width, fields, sign);                                                                                         \
  }
ROTATE(rotate_32_32, float, float)
ROTATE(rotate_16_16, Bf16, Bf16)
ROTATE(rotate_16_32, Bf16, float)
ROTATE(rotate_32_16, float, Bf16)
