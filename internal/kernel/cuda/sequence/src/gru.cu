// Gated recurrent units, a token of all instances at a time: kernel.GRU and kernel.GRUGrad between
// the products, which are those of src/dense. A thread an instance's unit; rows of h, prev, gates
// and x are ordered [instance, token].
#include "ptx.cuh"

// prev[b,0] = state[b]
KERNEL gru_begin(float *prev, const float *state, int rows, int d, int tokens) {
  const u32 e = blockIdx_x * blockDim_x + threadIdx_x;
  if (e >= (u32)rows * d) return;
  prev[(long)(e / d) * tokens * d + e % d] = state[e];
}

// On entry the first 3d columns of gates hold the product with the units before the token.
KERNEL gru_token(float *h, float *prev, float *gates, const float *x, float *state, int rows, int d, int tokens, int token, u32 carry) {
  const u32 e = blockIdx_x * blockDim_x + threadIdx_x;
  if (e >= (u32)rows * d) return;
  const int j = e % d;
  const long at = (long)(e / d) * tokens + token;
  float *g = gates + at * 4 * d + j;
  const float *in = x + at * 3 * d + j;
  const float r = sigmoid_(in[0] + g[0]), z = sigmoid_(in[d] + g[d]), m = g[2 * d];
  const float c = 2 * sigmoid_(2 * (in[2 * d] + r * m)) - 1; // tanh
  g[0] = r, g[d] = z, g[2 * d] = c, g[3 * d] = m;
  const float y = (1 - z) * c + z * prev[at * d + j];
  h[at * d + j] = y;
  if (token + 1 < tokens)
    prev[(at + 1) * d + j] = y;
  else if (carry)
    state[e] = y;
}

// What the token's units get from its own product is added by the product that follows.
KERNEL gru_token_grad(float *dx, float *dh, float *gates, const float *prev, int rows, int d, int tokens, int token) {
  const u32 e = blockIdx_x * blockDim_x + threadIdx_x;
  if (e >= (u32)rows * d) return;
  const int j = e % d;
  const long at = (long)(e / d) * tokens + token;
  float *g = gates + at * 4 * d + j, *out = dx + at * 3 * d + j;
  const float slope = dh[at * d + j], r = g[0], z = g[d], c = g[2 * d], m = g[3 * d];
  const float dc = slope * (1 - z) * (1 - c * c);
  const float dz = slope * (prev[at * d + j] - c) * z * (1 - z);
  const float dr = dc * m * r * (1 - r);
  out[0] = dr, out[d] = dz, out[2 * d] = dc;
  g[0] = dr, g[d] = dz, g[2 * d] = dc * r;
  if (token > 0) dh[(at - 1) * d + j] += slope * z;
}
