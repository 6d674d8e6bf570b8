// The gradient of causal attention over bf16 for rows too long to hold, a block or a few a head of
// an instance. The loops it computes are those of kernel.CausalAttentionGrad.
//
// What a reader could break: the block goes over blocks of 32 keys a warp; a warp's dk and dv are
// sums in its registers over the chunks of 32 queries that see its keys, from the keys' own chunk
// on. So at step s of such a pass warp w has chunk C0 + w + s, and a chunk goes through the warps
// from the last to the first. Its dq is a sum in shared memory that every warp adds to, after the
// warp behind it. Warp 0 ends a chunk's pass: it writes dq, or leaves it in `wide` for the next
// pass. Where heads are too few for a card, several blocks share a head's passes out, each with
// sums of its own, which bf16_attention_long_queries adds up. So every sum has one order.
//
// Chunks lie in a ring, `slots` of them. No barrier of the block holds a step: gates say that a
// chunk is there, and that a warp is done with it; a chunk is brought where warp 0 is done. Only
// the warp that is first to take a chunk asks whether it is there: the others follow a warp that
// has asked. A gate has one phase for every chunk of its slot, so warps that never see a chunk,
// those whose keys follow it, arrive for it when the pass begins. Passes take turns with two sets
// of gates: that of the next is made anew by warps that have ended this one. Queries past the end
// are zeros with an infinite LogSum: their probabilities are 0. Keys past the end are zeros, and
// lie after every query.
#include "bf16_attention_steps.cuh"

constexpr int group = 32; // keys and queries of a chunk
// Slots beyond one for every warp, and how many of them stay free of copies so long that whoever
// brings a chunk finds its slot given up by warp 0.
constexpr int ahead = 4, lag = 2;

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
GATHER(bf16_attention_rows_16, 16)
GATHER(bf16_attention_rows_32, 32)
GATHER(bf16_attention_rows_64, 64)

// hold4 writes to shared memory; of a plain store and of one to global memory clang makes one.
__device__ __forceinline__ void hold4(u32 at, f4 v) { asm volatile("st.shared.v4.f32 [%0], {%1,%2,%3,%4};" ::"r"(at), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w) : "memory"); }

// A gate is a barrier in shared memory, whose phases have parities 0, 1, 0 and so on in a pass. All
// lanes of a warp arrive: what each has read and written then comes before what follows the gate.
__device__ __forceinline__ void gate_new(u32 at, u32 arrivals) { asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(at), "r"(arrivals) : "memory"); }
__device__ __forceinline__ void gate_gone(u32 at) { asm volatile("mbarrier.inval.shared.b64 [%0];" ::"r"(at) : "memory"); }
__device__ __forceinline__ void gate_arrive(u32 at) { asm volatile("{.reg .b64 t; mbarrier.arrive.shared.b64 t, [%0];}" ::"r"(at) : "memory"); }
// gate_copies lets this thread arrive when its copies so far are done.
__device__ __forceinline__ void gate_copies(u32 at) { asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(at) : "memory"); }
// gate_open tells whether the phase of that parity is over, gate_wait returns when it is.
__device__ __forceinline__ bool gate_open(u32 at, u32 parity) {
  u32 r;
  asm volatile("{.reg .pred done; mbarrier.test_wait.parity.shared.b64 done, [%1], %2; selp.u32 %0, 1, 0, done;}" : "=r"(r) : "r"(at), "r"(parity) : "memory");
  return r;
}
__device__ __forceinline__ void gate_wait(u32 at, u32 parity) {
  asm volatile("{.reg .pred done; again: mbarrier.test_wait.parity.shared.b64 done, [%0], %1; @!done bra again;}" ::"r"(at), "r"(parity) : "memory");
}

