// Products of any size and layout with operands in fp32 or bf16, each element where strides say:
// for what the fast kernels do not take. Plain arithmetic in fp32.
//
// What a reader could break: C may be what is added (add), element by element, so a thread reads
// its element before it writes it.
#include "drop.cuh"
#include "gelu.cuh"
#include "bf16.cuh"

constexpr int side = 16;

// Which of the tensors are in bf16, and what pre is for.
enum Flags { A_BF16 = 1, B_BF16 = 2, C_BF16 = 4, ADD_BF16 = 8, PRE_BF16 = 16, PRE_WRITTEN = 32, SUMS_ADDED = 64 };

__device__ __forceinline__ float element(const void *p, long at, bool bf16) {
  return bf16 ? bf16_low(((const Bf16 *)p)[at]) : ((const float *)p)[at];
}
__device__ __forceinline__ void write(void *p, long at, bool bf16, float v) {
  if (bf16)
    ((Bf16 *)p)[at] = (Bf16)bf16x2(v, 0);
  else
    ((float *)p)[at] = v;
}

// C[i,j] = add[i,j] + drop(Σ_t A[i,t]·B[t,j] + bias[j]); with pre, GELU of the sum or the sum times
// the slope of pre. Gradient lane z = blockIdx.z takes terms [z·chunk, (z+1)·chunk), and sums[i] is
// then Σ_t A[i,t].
KERNEL __launch_bounds__(side *side) any_product(void *c, const void *a, const void *b, const float *bias, const void *add, void *pre, float *sums, int m, int n, int terms,
                                                int ai, int at, int bt, int bj, int ldc, int ldadd, int ldpre, int chunk, int gradLaneSize, u32 flags,
                                                const State *state, u64 seed, u32 site, u32 threshold, float scale, u32 nodes) {
  __shared__ float left[side][side + 1], right[side][side + 1];
  const int x = threadIdx_x % side, y = threadIdx_x / side, row = blockIdx_x * side + y, column = blockIdx_y * side + x;
  const int from = blockIdx_z * chunk, to = from + chunk < terms ? from + chunk : terms;
  const long gradLane = (long)blockIdx_z * gradLaneSize;
  float sum = 0, rowSum = 0;
  for (int t0 = from; t0 < to; t0 += side) {
    left[y][x] = row < m && t0 + x < to ? element(a, (long)row * ai + (long)(t0 + x) * at, flags & A_BF16) : 0;
    right[y][x] = column < n && t0 + y < to ? element(b, (long)(t0 + y) * bt + (long)column * bj, flags & B_BF16) : 0;
    sync();
#pragma unroll
    for (int t = 0; t < side; t++) sum += left[y][t] * right[t][x], rowSum += left[y][t];
    sync();
  }
  if (row >= m || column >= n) return;
  if (sums && column == 0) sums[gradLane + row] = flags & SUMS_ADDED ? sums[gradLane + row] + rowSum : rowSum;
  if (bias) sum += bias[column];
  if (threshold) {
    const Drop drop = {seed, site, threshold, scale};
    const u32 kept = drop_word(drop, state->instances + row / nodes, row % nodes, (n + 31) / 32, column / 32);
    sum = kept >> column % 32 & 1 ? sum * scale : 0;
  }
  if (pre && flags & PRE_WRITTEN) {
    write(pre, (long)row * ldpre + column, flags & PRE_BF16, sum);
    sum = gelu(sum);
  } else if (pre)
    sum *= gelu_slope(element(pre, (long)row * ldpre + column, flags & PRE_BF16));
  if (add) sum += element(add, gradLane + (long)row * ldadd + column, flags & ADD_BF16);
  write(c, gradLane + (long)row * ldc + column, flags & C_BF16, sum);
}
