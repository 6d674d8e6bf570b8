// The gradient of causal attention over bf16, a block of two warps a head of an instance. The loops it computes are those of
// kernel.CausalAttentionGrad.
//
// What a reader could break: the block goes over groups of 32 keys; a group's dk and dv are sums in registers over the tiles of 16 queries that
// see it, the even tiles in warp 0, the odd ones in warp 1, and the warps add up their halves at the group's end. A tile's dq is a sum over
// groups, which stays with the tile's warp: in shared memory from group to group, begun at the first group its queries see and written at
// its own, the last. So every sum has one order. Queries past the end are zeros with an infinite LogSum: their probabilities are 0. Keys past
// the end lie after every query.
#include "half_attention.cuh"

constexpr int group = 32; // keys

// With p = exp(s - logSum), kept the dropout's mask times keepScale, and D_i = dy_i·y_i:
// dv_j = Σ_i p·kept·dy_i;  ds = p·(kept·dy_i·v_j - D_i);  dq_i = scale·Σ_j ds·k_j;  dk_j = scale·Σ_i ds·q_i
// keepScale is left out of ds, hence D/keepScale, and multiplies the sums instead.
// Shared: q, dy [rows][HD] | k, v [2][2][32][HD], a group's and the next one's | logSum, D, first [rows] | the sums that a warp hands over [2][32·HD] | dq [rows·HD], where HD < 64.
// Where HD is 64 dq is in `wide`, as many floats a block.
template <int HD> struct Room {
  u32 queries, grads, groups;
  float *logSum, *mean, *handed, *sums;
  int *first;

  __device__ __forceinline__ Room(float *smem, float *wide, int rows) {
    queries = shared_at(smem), grads = queries + 2 * rows * HD, groups = grads + 2 * rows * HD;
    logSum = smem + rows * HD + 2 * group * HD, mean = logSum + rows, first = (int *)(mean + rows);
    handed = logSum + 3 * rows, sums = HD < 64 ? handed + 2 * group * HD : wide + (long)blockIdx_x * rows * HD;
  }
  __device__ __forceinline__ u32 keys(int J) const { return groups + J % 2 * 4 * group * HD; }
  __device__ __forceinline__ u32 values(int J) const { return keys(J) + 2 * group * HD; }
};

// bring_group starts the copy of group J's keys and values.
template <int HD> __device__ __forceinline__ void bring_group(const Room<HD> &room, const Half *qkv, int J, int tokens, int d, int hd) {
  const int j0 = group * J;
#pragma unroll
  for (int p = threadIdx_x; p < 2 * group * HD / 8; p += 64) {
    int value = p / (group * HD / 8), j = p / (HD / 8) % group, c = p % (HD / 8);
    bool valid = 8 * c < hd && j0 + j < tokens;
    copy16((value ? room.values(J) : room.keys(J)) + 2 * piece<HD>(j, c), valid ? qkv + (long)(j0 + j) * 3 * d + (1 + value) * d + 8 * c : qkv, valid);
  }
  commit_copies();
}

__device__ __forceinline__ float dot2(u32 a, u32 b) { return bf16_low(a) * bf16_low(b) + bf16_high(a) * bf16_high(b); }

