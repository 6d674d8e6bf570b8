// The policy of one decode step for sixteen rows of one instance, with any number of nodes: the
// instance's matrices are read a block of 32 nodes at a time, from shared memory as far as they fit
// and from the card's caches, and a softmax over nodes goes along. Products are of fp16 numbers
// with fp32 sums, as in half.cuh, whose bounds on size these kernels do not have. kernel.Decoder
// states the formulas, distribution.cuh the fragments.
//
// What a reader could break: stream_pack lays a matrix out in pieces, the right operands of a
// product for sixteen nodes and sixteen columns, 16 bytes a lane; who reads a piece must use it as
// it was laid, across (·matrixᵀ) or down (·matrix). Bit 2T + b of a lane's mask is node 8T + 2t + b
// of its block for row g, and bit 16 + 2T + b for row g + 8.
#pragma once
#include "choices.cuh"
#include "half.cuh"

#define BLOCK 32             // nodes
#define TILES_IN (BLOCK / 8) // tiles of a block
#define STEPS_IN (BLOCK / 16)
#define CHUNKS (WIDTH / 16)  // pieces of a matrix beside one another
#define PACKED_BLOCK (2 * WIDTH * BLOCK) // bytes of a block of a matrix
#define FORBIDDEN -30000.0f  // a score that leaves no weight beside an allowed one
#define RISE 8.0f            // how far a score may be above what its row refers to, to base 2

// The matrices that stream_pack makes. Rows are as they stand, fp16.
enum { KEYS_ACROSS, VALUES_DOWN, POINTERS_ACROSS, POINTERS_DOWN, QUERIES, KEY_ROWS, VALUE_ROWS, POINTER_ROWS };

// Packed is where the matrices of one instance lie.
struct Packed { const u4 *keys, *values, *pointers, *back; const Half2 *queries; };

__device__ __forceinline__ Packed packed_of(const char *packed, u64 i, int blocks) {
  const u64 each = (u64)blocks * PACKED_BLOCK;
  packed += i * 5 * each;
  return Packed{(const u4 *)packed, (const u4 *)(packed + each), (const u4 *)(packed + 2 * each), (const u4 *)(packed + 3 * each),
                (const Half2 *)(packed + 4 * each)};
}

// hold copies the first matrices of an instance to shared memory, as many as `held`, and reads them
// there from now on. All threads of the block come here: it ends with a barrier.
__device__ __forceinline__ void hold(Packed &in, char *to, int held, int blocks) {
  const int each = blocks * (PACKED_BLOCK / 16);
  for (int k = threadIdx_x; k < held * each; k += blockDim_x) ((u4 *)to)[k] = in.keys[k];
  sync();
  if (held > KEYS_ACROSS) in.keys = (const u4 *)to + KEYS_ACROSS * each;
  if (held > VALUES_DOWN) in.values = (const u4 *)to + VALUES_DOWN * each;
  if (held > POINTERS_ACROSS) in.pointers = (const u4 *)to + POINTERS_ACROSS * each;
  if (held > POINTERS_DOWN) in.back = (const u4 *)to + POINTERS_DOWN * each;
  // piece says nothing of memory: no piece is read before the barrier if its address comes after.
  asm volatile("" : "+l"(in.keys), "+l"(in.values), "+l"(in.pointers), "+l"(in.back));
}

