// Causal attention over bf16 for rows too long to hold: a block takes 16 queries a warp and streams
// the keys and values that they see through shared memory, from their own backwards. The loops it
// computes are those of kernel.CausalAttention.
//
// What a reader could break: every warp of a block waits for every tile of keys, also for those
// that it does not see and where it has no queries at all. Keys past the end are zeros, which no
// query sees.
#include "bf16_attention_steps.cuh"

constexpr int maxWarps = 8, tile = 128, stages = 3; // tile: keys brought at a time, two pairs of groups

// sync_any is sync(), and tells whether any thread says so.
__device__ __forceinline__ bool sync_any(bool p) {
  u32 r;
  asm volatile("{.reg .pred q; setp.ne.u32 q, %1, 0; bar.red.or.pred q, 0, q; selp.u32 %0, 1, 0, q;}" : "=r"(r) : "r"((u32)p) : "memory");
  return r;
}

// Stages bring keys and values from tile to tile. A stage is k and v [tile][HD], in pieces of eight
// numbers, of which a thread has one in every `threads`.
template <int HD> struct Stages {
  static constexpr int threads = 32 * maxWarps, each = tile * HD / 8, across = HD / 8;
  const Bf16 *from;
  u32 to;
  int row, tokens, d; // row: of the thread's first piece in a tile
  bool inside;

  __device__ __forceinline__ Stages(u32 at, const Bf16 *qkv, int tokens, int d, int hd) : row(threadIdx_x / across % tile), tokens(tokens), d(d) {
    const int value = threadIdx_x / each, c = threadIdx_x % across;
    from = qkv + (long)row * 3 * d + (1 + value) * d + 8 * c, to = at + 2 * (value * tile * HD + piece<HD>(row, c)), inside = 8 * c < hd;
  }
  // bring starts the copy of tile m.
  __device__ __forceinline__ void bring(int stage, int m) const {
#pragma unroll
    for (int p = 0; p < 2 * each; p += threads) {
      const int value = p / each, j = p % each / across; // beyond the thread's first piece
      const bool valid = inside && tile * m + j + row < tokens;
      copy16(to + stage * 4 * tile * HD + 2 * (value * tile + j) * HD, valid ? from + (long)(tile * m + j) * 3 * d + value * d : from, valid);
    }
  }
};

template <int HD, int DROP>
__device__ __forceinline__ void attend(Bf16 *y, float *logSum, const Bf16 *qkv, const int *first, const State *state, Masks masks, float keepScale, int tokens,
                                       int heads, int hd, float scale) {
  extern __shared__ float smem[] __attribute__((aligned(16)));
  constexpr int K = HD / 16, stage = 4 * tile * HD;
  const int lane = threadIdx_x % 32, warp = threadIdx_x / 32;
  const int tiles = (tokens + 15) / 16, groups = (tokens + 31) / 32, d = heads * hd;
  // The last queries see most keys: their blocks begin.
  const int blocks = (tiles + maxWarps - 1) / maxWarps, whole = blockIdx_x / blocks, share = blocks - 1 - blockIdx_x % blocks;
  const int b = whole / heads, head = whole % heads, r = share * maxWarps + warp;
  const u32 at = shared_at(smem);
  const float unit2 = scale * LOG2E;
  qkv += (long)b * tokens * 3 * d + head * hd, first += (long)b * tokens;
  const int end = 16 * maxWarps * (share + 1) < tokens ? 16 * maxWarps * (share + 1) : tokens;
  const int high = (end - 1) / tile, low = first[16 * maxWarps * share] / tile;
  const Stages<HD> ring(at, qkv, tokens, d, hd);
  auto start = [&] {
    ring.bring(0, high);
    commit_copies();
    if (high > low) ring.bring(1, high - 1);
    commit_copies();
  };
  start();
  Queries<K> own;
  own.read(qkv, first, r < tiles ? r : tiles - 1, tokens, d, hd);
  if (DROP) masks.of(state->instances + b);
  const u32 draw = masks.draw(head * tokens + 16 * r + lane % 16, groups, lane / 16);
  Attending<HD, DROP != WHOLE> rows(own, r, tokens, unit2);
#pragma unroll 1
  for (bool careful = false;; careful = true) {
    u32 word = DROP ? masks.word(draw + r / 4 * 2) : 0;
    int turn = 0; // the stage of tile m
#pragma unroll 1
    for (int m = high; m >= low; m--, turn = turn == stages - 1 ? 0 : turn + 1) {
      wait_copies<stages - 2>();
      sync();
      if (m - 2 >= low) ring.bring(turn == 0 ? stages - 1 : turn - 1, m - 2);
      commit_copies();
      if (r >= tiles || 2 * m > r / 4 || 4 * m + 3 < rows.lowest) continue;
      // Tiles whose first row is the row's first key.
      const Tiles<HD> keys(at + turn * stage - 2 * m * tile * HD), values(keys, keys.at + 2 * tile * HD);
      if (rows.sees(2 * m, 2 * m + 1) && !careful) {
        // Without a branch between the pairs. The next one's masks are made between the powers of
        // this, which wait for another unit.
#pragma unroll
        for (int P = 2 * m + 1, h = 0; h < 2; P--, h++) {
          Word made(draw + 2 * P - 2);
          rows.whole(keys, values, word, P, [&](int n) {
            if (DROP == WHOLE) return;
            if (n < 28 && n % 4 == 3) made.round(masks, n / 4);
            if (n == 29 || n == 31) made.levels(masks, n == 29 ? 0 : 8, n == 29 ? 8 : 16);
          });
          if (DROP) word = made.keep;
        }
        continue;
      }
#pragma unroll 1
      for (int P = least(r / 4, 2 * m + 1); P >= 2 * m && 2 * P + 1 >= rows.lowest; P--) {
        rows.pair(keys, values, word, P, careful);
        if (DROP) word = masks.word(draw + 2 * P - 2);
      }
    }
    // One warp's rows that begin again begin the block's again.
    if (careful || !sync_any(r < tiles && rows.grown())) break;
    start(), rows.begin();
  }
  if (r < tiles) rows.write(y + (long)b * tokens * d + head * hd, logSum + (long)whole * tokens, keepScale, tokens, d, hd);
}

// LEAST blocks on a multiprocessor bound the registers.
#define ATTEND(NAME, HD, DROP, LEAST)                                                                                                            \
  KERNEL __launch_bounds__(32 * maxWarps, LEAST) NAME(Bf16 *y, float *logSum, const Bf16 *qkv, const int *first, const State *state, u32 site,            \
                                                      float kept, DECIDED_BY, int tokens, int heads, int hd, float scale) {                          \
    attend<HD, DROP>(y, logSum, qkv, first, state, Masks{WHAT_DECIDES, site}, kept, tokens, heads, hd, scale);         \
  }
ATTEND(bf16_attention_long_16, 16, WHOLE, 3)
ATTEND(bf16_attention_long_32, 32, WHOLE, 2)
ATTEND(bf16_attention_long_64, 64, WHOLE, 2)
ATTEND(bf16_attention_long_drop_16, 16, MASKED, 2)
ATTEND(bf16_attention_long_drop_32, 32, MASKED, 2)
ATTEND(bf16_attention_long_drop_64, 64, MASKED, 1)
