// Causal attention over bf16 for long rows of narrow heads that a block holds and whose masks are
// kept: bf16_attention.cu with steps of 16 keys that overlap, as bf16_attention_piped.cuh has them.
//
// What a reader could break: `wholes` heads have a block each. Of every other one `parts` blocks
// share out the queries, and each holds all keys, so that a card's last blocks are short. Keys and
// values lie as turned_row says, in whole groups of 32: those past the end are zeros.
#include "bf16_attention_piped.cuh"

constexpr int HD = 16, warps = 4, least_blocks = 3;

// Shared: k and v [rows][HD]. rows is tokens in whole groups.
template <u32 RATE>
__device__ __forceinline__ void attend(Bf16 *y, float *logSum, u32 *bits, const Bf16 *qkv, const int *first, const State *state, Masks masks, float keepScale, int tokens,
                                       int heads, int hd, int wholes, int parts, float scale) {
  extern __shared__ float smem[] __attribute__((aligned(16)));
  const int lane = threadIdx_x % 32, after = blockIdx_x - wholes, whole = after < 0 ? blockIdx_x : wholes + after / parts, b = whole / heads, head = whole % heads;
  // This warp among all of the head's.
  const int warp = threadIdx_x / 32 + (after < 0 ? 0 : after % parts * warps), all = after < 0 ? warps : parts * warps;
  const int groups = (tokens + 31) / 32, rows = (tokens + 63) & ~63, tiles = (tokens + 15) / 16, d = heads * hd, pairs = (tokens + 63) / 64;
  const u32 at = shared_at(smem);
  const float unit2 = scale * LOG2E;
  qkv += (long)b * tokens * 3 * d + head * hd, first += (long)b * tokens;
  {
    const int p = threadIdx_x % 4, value = p / 2, c = p % 2;
    const Bf16 *from = qkv + (1 + value) * d + 8 * c;
#pragma unroll 4
    for (int j = threadIdx_x / 4; j < rows; j += 8 * warps) {
      const bool valid = 8 * c < hd && j < tokens;
      copy16(at + 2 * (value * rows * HD + piece<HD>(turned_row(j), c)), valid ? from + (long)j * 3 * d : qkv, valid);
    }
    commit_copies();
  }
  masks.of(state->instances + b);
  const Tiles<HD> keys(at), values(keys, at + 2 * rows * HD);
  // Warps take tiles from the last, which sees most keys, to the first, in turns there and back, so
  // that they have about as much to do.
  const int there = 2 * (all - warp) - 1, back = 2 * warp + 1;
  const int start = tiles - 1 - warp; // below 0: nothing for this warp
  Queries<1> next;
  next.read(qkv, first, start > 0 ? start : 0, tokens, d, hd);
  bits += kept_at(whole, 2 * groups, pairs, 0, 0) + lane;
  wait_copies<0>();
  sync();
#pragma unroll 1
  for (int r = start, step = there; r >= 0; r -= step, step = there + back - step) {
    Piped::Rows own(next, r, tokens, unit2); // the next tile's are under way while this one's are multiplied
    next.read(qkv, first, r - step > 0 ? r - step : 0, tokens, d, hd);
    const u32 draw = masks.draw(head * tokens + 16 * r + lane % 16, groups, lane / 16);
    u32 *to = bits + (long)r * pairs * 32;
#pragma unroll 1
    for (bool careful = false;; careful = true) {
      u32 word = masks.word<RATE>(draw + r / 4 * 2);
      Piped piped;
      bool under_way = false;
      auto take = [&](auto edge, int P, u32 pair) __attribute__((always_inline)) {
        const u32 at_pair = (u32)opaque((int)pair); // else a loop has a counter for every place it reads
        to[32 * P] = word;
        Word made(draw + 2 * P - 2);
        // after the first pair its own keys, which nobody uses
        piped.pair<decltype(edge)::value>(own, Tiles<HD>(keys, at_pair), Tiles<HD>(keys, at_pair + 2 * rows * HD), Tiles<HD>(keys, P > 0 ? at_pair - 128 * HD : at_pair), word, P, [&](int n) {
          if (n < 2 * shortRounds && n % 2) made.round(masks, n / 2);
          if (n >= 16 && n % 4 == 0) made.levels<RATE>(masks, n - 16, n - 12);
        });
        word = made.keep;
      };
      const int stop = own.lowest / 2, seen = (own.highest + 63) / 64; // at least stop
      int P = r / 4;
#pragma unroll 1
      while (P >= stop) {
        if (careful) {
          to[32 * P] = word;
          own.pair(keys, values, word, P, true);
          word = masks.word<RATE>(draw + 2 * P - 2);
          P--;
        } else if (P < r / 4 && P >= seen) {
          // Every query sees all keys of pairs seen..P.
          u32 at_pair = at + 128 * P * HD;
          if (!under_way) piped.begin<false>(own, Tiles<HD>(keys, at_pair), P), under_way = true;
#pragma unroll 1
          do take(Known<false>(), P, at_pair), at_pair -= 128 * HD;
          while (--P >= seen);
        } else {
          if (under_way) piped.end(own);
          piped.begin<true>(own, Tiles<HD>(keys, at + 128 * P * HD), P), under_way = true;
          take(Known<true>(), P, at + 128 * P * HD);
          P--;
        }
      }
      if (under_way) piped.end(own), own.plainly();
      if (careful || !ballot(own.steep())) break;
      own.begin();
    }
    own.write(y + (long)b * tokens * d + head * hd, logSum + (long)whole * tokens, keepScale, tokens, d, hd);
  }
}

// RATE is that of dropout in 65,536ths, 0 for any: that of Masks.
#define ATTEND(NAME, RATE)                                                                                                                              \
  KERNEL __launch_bounds__(32 * warps, least_blocks) NAME(Bf16 *y, float *logSum, u32 *bits, const Bf16 *qkv, const int *first, const State *state, u32 site, \
                                                          float kept, DECIDED_BY, int tokens, int heads, int hd, int wholes, int parts, float scale) {  \
    attend<RATE>(y, logSum, bits, qkv, first, state, Masks{WHAT_DECIDES, site}, kept, tokens, heads, hd, wholes, parts, scale);                          \
  }
ATTEND(bf16_attention_piped_held_16, 0)
ATTEND(bf16_attention_piped_held_tenth_16, 6554)
