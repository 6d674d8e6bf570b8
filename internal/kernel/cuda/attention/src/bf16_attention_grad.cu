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

// Shared: q, dy [tokens][HD] | k, v [2][2][32][HD], a group's and the next one's | -logSum·log2 e
// and -D/keepScale [rows/2][2][4], of two queries twice, as Seen has them | first [rows] | dq
// [rows·HD], where HD < 64 | masks, where they are kept, those of a tile up to its own pair.
// Where HD is 64 dq is in `wide`, as many floats a block. rows is tokens in whole sixteens.
template <int HD> struct Room {
  u32 queries, grads, groups;
  float *stats, *sums, *pairs; // pairs: the groups' memory
  int *first;

  __device__ __forceinline__ Room(float *smem, float *wide, int tokens, int rows) {
    queries = shared_at(smem), grads = queries + 2 * tokens * HD, groups = grads + 2 * tokens * HD;
    pairs = smem + tokens * HD, stats = pairs + 2 * group * HD, first = (int *)(stats + 4 * rows);
    sums = HD < 64 ? stats + 5 * rows : wide + (long)blockIdx_x * rows * HD;
  }
  __device__ __forceinline__ u32 keys(int J) const { return groups + J % 2 * 4 * group * HD; }
  __device__ __forceinline__ u32 values(int J) const { return keys(J) + 2 * group * HD; }
  // numbers is where row i's two numbers lie the first time; the second time is two further on.
  __device__ __forceinline__ float *numbers(int i) const { return stats + i / 2 * 8 + i % 2; }
  // handed is where `warp` leaves half a of what it hands over at the end of group J.
  __device__ __forceinline__ float *handed(int J, int warp, int a) const {
    return a == 0 ? sums + (long)(2 * J + warp) * 16 * HD : pairs + (2 * (J % 2) + warp) * group / 2 * HD;
  }
};

