// The gradient of embeddings of 128 columns (embed.cu) by a warpgroup's products: a row of a table
// adds up the tokens that have it, so the gradient is a matrix of ones and zeros times dy.
//
//   partial[block, s, c] = Σ over the block's tokens with s_f + index[m,f] = s of dy[m,c]
//
// What a reader could break: dy is in bf16, or rounded to it, as all that weights' gradients are
// made of is, and added up in fp32. Stages go through three buffers: what is written into one was
// read by products that every group has waited for before the last barrier. The two sets of left
// operands take turns, for one is under way while the other is made (hopper.cuh).
#include "hopper.cuh"

constexpr int width = 128, stage = 64, buffers = 3, mostFields = 8, groups = 3, threads = 128 * groups;
// 64 columns, all of them
constexpr int tileBytes = stage * tileRowBytes, stageBytes = 2 * tileBytes;
constexpr int indexes = (stage * mostFields + threads - 1) / threads;

extern __shared__ char room[] __attribute__((aligned(1024)));

// Stage reads a stage of dy, `each` numbers of a thread at a time: `fetch` asks for them, `put`
// lays them out as bf16.
template <class T> struct Stage;
template <> struct Stage<float> {
  static constexpr int each = 4;
  f4 v;
  __device__ __forceinline__ void fetch(const float *at, bool real) { v = stream4(at, real); }
  __device__ __forceinline__ void put(char *to) const { *(u2 *)to = u2{bf16x2(v.x, v.y), bf16x2(v.z, v.w)}; }
};
template <> struct Stage<Bf16> {
  static constexpr int each = 8;
  u4 v;
  __device__ __forceinline__ void fetch(const Bf16 *at, bool real) {
    v = u4{0, 0, 0, 0};
    if (real) v = stream4(at);
  }
  __device__ __forceinline__ void put(char *to) const { *(u4 *)to = v; }
};

// Table f has rows s_f up to where the next begins, `all` in all. Block (x, y): x is one of
// `blocks` of lane x/blocks and takes `each` of its `chunk` tokens; y has three tiles of 64 rows of
// the tables. Apart from the kernel: as one function it spills six times as much.
template <class DY>
__device__ __forceinline__ void gradient(float *partial, const DY *dy, const int *index, const int (&starts)[mostFields], int fields,
    int rows, int all, int chunk, int each, int blocks) {
  const int lane = threadIdx_x % 32, warp = threadIdx_x / 32, g = lane / 4, t = lane % 4, group = warp / 4;
  const int l = blockIdx_x / blocks, end = (l + 1) * chunk < rows ? (l + 1) * chunk : rows;
  const int from = l * chunk + ((int)blockIdx_x - l * blocks) * each, to = from + each < end ? from + each : end;
  int *tokens = (int *)(room + buffers * stageBytes); // [buffers][mostFields][stage]
  const u32 base = shared_at(room);

  // and the row eight further on
  const int own = ((int)blockIdx_y * groups + group) * 64 + warp % 4 * 16 + g;
  int field[2], wanted[2];
#pragma unroll
  for (int h = 0; h < 2; h++) {
    const int s = own + 8 * h;
    field[h] = 0, wanted[h] = s;
#pragma unroll
    for (int f = 1; f < mostFields; f++)
      if (f < fields && s >= starts[f]) field[h] = f, wanted[h] = s - starts[f];
    if (s >= all) wanted[h] = -2; // nobody's
  }

  constexpr int run = Stage<DY>::each, vectors = (stage * width / run + threads - 1) / threads;
  Stage<DY> next[vectors];
  int at[indexes];
  auto fetch = [&](int r0) {
#pragma unroll
    for (int i = 0; i < vectors; i++) {
      const int e = threadIdx_x + i * threads, r = r0 + e / (width / run);
      next[i].fetch(dy + (long)r0 * width + run * e, e < stage * width / run && r < to);
    }
#pragma unroll
    for (int i = 0; i < indexes; i++) {
      const int e = threadIdx_x + i * threads;
      at[i] = e < stage * fields && r0 + e / fields < to ? index[(long)r0 * fields + e] : -1;
    }
  };
  auto put = [&](int buffer) {
    char *to = room + buffer * stageBytes;
#pragma unroll
    for (int i = 0; i < vectors; i++) {
      const int e = threadIdx_x + i * threads, r = e / (width / run), c = run * (e % (width / run));
      if (e >= stage * width / run) break;
      next[i].put(to + c / 64 * tileBytes + tile_place(r, c % 64 / 8) + c % 8 * 2);
    }
#pragma unroll
    for (int i = 0; i < indexes; i++) {
      const int e = threadIdx_x + i * threads;
      if (e < stage * fields) tokens[(buffer * mostFields + e % fields) * stage + e / fields] = at[i];
    }
  };
  // ones makes the left operand: 32 tokens of this lane's rows.
  auto ones = [&](u32 (&a)[8], int buffer, int term) {
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const int *of = tokens + (buffer * mostFields + field[h]) * stage + term + 2 * t;
#pragma unroll
      for (int q = 0; q < 4; q++) {
        const u2 two = *(const u2 *)(of + 8 * q);
        a[2 * q + h] = ((int)two.x == wanted[h] ? 0x3f80u : 0u) | ((int)two.y == wanted[h] ? 0x3f800000u : 0u);
      }
    }
  };
  float sums[64];
#pragma unroll
  for (int i = 0; i < 64; i++) sums[i] = 0;
  u32 a[2][8], b[2][8]; // tokens 0 to 31 and 32 to 63 of a stage
  int buffer = 0;
  auto begin = [&](int turn) {
    begin_products();
    begin_turned(sums, a[turn], b[turn], turned_at(base + buffer * stageBytes, tileBytes));
    end_products();
    buffer = buffer + 1 < buffers ? buffer + 1 : 0;
  };
  // bring leaves a stage for products and asks for the one after it.
  auto bring = [&](int turn, int r0) {
    put(buffer);
    fetch(r0 + stage);
    seal();
    sync();
    ones(a[turn], buffer, 0), ones(b[turn], buffer, 32);
  };
  fetch(from);
  bring(0, from);
  begin(0);
#pragma unroll 1
  // the second of two stages may have no tokens
  for (int r0 = from + stage; r0 < to; r0 += 2 * stage) {
    bring(1, r0);
    wait_products(sums, a[0], b[0]);
    begin(1);
    bring(0, r0 + stage);
    wait_products(sums, a[1], b[1]);
    begin(0);
  }
  wait_products(sums, a[0], b[0]);
#pragma unroll
  for (int h = 0; h < 2; h++) {
    const int s = own + 8 * h;
    if (s < all)
#pragma unroll
      for (int j = 0; j < 16; j++)
        *(f2 *)(partial + ((long)blockIdx_x * all + s) * width + 8 * j + 2 * t) = f2{sums[4 * j + 2 * h], sums[4 * j + 2 * h + 1]};
  }
}

#define PRODUCTS(NAME, DY)                                                                                                  \
  KERNEL __launch_bounds__(threads, 1)                                                                                    \
      NAME(float *partial, const DY *dy, const int *index, int s0, int s1, int s2, int s3, int s4, int s5, int s6, int s7, \
          int fields, int rows, int all, int chunk, int each, int blocks) {                                               \
    const int starts[mostFields] = {s0, s1, s2, s3, s4, s5, s6, s7};                                                      \
    gradient(partial, dy, index, starts, fields, rows, all, chunk, each, blocks);                                         \
  }
PRODUCTS(embed_products, float)
PRODUCTS(embed_products_compact, Bf16)