// bring_queries fills the rest: q, dy, D, logSum and first.
template <int HD>
__device__ __forceinline__ void bring_queries(const Room<HD> &room, Half *grads, const Half *qkv, const Half *dy, const Half *y, const float *logSum, const int *first,
                                              float keepScale, int tokens, int rows, int d, int hd) {
  constexpr int across = HD / 8, step = 64 / across, ahead = 3; // pieces of a row, rows at a time, reads under way
  const int c = threadIdx_x % across;
  const float inverse = rcp(keepScale);
#pragma unroll 1
  for (int i0 = threadIdx_x / across; i0 < rows; i0 += ahead * step) {
    u4 a[ahead], b[ahead];
#pragma unroll
    for (int x = 0; x < ahead; x++) {
      const int i = i0 + x * step;
      const bool valid = 8 * c < hd && i < tokens;
      a[x] = valid ? *(const u4 *)(dy + (long)i * d + 8 * c) : u4{0, 0, 0, 0}, b[x] = valid ? *(const u4 *)(y + (long)i * d + 8 * c) : u4{0, 0, 0, 0};
      if (i < rows) copy16(room.queries + 2 * piece<HD>(i, c), valid ? qkv + (long)i * 3 * d + 8 * c : qkv, valid);
    }
#pragma unroll
    for (int x = 0; x < ahead; x++) {
      const int i = i0 + x * step;
      float sum = (dot2(a[x].x, b[x].x) + dot2(a[x].y, b[x].y)) + (dot2(a[x].z, b[x].z) + dot2(a[x].w, b[x].w));
#pragma unroll
      for (int m = 1; m < across; m *= 2) sum += shfl_xor(sum, m);
      if (i >= rows) continue;
      *(u4 *)(grads + piece<HD>(i, c)) = a[x];
      if (c == 0) room.mean[i] = sum * inverse;
    }
  }
  commit_copies();
  for (int i = threadIdx_x; i < rows; i += 64) {
    room.logSum[i] = i < tokens ? logSum[i] * LOG2E : 1e30f;
    room.first[i] = i < tokens ? first[i] : i;
  }
}

// turn gives a result's 16 columns from 16·a on as the left operand of a product over its rows: a tensor core multiplies them by the unit
// matrix, with the operand's columns read as rows. m is what `left` made of them.
__device__ __forceinline__ void turn(u32 (&out)[4], const u32 (&m)[4], const u32 (&one)[4]) {
  float low[4] = {}, high[4] = {};
  multiply(low, one, m[0], m[2]);
  multiply(high, one, m[1], m[3]);
  out[0] = upper(low[0], low[1]), out[1] = upper(low[2], low[3]), out[2] = upper(high[0], high[1]), out[3] = upper(high[2], high[3]);
}

// write puts 16 rows from `row` on into dqkv, from which `to` is the head's first column.
template <int N> __device__ __forceinline__ void write(Half *to, const float (&c)[N][4], float scale, int row, int tokens, int d, int hd) {
  const int g = threadIdx_x % 32 / 4, t = threadIdx_x % 4;
#pragma unroll
  for (int x = 0; x < 2; x++)
    if (row + g + 8 * x < tokens)
#pragma unroll
      for (int n = 0; n < N; n++)
        if (8 * n < hd) *(u32 *)(to + (long)(row + g + 8 * x) * 3 * d + 8 * n + 2 * t) = bf16x2(c[n][2 * x] * scale, c[n][2 * x + 1] * scale);
}

__device__ __forceinline__ f4 pack(const float (&c)[4]) { return f4{c[0], c[1], c[2], c[3]}; }
__device__ __forceinline__ void unpack(float (&c)[4], f4 v) { c[0] = v.x, c[1] = v.y, c[2] = v.z, c[3] = v.w; }

// hand_over leaves a group's sums for the other warp, which adds them to its own with `take`.
template <int N> __device__ __forceinline__ void hand_over(float *to, const float (&c)[2][N][4]) {
#pragma unroll
  for (int a = 0; a < 2; a++)
#pragma unroll
    for (int n = 0; n < N; n++) store4(to + ((a * N + n) * 32 + threadIdx_x % 32) * 4, pack(c[a][n]));
}
template <int N> __device__ __forceinline__ void take(float (&c)[2][N][4], const float *from) {
#pragma unroll
  for (int a = 0; a < 2; a++)
#pragma unroll
    for (int n = 0; n < N; n++) unpack(c[a][n], pack(c[a][n]) + load4(from + ((a * N + n) * 32 + threadIdx_x % 32) * 4));
}

