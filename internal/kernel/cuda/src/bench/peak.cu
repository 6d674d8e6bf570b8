// The roof of a card, measured: multiply-adds with nothing to wait for, in each precision of the
// matrix products and by the instructions they use, and the movement of data through a working set.
//
// What a reader could break: a result must depend on every operation, or the compiler drops the
// loop; hence the test against a number that no sum reaches.
#include "ptx.cuh"

constexpr int threads = 256;
constexpr int chains = 8; // independent sums: enough to hide the latency of one
constexpr int turns = 8;  // of all chains in a round, written out

__device__ __forceinline__ void keep(float *out, float sum) {
  if (sum == 1.2345678e30f) *out = sum;
}

// turns·chains·2 operations a thread and round.
KERNEL __launch_bounds__(threads) peak_fp32(float *out, int rounds, float a, float b) {
  float c[chains];
#pragma unroll
  for (int j = 0; j < chains; j++) c[j] = (float)(threadIdx_x + j);
  for (int r = 0; r < rounds; r++)
#pragma unroll
    for (int j = 0; j < turns * chains; j++) c[j % chains] = fma_(c[j % chains], a, b);
  float sum = 0;
#pragma unroll
  for (int j = 0; j < chains; j++) sum += c[j];
  keep(out, sum);
}

// tensor_cores multiplies with one instruction of a tensor core, whose sums wait for nothing but
// themselves.
template <auto MULTIPLY> __device__ __forceinline__ void tensor_cores(float *out, int rounds, u32 x, u32 y) {
  float c[chains][4] = {};
  for (int r = 0; r < rounds; r++)
#pragma unroll
    for (int j = 0; j < turns * chains; j++) {
      float(&o)[4] = c[j % chains];
      MULTIPLY(o[0], o[1], o[2], o[3], x, x, x, x, y, y);
    }
  float sum = 0;
#pragma unroll
  for (int j = 0; j < chains; j++) sum += c[j][0] + c[j][1] + c[j][2] + c[j][3];
  keep(out, sum);
}

// turns·chains·16·8·8·2 operations a warp and round.
KERNEL __launch_bounds__(threads) peak_tf32(float *out, int rounds, float a, float b) {
  tensor_cores<mma_tf32>(out, rounds, tf32(a), tf32(b));
}

// turns·chains·16·8·16·2 operations a warp and round.
KERNEL __launch_bounds__(threads) peak_bf16(float *out, int rounds, float a, float b) {
  tensor_cores<mma_bf16>(out, rounds, bf16x2(a, a), bf16x2(b, b));
}

// y += x, rounds times over: 48 bytes an element of four and round. quads counts those elements.
KERNEL __launch_bounds__(threads) peak_move(float *y, const float *x, int quads, int rounds) {
  for (int r = 0; r < rounds; r++)
    for (int i = blockIdx_x * threads + threadIdx_x; i < quads; i += threads * gridDim_x) store4(y + 4 * i, load4(y + 4 * i) + load4(x + 4 * i));
}