// triangle is how many pairs of groups the tiles before r have up to their own.
__device__ __forceinline__ int triangle(int r) { return (r / 4 + 1) * (r / 4 * 2 + r % 4); }

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
__device__ __forceinline__ void bring_queries(const Room<HD> &room, Bf16 *queries, Bf16 *grads, const Bf16 *qkv, const Bf16 *dy, const Bf16 *y, const float *logSum, const int *first,
                                              float keepScale, float unit2, int tokens, int rows, int d, int hd) {
  // pieces of a row, rows at a time, reads under way
  constexpr int across = HD / 8, step = 64 / across, ahead = 6;
  const int c = threadIdx_x % across;
  const float inverse = rcp(keepScale);
  for (int i = threadIdx_x; i < rows; i += 64) {
    const float log = i < tokens ? logSum[i] * -LOG2E : -1e30f;
    room.numbers(i)[0] = room.numbers(i)[2] = log, room.first[i] = i < tokens ? first[i] : i;
  }
#pragma unroll 1
  for (int i0 = threadIdx_x / across; i0 < rows; i0 += ahead * step) {
    u4 a[ahead], b[ahead], q[ahead];
#pragma unroll
    for (int x = 0; x < ahead; x++) {
      const int i = i0 + x * step;
      const bool valid = 8 * c < hd && i < tokens;
      a[x] = valid ? *(const u4 *)(dy + (long)i * d + 8 * c) : u4{0, 0, 0, 0}, b[x] = valid ? *(const u4 *)(y + (long)i * d + 8 * c) : u4{0, 0, 0, 0};
      q[x] = valid ? *(const u4 *)(qkv + (long)i * 3 * d + 8 * c) : u4{0, 0, 0, 0};
    }
#pragma unroll
    for (int x = 0; x < ahead; x++) {
      const int i = i0 + x * step;
      float sum = (dot2(a[x].x, b[x].x) + dot2(a[x].y, b[x].y)) + (dot2(a[x].z, b[x].z) + dot2(a[x].w, b[x].w));
#pragma unroll
      for (int m = 1; m < across; m *= 2) sum += shfl_xor(sum, m);
      if (i < tokens) {
        *(u4 *)(grads + piece<HD>(i, c)) = a[x];
        *(u4 *)(queries + piece<HD>(i, c)) = u4{scaled(q[x].x, unit2), scaled(q[x].y, unit2), scaled(q[x].z, unit2), scaled(q[x].w, unit2)};
      }
      if (i < rows && c == 0) room.numbers(i)[4] = room.numbers(i)[6] = -sum * inverse;
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
__device__ __forceinline__ void attend_grad(Bf16 *dqkv, const Bf16 *dy, const Bf16 *y, const float *logSum, const u32 *bits, const Bf16 *qkv, const int *first, float *wide,
                                            const State *state, Masks masks, float keepScale, int tokens, int heads, int hd, float scale) {
  extern __shared__ float smem[] __attribute__((aligned(16)));
  constexpr int K = HD / 16;
  const int lane = threadIdx_x % 32, warp = threadIdx_x / 32, g = lane / 4, t = lane % 4;
  const int b = blockIdx_x / heads, head = blockIdx_x % heads, d = heads * hd, rows = (tokens + 15) & ~15, tiles = rows / 16, groups = (tokens + group - 1) / group, pairs = (tokens + 63) / 64;
  const Room<HD> room(smem, wide, tokens, rows);
  // Places in memory are worked out where they are used: kept, they spill.
  auto placed = [&](auto *all) { return all + (long)apart(b) * tokens * 3 * d + head * hd; };
  dy += (long)b * tokens * d + head * hd, y += (long)b * tokens * d + head * hd;
  const float unit2 = scale * LOG2E;
  bring_group<HD>(room, placed(qkv), 0, tokens, d, hd);
  if (DROP == KEPT) {
    const u32 *kept = bits + kept_at(blockIdx_x, 2 * groups, pairs, 0, 0);
    for (int r = warp; r < tiles; r += 2)
      for (int n = lane; n < 8 * (r / 4 + 1); n += 32) copy16(shared_at(room.sums + rows * HD) + 128 * triangle(r) + 16 * n, (const Bf16 *)(kept + r * pairs * 32 + 4 * n), true);
  }
  bring_queries<HD>(room, (Bf16 *)smem, (Bf16 *)smem + tokens * HD, placed(qkv), dy, y, logSum + (long)blockIdx_x * tokens, first + (long)b * tokens, keepScale, unit2, tokens, rows, d, hd);
  if (DROP == MASKED) masks.of(state->instances + b);
  const Lines down = lines_of<HD>(16);
  const u32 diagonal = g / 2 == t ? g % 2 ? 0x3c000000u : 0x3c00u : 0;
  // The unit matrix in fp16. The zeros come from a parameter, which no compiler knows: constants
  // would be put into registers again for every product.
  const u32 zero = (u32)tokens >> 31, one[4] = {diagonal, zero, 2 * zero, diagonal | zero};
  const float back = scale * keepScale;
#pragma unroll 1
  for (int J = 0; J < groups; J++) {
    wait_copies<0>();
    sync();
    if (J + 1 < groups) bring_group<HD>(room, placed(qkv), J + 1, tokens, d, hd);
    const Own<HD> own(room.keys(J), room.values(J));
    Gradient<HD, DROP != WHOLE> grad;
    int next = room.first[2 * J + warp < tiles ? 32 * J + 16 * warp : 0];
#pragma unroll 1
    for (int r = 2 * J + warp; r < tiles; r += 2) {
      const int begin = next;
      if (begin >= 32 * J + 32) break; // no later query sees this group
      next = room.first[16 * (r + 2 < tiles ? r + 2 : r)];
      Seen seen;
#pragma unroll
      for (int x = 0; x < 2; x++) {
        const float *numbers = room.stats + 64 * r + 32 * x + 8 * t;
        unpack(seen.logs[x], load4(numbers)), unpack(seen.none[x], load4(numbers + 4));
        if (DROP == KEPT) {
          const u2 words = *(const u2 *)(room.sums + rows * HD + (triangle(r) + J / 2) * 32 + J % 2 * 16 + 8 * x + 2 * t);
          seen.words[x][0] = words.x, seen.words[x][1] = words.y;
        }
      }
      if (DROP == MASKED) {
        const int word = (int)masks.word(masks.draw(head * tokens + 16 * r + lane % 16, groups, J));
#pragma unroll
        for (int e = 0; e < 4; e++) seen.words[e / 2][e % 2] = (u32)shfl(word, e / 2 * 8 + 2 * t + e % 2);
      }
      float dq[2 * K][4];
      float *partial = room.sums + ((long)r * 2 * K * 32 + lane) * 4;
      auto before = [&] {
#pragma unroll
        for (int n = 0; n < 2 * K; n++) unpack(dq[n], J == begin / 32 ? f4{0, 0, 0, 0} : load4(partial + n * 128));
      };
      auto hidden = [&](float (&s)[2][2][4]) {
        int from[2][2];
#pragma unroll
        for (int e = 0; e < 4; e++) from[e / 2][e % 2] = room.first[16 * r + e / 2 * 8 + 2 * t + e % 2];
        hide(s, from, 16 * r, 32 * J);
      };
      const u32 tile = 32 * r * HD;
      Lines lines = down;
      if (r == tiles - 1) lines = lines_of<HD>(apart(tokens) - 16 * r); // lines past the end repeat the last query
      grad.add(dq, own, room.queries + tile, room.grads + tile, lines, seen, one, r / 2 == J || room.first[16 * r + 15] > 32 * J, hidden, before);
      if (r / 2 == J) write<2 * K>(placed(dqkv), dq, back, 16 * r, tokens, d, hd);
      else
#pragma unroll
        for (int n = 0; n < 2 * K; n++) store4(partial + n * 128, pack(dq[n]));
    }
    const bool both = 2 * J + 1 < tiles; // else warp 1 has seen nothing of this group
    if (both) {
      sync(); // the group's keys and values are read
#pragma unroll
      for (int a = 0; a < 2; a++) {
        if (warp == 0) hand_over(room.handed(J, 0, a), grad.dv[a]);
        else hand_over(room.handed(J, 1, a), grad.dk[a]);
      }
      sync();
    }
#pragma unroll
    for (int a = 0; a < 2; a++) {
      Bf16 *to = placed(dqkv);
      if (warp == 0) {
        if (both) take(grad.dk[a], room.handed(J, 1, a));
        write<2 * K>(to + d, grad.dk[a], LN2 * keepScale, 32 * J + 16 * a, tokens, d, hd);
      } else if (both) take(grad.dv[a], room.handed(J, 0, a));
      if (warp == both) write<2 * K>(to + 2 * d, grad.dv[a], keepScale, 32 * J + 16 * a, tokens, d, hd);
    }
  }
}

// LEAST blocks on a multiprocessor bound the registers.
#define ATTEND_GRAD(NAME, HD, DROP, LEAST)                                                                                                       \
  KERNEL __launch_bounds__(64, LEAST) NAME(Bf16 *dqkv, const Bf16 *dy, const Bf16 *y, const float *logSum, const u32 *bits, const Bf16 *qkv, const int *first, float *wide,  \
                                           const State *state, u32 site, float kept, DECIDED_BY, int tokens, int heads, int hd, float scale) { \
    attend_grad<HD, DROP>(dqkv, dy, y, logSum, bits, qkv, first, wide, state, Masks{WHAT_DECIDES, site}, kept, tokens, heads, hd, scale); \
  }
ATTEND_GRAD(bf16_attention_grad_16, 16, WHOLE, 8)
ATTEND_GRAD(bf16_attention_grad_32, 32, WHOLE, 4)
ATTEND_GRAD(bf16_attention_grad_64, 64, WHOLE, 2)
ATTEND_GRAD(bf16_attention_grad_drop_16, 16, MASKED, 6)
ATTEND_GRAD(bf16_attention_grad_drop_32, 32, MASKED, 4)
ATTEND_GRAD(bf16_attention_grad_drop_64, 64, MASKED, 2)
ATTEND_GRAD(bf16_attention_grad_kept_16, 16, KEPT, 6)
