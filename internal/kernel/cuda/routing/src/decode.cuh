// The policy of one decode step for sixteen rows of one instance at a time, on tensor cores: what
// the rollout of many starts and the rollout's gradient have in common. kernel.Decoder states the
// formulas.
//
// What a reader could break: a fragment's k index may be any permutation, so long as both operands
// use the same. Here lane t of a quad holds k = 2t and 2t+1 of every eight (PTX names them t and
// t+4): an accumulator is then the next product's left operand as it stands, without a shuffle.
#pragma once
#include "distribution.cuh"

// PASSES is 1 for tf32 products, or 3: the left-out bits of both operands are multiplied too, which
// leaves an error of about 2^-21, close to fp32.
#ifndef PASSES
#define PASSES 1
#endif

__device__ __forceinline__ u32 tf32(float x) { u32 r; asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(x)); return r; }
__device__ __forceinline__ void mma_tf32(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Operands are rounded to tf32 where they are stored, once, not where they are multiplied, many
// times: the tensor cores ignore the bits past tf32's ten, so an operand that was not rounded would
// be cut off instead.
struct Left { u32 hi[4], lo[4]; };

// settle rounds a value that will be an operand. With three passes all its bits count.
__device__ __forceinline__ float settle(float x) { return PASSES == 1 ? as_float(tf32(x)) : x; }
__device__ __forceinline__ float2_ settle(float2_ v) { return float2_{settle(v.x), settle(v.y)}; }
__device__ __forceinline__ float4_ settle(float4_ v) { return float4_{settle(v.x), settle(v.y), settle(v.z), settle(v.w)}; }

// left makes a left operand, of settled values, of rows g, g+8 at k = 2t, 2t+1: an accumulator's
// own order.
__device__ __forceinline__ Left left(float r0k0, float r0k1, float r1k0, float r1k1) {
  float v[4] = {r0k0, r1k0, r0k1, r1k1};
  Left a;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    a.hi[i] = PASSES == 3 ? tf32(v[i]) : (u32)as_int(v[i]);
    if (PASSES == 3) a.lo[i] = tf32(v[i] - as_float(a.hi[i]));
  }
  return a;
}
__device__ __forceinline__ Left left(const float (&c)[4]) { return left(c[0], c[1], c[2], c[3]); }
// settled makes a left operand of values as they come.
__device__ __forceinline__ Left settled(const float (&c)[4]) { return left(settle(c[0]), settle(c[1]), settle(c[2]), settle(c[3])); }

// multiply: c += a·b, b the right operand, settled, at k = 2t, 2t+1, column g.
__device__ __forceinline__ void multiply(float (&c)[4], const Left &a, float k0, float k1) {
  u32 h0 = PASSES == 3 ? tf32(k0) : (u32)as_int(k0), h1 = PASSES == 3 ? tf32(k1) : (u32)as_int(k1);
  if (PASSES == 3) {
    mma_tf32(c, a.lo, h0, h1);
    mma_tf32(c, a.hi, tf32(k0 - as_float(h0)), tf32(k1 - as_float(h1)));
  }
  mma_tf32(c, a.hi, h0, h1);
}

// Matrices of one instance lie in shared memory in chunks of eight columns, each chunk 8·NT rows of
// eight floats, zero past n: a fragment's reads then fall into different banks, at distances known
// to the compiler. Keys and pointer keys, read as pairs along a row, keep the order of rows.
// Values, read down a column, put rows 2t and 2t+1 of every eight at t and 4+t.
struct Instance { float *keys, *pointers, *values, *graph, *load; };

// lay places an instance at shared memory's start and returns what follows it.
template <int NT>
__device__ __forceinline__ float *lay(Instance &in, int d) {
  float *p = smem;
  in.keys = p; p += 8 * NT * d;
  in.pointers = p; p += 8 * NT * d;
  in.values = p; p += 8 * NT * d;
  in.graph = p; p += d;
  in.load = p; p += d;
  return p;
}

