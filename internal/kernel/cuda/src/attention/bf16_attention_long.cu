// Causal attention over bf16 for rows too long to hold: a block takes 16 queries a warp and streams
// the keys and values that they see through shared memory, from their own backwards. The loops it
// computes are those of kernel.CausalAttention.
//
// What a reader could break: as in bf16_attention.cu, a row's products are relative to its largest
// score in the first group of 32 keys it takes, its own, and go over to a larger one only where a
// sum becomes huge. Every warp of a block waits for every tile of keys, also for those that it does
// not see and where it has no queries at all. Keys past the end are zeros, which no query sees.
#include "bf16_attention_steps.cuh"

constexpr int maxWarps = 8, tile = 64, stages = 3; // tile: keys brought at a time

// bring starts the copy of keys and values from j0 on. A stage is k and v [tile][HD].
template <int HD> __device__ __forceinline__ void bring(u32 at, const Bf16 *qkv, int j0, int tokens, int d, int hd) {
#pragma unroll
  for (int p = threadIdx_x; p < 2 * tile * HD / 8; p += 32 * maxWarps) {
    const int value = p / (tile * HD / 8), j = p / (HD / 8) % tile, c = p % (HD / 8);
    const bool valid = 8 * c < hd && j0 + j < tokens;
    copy16(at + 2 * (value * tile * HD + piece<HD>(j, c)), valid ? qkv + (long)(j0 + j) * 3 * d + (1 + value) * d + 8 * c : qkv, valid);
  }
}

// Dropped are the masks of a group of 32 keys as they lie in packed pairs of probabilities: a word
// of dropout's bits is for the two columns of one. Of each the upper bits of both halves count.
struct Dropped {
  u32 keeps[2][4]; // rows g and g+8

  Dropped() = default;
  __device__ __forceinline__ Dropped(const Masks &masks, const Compared &limit, u32 row, u32 groups, u32 J, u32 t) {
#pragma unroll
    for (int x = 0; x < 2; x++) {
      const Words words = this->words(masks, row + 8 * x, groups, J, t);
#pragma unroll
      for (int n = 0; n < 4; n++) keeps[x][n] = reaches(limit, words.w[n]);
    }
  }
  // words are those of Masks; both halves of a product as words of their own, so that three are
  // joined by one instruction.
  static __device__ __forceinline__ Words words(const Masks &masks, u32 row, u32 groups, u32 J, u32 t) {
    u32 c0 = (u32)masks.instance, c1 = (u32)(masks.instance >> 32), c2 = masks.site << 24 | ((row * groups + J) * 4 + t), c3 = dropPurpose;
#pragma unroll
    for (int i = 0; i < 10; i++) {
      const u2 p0 = wide_product(0xD2511F53u, c0), p1 = wide_product(0xCD9E8D57u, c2);
      c0 = p1.y ^ c1 ^ masks.keys[2 * i], c1 = p1.x;
      c2 = p0.y ^ c3 ^ masks.keys[2 * i + 1], c3 = p0.x;
    }
    return Words{{c0, c1, c2, c3}};
  }
  // reaches is Compared.keeps with whatever in the bits that do not count.
  static __device__ __forceinline__ u32 reaches(const Compared &limit, u32 v) {
    const u32 sum = (v & 0x7fff7fffu) + limit.lift;
    return (sum & v) | ((sum | v) & limit.low);
  }
  // bits are those of kept_bits.
  __device__ __forceinline__ u32 bits() const {
    u32 word = 0;
#pragma unroll
    for (int i = 0; i < 8; i++) word = word >> 1 | (keeps[i / 4][i % 4] & 0x80008000u);
    return (word >> 8 & 0xff) | (word >> 16 & 0xff00);
  }
  // drop zeroes what is dropped of `left` of columns 16·a.
  __device__ __forceinline__ void drop(u32 (&p)[4], int a) const {
#pragma unroll
    for (int e = 0; e < 4; e++) p[e] &= halves(keeps[e % 2][2 * a + e / 2]);
  }
};