// Names are those of bf16_attention_grad.cu. Shared: slots of a chunk | dq [32·HD] | masks
// [2][32·W/2] | two sets of gates: of the chunk's arrival, and of every warp's end with it, then
// each warp's k, v [32][HD]. wide: dq [chunks·32·HD] of every share.
template <int HD, int W, int DROP>
__device__ __forceinline__ void attend_grad(Bf16 *dqkv, const Chunk<HD> *all, float *wide, const u32 *bits, const Bf16 *qkv, const State *state, Masks masks,
                                            float keepScale, int tokens, int heads, int hd, int shares, float scale) {
  extern __shared__ float smem[] __attribute__((aligned(16)));
  constexpr int K = HD / 16, slots = W + ahead, sums = sizeof(Chunk<HD>), kept = sums + 128 * HD, gates = kept + (HD == 16 ? 128 * W : 0), set = 8 * (W + 1), slot = gates + 2 * set;
  static_assert(slot % 16 == 0 && lag <= ahead, "slots of whole pieces, each brought before its use");
  const int lane = threadIdx_x % 32, warp = threadIdx_x / 32, g = lane / 4, t = lane % 4;
  const int whole = blockIdx_x / shares, share = blockIdx_x % shares, b = whole / heads, head = whole % heads, d = heads * hd, chunks = (tokens + group - 1) / group, pairs = (tokens + 63) / 64;
  qkv += (long)b * tokens * 3 * d + head * hd, dqkv += (long)b * tokens * 3 * d + head * hd;
  all += (long)whole * chunks, wide += (long)blockIdx_x * chunks * group * HD;
  const u32 at = shared_at(smem), mine = at + slots * slot + warp * 128 * HD;
  if (DROP == MASKED) masks.of(state->instances + b);
  if (DROP == KEPT) bits += kept_at(whole, 2 * chunks, pairs, 0, 0);
  // A row of one sequence: every query sees all keys up to its own, for `first` never falls.
  const bool plain = all[(tokens - 1) / group].first[(tokens - 1) % group] == 0;
  // begins is the first key that a chunk sees.
  auto begins = [&](int c) { return plain || c >= chunks ? 0 : all[c].first[0]; };
  // bring starts the copy of a chunk by the lanes of a warp; its dq begins with zeros where it is
  // fresh.
  auto bring = [&](int c, u32 to, int C0, bool fresh) __attribute__((always_inline)) {
    if (c >= chunks) return;
    const Bf16 *from = (const Bf16 *)(all + c) + 8 * lane;
#pragma unroll
    for (int n = 0; n < sums; n += 512)
      if (n + 16 * lane < sums) copy16(to + n + 16 * lane, from + n / 2, true);
    const float *sum = wide + (long)c * group * HD + 4 * lane;
#pragma unroll
    for (int n = 0; n < group * HD / 4; n += 32) copy16(to + sums + 16 * (n + lane), (const Bf16 *)(sum + 4 * n), !fresh);
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
  const float back = scale * keepScale;
  // prepare readies a warp for the pass from chunk C0 on: its keys and values are brought, and its
  // share of the pass's gates is made.
  auto prepare = [&](int C0, u32 own_set, bool again) __attribute__((always_inline)) {
    if (C0 >= chunks) return;
#pragma unroll
    for (int p = lane; p < 2 * group * HD / 8; p += 32) {
      const int value = p / (group * HD / 8), j = p / (HD / 8) % group, c = p % (HD / 8), row = group * (C0 + warp) + j;
      const bool valid = 8 * c < hd && row < tokens;
      copy16(mine + 2 * (value * group * HD + piece<HD>(j, c)), valid ? qkv + (long)row * 3 * d + (1 + value) * d + 8 * c : qkv, valid);
    }
    commit_copies();
#pragma unroll 1
    for (int n = warp + W * lane; n < slots * (W + 1); n += 32 * W) {
      const u32 gate = at + n / (W + 1) * slot + gates + own_set + n % (W + 1) * 8;
      if (again) gate_gone(gate);
      gate_new(gate, 32);
    }
  };
  u32 which = 0; // the pass's set of gates, in bytes
  prepare(W * share, 0, false);
#pragma unroll 1
  for (int C0 = W * share; C0 < chunks; C0 += W * shares, which ^= set) {
    const int J = C0 + warp, before = group * (C0 - W * shares + W); // where keys of the pass before end
    const u32 gate0 = at + gates + which;
    sync(); // the ring is read, no copy is under way but of keys and values, the pass's gates are there
#pragma unroll 1
    for (int n = 0; n < warp; n++) gate_arrive(gate0 + n * slot + 8 * (warp + 1)); // chunks before the warp's keys
    // brought is the gate of this warp's last copy, the upper bit its parity.
    u32 brought = 0;
#pragma unroll 1
    for (int n = warp; n < slots - 1 - lag; n += W)
      if (C0 + n < chunks) {
        bring(C0 + n, at + n * slot, C0, begins(C0 + n) >= before);
        gate_copies(gate0 + n * slot), brought = gate0 + n * slot;
      }
    int coming = warp == 0 ? begins(C0 + slots - 1 - lag) : 0;
    // Slots of this warp's chunk and of the next that is brought, with their parities; whose turn
    // it is to bring; whether the chunk's gate was found open.
    u32 place = warp * slot, parity = 0, spare = (slots - 1 - lag) * slot, free = 1;
    int turn = 0;
    bool open = false;
    const Own<HD> own(mine, mine + 2 * group * HD);
    wait_copies<0>();
    syncwarp();
    Gradient<HD, DROP != WHOLE> grad;
#pragma unroll 1
    for (int step = 0; J + step < chunks; step++) {
      // The chunk that is slots - 1 - lag after warp 0's of this step, by every warp in turn.
      if (turn == warp && C0 + step + slots - 1 - lag < chunks) {
        if (step > lag) gate_wait(gate0 + spare + 8, free);
        bring(C0 + step + slots - 1 - lag, at + spare, C0, coming >= before);
        gate_copies(gate0 + spare), brought = (gate0 + spare) | (free ^ 1) << 31;
      }
      turn = turn == W - 1 ? 0 : turn + 1;
      if (turn == warp) coming = begins(C0 + step + slots - lag);
      const int c = J + step;
      const u32 own_place = place;
      if (!open) gate_wait(gate0 + own_place + (warp != W - 1 && step ? 8 * (warp + 2) : 0), parity);
      if (spare == (slots - 1) * slot) spare = 0, free ^= 1;
      else spare += slot;
      if (place == (slots - 1) * slot) place = 0, parity ^= 1;
      else place += slot;
      const Chunk<HD> *rows = (const Chunk<HD> *)((const char *)smem + own_place);
      int begin = 0, latest = 0;
      if (!plain) begin = rows->first[0], latest = rows->first[group - 1];
      if (begin >= group * (C0 + W)) break; // no later query sees these keys
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
        if (warp == 0 && step < W && shares == 1) write<2 * K>(dqkv, dq, back, 16 * r, tokens, d, hd);
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
      auto next = [&] { open = gate_open(gate0 + place + (warp != W - 1 ? 8 * (warp + 2) : 0), parity); };
      if (HD == 16 && sees && c > J && latest <= group * J) {
        // Both tiles without a branch between, so that the one's products hide behind the other's.
        float dq[2][2 * K][4];
#pragma unroll
        for (int x = 0; x < 2; x++) {
          Seen seen;
          see(seen, x);
          grad.add(dq[x], own, queries + 32 * x * HD, queries + 32 * x * HD + 2 * group * HD, lines, seen, one, false, [](float (&)[2][2][4]) {}, [&] { load(dq[x], x); });
        }
        next();
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
        next();
      }
      syncwarp();
      gate_arrive(gate0 + own_place + 8 * (warp + 1));
    }
    if (brought) gate_wait(brought & 0x7fffffff, brought >> 31);
    if (J < chunks)
#pragma unroll
      for (int a = 0; a < 2; a++) {
        write<2 * K>(dqkv + d, grad.dk[a], LN2 * keepScale, group * J + 16 * a, tokens, d, hd);
        write<2 * K>(dqkv + 2 * d, grad.dv[a], keepScale, group * J + 16 * a, tokens, d, hd);
      }
    prepare(C0 + W * shares, which ^ set, C0 != W * share);
  }
}

// add_queries adds up the shares' dq, a warp a tile, in the order of shares. A share has seen a
// chunk where the last of its passes that begins by the chunk has.
template <int HD>
__device__ __forceinline__ void add_queries(Bf16 *dqkv, const Chunk<HD> *all, const float *wide, float back, int tokens, int heads, int hd, int shares, int W, int count) {
  constexpr int K = HD / 16;
  const int e = blockIdx_x * 8 + threadIdx_x / 32, lane = threadIdx_x % 32, d = heads * hd, tiles = (tokens + 15) / 16, chunks = (tokens + group - 1) / group;
  if (e >= count) return;
  const int whole = e / tiles, r = e % tiles, c = r / 2, b = whole / heads, head = whole % heads;
  const int begin = all[(long)whole * chunks + c].first[0];
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
  KERNEL __launch_bounds__(256) NAME(Bf16 *dqkv, const Chunk<HD> *all, const float *wide, float back, int tokens, int heads, int hd, int shares, int warps, int count) { \
    add_queries<HD>(dqkv, all, wide, back, tokens, heads, hd, shares, warps, count);                                                          \
  }
ADD_QUERIES(bf16_attention_long_queries_16, 16)
ADD_QUERIES(bf16_attention_long_queries_32, 32)
ADD_QUERIES(bf16_attention_long_queries_64, 64)

// W warps a block; LEAST blocks on a multiprocessor bound the registers.
#define ATTEND_GRAD(NAME, HD, W, DROP, LEAST)                                                                                                    \
  KERNEL __launch_bounds__(32 * W, LEAST) NAME(Bf16 *dqkv, const Chunk<HD> *all, float *wide, const u32 *bits, const Bf16 *qkv, const State *state, u32 site, \
                                               float kept, DECIDED_BY, int tokens, int heads, int hd, int shares, float scale) {               \
    attend_grad<HD, W, DROP>(dqkv, all, wide, bits, qkv, state, Masks{WHAT_DECIDES, site}, kept, tokens, heads, hd, shares, scale); \
  }
ATTEND_GRAD(bf16_attention_long_grad_16, 16, 6, WHOLE, 2)
ATTEND_GRAD(bf16_attention_long_grad_32, 32, 8, WHOLE, 1)
ATTEND_GRAD(bf16_attention_long_grad_64, 64, 4, WHOLE, 1)
ATTEND_GRAD(bf16_attention_long_grad_drop_16, 16, 6, MASKED, 2)
ATTEND_GRAD(bf16_attention_long_grad_drop_32, 32, 8, MASKED, 1)
ATTEND_GRAD(bf16_attention_long_grad_drop_64, 64, 4, MASKED, 1)
ATTEND_GRAD(bf16_attention_long_grad_kept_16, 16, 6, KEPT, 2)
