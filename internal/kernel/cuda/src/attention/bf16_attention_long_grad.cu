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

// A row's numbers, as bf16_attention_stats leaves them: logSum·log2 e, D/keepScale with D = dy·y,
// where its sequence begins.
struct alignas(16) Stats {
  float logSum, mean;
  int first, none;
};

// Each thread a query of a head; rows is tokens in whole chunks.
KERNEL __launch_bounds__(256) bf16_attention_stats(Stats *stats, const Bf16 *dy, const Bf16 *y, const float *logSum, const int *first, float keepScale, int rows, int tokens,
                                                   int heads, int hd, int count) {
  const int e = blockIdx_x * 256 + threadIdx_x;
  if (e >= count) return;
  const int h = e % heads, i = e / heads % rows, b = e / heads / rows;
  Stats s{1e30f, 0, i, 0};
  if (i < tokens) {
    const long at = ((long)b * tokens + i) * heads * hd + h * hd;
    float sum = 0;
    for (int c = 0; c < hd; c += 8) {
      const u4 v = *(const u4 *)(dy + at + c), w = *(const u4 *)(y + at + c);
      sum += (dot2(v.x, w.x) + dot2(v.y, w.y)) + (dot2(v.z, w.z) + dot2(v.w, w.w));
    }
    s = Stats{logSum[((long)b * heads + h) * tokens + i] * LOG2E, sum * rcp(keepScale), first[(long)b * tokens + i], 0};
  }
  *(f4 *)(stats + ((long)b * heads + h) * rows + i) = f4{s.logSum, s.mean, __builtin_bit_cast(float, s.first), 0};
}

// hold4 writes to shared memory; of a plain store and of one to global memory clang makes one.
__device__ __forceinline__ void hold4(u32 at, f4 v) { asm volatile("st.shared.v4.f32 [%0], {%1,%2,%3,%4};" ::"r"(at), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w) : "memory"); }

// Own are a warp's 32 keys and values as operands; HELD: in registers, which narrow heads have room
// for where no masks are read.
template <int HD, bool HELD> struct Own {
  Tiles<HD> k, v;
  u32 kr[2][4], kt[2][4], vr[2][4];

  __device__ __forceinline__ Own(u32 at) : k(at), v(at + 2 * group * HD) {}
  __device__ __forceinline__ void read() {
    if (HELD)
#pragma unroll
      for (int a = 0; a < 2; a++) k.right(kr[a], 16 * a, 0), k.turned(kt[a], 16 * a, 0), v.right(vr[a], 16 * a, 0);
  }
  static __device__ __forceinline__ void copy(u32 (&m)[4], const u32 (&from)[4]) {
#pragma unroll
    for (int e = 0; e < 4; e++) m[e] = from[e];
  }
  __device__ __forceinline__ void keys(u32 (&m)[4], int a, int c) const {
    if (HELD) copy(m, kr[a]);
    else k.right(m, 16 * a, c);
  }
  __device__ __forceinline__ void values(u32 (&m)[4], int a, int c) const {
    if (HELD) copy(m, vr[a]);
    else v.right(m, 16 * a, c);
  }
  __device__ __forceinline__ void turned(u32 (&m)[4], int a, int c) const {
    if (HELD) copy(m, kt[a]);
    else k.turned(m, 16 * a, c);
  }
};

