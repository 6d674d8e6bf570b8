// The gradient of causal attention over bf16 for rows too long to hold, a block or a few a head of
// an instance. The loops it computes are those of kernel.CausalAttentionGrad.
//
// What a reader could break: the block goes over blocks of 32 keys a warp; a warp's dk and dv are
// sums in its registers over the chunks of 32 queries that see its keys, from the keys' own chunk
// on. So at step s of such a pass warp w has chunk C0 + w + s: no two warps have the same one, and
// a chunk goes through the warps from the last to the first, one step each. Its dq is a sum in
// shared memory that the warp of the step adds to. Warp 0 ends a chunk's pass: it writes dq, or
// leaves it in `wide` for the next pass. Where heads are too few for a card, several blocks share a
// head's passes out, each with sums of its own, which bf16_attention_long_queries adds up. So every
// sum has one order. Chunks lie in a ring, `slots` of them; a step's barrier stands before the copy
// of a chunk into the slot of the one that ended. Queries past the end are zeros with an infinite
// LogSum: their probabilities are 0. Keys past the end are zeros, and lie after every query.
#include "bf16_attention_steps.cuh"

constexpr int group = 32, ahead = 2; // keys and queries of a chunk; chunks brought before their use

// The numbers of a chunk's queries, as bf16_attention_stats leaves them: logSum·log2 e, where their
// sequences begin, and -D/keepScale with D = dy·y, of two queries twice, as Seen has them.
struct alignas(16) Stats {
  float logs[group];
  int first[group];
  float none[group / 2][4];
};

// Each thread a query of a head; chunks are the head's.
KERNEL __launch_bounds__(256) bf16_attention_stats(Stats *stats, const Bf16 *dy, const Bf16 *y, const float *logSum, const int *first, float keepScale, int chunks, int tokens,
                                                   int heads, int hd, int count) {
  const int e = blockIdx_x * 256 + threadIdx_x, rows = group * chunks;
  if (e >= count) return;
  const int h = e % heads, i = e / heads % rows, b = e / heads / rows;
  float log = 1e30f, mean = 0;
  int from = i;
  if (i < tokens) {
    const long at = ((long)b * tokens + i) * heads * hd + h * hd;
    float sum = 0;
    for (int c = 0; c < hd; c += 8) {
      const u4 v = *(const u4 *)(dy + at + c), w = *(const u4 *)(y + at + c);
      sum += (dot2(v.x, w.x) + dot2(v.y, w.y)) + (dot2(v.z, w.z) + dot2(v.w, w.w));
    }
    log = logSum[((long)b * heads + h) * tokens + i] * LOG2E, mean = -sum * rcp(keepScale), from = first[(long)b * tokens + i];
  }
  Stats &chunk = stats[((long)b * heads + h) * chunks + i / group];
  chunk.logs[i % group] = log, chunk.first[i % group] = from;
  float *none = chunk.none[i % group / 2] + i % 2;
  none[0] = none[2] = mean;
}

// hold4 writes to shared memory; of a plain store and of one to global memory clang makes one.
__device__ __forceinline__ void hold4(u32 at, f4 v) { asm volatile("st.shared.v4.f32 [%0], {%1,%2,%3,%4};" ::"r"(at), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w) : "memory"); }

