// The policy of one decode step for sixteen rows of one instance at a time, as starts_half.cu and
// half_rows.cu compute it: products of fp16 numbers with fp32 sums. An fp16 number has as many bits
// as a tf32 one and half its size, and its products run at twice the rate; what it lacks is range,
// so gradients are multiplied by a power of two first (half_walk.cu). kernel.Decoder states the
// formulas, distribution.cuh the fragments.
//
// What a reader could break: matrices lie in shared memory as rows of WIDTH numbers, with piece p
// (eight numbers, 16 bytes) of row r at place p ^ (r & 7), so that the eight rows of a fragment
// fall into different banks. Every reader and writer goes through piece_at or the two lane offsets.
#pragma once
#include "bf16.cuh"
#include "distribution.cuh"

#ifndef WIDTH
#define WIDTH 128
#endif
#define ROW_BYTES (2 * WIDTH)

typedef u32 Half2; // two fp16 numbers, the first in the low half
typedef unsigned short Half;

__device__ __forceinline__ Half2 half2(float first, float second) {
  u32 r;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(second), "f"(first));
  return r;
}
__device__ __forceinline__ float2_ floats(Half2 v) {
  float a, b;
  asm("{.reg .b16 l, h; mov.b32 {l, h}, %2; cvt.f32.f16 %0, l; cvt.f32.f16 %1, h;}" : "=f"(a), "=f"(b) : "r"(v));
  return float2_{a, b};
}
__device__ __forceinline__ Half2 fma2(Half2 a, Half2 b, Half2 c) {
  u32 r;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
  return r;
}
__device__ __forceinline__ float max_(float a, float b) { float r; asm("max.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b)); return r; }
__device__ __forceinline__ float min_(float a, float b) { float r; asm("min.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b)); return r; }
__device__ __forceinline__ float quad_top(float v) { v = max_(v, shfl_xor(v, 1)); return max_(v, shfl_xor(v, 2)); }

// whole4 reads four floats as one, which clang may take apart otherwise. Nobody writes them
// meanwhile.
__device__ __forceinline__ float4_ whole4(const float *p) {
  float4_ v;
  asm("ld.global.nc.v4.f32 {%0,%1,%2,%3}, [%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(p));
  return v;
}

// c[16×8] += a·b over 16 terms, or over 8; ptx.cuh has the order of the operands.
__device__ __forceinline__ void mma(float (&c)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
__device__ __forceinline__ void mma(float (&c)[4], u32 a0, u32 a1, u32 b0) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a0), "r"(a1), "r"(b0));
}

// A lane's mask of its nodes here has bit T + 16b for node 8T+2t+b, so that a tile's two bits make
// an operand (see forbid).
__device__ __forceinline__ bool allows(u32 mask, int T, int b) { return mask >> (T + 16 * b) & 1; }

// Allowed is such a mask of all TILES: up to 128 nodes it is one word, and the tile from node 128
// on has a second, as if it were the first.
#if TILES > 16
struct Allowed { u32 near, far; };
__device__ __forceinline__ bool allows(const Allowed &mask, int T, int b) { return T < 16 ? allows(mask.near, T, b) : allows(mask.far, T - 16, b); }
__device__ __forceinline__ Allowed opaque(const Allowed &mask) { return Allowed{(u32)opaque((int)mask.near), (u32)opaque((int)mask.far)}; }

// BY_FAR is a part of a list that kernels of up to 128 nodes do not have.
#define BY_FAR(...) , __VA_ARGS__
#else
typedef u32 Allowed;
__device__ __forceinline__ Allowed opaque(Allowed mask) { return (u32)opaque((int)mask); }
#define BY_FAR(...)
#endif

// piece_at is the byte of piece p of row r of a matrix.
__device__ __forceinline__ int piece_at(int r, int p) { return r * ROW_BYTES + ((p ^ (r & 7)) << 4); }

// across_at is the lane's byte for upright4 of rows 0..7 and 32 columns from `chunk`·32 on: the
// right operand of ·matrixᵀ, two steps of 16 columns. Rows further down are ROW_BYTES apart, since
// all eights of rows are swizzled alike.
__device__ __forceinline__ int across_at(int chunk) {
  int l = threadIdx_x & 31;
  return piece_at(l & 7, 4 * chunk + (l >> 3));
}
// across16_at is the same for rows 0..15 and 16 columns from `part`·16 on.
__device__ __forceinline__ int across16_at(int part) {
  int l = threadIdx_x & 31;
  return piece_at((l & 7) + 8 * (l >> 4), 2 * part + ((l >> 3) & 1));
}
// down_at is the lane's byte for turned4 of rows 0..15 and 16 columns from `part`·16 on: the right
// operand of ·matrix, two tiles of eight columns.
__device__ __forceinline__ int down_at(int part) {
  int l = threadIdx_x & 31;
  return piece_at((l & 7) + 8 * ((l >> 3) & 1), 2 * part + (l >> 4));
}
// down8_at is the same for rows 0..7 and 32 columns; down8_16_at for 16 columns, twice.
__device__ __forceinline__ int down8_at(int chunk) { return across_at(chunk); }
__device__ __forceinline__ int down8_16_at(int part) {
  int l = threadIdx_x & 31;
  return piece_at(l & 7, 2 * part + ((l >> 3) & 1));
}

// fill brings n rows of WIDTH floats, times k, into a matrix of `rows` rows, zeros past n, all
// threads of the block.
__device__ __forceinline__ void fill(char *matrix, const float *src, int stride, int n, int rows, float k) {
#pragma unroll 4
  for (int i = threadIdx_x; i < rows * (WIDTH / 8); i += blockDim_x) {
    int r = i / (WIDTH / 8), p = i % (WIDTH / 8);
    u4 v = {0, 0, 0, 0};
    if (r < n) {
      float4_ a = four(src + (u64)r * stride + 8 * p) * k, b = four(src + (u64)r * stride + 8 * p + 4) * k;
      v = u4{half2(a.x, a.y), half2(a.z, a.w), half2(b.x, b.y), half2(b.z, b.w)};
    }
    *(u4 *)(matrix + piece_at(r, p)) = v;
  }
}

// forbid lowers two rows of scores by 32768 where a node is not allowed, by a product with the unit
// matrix: a bit times 31·2^11 is -32768 in fp16. Comparing bits would cost twice the instructions,
// and predicates that the compiler carries along.
template <int NT>
__device__ __forceinline__ void forbid(float (&s)[NT][4], u32 mask0, u32 mask1) {
  int g = threadIdx_x >> 2 & 7, t2 = 2 * (threadIdx_x & 3);
  Half2 unit = g == t2 ? 0x3c00 : g == t2 + 1 ? 0x3c000000 : 0;
  u32 not0 = ~mask0, not1 = ~mask1;
#pragma unroll
  for (int T = 0; T < NT; T++) {
    int low = T < 8 ? T : T - 8; // a bit too high for its factor is moved down first
    if (T == 8) not0 >>= 8, not1 >>= 8;
    mma(s[T], (not0 & 0x10001u << low) * (0x1fu << (11 - low)), (not1 & 0x10001u << low) * (0x1fu << (11 - low)), unit);
  }
}

#if TILES > 16
template <int NT>
__device__ __forceinline__ void forbid(float (&s)[NT][4], const Allowed &mask0, const Allowed &mask1) {
  forbid<16>((float (&)[16][4])s, mask0.near, mask1.near);
  const int g = threadIdx_x >> 2 & 7, t2 = 2 * (threadIdx_x & 3);
  const Half2 unit = g == t2 ? 0x3c00 : g == t2 + 1 ? 0x3c000000 : 0;
  mma(s[16], (~mask0.far & 0x10001u) * (0x1fu << 11), (~mask1.far & 0x10001u) * (0x1fu << 11), unit);
}
#endif

// weigh turns two rows of scores into fp16 weights exp2(k·(score - top)), a left operand over
// nodes, and gives k·top.
template <int NT>
__device__ __forceinline__ void weigh(Half2 (&w)[NT][2], const float (&s)[NT][4], float k, float &top0, float &top1) {
  top0 = s[0][0];
  top1 = s[0][2];
#pragma unroll
  for (int T = 0; T < NT; T++) {
    top0 = max_(top0, max_(s[T][0], s[T][1]));
    top1 = max_(top1, max_(s[T][2], s[T][3]));
  }
  top0 = quad_top(top0) * k;
  top1 = quad_top(top1) * k;
#pragma unroll
  for (int T = 0; T < NT; T++) {
    w[T][0] = half2(ex2(fma_(s[T][0], k, -top0)), ex2(fma_(s[T][1], k, -top0)));
    w[T][1] = half2(ex2(fma_(s[T][2], k, -top1)), ex2(fma_(s[T][3], k, -top1)));
  }
}

// total sums two rows of weights, as rounded, by a product with ones: sum[0] for row g, sum[2] for
// row g+8, in every lane.
template <int NT>
__device__ __forceinline__ void total(float (&sum)[4], const Half2 (&w)[NT][2]) {
  const Half2 ones = 0x3c003c00;
  sum[0] = sum[1] = sum[2] = sum[3] = 0;
#pragma unroll
  for (int m = 0; m < NT / 2; m++) mma(sum, w[2 * m][0], w[2 * m][1], w[2 * m + 1][0], w[2 * m + 1][1], ones, ones);
  if (NT & 1) mma(sum, w[NT - 1][0], w[NT - 1][1], ones);
}

// blend: out = w·matrix for 8·U columns: U = 4 from bytes `at` and `at2` on (down_at), U = 2 from
// `at`. An odd number of tiles ends at `last`, down8_at or with U = 2 down8_16_at.
template <int NT, int U>
__device__ __forceinline__ void blend(float (&out)[U][4], const Half2 (&w)[NT][2], u32 at, u32 at2, u32 last) {
#pragma unroll
  for (int u = 0; u < U; u++) out[u][0] = out[u][1] = out[u][2] = out[u][3] = 0;
#pragma unroll
  for (int m = 0; m < NT / 2; m++) {
    u4 b = turned4(at + 16 * m * ROW_BYTES);
    mma(out[0], w[2 * m][0], w[2 * m][1], w[2 * m + 1][0], w[2 * m + 1][1], b.x, b.y);
    mma(out[1], w[2 * m][0], w[2 * m][1], w[2 * m + 1][0], w[2 * m + 1][1], b.z, b.w);
    if (U == 4) {
      b = turned4(at2 + 16 * m * ROW_BYTES);
      mma(out[U - 2], w[2 * m][0], w[2 * m][1], w[2 * m + 1][0], w[2 * m + 1][1], b.x, b.y);
      mma(out[U - 1], w[2 * m][0], w[2 * m][1], w[2 * m + 1][0], w[2 * m + 1][1], b.z, b.w);
    }
  }
  if (NT & 1) {
    u4 b = turned4(last + 8 * (NT - 1) * ROW_BYTES);
    if (U == 4) {
      mma(out[0], w[NT - 1][0], w[NT - 1][1], b.x);
      mma(out[1], w[NT - 1][0], w[NT - 1][1], b.y);
    }
    mma(out[U - 2], w[NT - 1][0], w[NT - 1][1], b.z);
    mma(out[U - 1], w[NT - 1][0], w[NT - 1][1], b.w);
  }
}

// against: s += a·matrixᵀ over 32 columns from byte `at` on (across_at); a[from] and a[from+1] are
// the left operands.
template <int NT, int ALL>
__device__ __forceinline__ void against(float (&s)[NT][4], const Half2 (&a)[ALL][4], int from, u32 at) {
#pragma unroll
  for (int T = 0; T < NT; T++) {
    u4 b = upright4(at + 8 * T * ROW_BYTES);
    mma(s[T], a[from][0], a[from][1], a[from][2], a[from][3], b.x, b.y);
    mma(s[T], a[from + 1][0], a[from + 1][1], a[from + 1][2], a[from + 1][3], b.z, b.w);
  }
}
// against16: the same over 16 columns (across16_at).
template <int NT>
__device__ __forceinline__ void against16(float (&s)[NT][4], const Half2 (&a)[4], u32 at) {
#pragma unroll
  for (int T = 0; T < NT; T += 2) {
    // an odd number of tiles reads eight rows past the last, which every layout has
    u4 b = upright4(at + 8 * T * ROW_BYTES);
    mma(s[T], a[0], a[1], a[2], a[3], b.x, b.y);
    if (T + 1 < NT) mma(s[T + 1], a[0], a[1], a[2], a[3], b.z, b.w);
  }
}

#if CONTEXTS > 1
// What context features add to scores is a product of its own: sixteen rows by eight features by
// eight nodes. A row of features is fp16, zero past the last; a table's rows from n on are split
// into two fp16 numbers each, which keep 22 bits (context_operands, biases.cu).
#define FEATURES 8 // of that product

// BY_CONTEXT is a part of a list that kernels of one feature do not have.
#define BY_CONTEXT(...) , __VA_ARGS__

// Seen is a lane's part of two rows' features, a left operand: 2t and 2t+1 of rows g and g+8.
struct Seen { Half2 row0, row1; };

// pair_of is features 2t and 2t+1 of a context.
__device__ __forceinline__ Half2 pair_of(const Context &c, int t) {
  Half2 pair = 0;
#pragma unroll
  for (int k = 0; k < CONTEXTS; k += 2)
    if (2 * t == k) pair = half2(c.part[k], k + 1 < CONTEXTS ? c.part[k + 1] : 0.0f);
  return pair;
}

// operand is what context_operands made of a tile of eight nodes.
__device__ __forceinline__ u2 operand(const u2 *operands, int tile) {
  u2 v;
  asm("ld.global.nc.v2.u32 {%0,%1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(operands + 32 * tile + (threadIdx_x & 31)));
  return v;
}

// by_context adds to two rows of scores what their features add.
template <int NT>
__device__ __forceinline__ void by_context(float (&s)[NT][4], const Seen &seen, const u2 *operands) {
#pragma unroll
  for (int T = 0; T < NT; T++) {
    u2 b = operand(operands, T);
    mma(s[T], seen.row0, seen.row1, seen.row0, seen.row1, b.x, b.y);
  }
}
#else
#define BY_CONTEXT(...)
#endif

// table_rows lets two rows of scores begin with rows of a table, from the lane's first nodes on.
template <int NT>
__device__ __forceinline__ void table_rows(float (&s)[NT][4], const float *at0, const float *at1) {
#pragma unroll
  for (int m = 0; m < (NT + 1) / 2; m++) {
    float4_ a = whole4(at0 + 16 * m), b = whole4(at1 + 16 * m);
#pragma unroll
    for (int j = 0; j < 4; j++) {
      int T = 2 * m + (j >> 1), at = j & 1;
      if (T >= NT) continue;
      s[T][at] = a[j];
      s[T][2 + at] = b[j];
    }
  }
}

#if defined(BIAS) && CONTEXTS == 1
// biased lets two rows' dot products begin with what their nodes and loads add
// (distribution.cuh): rows of the table, from the lane's first nodes on.
template <int NT>
__device__ __forceinline__ void biased(float (&dots)[NT][4], const float *at0, const float *at1, const float *load, float cap0, float cap1) {
#pragma unroll
  for (int m = 0; m < (NT + 1) / 2; m++) {
    float4_ a = whole4(at0 + 16 * m), b = whole4(at1 + 16 * m), l = whole4(load + 16 * m);
#pragma unroll
    for (int j = 0; j < 4; j++) {
      int T = 2 * m + (j >> 1), at = j & 1;
      if (T >= NT) continue;
      dots[T][at] = fma_(cap0, l[j], a[j]);
      dots[T][2 + at] = fma_(cap1, l[j], b[j]);
    }
  }
}
#endif

// The pointer's logits are Clip·tanh(x)/T. Kernels hold tanh as its complement r = 1/(1 + exp(2x)),
// tanh = 1 - 2r, which is exact where tanh is near one, and take pointer keys times POINT(scale),
// so that a dot product is 2x to base 2.
#define POINT(scale) ((scale) * (2.0f * LOG2E))

// NOWHERE is r at a forbidden node: its probability is 0 at any temperature, and what is made of it
// stays finite.
#define NOWHERE 1e6f

// Odds is one row's distribution: the log-probability of a node is mult·2·(least - r) - logSum,
// with mult = Clip/T.
struct Odds { float least, sum, logSum, entropy; };

// distribution turns row I's dot products into r, NOWHERE where forbidden, in place, and gives e =
// exp2(k·(least - r)), k = 2·mult·LOG2E: the lane's two of each tile, or with PAIRS their sum,
// beside the other row's.
template <int NT, int I, bool PAIRS>
__device__ __forceinline__ Odds distribution(float (&r)[NT][4], float (&e)[NT][2], Allowed mask, float k) {
  Odds w;
  w.least = NOWHERE;
#pragma unroll
  for (int T = 0; T < NT; T++)
#pragma unroll
    for (int b = 0; b < 2; b++) {
      float x = rcp_fast(ex2(r[T][2 * I + b]) + 1.0f);
      r[T][2 * I + b] = x = allows(mask, T, b) ? x : NOWHERE;
      w.least = min_(w.least, x);
    }
  w.least = min_(w.least, shfl_xor(w.least, 1));
  w.least = min_(w.least, shfl_xor(w.least, 2));
  float sum = 0, mean = 0, off = w.least * k;
#pragma unroll
  for (int T = 0; T < NT; T++) {
    float y = fma_(r[T][2 * I], -k, off), z = fma_(r[T][2 * I + 1], -k, off), a = ex2(y), b = ex2(z);
    mean = fma_(b, z, fma_(a, y, mean));
    sum += a + b;
    if (PAIRS) {
      e[T][I] = a + b;
    } else {
      e[T][0] = a;
      e[T][1] = b;
    }
  }
  w.sum = quad_sum(sum);
  mean = quad_sum(mean);
  w.logSum = logf_(w.sum);
  w.entropy = w.logSum - LN2 * mean * rcp_fast(w.sum);
  return w;
}
