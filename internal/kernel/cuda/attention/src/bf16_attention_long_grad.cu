// The gradient of causal attention over bf16 for rows too long to hold, a block or a few a head of
// an instance. The loops it computes are those of kernel.CausalAttentionGrad.
//
// What a reader could break: the block goes over blocks of 32 keys a warp; a warp's dk and dv are
// sums in its registers over the chunks of 32 queries that see its keys, from the keys' own chunk
// on. So at step s of such a pass warp w has chunk C0 + w + s, and a chunk goes through the warps
// from the last to the first. Its dq is a sum in shared memory that every warp adds to, after the
// warp behind it. Warp 0 ends a chunk's pass: it writes dq, or leaves it in `wide` for the next
// pass. `wholes` heads have a block each. Of each of the `rest`, which would not fill the card,
// `shares` blocks share the passes out, each with sums of its own, which
// bf16_attention_long_queries adds up. So every sum has one order. First shares, which have most
// to do, come before second ones.
//
// Chunks lie in a ring, `slots` of them: those of all passes follow each other there, each its
// turn. No barrier of the block holds a step or parts two passes: gates say that a chunk is
// there, and that a warp is done with it. A turn's chunk is brought where warp 0 is done with the
// turn before in its slot and, in a short pass, with the turn that left its sums in `wide`. A
// warp brings every W-th turn, before its own turn comes or when the slot is free. Only the warp
// that is first to take a chunk asks whether it is there: the others follow a warp that has
// asked.
//
// A gate has a phase for every turn of its slot and tells of the last phase or the one before:
// who asks must know that all phases before those are over. So warps arrive for chunks that they
// never see, those before their keys, only when their own chunk is there: then warp 0, and with
// it everybody, is done with the turns before in their slots. Whether a slot is free is asked
// once this warp's turn is past the one before in it. All lanes go the same way.
//
// Queries past the end are zeros with an infinite LogSum: their probabilities are 0. Keys past
// the end are zeros, and lie after every query.
#include "bf16_attention_gates.cuh"
#include "bf16_attention_steps.cuh"

constexpr int group = 32; // keys and queries of a chunk
// Slots beyond two for every warp: the last warp begins a pass 2·W - 1 turns before warp 0 does.
// A slot is asked for lag turns after it may be free, so that it mostly is.
template <int HD> constexpr int ahead = HD == 64 ? 1 : 2;
constexpr int lag = 2;

// A chunk's queries, as bf16_attention_rows leaves them: q times scale·log2 e and dy as they lie in
// shared memory; -logSum·log2 e and -D/keepScale with D = dy·y, of two queries twice, as Seen has
// them; where their sequences begin.
template <int HD> struct alignas(16) Chunk {
  Bf16 q[group * HD], dy[group * HD];
  float logs[group / 2][4], none[group / 2][4];
  int first[group];
};

// Each thread a query of a head, each warp a chunk; chunks are the head's.
template <int HD>
__device__ __forceinline__ void gather(Chunk<HD> *all, const Bf16 *qkv, const Bf16 *dy, const Bf16 *y, const float *logSum, const int *first, float unit2, float keepScale, int chunks,
                                       int tokens, int heads, int hd, int count) {
  const int e = blockIdx_x * 256 + threadIdx_x;
  if (e >= count) return;
  const int j = e % group, h = e / group % heads, i = e / (group * heads) % chunks * group + j, b = e / (group * heads) / chunks;
  Chunk<HD> &chunk = all[((long)b * heads + h) * chunks + i / group];
  const long token = (long)b * tokens + i;
  float log = -1e30f, sum = 0;
  int from = i;
  if (i < tokens) log = logSum[((long)b * heads + h) * tokens + i] * -LOG2E, from = first[token];
#pragma unroll
  for (int c = 0; c < HD; c += 8) {
    u4 q = {}, v = {};
    if (i < tokens && c < hd) {
      q = *(const u4 *)(qkv + token * 3 * heads * hd + h * hd + c), v = *(const u4 *)(dy + token * heads * hd + h * hd + c);
      const u4 w = *(const u4 *)(y + token * heads * hd + h * hd + c);
      sum += (dot2(v.x, w.x) + dot2(v.y, w.y)) + (dot2(v.z, w.z) + dot2(v.w, w.w));
    }
    *(u4 *)(chunk.q + piece<HD>(j, c / 8)) = u4{scaled(q.x, unit2), scaled(q.y, unit2), scaled(q.z, unit2), scaled(q.w, unit2)};
    *(u4 *)(chunk.dy + piece<HD>(j, c / 8)) = v;
  }
  const float mean = -sum * rcp(keepScale);
  chunk.logs[j / 2][j % 2] = chunk.logs[j / 2][2 + j % 2] = log;
  chunk.none[j / 2][j % 2] = chunk.none[j / 2][2 + j % 2] = mean;
  chunk.first[j] = from;
}
#define GATHER(NAME, HD)                                                                                                                        \
  KERNEL __launch_bounds__(256) NAME(Chunk<HD> *all, const Bf16 *qkv, const Bf16 *dy, const Bf16 *y, const float *logSum, const int *first, float scale, float keepScale, int chunks, \
                                     int tokens, int heads, int hd, int count) {                                                                \
    gather<HD>(all, qkv, dy, y, logSum, first, scale *LOG2E, keepScale, chunks, tokens, heads, hd, count);                                       \
  }
