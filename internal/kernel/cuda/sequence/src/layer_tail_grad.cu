// The gradient of a layer's tail (layer_tail.cu) in one pass over rows: from dx, the gradient of
// its result, to that of its stream and of attention's result.
//
//   kept2 = drop2(dx);  pre = hat2·W₁ᵀ + b₁;  dpre = (kept2·W₂)·GELU'(pre);  dhat = dpre·W₁
//   dx += rstd2·(dhat - mean(dhat) - hat2·mean(dhat·hat2))
//   kept1 = drop1(dx);  dattended = kept1·Wₒ
//
// kept2, dpre, GELU(pre) and kept1 are written for the weights' gradients. pre is made again, as in
// the pass forward: a product costs less than to write and to read it.
//
// What a reader could break: a piece of W₁, 64 hidden rows, is the right operand of two products,
// as it lies for pre and turned for dhat, so it is done with only after the second. The copy engine
// brings rows to where others have been read: every thread that read or wrote a place arrives at
// its barrier, behind `seal` where threads write. dpre and GELU(pre) lie as blocks of 64 columns,
// each of all `all` rows, for layer_dw.cu.
#define LAYER_MATRICES 2
#define LAYER_BIASES layerFeed
#ifdef WIDE
#define LAYER_SLOTS 6
#define LAYER_STREAM 4
#else
#define LAYER_SLOTS 8
#define LAYER_STREAM 2
#endif
#define LAYER_BARRIERS 12
#include "layer_grad.cuh"
#include "gelu.cuh"

constexpr int hiddenColumns = 64, hiddenBlocks = layerFeed / hiddenColumns;

// Pieces of dqkv and of the weight that takes them, by turns.
constexpr int beforePieces = 6;
// A group's rows of a matrix come as boxes of 64 rows and 128 bytes.
constexpr int boxBytes = groupRows * tileRowBytes;
constexpr bool wide = LAYER_STREAM == 4;

// Ring is what passes through the slots, COUNT pieces for each tile of rows: `place` says where
// piece i is once it has come, `done` that products of this warp need it no more. `bring(i, tile,
// to, barrier)` starts the copy of one. The first are on their way before the threads of a block
// have met.
template <int COUNT> struct Ring {
  u32 at;    // of shared memory
  u32 round; // tiles of rows that this block has done

  template <class F> __device__ __forceinline__ explicit Ring(F bring) : at(shared_at(room)), round(0) {
    static_assert(slots <= COUNT, "the first are those of one tile");
    if (threadIdx_x == 128 * layerGroups) { // who brings the others
      for (int s = 0; s < slots; s++) barrier_init(full(s), 1), barrier_init(empty(s), 4 * layerGroups);
      barrier_inited();
      seal();
      for (int s = 0; s < slots; s++) start(s, s, blockIdx_x, bring);
    }
    sync();
  }
  __device__ __forceinline__ u32 full(u32 s) const { return at + atBarriers + s % slots * 16; }
  __device__ __forceinline__ u32 empty(u32 s) const { return full(s) + 8; }
  __device__ __forceinline__ u32 place(int i) const {
    const u32 s = round * COUNT + i;
    barrier_wait(full(s), s / slots % 2);
    return at + atSlots + s % slots * pieceBytes;
  }
  __device__ __forceinline__ void done(int i) const {
    if (threadIdx_x % 32 == 0) barrier_arrive(empty(round * COUNT + i));
  }
  template <class F> __device__ __forceinline__ void start(u32 s, int i, int tile, F bring) const {
    barrier_expect(full(s), pieceBytes);
    bring(i, tile, at + atSlots + s % slots * pieceBytes, full(s));
  }
  // bring_all is one thread's work: the pieces of all of the block's tiles.
  template <class F> __device__ __forceinline__ void bring_all(int tiles, F bring) const {
    u32 s = 0;
#pragma unroll 1
    for (int tile = blockIdx_x; tile < tiles; tile += gridDim_x)
#pragma unroll 1
      for (int i = 0; i < COUNT; i++, s++)
        if (s >= slots) {
          barrier_wait(empty(s), (s / slots - 1) % 2);
          start(s, i, tile, bring);
        }
  }
};

