// The gradient of a layer's tail (layer_tail.cu) in one pass over rows: from dx, the gradient of its result, to that of its stream and of
// attention's result.
//
//   kept2 = drop2(dx);  dpre = (kept2·W₂)·GELU'(pre);  dhat = dpre·W₁
//   dx += rstd2·(dhat - mean(dhat) - hat2·mean(dhat·hat2));  kept1 = drop1(dx);  dattended = kept1·Wₒ
//
// kept2, dpre and kept1 are written for the weights' gradients, and so is GELU(pre), in pre's place: to apply it again would cost the
// product that reads it more than the write costs this pass.
#include "layer_grad.cuh"
#include "gelu.cuh"

KERNEL __launch_bounds__(layerThreads, 1)
    layer_tail_grad(float *dx, Bf16 *kept2, Bf16 *dpre, Bf16 *kept1, Bf16 *dattended, Bf16 *pre, const Bf16 *hat2,
        const float *rstd2, const u32 *masks1, const u32 *masks2,
                    const char *weights, int m, float scale1, float scale2) {
  const int warp = threadIdx_x / 32, lane = threadIdx_x % 32, t = lane % 4, group = warp / 4,
      tiles = (m + blockRows - 1) / blockRows, own = warp % 4 * 16 + lane / 4;
  Pieces w;
  if (group == layerGroups) {
    fewer_registers<24>();
    w.bring(weights, tiles);
    return;
  }
  more_registers<160>();
  char *matrix = room + group * groupBytes;
  const u64 left = tile_at(shared_at(matrix));
#pragma unroll 1
  for (int tile = blockIdx_x; tile < tiles; tile += gridDim_x, w.round++) {
    const int group0 = tile * blockRows + group * groupRows, row0 = group0 + warp % 4 * 16;
    const Row row[2] = {Row(row0, 0, m), Row(row0, 1, m)};
    float sums[64], part[16];
    u4 held[2]; // of pre: a chunk's columns of row h
    auto hold = [&](int c) {
#pragma unroll
      for (int h = 0; h < 2; h++) held[h] = *(const u4 *)(pre + row[h].at * layerFeed + layerChunk * c + 8 * t);
    };
    take_stream(sums, dx, row);
    hold(0);
    lay_aside(sums);
    {
      const Kept kept(masks2, scale2, row);
#pragma unroll
      for (int i = 0; i < 64; i++) sums[i] = kept.of(sums[i], i);
    }
    put_sums(matrix, sums, own);
    seal();
    sync_group(group);
    save_rows(kept2, matrix, row0, m);
    u32 up = w.place(0), down = 0;
    product_narrow(part, left, up_tile(up, 0));
#pragma unroll
    for (int i = 0; i < 64; i++) sums[i] = 0;
#pragma unroll 1
    for (int c = 0; c < layerChunks; c++) {
      u32 a[8], again[8];
      if (c % 2 == 0 && c + 4 < layerChunks && lane < 16) // a line is two chunks
        prefetch_line(pre + (long)least(row0 + lane, m - 1) * layerFeed + layerChunk * (c + 4));
#pragma unroll
      for (int j = 0; j < 4; j++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
          const Gelu low(bf16_low(held[h][j])), high(bf16_high(held[h][j]));
          again[2 * j + h] = bf16x2(low.value, high.value);
          part[4 * j + 2 * h] *= low.slope, part[4 * j + 2 * h + 1] *= high.slope;
        }
      left_of(a, part, 0);
#pragma unroll
      for (int h = 0; h < 2; h++)
        if (row[h].real) {
          const long at = row[h].at * layerFeed + layerChunk * c + 8 * t;
          *(u4 *)(dpre + at) = hidden_row(a, h), *(u4 *)(pre + at) = hidden_row(again, h);
        }
      if (c % 2 == 0) down = w.place(c + 1);
      const u64 right = down_tile(down, c);
      if (c % 2 && c + 1 < layerChunks) up = w.place(c + 1);
      if (c + 1 < layerChunks) {
        hold(c + 1);
        product_both(sums, a, right, part, left, up_tile(up, c + 1));
      } else
        product_wide(sums, a, right);
      w.done(c);
      if (c == layerChunks - 4) {
        rows_ahead(hat2, 2 * layerWidth, group0, m);
        rows_ahead(dx, 4 * layerWidth, group0 + gridDim_x * blockRows, m);
      }
    }
    Lines lines;
    fetch_rows(lines, hat2, row0, m);
    sync_group(group); // the last product has read the group's matrix
    put_rows(matrix, lines);
    syncwarp();
    norm_grad(sums, dx, matrix, rstd2, row, own, [](int j, int h) {
      const f4 v = again(j);
      return h ? f2{v.z, v.w} : f2{v.x, v.y};
    });
    {
      const Kept kept(masks1, scale1, row);
#pragma unroll
      for (int i = 0; i < 64; i++) sums[i] = kept.of(sums[i], i);
    }
    syncwarp(); // hat2 has been read
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