// chunked copies `width` columns of n rows into chunks, settled, all threads of the block. src is
// aligned to 16 bytes, stride a multiple of four.
template <int NT, bool VALUES>
__device__ __forceinline__ void chunked(float *dst, const float *src, int stride, int n, int width) {
#pragma unroll 4
  // a float4 each: half a row of a chunk
  for (int i = threadIdx_x; i < 2 * NT * width; i += blockDim_x) {
    int half = i & 1, j = (i >> 1) % (8 * NT), u = (i >> 1) / (8 * NT);
    int at = VALUES ? (j & ~7) | ((j & 1) << 2) | ((j & 7) >> 1) : j;
    float4_ v = {0, 0, 0, 0};
    if (j < n) v = four(src + (u64)j * stride + 8 * u + 4 * half);
    *(float4_ *)(dst + (u * 8 * NT + at) * 8 + 4 * half) = settle(v);
  }
}

// fetch brings an instance in; a barrier must follow.
template <int NT>
__device__ __forceinline__ void fetch(const Instance &in, const float *proj, int stride, const float *pointer, const float *graph,
                                      const float *load, int n, int d) {
  chunked<NT, false>(in.keys, proj + d, stride, n, d);
  chunked<NT, false>(in.pointers, pointer, d, n, d);
  chunked<NT, true>(in.values, proj + 2 * d, stride, n, d);
  for (int c = threadIdx_x; c < d; c += blockDim_x) {
    in.graph[c] = graph[c];
    in.load[c] = load[c];
  }
}

// softmax of two rows of scores under their masks: s becomes exp(scale·(s - top)), and sum0, sum1
// what to divide by.
template <int NT>
__device__ __forceinline__ void softmax2(float (&s)[NT][4], u32 mask0, u32 mask1, float scale, float &sum0, float &sum1) {
  float top0 = -INFINITE, top1 = -INFINITE;
#pragma unroll
  for (int T = 0; T < NT; T++)
#pragma unroll
    for (int b = 0; b < 2; b++) {
      if (mask0 >> (2 * T + b) & 1) top0 = larger(top0, s[T][b]);
      if (mask1 >> (2 * T + b) & 1) top1 = larger(top1, s[T][2 + b]);
    }
  top0 = quad_max(top0);
  top1 = quad_max(top1);
  float k = scale * LOG2E;
  sum0 = 0; sum1 = 0;
#pragma unroll
  for (int T = 0; T < NT; T++)
#pragma unroll
    for (int b = 0; b < 2; b++) {
      s[T][b] = mask0 >> (2 * T + b) & 1 ? ex2((s[T][b] - top0) * k) : 0.0f;
      s[T][2 + b] = mask1 >> (2 * T + b) & 1 ? ex2((s[T][2 + b] - top1) * k) : 0.0f;
      sum0 += s[T][b];
      sum1 += s[T][2 + b];
    }
  sum0 = quad_sum(sum0);
  sum1 = quad_sum(sum1);
}

// query is one head's chunk u of two rows' queries, columns 2t and 2t+1: node + graph +
// capacity·load. Pointers stand at the chunk's column 2t.
__device__ __forceinline__ void query(float (&q)[4], const float *node0, const float *node1, const float *graph, const float *load,
                                      float cap0, float cap1) {
  float2_ a = two(node0), b = two(node1), gr = two(graph), ld = two(load);
  q[0] = a.x + gr.x + cap0 * ld.x;
  q[1] = a.y + gr.y + cap0 * ld.y;
  q[2] = b.x + gr.x + cap1 * ld.x;
  q[3] = b.y + gr.y + cap1 * ld.y;
}

// against: s += a·matrixᵀ for one chunk of columns.
template <int NT>
__device__ __forceinline__ void against(float (&s)[NT][4], const Left &a, const float *chunk) {
  int lane = threadIdx_x & 31;
  const float *m = chunk + (lane >> 2) * 8 + 2 * (lane & 3);
#pragma unroll
  for (int T = 0; T < NT; T++) {
    float2_ k = two(m + 64 * T);
    multiply(s[T], a, k.x, k.y);
  }
}

