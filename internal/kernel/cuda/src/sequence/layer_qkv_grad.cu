// The gradient of what comes before a layer's attention, in one pass over rows: dhat = dqkv·W, and
// through the norm into the stream:
//
//   dx += rstd1·(dhat - mean(dhat) - hat1·mean(dhat·hat1))
//
// What a reader could break: all of the weight stays in shared memory, six tiles of 128 rows and 64
// terms; a row past the last repeats that one, whose dx it reads and must not write.
#include "layer_grad.cuh"

constexpr int qkvTiles = 6, qkvTileBytes = 128 * tileRowBytes, qkvThreads = 256;

KERNEL __launch_bounds__(qkvThreads, 1)
    layer_qkv_grad(float *dx, const Bf16 *dqkv, const Bf16 *hat1, const float *rstd1, const char *weights, int m) {
  const int warp = threadIdx_x / 32, lane = threadIdx_x % 32, group = warp / 4, own = warp % 4 * 16 + lane / 4,
      tiles = (m + groupRows - 1) / groupRows;
  char *matrix = room + group * groupBytes;
  const u32 at = shared_at(room) + 2 * groupBytes;
  for (int i = threadIdx_x; i < qkvTiles * qkvTileBytes / 16; i += qkvThreads) copy16(at + 16 * i, (const Bf16 *)weights + 8 * i, true);
  commit_copies();
  wait_copies<0>();
  seal();
  sync();
#pragma unroll 1
  for (int tile = 2 * blockIdx_x + group; tile < tiles; tile += 2 * gridDim_x) {
    const int row0 = tile * groupRows + warp % 4 * 16, next = tile + 2 * gridDim_x;
    const Row row[2] = {Row(row0, 0, m), Row(row0, 1, m)};
    u32 a[2 * qkvTiles][8];
#pragma unroll
    for (int i = 0; i < 2 * qkvTiles; i++) vector(a[i], dqkv, 3 * layerWidth, row, 32 * i);
    Lines lines;
    fetch_rows(lines, hat1, row0, m);
    const float rstd[2] = {rstd1[row[0].at], rstd1[row[1].at]};
    rows_ahead(dqkv, 6 * layerWidth, next * groupRows, m);
    rows_ahead(hat1, 2 * layerWidth, next * groupRows, m);
    rows_ahead(dx, 4 * layerWidth, next * groupRows, m);
    float sums[64];
#pragma unroll
    for (int i = 0; i < 64; i++) sums[i] = 0;
#pragma unroll
    for (int i = 0; i < qkvTiles; i++) product_taken(sums, a[2 * i], a[2 * i + 1], tile_at(at + i * qkvTileBytes));
    put_rows(matrix, lines);
    syncwarp();
    norm_grad(sums, dx, matrix, rstd, row, own,
              [&](int j, int h, int) { return *(const f2 *)(dx + (long)row[h].at * layerWidth + 8 * j + lane % 4 * 2); });
    syncwarp();
  }
}
