// Ops that look at one element, or at one column, at a time: the gated unit, GELU, dropout and the
// mean over nodes, with their gradients. All tensors are dense; "4" kernels take four neighbours a
// thread.
#include "drop.cuh"
#include "gelu.cuh"
#include "ptx.cuh"

// y[r,c] = g[r,c]·sigmoid(g[r,w+c])
KERNEL glu4(float *y, const float *g, int rows, int w) {
  u32 e = blockIdx_x * blockDim_x + threadIdx_x, width = w / 4;
  if (e >= rows * width) return;
  long r = e / width;
  int c = 4 * (e % width);
  f4 a = load4(g + r * 2 * w + c), b = load4(g + r * 2 * w + w + c);
  store4(y + r * w + c, a * f4{sigmoid_(b.x), sigmoid_(b.y), sigmoid_(b.z), sigmoid_(b.w)});
}
KERNEL glu1(float *y, const float *g, int rows, int w) {
  u32 e = blockIdx_x * blockDim_x + threadIdx_x;
  if (e >= (u32)rows * w) return;
  long r = e / w;
  int c = e % w;
  y[r * w + c] = g[r * 2 * w + c] * sigmoid_(g[r * 2 * w + w + c]);
}

// With s = sigmoid(g[r,w+c]): dg[r,c] = dy[r,c]·s;  dg[r,w+c] = dy[r,c]·g[r,c]·s·(1-s)
KERNEL glu_grad4(float *dg, const float *dy, const float *g, int rows, int w) {
  u32 e = blockIdx_x * blockDim_x + threadIdx_x, width = w / 4;
  if (e >= rows * width) return;
  long r = e / width;
  int c = 4 * (e % width);
  f4 a = load4(g + r * 2 * w + c), b = load4(g + r * 2 * w + w + c), v = load4(dy + r * w + c);
  f4 s = {sigmoid_(b.x), sigmoid_(b.y), sigmoid_(b.z), sigmoid_(b.w)};
  store4(dg + r * 2 * w + c, v * s);
  store4(dg + r * 2 * w + w + c, v * a * s * (1.0f - s));
}
KERNEL glu_grad1(float *dg, const float *dy, const float *g, int rows, int w) {
  u32 e = blockIdx_x * blockDim_x + threadIdx_x;
  if (e >= (u32)rows * w) return;
  long r = e / w;
  int c = e % w;
  float a = g[r * 2 * w + c], s = sigmoid_(g[r * 2 * w + w + c]), v = dy[r * w + c];
  dg[r * 2 * w + c] = v * s;
  dg[r * 2 * w + w + c] = v * a * s * (1.0f - s);
}

// y = residual + drop(x), rows of `width` columns, `nodes` rows an instance. A thread takes columns
// 2t and 2t+1 of the four groups of eight in a block of 32. vec says that the two lie in one 8-byte
// vector.
KERNEL dropout(float *y, const float *x, const float *residual, const State *state, u64 seed, u32 site, u32 threshold, float scale, int rows, int nodes,
               int width, u32 vec) {
  const u32 e = blockIdx_x * blockDim_x + threadIdx_x, blocks = (width + 31) / 32, r = e / (4 * blocks), block = e / 4 % blocks, t = e % 4;
  if (r >= (u32)rows) return;
  const Drop drop{seed, site, threshold, scale};
  const u32 kept = drop_word(drop, state->instances + r / nodes, r % nodes, blocks, block) >> 2 * t;
#pragma unroll
  for (int g = 0; g < 4; g++) {
    const int c = 32 * block + 8 * g + 2 * t;
    const long at = (long)r * width + c;
    const float keep[2] = {kept >> 8 * g & 1 ? scale : 0.0f, kept >> 8 * g & 2 ? scale : 0.0f};
    if (vec) {
      if (c >= width) continue;
      f2 v = *(const f2 *)(x + at) * f2{keep[0], keep[1]};
      *(f2 *)(y + at) = residual ? *(const f2 *)(residual + at) + v : v;
      continue;
    }
#pragma unroll
    for (int h = 0; h < 2; h++)
      if (c + h < width) y[at + h] = x[at + h] * keep[h] + (residual ? residual[at + h] : 0.0f);
  }
}

// y = GELU(x), and dx = dx·GELU'(x).
KERNEL gelu_of(float *y, const float *x, u32 count) {
  const u32 e = blockIdx_x * blockDim_x + threadIdx_x;
  if (e < count) y[e] = gelu(x[e]);
}
KERNEL gelu_grad(float *dx, const float *x, u32 count) {
  const u32 e = blockIdx_x * blockDim_x + threadIdx_x;
  if (e < count) dx[e] *= gelu_slope(x[e]);
}

// y[b,c] = Σ_i x[b,i,c] / n
KERNEL mean_nodes(float *y, const float *x, int instances, int n, int d) {
  u32 e = blockIdx_x * blockDim_x + threadIdx_x;
  if (e >= (u32)instances * d) return;
  const float *from = x + (long)(e / d) * n * d + e % d;
  float sum = 0;
#pragma unroll 8
  for (int i = 0; i < n; i++) sum += from[(long)i * d];
  y[e] = div_(sum, (float)n);
}

// dx[b,i,c] (+)= dy[b,c] / n
KERNEL mean_nodes_grad(float *dx, const float *dy, int instances, int n, int d, u32 add) {
  u32 e = blockIdx_x * blockDim_x + threadIdx_x;
  if (e >= (u32)instances * n * d) return;
  float v = div_(dy[(long)(e / (u32)(n * d)) * d + e % d], (float)n);
  dx[e] = add ? dx[e] + v : v;
}