// Names are those of bf16_attention_grad.cu. Shared: slots of q, dy [32][HD] | stats [32] | dq
// [32·HD] | masks [2][32·W/2], then each warp's k, v [32][HD]. wide: dq [chunks·32·HD] of every
// share.
template <int HD, int W, int DROP>
__device__ __forceinline__ void attend_grad(Bf16 *dqkv, const Bf16 *dy, const Stats *stats, float *wide, const u32 *bits, const Bf16 *qkv, const State *state, Masks masks,
                                            float keepScale, int tokens, int heads, int hd, int shares, float scale) {
  extern __shared__ float smem[] __attribute__((aligned(16)));
  constexpr int K = HD / 16, slots = W + ahead, numbers = 128 * HD, sums = numbers + 512, kept = sums + 128 * HD, slot = kept + (HD == 16 ? 128 * W : 0);
  const int lane = threadIdx_x % 32, warp = threadIdx_x / 32, g = lane / 4, t = lane % 4;
  const int whole = blockIdx_x / shares, share = blockIdx_x % shares, b = whole / heads, head = whole % heads, d = heads * hd, chunks = (tokens + group - 1) / group, pairs = (tokens + 63) / 64;
  qkv += (long)b * tokens * 3 * d + head * hd, dqkv += (long)b * tokens * 3 * d + head * hd, dy += (long)b * tokens * d + head * hd;
  stats += (long)whole * chunks, wide += (long)blockIdx_x * chunks * group * HD;
  const u32 at = shared_at(smem), mine = at + slots * slot + warp * 128 * HD;
  if (DROP == MASKED) masks.instance = state->instances + b;
  if (DROP == KEPT) bits += kept_at(whole, 2 * chunks, pairs, 0, 0);
  // begins is the first key that a chunk sees.
  auto begins = [&](int c) { return c < chunks ? stats[c].first[0] : 0; };
  // bring starts the copy of a chunk by the lanes of a warp; its dq begins with zeros where it is
  // fresh.
  auto bring = [&](int c, u32 to, int C0, bool fresh) {
    if (c >= chunks) return;
    constexpr int across = HD / 8;
    const int column = lane % across, j0 = lane / across;
    const bool inside = 8 * column < hd;
    const Bf16 *q = qkv + ((long)group * c + j0) * 3 * d + 8 * column, *g = dy + ((long)group * c + j0) * d + 8 * column;
#pragma unroll
    for (int j = 0; j < group; j += 32 / across) {
      const bool valid = inside && group * c + j0 + j < tokens;
      const u32 place = to + 2 * piece<HD>(j0 + j, column);
      copy16(place, valid ? q + (long)j * 3 * d : qkv, valid), copy16(place + 2 * group * HD, valid ? g + (long)j * d : qkv, valid);
    }
    const float *sum = wide + (long)c * group * HD + 4 * lane;
#pragma unroll
    for (int n = 0; n < group * HD / 4; n += 32) copy16(to + sums + 16 * (n + lane), (const Bf16 *)(sum + 4 * n), !fresh);
    copy16(to + numbers + 16 * lane, (const Bf16 *)((const float *)(stats + c) + 4 * lane), true);
    if (DROP == KEPT)
#pragma unroll
      for (int x = 0; x < 2; x++)
#pragma unroll
        for (int n = 0; n < 4 * W; n += 32) {
          const int e = n + lane;
          const bool valid = C0 / 2 + e / 8 < pairs;
          if (e < 4 * W) copy16(to + kept + 64 * W * x + 16 * e, (const Bf16 *)(bits + (valid ? ((2 * c + x) * pairs + C0 / 2) * 32 + 4 * e : 0)), valid);
        }
  };
  const Lines lines = lines_of<HD>(16);
  const u32 diagonal = g / 2 == t ? g % 2 ? 0x3c000000u : 0x3c00u : 0;
  // The unit matrix in fp16; its zeros come from a parameter, which no compiler knows.
  const u32 zero = (u32)tokens >> 31, one[4] = {diagonal, zero, 2 * zero, diagonal | zero};
  const float unit2 = scale * LOG2E, back = scale * keepScale;
#pragma unroll 1
  for (int C0 = W * share; C0 < chunks; C0 += W * shares) {
    const int J = C0 + warp, before = group * (C0 - W * shares + W); // where keys of the pass before end
    wait_copies<0>();
    sync(); // ring, keys and values are read
#pragma unroll
    for (int p = lane; p < 2 * group * HD / 8; p += 32) {
      const int value = p / (group * HD / 8), j = p / (HD / 8) % group, c = p % (HD / 8);
      const bool valid = 8 * c < hd && group * J + j < tokens;
      copy16(mine + 2 * (value * group * HD + piece<HD>(j, c)), valid ? qkv + (long)(group * J + j) * 3 * d + (1 + value) * d + 8 * c : qkv, valid);
    }
    bring(J, at + warp * slot, C0, begins(J) >= before);
    if (warp == W - 1) bring(C0 + W, at + W * slot, C0, begins(C0 + W) >= before);
    commit_copies();
    int coming = warp == 0 ? begins(C0 + W + 1) : 0;
    // Slots: of the pass's first chunk that is under way, and of this warp's; whose turn it is to
    // bring.
    u32 oldest = 0, place = warp * slot;
    int turn = 0;
    const Own<HD> own(mine, mine + 2 * group * HD);
    wait_copies<0>();
    syncwarp();
    Gradient<HD, DROP != WHOLE> grad;
#pragma unroll 1
    for (int step = 0; C0 + step < chunks; step++) {
      wait_copies<0>();
      sync();
      const Stats *lowest = (const Stats *)((const char *)smem + oldest + numbers);
      if (lowest->first[0] >= group * (C0 + W)) break; // no later query sees these keys
      // The chunk after the next, by every warp in turn, where the one before the oldest was.
      if (turn == warp) bring(C0 + step + W + 1, at + (oldest == 0 ? (slots - 1) * slot : oldest - slot), C0, coming >= before), commit_copies();
      turn = turn == W - 1 ? 0 : turn + 1;
      if (turn == warp) coming = begins(C0 + step + W + 2);
      const int c = J + step;
      const u32 own_place = place;
      oldest = oldest == (slots - 1) * slot ? 0 : oldest + slot, place = place == (slots - 1) * slot ? 0 : place + slot;
      if (c >= chunks) continue;
      const Stats *rows = (const Stats *)((const char *)smem + own_place + numbers);
      const bool sees = rows->first[0] < group * J + group;
      if (!sees && warp) continue;
      u32 word = 0;
      if (DROP == MASKED && sees) word = masks.word(masks.draw(head * tokens + group * c + lane, chunks, J));
      auto tile = [&](int x) {
        const int r = 2 * c + x;
        float dq[2 * K][4];
        const float *partial = (const float *)((const char *)smem + own_place + sums) + x * 16 * HD + lane * 4;
#pragma unroll
        for (int n = 0; n < 2 * K; n++) unpack(dq[n], load4(partial + n * 128));
        if (sees) {
          Seen seen;
#pragma unroll
          for (int y = 0; y < 2; y++) {
            const f2 log = *(const f2 *)(rows->logs + 16 * x + 8 * y + 2 * t);
            seen.logSum[y][0] = log.x, seen.logSum[y][1] = log.y;
            unpack(seen.none[y], load4(rows->none[8 * x + 4 * y + t]));
            if (DROP == KEPT) {
              const u2 w = *(const u2 *)((const char *)smem + own_place + kept + 64 * W * x + 64 * warp + 32 * y + 8 * t);
              seen.words[y][0] = w.x, seen.words[y][1] = w.y;
            }
          }
          if (DROP == MASKED)
#pragma unroll
            for (int e = 0; e < 4; e++) seen.words[e / 2][e % 2] = (u32)shfl((int)word, 16 * x + e / 2 * 8 + 2 * t + e % 2);
          auto hidden = [&](float (&s)[2][2][4]) {
            int from[2][2];
#pragma unroll
            for (int e = 0; e < 4; e++) from[e / 2][e % 2] = rows->first[16 * x + e / 2 * 8 + 2 * t + e % 2];
            hide(s, from, 16 * r, group * J);
          };
          const u32 queries = at + own_place + 32 * x * HD;
          grad.add(dq, own, queries, queries + 2 * group * HD, lines, seen, one, unit2, c == J || rows->first[16 * x + 15] > group * J, hidden);
        }
        if (warp == 0 && step < W && shares == 1) write<2 * K>(dqkv, dq, back, 16 * r, tokens, d, hd);
        else
#pragma unroll
          for (int n = 0; n < 2 * K; n++) {
            if (warp != 0) hold4(at + own_place + sums + 64 * x * HD + 16 * lane + 512 * n, pack(dq[n]));
            else store4(wide + (long)r * 16 * HD + lane * 4 + n * 128, pack(dq[n]));
          }
      };
      // A second tile past the end is zeros, and no bits of it are written.
#pragma unroll 1
      for (int x = 0; x < 2; x++) tile(x);
    }
    if (J < chunks)
#pragma unroll
      for (int a = 0; a < 2; a++) {
        write<2 * K>(dqkv + d, grad.dk[a], back, group * J + 16 * a, tokens, d, hd);
        write<2 * K>(dqkv + 2 * d, grad.dv[a], keepScale, group * J + 16 * a, tokens, d, hd);
      }
  }
}

