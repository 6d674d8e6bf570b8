// Causal attention over bf16 for rows of at most 192 tokens and heads of at most 16 columns: two
// warps a head, two heads of an instance in a block. The loops it computes are those of
// kernel.CausalAttention.
//
// What a reader could break: all that a block reads is on its way at once and waited for once. A
// warp takes 16 queries at a time and goes over pairs of groups of 32 keys from their own
// backwards. Queries past the end are zeros and are not written. Keys past the end of a head's rows
// are whatever follows them: finite numbers, whose probability is 0; hence the zeros after the last
// head.
#include "bf16_attention_steps.cuh"

constexpr int HD = 16, each = 2, share = 2, threads = 32 * each * share, across = HD / 8, mostTokens = 192;

// Shared: for each head k and v [rows][HD] | 16 rows of zeros | for each head q [rows][HD] | first
// [rows]. rows is tokens in whole sixteens.
__device__ __forceinline__ void bring(u32 at, u32 queries, u32 begins, const Bf16 *qkv, const int *first, int tokens, int rows, int d, int hd) {
  constexpr int pieces = each * across, step = threads / pieces;
  const int p = threadIdx_x % pieces, h = p / across, c = p % across, j0 = threadIdx_x / pieces;
  const bool inside = 8 * c < hd;
  const Bf16 *from = qkv + j0 * 3 * d + h * hd + 8 * c;
  const u32 q = queries + 2 * (h * rows * HD + piece<HD>(j0, c)), k = at + 2 * (2 * h * rows * HD + piece<HD>(j0, c)), v = k + 2 * rows * HD;
  static_assert(step % 8 == 0, "piece is the same for rows that are so far apart");
#pragma unroll
  for (int x = 0; x < mostTokens / step; x++) {
    const int j = j0 + x * step, to = 2 * HD * x * step;
    if (inside && j < tokens) {
      const Bf16 *row = from + x * step * 3 * d;
      copy16(q + to, row, true), copy16(k + to, row + d, true), copy16(v + to, row + 2 * d, true);
    } else if (j < rows) {
      copy16(q + to, qkv, false), copy16(k + to, qkv, false), copy16(v + to, qkv, false);
    }
  }
  if (threadIdx_x < 2 * HD) copy16(at + 4 * each * rows * HD + 16 * threadIdx_x, qkv, false);
#pragma unroll
  for (int x = 0; x < (mostTokens + threads - 1) / threads; x++) {
    const int i = threadIdx_x + x * threads;
    if (i < rows) asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(begins + 4 * i), "l"(first + last(i, tokens)) : "memory");
  }
  commit_copies();
}

// visible has a bit for each of 32 keys from j on that a query sees: those from `from` to i. Shifts
// by more than 31 leave zeros.
__device__ __forceinline__ u32 visible(int from, int i, int j) {
  u32 r;
  asm("{.reg .b32 low, high; shl.b32 low, -1, %1; shl.b32 high, -2, %2; lop3.b32 %0, low, high, 0, 0x30;}" : "=r"(r) : "r"(from > j ? from - j : 0), "r"(i - j));
  return r;
}

// take takes group J, relative to zero; `half` says which half of the warp made its masks. EDGE: a
// query may not see all of its keys, and none sees those after the first 16·steps. What is not seen
// is dropped like what dropout drops, but before the rows' sums.
template <bool EDGE, bool DROP>
__device__ __forceinline__ void take(Attending<HD, DROP> &rows, const Tiles<HD> &keys, const Tiles<HD> &values, u32 word, int J, int half, int steps) {
  using Spread = typename Attending<HD, DROP>::Spread;
  const int t = threadIdx_x % 4;
  const float zero[4] = {};
  u32 seen[2][2];
  if (EDGE)
#pragma unroll
    for (int x = 0; x < 2; x++) {
      const u32 w = visible(rows.from[x], rows.i[x], 32 * J);
      seen[x][0] = w << (7 - 2 * t), seen[x][1] = w << (6 - 2 * t);
    }
  const Spread masks(word, half);
#pragma unroll
  for (int a = 0; a < 2; a++) {
    if (EDGE && a >= steps) break;
    float s[2][4];
    u32 m[4], p[4];
    keys.right(m, 32 * J + 16 * a, 0);
    multiply(s[0], zero, rows.q[0], m[0], m[1]), multiply(s[1], zero, rows.q[0], m[2], m[3]);
#pragma unroll
    for (int e = 0; e < 8; e++) s[e / 4][e % 4] = ex2(s[e / 4][e % 4]);
#pragma unroll
    for (int e = 0; e < 4; e++) {
      p[e] = bf16x2(s[e / 2][e % 2 * 2], s[e / 2][e % 2 * 2 + 1]);
      if (EDGE) p[e] &= upper_bits(seen[e % 2][0], seen[e % 2][1], 2 * a + e / 2);
    }
    multiply(rows.sum, p, ones, ones);
    if (DROP) masks.drop(p, a);
    rows.add(p, values, 32 * J + 16 * a);
  }
}