template <int HD, int DROP>
__device__ __forceinline__ void attend(Bf16 *y, float *logSum, Bits *bits, const Bf16 *qkv, const int *first, const State *state, Masks masks, float keepScale, int tokens,
                                       int heads, int hd, float scale) {
  extern __shared__ float smem[] __attribute__((aligned(16)));
  constexpr int K = HD / 16, stage = 4 * tile * HD;
  const int lane = threadIdx_x % 32, g = lane / 4, t = lane % 4, warp = threadIdx_x / 32;
  const int tiles = (tokens + 15) / 16, groups = (tokens + 31) / 32, d = heads * hd;
  // The last queries see most keys: their blocks begin.
  const int blocks = (tiles + maxWarps - 1) / maxWarps, whole = blockIdx_x / blocks, share = blocks - 1 - blockIdx_x % blocks;
  const int b = whole / heads, head = whole % heads, r = share * maxWarps + warp;
  const u32 at = shared_at(smem);
  qkv += (long)b * tokens * 3 * d + head * hd, first += (long)b * tokens;
  const int end = 16 * maxWarps * (share + 1) < tokens ? 16 * maxWarps * (share + 1) : tokens;
  const int high = (end - 1) / tile, low = first[16 * maxWarps * share] / tile;
  bring<HD>(at, qkv, tile * high, tokens, d, hd);
  commit_copies();
  if (high > low) bring<HD>(at + stage, qkv, tile * (high - 1), tokens, d, hd);
  commit_copies();
  Queries<K> own;
  own.read(qkv, first, r < tiles ? r : tiles - 1, tokens, d, hd);
  if (DROP == MASKED || DROP == MADE) masks.instance = state->instances + b;
  const Compared limit(masks.below >> 16);
  if (DROP == MADE) bits += kept_at(whole, tiles, groups, 0, 0);
  const float unit2 = scale * LOG2E;
  const int i[2] = {last(16 * r + g, tokens), last(16 * r + g + 8, tokens)};
  const int lowest = shfl(own.from[0], 0) / 32, highest = shfl(own.from[1], 31);
  float o[2 * K][4] = {}, top[2] = {-__builtin_inff(), -__builtin_inff()}, sum[2] = {0, 0};
  int turn = 0; // the stage of tile m
#pragma unroll 1
  for (int m = high; m >= low; m--, turn = turn == stages - 1 ? 0 : turn + 1) {
    wait_copies<stages - 2>();
    sync();
    if (m - 2 >= low) bring<HD>(at + (turn == 0 ? stages - 1 : turn - 1) * stage, qkv, tile * (m - 2), tokens, d, hd);
    commit_copies();
    if (r >= tiles) continue;
    // Tiles whose first row is the row's first key.
    const Tiles<HD> keys(at + turn * stage - 2 * m * tile * HD), values(keys.at + 2 * tile * HD);
#pragma unroll 1
    for (int J = least(r / 2, 2 * m + 1); J >= 2 * m && J >= lowest; J--) {
      const Dropped dropped = DROP ? Dropped(masks, limit, head * tokens + 16 * r + g, groups, J, t) : Dropped{};
      if (DROP == MADE) bits[(r * groups + J) * 32] = (Bits)dropped.bits();
      float s[4][4], part[2];
      scores<HD>(s, own.q, keys, r, J, i, own.from, highest);
      if (J == r / 2) largest(top, s);
      powers(part, s, top, unit2);
      if (ballot(part[0] > huge || part[1] > huge)) {
        const float was[2] = {top[0], top[1]};
        scores<HD>(s, own.q, keys, r, J, i, own.from, highest);
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
#pragma unroll
      for (int a = 0; a < 2; a++) {
        u32 p[4], v[4];
        left(p, s, a);
        if (DROP) dropped.drop(p, a);
#pragma unroll
        for (int k = 0; k < K; k++) {
          values.turned(v, 32 * J + 16 * a, k);
          multiply(o[2 * k], p, v[0], v[1]);
          multiply(o[2 * k + 1], p, v[2], v[3]);
        }
      }
    }
  }
  if (r >= tiles) return;
#pragma unroll
  for (int x = 0; x < 2; x++) {
    const int row = 16 * r + g + 8 * x;
    const float total = quad_sum(sum[x]), inverse = keepScale * rcp(total);
    if (row >= tokens) continue;
    if (t == 0) logSum[(long)whole * tokens + row] = top[x] * scale + lg2(total) * LN2;
#pragma unroll
    for (int n = 0; n < 2 * K; n++)
      if (8 * n < hd) *(u32 *)(y + ((long)b * tokens + row) * d + head * hd + 8 * n + 2 * t) = bf16x2(o[n][2 * x] * inverse, o[n][2 * x + 1] * inverse);
  }
}

// LEAST blocks on a multiprocessor bound the registers.
#define ATTEND(NAME, HD, DROP, LEAST)                                                                                                            \
  KERNEL __launch_bounds__(32 * maxWarps, LEAST) NAME(Bf16 *y, float *logSum, Bits *bits, const Bf16 *qkv, const int *first, const State *state, u32 site, u32 threshold, \
                                                      float kept, ROUND_KEYS, int tokens, int heads, int hd, float scale) {                          \
    attend<HD, DROP>(y, logSum, bits, qkv, first, state, Masks{THE_ROUND_KEYS, site, threshold << 16, 0}, kept, tokens, heads, hd, scale);         \
  }
ATTEND(bf16_attention_long_16, 16, WHOLE, 3)
ATTEND(bf16_attention_long_32, 32, WHOLE, 2)
ATTEND(bf16_attention_long_64, 64, WHOLE, 2)
ATTEND(bf16_attention_long_drop_16, 16, MASKED, 2)
ATTEND(bf16_attention_long_drop_32, 32, MASKED, 2)
ATTEND(bf16_attention_long_drop_64, 64, MASKED, 1)
ATTEND(bf16_attention_long_made_16, 16, MADE, 3)
