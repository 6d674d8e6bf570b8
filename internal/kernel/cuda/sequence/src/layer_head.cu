// The end of a network of layers and the beginning of its gradient, in one pass over the rows of
// a piece of an instance: the last norm, the head's logits, their losses, and the gradient of the
// stream:
//
//   hat = (x - mean)·rstd;  z = hat·(W·diag(gamma))ᵀ + bias + W·beta
//   dz = the gradient of kernel.CrossEntropy;  dhat = dz·W·diag(gamma)
//   dx = rstd·(dhat - mean(dhat) - hat·mean(dhat·hat));  part = dzᵀ·hat, and the sums of dz
//
// layer_fold.cu makes the gradients of weight, bias and norm of the parts, as for a layer's
// weights. Means need no dhat: mean(dhat·hat) = dz·(z without its bias), and mean(dhat) = dz·(the
// sums of W·diag(gamma)).
//
// What a reader could break: a warp has 16 rows, as the sums of a product: rows g and g+8, columns
// 8j + 2t and the next. Rows past an instance's last repeat that one, have no dz and are not
// written. All sums have one order: a warp's tiles, a block's warps, the blocks.
#include "hopper.cuh"

constexpr int headWidth = 128, headThreads = 96, headWarps = headThreads / 32, headColumns = 8, headLosses = 2, headBlocks = 4;
// of a weight's row in shared memory: its vectors lie in different banks
constexpr int headStride = headWidth + 8;

// turn gives the transpose of a matrix of 8×8 bf16 numbers, of which a lane has row g, columns 2t
// and 2t+1.
__device__ __forceinline__ u32 turn(u32 v) {
  u32 r;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(r) : "r"(v));
  return r;
}

// c[16×8] = a·b over 8 terms.
__device__ __forceinline__ void product8(float (&c)[4], u32 a0, u32 a1, u32 b) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%7,%7,%7};"
               : "=f"(c[0]), "=f"(c[1]), "=f"(c[2]), "=f"(c[3])
               : "r"(a0), "r"(a1), "r"(b), "f"(0.0f));
}
// c[8×8] += a·b over 16 terms: the upper half of a product of 16 rows whose lower half is zeros.
__device__ __forceinline__ void product_upper(float (&c)[2], u32 a0, u32 a2, u32 b0, u32 b1) {
  float none0, none1;
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%5}, {%7,%8}, {%0,%1,%9,%9};"
               : "+f"(c[0]), "+f"(c[1]), "=f"(none0), "=f"(none1)
               : "r"(a0), "r"(0), "r"(a2), "r"(b0), "r"(b1), "f"(0.0f));
}

// store_if writes two numbers or nothing, without a branch.
__device__ __forceinline__ void store_if(float *to, float a, float b, bool real) {
  asm volatile("{.reg .pred q; setp.ne.u32 q, %3, 0; @q st.global.v2.f32 [%0], {%1,%2};}" ::"l"(to), "f"(a), "f"(b), "r"((u32)real) : "memory");
}
__device__ __forceinline__ void store_if(Bf16 *to, float a, float b, bool real) {
  asm volatile("{.reg .pred q; setp.ne.u32 q, %2, 0; @q st.global.u32 [%0], %1;}" ::"l"(to), "r"(bf16x2(a, b)), "r"((u32)real) : "memory");
}

__device__ __forceinline__ float quad_sum(float v) {
  v += shfl_xor(v, 1);
  return v + shfl_xor(v, 2);
}
// columns_sum adds up what the lanes of a column have.
__device__ __forceinline__ float columns_sum(float v) {
  v += shfl_xor(v, 4);
  v += shfl_xor(v, 8);
  return v + shfl_xor(v, 16);
}

// losses are those of one row and classifier, of `n` columns from `from` on: dz of this lane's two
// columns if they are among them, and in the quad's first lane the sum of losses, and labels and
// hits in one word's halves.
__device__ __forceinline__ void losses(float (&dz)[2], float &sum, u32 &count, const float (&z)[2], int from, int n, int label, float smoothing,
    float weight) {
  const int t = threadIdx_x % 4, column = 2 * t - from;
  const bool in[2] = {column >= 0 && column < n, column + 1 >= 0 && column + 1 < n};
  const float low = -__builtin_inff(), v[2] = {in[0] ? z[0] : low, in[1] ? z[1] : low};
  float top = v[0];
  int best = column;
  if (v[1] > top) top = v[1], best = column + 1;
#pragma unroll
  for (int m = 1; m <= 2; m *= 2) {
    const float other = shfl_xor(top, m);
    const int place = (int)shfl_xor((u32)best, m);
    if (other > top || (other == top && place < best)) top = other, best = place;
  }
  const float total = quad_sum((in[0] ? expf_(z[0] - top) : 0.0f) + (in[1] ? expf_(z[1] - top) : 0.0f));
  const float logSum = top + logf_(total), even = div_(smoothing, (float)n);
  float apart = 0;
#pragma unroll
  for (int e = 0; e < 2; e++) {
    const float logp = z[e] - logSum, q = even + (column + e == label ? 1 - smoothing : 0.0f);
    if (!in[e]) continue;
    apart -= q * logp;
    if (label >= 0) dz[e] = weight * (expf_(logp) - q);
  }
  apart = quad_sum(apart);
  if (t == 0 && label >= 0) sum += apart, count += best == label ? 0x10001 : 1;
}

