// The gradient of causal attention over bf16, a block of two warps a head of an instance. The loops
// it computes are those of kernel.CausalAttentionGrad.
//
// What a reader could break: the block goes over groups of 32 keys; a group's dk and dv are sums in
// registers over the tiles of 16 queries that see it, the even tiles in warp 0, the odd ones in
// warp 1, and the warps add up their halves at the group's end. A tile's dq is a sum over groups,
// which stays with the tile's warp: in shared memory from group to group, begun at the first group
// its queries see and written at its own, the last. So every sum has one order. Queries past the
// end are the last one with an infinite LogSum: their probabilities are 0. Keys past the end lie
// after every query. Shared memory is what bounds the blocks on a multiprocessor, so a warp hands
// its half over where nothing is read any more: in the sums of the tile it has just finished and in
// the group's keys and values.
#include "bf16_attention_steps.cuh"

constexpr int group = 32; // keys

// With p = exp(s - logSum), kept the dropout's mask times keepScale, and D_i = dy_i·y_i:
// dv_j = Σ_i p·kept·dy_i; ds = p·(kept·dy_i·v_j - D_i); dq_i = scale·Σ_j ds·k_j; dk_j = scale·Σ_i
// ds·q_i keepScale is left out of ds, hence D/keepScale, and multiplies the sums instead. Shared:
// q, dy [tokens][HD] | k, v [2][2][32][HD], a group's and the next one's | logSum and D [rows][2] |
// first [rows] | dq [rows·HD], where HD < 64. Where HD is 64 dq is in `wide`, as many floats a
// block. rows is tokens in whole sixteens.
template <int HD> struct Room {
  u32 queries, grads, groups;
  float *stats, *sums, *pairs; // stats: a row's logSum and D; pairs: the groups' memory
  int *first;

  __device__ __forceinline__ Room(float *smem, float *wide, int tokens, int rows) {
    queries = shared_at(smem), grads = queries + 2 * tokens * HD, groups = grads + 2 * tokens * HD;
    pairs = smem + tokens * HD, stats = pairs + 2 * group * HD, first = (int *)(stats + 2 * rows);
    sums = HD < 64 ? stats + 3 * rows : wide + (long)blockIdx_x * rows * HD;
  }
  __device__ __forceinline__ u32 keys(int J) const { return groups + J % 2 * 4 * group * HD; }
  __device__ __forceinline__ u32 values(int J) const { return keys(J) + 2 * group * HD; }
  // handed is where `warp` leaves half a of what it hands over at the end of group J.
  __device__ __forceinline__ float *handed(int J, int warp, int a) const {
    return a == 0 ? sums + (long)(2 * J + warp) * 16 * HD : pairs + (2 * (J % 2) + warp) * group / 2 * HD;
  }
};

// bring_group starts the copy of group J's keys and values.
template <int HD> __device__ __forceinline__ void bring_group(const Room<HD> &room, const Bf16 *qkv, int J, int tokens, int d, int hd) {
  const int j0 = group * J;
#pragma unroll
  for (int p = threadIdx_x; p < 2 * group * HD / 8; p += 64) {
    int value = p / (group * HD / 8), j = p / (HD / 8) % group, c = p % (HD / 8);
    bool valid = 8 * c < hd && j0 + j < tokens;
    copy16((value ? room.values(J) : room.keys(J)) + 2 * piece<HD>(j, c), valid ? qkv + (long)(j0 + j) * 3 * d + (1 + value) * d + 8 * c : qkv, valid);
  }
  commit_copies();
}