// blend: out = w·matrix, w settled, for one chunk of columns, `VALUES` as chunked. Four sums side
// by side: a product waits for its own accumulator only every fourth time.
template <int NT, bool VALUES>
__device__ __forceinline__ void blend(float (&out)[4], const float (&w)[NT][4], const float *chunk) {
  int lane = threadIdx_x & 31, t = lane & 3;
  const float *m = chunk + (VALUES ? t : 2 * t) * 8 + (lane >> 2);
  float sum[4][4] = {};
#pragma unroll
  for (int T = 0; T < NT; T++) multiply(sum[T & 3], left(w[T]), m[64 * T], m[64 * T + (VALUES ? 32 : 8)]);
#pragma unroll
  for (int i = 0; i < 4; i++) out[i] = (sum[0][i] + sum[1][i]) + (sum[2][i] + sum[3][i]);
}

template <int NT>
__device__ __forceinline__ void settle(float (&s)[NT][4]) {
#pragma unroll
  for (int T = 0; T < NT; T++)
#pragma unroll
    for (int i = 0; i < 4; i++) s[T][i] = settle(s[T][i]);
}

template <int NT>
__device__ __forceinline__ void zero(float (&s)[NT][4]) {
#pragma unroll
  for (int T = 0; T < NT; T++) s[T][0] = s[T][1] = s[T][2] = s[T][3] = 0;
}

// biased adds to row I's dot products what its node and load add (distribution.cuh), in the unit
// of a dot product.
template <int NT, int I>
__device__ __forceinline__ void biased(float (&dots)[NT][4], const Biases &biases, int at, float cap) {
  if (!biases.table) return;
  const int t2 = 2 * (threadIdx_x & 3);
#pragma unroll
  for (int T = 0; T < NT; T++)
#pragma unroll
    for (int b = 0; b < 2; b++) dots[T][2 * I + b] += biases(at, cap, 8 * T + t2 + b);
}

// forward computes the pointer's dot products of sixteen rows, before scaling and tanh:
//
//	for each head: w = softmax over mask of (node[cur] + graph + cap·load)·keyᵀ/sqrt(HD)
//	               glimpse = w·values;  dots += glimpse·pointersᵀ
//
// node0 and node1 are the rows' Node projections. With KEEP the glimpses go to keep0 and keep1
// (null: nowhere). Loops over heads and chunks stay loops: unrolled they would fill the instruction
// cache and the registers.
template <int NT, bool KEEP>
__device__ __forceinline__ void forward(float (&dots)[NT][4], const Instance &in, int heads, int hd, const float *node0, const float *node1,
                                        float cap0, float cap1, u32 mask0, u32 mask1, float scale, float *keep0, float *keep1) {
  int t2 = 2 * (threadIdx_x & 3);
  zero(dots);
#pragma unroll 1
  for (int h = 0; h < heads; h++) {
    float s[NT][4], sum0, sum1;
    zero(s);
#pragma unroll 1
    for (int c = h * hd; c < (h + 1) * hd; c += 8) {
      float q[4];
      int at = c + t2;
      query(q, node0 + at, node1 + at, in.graph + at, in.load + at, cap0, cap1);
      against(s, settled(q), in.keys + c * 8 * NT);
    }
    softmax2<NT>(s, mask0, mask1, scale, sum0, sum1);
    float over0 = div_(1.0f, sum0), over1 = div_(1.0f, sum1);
    settle(s);
#pragma unroll 1
    for (int c = h * hd; c < (h + 1) * hd; c += 8) {
      float glimpse[4];
      blend<NT, true>(glimpse, s, in.values + c * 8 * NT);
      glimpse[0] *= over0;
      glimpse[1] *= over0;
      glimpse[2] *= over1;
      glimpse[3] *= over1;
      if (KEEP) {
        if (keep0) *(float2_ *)(keep0 + c + t2) = float2_{glimpse[0], glimpse[1]};
        if (keep1) *(float2_ *)(keep1 + c + t2) = float2_{glimpse[2], glimpse[3]};
      }
      against(dots, settled(glimpse), in.pointers + c * 8 * NT);
    }
  }
}