// add_queries adds up the shares' dq, a warp a tile, in the order of shares. A share has seen a
// chunk where the last of its passes that begins by the chunk has.
template <int HD>
__device__ __forceinline__ void add_queries(Bf16 *dqkv, const Stats *stats, const float *wide, float back, int tokens, int heads, int hd, int shares, int W, int count) {
  constexpr int K = HD / 16;
  const int e = blockIdx_x * 8 + threadIdx_x / 32, lane = threadIdx_x % 32, d = heads * hd, tiles = (tokens + 15) / 16, chunks = (tokens + group - 1) / group;
  if (e >= count) return;
  const int whole = e / tiles, r = e % tiles, c = r / 2, b = whole / heads, head = whole % heads;
  const int begin = stats[(long)whole * chunks + c].first[0];
  float dq[2 * K][4] = {};
  for (int share = 0; share < shares && share <= c / W; share++) {
    const int pass = (c / W - share) / shares * shares + share;
    if (begin >= group * W * (pass + 1)) continue;
    const float *from = wide + (((long)whole * shares + share) * chunks * group + 16 * r) * HD + lane * 4;
#pragma unroll
    for (int n = 0; n < 2 * K; n++) unpack(dq[n], pack(dq[n]) + load4(from + n * 128));
  }
  write<2 * K>(dqkv + (long)b * tokens * 3 * d + head * hd, dq, back, 16 * r, tokens, d, hd);
}

