// What attention and its gradient share: one head of one instance in shared memory, worked on four
// rows at a time.
//
// What a reader could break: a warp owns four rows, and what it keeps of them between passes is a
// list of f4, entry j the four rows' values at column j. Lane j%32 writes and reads entry j in the
// passes over columns; only `spread` reads all entries, between two syncwarps.
//
// A slice is [n][ld] floats, hd columns padded with zeros to 4·quads; quads odd in ld keep 16-byte
// reads of neighbouring rows in different banks.
#pragma once
#include "ptx.cuh"

struct Head {
  int n, hd, quads, ld, vec; // vec: global rows are 16-byte aligned
};
__device__ __forceinline__ Head head_of(int n, int d, int heads, u32 vec) {
  int hd = d / heads, quads = (hd + 3) / 4;
  return Head{n, hd, quads, 4 * (quads | 1), (int)vec};
}

// bring_slice copies columns [0,hd) of n rows, `stride` apart, into a slice.
__device__ __forceinline__ void bring_slice(float *slice, const float *src, int stride, const Head &h) {
  for (int e = threadIdx_x; e < h.n * h.quads; e += blockDim_x) {
    int i = e / h.quads, c = 4 * (e % h.quads);
    const float *from = src + (long)i * stride + c;
    f4 v = {0, 0, 0, 0};
    if (h.vec)
      v = load4(from);
    else
#pragma unroll
      for (int j = 0; j < 4; j++)
        if (c + j < h.hd) v[j] = from[j];
    store4(slice + i * h.ld + c, v);
  }
}

// dots gives, for columns j = j0 + 32u + lane, the products of rows i0..i0+3 of a with row j of b.
// Rows past the end repeat the last, columns past the end hold nothing of use.
__device__ __forceinline__ void dots(f4 (&out)[4], const float *a, const float *b, int i0, int j0, const Head &h) {
  const int lane = threadIdx_x % 32, last = h.n - 1;
  const float *row[4], *col[4];
#pragma unroll
  for (int r = 0; r < 4; r++) {
    int i = i0 + r < last ? i0 + r : last, j = j0 + 32 * r + lane < last ? j0 + 32 * r + lane : last;
    row[r] = a + i * h.ld;
    col[r] = b + j * h.ld;
    out[r] = f4{0, 0, 0, 0};
  }
  for (int c = 0; c < 4 * h.quads; c += 4) {
    f4 x[4];
#pragma unroll
    for (int r = 0; r < 4; r++) x[r] = load4(row[r] + c);
#pragma unroll
    for (int u = 0; u < 4; u++) {
      if (j0 + 32 * u >= h.n) break;
      f4 k = load4(col[u] + c);
#pragma unroll
      for (int r = 0; r < 4; r++)
#pragma unroll
        for (int i = 0; i < 4; i++) out[u][r] += x[r][i] * k[i];
    }
  }
}

// spread: out[i0+r, c] = Σ_j w[j·step + r]·values[j, c] for r < 4 and all columns of the head; out
// is in global memory, rows `stride` apart. A lane has a quad of columns and every parts-th j.
__device__ __forceinline__ void spread(float *out, int stride, int i0, const float *w, int step, const float *values, const Head &h) {
  const int lane = threadIdx_x % 32;
  int across = 1; // lanes over quads, a power of two
  while (across < h.quads && across < 32) across *= 2;
  const int parts = 32 / across, part = lane / across;
  for (int base = 0; base < h.quads; base += across) {
    int c = 4 * (base + lane % across);
    bool mine = c < 4 * h.quads;
    f4 acc[4] = {};
    if (mine)
      for (int j = part; j < h.n; j += parts) {
        f4 p = load4(w + j * step), v = load4(values + j * h.ld + c);
#pragma unroll
        for (int r = 0; r < 4; r++) acc[r] += p[r] * v;
      }
    for (int m = across; m < 32; m *= 2)
#pragma unroll
      for (int r = 0; r < 4; r++)
#pragma unroll
        for (int i = 0; i < 4; i++) acc[r][i] += shfl_xor(acc[r][i], m);
#pragma unroll
    for (int r = 0; r < 4; r++) {
      if (!mine || r % parts != part || i0 + r >= h.n) continue;
      float *to = out + (long)(i0 + r) * stride + c;
      if (h.vec)
        store4(to, acc[r]);
      else
#pragma unroll
        for (int i = 0; i < 4; i++)
          if (c + i < h.hd) to[i] = acc[r][i];
    }
  }
}

// distances from nodes i0..i0+3 to node j.
__device__ __forceinline__ f4 distances(const float *x, const float *y, int i0, int j, int n) {
  f4 out;
#pragma unroll
  for (int r = 0; r < 4; r++) {
    int i = i0 + r < n ? i0 + r : n - 1;
    float dx = x[i] - x[j], dy = y[i] - y[j];
    out[r] = sqrtf_(dx * dx + dy * dy);
  }
  return out;
}

// For gradient lane l, over its instances b: dslope_l[h] (+)= Σ_b Σ_i partial[(b·heads+h)·items +
// i]. One block.
__device__ __forceinline__ void slope_grad_lanes(float *dslope, const float *partial, int instances, int heads, int items, int gradLanes, int gradLaneSize, u32 add) {
  const int lane = threadIdx_x % 32, chunk = (instances + gradLanes - 1) / gradLanes;
  for (int e = threadIdx_x / 32; e < gradLanes * heads; e += blockDim_x / 32) {
    int l = e / heads, h = e % heads;
    int from = l * chunk, to = from + chunk < instances ? from + chunk : instances;
    float sum = 0;
    for (int k = lane; k < (to - from) * items; k += 32) sum += fresh(partial + ((long)(from + k / items) * heads + h) * items + k % items);
    sum = warp_sum(sum);
    float *out = dslope + (long)l * gradLaneSize + h;
    if (lane == 0) *out = add ? *out + sum : sum;
  }
}