// bring_queries fills the rest: q, dy, D, logSum and first.
template <int HD>
__device__ __forceinline__ void bring_queries(const Room<HD> &room, Bf16 *grads, const Bf16 *qkv, const Bf16 *dy, const Bf16 *y, const float *logSum, const int *first,
                                              float keepScale, int tokens, int rows, int d, int hd) {
  // pieces of a row, rows at a time, reads under way
  constexpr int across = HD / 8, step = 64 / across, ahead = 6;
  const int c = threadIdx_x % across;
  const float inverse = rcp(keepScale);
  for (int i = threadIdx_x; i < rows; i += 64)
    if (i < tokens) copy_async<1>(room.stats + 2 * i, logSum + i, 4), copy_async<1>((float *)room.first + i, (const float *)first + i, 4);
    else room.stats[2 * i] = 1e30f, room.first[i] = i;
#pragma unroll 1
  for (int i0 = threadIdx_x / across; i0 < rows; i0 += ahead * step) {
    u4 a[ahead], b[ahead];
#pragma unroll
    for (int x = 0; x < ahead; x++) {
      const int i = i0 + x * step;
      const bool valid = 8 * c < hd && i < tokens;
      a[x] = valid ? *(const u4 *)(dy + (long)i * d + 8 * c) : u4{0, 0, 0, 0}, b[x] = valid ? *(const u4 *)(y + (long)i * d + 8 * c) : u4{0, 0, 0, 0};
      if (i < tokens) copy16(room.queries + 2 * piece<HD>(i, c), valid ? qkv + (long)i * 3 * d + 8 * c : qkv, valid);
    }
#pragma unroll
    for (int x = 0; x < ahead; x++) {
      const int i = i0 + x * step;
      float sum = (dot2(a[x].x, b[x].x) + dot2(a[x].y, b[x].y)) + (dot2(a[x].z, b[x].z) + dot2(a[x].w, b[x].w));
#pragma unroll
      for (int m = 1; m < across; m *= 2) sum += shfl_xor(sum, m);
      if (i < tokens) *(u4 *)(grads + piece<HD>(i, c)) = a[x];
      if (i < rows && c == 0) room.stats[2 * i + 1] = sum * inverse;
    }
  }
  commit_copies();
}

// hand_over leaves sums of 16 keys for the other warp, which adds them to its own with `take`.
template <int N> __device__ __forceinline__ void hand_over(float *to, const float (&c)[N][4]) {
#pragma unroll
  for (int n = 0; n < N; n++) store4(to + (n * 32 + threadIdx_x % 32) * 4, pack(c[n]));
}
template <int N> __device__ __forceinline__ void take(float (&c)[N][4], const float *from) {
#pragma unroll
  for (int n = 0; n < N; n++) unpack(c[n], pack(c[n]) + load4(from + (n * 32 + threadIdx_x % 32) * 4));
}

