// The gradient of causal attention over bf16 for rows of at most 192 tokens and heads of at most 16
// columns: a block of three warps a head of an instance. The loops it computes are those of
// kernel.CausalAttentionGrad.
//
// What a reader could break: all that a block reads is on its way at once and waited for once; a
// block lives for about as long as twenty reads of memory. Warp w takes groups w and groups-1-w of
// 32 keys, so that all have as many tiles of 16 queries to go over, and meets the others only
// before the first and after the last. A group's dk and dv are sums in the registers of its warp. A
// tile's dq is a sum for each warp, in shared memory from the first of its groups that the tile
// sees to the second; the warps' sums are added in their order at the end. Queries past the end are
// the last one with an infinite LogSum: their probabilities are 0. Keys past the end are zeros and
// lie after every query.
#include "bf16_attention_steps.cuh"

constexpr int HD = 16, group = 32, warps = 3, threads = 32 * warps, tileSums = 16 * HD, mostTokens = 192, mostTiles = mostTokens / 16;

// Count is a number that a template knows.
template <int N> struct Count {
  static constexpr int value = N;
};

// triangle is how many pairs of groups the tiles before r have up to their own.
__device__ __forceinline__ int triangle(int r) { return (r / 4 + 1) * (r / 4 * 2 + r % 4); }

// Shared: q, dy [tokens][HD] | k, v [32·groups][HD] | -logSum·log2 e and -D/keepScale
// [rows/2][2][4], of two queries twice, as Seen has them | first [rows] | met [4] | masks, where
// they are kept, those of a tile up to its own pair | dq, for each warp the tiles from its first
// group's on. rows is tokens in whole sixteens.
struct Room {
  u32 queries, grads, keys, values;
  float *stats, *sums;
  u32 *masks, *met; // of warp w, bit r: it has a part of tile r
  int *first;

  __device__ __forceinline__ Room(float *smem, int tokens, int rows, int groups, bool kept) {
    queries = shared_at(smem), grads = queries + 2 * tokens * HD, keys = grads + 2 * tokens * HD, values = keys + 2 * group * groups * HD;
    stats = smem + tokens * HD + group * groups * HD, first = (int *)(stats + 4 * rows);
    met = (u32 *)(stats + 5 * rows);
    float *end = stats + 5 * rows + 4;
    masks = (u32 *)end, sums = end + (kept ? 32 * triangle(rows / 16) : 0);
  }
  // numbers is where row i's two numbers lie the first time; the second time is two further on.
  __device__ __forceinline__ float *numbers(int i) const { return stats + i / 2 * 8 + i % 2; }
  // dq is where a lane of warp w has its part of tile r, 2w at least.
  __device__ __forceinline__ float *dq(int w, int r, int tiles) const { return sums + ((r - 2 * w) + w * (tiles - w + 1)) * tileSums + threadIdx_x % 32 * 4; }
};

// lay puts 16 rows in bf16 at `at` in shared memory, store from there into dqkv, from which `to` is
// the head's first column, from `row` on: so a lane has eight columns of a row. Between them stands
// syncwarp.
__device__ __forceinline__ void lay(char *at, const float (&c)[2][4], float scale) {
  const int g = threadIdx_x % 32 / 4, t = threadIdx_x % 4;
#pragma unroll
  for (int i = 0; i < 4; i++) *(u32 *)(at + 2 * piece<HD>(g + i / 2 * 8, i % 2) + 4 * t) = bf16x2(c[i % 2][i / 2 * 2] * scale, c[i % 2][i / 2 * 2 + 1] * scale);
}
__device__ __forceinline__ void store(Bf16 *to, const char *at, int row, int tokens, int d, int hd) {
  const int lane = threadIdx_x % 32, i = row + lane / 2, c = lane % 2;
  if (i < tokens && 8 * c < hd) *(u4 *)(to + i * 3 * d + 8 * c) = *(const u4 *)(at + 2 * piece<HD>(lane / 2, c));
}