template <int DROP, u32 RATE>
__device__ __forceinline__ void attend(Bf16 *y, float *logSum, u32 *bits, const Bf16 *qkv, const int *first, const State *state, Masks masks, float keepScale, int tokens, int heads,
                                       int hd, float scale, int from) {
  extern __shared__ float smem[] __attribute__((aligned(16)));
  const int lane = threadIdx_x % 32, warp = threadIdx_x / 32, g = lane / 4, t = lane % 4;
  const int b = blockIdx_y + from, head0 = blockIdx_x * each, head = head0 + warp / share;
  const int rows = (tokens + 15) & ~15, d = heads * hd, groups = (tokens + 31) / 32, pairs = (tokens + 63) / 64;
  const u32 at = shared_at(smem), queries = at + 4 * each * rows * HD + 32 * HD, begins = queries + 2 * each * rows * HD;
  const int *begin = (const int *)smem + (begins - at) / 4;
  const float unit2 = scale * LOG2E;
  bring(at, queries, begins, qkv + (u64)(u32)(b * tokens) * (u32)(3 * d) + head0 * hd, first + b * tokens, tokens, rows, d, hd);
  if (DROP) masks.of(state->instances + b);
  const u32 queries0 = queries + 2 * (warp / share) * rows * HD;
  const Tiles<HD> keys(at + 4 * (warp / share) * rows * HD), values(keys, keys.at + 2 * rows * HD), own(keys, queries0);
  // A head's warps take its tiles from the last, which sees most keys, to the first, in turns there
  // and back, so that they have about as much to do.
  const int w = warp % share, there = 2 * (share - w) - 1, back = 2 * w + 1;
  if (DROP == MADE) bits += (u64)(u32)((b * heads + head) * 2 * groups) * (u32)(32 * pairs) + lane;
  Bf16 *to = y + (u64)(u32)(b * tokens + lane / 2) * (u32)d + head * hd + lane % 2 * 8;
  logSum += (u64)(u32)(b * heads + head) * (u32)tokens;
  wait_copies<0>();
  sync();
#pragma unroll 1
  for (int r = rows / 16 - 1 - w, step = there; r >= 0; r -= step, step = there + back - step) {
    Queries<1> tile;
    own.left(tile.q[0], 16 * r, 0);
    tile.from[0] = begin[16 * r + g], tile.from[1] = begin[16 * r + g + 8];
    Attending<HD, DROP != WHOLE> attending(tile, r, tokens, unit2);
    // A call makes the masks of two groups, J-1 and J.
    const u32 draw = masks.draw(head * tokens + 16 * r + lane % 16, groups, lane / 16);
#pragma unroll 1
    for (int J = r / 2; J >= attending.lowest; J -= 2) {
      u32 word = 0;
      if (DROP) word = masks.word<RATE>(draw + J - 1);
      if (DROP == MADE && (J || lane >= 16)) bits[(2 * r * pairs + J - 1) * 16] = word;
#pragma unroll 1
      for (int half = 1; half >= 0 && J - 1 + half >= attending.lowest; half--) {
        const int K = J - 1 + half;
        if (K == r / 2 || 32 * K < attending.highest) take<true>(attending, keys, values, word, K, half, K < r / 2 || r % 2 ? 2 : 1);
        else take<false>(attending, keys, values, word, K, half, 2);
      }
    }
    attending.plainly();
    if (ballot(attending.steep())) {
      attending.begin();
#pragma unroll 1
      for (int P = r / 4; 2 * P + 1 >= attending.lowest && P >= 0; P--)
        attending.pair(keys, values, DROP ? masks.word<RATE>(draw + 2 * P) : 0, P, true);
    }
    // The tile's queries are done with: results take their place, so that a lane has eight columns
    // of a row to store.
    char *place = (char *)smem + (queries0 - at) + 32 * HD * r;
#pragma unroll
    for (int x = 0; x < 2; x++) {
      const float total = attending.sum[2 * x], inverse = keepScale * rcp_approx(total);
      const int row = 16 * r + g + 8 * x;
      if (t == 0 && row < tokens) logSum[row] = (lg2(total) - attending.base[2 * x]) * LN2;
#pragma unroll
      for (int n = 0; n < 2; n++)
        *(u32 *)(place + 2 * piece<HD>(g + 8 * x, n) + 4 * t) = bf16x2(attending.o[n][2 * x] * inverse, attending.o[n][2 * x + 1] * inverse);
    }
    syncwarp();
    if (16 * r + lane / 2 < tokens && lane % 2 * 8 < hd) *(u4 *)(to + 16 * r * d) = *(const u4 *)(place + 2 * piece<HD>(lane / 2, lane % 2));
  }
}

// RATE is that of dropout in 65,536ths, 0 for any: that of Masks. `from` is the first instance.
#define ATTEND(NAME, DROP, RATE)                                                                                                        \
  KERNEL __launch_bounds__(threads, 5) NAME(Bf16 *y, float *logSum, u32 *bits, const Bf16 *qkv, const int *first, const State *state, u32 site, \
                                                      float kept, DECIDED_BY, int tokens, int heads, int hd, float scale, int from) {      \
    attend<DROP, RATE>(y, logSum, bits, qkv, first, state, Masks{WHAT_DECIDES, site}, kept, tokens, heads, hd, scale, from);                             \
  }
ATTEND(bf16_attention_short_16, WHOLE, 0)
ATTEND(bf16_attention_short_drop_16, MASKED, 0)
ATTEND(bf16_attention_short_made_16, MADE, 0)
ATTEND(bf16_attention_short_tenth_16, MADE, 6554)