// Coming is the rows of a group on their way, each to a place of its own with two barriers: one
// says that they are there, at the other every thread arrives that is done with them.
enum Rows { streamRows = 0, hat2Rows = 16, hat1Rows = 32, rowBarriers = 48 };
static_assert(8 * LAYER_BARRIERS == layerGroups * rowBarriers, "those of Coming");
struct Coming {
  u32 at;
  u32 round = 0;
  __device__ __forceinline__ explicit Coming(int group) : at(shared_at(room) + layerShared + group * rowBarriers) {}
  __device__ __forceinline__ void init() const {
    for (int i = 0; i < rowBarriers; i += 16) barrier_init(at + i, 1), barrier_init(at + i + 8, 128);
  }
  __device__ __forceinline__ void wait(int which) const { barrier_wait(at + which, round % 2); }
  __device__ __forceinline__ void done(int which) const {
    if (which == hat1Rows) seal(); // threads write there too
    barrier_arrive(at + which + 8);
  }
  // free waits until rows may come; `round` is the tile's that they are of
  __device__ __forceinline__ void free(int which) const { if (round) barrier_wait(at + which + 8, (round - 1) % 2); }
};

// stream_at is the two numbers of the stream that a lane has of block j of row r of its group.
__device__ __forceinline__ f2 stream_at(const char *rows, int r, int j) {
  const int t = threadIdx_x % 4;
  if (!wide) {
    const u32 v = get(rows, r, j);
    return f2{bf16_low(v), bf16_high(v)};
  }
  return *(const f2 *)(rows + j / 4 * boxBytes + tile_place(r, 2 * (j % 4) + t / 2) + t % 2 * 8);
}