// Names are those of bf16_attention_grad.cu. Shared: slots of q, dy [32][HD] | stats [32] | dq
// [32·HD], then each warp's k, v [32][HD]. wide: dq [chunks·32·HD] of every share.
template <int HD, int W, int DROP, bool HELD>
__device__ __forceinline__ void attend_grad(Bf16 *dqkv, const Bf16 *dy, const Stats *stats, float *wide, const Bits *bits, const Bf16 *qkv, const State *state, Masks masks,
                                            float keepScale, int tokens, int heads, int hd, int shares, float scale) {
  extern __shared__ float smem[] __attribute__((aligned(16)));
  constexpr int K = HD / 16, slots = W + ahead, slot = 256 * HD + 512, numbers = 128 * HD, sums = numbers + 512;
  const int lane = threadIdx_x % 32, warp = threadIdx_x / 32, g = lane / 4, t = lane % 4;
  const int whole = blockIdx_x / shares, share = blockIdx_x % shares, b = whole / heads, head = whole % heads, d = heads * hd, tiles = (tokens + 15) / 16, chunks = (tokens + group - 1) / group;
  qkv += (long)b * tokens * 3 * d + head * hd, dqkv += (long)b * tokens * 3 * d + head * hd, dy += (long)b * tokens * d + head * hd;
  stats += (long)whole * chunks * group, wide += (long)blockIdx_x * chunks * group * HD;
  const u32 at = shared_at(smem), mine = at + slots * slot + warp * 128 * HD;
  if (DROP == MASKED) masks.instance = state->instances + b;
  if (DROP == KEPT) bits += kept_at(whole, tiles, chunks, 0, 0);
  auto kept_of = [&](int r, int J) { return r < tiles && J < chunks ? bits[(r * chunks + J) * 32] : (Bits)0; };
  // begins is the first key that a chunk sees.
  auto begins = [&](int c) { return c < chunks ? stats[group * c].first : 0; };
  // bring starts the copy of a chunk, whose dq begins with zeros where it is fresh.
  auto bring = [&](int c, bool fresh) {
    if (c >= chunks) return;
    const u32 to = at + c % slots * slot;
#pragma unroll
    for (int p = threadIdx_x; p < 16 * HD + 32; p += 32 * W)
      if (p < 8 * HD) {
        const int grad = p / (4 * HD), j = p / (HD / 8) % group, column = p % (HD / 8), i = group * c + j;
        const bool valid = 8 * column < hd && i < tokens;
        const Bf16 *from = grad ? dy + (long)i * d + 8 * column : qkv + (long)i * 3 * d + 8 * column;
        copy16(to + 2 * (grad * group * HD + piece<HD>(j, column)), valid ? from : qkv, valid);
      } else if (p < 16 * HD) copy16(to + sums + 16 * (p - 8 * HD), (const Bf16 *)(wide + (long)c * group * HD + 4 * (p - 8 * HD)), !fresh);
      else copy16(to + numbers + 16 * (p - 16 * HD), (const Bf16 *)(stats + group * c + p - 16 * HD), true);
  };
  const u32 down = 2 * piece<HD>(lane % 16, lane / 16);
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
#pragma unroll 1
    for (int c = C0; c < C0 + W; c++) bring(c, begins(c) >= before);
    commit_copies();
    bring(C0 + W, begins(C0 + W) >= before);
    commit_copies();
    int coming = begins(C0 + W + 1);
    u32 upcoming[2] = {};
    if (DROP == KEPT) upcoming[0] = kept_of(2 * J, J), upcoming[1] = kept_of(2 * J + 1, J);
    Own<HD, HELD> own(mine);
    wait_copies<1>();
    syncwarp();
    own.read();
    float dk[2][2 * K][4] = {}, dv[2][2 * K][4] = {};
#pragma unroll 1
    for (int step = 0; C0 + step < chunks; step++) {
      wait_copies<1>();
      sync();
      const Stats *lowest = (const Stats *)((const char *)smem + (C0 + step) % slots * slot + numbers);
      if (lowest->first >= group * (C0 + W)) break; // no later query sees these keys
      auto more = [&] { // the chunk after the next
        bring(C0 + step + W + 1, coming >= before);
        commit_copies();
        coming = begins(C0 + step + W + 2);
      };
      more();
      const int c = J + step;
      if (c >= chunks) continue;
      const int place = c % slots * slot;
      const Stats *rows = (const Stats *)((const char *)smem + place + numbers);
      const bool sees = rows->first < group * J + group;
      const u32 kept2[2] = {upcoming[0], upcoming[1]};
      if (DROP == KEPT) upcoming[0] = kept_of(2 * c + 2, J), upcoming[1] = kept_of(2 * c + 3, J);
      if (!sees && warp) continue;
#pragma unroll 1
      for (int x = 0; x < 2 && 2 * c + x < tiles; x++) {
        const int r = 2 * c + x;
        float dq[2 * K][4];
        const float *partial = smem + (place + sums) / 4 + x * 16 * HD + lane * 4;
        auto put = [&](const float (&dq)[2 * K][4]) {
          if (warp == 0 && step < W && shares == 1) write<2 * K>(dqkv, dq, back, 16 * r, tokens, d, hd);
          else
#pragma unroll
            for (int n = 0; n < 2 * K; n++) {
              if (warp != 0) hold4(at + place + sums + 64 * x * HD + 16 * lane + 512 * n, pack(dq[n]));
              else store4(wide + (long)r * 16 * HD + lane * 4 + n * 128, pack(dq[n]));
            }
        };
        if (sees) {
          const u32 kept = x ? kept2[1] : kept2[0];
          Words words, words8;
          if (DROP == MASKED) words = masks.words(head * tokens + 16 * r + g, chunks, J, t), words8 = masks.words(head * tokens + 16 * r + g + 8, chunks, J, t);
          const u32 lines = down + 32 * x * HD, queries = at + place, grads = queries + 2 * group * HD;
          float s[4][4] = {}, p[4][4], dp[4][4] = {};
          u32 q[K][4], o[K][4];
#pragma unroll
          for (int k = 0; k < K; k++) matrices(q[k], queries + (lines ^ 32 * k)), matrices(o[k], grads + (lines ^ 32 * k));
#pragma unroll
          for (int a = 0; a < 2; a++)
#pragma unroll
            for (int k = 0; k < K; k++) {
              u32 m[4];
              own.keys(m, a, k);
              multiply(s[2 * a], q[k], m[0], m[1]);
              multiply(s[2 * a + 1], q[k], m[2], m[3]);
              own.values(m, a, k);
              multiply(dp[2 * a], o[k], m[0], m[1]);
              multiply(dp[2 * a + 1], o[k], m[2], m[3]);
            }
          const f2 n0 = *(const f2 *)(rows + 16 * x + g), n8 = *(const f2 *)(rows + 16 * x + g + 8);
          const float ls[2] = {n0.x, n8.x}, mean[2] = {n0.y, n8.y};
#pragma unroll
          for (int n = 0; n < 4; n++)
#pragma unroll
            for (int e = 0; e < 4; e++) s[n][e] = ex2(s[n][e] * unit2 - ls[e / 2]);
          if (c == J || rows[16 * x + 15].first > group * J) {
            const int from[2] = {rows[16 * x + g].first, rows[16 * x + g + 8].first}, j = opaque(group * J + 2 * t);
#pragma unroll
            for (int n = 0; n < 4; n++)
#pragma unroll
              for (int e = 0; e < 4; e++)
                if (8 * n + e % 2 > 16 * r + g + e / 2 * 8 - j || 8 * n + e % 2 < from[e / 2] - j) s[n][e] = 0;
          }
          if (DROP == MASKED) drop(p, s, words, words8, masks.below);
          if (DROP == KEPT) drop(p, s, kept);
#pragma unroll
          for (int n = 0; n < 4; n++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
              if (!DROP) p[n][e] = s[n][e];
              dp[n][e] = p[n][e] * dp[n][e] - s[n][e] * mean[e / 2];
            }
          u32 ds[2][4];
#pragma unroll
          for (int a = 0; a < 2; a++) left(ds[a], dp, a);
#pragma unroll
          for (int n = 0; n < 2 * K; n++) unpack(dq[n], load4(partial + n * 128));
#pragma unroll
          for (int a = 0; a < 2; a++)
#pragma unroll
            for (int k = 0; k < K; k++) {
              u32 m[4];
              own.turned(m, a, k);
              multiply(dq[2 * k], ds[a], m[0], m[1]);
              multiply(dq[2 * k + 1], ds[a], m[2], m[3]);
            }
#pragma unroll
          for (int a = 0; a < 2; a++) {
            u32 m[4], w[4];
            left(m, p, a);
            turn(w, m, one);
            turn(m, ds[a], one);
#pragma unroll
            for (int k = 0; k < K; k++) {
              u4 v = turned4(grads + (lines ^ 32 * k));
              multiply(dv[a][2 * k], w, v.x, v.y);
              multiply(dv[a][2 * k + 1], w, v.z, v.w);
              v = turned4(queries + (lines ^ 32 * k));
              multiply(dk[a][2 * k], m, v.x, v.y);
              multiply(dk[a][2 * k + 1], m, v.z, v.w);
            }
          }
          put(dq);
        } else {
#pragma unroll
          for (int n = 0; n < 2 * K; n++) unpack(dq[n], load4(partial + n * 128));
          put(dq);
        }
      }
    }
    if (J < chunks)
#pragma unroll
      for (int a = 0; a < 2; a++) {
        write<2 * K>(dqkv + d, dk[a], back, group * J + 16 * a, tokens, d, hd);
        write<2 * K>(dqkv + 2 * d, dv[a], keepScale, group * J + 16 * a, tokens, d, hd);
      }
  }
}