GATHER(bf16_attention_rows_32, 32)
GATHER(bf16_attention_rows_64, 64)

// gather_narrow is gather for heads of 16 columns: a block has a chunk of all heads of an instance,
// so that rows are read whole, eight columns a lane. Shared: dy·y [heads][32], in lines of 33.
constexpr int gatherers = 256;
__device__ __forceinline__ void gather_narrow(Chunk<16> *all, const Bf16 *qkv, const Bf16 *dy, const Bf16 *y, const float *logSum, const int *first, float unit2, float keepScale,
                                              int chunks, int tokens, int heads, int hd) {
  extern __shared__ float smem[] __attribute__((aligned(16)));
  const int b = blockIdx_x / chunks, begin = blockIdx_x % chunks * group, d = heads * hd;
  all += (long)b * heads * chunks + blockIdx_x % chunks;
#pragma unroll 2
  for (int e = threadIdx_x; e < 2 * group * heads; e += gatherers) {
    const int c = e % 2, h = e / 2 % heads, j = e / 2 / heads;
    const long token = (long)b * tokens + begin + j;
    u4 q = {}, v = {}, w = {};
    if (begin + j < tokens && 8 * c < hd) {
      q = *(const u4 *)(qkv + token * 3 * d + h * hd + 8 * c), v = *(const u4 *)(dy + token * d + h * hd + 8 * c);
      w = *(const u4 *)(y + token * d + h * hd + 8 * c);
    }
    float sum = (dot2(v.x, w.x) + dot2(v.y, w.y)) + (dot2(v.z, w.z) + dot2(v.w, w.w));
    sum += shfl_xor(sum, 1);
    Chunk<16> &chunk = all[(long)h * chunks];
    *(u4 *)(chunk.q + piece<16>(j, c)) = u4{scaled(q.x, unit2), scaled(q.y, unit2), scaled(q.z, unit2), scaled(q.w, unit2)};
    *(u4 *)(chunk.dy + piece<16>(j, c)) = v;
    if (c == 0) smem[33 * h + j] = sum;
  }
  sync();
#pragma unroll 1
  for (int e = threadIdx_x; e < group * heads; e += gatherers) {
    const int j = e % group, h = e / group, i = begin + j;
    Chunk<16> &chunk = all[(long)h * chunks];
    const float mean = -smem[33 * h + j] * rcp(keepScale);
    float log = -1e30f;
    int from = i;
    if (i < tokens) log = logSum[((long)b * heads + h) * tokens + i] * -LOG2E, from = first[(long)b * tokens + i];
    chunk.logs[j / 2][j % 2] = chunk.logs[j / 2][2 + j % 2] = log;
    chunk.none[j / 2][j % 2] = chunk.none[j / 2][2 + j % 2] = mean;
    chunk.first[j] = from;
  }
}
KERNEL __launch_bounds__(gatherers) bf16_attention_rows_16(Chunk<16> *all, const Bf16 *qkv, const Bf16 *dy, const Bf16 *y, const float *logSum, const int *first, float scale,
                                                          float keepScale, int chunks, int tokens, int heads, int hd) {
  gather_narrow(all, qkv, dy, y, logSum, first, scale *LOG2E, keepScale, chunks, tokens, heads, hd);
}

