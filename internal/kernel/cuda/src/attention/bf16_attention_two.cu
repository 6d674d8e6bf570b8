// Causal attention over bf16 for long rows of narrow heads that a block holds: bf16_attention.cu
// with two tiles of 16 queries a warp, r and r+1, r even. Their queries see the same groups, so
// that what is read of keys and values serves both, and one tile's products and masks hide behind
// the other's powers.
//
// What a reader could break: it takes 168 registers. With 128 and more warps ptxas puts products,
// powers and masks one after the other, and a warp waits for each. Where the second tile lies
// past the end its queries repeat the last one, as those of a tile that is not whole: its masks
// are written all the same, and nothing else.
#include "bf16_attention_held.cuh"

// whole2 takes pair P for the two tiles of a warp, which every query of both sees.
template <int HD, bool DROP, class NEXT>
__device__ __forceinline__ void whole2(Attending<HD, DROP> (&rows)[2], const Tiles<HD> &keys, const Tiles<HD> &values, const u32 (&word)[2], int P, NEXT &&next) {
  constexpr int K = HD / 16;
  using A = Attending<HD, DROP>;
#pragma unroll
  for (int half = 0; half < 2; half++) {
    u32 p[2][2][4];
#pragma unroll
    for (int a = 0; a < 2; a++) {
      float s[2][2][4];
#pragma unroll
      for (int k = 0; k < K; k++) {
        u32 m[4];
        keys.right(m, 64 * P + 32 * half + 16 * a, k);
#pragma unroll
        for (int x = 0; x < 2; x++)
          if (k == 0) multiply(s[x][0], rows[x].base, rows[x].q[k], m[0], m[1]), multiply(s[x][1], rows[x].base, rows[x].q[k], m[2], m[3]);
          else multiply(s[x][0], rows[x].q[k], m[0], m[1]), multiply(s[x][1], rows[x].q[k], m[2], m[3]);
      }
#pragma unroll
      for (int x = 0; x < 2; x++) {
#pragma unroll
        for (int n = 0; n < 2; n++)
#pragma unroll
          for (int e = 0; e < 4; e++) {
            asm volatile("ex2.approx.ftz.f32 %0, %1;" : "=f"(s[x][n][e]) : "f"(s[x][n][e]));
            if (e % 2) next(32 * half + 16 * a + 8 * x + 4 * n + e);
          }
        p[x][a][0] = bf16x2(s[x][0][0], s[x][0][1]), p[x][a][1] = bf16x2(s[x][0][2], s[x][0][3]), p[x][a][2] = bf16x2(s[x][1][0], s[x][1][1]), p[x][a][3] = bf16x2(s[x][1][2], s[x][1][3]);
        multiply(rows[x].sum, p[x][a], ones, ones);
      }
    }
    if (DROP)
#pragma unroll
      for (int x = 0; x < 2; x++) {
        const typename A::Spread spread(word[x], half);
        spread.drop(p[x][0], 0), spread.drop(p[x][1], 1);
      }
#pragma unroll
    for (int a = 0; a < 2; a++)
#pragma unroll
      for (int k = 0; k < K; k++) {
        u32 m[4];
        values.turned(m, 64 * P + 32 * half + 16 * a, k);
#pragma unroll
        for (int x = 0; x < 2; x++) multiply(rows[x].o[2 * k], p[x][a], m[0], m[1]), multiply(rows[x].o[2 * k + 1], p[x][a], m[2], m[3]);
      }
  }
}

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
  // A head's warps take its tiles two by two, from the last, which see most keys, to the first, in
  // turns there and back, so that they have about as much to do.
  const int w = warp % share, there = 2 * (share - w) - 1, back = 2 * w + 1;
  const int start = (rows / 16 + 1) / 2 - 1 - w; // below 0: nothing for this warp
  Queries<K> next[2];
  const int most = rows / 16 - 1;
  read(next[0], start > 0 ? 2 * start : 0), read(next[1], least(start > 0 ? 2 * start + 1 : 1, most));
  if (DROP == MADE) bits += kept_at(b * heads + head, 2 * groups, pairs, 0, 0) + lane;
  wait_copies<0>();
  sync();
#pragma unroll 1
  for (int R = start, step = there; R >= 0; R -= step, step = there + back - step) {
    const int r = 2 * R;
    Attending<HD, DROP != WHOLE> own[2] = {{next[0], r, tokens, unit2}, {next[1], r + 1, tokens, unit2}};
    read(next[0], R - step > 0 ? 2 * (R - step) : 0), read(next[1], least(R - step > 0 ? 2 * (R - step) + 1 : 1, most));
    const u32 draw[2] = {masks.draw(head * tokens + 16 * r + lane % 16, groups, lane / 16), masks.draw(head * tokens + 16 * r + 16 + lane % 16, groups, lane / 16)};
#pragma unroll 1
    for (bool careful = false;; careful = true) {
      u32 word[2] = {};
      if (DROP) word[0] = masks.word(draw[0] + r / 4 * 2), word[1] = masks.word(draw[1] + r / 4 * 2);
#pragma unroll 1
      for (int P = r / 4; 2 * P + 1 >= own[0].lowest && P >= 0; P--) {
        if (DROP == MADE) bits[(r * pairs + P) * 32] = word[0], bits[((r + 1) * pairs + P) * 32] = word[1];
        if (own[0].sees(P, P) && 64 * P >= own[1].highest && !careful) {
          Word made[2] = {draw[0] + 2 * P - 2, draw[1] + 2 * P - 2};
          whole2<HD, DROP != WHOLE>(own, keys, values, word, P, [&](int n) {
            if (DROP == WHOLE) return;
            const int x = n / 2 % 2;
            n = n / 4 * 2 + 1;
            if (n < 28 && n % 4 == 3) made[x].round(masks, n / 4);
            if (n == 29 || n == 31) made[x].levels(masks, n == 29 ? 0 : 8);
          });
          if (DROP) word[0] = made[0].keep, word[1] = made[1].keep;
          continue;
        }
#pragma unroll
        for (int x = 0; x < 2; x++) {
          own[x].pair(keys, values, word[x], P, true);
          if (DROP) word[x] = masks.word(draw[x] + 2 * P - 2);
        }
      }
      if (careful || !ballot(own[0].grown() || own[1].grown())) break;
      own[0].begin(), own[1].begin();
    }
    const int instance = apart(b);
#pragma unroll
    for (int x = 0; x < 2; x++) own[x].write(y + (long)instance * tokens * d + head * hd, logSum + ((long)instance * heads + head) * tokens, keepScale, tokens, d, hd);
  }
}

// WARPS are those of a block; LEAST such blocks on a multiprocessor bound the registers.
#define ATTEND(NAME, HD, DROP, WARPS, LEAST)                                                                                                            \
  KERNEL __launch_bounds__(32 * WARPS, LEAST) NAME(Bf16 *y, float *logSum, u32 *bits, const Bf16 *qkv, const int *first, const State *state, u32 site, \
                                                      float kept, DECIDED_BY, int tokens, int heads, int hd, int each, float scale) {                \
    attend<HD, DROP>(y, logSum, bits, qkv, first, state, Masks{WHAT_DECIDES, site}, kept, tokens, heads, hd, each, scale);   \
  }
ATTEND(bf16_attention_two_made_16, 16, MADE, 4, 3)