// add_queries adds up the shares' dq, a warp a tile, in the order of shares. A share has seen a
// chunk where the last of its passes that begins by the chunk has.
template <int HD, int W>
__device__ __forceinline__ void add_queries(Bf16 *dqkv, const Stats *stats, const float *wide, float back, int tokens, int heads, int hd, int shares, int count) {
  constexpr int K = HD / 16;
  const int e = blockIdx_x * 8 + threadIdx_x / 32, lane = threadIdx_x % 32, d = heads * hd, tiles = (tokens + 15) / 16, chunks = (tokens + group - 1) / group;
  if (e >= count) return;
  const int whole = e / tiles, r = e % tiles, c = r / 2, b = whole / heads, head = whole % heads;
  const int begin = stats[((long)whole * chunks + c) * group].first;
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

#define ADD_QUERIES(NAME, HD, W)                                                                                                                 \
  KERNEL __launch_bounds__(256) NAME(Bf16 *dqkv, const Stats *stats, const float *wide, float back, int tokens, int heads, int hd, int shares, int count) { \
    add_queries<HD, W>(dqkv, stats, wide, back, tokens, heads, hd, shares, count);                                                              \
  }
ADD_QUERIES(bf16_attention_long_queries_16, 16, 8)
ADD_QUERIES(bf16_attention_long_queries_32, 32, 8)
ADD_QUERIES(bf16_attention_long_queries_64, 64, 4)

// W warps a block; LEAST blocks on a multiprocessor bound the registers.
#define ATTEND_GRAD(NAME, HD, W, DROP, HELD, LEAST)                                                                                                    \
  KERNEL __launch_bounds__(32 * W, LEAST) NAME(Bf16 *dqkv, const Bf16 *dy, const Stats *stats, float *wide, const Bits *bits, const Bf16 *qkv, const State *state, u32 site, \
                                               u32 threshold, float kept, ROUND_KEYS, int tokens, int heads, int hd, int shares, float scale) {               \
    attend_grad<HD, W, DROP, HELD>(dqkv, dy, stats, wide, bits, qkv, state, Masks{THE_ROUND_KEYS, site, threshold << 16, 0}, kept, tokens, heads, hd, shares, scale); \
  }
ATTEND_GRAD(bf16_attention_long_grad_16, 16, 8, WHOLE, true, 2)
ATTEND_GRAD(bf16_attention_long_grad_32, 32, 8, WHOLE, false, 1)
ATTEND_GRAD(bf16_attention_long_grad_64, 64, 4, WHOLE, false, 1)
ATTEND_GRAD(bf16_attention_long_grad_drop_16, 16, 8, MASKED, true, 2)
ATTEND_GRAD(bf16_attention_long_grad_drop_32, 32, 8, MASKED, false, 1)
ATTEND_GRAD(bf16_attention_long_grad_drop_64, 64, 4, MASKED, false, 1)
ATTEND_GRAD(bf16_attention_long_grad_kept_16, 16, 8, KEPT, false, 2)