template <int HD, int DROP>
__device__ __forceinline__ void attend_grad(Bf16 *dqkv, const Bf16 *dy, const Bf16 *y, const float *logSum, const Bits *bits, const Bf16 *qkv, const int *first, float *wide,
                                            const State *state, Masks masks, float keepScale, int tokens, int heads, int hd, float scale) {
  extern __shared__ float smem[] __attribute__((aligned(16)));
  constexpr int K = HD / 16;
  const int lane = threadIdx_x % 32, warp = threadIdx_x / 32, g = lane / 4, t = lane % 4;
  const int b = blockIdx_x / heads, head = blockIdx_x % heads, d = heads * hd, rows = (tokens + 15) & ~15, tiles = rows / 16, groups = (tokens + group - 1) / group;
  const Room<HD> room(smem, wide, tokens, rows);
  qkv += (long)b * tokens * 3 * d + head * hd, dqkv += (long)b * tokens * 3 * d + head * hd;
  dy += (long)b * tokens * d + head * hd, y += (long)b * tokens * d + head * hd;
  bring_group<HD>(room, qkv, 0, tokens, d, hd);
  bring_queries<HD>(room, (Bf16 *)smem + tokens * HD, qkv, dy, y, logSum + (long)blockIdx_x * tokens, first + (long)b * tokens, keepScale, tokens, rows, d, hd);
  if (DROP == MASKED) masks.instance = state->instances + b;
  // Where this lane's lines of a tile of queries begin: of tile 0, and of the last, whose lines
  // past the end repeat the last query.
  const int line = 16 * tiles - 16 + lane % 16;
  const u32 down = 2 * piece<HD>(lane % 16, lane / 16), end = 2 * piece<HD>(line < tokens ? line : tokens - 1, lane / 16);
  const u32 diagonal = g / 2 == t ? g % 2 ? 0x3c000000u : 0x3c00u : 0;
  // The unit matrix in fp16. The zeros come from a parameter, which no compiler knows: constants
  // would be put into registers again for every product.
  const u32 zero = (u32)tokens >> 31, one[4] = {diagonal, zero, 2 * zero, diagonal | zero};
  const float unit2 = scale * LOG2E, back = scale * keepScale;
  // Masks are read a tile ahead, and of a group's first tile a group ahead.
  if (DROP == KEPT) bits += kept_at(blockIdx_x, tiles, groups, 0, 0);
  auto kept_of = [&](int r, int J) { return r < tiles && J < groups ? bits[(r * groups + J) * 32] : (Bits)0; };
  u32 upcoming = DROP == KEPT ? kept_of(warp, 0) : 0;
#pragma unroll 1
  for (int J = 0; J < groups; J++) {
    wait_copies<0>();
    sync();
    if (J + 1 < groups) bring_group<HD>(room, qkv, J + 1, tokens, d, hd);
    const Tiles<HD> keys(room.keys(J)), values(room.values(J));
    float dk[2][2 * K][4] = {}, dv[2][2 * K][4] = {};
    u32 ahead = upcoming;
    if (DROP == KEPT) upcoming = kept_of(2 * J + 2 + warp, J + 1);
    int next = room.first[2 * J + warp < tiles ? 32 * J + 16 * warp : 0];
#pragma unroll 1
    for (int r = 2 * J + warp; r < tiles; r += 2) {
      const int begin = next;
      if (begin >= 32 * J + 32) break; // no later query sees this group
      next = room.first[16 * (r + 2 < tiles ? r + 2 : r)];
      const u32 kept = ahead;
      if (DROP == KEPT) ahead = kept_of(r + 2, J);
      Words words, words8;
      if (DROP == MASKED) words = masks.words(head * tokens + 16 * r + g, groups, J, t), words8 = masks.words(head * tokens + 16 * r + g + 8, groups, J, t);
      const u32 lines = r == tiles - 1 ? end : down + 32 * r * HD;
      float s[4][4] = {}, p[4][4], dp[4][4] = {};
      u32 q[K][4], o[K][4];
#pragma unroll
      for (int k = 0; k < K; k++) matrices(q[k], room.queries + (lines ^ 32 * k)), matrices(o[k], room.grads + (lines ^ 32 * k));
#pragma unroll
      for (int a = 0; a < 2; a++)
#pragma unroll
        for (int k = 0; k < K; k++) {
          u32 m[4];
          keys.right(m, 16 * a, k);
          multiply(s[2 * a], q[k], m[0], m[1]);
          multiply(s[2 * a + 1], q[k], m[2], m[3]);
          values.right(m, 16 * a, k);
          multiply(dp[2 * a], o[k], m[0], m[1]);
          multiply(dp[2 * a + 1], o[k], m[2], m[3]);
        }
      const f2 stats[2] = {*(const f2 *)(room.stats + 32 * r + 2 * g), *(const f2 *)(room.stats + 32 * r + 2 * g + 16)};
      const float ls[2] = {stats[0].x * LOG2E, stats[1].x * LOG2E}, mean[2] = {stats[0].y, stats[1].y};
#pragma unroll
      for (int n = 0; n < 4; n++)
#pragma unroll
        for (int e = 0; e < 4; e++) s[n][e] = ex2(s[n][e] * unit2 - ls[e / 2]);
      if (r / 2 == J || room.first[16 * r + 15] > 32 * J) {
        const int from[2] = {room.first[16 * r + g], room.first[16 * r + g + 8]}, j = opaque(32 * J + 2 * t);
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
      float dq[2 * K][4];
      float *partial = room.sums + ((long)r * 2 * K * 32 + lane) * 4;
#pragma unroll
      for (int n = 0; n < 2 * K; n++) unpack(dq[n], J == begin / 32 ? f4{0, 0, 0, 0} : load4(partial + n * 128));
#pragma unroll
      for (int a = 0; a < 2; a++) {
        u32 ds[4], m[4], w[4];
        left(ds, dp, a);
#pragma unroll
        for (int k = 0; k < K; k++) {
          keys.turned(m, 16 * a, k);
          multiply(dq[2 * k], ds, m[0], m[1]);
          multiply(dq[2 * k + 1], ds, m[2], m[3]);
        }
        left(m, p, a);
        turn(w, m, one);
        turn(m, ds, one);
#pragma unroll
        for (int k = 0; k < K; k++) {
          u4 x = turned4(room.grads + (lines ^ 32 * k));
          multiply(dv[a][2 * k], w, x.x, x.y);
          multiply(dv[a][2 * k + 1], w, x.z, x.w);
          x = turned4(room.queries + (lines ^ 32 * k));
          multiply(dk[a][2 * k], m, x.x, x.y);
          multiply(dk[a][2 * k + 1], m, x.z, x.w);
        }
      }
      if (r / 2 == J) write<2 * K>(dqkv, dq, back, 16 * r, tokens, d, hd);
      else
#pragma unroll
        for (int n = 0; n < 2 * K; n++) store4(partial + n * 128, pack(dq[n]));
    }
    const bool both = 2 * J + 1 < tiles; // else warp 1 has seen nothing of this group
    if (both) {
      sync(); // the group's keys and values are read
#pragma unroll
      for (int a = 0; a < 2; a++) {
        if (warp == 0) hand_over(room.handed(J, 0, a), dv[a]);
        else hand_over(room.handed(J, 1, a), dk[a]);
      }
      sync();
    }
#pragma unroll
    for (int a = 0; a < 2; a++) {
      if (warp == 0) {
        if (both) take(dk[a], room.handed(J, 1, a));
        write<2 * K>(dqkv + d, dk[a], back, 32 * J + 16 * a, tokens, d, hd);
      } else if (both) take(dv[a], room.handed(J, 0, a));
      if (warp == both) write<2 * K>(dqkv + 2 * d, dv[a], keepScale, 32 * J + 16 * a, tokens, d, hd);
    }
  }
}

// LEAST blocks on a multiprocessor bound the registers.
#define ATTEND_GRAD(NAME, HD, DROP, LEAST)                                                                                                       \
  KERNEL __launch_bounds__(64, LEAST) NAME(Bf16 *dqkv, const Bf16 *dy, const Bf16 *y, const float *logSum, const Bits *bits, const Bf16 *qkv, const int *first, float *wide,  \
                                           const State *state, u32 site, u32 threshold, float kept, ROUND_KEYS, int tokens, int heads, int hd, float scale) { \
    attend_grad<HD, DROP>(dqkv, dy, y, logSum, bits, qkv, first, wide, state, Masks{THE_ROUND_KEYS, site, threshold << 16, 0}, kept, tokens, heads, hd, scale); \
  }
ATTEND_GRAD(bf16_attention_grad_16, 16, WHOLE, 8)
ATTEND_GRAD(bf16_attention_grad_32, 32, WHOLE, 4)
ATTEND_GRAD(bf16_attention_grad_64, 64, WHOLE, 2)
ATTEND_GRAD(bf16_attention_grad_drop_16, 16, MASKED, 8)
ATTEND_GRAD(bf16_attention_grad_drop_32, 32, MASKED, 4)
ATTEND_GRAD(bf16_attention_grad_drop_64, 64, MASKED, 2)
ATTEND_GRAD(bf16_attention_grad_kept_16, 16, KEPT, 8)
