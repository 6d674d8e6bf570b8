// The gradient of the decisions with products of fp16 numbers, row by row: sixteen decisions of an
// instance a warp go forward, and back as far as the gradient of the glimpse. half_nodes.cu goes on
// from there, node by node.
//
// What a reader could break: a warp's staging rows (half.cuh's matrices) are its own; whatever
// other lanes wrote is read after syncwarp. The order of the decisions is choices.cuh's.
#include "choices.cuh"
#include "half.cuh"

// mask_of gathers the bits of this lane's nodes (half.cuh) out of a decision's 128.
template <int NT>
__device__ __forceinline__ u32 mask_of(u4 words) {
  u32 m = 0;
#pragma unroll
  for (int k = 0; 4 * k < NT; k++) {
    u32 two = (k == 0 ? words.x : k == 1 ? words.y : k == 2 ? words.z : words.w) >> 2 * (threadIdx_x & 3);
    // The factor brings bits 0, 8, 16 and 24 to 28, 29, 30 and 31.
    m |= ((two & 0x01010101) * 0x10204080u >> 28) << 4 * k | ((two >> 1 & 0x01010101) * 0x10204080u >> 28) << (16 + 4 * k);
  }
  return m;
}

// allowed_of is the lane's mask of a decision.
template <int NT>
__device__ __forceinline__ Allowed allowed_of(const Choice *c) {
#if TILES > 16
  const u32 two = (u32)c->node >> (8 + 2 * (threadIdx_x & 3));
  return Allowed{mask_of<16>(*(const u4 *)c->mask), (two & 1) | (two & 2) << 15};
#else
  return mask_of<NT>(*(const u4 *)c->mask);
#endif
}

// Weighed is what a decision's weights come to.
struct Weighed { float wa, we; int action; };

// leave makes row I's gradient of the dot products, times up, a left operand over nodes:
//
//	dz = wa·(δ(j = action) - p) - we·p·(log p + entropy)
//	du = dz·d logit/d dot, and tanh' = 4r(1 - r)
template <int NT, int I>
__device__ __forceinline__ void leave(Half2 (&du)[NT][2], float (&dots)[NT][4], Allowed mask, const Weighed &w, float mult, float up) {
  float e[NT][2], k = 2 * LOG2E * mult, all = 4 * mult * up / POINT(1.0f);
  Odds o = distribution<NT, I, false>(dots, e, mask, k);
  float over = -all * rcp_fast(o.sum), base = w.wa + w.we * (o.entropy - o.logSum), slope = w.we * LN2, off = o.least * k, chosen = all * w.wa;
  int action = w.action - 2 * (threadIdx_x & 3);
#pragma unroll
  for (int T = 0; T < NT; T++) {
    float out[2];
#pragma unroll
    for (int b = 0; b < 2; b++) {
      float r = dots[T][2 * I + b], z = fma_(r, -k, off);
      float dz = e[T][b] * over * fma_(slope, z, base);
      if (8 * T + b == action) dz += chosen;
      out[b] = dz * fma_(-r, r, r);
    }
    du[T][I] = half2(out[0], out[1]);
  }
}

// copy_out writes sixteen staged rows of `pieces` pieces side by side.
template <int PIECES>
__device__ __forceinline__ void copy_out(Half *to, const char *staged) {
  int lane = threadIdx_x & 31;
#pragma unroll
  for (int i = 0; i < (16 * PIECES + 31) / 32; i++) {
    int k = 32 * i + lane;
    if (16 * PIECES % 32 == 0 || k < 16 * PIECES) *(u4 *)(to + 8 * k) = *(const u4 *)(staged + piece_at(k / PIECES, k % PIECES));
  }
}