// hold4 writes to shared memory; of a plain store and of one to global memory clang makes one.
__device__ __forceinline__ void hold4(u32 at, f4 v) { asm volatile("st.shared.v4.f32 [%0], {%1,%2,%3,%4};" ::"r"(at), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w) : "memory"); }

// Names are those of bf16_attention_grad.cu. Shared: slots of a chunk | dq [32·HD] | masks
// [2][32·W/2] | gates: of the chunk's arrival, and of every warp's end with it; then each warp's k,
// v [32][HD] of two passes. wide: dq [chunks·32·HD] of every share.
template <int HD, int W, int DROP>
__device__ __forceinline__ void attend_grad(Bf16 *dqkv, const Chunk<HD> *all, float *wide, const u32 *bits, const Bf16 *qkv, const State *state, Masks masks,
                                            float keepScale, int tokens, int heads, int hd, int wholes, int rest, int split, float scale) {
  extern __shared__ float smem[] __attribute__((aligned(16)));
  constexpr int K = HD / 16, slots = 2 * W + ahead<HD>, sums = sizeof(Chunk<HD>), kept = sums + 128 * HD, gates = kept + (HD == 16 ? 128 * W : 0), slot = gates + (8 * (W + 1) + 15) / 16 * 16;
  static_assert(slot % 16 == 0, "slots of whole pieces");
  const int lane = threadIdx_x % 32, warp = threadIdx_x / 32, g = lane / 4, t = lane % 4;
  const int after = blockIdx_x - wholes, shares = after < 0 ? 1 : split, share = after < 0 ? 0 : after / rest, whole = after < 0 ? blockIdx_x : wholes + after % rest;
  const int b = whole / heads, head = whole % heads, d = heads * hd, chunks = (tokens + group - 1) / group, pairs = (tokens + 63) / 64;
  qkv += (long)b * tokens * 3 * d + head * hd, dqkv += (long)b * tokens * 3 * d + head * hd;
  all += (long)whole * chunks, wide += (long)blockIdx_x * chunks * group * HD;
  const u32 at = shared_at(smem);
  if (DROP == MASKED) masks.of(state->instances + b);
  if (DROP == KEPT) bits += kept_at(whole, 2 * chunks, pairs, 0, 0);
  // A row of one sequence: every query sees all keys up to its own, for `first` never falls.
  const bool plain = all[(tokens - 1) / group].first[(tokens - 1) % group] == 0;
  // ends is the first chunk from C0 on that sees no key of the pass of C0, if any.
  auto ends = [&](int C0) {
    int from = least(C0 + W, chunks), to = chunks;
    if (plain) return to;
#pragma unroll 1
    while (from < to) {
      const int mid = (from + to) / 2;
      if (all[mid].first[0] >= group * (C0 + W)) to = mid;
      else from = mid + 1;
    }
    return to;
  };
  const Lines lines = lines_of<HD>(16);
  const u32 diagonal = g / 2 == t ? g % 2 ? 0x3c000000u : 0x3c00u : 0;
  // The unit matrix in fp16; its zeros come from a parameter, which no compiler knows.
  const u32 zero = (u32)tokens >> 31, one[4] = {diagonal, zero, 2 * zero, diagonal | zero};
  const float back = scale * keepScale;
  // own_keys starts the copy of this warp's keys and values in the pass from chunk C0 on.
  auto own_keys = [&](int C0, u32 to) __attribute__((always_inline)) {
    if (C0 < chunks)
#pragma unroll
      for (int p = lane; p < 2 * group * HD / 8; p += 32) {
        const int value = p / (group * HD / 8), j = p / (HD / 8) % group, c = p % (HD / 8), row = group * (C0 + warp) + j;
        const bool valid = 8 * c < hd && row < tokens;
        copy16(to + 2 * (value * group * HD + piece<HD>(j, c)), valid ? qkv + (long)row * 3 * d + (1 + value) * d + 8 * c : qkv, valid);
      }
    commit_copies();
  };
  const int first = W * share;
  u32 mine = at + slots * slot + warp * 256 * HD;
  own_keys(first, mine);
#pragma unroll 1
  for (int n = threadIdx_x; n < slots * (W + 1); n += 32 * W) gate_new(at + n / (W + 1) * slot + gates + n % (W + 1) * 8, 32);
  // The next chunk that this warp brings: its turn, its pass, how many turns before it the pass
  // before had it, where its pass ends, and from which own turn on it is asked for.
  int next = warp, C1 = first, c1 = first + warp, since = 1 << 30, end1 = ends(first), due;
  auto settle = [&] {
#pragma unroll 1
    while (c1 >= end1 && C1 < chunks) {
      C1 += W * shares, since = end1 - C1, c1 += C1 - end1;
      if (C1 < chunks) end1 = ends(C1);
    }
    due = C1 < chunks ? next + warp + 1 + lag - slots : 1 << 30;
  };
  settle();
  sync(); // the gates are there
  const u32 gate0 = at + gates;
  u32 place = 0, parity = 0;
  int pos = 0; // this warp's turn; its slot and the parity of its phase
  auto advance = [&] {
    pos++;
    if (place == (slots - 1) * slot) place = 0, parity ^= 1;
    else place += slot;
  };
  // bring starts the copies of this warp's next chunks: those that are needed by its own turn, and
  // those whose slots are free.
  auto bring = [&]() __attribute__((always_inline)) {
#pragma unroll 1
    while (due <= pos) {
      const int index = next % slots, round = next / slots;
      const bool fresh = C1 == first || (plain ? 0 : all[c1].first[0]) >= group * (C1 - W * shares + W);
      // Warp 0 has ended the turn before in its slot, then the one that its sums so far come from:
      // in this order, for a gate tells of one phase after the other.
      auto over = [&](u32 gate, u32 phase) {
        if (!ballot(!gate_open(gate, phase))) return true; // all lanes alike
        if (next > pos) return false;
        gate_wait(gate, phase);
        return true;
      };
      if (round && !over(gate0 + index * slot + 8, round + 1 & 1)) break;
      if (!fresh && since < slots) {
        const int before = index - since;
        if (!over(gate0 + (before < 0 ? before + slots : before) * slot + 8, (before < 0 ? round + 1 : round) & 1)) break;
      }
      const u32 to = at + index * slot;
      const Bf16 *from = (const Bf16 *)(all + c1) + 8 * lane;
#pragma unroll
      for (int n = 0; n < sums; n += 512)
        if (n + 16 * lane < sums) copy16(to + n + 16 * lane, from + n / 2, true);
      const float *sum = wide + (long)c1 * group * HD + 4 * lane;
#pragma unroll
      for (int n = 0; n < group * HD / 4; n += 32) copy16(to + sums + 16 * (n + lane), (const Bf16 *)(fresh ? (const float *)all : sum + 4 * n), !fresh);
      if (DROP == KEPT)
#pragma unroll
        for (int x = 0; x < 2; x++)
#pragma unroll
          for (int n = 0; n < 4 * W; n += 32) {
            const int e = n + lane;
            const bool valid = C1 / 2 + e / 8 < pairs;
            if (e < 4 * W) copy16(to + kept + 64 * W * x + 16 * e, (const Bf16 *)(bits + (valid ? ((2 * c1 + x) * pairs + C1 / 2) * 32 + 4 * e : 0)), valid);
          }
      gate_copies(to + gates);
      next += W, c1 += W;
      settle();
    }
  };
#pragma unroll 1
  for (int C0 = first; C0 < chunks; C0 += W * shares) {
    const int J = C0 + warp, end = ends(C0);
    wait_copies<0>();
    syncwarp();
    const Own<HD> own(mine, mine + 2 * group * HD);
    const u32 other = 2 * (at + slots * slot + warp * 256 * HD) + 128 * HD - mine;
    own_keys(C0 + W * shares, other), mine = other;
    Gradient<HD, DROP != WHOLE> grad;
    // Chunks before the warp's keys: it arrives for them once its own is there, for then all warps
    // have ended the turns before in their slots.
    const u32 skipped = place;
    if (J >= chunks) {
      pos = 1 << 29; // what it still has to bring
      bring();
      break;
    }
#pragma unroll 1
    for (int n = 0; n < warp; n++) advance();
    bring();
    gate_wait(gate0 + place, parity);
#pragma unroll 1
    for (u32 n = skipped; n != place; n = n == (slots - 1) * slot ? 0 : n + slot) gate_arrive(gate0 + n + 8 * (warp + 1));
    bool open = true; // whether the chunk's gate was found open
#pragma unroll 1
    for (int c = J; c < end; c++) {
      bring();
      const u32 own_place = place;
      if (!open) gate_wait(gate0 + own_place + (warp != W - 1 ? 8 * (warp + 2) : 0), parity);
      advance();
      const Chunk<HD> *rows = (const Chunk<HD> *)((const char *)smem + own_place);
      int begin = 0, latest = 0;
      if (!plain) begin = rows->first[0], latest = rows->first[group - 1];
      const bool sees = begin < group * J + group;
      u32 word = 0;
      if (DROP == MASKED && sees) word = masks.word(masks.draw(head * tokens + group * c + lane, chunks, J));
      // load fills dq of tile x with what the warps after this one have of it, `leave` leaves it
      // for those before.
      auto load = [&](float (&dq)[2 * K][4], int x) __attribute__((always_inline)) {
        const float *partial = (const float *)((const char *)smem + own_place + sums) + x * 16 * HD + lane * 4;
#pragma unroll
        for (int n = 0; n < 2 * K; n++) unpack(dq[n], load4(partial + n * 128));
      };
      auto leave = [&](const float (&dq)[2 * K][4], int x) __attribute__((always_inline)) {
        const int r = 2 * c + x;
        if (warp == 0 && c < C0 + W && shares == 1) write<2 * K>(dqkv, dq, back, 16 * r, tokens, d, hd);
        else
#pragma unroll
          for (int n = 0; n < 2 * K; n++) {
            if (warp != 0) hold4(at + own_place + sums + 64 * x * HD + 16 * lane + 512 * n, pack(dq[n]));
            else store4(wide + (long)r * 16 * HD + lane * 4 + n * 128, pack(dq[n]));
          }
      };
      auto see = [&](Seen &seen, int x) __attribute__((always_inline)) {
#pragma unroll
        for (int y = 0; y < 2; y++) {
          unpack(seen.logs[y], load4(rows->logs[8 * x + 4 * y + t]));
          unpack(seen.none[y], load4(rows->none[8 * x + 4 * y + t]));
          if (DROP == KEPT) {
            const u2 w = *(const u2 *)((const char *)smem + own_place + kept + 64 * W * x + 64 * warp + 32 * y + 8 * t);
            seen.words[y][0] = w.x, seen.words[y][1] = w.y;
          }
        }
        if (DROP == MASKED)
#pragma unroll
          for (int e = 0; e < 4; e++) seen.words[e / 2][e % 2] = (u32)shfl((int)word, 16 * x + e / 2 * 8 + 2 * t + e % 2);
      };
      const u32 queries = at + own_place;
      // next looks whether the next chunk's gate is open already.
      auto look = [&] { open = gate_open(gate0 + place + (warp != W - 1 ? 8 * (warp + 2) : 0), parity); };
      if (HD == 16 && sees && c > J && latest <= group * J) {
        // Both tiles without a branch between, so that the one's products hide behind the other's.
        float dq[2][2 * K][4];
#pragma unroll
        for (int x = 0; x < 2; x++) {
          Seen seen;
          see(seen, x);
          grad.add(dq[x], own, queries + 32 * x * HD, queries + 32 * x * HD + 2 * group * HD, lines, seen, one, false, [](float (&)[2][2][4]) {}, [&] { load(dq[x], x); });
        }
        look();
        leave(dq[0], 0), leave(dq[1], 1);
      } else {
      // A second tile past the end is zeros, and no bits of it are written.
#pragma unroll 1
        for (int x = 0; x < 2; x++) {
          float dq[2 * K][4];
          auto before = [&]() __attribute__((always_inline)) { load(dq, x); };
          if (sees) {
            Seen seen;
            see(seen, x);
            auto hidden = [&](float (&s)[2][2][4]) {
              int from[2][2];
#pragma unroll
              for (int e = 0; e < 4; e++) from[e / 2][e % 2] = rows->first[16 * x + e / 2 * 8 + 2 * t + e % 2];
              hide(s, from, 32 * c + 16 * x, group * J);
            };
            grad.add(dq, own, queries + 32 * x * HD, queries + 32 * x * HD + 2 * group * HD, lines, seen, one, c == J || rows->first[16 * x + 15] > group * J, hidden, before);
          } else before();
          leave(dq, x);
        }
        look();
      }
      syncwarp();
      gate_arrive(gate0 + own_place + 8 * (warp + 1));
    }
    if (J < chunks)
#pragma unroll
      for (int a = 0; a < 2; a++) {
        write<2 * K>(dqkv + d, grad.dk[a], LN2 * keepScale, group * J + 16 * a, tokens, d, hd);
        write<2 * K>(dqkv + 2 * d, grad.dv[a], keepScale, group * J + 16 * a, tokens, d, hd);
      }
  }
  wait_copies<0>();
}