#define ADD_QUERIES(NAME, HD)                                                                                                                    \
  KERNEL __launch_bounds__(256) NAME(Bf16 *dqkv, const Stats *stats, const float *wide, float back, int tokens, int heads, int hd, int shares, int warps, int count) { \
    add_queries<HD>(dqkv, stats, wide, back, tokens, heads, hd, shares, warps, count);                                                          \
  }
ADD_QUERIES(bf16_attention_long_queries_16, 16)
ADD_QUERIES(bf16_attention_long_queries_32, 32)
ADD_QUERIES(bf16_attention_long_queries_64, 64)

// W warps a block; LEAST blocks on a multiprocessor bound the registers.
#define ATTEND_GRAD(NAME, HD, W, DROP, LEAST)                                                                                                    \
  KERNEL __launch_bounds__(32 * W, LEAST) NAME(Bf16 *dqkv, const Bf16 *dy, const Stats *stats, float *wide, const u32 *bits, const Bf16 *qkv, const State *state, u32 site, \
                                               float kept, DECIDED_BY, int tokens, int heads, int hd, int shares, float scale) {               \
    attend_grad<HD, W, DROP>(dqkv, dy, stats, wide, bits, qkv, state, Masks{WHAT_DECIDES, site, 0}, kept, tokens, heads, hd, shares, scale); \
  }
ATTEND_GRAD(bf16_attention_long_grad_16, 16, 8, WHOLE, 2)
ATTEND_GRAD(bf16_attention_long_grad_32, 32, 8, WHOLE, 1)
ATTEND_GRAD(bf16_attention_long_grad_64, 64, 4, WHOLE, 1)
ATTEND_GRAD(bf16_attention_long_grad_drop_16, 16, 8, MASKED, 2)
ATTEND_GRAD(bf16_attention_long_grad_drop_32, 32, 8, MASKED, 1)
ATTEND_GRAD(bf16_attention_long_grad_drop_64, 64, 4, MASKED, 1)
ATTEND_GRAD(bf16_attention_long_grad_kept_16, 16, 8, KEPT, 2)
