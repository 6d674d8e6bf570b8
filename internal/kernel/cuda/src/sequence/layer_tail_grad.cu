// The gradient of a layer's tail (layer_tail.cu) in one pass over rows: from dx, the gradient of its result, to that of its stream and of
// attention's result.
//
//   kept2 = drop2(dx);  pre = hat2·W₁ᵀ + b₁;  dpre = (kept2·W₂)·GELU'(pre);  dhat = dpre·W₁
//   dx += rstd2·(dhat - mean(dhat) - hat2·mean(dhat·hat2));  kept1 = drop1(dx);  dattended = kept1·Wₒ
//
// kept2, dpre, GELU(pre) and kept1 are written for the weights' gradients. pre is made again, as in the pass forward: the product costs less
// than to write and to read it.
//
// What a reader could break: a piece of W₁, 64 hidden rows, is the right operand of two products, as it lies for pre and turned for dhat,
// so it is done with only after the second.
#define LAYER_GROUPS 2
#define LAYER_MATRICES 2
#define LAYER_BIASES layerFeed
#define LAYER_SLOTS 6
#include "layer_grad.cuh"
#include "gelu.cuh"

constexpr int hiddenColumns = 64, hiddenBlocks = layerFeed / hiddenColumns;

KERNEL __launch_bounds__(layerThreads, 1)
    layer_tail_grad(float *dx, Bf16 *kept2, Bf16 *dpre, Bf16 *kept1, Bf16 *dattended, Bf16 *gelu, const Bf16 *hat2, const float *rstd2,
        const u32 *masks1, const u32 *masks2, const char *weights, const float *upBias, int m, float scale1, float scale2) {
  const int warp = threadIdx_x / 32, lane = threadIdx_x % 32, t = lane % 4, group = warp / 4,
      tiles = (m + blockRows - 1) / blockRows, own = warp % 4 * 16 + lane / 4;
  float *biases = (float *)(room + atBiases);
  for (int i = threadIdx_x; i < layerFeed; i += layerThreads) biases[i] = upBias[i];
  Pieces w;
  if (group == layerGroups) {
    fewer_registers<24>();
    w.bring(weights, tiles);
    return;
  }
  more_registers<240>();
  char *matrix = room + 2 * group * groupBytes, *hats = matrix + groupBytes;
  const u64 left = tile_at(shared_at(matrix)), leftHats = tile_at(shared_at(hats));
#pragma unroll 1
  for (int tile = blockIdx_x; tile < tiles; tile += gridDim_x, w.round++) {
    const int group0 = tile * blockRows + group * groupRows, row0 = group0 + warp % 4 * 16;
    const Row row[2] = {Row(row0, 0, m), Row(row0, 1, m)};
    float sums[64];
    {
      const Kept kept(masks2, scale2, row);
      Lines lines;
      fetch_rows(lines, hat2, row0, m);
      take_stream(sums, dx, row);
      put_rows(hats, lines);
      lay_aside(sums);
#pragma unroll
      for (int i = 0; i < 64; i++) sums[i] = kept.of(sums[i], i);
    }
    put_sums(matrix, sums, own);
    seal();
    sync_group(group);
    float through[32], pre[32]; // kept2·W₂, and what the GELU is applied to
    u32 down = w.place(0), up = w.place(1);
    begin_products();
    begin_hidden(pre, leftHats, tile_at(up));
    begin_hidden(through, left, tile_at(down));
    end_products();
    save_rows(kept2, matrix, row0, m);
#pragma unroll
    for (int i = 0; i < 64; i++) sums[i] = 0;
    wait_products(pre, through);
    w.done(0);
#pragma unroll 1
    for (int c = 0; c < hiddenBlocks; c++) {
      u32 a[2][8];
#pragma unroll
      for (int b = 0; b < 2; b++) {
        u32 made[8];
        const float *bias = biases + hiddenColumns * c + 32 * b + 8 * t;
#pragma unroll
        for (int j = 0; j < 4; j++) { // columns 8t+2j and the next of the block: slots of its tile j of eight
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
            const long at = row[h].at * layerFeed + hiddenColumns * c + 32 * b + 8 * t;
            *(u4 *)(dpre + at) = hidden_row(a[b], h), *(u4 *)(gelu + at) = hidden_row(made, h);
          }
      }
      const u32 takes = up;
      if (c + 1 < hiddenBlocks) {
        down = w.place(2 * c + 2), up = w.place(2 * c + 3);
        begin_products();
        begin_hidden(pre, leftHats, tile_at(up));
        begin_hidden(through, left, tile_at(down));
        begin_turned(sums, a[0], a[1], turned_at(takes, pieceBytes / 2));
        end_products();
        wait_products(pre, through);
        wait_products(sums);
        w.done(2 * c + 2);
      } else {
        begin_products();
        begin_turned(sums, a[0], a[1], turned_at(takes, pieceBytes / 2));
        end_products();
        wait_products(sums);
      }
      w.done(2 * c + 1);
      if (c == hiddenBlocks - 2) {
        rows_ahead(hat2, 2 * layerWidth, group0 + gridDim_x * blockRows, m);
        rows_ahead(dx, 4 * layerWidth, group0 + gridDim_x * blockRows, m);
      }
    }
    norm_grad(sums, dx, hats, rstd2, row, own, [](int j, int h) {
      const f4 v = again(j);
      return h ? f2{v.z, v.w} : f2{v.x, v.y};
    });
    {
      const Kept kept(masks1, scale1, row);
#pragma unroll
      for (int i = 0; i < 64; i++) sums[i] = kept.of(sums[i], i);
    }
    sync_group(group); // the last product has read the group's matrices
    put_sums(matrix, sums, own);
    u32 a[8], b[8], c[8], d[8];
    left_of(a, sums, 0), left_of(b, sums, 16), left_of(c, sums, 32), left_of(d, sums, 48);
#pragma unroll
    for (int i = 0; i < 64; i++) sums[i] = 0;
    product_wider(sums, a, b, tile_at(w.place(16)));
    w.done(16);
    product_wider(sums, c, d, tile_at(w.place(17)));
    w.done(17);
    syncwarp();
    save_rows(kept1, matrix, row0, m);
    syncwarp();
    put_sums(matrix, sums, own);
    syncwarp();
    save_rows(dattended, matrix, row0, m);
    syncwarp();
  }
}