// add_queries adds up the shares' dq, a warp a tile of the heads that have any, in the order of
// shares. A share has seen a chunk where the last of its passes that begins by the chunk has.
template <int HD>
__device__ __forceinline__ void add_queries(Bf16 *dqkv, const Chunk<HD> *all, const float *wide, float back, int tokens, int heads, int hd, int wholes, int rest, int shares,
                                            int W, int count) {
  constexpr int K = HD / 16;
  const int e = blockIdx_x * 8 + threadIdx_x / 32, lane = threadIdx_x % 32, d = heads * hd, tiles = (tokens + 15) / 16, chunks = (tokens + group - 1) / group;
  if (e >= count) return;
  const int whole = wholes + e / tiles, r = e % tiles, c = r / 2, b = whole / heads, head = whole % heads;
  const int begin = all[(long)whole * chunks + c].first[0];
  float dq[2 * K][4] = {};
  for (int share = 0; share < shares && share <= c / W; share++) {
    const int pass = (c / W - share) / shares * shares + share;
    if (begin >= group * W * (pass + 1)) continue;
    const float *from = wide + (((long)share * rest + whole) * chunks * group + 16 * r) * HD + lane * 4;
#pragma unroll
    for (int n = 0; n < 2 * K; n++) unpack(dq[n], pack(dq[n]) + load4(from + n * 128));
  }
  write<2 * K>(dqkv + (long)b * tokens * 3 * d + head * hd, dq, back, 16 * r, tokens, d, hd);
}

