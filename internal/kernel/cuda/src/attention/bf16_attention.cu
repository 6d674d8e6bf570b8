// Causal attention over bf16, a warp or a few a head, `each` heads of an instance in a block. The
// loops it computes are those of kernel.CausalAttention.
//
// What a reader could break: a warp takes 16 queries at a time and goes over groups of 32 keys from
// their own backwards. A row's products are relative to its largest score in that first group,
// which is finite, for every query sees itself. Should a later group's sum become huge, and only
// then, the row goes over to its largest score so far. Queries past the end repeat the last one and
// are not written. Keys past the end of a head's rows are whatever follows them: finite numbers,
// whose probability is 0; hence the zeros after the last head.
#include "bf16_attention_steps.cuh"

constexpr int maxWarps = 4;

// Shared: for each head k and v [rows][HD] | 16 rows of zeros. rows is tokens in whole sixteens.
template <int HD> __device__ __forceinline__ void bring_keys(u32 at, const Bf16 *qkv, int tokens, int rows, int d, int hd, int each) {
  constexpr int across = HD / 8;
  const int pieces = 2 * each * across, p = threadIdx_x % pieces, step = blockDim_x / pieces;
  const int value = p / (each * across), h = p / across % each, c = p % across;
  const bool inside = 8 * c < hd;
  const Bf16 *from = qkv + (1 + value) * d + h * hd + 8 * c;
  const u32 to = at + 2 * (2 * h + value) * rows * HD;
#pragma unroll 4
  for (int j = threadIdx_x / pieces; j < rows; j += step) {
    bool valid = inside && j < tokens;
    copy16(to + 2 * piece<HD>(j, c), valid ? from + (long)j * 3 * d : qkv, valid);
  }
  for (int e = threadIdx_x; e < 2 * HD; e += blockDim_x) copy16(at + 4 * each * rows * HD + 16 * e, qkv, false);
  commit_copies();
}

