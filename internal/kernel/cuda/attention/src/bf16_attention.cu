// Causal attention over bf16, a warp or a few a head, `each` heads of an instance in a block. The
// loops it computes are those of kernel.CausalAttention.
//
// What a reader could break: a warp takes 16 queries at a time and goes over pairs of groups of 32
// keys from their own backwards. Queries past the end repeat the last one and are not written. Keys
// past the end of a head's rows are whatever follows them: finite numbers, whose probability is 0;
// hence the zeros after the last head.
#include "bf16_attention_held.cuh"

template <int HD, int DROP>
__device__ __forceinline__ void attend(Bf16 *y, float *logSum, u32 *bits, const Bf16 *qkv, const int *first, const State *state, Masks masks, float keepScale, int tokens,
                                       int heads, int hd, int each, float scale) {
  extern __shared__ float smem[] __attribute__((aligned(16)));
  constexpr int K = HD / 16;
  const int lane = threadIdx_x % 32, share = blockDim_x / 32 / each, warp = threadIdx_x / 32;
  const int blocks = heads / each, b = blockIdx_x / blocks, head0 = blockIdx_x % blocks * each, head = head0 + warp / share;
  const int rows = (tokens + 15) & ~15, d = heads * hd, groups = (tokens + 31) / 32, pairs = (tokens + 63) / 64;
  const u32 at = shared_at(smem);
  const float unit2 = scale * LOG2E;
  bring_keys<HD>(at, qkv + (long)b * tokens * 3 * d + head0 * hd, tokens, rows, d, hd, each);
  // Places in memory are worked out where they are used: kept, they spill.
  auto read = [&](Queries<K> &to, int tile) {
    const long instance = apart(b);
    to.read(qkv + instance * tokens * 3 * d + head * hd, first + instance * tokens, tile, tokens, d, hd);
  };
  if (DROP) masks.of(state->instances + b);
  const Tiles<HD> keys(at + 4 * (warp / share) * rows * HD), values(keys, keys.at + 2 * rows * HD);
  // A head's warps take its tiles from the last, which sees most keys, to the first, in turns there
  // and back, so that they have about as much to do.
  const int w = warp % share, there = 2 * (share - w) - 1, back = 2 * w + 1;
  const int start = rows / 16 - 1 - w; // below 0: nothing for this warp
  Queries<K> next;
  read(next, start > 0 ? start : 0);
  if (DROP == MADE) bits += kept_at(b * heads + head, 2 * groups, pairs, 0, 0) + lane;
  wait_copies<0>();
  sync();
#pragma unroll 1
  for (int r = start, step = there; r >= 0; r -= step, step = there + back - step) {
    Attending<HD, DROP != WHOLE> own(next, r, tokens, unit2); // the next tile's are under way while this one's are multiplied
    read(next, r - step > 0 ? r - step : 0);
    const u32 draw = masks.draw(head * tokens + 16 * r + lane % 16, groups, lane / 16);
#pragma unroll 1
    for (bool careful = false;; careful = true) {
#pragma unroll 1
      for (int P = r / 4; 2 * P + 1 >= own.lowest && P >= 0; P--) {
        u32 word = 0;
        if (DROP) word = masks.word(draw + 2 * P);
        if (DROP == MADE) bits[(r * pairs + P) * 32] = word;
        own.pair(keys, values, word, P, careful);
      }
      if (careful || !ballot(own.grown())) break;
      own.begin();
    }
    const int instance = apart(b);
    own.write(y + (long)instance * tokens * d + head * hd, logSum + ((long)instance * heads + head) * tokens, keepScale, tokens, d, hd);
  }
}

// WARPS are the most of a block; LEAST such blocks on a multiprocessor bound the registers.
#define ATTEND(NAME, HD, DROP, WARPS, LEAST)                                                                                                            \
  KERNEL __launch_bounds__(32 * WARPS, LEAST) NAME(Bf16 *y, float *logSum, u32 *bits, const Bf16 *qkv, const int *first, const State *state, u32 site, \
                                                      float kept, DECIDED_BY, int tokens, int heads, int hd, int each, float scale) {                \
    attend<HD, DROP>(y, logSum, bits, qkv, first, state, Masks{WHAT_DECIDES, site}, kept, tokens, heads, hd, each, scale);   \
  }
ATTEND(bf16_attention_16, 16, WHOLE, 6, 4)
ATTEND(bf16_attention_32, 32, WHOLE, 4, 4)
ATTEND(bf16_attention_64, 64, WHOLE, 4, 3)
ATTEND(bf16_attention_drop_16, 16, MASKED, 6, 4)
ATTEND(bf16_attention_drop_32, 32, MASKED, 4, 4)
ATTEND(bf16_attention_drop_64, 64, MASKED, 4, 3)
ATTEND(bf16_attention_made_16, 16, MADE, 6, 3)
