// Causal attention over bf16 for long rows of narrow heads whose masks are kept: a block takes 16
// queries a warp and streams the keys and values that they see through shared memory, from their
// own backwards. The loops it computes are those of kernel.CausalAttention.
//
// What a reader could break: no barrier of the block parts two tiles of keys. Tile i from the end
// lies in slot i%4 with two gates: `full`, where copies arrive, and `done`, where warps do that
// will not read it again. Every warp goes through all tiles, also those that it does not see and
// where it has no queries at all. Behind tile i a warp brings its part of tile i+3, whose slot
// tile i-1 has left; in tile i it reads the first keys of tile i+1 already. Rows that begin again
// number their tiles on. Keys past the end are zeros, which no query sees.
#include "bf16_attention_gates.cuh"
#include "bf16_attention_piped.cuh"

constexpr int maxWarps = 8, tile = 256, slots = 4, HD = 16, threads = 32 * maxWarps;

// sync_any is sync(), and tells whether any thread says so.
__device__ __forceinline__ bool sync_any(bool p) {
  u32 r;
  asm volatile("{.reg .pred q; setp.ne.u32 q, %1, 0; bar.red.or.pred q, 0, q; selp.u32 %0, 1, 0, q;}" : "=r"(r) : "r"((u32)p) : "memory");
  return r;
}

__device__ __forceinline__ int larger_of(int a, int b) { return a > b ? a : b; }