// bring starts all reads at once and waits for none before the last is under way.
__device__ __forceinline__ void bring(const Room &room, Bf16 *smem, const Bf16 *qkv, const Bf16 *dy, const Bf16 *y, const float *logSum, const int *first, const u32 *kept,
                                      float keepScale, float unit2, int tokens, int rows, int groups, int d, int hd) {
  constexpr int across = HD / 8, step = threads / across, each = (mostTokens + step - 1) / step, twice = (mostTokens + threads - 1) / threads;
  const int c = threadIdx_x % across, i0 = threadIdx_x / across, n = group * groups, column = 8 * c < hd ? 8 * c : 0;
  float logs[twice];
  int begins[twice];
#pragma unroll
  for (int x = 0; x < twice; x++) {
    const int i = last(threadIdx_x + x * threads, tokens);
    logs[x] = logSum[i], begins[x] = first[i];
  }
  u4 a[each], b[each], q[each];
#pragma unroll
  for (int x = 0; x < each; x++) {
    const int i = last(i0 + x * step, tokens);
    a[x] = *(const u4 *)(dy + i * d + column), b[x] = *(const u4 *)(y + i * d + column), q[x] = *(const u4 *)(qkv + i * 3 * d + column);
  }
#pragma unroll
  for (int x = 0; x < each; x++) {
    const int j = i0 + x * step;
    const bool valid = 8 * c < hd && j < tokens;
    const Bf16 *from = qkv + last(j, tokens) * 3 * d + d + column;
    if (j < n) copy16(room.keys + 2 * piece<HD>(j, c), from, valid), copy16(room.values + 2 * piece<HD>(j, c), from + d, valid);
  }
  if (kept) {
    const int pairs = (tokens + 63) / 64;
#pragma unroll
    for (int x = 0; x < mostTiles / warps; x++) {
      const int r = threadIdx_x / 32 + x * warps, at = threadIdx_x % 32;
      if (r < rows / 16 && at < 8 * (r / 4 + 1)) copy16(shared_at(room.masks) + 128 * triangle(r) + 16 * at, (const Bf16 *)(kept + r * pairs * 32 + 4 * at), true);
    }
  }
  commit_copies();
  const float inverse = rcp_approx(keepScale), unit = 8 * c < hd ? unit2 : 0;
#pragma unroll
  for (int x = 0; x < twice; x++) {
    const int i = threadIdx_x + x * threads;
    const float log = i < tokens ? logs[x] * -LOG2E : -1e30f;
    if (i < rows) room.numbers(i)[0] = room.numbers(i)[2] = log, room.first[i] = i < tokens ? begins[x] : i;
  }
#pragma unroll
  for (int x = 0; x < each; x++) {
    const int i = i0 + x * step;
    const bool real = i < tokens;
    const u32 mask = 8 * c < hd ? 0xffffffff : 0;
    const u4 g = {a[x].x & mask, a[x].y & mask, a[x].z & mask, a[x].w & mask};
    float sum = (dot2(g.x, b[x].x) + dot2(g.y, b[x].y)) + (dot2(g.z, b[x].z) + dot2(g.w, b[x].w));
#pragma unroll
    for (int m = 1; m < across; m *= 2) sum += shfl_xor(sum, m);
    if (real) {
      *(u4 *)(smem + tokens * HD + piece<HD>(i, c)) = g;
      *(u4 *)(smem + piece<HD>(i, c)) = u4{scaled(q[x].x, unit), scaled(q[x].y, unit), scaled(q[x].z, unit), scaled(q[x].w, unit)};
    }
    if (i < rows && c == 0) room.numbers(i)[4] = room.numbers(i)[6] = real ? -sum * inverse : 0;
  }
}

