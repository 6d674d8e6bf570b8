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
  const int p = threadIdx_x % pieces, h = p / across, c = p % across;
  const bool inside = 8 * c < hd;
  const Bf16 *from = qkv + h * hd + (inside ? 8 * c : 0);
#pragma unroll
  for (int x = 0; x < mostTokens / step; x++) {
    const int j = threadIdx_x / pieces + x * step;
    const bool valid = inside && j < tokens;
    if (j >= rows) continue;
    const u32 to = 2 * piece<HD>(j, c);
    const Bf16 *row = from + (j < tokens ? j : 0) * 3 * d;
    copy16(queries + 2 * h * rows * HD + to, row, valid);
    copy16(at + 4 * h * rows * HD + to, row + d, valid);
    copy16(at + 4 * h * rows * HD + 2 * rows * HD + to, row + 2 * d, valid);
  }
  if (threadIdx_x < 2 * HD) copy16(at + 4 * each * rows * HD + 16 * threadIdx_x, qkv, false);
#pragma unroll
  for (int x = 0; x < (mostTokens + threads - 1) / threads; x++) {
    const int i = threadIdx_x + x * threads;
    if (i < rows) asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(begins + 4 * i), "l"(first + last(i, tokens)) : "memory");
  }
  commit_copies();
}

template <int DROP, u32 RATE>
__device__ __forceinline__ void attend(Bf16 *y, float *logSum, u32 *bits, const Bf16 *qkv, const int *first, const State *state, Masks masks, float keepScale, int tokens, int heads,
                                       int hd, float scale, int from) {
  extern __shared__ float smem[] __attribute__((aligned(16)));
  const int lane = threadIdx_x % 32, warp = threadIdx_x / 32, g = lane / 4;
  const int blocks = heads / each, b = blockIdx_x / blocks + from, head0 = blockIdx_x % blocks * each, head = head0 + warp / share;
  const int rows = (tokens + 15) & ~15, d = heads * hd, groups = (tokens + 31) / 32, pairs = (tokens + 63) / 64;
  const u32 at = shared_at(smem), queries = at + 4 * each * rows * HD + 32 * HD, begins = queries + 2 * each * rows * HD;
  const int *begin = (const int *)smem + (begins - at) / 4;
  const float unit2 = scale * LOG2E;
  bring(at, queries, begins, qkv + (long)b * tokens * 3 * d + head0 * hd, first + (long)b * tokens, tokens, rows, d, hd);
  if (DROP) masks.of(state->instances + b);
  const Tiles<HD> keys(at + 4 * (warp / share) * rows * HD), values(keys, keys.at + 2 * rows * HD), own(keys, queries + 2 * (warp / share) * rows * HD);
  // A head's warps take its tiles from the last, which sees most keys, to the first, in turns there
  // and back, so that they have about as much to do.
  const int w = warp % share, there = 2 * (share - w) - 1, back = 2 * w + 1;
  if (DROP == MADE) bits += kept_at(b * heads + head, 2 * groups, pairs, 0, 0) + lane;
  wait_copies<0>();
  sync();
#pragma unroll 1
  for (int r = rows / 16 - 1 - w, step = there; r >= 0; r -= step, step = there + back - step) {
    Queries<1> tile;
    own.left(tile.q[0], 16 * r, 0);
    tile.from[0] = begin[16 * r + g], tile.from[1] = begin[16 * r + g + 8];
    Attending<HD, DROP != WHOLE> attending(tile, r, tokens, unit2);
    const u32 draw = masks.draw(head * tokens + 16 * r + lane % 16, groups, lane / 16);
#pragma unroll 1
    for (bool careful = false;; careful = true) {
#pragma unroll 1
      for (int P = r / 4; 2 * P + 1 >= attending.lowest && P >= 0; P--) {
        u32 word = 0;
        if (DROP) word = masks.word<RATE>(draw + 2 * P);
        if (DROP == MADE) bits[(r * pairs + P) * 32] = word;
        attending.pair(keys, values, word, P, careful);
      }
      if (careful || !ballot(attending.grown())) break;
      attending.begin();
    }
    const int instance = apart(b);
    attending.write(y + (long)instance * tokens * d + head * hd, logSum + ((long)instance * heads + head) * tokens, keepScale, tokens, d, hd);
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