// Shared: slots of k and v [tile][HD] | gates.
template <u32 RATE>
__device__ __forceinline__ void attend(Bf16 *y, float *logSum, u32 *bits, const Bf16 *qkv, const int *first, const State *state, Masks masks, float keepScale, int tokens,
                                       int heads, int hd, int early, int late, float scale) {
  extern __shared__ float smem[] __attribute__((aligned(16)));
  constexpr int slot = 4 * tile * HD, pairs_of = tile / 64, across = HD / 8;
  const int lane = threadIdx_x % 32, warp = threadIdx_x / 32;
  const int tiles = (tokens + 15) / 16, groups = (tokens + 31) / 32, pairs = (tokens + 63) / 64, d = heads * hd;
  // The last queries see most keys: their blocks begin, in `early` heads one head after the other,
  // in the `late` others for all of them, so that a card's last blocks are short.
  const int blocks = (tiles + maxWarps - 1) / maxWarps, after = blockIdx_x - early * blocks;
  const int whole = after < 0 ? blockIdx_x / blocks : early + after % late, share = blocks - 1 - (after < 0 ? blockIdx_x % blocks : after / late);
  const int b = whole / heads, head = whole % heads, r = share * maxWarps + warp;
  const u32 at = shared_at(smem), full = at + slots * slot, done = full + 8 * slots;
  const float unit2 = scale * LOG2E;
  qkv += (long)b * tokens * 3 * d + head * hd, first += (long)b * tokens;
  const int end = 16 * maxWarps * (share + 1) < tokens ? 16 * maxWarps * (share + 1) : tokens;
  const int high = (end - 1) / tile, low = first[16 * maxWarps * share] / tile;
  if (threadIdx_x < 2 * slots) gate_new(full + 8 * threadIdx_x, threads);
  sync(); // the gates are there
  // bring starts the copies of tile m, the i-th, of which this thread has every `threads`-th
  // piece; a tile that may reach past the end is `last`.
  const int row = threadIdx_x / across, column = threadIdx_x % across;
  const u32 to = at + 2 * piece<HD>(turned_row(row), column);
  const bool inside = 8 * column < hd;
  auto bring = [&](auto last, u32 i, int m) __attribute__((always_inline)) {
    if (m < low) return;
    const Bf16 *from = qkv + d + 8 * column + (long)(tile * m + row) * 3 * d; // nothing is read where it is not valid
#pragma unroll
    for (int n = 0; n < 2 * tile; n += threads / across) {
      const int value = n / tile, j = n % tile;
      const bool valid = inside && (!decltype(last)::value || tile * m + j + row < tokens);
      copy16(to + i % slots * slot + 2 * (value * tile + j) * HD, from + (long)(3 * j + value) * d, valid);
    }
    gate_copies(full + 8 * (i % slots));
  };
  u32 i = 0;
  auto start = [&] { bring(Known<true>(), i, high), bring(Known<false>(), i + 1, high - 1), bring(Known<false>(), i + 2, high - 2); };
  start();
  Queries<1> own;
  own.read(qkv, first, r < tiles ? r : tiles - 1, tokens, d, hd);
  masks.of(state->instances + b);
  const u32 draw = masks.draw(head * tokens + 16 * r + lane % 16, groups, lane / 16);
  bits += kept_at(whole, 2 * groups, pairs, r, 0) + lane;
  Piped::Rows rows(own, r, tokens, unit2);
#pragma unroll 1
  for (bool careful = false;; careful = true) {
    u32 word = masks.word<RATE>(draw + r / 4 * 2);
    Piped piped;
    bool under_way = false;
#pragma unroll 1
    for (int m = high; m >= low; m--, i++) {
      if (m == high) gate_wait(full + 8 * (i % slots), i / slots & 1);
      if (m > low) gate_wait(full + 8 * ((i + 1) % slots), (i + 1) / slots & 1);
      const int top = pairs_of * m + pairs_of - 1; // the tile's last pair
      if (r < tiles && pairs_of * m <= r / 4 && 2 * top + 1 >= rows.lowest) {
        // keys and values of pair P; the next tile's last pair, or where there is none any.
        const Tiles<HD> own(at);
        auto pair_at = [&](int P) { return at + i % slots * slot + 128 * (P - pairs_of * m) * HD; };
        const u32 beyond = at + (m > low ? i + 1 : i) % slots * slot + 128 * (pairs_of - 1) * HD;
        auto take = [&](auto edge, int P, u32 pair) __attribute__((always_inline)) {
          const u32 keys = (u32)opaque((int)pair); // else a loop has a counter for every place it reads
          bits[32 * P] = word;
          Word made(draw + 2 * P - 2);
          piped.pair<decltype(edge)::value>(rows, Tiles<HD>(own, keys), Tiles<HD>(own, keys + 2 * tile * HD), Tiles<HD>(own, P > pairs_of * m ? keys - 128 * HD : beyond), word, P, [&](int n) {
            if (n < 2 * shortRounds && n % 2) made.round(masks, n / 2);
            if (n >= 16 && n % 4 == 0) made.levels<RATE>(masks, n - 16, n - 12);
          });
          word = made.keep;
        };
        const int stop = larger_of(pairs_of * m, rows.lowest / 2), seen = larger_of(stop, (rows.highest + 63) / 64);
        int P = least(r / 4, top);
#pragma unroll 1
        while (P >= stop) {
          if (careful) {
            bits[32 * P] = word;
            rows.pair(Tiles<HD>(own, pair_at(0)), Tiles<HD>(own, pair_at(0) + 2 * tile * HD), word, P, true);
            word = masks.word<RATE>(draw + 2 * P - 2);
            P--;
          } else if (P < r / 4 && P >= seen) {
            // Every query sees all keys of pairs seen..P.
            u32 keys = pair_at(P);
            if (!under_way) piped.begin<false>(rows, Tiles<HD>(own, keys), P), under_way = true;
#pragma unroll 1
            do take(Known<false>(), P, keys), keys -= 128 * HD;
            while (--P >= seen);
          } else {
            if (under_way) piped.end(rows);
            piped.begin<true>(rows, Tiles<HD>(own, pair_at(P)), P), under_way = true;
            take(Known<true>(), P, pair_at(P));
            P--;
          }
        }
      }
      gate_arrive(done + 8 * (i % slots));
      if (m - 3 >= low) {
        if (i > 0) gate_wait(done + 8 * ((i - 1) % slots), (i - 1) / slots & 1);
        bring(Known<false>(), i + 3, m - 3);
      }
    }
    if (under_way) piped.end(rows), rows.plainly();
    // One warp's rows that begin again begin the block's again.
    if (careful || !sync_any(r < tiles && rows.steep())) break;
    start(), rows.begin();
  }
  if (r < tiles) rows.write(y + (long)b * tokens * d + head * hd, logSum + (long)whole * tokens, keepScale, tokens, d, hd);
}

// RATE is that of dropout in 65,536ths, 0 for any: that of Masks.
#define ATTEND(NAME, RATE)                                                                                                                              \
  KERNEL __launch_bounds__(threads, 2) NAME(Bf16 *y, float *logSum, u32 *bits, const Bf16 *qkv, const int *first, const State *state, u32 site,         \
                                                 float kept, DECIDED_BY, int tokens, int heads, int hd, int early, int late, float scale) {             \
    attend<RATE>(y, logSum, bits, qkv, first, state, Masks{WHAT_DECIDES, site}, kept, tokens, heads, hd, early, late, scale);                            \
  }
ATTEND(bf16_attention_piped_16, 0)
ATTEND(bf16_attention_piped_tenth_16, 6554)