template <int DROP>
__device__ __forceinline__ void attend_grad(Bf16 *dqkv, const Bf16 *dy, const Bf16 *y, const float *logSum, const u32 *bits, const Bf16 *qkv, const int *first, const State *state,
                                            Masks masks, float keepScale, int tokens, int heads, int hd, float scale, int from) {
  extern __shared__ float smem[] __attribute__((aligned(16)));
  const int lane = threadIdx_x % 32, warp = threadIdx_x / 32, g = lane / 4, t = lane % 4;
  const int b = blockIdx_y + from, head = blockIdx_x, d = heads * hd, rows = (tokens + 15) & ~15, tiles = rows / 16, groups = (tokens + group - 1) / group, pairs = (tokens + 63) / 64;
  const Room room(smem, tokens, rows, groups, DROP == KEPT);
  // Places in memory are worked out where they are used: kept, they spill.
  auto placed = [&](auto *all) { return all + (u64)(u32)(apart(b) * tokens) * (u32)(3 * d) + head * hd; };
  const u64 own0 = (u64)(u32)(b * tokens) * (u32)d + head * hd;
  dy += own0, y += own0;
  bring(room, (Bf16 *)smem, placed(qkv), dy, y, logSum + (u64)(u32)(b * heads + head) * (u32)tokens, first + b * tokens,
        DROP == KEPT ? bits + (u64)(u32)((b * heads + head) * 2 * groups) * (u32)(32 * pairs) : nullptr, keepScale, scale * LOG2E, tokens, rows, groups, d, hd);
  if (DROP == MASKED) masks.of(state->instances + b);
  const Lines down = lines_of<HD>(16);
  const u32 diagonal = g / 2 == t ? g % 2 ? 0x3c000000u : 0x3c00u : 0;
  // The unit matrix in fp16. The zeros come from a parameter, which no compiler knows: constants
  // would be put into registers again for every product.
  const u32 zero = (u32)tokens >> 31, one[4] = {diagonal, zero, 2 * zero, diagonal | zero};
  wait_copies<0>();
  sync();
  char *const shared = (char *)smem - shared_at(smem);
  u32 met = 0;
#pragma unroll 1
  for (int turn = 0; turn < 2; turn++) {
    const int J = turn ? groups - 1 - warp : warp;
    if (turn ? J <= warp : J > groups - 1 - warp) break;
    const u32 keys = room.keys + 2 * group * HD * J, values = room.values + 2 * group * HD * J;
    const Own<HD> own(keys, values);
    Gradient<HD, DROP != WHOLE> grad;
    // visit takes tile r; of its first tile the group's upper keys come after every query.
    auto visit = [&](auto halves, int r, bool edge) __attribute__((always_inline)) {
      constexpr int N = decltype(halves)::value;
      Seen seen;
#pragma unroll
      for (int x = 0; x < 2; x++) {
        const float *numbers = room.stats + 64 * r + 32 * x + 8 * t;
        const f4 logs = load4(numbers), none = load4(numbers + 4);
        unpack(seen.logs[x], logs), unpack(seen.none[x], none);
        if (DROP == KEPT) {
          const u2 words = *(const u2 *)(room.masks + (triangle(r) + J / 2) * 32 + J % 2 * 16 + 8 * x + 2 * t);
          seen.words[x][0] = words.x, seen.words[x][1] = words.y;
        }
      }
      if (DROP == MASKED) {
        const int word = (int)masks.word(masks.draw(head * tokens + 16 * r + lane % 16, groups, J));
#pragma unroll
        for (int e = 0; e < 4; e++) seen.words[e / 2][e % 2] = (u32)shfl(word, e / 2 * 8 + 2 * t + e % 2);
      }
      float dq[2][4];
      float *partial = room.dq(warp, r, tiles);
      const bool more = met >> r & 1;
      met |= 1u << r;
      auto so_far = [&] {
#pragma unroll
        for (int n = 0; n < 2; n++) unpack(dq[n], more ? load4(partial + n * 128) : f4{0, 0, 0, 0});
      };
      auto hidden = [&](float (&s)[N][2][4]) {
        int from[2][2];
#pragma unroll
        for (int e = 0; e < 4; e++) from[e / 2][e % 2] = room.first[16 * r + e / 2 * 8 + 2 * t + e % 2];
        hide(s, from, 16 * r, 32 * J);
      };
      const u32 tile = 32 * r * HD;
      Lines lines = down;
      if (r == tiles - 1) lines = lines_of<HD>(apart(tokens) - 16 * r); // lines past the end repeat the last query
      grad.template add<N>(dq, own, room.queries + tile, room.grads + tile, lines, seen, one, edge, hidden, so_far);
#pragma unroll
      for (int n = 0; n < 2; n++) store4(partial + n * 128, pack(dq[n]));
    };
    visit(Count<1>(), 2 * J, true);
    int next = room.first[least(32 * J + 16, rows - 1)], nextLast = room.first[least(32 * J + 31, rows - 1)];
#pragma unroll 1
    for (int r = 2 * J + 1; r < tiles; r++) {
      const int begin = next, beginLast = nextLast; // of the tile's first and last query
      if (begin >= 32 * J + 32) break; // no later query sees this group
      const int ahead = 16 * (r + 1 < tiles ? r + 1 : r);
      next = room.first[ahead], nextLast = room.first[ahead + 15];
      visit(Count<2>(), r, r == 2 * J + 1 || beginLast > 32 * J);
    }
    // The group's keys and values are done with: their gradients take their place.
    Bf16 *to = placed(dqkv);
    char *const k = shared + keys, *const v = shared + values;
    syncwarp();
#pragma unroll
    for (int a = 0; a < 2; a++) lay(k + 32 * HD * a, grad.dk[a], LN2 * keepScale), lay(v + 32 * HD * a, grad.dv[a], keepScale);
    syncwarp();
#pragma unroll
    for (int a = 0; a < 2; a++) {
      store(to + d, k + 32 * HD * a, 32 * J + 16 * a, tokens, d, hd);
      store(to + 2 * d, v + 32 * HD * a, 32 * J + 16 * a, tokens, d, hd);
    }
  }
  if (lane == 0) room.met[warp] = met;
  sync();
  u32 all[warps];
#pragma unroll
  for (int w = 0; w < warps; w++) all[w] = room.met[w];
  Bf16 *to = placed(dqkv);
#pragma unroll 1
  for (int r = warp; r < tiles; r += warps) {
    float dq[2][4] = {};
#pragma unroll
    for (int w = 0; w < warps; w++) {
      if (!(all[w] >> r & 1)) continue;
      const float *partial = room.dq(w, r, tiles);
#pragma unroll
      for (int n = 0; n < 2; n++) unpack(dq[n], pack(dq[n]) + load4(partial + n * 128));
    }
    // Queries are done with too; past the last one lie grads, which are as well.
    char *at = shared + room.queries + 32 * r * HD;
    lay(at, dq, scale * keepScale);
    syncwarp();
    store(to, at, 16 * r, tokens, d, hd);
  }
}

#define ATTEND_GRAD(NAME, DROP)                                                                                                       \
  KERNEL __launch_bounds__(threads, 4) NAME(Bf16 *dqkv, const Bf16 *dy, const Bf16 *y, const float *logSum, const u32 *bits, const Bf16 *qkv, const int *first,  \
                                           const State *state, u32 site, float kept, DECIDED_BY, int tokens, int heads, int hd, float scale, int from) { \
    attend_grad<DROP>(dqkv, dy, y, logSum, bits, qkv, first, state, Masks{WHAT_DECIDES, site}, kept, tokens, heads, hd, scale, from); \
  }
ATTEND_GRAD(bf16_attention_grad_short_16, WHOLE)
ATTEND_GRAD(bf16_attention_grad_short_drop_16, MASKED)
ATTEND_GRAD(bf16_attention_grad_short_kept_16, KEPT)