// Right holds a group's keys and values as right operands: in registers, where they fit, else read for every tile.
template <int HD, int K> struct Right {
  static constexpr bool held = HD == 16;
  Tiles<HD> tiles;
  bool turned;
  u32 m[2][K][4];

  __device__ __forceinline__ Right(u32 at, bool turned) : tiles(at), turned(turned) {}
  __device__ __forceinline__ void read(u32 (&out)[4], int a, int k) const {
    if (turned) tiles.turned(out, 16 * a, k);
    else tiles.right(out, 16 * a, k);
  }
  __device__ __forceinline__ void hold() {
    if (held)
#pragma unroll
      for (int a = 0; a < 2; a++)
#pragma unroll
        for (int k = 0; k < K; k++) read(m[a][k], a, k);
  }
  __device__ __forceinline__ void get(u32 (&out)[4], int a, int k) const {
    if (held)
#pragma unroll
      for (int x = 0; x < 4; x++) out[x] = m[a][k][x];
    else read(out, a, k);
  }
};

template <int HD, bool DROP>
__device__ __forceinline__ void attend_grad(Half *dqkv, const Half *dy, const Half *y, const float *logSum, const Half *qkv, const int *first, float *wide,
                                            const State *state, const Drop &mask, int tokens, int heads, int hd, float scale) {
  extern __shared__ float smem[] __attribute__((aligned(16)));
  constexpr int K = HD / 16;
  const int lane = threadIdx_x % 32, warp = threadIdx_x / 32, g = lane / 4, t = lane % 4;
  const int b = blockIdx_x / heads, head = blockIdx_x % heads, d = heads * hd, rows = (tokens + 15) & ~15, groups = (tokens + group - 1) / group;
  const Room<HD> room(smem, wide, rows);
  qkv += (long)b * tokens * 3 * d + head * hd, dqkv += (long)b * tokens * 3 * d + head * hd;
  dy += (long)b * tokens * d + head * hd, y += (long)b * tokens * d + head * hd;
  bring_group<HD>(room, qkv, 0, tokens, d, hd);
  bring_queries<HD>(room, (Half *)smem + rows * HD, qkv, dy, y, logSum + (long)blockIdx_x * tokens, first + (long)b * tokens, mask.scale, tokens, rows, d, hd);
  const u64 instance = DROP ? state->instances + b : 0;
  const Tiles<HD> queries(room.queries), grads(room.grads);
  const u32 diagonal = g / 2 == t ? g % 2 ? 0x3f800000u : 0x3f80u : 0;
  // The unit matrix. The zeros come from a parameter, which no compiler knows: constants would be put into registers again for every product.
  const u32 zero = (u32)tokens >> 31, one[4] = {diagonal, zero, 2 * zero, diagonal | zero};
  const float unit2 = scale * LOG2E, back = scale * mask.scale;
#pragma unroll 1
  for (int J = 0; J < groups; J++) {
    wait_copies<0>();
    sync();
    if (J + 1 < groups) bring_group<HD>(room, qkv, J + 1, tokens, d, hd);
    Right<HD, K> keys(room.keys(J), false), values(room.values(J), false), turnedKeys(room.keys(J), true);
    keys.hold(), values.hold(), turnedKeys.hold();
    float dk[2][2 * K][4] = {}, dv[2][2 * K][4] = {};
#pragma unroll 1
    for (int r = 2 * J + warp; r < rows / 16; r += 2) {
      const int begin = room.first[16 * r];
      if (begin >= 32 * J + 32) break; // no later query sees this group
      Words words, words8;
      if (DROP) words = drop_words(mask, instance, head * tokens + 16 * r + g, groups, J, t), words8 = drop_words(mask, instance, head * tokens + 16 * r + g + 8, groups, J, t);
      float s[4][4] = {}, p[4][4], dp[4][4] = {};
      u32 q[K][4], o[K][4];
#pragma unroll
      for (int k = 0; k < K; k++) queries.left(q[k], 16 * r, k), grads.left(o[k], 16 * r, k);
#pragma unroll
      for (int a = 0; a < 2; a++)
#pragma unroll
        for (int k = 0; k < K; k++) {
          u32 m[4];
          keys.get(m, a, k);
          multiply(s[2 * a], q[k], m[0], m[1]);
          multiply(s[2 * a + 1], q[k], m[2], m[3]);
          values.get(m, a, k);
          multiply(dp[2 * a], o[k], m[0], m[1]);
          multiply(dp[2 * a + 1], o[k], m[2], m[3]);
        }
      const float ls[2] = {room.logSum[16 * r + g], room.logSum[16 * r + g + 8]}, mean[2] = {room.mean[16 * r + g], room.mean[16 * r + g + 8]};
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
      if (DROP) drop(p, s, words, words8, mask.threshold << 16);
#pragma unroll
      for (int n = 0; n < 4; n++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
          if (!DROP) p[n][e] = s[n][e];
          dp[n][e] = p[n][e] * dp[n][e] - s[n][e] * mean[e / 2];
        }
      float dq[2 * K][4];
      float *kept = room.sums + ((long)r * 2 * K * 32 + lane) * 4;
#pragma unroll
      for (int n = 0; n < 2 * K; n++) unpack(dq[n], J == begin / 32 ? f4{0, 0, 0, 0} : load4(kept + n * 128));
#pragma unroll
      for (int a = 0; a < 2; a++) {
        u32 ds[4], m[4], w[4];
        left(ds, dp, a);
#pragma unroll
        for (int k = 0; k < K; k++) {
          turnedKeys.get(m, a, k);
          multiply(dq[2 * k], ds, m[0], m[1]);
          multiply(dq[2 * k + 1], ds, m[2], m[3]);
        }
        left(m, p, a);
        turn(w, m, one);
        turn(m, ds, one);
#pragma unroll
        for (int k = 0; k < K; k++) {
          u32 x[4];
          grads.turned(x, 16 * r, k);
          multiply(dv[a][2 * k], w, x[0], x[1]);
          multiply(dv[a][2 * k + 1], w, x[2], x[3]);
          queries.turned(x, 16 * r, k);
          multiply(dk[a][2 * k], m, x[0], x[1]);
          multiply(dk[a][2 * k + 1], m, x[2], x[3]);
        }
      }
      if (r / 2 == J) write<2 * K>(dqkv, dq, back, 16 * r, tokens, d, hd);
      else
#pragma unroll
        for (int n = 0; n < 2 * K; n++) store4(kept + n * 128, pack(dq[n]));
    }
    if (warp == 0) hand_over(room.handed, dv);
    else hand_over(room.handed + group * HD, dk);
    sync();
    if (warp == 0) {
      take(dk, room.handed + group * HD);
#pragma unroll
      for (int a = 0; a < 2; a++) write<2 * K>(dqkv + d, dk[a], back, 32 * J + 16 * a, tokens, d, hd);
    } else {
      take(dv, room.handed);
#pragma unroll
      for (int a = 0; a < 2; a++) write<2 * K>(dqkv + 2 * d, dv[a], mask.scale, 32 * J + 16 * a, tokens, d, hd);
    }
  }
}

// LEAST blocks on a multiprocessor bound the registers.
#define ATTEND_GRAD(NAME, HD, DROP, LEAST)                                                                                                       \
  KERNEL __launch_bounds__(64, LEAST) NAME(Half *dqkv, const Half *dy, const Half *y, const float *logSum, const Half *qkv, const int *first, float *wide,  \
                                           const State *state, u64 seed, u32 site, u32 threshold, float kept, int tokens, int heads, int hd, float scale) { \
    attend_grad<HD, DROP>(dqkv, dy, y, logSum, qkv, first, wide, state, Drop{seed, site, threshold, kept}, tokens, heads, hd, scale);            \
  }
ATTEND_GRAD(half_attention_grad_16, 16, false, 6)
ATTEND_GRAD(half_attention_grad_32, 32, false, 4)
ATTEND_GRAD(half_attention_grad_64, 64, false, 2)
ATTEND_GRAD(half_attention_grad_drop_16, 16, true, 6)
ATTEND_GRAD(half_attention_grad_drop_32, 32, true, 4)
ATTEND_GRAD(half_attention_grad_drop_64, 64, true, 2)
