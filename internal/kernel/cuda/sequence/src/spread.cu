// Keys and values that a group of heads shares, spread to a copy for each head as attention reads
// them, and the gradient, which adds the copies up.
//
// What a reader could break: a thread has one vector of columns, and a head is whole vectors, so
// that a vector never lies in two heads. The gradient adds in fp32 in the order of the heads,
// whatever the vector, so that its bits do not depend on where a tensor lies.
#include "bf16.cuh"

// N numbers beside each other, as they lie in memory.
template <class E, int N> struct Vector {
  typedef E type __attribute__((ext_vector_type(N)));
};
template <class E> struct Vector<E, 1> {
  typedef E type;
};

// Row by row, in vectors: y = queries [d] | keys [d] | values [d], x = queries [d] | keys [kept] |
// values [kept], heads of `width`, `group` of y's for each of x's.
template <class V> __device__ __forceinline__ void spread(V *y, const V *x, u32 n, int d, int kept, int width, int group) {
  const u32 e = blockIdx_x * blockDim_x + threadIdx_x;
  if (e >= n) return;
  const u32 m = e / (3 * d);
  const int c = e % (3 * d), part = c / d, own = c % d;
  const int from = part == 0 ? own : d + (part - 1) * kept + own / (width * group) * width + own % width;
  y[e] = x[(long)m * (d + 2 * kept) + from];
}

template <int N> __device__ __forceinline__ void add(float *sum, const float *p) {
  typename Vector<float, N>::type v = *(const typename Vector<float, N>::type *)p;
#pragma unroll
  for (int i = 0; i < N; i++) sum[i] += ((const float *)&v)[i];
}
template <int N> __device__ __forceinline__ void add(float *sum, const Bf16 *p) {
  typename Vector<Bf16, N>::type v = *(const typename Vector<Bf16, N>::type *)p;
#pragma unroll
  for (int i = 0; i < N; i++) sum[i] += bf16_low(((const Bf16 *)&v)[i]);
}
template <int N> __device__ __forceinline__ void put(float *p, const float *sum) {
  typename Vector<float, N>::type v;
#pragma unroll
  for (int i = 0; i < N; i++) ((float *)&v)[i] = sum[i];
  *(typename Vector<float, N>::type *)p = v;
}
template <int N> __device__ __forceinline__ void put(Bf16 *p, const float *sum) {
  typename Vector<Bf16, N>::type v;
#pragma unroll
  for (int i = 0; i < N; i++) ((Bf16 *)&v)[i] = (Bf16)bf16x2(sum[i], 0.0f);
  *(typename Vector<Bf16, N>::type *)p = v;
}

// The reverse: dx of n vectors of N columns; d, kept and width count columns.
template <class E, int N> __device__ __forceinline__ void spread_grad(E *dx, const E *dy, u32 n, int d, int kept, int width, int group) {
  const u32 e = blockIdx_x * blockDim_x + threadIdx_x;
  if (e >= n) return;
  const u32 columns = d + 2 * kept, m = e / (columns / N);
  const int c = e % (columns / N) * N, part = c < d ? 0 : 1 + (c - d) / kept, own = c < d ? c : (c - d) % kept;
  const E *from = dy + (long)m * 3 * d + part * d + (part ? own / width * width * group + own % width : own);
  float sum[N] = {};
  for (int g = 0; g < (part ? group : 1); g++) add<N>(sum, from + g * width);
  put<N>(dx + (long)m * columns + c, sum);
}

// Copies are of so many bytes; gradients of so many columns of so many bits.
#define SPREAD(bytes, V)                                                                                                \
  KERNEL __launch_bounds__(256) spread_##bytes(V *y, const V *x, u32 n, int d, int kept, int width, int group) {         \
    spread(y, x, n, d, kept, width, group);                                                                             \
  }
SPREAD(2, Bf16)
SPREAD(4, u32)
SPREAD(16, u4)

#define SPREAD_GRAD(bits, columns, E)                                                                                             \
  KERNEL __launch_bounds__(256) spread_grad_##bits##_##columns(E *dx, const E *dy, u32 n, int d, int kept, int width, int group) { \
    spread_grad<E, columns>(dx, dy, n, d, kept, width, group);                                                                    \
  }
SPREAD_GRAD(16, 1, Bf16)
SPREAD_GRAD(16, 8, Bf16)
SPREAD_GRAD(32, 1, float)
SPREAD_GRAD(32, 4, float)