// decide_rows, for each decision k of instance blockIdx_x + first (in tiles of sixteen, dealt to
// warps and to blockIdx_y):
//
//	glimpses[k] = the glimpse;  lse[h][k] = log2 of a head's sum of exp2 of its scores
//	dus[k][j] = d loss / d dot_j·up, dot_j the product with a pointer key times POINT(scale)
//	dglimpses[k] = Σ over j of dus[k][j]·that key
//	deltas[h][k] = glimpse·dglimpse over a head's columns = Σ over j of weight_j·d loss / d weight_j
template <int NT, int HD>
__device__ __forceinline__ void decide_rows(Half *dus, Half *glimpses, Half *dglimpses, float *lse, float *deltas, const Choice *choices,
                                            const int *stands, const int *counts, const float *ups, const float *tables, const float *proj,
                                            const float *pointer, const Control *control, int first, int n, int stride, int room, int splits,
                                            float scale, const float *biases BY_CONTEXT(const u2 *operands, const u2 *biasOperands)) {
  constexpr int U = HD / 8, MT = (NT + 1) / 2, WIDE = 16 * MT, HEADS = WIDTH / HD;
  int local = blockIdx_x, i = first + local, count = counts[local];
  if (count == 0) return;
  int lane = threadIdx_x & 31, g = lane >> 2, t = lane & 3, warp = threadIdx_x >> 5, warps = blockDim_x >> 5;
  char *values = (char *)smem, *pointers = values + 8 * NT * ROW_BYTES, *staged = pointers + (8 * NT + 16 * warp) * ROW_BYTES;
  fill(values, proj + (u64)i * n * stride + 2 * WIDTH, stride, n, 8 * NT, 1.0f);
  fill(pointers, pointer + (u64)i * n * WIDTH, WIDTH, n, 8 * NT, POINT(scale));
  sync();
  u32 v = shared_at(values), p = shared_at(pointers), own = shared_at(staged);
  float mult = div_(10.0f, control->temperature), up = ups[local];
  u64 base = (u64)local * room;
  stands += base >> 3;
  tables += (u64)local * HEADS * (n + CONTEXTS) * WIDE + 4 * t;
#ifdef BIAS
  biases += (u64)i * (n + CONTEXTS) * WIDE + 4 * t;
#endif
#if CONTEXTS > 1
  operands += (u64)local * HEADS * (64 * MT);
  biasOperands += (u64)i * (64 * MT);
#endif
  lse += base * HEADS;
  deltas += base * HEADS;
#pragma unroll 1
  for (int tile = blockIdx_y * warps + warp; tile * 16 < count; tile += splits * warps) {
    int k0 = tile * 16 + g, k1 = k0 + 8;
    const Choice *c0 = choices + base + k0, *c1 = c0 + 8;
    Allowed mask0 = allowed_of<NT>(c0), mask1 = allowed_of<NT>(c1);
#if CONTEXTS == 1
    float cap0 = c0->cap, cap1 = c1->cap;
    const float *at0 = tables + stands[2 * tile] * WIDE, *at1 = tables + stands[2 * tile + 1] * WIDE, *atLoad = tables + n * WIDE;
#else
    const Seen seen = {c0->seen[t], c1->seen[t]};
    const float *at0 = tables + stands[2 * tile] * WIDE, *at1 = tables + stands[2 * tile + 1] * WIDE;
#endif
#pragma unroll 1
    for (int h = 0; h < HEADS; h++) {
      float s[NT][4], out[U][4], sum[4], top0, top1;
      Half2 w[NT][2];
      mask0 = opaque(mask0);
      mask1 = opaque(mask1);
#if CONTEXTS == 1
#pragma unroll
      for (int m = 0; m < MT; m++) {
        float4_ a = whole4(at0 + 16 * m), b = whole4(at1 + 16 * m), l = whole4(atLoad + 16 * m);
#pragma unroll
        for (int j = 0; j < 4; j++) {
          int T = 2 * m + (j >> 1), at = j & 1;
          if (T >= NT) continue;
          s[T][at] = fma_(cap0, l[j], a[j]);
          s[T][2 + at] = fma_(cap1, l[j], b[j]);
        }
      }
#else
      table_rows<NT>(s, at0, at1);
      by_context<NT>(s, seen, operands + h * (64 * MT));
#endif
      at0 += (n + CONTEXTS) * WIDE;
      at1 += (n + CONTEXTS) * WIDE;
#if CONTEXTS == 1
      atLoad += (n + CONTEXTS) * WIDE;
#endif
      forbid<NT>(s, mask0, mask1);
      weigh<NT>(w, s, 1.0f, top0, top1);
      total<NT>(sum, w);
      if (HD == 32)
        blend<NT, U>(out, w, v + down_at(2 * h), v + down_at(2 * h + 1), v + down8_at(h));
      else
        blend<NT, U>(out, w, v + down_at(h), 0, v + down8_16_at(h));
      float over0 = rcp_fast(sum[0]), over1 = rcp_fast(sum[2]);
#pragma unroll
      for (int u = 0; u < U; u++) {
        *(Half2 *)(staged + piece_at(g, U * h + u) + 4 * t) = half2(out[u][0] * over0, out[u][1] * over0);
        *(Half2 *)(staged + piece_at(g + 8, U * h + u) + 4 * t) = half2(out[u][2] * over1, out[u][3] * over1);
      }
      if (t == 0) {
        lse[h * room + k0] = top0 + lg2(sum[0]);
        lse[h * room + k1] = top1 + lg2(sum[2]);
      }
    }
    syncwarp();
    Half2 du[NT][2];
    {
      float dots[NT][4];
#ifdef BIAS
#if CONTEXTS == 1
      biased<NT>(dots, biases + stands[2 * tile] * WIDE, biases + stands[2 * tile + 1] * WIDE, biases + n * WIDE, cap0, cap1);
#else
      table_rows<NT>(dots, biases + stands[2 * tile] * WIDE, biases + stands[2 * tile + 1] * WIDE);
      by_context<NT>(dots, seen, biasOperands);
#endif
#else
#pragma unroll
      for (int T = 0; T < NT; T++) dots[T][0] = dots[T][1] = dots[T][2] = dots[T][3] = 0;
#endif
#pragma unroll 1
      for (int c = 0; c < WIDTH / 32; c++) {
        Half2 a[2][4];
#pragma unroll
        for (int j = 0; j < 2; j++) {
          u4 x = upright4(own + down_at(2 * c + j));
          a[j][0] = x.x;
          a[j][1] = x.y;
          a[j][2] = x.z;
          a[j][3] = x.w;
        }
        against<NT, 2>(dots, a, 0, p + across_at(c));
      }
      leave<NT, 0>(du, dots, mask0, Weighed{c0->wa, c0->we, ACTION(c0->node)}, mult, up);
      leave<NT, 1>(du, dots, mask1, Weighed{c1->wa, c1->we, ACTION(c1->node)}, mult, up);
    }
    u64 row = base + 16 * tile;
    copy_out<WIDTH / 8>(glimpses + row * WIDTH, staged);
    syncwarp();
#pragma unroll 1
    for (int h = 0; h < HEADS; h++) {
      float out[U][4], delta0 = 0, delta1 = 0;
      if (HD == 32)
        blend<NT, U>(out, du, p + down_at(2 * h), p + down_at(2 * h + 1), p + down8_at(h));
      else
        blend<NT, U>(out, du, p + down_at(h), 0, p + down8_16_at(h));
#pragma unroll
      for (int u = 0; u < U; u++) {
        Half2 *x = (Half2 *)(staged + piece_at(g, U * h + u) + 4 * t), *y = (Half2 *)(staged + piece_at(g + 8, U * h + u) + 4 * t);
        float2_ a = floats(*x), b = floats(*y);
        delta0 += a.x * out[u][0] + a.y * out[u][1];
        delta1 += b.x * out[u][2] + b.y * out[u][3];
        *x = half2(out[u][0], out[u][1]);
        *y = half2(out[u][2], out[u][3]);
      }
      delta0 = quad_sum(delta0);
      delta1 = quad_sum(delta1);
      if (t == 0) {
        deltas[h * room + k0] = delta0;
        deltas[h * room + k1] = delta1;
      }
    }
    syncwarp();
    copy_out<WIDTH / 8>(dglimpses + row * WIDTH, staged);
    syncwarp();
#if TILES > 16
    // a staged row has room for sixteen tiles; the last goes alone
    constexpr int STAGED = 16;
#else
    constexpr int STAGED = NT;
#endif
#pragma unroll
    for (int T = 0; T < STAGED; T++) {
      *(Half2 *)(staged + piece_at(g, T) + 4 * t) = du[T][0];
      *(Half2 *)(staged + piece_at(g + 8, T) + 4 * t) = du[T][1];
    }
    syncwarp();
#if TILES > 16
    Half *to = dus + row * (8 * NT);
#pragma unroll
    for (int i = 0; i < 8; i++) {
      const int k = 32 * i + lane;
      *(u4 *)(to + k / 16 * (8 * NT) + 8 * (k % 16)) = *(const u4 *)(staged + piece_at(k / 16, k % 16));
    }
    *(Half2 *)(to + g * (8 * NT) + 128 + 2 * t) = du[NT - 1][0];
    *(Half2 *)(to + (g + 8) * (8 * NT) + 128 + 2 * t) = du[NT - 1][1];
#else
    copy_out<NT>(dus + row * (8 * NT), staged);
#endif
    syncwarp();
  }
}

#define ROWS(NAME, HD)                                                                                                                       \
  KERNEL __launch_bounds__(512, 1) NAME(Half *dus, Half *glimpses, Half *dglimpses, float *lse, float *deltas, const Choice *choices,   \
                                        const int *stands, const int *counts, const float *ups, const float *tables, const float *proj, \
                                        const float *pointer, const Control *control, int first, int n, int stride, int room, int splits, \
                                        float scale, const float *biases BY_CONTEXT(const u2 *operands, const u2 *biasOperands)) {    \
    decide_rows<TILES, HD>(dus, glimpses, dglimpses, lse, deltas, choices, stands, counts, ups, tables, proj, pointer, control, first, n, \
                           stride, room, splits, scale, biases BY_CONTEXT(operands, biasOperands));                                  \
  }

ROWS(decide_rows_16, 16)
ROWS(decide_rows_32, 32)