// piece reads the lane's part of a piece, in shared memory or the card's: nodes from 16·m on,
// columns from 16·c on.
__device__ __forceinline__ u4 piece(const u4 *matrix, int m, int c) {
  u4 v;
  asm("ld.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(matrix + (m * CHUNKS + c) * 32 + (threadIdx_x & 31)));
  return v;
}

// warp_count sums over the warp.
__device__ __forceinline__ int warp_count(int v) {
  int r;
  asm volatile("redux.sync.add.s32 %0, %1, 0xffffffff;" : "=r"(r) : "r"(v));
  return r;
}

// context_half rounds two of the context's weights as queries are: times `scale`, to base 2.
__device__ __forceinline__ Half2 context_half(const float *load, float scale) {
  const float2_ x = two(load) * (scale * LOG2E);
  return half2(x.x, x.y);
}
__device__ __forceinline__ float2_ context_weights(const float *load, float scale) { return floats(context_half(load, scale)); }

// loads_in_half brings the context's weights into shared memory.
__device__ __forceinline__ void loads_in_half(Half2 *to, const float *load, float scale) {
  for (int k = threadIdx_x; k < CONTEXTS * (WIDTH / 2); k += blockDim_x) to[k] = context_half(load + 2 * k, scale);
}

// meet waits for as many threads at barrier `meeting`, of which 0 is the whole block's.
__device__ __forceinline__ void meet(int meeting, int threads) { asm volatile("bar.sync %0, %1;" : : "r"(meeting), "r"(threads) : "memory"); }

// look makes the glimpses of two rows a quad, left operands over the width, the rows at nodes at0
// and at1 with contexts c0 and c1. Scores are to base 2, as queries are laid out and the context's
// weights brought. kept(h, lse0, lse1) gets log2 of a head's sums.
//
// TEAM warps share the heads of the same rows. More than one pass glimpses through `passed`,
// 16 bytes a lane and chunk, and meet at barrier `meeting`.
template <int HD, int TEAM, class K>
__device__ __forceinline__ void look(Half2 (&all)[CHUNKS][4], const Packed &in, const Half2 *loads, int blocks, int at0, int at1, const Context &c0,
                                     const Context &c1, const u32 *masks, int member, u4 *passed, int meeting, K kept) {
  constexpr int U = HD / 8, KS = HD / 16, HEADS = WIDTH / HD;
  const int lane = threadIdx_x & 31, t = lane & 3;
  const Half2 ones = 0x3c003c00;
  const Half2 *q0 = in.queries + at0 * (WIDTH / 2) + t, *q1 = in.queries + at1 * (WIDTH / 2) + t;
  if constexpr (TEAM == 1)
#pragma unroll
    for (int c = 0; c < CHUNKS; c++) all[c][0] = all[c][1] = all[c][2] = all[c][3] = 0;
  u4 keys[STEPS_IN][KS];
#pragma unroll
  for (int m = 0; m < STEPS_IN; m++)
#pragma unroll
    for (int k = 0; k < KS; k++) keys[m][k] = piece(in.keys, m, member * KS + k);
#pragma unroll 1
  for (int h = member; h < HEADS; h += TEAM) {
    Half2 q[KS][4];
#pragma unroll
    for (int k = 0; k < KS; k++) {
      const int at = 8 * (h * KS + k);
      q[k][0] = q0[at], q[k][1] = q1[at], q[k][2] = q0[at + 4], q[k][3] = q1[at + 4];
#pragma unroll
      for (int f = 0; f < CONTEXTS; f++) {
        const Half2 x0 = half2(c0.part[f], c0.part[f]), x1 = half2(c1.part[f], c1.part[f]);
        const Half2 l0 = loads[f * (WIDTH / 2) + at + t], l1 = loads[f * (WIDTH / 2) + at + 4 + t];
        q[k][0] = fma2(x0, l0, q[k][0]), q[k][1] = fma2(x1, l0, q[k][1]);
        q[k][2] = fma2(x0, l1, q[k][2]), q[k][3] = fma2(x1, l1, q[k][3]);
      }
    }
    float out[U][4] = {}, sum[4] = {}, top0 = -1e30f, top1 = -1e30f;
#pragma unroll 1
    for (int B = 0; B < blocks; B++) {
      float s[TILES_IN][4] = {};
#pragma unroll
      for (int m = 0; m < STEPS_IN; m++)
#pragma unroll
        for (int k = 0; k < KS; k++) {
          const u4 x = keys[m][k];
          mma(s[2 * m], q[k][0], q[k][1], q[k][2], q[k][3], x.x, x.y);
          mma(s[2 * m + 1], q[k][0], q[k][1], q[k][2], q[k][3], x.z, x.w);
        }
      // The next block's keys, or the next head's first, come while this one's are used.
      const int B1 = B + 1 < blocks ? B + 1 : 0, h1 = B + 1 < blocks ? h : h + TEAM < HEADS ? h + TEAM : h;
      u4 values[STEPS_IN][KS];
#pragma unroll
      for (int m = 0; m < STEPS_IN; m++)
#pragma unroll
        for (int k = 0; k < KS; k++) {
          values[m][k] = piece(in.values, STEPS_IN * B + m, h * KS + k);
          keys[m][k] = piece(in.keys, STEPS_IN * B1 + m, h1 * KS + k);
        }
      const u32 mask = masks[B * 32 + lane];
      float high0 = FORBIDDEN, high1 = FORBIDDEN;
#pragma unroll
      for (int T = 0; T < TILES_IN; T++)
#pragma unroll
        for (int b = 0; b < 2; b++) {
          s[T][b] = mask >> (2 * T + b) & 1 ? s[T][b] : FORBIDDEN;
          s[T][2 + b] = mask >> (16 + 2 * T + b) & 1 ? s[T][2 + b] : FORBIDDEN;
          high0 = max_(high0, s[T][b]), high1 = max_(high1, s[T][2 + b]);
        }
      // A row's reference is raised only where a score is far above it.
      const u32 far0 = ballot(high0 > top0 + RISE) >> (lane & 28) & 15, far1 = ballot(high1 > top1 + RISE) >> (lane & 28) & 15;
      if (ballot((far0 | far1) != 0)) {
        high0 = quad_top(high0), high1 = quad_top(high1);
        high0 = far0 ? high0 : top0, high1 = far1 ? high1 : top1;
        const float less0 = ex2(top0 - high0), less1 = ex2(top1 - high1);
        top0 = high0, top1 = high1;
        sum[0] *= less0, sum[1] *= less0, sum[2] *= less1, sum[3] *= less1;
#pragma unroll
        for (int u = 0; u < U; u++) out[u][0] *= less0, out[u][1] *= less0, out[u][2] *= less1, out[u][3] *= less1;
      }
      Half2 w[TILES_IN][2];
#pragma unroll
      for (int T = 0; T < TILES_IN; T++) {
        w[T][0] = half2(ex2(s[T][0] - top0), ex2(s[T][1] - top0));
        w[T][1] = half2(ex2(s[T][2] - top1), ex2(s[T][3] - top1));
      }
#pragma unroll
      for (int m = 0; m < STEPS_IN; m++) {
        mma(sum, w[2 * m][0], w[2 * m][1], w[2 * m + 1][0], w[2 * m + 1][1], ones, ones);
#pragma unroll
        for (int k = 0; k < KS; k++) {
          const u4 v = values[m][k];
          mma(out[2 * k], w[2 * m][0], w[2 * m][1], w[2 * m + 1][0], w[2 * m + 1][1], v.x, v.y);
          mma(out[2 * k + 1], w[2 * m][0], w[2 * m][1], w[2 * m + 1][0], w[2 * m + 1][1], v.z, v.w);
        }
      }
    }
    const float over0 = rcp_fast(sum[0]), over1 = rcp_fast(sum[2]);
    Half2 glimpse[KS][4];
#pragma unroll
    for (int u = 0; u < U; u++) {
      glimpse[u >> 1][2 * (u & 1)] = half2(out[u][0] * over0, out[u][1] * over0);
      glimpse[u >> 1][2 * (u & 1) + 1] = half2(out[u][2] * over1, out[u][3] * over1);
    }
    if constexpr (TEAM == 1) {
      // The loop pushes glimpses through, so that it need not be unrolled.
#pragma unroll
      for (int m = 0; m < CHUNKS - KS; m++)
#pragma unroll
        for (int j = 0; j < 4; j++) all[m][j] = all[m + KS][j];
#pragma unroll
      for (int k = 0; k < KS; k++)
#pragma unroll
        for (int j = 0; j < 4; j++) all[CHUNKS - KS + k][j] = glimpse[k][j];
    } else {
#pragma unroll
      for (int k = 0; k < KS; k++) passed[(h * KS + k) * 32 + lane] = u4{glimpse[k][0], glimpse[k][1], glimpse[k][2], glimpse[k][3]};
    }
    kept(h, top0 + lg2(sum[0]), top1 + lg2(sum[2]));
  }
  if constexpr (TEAM > 1) {
    meet(meeting, 32 * TEAM);
#pragma unroll
    for (int c = 0; c < CHUNKS; c++) {
      const u4 x = passed[c * 32 + lane];
      all[c][0] = x.x, all[c][1] = x.y, all[c][2] = x.z, all[c][3] = x.w;
    }
  }
}

// Tally is one row's distribution as far as its blocks have been seen, to the reference `least`:
// sums of e = exp2(k·(least - r)) and of e·log2 e, of this lane's nodes.
struct Tally {
  float least, sum, mean;

  // refer changes the reference to a smaller one.
  __device__ __forceinline__ void refer(float to, float k) {
    const float less = k * (to - least), by = ex2(less);
    mean = by * fma_(less, sum, mean);
    sum *= by;
    least = to;
  }
};

// point makes r (half.cuh's complement of tanh) of block B for both rows, NOWHERE where it is
// forbidden, and adds them to the tallies. biases0 and biases1 are the rows of the table of biases
// for the rows' nodes, null where nothing is added; biasContext has the rows of the context's
// features, `wide` floats apart.
__device__ __forceinline__ void point(float (&r)[TILES_IN][4], Tally (&tally)[2], float (&here)[2], const Half2 (&all)[CHUNKS][4], const Packed &in, int B, u32 mask,
                                      const float *biases0, const float *biases1, const float *biasContext, int wide, const Context &c0,
                                      const Context &c1, float k) {
  const int t = threadIdx_x & 3;
#pragma unroll
  for (int m = 0; m < STEPS_IN; m++) {
    float4_ a = {0, 0, 0, 0}, b = {0, 0, 0, 0};
    if (biases0) {
      const int at = BLOCK * B + 16 * m + 4 * t;
      a = whole4(biases0 + at), b = whole4(biases1 + at);
#pragma unroll
      for (int f = 0; f < CONTEXTS; f++) {
        const float4_ l = whole4(biasContext + f * wide + at);
        a += c0.part[f] * l, b += c1.part[f] * l;
      }
    }
    r[2 * m][0] = a.x, r[2 * m][1] = a.y, r[2 * m + 1][0] = a.z, r[2 * m + 1][1] = a.w;
    r[2 * m][2] = b.x, r[2 * m][3] = b.y, r[2 * m + 1][2] = b.z, r[2 * m + 1][3] = b.w;
  }
#pragma unroll
  for (int c = 0; c < CHUNKS; c++)
#pragma unroll
    for (int m = 0; m < STEPS_IN; m++) {
      const u4 x = piece(in.pointers, STEPS_IN * B + m, c);
      mma(r[2 * m], all[c][0], all[c][1], all[c][2], all[c][3], x.x, x.y);
      mma(r[2 * m + 1], all[c][0], all[c][1], all[c][2], all[c][3], x.z, x.w);
    }
#pragma unroll
  for (int I = 0; I < 2; I++) {
    float least = NOWHERE;
#pragma unroll
    for (int T = 0; T < TILES_IN; T++)
#pragma unroll
      for (int b = 0; b < 2; b++) {
        float x = rcp_fast(ex2(r[T][2 * I + b]) + 1.0f);
        r[T][2 * I + b] = x = mask >> (16 * I + 2 * T + b) & 1 ? x : NOWHERE;
        least = min_(least, x);
      }
    least = min_(least, shfl_xor(least, 1));
    here[I] = least = min_(least, shfl_xor(least, 2));
    if (least < tally[I].least) tally[I].refer(least, k);
  }
}

// weighted are the sums of one row's e and e·log2 e over this lane's nodes of a block.
template <int I> __device__ __forceinline__ float2_ weighted(const float (&r)[TILES_IN][4], float least, float k) {
  const float off = least * k;
  float sum = 0, mean = 0;
#pragma unroll
  for (int T = 0; T < TILES_IN; T++) {
    const float y = fma_(r[T][2 * I], -k, off), z = fma_(r[T][2 * I + 1], -k, off), a = ex2(y), b = ex2(z);
    mean = fma_(b, z, fma_(a, y, mean));
    sum += a + b;
  }
  return float2_{sum, mean};
}