// JOINED: the gradient of the next layer's first product and norm comes before, as in
// layer_qkv_grad.cu, and what it makes of dx stays on the chip.
template <bool JOINED>
__device__ __forceinline__ void tail_grad(void *dx, Bf16 *kept2, Bf16 *dpre, Bf16 *kept1, Bf16 *dattended, Bf16 *gelu, const void *hat2,
    const float *rstd2, const u32 *masks1, const u32 *masks2, const char *weights, const float *upBias, int m, int all, float scale1,
    float scale2, const void *stream, const void *dqkv, const void *hat1, const float *rstd1, const char *before) {
  constexpr int first = JOINED ? 2 * beforePieces : 0, count = first + pieces; // first of its own
  const int warp = threadIdx_x / 32, lane = threadIdx_x % 32, t = lane % 4, group = shfl(warp, 0) / 4,
      tiles = (m + blockRows - 1) / blockRows, own = warp % 4 * 16 + lane / 4;
  float *biases = (float *)(room + atBiases);
  for (int i = threadIdx_x; i < layerFeed; i += layerThreads) biases[i] = upBias[i];
  if (threadIdx_x == 0) {
    for (int g = 0; g < layerGroups; g++) Coming(g).init();
    barrier_inited();
  }
  auto bring = [&](int i, int tile, u32 to, u32 barrier) {
    if (i < first && i % 2 == 0) bring_tile(to, dqkv, 32 * i, tile * blockRows, barrier);
    else bulk_copy(to, i < first ? before + i / 2 * pieceBytes : weights + (i - first) * pieceBytes, pieceBytes, barrier);
  };
  Ring<count> w(bring);
  if (group == layerGroups) {
    fewer_registers<24>();
    if (threadIdx_x % 128 == 0) {
      w.bring_all(tiles, bring);
    } else if (threadIdx_x % 128 == 32) {
      u32 round = 0;
#pragma unroll 1
      for (int tile = blockIdx_x; tile < tiles; tile += gridDim_x, round++) {
#pragma unroll 1
        for (int i = 0; i < (JOINED ? 3 : 2) * layerGroups; i++) {
          const int g = i % 2, row = tile * blockRows + g * groupRows;
          Coming c(g);
          c.round = round;
          const u32 matrix = w.at + 2 * g * groupBytes;
          if (i < layerGroups) {
            c.free(streamRows);
            barrier_expect(c.at + streamRows, aside);
            for (int j = 0; j < aside / boxBytes; j++) bring_tile(w.at + atAside + g * aside + j * boxBytes, stream, 64 * j, row, c.at + streamRows);
          } else {
            const int which = i < 2 * layerGroups ? hat2Rows : hat1Rows;
            const u32 to = i < 2 * layerGroups ? matrix + groupBytes : matrix;
            c.free(which);
            barrier_expect(c.at + which, groupBytes);
            for (int j = 0; j < 2; j++) bring_tile(to + j * boxBytes, which == hat2Rows ? hat2 : hat1, 64 * j, row, c.at + which);
          }
        }
      }
    }
    return;
  }
  more_registers<240>();
  char *matrix = room + 2 * group * groupBytes, *hats = matrix + groupBytes,
       *stream_rows = room + atAside + group * aside;
  const u64 left = tile_at(shared_at(matrix)), leftHats = tile_at(shared_at(hats));
  Coming coming(group);
#pragma unroll 1
  for (int tile = blockIdx_x; tile < tiles; tile += gridDim_x, w.round++, coming.round++) {
    const int row0 = tile * blockRows + group * groupRows + warp % 4 * 16;
    const Row row[2] = {Row(row0, 0, m), Row(row0, 1, m)};
    float sums[64];
    // read here, where others are waited for anyway
    const Kept keeps1(masks1, scale1, row), keeps2(masks2, scale2, row);
    const float rstd[2] = {rstd2[row[0].at], rstd2[row[1].at]};
    float rstdBehind[2];
    if constexpr (JOINED) {
      rstdBehind[0] = rstd1[row[0].at], rstdBehind[1] = rstd1[row[1].at];
#pragma unroll
      for (int i = 0; i < beforePieces; i++) {
        const u64 rows = tile_at(w.place(2 * i) + group * boxBytes), right = tile_at(w.place(2 * i + 1));
        begin_products();
        if (i) begin_taken(sums, rows, right);
        else begin_all(sums, rows, right);
        end_products();
        if (i) {
          wait_earlier();
          w.done(2 * i - 2), w.done(2 * i - 1);
        }
      }
      wait_products(sums);
      w.done(first - 2), w.done(first - 1);
    }
    coming.wait(streamRows);
    if constexpr (JOINED) {
      coming.wait(hat1Rows);
      norm_grad(sums, matrix, rstdBehind, own, [&](int j, int h, int) { return stream_at(stream_rows, own + 8 * h, j); });
    } else
#pragma unroll
      for (int j = 0; j < 16; j++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
          const f2 v = stream_at(stream_rows, own + 8 * h, j);
          sums[4 * j + 2 * h] = v.x, sums[4 * j + 2 * h + 1] = v.y;
        }
    coming.done(streamRows);
    {
      const int place = apart(own);
#pragma unroll
      for (int h = 0; h < 2; h++)
#pragma unroll
        for (int j = 0; j < 16; j++) {
          const int i = 4 * j + 2 * h;
          put(matrix, place + 8 * h, j, keeps2.of(sums[i], i), keeps2.of(sums[i + 1], i + 1));
        }
    }
    seal();
    coming.wait(hat2Rows);
    // sums begin with the stream's gradient over rstd, so that nothing is laid aside: mean and
    // along are what that adds to the norm's sums
    float mean[2], along[2];
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const int place = apart(own);
      const float inverse = 1.0f / rstd[h];
      float sum = 0, product = 0;
#pragma unroll
      for (int j = 0; j < 16; j++) {
        const u32 v = get(hats, place + 8 * h, j);
        float &a = sums[4 * j + 2 * h], &b = sums[4 * j + 2 * h + 1];
        a *= inverse, b *= inverse;
        sum += a + b, product += a * bf16_low(v) + b * bf16_high(v);
      }
      mean[h] = quad_sum(sum), along[h] = quad_sum(product);
    }
    sync_group(group);
    float through[32], pre[32]; // kept2·W₂, and what the GELU is applied to
    u32 down = w.place(first + 0), up = w.place(first + 1);
    begin_products();
    begin_made(pre, leftHats, tile_at(up));
    begin_made(through, left, tile_at(down));
    end_products();
    save_rows(kept2, matrix, row0, m);
    wait_products(pre), wait_products(through);
    w.done(first + 0);
#pragma unroll 1
    for (int c = 0; c < hiddenBlocks; c++) {
      u32 a[2][8];
#pragma unroll
      for (int b = 0; b < 2; b++) {
        u32 made[8];
        const float *bias = biases + hiddenColumns * c + 32 * b + 8 * t;
#pragma unroll
        // columns 8t+2j and the next of the block: slots of its tile j of eight
        for (int j = 0; j < 4; j++) {
          const f2 shift = *(const f2 *)(bias + 2 * j);
#pragma unroll
          for (int h = 0; h < 2; h++) {
            const int i = 16 * b + 4 * j + 2 * h;
            const Gelu low(pre[i] + shift.x), high(pre[i + 1] + shift.y);
            made[2 * j + h] = bf16x2(low.value, high.value);
            a[b][2 * j + h] = bf16x2(through[i] * low.slope, through[i + 1] * high.slope);
          }
        }
#pragma unroll
        for (int h = 0; h < 2; h++)
          if (row[h].real) {
            const long at = ((long)c * all + row[h].at) * hiddenColumns + 32 * b + 8 * t;
            stream_out(dpre + at, hidden_row(a[b], h)), stream_out(gelu + at, hidden_row(made, h));
          }
      }
      const u32 takes = up;
      if (c + 1 < hiddenBlocks) {
        down = w.place(first + 2 * c + 2), up = w.place(first + 2 * c + 3);
        begin_products();
        begin_made(pre, leftHats, tile_at(up));
        begin_made(through, left, tile_at(down));
        begin_turned(sums, a[0], a[1], turned_at(takes, pieceBytes / 2));
        end_products();
        wait_products(pre), wait_products(through), wait_products(sums);
        w.done(first + 2 * c + 2);
      } else {
        begin_products();
        begin_turned(sums, a[0], a[1], turned_at(takes, pieceBytes / 2));
        end_products();
        wait_products(sums);
      }
      w.done(first + 2 * c + 1);
    }
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const int place = apart(own);
      float sum = 0, product = 0;
#pragma unroll
      for (int j = 0; j < 16; j++) {
        const u32 v = get(hats, place + 8 * h, j);
        const float a = sums[4 * j + 2 * h], b = sums[4 * j + 2 * h + 1];
        sum += a + b, product += a * bf16_low(v) + b * bf16_high(v);
      }
      const float shift = (quad_sum(sum) - mean[h]) * (1.0f / layerWidth), slope = (quad_sum(product) - along[h]) * (1.0f / layerWidth);
      float *to = (float *)dx + (long)row[h].at * layerWidth + t * 2;
#pragma unroll
      for (int j = 0; j < 16; j++) {
        const u32 v = get(hats, place + 8 * h, j);
        float &a = sums[4 * j + 2 * h], &b = sums[4 * j + 2 * h + 1];
        a = rstd[h] * (a - shift - bf16_low(v) * slope), b = rstd[h] * (b - shift - bf16_high(v) * slope);
        if (wide && row[h].real) *(f2 *)(to + 8 * j) = f2{a, b};
      }
    }
    coming.done(hat2Rows);
    sync_group(group); // the last product has read the group's matrices
    if (!wide) {
      put_sums(matrix, sums, own);
      syncwarp();
      save_rows((Bf16 *)dx, matrix, row0, m);
      syncwarp();
    }