// STREAM is what the stream's gradient is made of: bf16 for the layers before, fp32 for other ops.
template <class STREAM>
__device__ __forceinline__ void head(STREAM *dx, float *sums, float *parts, const float *x, const int *labels, const float *w, const float *bias,
    const float *gamma, const float *beta, int batch, int pieces, int tokens, int c, int heads, int n0, int n1, float smoothing, float weight,
    float eps) {
  __shared__ Bf16 weights[headColumns][headStride] __attribute__((aligned(16)));
  __shared__ Bf16 turned[headWidth][headColumns] __attribute__((aligned(16)));
  __shared__ float shifts[headColumns], totals[headColumns], found[2][3 * headLosses][headWarps];
  __shared__ float products[headWarps][headColumns][headWidth], sumsOf[headWarps][headColumns];
  const int lane = threadIdx_x % 32, warp = threadIdx_x / 32, g = lane / 4, t = lane % 4, tiles = (tokens + 15) / 16;
  for (int k = threadIdx_x; k < headWidth; k += headThreads) {
    const float scale = gamma[k];
    for (int n = 0; n < headColumns; n++) {
      const Bf16 v = (Bf16)bf16x2(n < c ? w[n * headWidth + k] * scale : 0.0f, 0.0f);
      weights[n][k] = v, turned[k][n] = v;
    }
  }
  sync();
  for (int n = warp; n < headColumns; n += headWarps) {
    float shift = 0, total = 0;
    for (int k = lane; k < headWidth; k += 32) {
      if (n < c) shift += w[n * headWidth + k] * beta[k];
      total += bf16_low(weights[n][k]);
    }
    shift = warp_sum(shift), total = warp_sum(total);
    if (lane == 0) shifts[n] = n < c ? shift + bias[n] : 0, totals[n] = total * (1.0f / headWidth);
  }
  sync();

  // dzᵀ·hat: column g of dz, columns 8j + 2t and the next of hat; and of dz 2t and the next
  float part[16][2] = {}, partSum[2] = {0, 0};
#pragma unroll 1
  for (int unit = blockIdx_x, side = 0; unit < batch * pieces; unit += gridDim_x, side ^= 1) {
    const int b = unit / pieces;
    float sum[headLosses] = {};
    // labels, and from bit 16 on hits, of a piece's rows: fewer than 2^16
    u32 count[headLosses] = {};
#pragma unroll 1
    for (int tile = unit % pieces * headWarps + warp; tile < tiles; tile += pieces * headWarps) {
      u32 hat[16][2];
      float rstd[2];
      int at[2];
      bool real[2];
#pragma unroll
      for (int h = 0; h < 2; h++) {
        const int r = 16 * tile + g + 8 * h;
        real[h] = r < tokens, at[h] = b * tokens + (real[h] ? r : tokens - 1);
      }
#pragma unroll
      for (int h = 0; h < 2; h++) {
        f2 v[16];
        float total = 0, square = 0;
        const float *from = x + (long)apart(at[h]) * headWidth + 2 * t;
#pragma unroll
        for (int j = 0; j < 16; j++) v[j] = *(const f2 *)(from + 8 * j);
#pragma unroll
        for (int j = 0; j < 16; j++) total += v[j].x + v[j].y;
        const float mean = quad_sum(total) * (1.0f / headWidth);
#pragma unroll
        for (int j = 0; j < 16; j++) {
          const f2 d = v[j] - mean;
          square += d.x * d.x + d.y * d.y;
        }
        rstd[h] = rcp(sqrtf_(quad_sum(square) * (1.0f / headWidth) + eps));
        const float shift = -mean * rstd[h];
#pragma unroll
        for (int j = 0; j < 16; j++) hat[j][h] = bf16x2(v[j].x * rstd[h] + shift, v[j].y * rstd[h] + shift);
      }
      float z[4] = {0, 0, 0, 0};
      // read again for every tile: kept, they spill
      const Bf16 *row = &weights[apart(g)][2 * t], *column = &turned[apart(g)][2 * t];
#pragma unroll
      for (int s = 0; s < 8; s++)
        mma_bf16(z[0], z[1], z[2], z[3], hat[2 * s][0], hat[2 * s][1], hat[2 * s + 1][0], hat[2 * s + 1][1], *(const u32 *)(row + 16 * s),
            *(const u32 *)(row + 16 * s + 8));
      u32 dz[2];
      float mean[2], along[2];
#pragma unroll
      for (int h = 0; h < 2; h++) {
        const float logits[2] = {z[2 * h] + shifts[2 * t], z[2 * h + 1] + shifts[2 * t + 1]};
        float d[2] = {0, 0};
        const int *label = labels + (long)apart(at[h]) * heads;
        losses(d, sum[0], count[0], logits, 0, n0, real[h] ? label[0] : -1, smoothing, weight);
        if (heads > 1) losses(d, sum[1], count[1], logits, n0, n1, real[h] ? label[1] : -1, smoothing, weight);
        dz[h] = bf16x2(d[0], d[1]);
        const float a = bf16_low(dz[h]), b = bf16_high(dz[h]);
        partSum[0] += a, partSum[1] += b;
        mean[h] = quad_sum(a * totals[2 * t] + b * totals[2 * t + 1]);
        along[h] = quad_sum(a * z[2 * h] + b * z[2 * h + 1]) * (1.0f / headWidth);
      }
      const u32 left[2] = {turn(dz[0]), turn(dz[1])};
      STREAM *const to[2] = {dx + (long)apart(at[0]) * headWidth + 2 * t, dx + (long)apart(at[1]) * headWidth + 2 * t};
#pragma unroll
      for (int j = 0; j < 16; j++) {
        float d[4];
        product8(d, dz[0], dz[1], *(const u32 *)(column + 8 * j * headColumns));
        product_upper(part[j], left[0], left[1], turn(hat[j][0]), turn(hat[j][1]));
#pragma unroll
        for (int h = 0; h < 2; h++)
          store_if(to[h] + 8 * j, rstd[h] * (d[2 * h] - mean[h] - bf16_low(hat[j][h]) * along[h]),
              rstd[h] * (d[2 * h + 1] - mean[h] - bf16_high(hat[j][h]) * along[h]), real[h]);
      }
    }
#pragma unroll
    for (int e = 0; e < 3 * headLosses; e++) {
      const u32 counted = count[e / 3];
      const float v = warp_sum(e % 3 == 0 ? sum[e / 3] : (float)(e % 3 == 1 ? counted & 0xffff : counted >> 16));
      if (lane == 0) found[side][e][warp] = v;
    }
    sync(); // found is of this piece until the one after the next
    if (threadIdx_x < 3 * heads) {
      float v = 0;
#pragma unroll
      for (int i = 0; i < headWarps; i++) v += found[side][threadIdx_x][i];
      sums[(long)unit * 3 * heads + threadIdx_x] = v;
    }
  }
#pragma unroll
  for (int j = 0; j < 16; j++) *(f2 *)&products[warp][g][8 * j + 2 * t] = f2{part[j][0], part[j][1]};
#pragma unroll
  for (int e = 0; e < 2; e++) {
    const float v = columns_sum(partSum[e]);
    if (g == 0) sumsOf[warp][2 * t + e] = v;
  }
  sync();
  parts += (long)blockIdx_x * c * (headWidth + 1);
  for (int i = threadIdx_x; i < c * (headWidth + 1); i += headThreads) {
    float v = 0;
#pragma unroll
    for (int k = 0; k < headWarps; k++) v += i < c * headWidth ? products[k][i / headWidth][i % headWidth] : sumsOf[k][i - c * headWidth];
    parts[i] = v;
  }
}

#define HEAD(NAME, STREAM)                                                                                                     \
  KERNEL __launch_bounds__(headThreads, headBlocks)                                                                          \
      NAME(STREAM *dx, float *sums, float *parts, const float *x, const int *labels, const float *w, const float *bias,      \
          const float *gamma, const float *beta, int batch, int pieces, int tokens, int c, int heads, int n0, int n1,        \
          float smoothing, float weight, float eps) {                                                                        \
    head(dx, sums, parts, x, labels, w, bias, gamma, beta, batch, pieces, tokens, c, heads, n0, n1, smoothing, weight, eps); \
  }
HEAD(layer_head, Bf16)
HEAD(layer_head_wide, float)

// layer_head_sums adds up an instance's pieces in order, a thread each of its sums.
KERNEL __launch_bounds__(headThreads) layer_head_sums(float *sums, const float *parts, int count, int pieces, int each) {
  const int i = blockIdx_x * headThreads + threadIdx_x;
  if (i >= count) return;
  float v = 0;
  for (int p = 0; p < pieces; p++) v += parts[(long)(i / each * pieces + p) * each + i % each];
  sums[i] = v;
}