template <int HD, int DROP>
__device__ __forceinline__ void attend(Bf16 *y, float *logSum, Bits *bits, const Bf16 *qkv, const int *first, const State *state, Masks masks, float keepScale, int tokens,
                                       int heads, int hd, int each, float scale) {
  extern __shared__ float smem[] __attribute__((aligned(16)));
  constexpr int K = HD / 16;
  const int lane = threadIdx_x % 32, g = lane / 4, t = lane % 4, share = blockDim_x / 32 / each, warp = threadIdx_x / 32;
  const int blocks = heads / each, b = blockIdx_x / blocks, head0 = blockIdx_x % blocks * each, head = head0 + warp / share;
  const int rows = (tokens + 15) & ~15, d = heads * hd, groups = (tokens + 31) / 32;
  const u32 at = shared_at(smem);
  bring_keys<HD>(at, qkv + (long)b * tokens * 3 * d + head0 * hd, tokens, rows, d, hd, each);
  // Places in memory are worked out where they are used: kept, they spill.
  auto read = [&](Queries<K> &to, int tile) {
    const long instance = apart(b);
    to.read(qkv + instance * tokens * 3 * d + head * hd, first + instance * tokens, tile, tokens, d, hd);
  };
  if (DROP == MASKED || DROP == MADE) masks.instance = state->instances + b;
  const Compared limit(masks.below >> 16);
  const Tiles<HD> keys(at + 4 * (warp / share) * rows * HD), values(keys.at + 2 * rows * HD);
  const float unit2 = scale * LOG2E;
  // A head's warps take its tiles from the last, which sees most keys, to the first, in turns there
  // and back, so that they have about as much to do.
  const int w = warp % share, there = 2 * (share - w) - 1, back = 2 * w + 1;
  const int start = rows / 16 - 1 - w; // below 0: nothing for this warp
  Queries<K> next;
  read(next, start > 0 ? start : 0);
  if (DROP == MADE) bits += kept_at(b * heads + head, rows / 16, groups, 0, 0);
  wait_copies<0>();
  sync();
#pragma unroll 1
  for (int r = start, step = there; r >= 0; r -= step, step = there + back - step) {
    const Queries<K> own = next; // the next tile's are under way while this one's are multiplied
    read(next, r - step > 0 ? r - step : 0);
    const u32 (&q)[K][4] = own.q;
    const int (&from)[2] = own.from;
    const int i[2] = {last(16 * r + g, tokens), last(16 * r + g + 8, tokens)};
    const int lowest = shfl(from[0], 0) / 32, highest = shfl(from[1], 31);
    float o[2 * K][4] = {}, top[2] = {-__builtin_inff(), -__builtin_inff()}, sum[2] = {0, 0};
#pragma unroll 1
    for (int J = r / 2; J >= lowest; J--) {
      Words words, words8;
      u32 kept = 0;
      if (DROP == MASKED || DROP == MADE) words = masks.words(head * tokens + 16 * r + g, groups, J, t), words8 = masks.words(head * tokens + 16 * r + g + 8, groups, J, t);
      if (DROP == MADE) {
        kept = kept_bits(words, words8, limit);
        bits[(r * groups + J) * 32] = (Bits)kept;
      }
      float s[4][4], part[2];
      scores<HD>(s, q, keys, r, J, i, from, highest);
      if (J == r / 2) largest(top, s);
      powers(part, s, top, unit2);
      if (ballot(part[0] > huge || part[1] > huge)) {
        const float was[2] = {top[0], top[1]};
        scores<HD>(s, q, keys, r, J, i, from, highest);
        largest(top, s);
        powers(part, s, top, unit2);
#pragma unroll
        for (int x = 0; x < 2; x++) {
          const float shrink = ex2((was[x] - top[x]) * unit2);
          sum[x] *= shrink;
#pragma unroll
          for (int n = 0; n < 2 * K; n++) o[n][2 * x] *= shrink, o[n][2 * x + 1] *= shrink;
        }
      }
      sum[0] += part[0], sum[1] += part[1];
      if (DROP == MASKED) drop(s, s, words, words8, masks.below);
      if (DROP == MADE) drop(s, s, kept);
#pragma unroll
      for (int a = 0; a < 2; a++) {
        u32 p[4];
        left(p, s, a);
#pragma unroll
        for (int k = 0; k < K; k++) {
          u32 m[4];
          values.turned(m, 32 * J + 16 * a, k);
          multiply(o[2 * k], p, m[0], m[1]);
          multiply(o[2 * k + 1], p, m[2], m[3]);
        }
      }
    }
    const int instance = apart(b);
#pragma unroll
    for (int x = 0; x < 2; x++) {
      int row = 16 * r + g + 8 * x;
      float whole = quad_sum(sum[x]), inverse = keepScale * rcp(whole);
      if (row >= tokens) continue;
      if (t == 0) logSum[((long)instance * heads + head) * tokens + row] = top[x] * scale + lg2(whole) * LN2;
#pragma unroll
      for (int n = 0; n < 2 * K; n++)
        if (8 * n < hd) *(u32 *)(y + ((long)instance * tokens + row) * d + head * hd + 8 * n + 2 * t) = bf16x2(o[n][2 * x] * inverse, o[n][2 * x + 1] * inverse);
    }
  }
}

// LEAST blocks on a multiprocessor bound the registers.
#define ATTEND(NAME, HD, DROP, LEAST)                                                                                                            \
  KERNEL __launch_bounds__(32 * maxWarps, LEAST) NAME(Bf16 *y, float *logSum, Bits *bits, const Bf16 *qkv, const int *first, const State *state, u32 site, u32 threshold, \
                                                      float kept, ROUND_KEYS, int tokens, int heads, int hd, int each, float scale) {                \
    attend<HD, DROP>(y, logSum, bits, qkv, first, state, Masks{THE_ROUND_KEYS, site, threshold << 16, 0}, kept, tokens, heads, hd, each, scale);   \
  }
ATTEND(bf16_attention_16, 16, WHOLE, 6)
ATTEND(bf16_attention_32, 32, WHOLE, 4)
ATTEND(bf16_attention_64, 64, WHOLE, 3)
ATTEND(bf16_attention_drop_16, 16, MASKED, 6)
ATTEND(bf16_attention_drop_32, 32, MASKED, 4)
ATTEND(bf16_attention_drop_64, 64, MASKED, 3)
ATTEND(bf16_attention_made_16, 16, MADE, 5)
