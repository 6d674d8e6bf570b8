// Ops that look at one element, or at one column, at a time: the gated unit, dropout and the mean over
// nodes, with their gradients. All tensors are dense; "4" kernels take four neighbours a thread.
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

// Element e of instance i is kept when word e%4 of Philox(seed, first instance + i, site<<24 | e/4, purpose) is a number in
// [0,1) of at least `rate`: y = residual + (kept ? x·scale : 0). A thread makes one Philox block, four elements; vec says
// that they are always four and aligned.
KERNEL dropout(float *y, const float *x, const float *residual, const State *state, u64 seed, int instances, int each, u32 site, u32 purpose, float rate,
               float scale, u32 vec) {
  u32 t = blockIdx_x * blockDim_x + threadIdx_x, blocks = (each + 3) / 4;
  if (t >= instances * blocks) return;
  u32 i = t / blocks, q = t % blocks;
  Words u = philox(seed, state->instances + i, site << 24 | q, purpose);
  long at = (long)i * each + 4 * q;
  if (vec) {
    f4 v = load4(x + at) * scale;
#pragma unroll
    for (int j = 0; j < 4; j++) v[j] = unit(u.w[j]) >= rate ? v[j] : 0.0f;
    store4(y + at, residual ? load4(residual + at) + v : v);
    return;
  }
#pragma unroll
  for (int j = 0; j < 4; j++)
    if ((int)(4 * q) + j < each) {
      float v = unit(u.w[j]) >= rate ? x[at + j] * scale : 0.0f;
      y[at + j] = residual ? residual[at + j] + v : v;
    }
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