#define ADD_QUERIES(NAME, HD)                                                                                                                    \
  KERNEL __launch_bounds__(256) NAME(Bf16 *dqkv, const Chunk<HD> *all, const float *wide, float back, int tokens, int heads, int hd, int wholes, int rest, int shares, int warps, int count) { \
    add_queries<HD>(dqkv, all, wide, back, tokens, heads, hd, wholes, rest, shares, warps, count);                                            \
  }
ADD_QUERIES(bf16_attention_long_queries_16, 16)
ADD_QUERIES(bf16_attention_long_queries_32, 32)
ADD_QUERIES(bf16_attention_long_queries_64, 64)

// W warps a block; LEAST blocks on a multiprocessor bound the registers.
#define ATTEND_GRAD(NAME, HD, W, DROP, LEAST)                                                                                                    \
  KERNEL __launch_bounds__(32 * W, LEAST) NAME(Bf16 *dqkv, const Chunk<HD> *all, float *wide, const u32 *bits, const Bf16 *qkv, const State *state, u32 site, \
                                               float kept, DECIDED_BY, int tokens, int heads, int hd, int wholes, int rest, int shares, float scale) { \
    attend_grad<HD, W, DROP>(dqkv, all, wide, bits, qkv, state, Masks{WHAT_DECIDES, site}, kept, tokens, heads, hd, wholes, rest, shares, scale); \
  }
ATTEND_GRAD(bf16_attention_long_grad_16, 16, 6, WHOLE, 2)
ATTEND_GRAD(bf16_attention_long_grad_32, 32, 8, WHOLE, 1)
ATTEND_GRAD(bf16_attention_long_grad_64, 64, 4, WHOLE, 1)
ATTEND_GRAD(bf16_attention_long_grad_drop_16, 16, 6, MASKED, 2)
ATTEND_GRAD(bf16_attention_long_grad_drop_32, 32, 8, MASKED, 1)
ATTEND_GRAD(bf16_attention_long_grad_drop_64, 64, 4, MASKED, 1)
ATTEND_GRAD(bf16_attention_long_grad_kept_16, 16, 6, KEPT, 2)
