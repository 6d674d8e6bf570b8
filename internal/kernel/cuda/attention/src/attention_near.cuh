// What kernels of attention for instances of at most 16 nodes share, two warps a head.
//
// What a reader could break: a quad of lanes owns a row i. Lane t of it holds columns 4t..4t+3 of
// every 16 of the head, and of the row's scores those of nodes j = t, t+4, t+8, t+12. Rows past the
// end repeat the last, so that every lane shuffles; they write nothing, and their probabilities are
// zeros. In shared memory rows past the end are finite numbers, so that every loop has 16 turns and
// all its reads under way.
#pragma once
#include "ptx.cuh"

constexpr int most = 16, maxHeads = 8; // nodes, and columns of p; heads

// exchange keeps b where `second`, else a, adds the same of the lane across, and hands that lane
// the other.
__device__ __forceinline__ float exchange(float a, float b, bool second, int mask) {
  // values: a choice between variables would put them in memory
  float give = second ? +a : +b, keep = second ? +b : +a;
  return keep + shfl_xor(give, mask);
}

// dots gives the products of a row with rows j of b: entry u is j = 4u + t. Past the end they are
// 0.
template <int Q> __device__ __forceinline__ void dots(float (&out)[4], const f4 (&row)[Q], const float *b, int stride, int t) {
  float z[most], pairs[8];
#pragma unroll
  for (int j = 0; j < most; j++) {
    f4 sum = row[0] * load4(b + j * stride + 4 * t);
#pragma unroll
    for (int u = 1; u < Q; u++) sum += row[u] * load4(b + j * stride + 4 * t + 16 * u);
    z[j] = sum4(sum);
  }
  // Each exchange adds up two lanes' parts of half of the entries.
#pragma unroll
  for (int i = 0; i < 8; i++) pairs[i] = exchange(z[2 * i], z[2 * i + 1], t & 1, 1);
#pragma unroll
  for (int u = 0; u < 4; u++) out[u] = exchange(pairs[2 * u], pairs[2 * u + 1], t & 2, 2);
}

// spread gives Σ_j w_j·b_j for the quad's row, entry u of w being j = 4u + t.
template <int Q> __device__ __forceinline__ void spread(f4 (&out)[Q], const float (&w)[4], const float *b, int stride, int t) {
#pragma unroll
  for (int u = 0; u < Q; u++) out[u] = f4{0, 0, 0, 0};
#pragma unroll
  for (int j = 0; j < most; j++) {
    float wj = shfl(w[j / 4], (int)(threadIdx_x % 32 & ~3u) | j % 4);
#pragma unroll
    for (int u = 0; u < Q; u++) out[u] += wj * load4(b + j * stride + 4 * t + 16 * u);
  }
}

template <int Q> __device__ __forceinline__ void store_row(float *to, const f4 (&v)[Q], float scale) {
#pragma unroll
  for (int u = 0; u < Q; u++) store4(to + 16 * u, v[u] * scale);
}

__device__ __forceinline__ float quad_sum(float v) {
  v += shfl_xor(v, 1);
  return v + shfl_xor(v, 2);
}

__device__ __forceinline__ void bring_positions(float *xs, float *ys, const float *posX, const float *posY, int n) {
  const int i = threadIdx_x;
  if (i < most) xs[i] = i < n ? posX[i] : 0, ys[i] = i < n ? posY[i] : 0;
}

__device__ __forceinline__ float distance(const float *x, const float *y, int i, int j) {
  float dx = x[i] - x[j], dy = y[i] - y[j];
  return sqrtf_(dx * dx + dy * dy);
}

// softmax turns a row's products with the keys, entry u being j = 4u + t, into probabilities:
// softmax of scale·z - bias·dist(i,j), 0 from n on.
__device__ __forceinline__ void softmax(float (&z)[4], const float *xs, const float *ys, int i, int n, int t, float scale, float bias) {
  float top = -3e38f, sum = 0;
#pragma unroll
  for (int u = 0; u < 4; u++) {
    int j = 4 * u + t;
    float score = z[u] * scale - bias * distance(xs, ys, i, j);
    z[u] = j < n ? score : -3e38f;
    top = z[u] > top ? z[u] : top;
  }
#pragma unroll
  for (int m = 1; m < 4; m *= 2) {
    float other = shfl_xor(top, m);
    top = other > top ? other : top;
  }
#pragma unroll
  for (int u = 0; u < 4; u++) {
    z[u] = expf_(z[u] - top); // 0 past the end
    sum += z[u];
  }
  const float inverse = rcp(quad_sum(sum));
#pragma unroll
  for (int u = 0; u < 4; u++) z[u] *= inverse;
}