#pragma unroll
    for (int i = 0; i < 64; i++) sums[i] = keeps1.of(sums[i], i);
    put_sums(matrix, sums, own);
    u32 kept[4][8];
#pragma unroll
    for (int i = 0; i < 4; i++) left_of(kept[i], sums, 16 * i);
#pragma unroll
    for (int i = 0; i < 64; i++) sums[i] = 0;
    const u32 low = w.place(first + 16), high = w.place(first + 17);
    begin_products();
    begin_taken(sums, kept[0], kept[1], tile_at(low));
    begin_taken(sums, kept[2], kept[3], tile_at(high));
    end_products();
    syncwarp();
    save_rows(kept1, matrix, row0, m);
    wait_products(sums, kept);
    w.done(first + 16), w.done(first + 17);
    syncwarp();
    put_sums(matrix, sums, own);
    syncwarp();
    save_rows(dattended, matrix, row0, m);
    if constexpr (JOINED) coming.done(hat1Rows);
    else syncwarp();
  }
}

#define PASS                                                                                                                              \
  void *dx, Bf16 *kept2, Bf16 *dpre, Bf16 *kept1, Bf16 *dattended, Bf16 *gelu, const void *hat2, const float *rstd2, const u32 *masks1, \
      const u32 *masks2, const char *weights, const float *upBias, int m, int all, float scale1, float scale2, const void *stream
#define THE_PASS dx, kept2, dpre, kept1, dattended, gelu, hat2, rstd2, masks1, masks2, weights, upBias, m, all, scale1, scale2, stream
KERNEL __launch_bounds__(layerThreads, 1) layer_tail_grad(PASS) { tail_grad<false>(THE_PASS, nullptr, nullptr, nullptr, nullptr); }
KERNEL __launch_bounds__(layerThreads, 1)
    layer_tail_qkv_grad(PASS, const void *dqkv, const void *hat1, const float *rstd1, const char *before) {
  tail_grad<true>(THE_PASS, dqkv, hat1, rstd1, before);
}
