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
// as it lies for pre and turned for dhat, so it is done with only after the second.
#define LAYER_MATRICES 2
#define LAYER_BIASES layerFeed
#define LAYER_SLOTS 6
#include "layer_grad.cuh"
#include "gelu.cuh"

constexpr int hiddenColumns = 64, hiddenBlocks = layerFeed / hiddenColumns;

constexpr int beforePieces = 6;

// JOINED: the gradient of the next layer's first product and norm comes before, as in
// layer_qkv_grad.cu, and what it makes of dx stays on the chip.
template <bool JOINED>
__device__ __forceinline__ void tail_grad(float *dx, Bf16 *kept2, Bf16 *dpre, Bf16 *kept1, Bf16 *dattended, Bf16 *gelu, const Bf16 *hat2,
    const float *rstd2, const u32 *masks1, const u32 *masks2, const char *weights, const float *upBias, int m, float scale1, float scale2,
    const Bf16 *dqkv, const Bf16 *hat1, const float *rstd1, const char *before) {
  constexpr int first = JOINED ? beforePieces : 0; // of the pass's own pieces
  const int warp = threadIdx_x / 32, lane = threadIdx_x % 32, t = lane % 4, group = shfl(warp, 0) / 4,
      tiles = (m + blockRows - 1) / blockRows, own = warp % 4 * 16 + lane / 4;
  float *biases = (float *)(room + atBiases);
  for (int i = threadIdx_x; i < layerFeed; i += layerThreads) biases[i] = upBias[i];
  Pieces<pieces + first> w;
  if (group == layerGroups) {
    fewer_registers<24>();
    w.template bring<first>(weights, tiles, before);
    return;
  }
  more_registers<240>();
  char *matrix = room + 2 * group * groupBytes, *hats = matrix + groupBytes;
  const u64 left = tile_at(shared_at(matrix)), leftHats = tile_at(shared_at(hats));
  auto laid_aside = [](int j, int h, int thread) { return *aside_at(j, h, thread); };
#pragma unroll 1
  for (int tile = blockIdx_x; tile < tiles; tile += gridDim_x, w.round++) {
    const int row0 = tile * blockRows + group * groupRows + warp % 4 * 16;
    const Row row[2] = {Row(row0, 0, m), Row(row0, 1, m)};
    float sums[64];
    if constexpr (JOINED) copy_rows(matrix, hat1, row0, m);
    copy_rows(hats, hat2, row0, m);
    stream_aside(dx, row0, m);
    // read here, where others are waited for anyway
    const Kept keeps1(masks1, scale1, row), keeps2(masks2, scale2, row);
    const float rstd[2] = {rstd2[row[0].at], rstd2[row[1].at]};
    float rstdBehind[2];
    if constexpr (JOINED) {
      rstdBehind[0] = rstd1[row[0].at], rstdBehind[1] = rstd1[row[1].at];
      u32 a[2 * beforePieces][8];
#pragma unroll
      for (int i = 0; i < 2 * beforePieces; i++) vector(a[i], dqkv, 3 * layerWidth, row, 32 * i);
#pragma unroll
      for (int i = 0; i < 64; i++) sums[i] = 0;
      begin_products();
#pragma unroll
      for (int i = 0; i < beforePieces; i++) begin_taken(sums, a[2 * i], a[2 * i + 1], tile_at(w.place(i)));
      end_products();
      wait_products(sums);
#pragma unroll
      for (int i = 0; i < beforePieces; i++) w.done(i);
    }
    wait_copies<0>();
    syncwarp();
    if constexpr (JOINED) {
      norm_grad<false>(sums, dx, matrix, rstdBehind, row, own, laid_aside);
      lay_aside(sums);
      syncwarp(); // hat1 has been read
    } else
#pragma unroll
      for (int j = 0; j < 16; j++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
          const f2 v = laid_aside(j, h, threadIdx_x);
          sums[4 * j + 2 * h] = v.x, sums[4 * j + 2 * h + 1] = v.y;
        }
#pragma unroll
    for (int i = 0; i < 64; i++) sums[i] = keeps2.of(sums[i], i);
    put_sums(matrix, sums, own);
    seal();
    sync_group(group);
    float through[32], pre[32]; // kept2·W₂, and what the GELU is applied to
    u32 down = w.place(first + 0), up = w.place(first + 1);
    begin_products();
    begin_made(pre, leftHats, tile_at(up));
    begin_made(through, left, tile_at(down));
    end_products();
    save_rows(kept2, matrix, row0, m);
#pragma unroll
    for (int i = 0; i < 64; i++) sums[i] = 0;
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
            const long at = (long)row[h].at * layerFeed + hiddenColumns * c + 32 * b + 8 * t;
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
    norm_grad(sums, dx, hats, rstd, row, own, laid_aside);
#pragma unroll
    for (int i = 0; i < 64; i++) sums[i] = keeps1.of(sums[i], i);
    sync_group(group); // the last product has read the group's matrices
    put_sums(matrix, sums, own);
    u32 a[8], b[8], c[8], d[8];
    left_of(a, sums, 0), left_of(b, sums, 16), left_of(c, sums, 32), left_of(d, sums, 48);
#pragma unroll
    for (int i = 0; i < 64; i++) sums[i] = 0;
    const u32 low = w.place(first + 16), high = w.place(first + 17);
    begin_products();
    begin_taken(sums, a, b, tile_at(low));
    begin_taken(sums, c, d, tile_at(high));
    end_products();
    syncwarp();
    save_rows(kept1, matrix, row0, m);
    wait_products(sums);
    w.done(first + 16), w.done(first + 17);
    syncwarp();
    put_sums(matrix, sums, own);
    syncwarp();
    save_rows(dattended, matrix, row0, m);
    syncwarp(); // rows of the next tile come where these were
  }
}

#define PASS                                                                                                                              \
  float *dx, Bf16 *kept2, Bf16 *dpre, Bf16 *kept1, Bf16 *dattended, Bf16 *gelu, const Bf16 *hat2, const float *rstd2, const u32 *masks1, \
      const u32 *masks2, const char *weights, const float *upBias, int m, float scale1, float scale2
#define THE_PASS dx, kept2, dpre, kept1, dattended, gelu, hat2, rstd2, masks1, masks2, weights, upBias, m, scale1, scale2
KERNEL __launch_bounds__(layerThreads, 1) layer_tail_grad(PASS) { tail_grad<false>(THE_PASS, nullptr, nullptr, nullptr, nullptr); }
KERNEL __launch_bounds__(layerThreads, 1)
    layer_tail_qkv_grad(PASS, const Bf16 *dqkv, const Bf16 *hat1, const float *rstd1, const char *before) {
  tail_grad<true>(THE_PASS, dqkv, hat1, rstd1, before);
}
