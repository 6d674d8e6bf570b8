// The gradient of what comes before a layer's attention, in one pass over rows: dhat = dqkv·W, and
// through the norm into the stream:
//
//   dx += rstd1·(dhat - mean(dhat) - hat1·mean(dhat·hat1))
//
// What a reader could break: all of the weight stays in shared memory, six tiles of 128 rows and 64
// terms. A warpgroup's rows come by the copy engine, those of its next tile as soon as the whole
// group is done with the last. A row past the last repeats that one, whose dx it reads and must not
// write.
#include "layer_grad.cuh"

constexpr int qkvTiles = 6, qkvTileBytes = 128 * tileRowBytes, qkvThreads = 256;
constexpr int boxBytes = groupRows * tileRowBytes, rowsBytes = qkvTiles * boxBytes;
// Shared memory: the weight, each group's rows of dqkv, its hats, barriers.
constexpr int atRows = qkvTiles * qkvTileBytes, atHats = atRows + 2 * rowsBytes, atArrivals = atHats + 2 * groupBytes;

__device__ __forceinline__ f2 pair(const float *at) { return *(const f2 *)at; }
__device__ __forceinline__ f2 pair(const Bf16 *at) {
  const u32 v = *(const u32 *)at;
  return f2{bf16_low(v), bf16_high(v)};
}
__device__ __forceinline__ void put_pair(float *at, float a, float b) { *(f2 *)at = f2{a, b}; }
__device__ __forceinline__ void put_pair(Bf16 *at, float a, float b) { *(u32 *)at = bf16x2(a, b); }

// DX and STREAM are float, or Bf16 between the passes. dx may be stream itself.
template <class DX, class STREAM>
__device__ __forceinline__ void qkv_grad(DX *dx, const STREAM *stream, const void *dqkv, const void *hat1, const float *rstd1, const char *weights, int m) {
  const int warp = threadIdx_x / 32, lane = threadIdx_x % 32, group = warp / 4, own = warp % 4 * 16 + lane / 4,
      tiles = (m + groupRows - 1) / groupRows;
  const bool leads = threadIdx_x % 128 == 0;
  const char *matrix = room + atHats + group * groupBytes;
  const u32 at = shared_at(room), rows = at + atRows + group * rowsBytes, hats = at + atHats + group * groupBytes,
      weightsCome = at + atArrivals, rowsCome = weightsCome + 8 + 16 * group, hatsCome = rowsCome + 8;
  if (threadIdx_x == 0) {
    for (int i = 0; i < 5; i++) barrier_init(weightsCome + 8 * i, 1);
    barrier_inited();
    seal();
  }
  sync();
  auto bring_rows = [&](int tile) {
    barrier_expect(rowsCome, rowsBytes);
    for (int i = 0; i < qkvTiles; i++) bring_tile(rows + i * boxBytes, dqkv, 64 * i, tile * groupRows, rowsCome);
  };
  auto bring_hats = [&](int tile) {
    barrier_expect(hatsCome, groupBytes);
    for (int i = 0; i < 2; i++) bring_tile(hats + i * boxBytes, hat1, 64 * i, tile * groupRows, hatsCome);
  };
  const int first = 2 * blockIdx_x + group;
  if (leads && first < tiles) bring_rows(first), bring_hats(first);
  if (threadIdx_x == 0) {
    barrier_expect(weightsCome, atRows);
    for (int i = 0; i < qkvTiles; i++) bulk_copy(at + i * qkvTileBytes, weights + i * qkvTileBytes, qkvTileBytes, weightsCome);
  }
  barrier_wait(weightsCome, 0);
  u32 round = 0;
#pragma unroll 1
  for (int tile = first; tile < tiles; tile += 2 * gridDim_x, round++) {
    const int row0 = tile * groupRows + warp % 4 * 16, next = tile + 2 * gridDim_x;
    const Row row[2] = {Row(row0, 0, m), Row(row0, 1, m)};
    const float rstd[2] = {rstd1[row[0].at], rstd1[row[1].at]};
    rows_ahead(stream, sizeof(STREAM) * layerWidth, next * groupRows, m);
    float sums[64];
    barrier_wait(rowsCome, round % 2);
    begin_products();
#pragma unroll
    for (int i = 0; i < qkvTiles; i++) {
      const u64 left = tile_at(rows + i * boxBytes), right = tile_at(at + i * qkvTileBytes);
      if (i) begin_taken(sums, left, right);
      else begin_all(sums, left, right);
    }
    end_products();
    wait_products(sums);
    sync_group(group);
    if (leads && next < tiles) bring_rows(next);
    barrier_wait(hatsCome, round % 2);
    norm_grad(sums, matrix, rstd, own, [&](int j, int h, int) { return pair(stream + (long)row[h].at * layerWidth + 8 * j + lane % 4 * 2); });
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
      for (int j = 0; j < 16; j++)
        if (row[h].real) put_pair(dx + (long)row[h].at * layerWidth + 8 * j + lane % 4 * 2, sums[4 * j + 2 * h], sums[4 * j + 2 * h + 1]);
    sync_group(group);
    if (leads && next < tiles) bring_hats(next);
  }
}

#define QKV_GRAD(NAME, DX, STREAM)                                                                                                       \
  KERNEL __launch_bounds__(qkvThreads, 1)                                                                                              \
      NAME(DX *dx, const STREAM *stream, const void *dqkv, const void *hat1, const float *rstd1, const char *weights, int m) {         \
    qkv_grad(dx, stream, dqkv, hat1, rstd1, weights, m);                                                                               \
  }
QKV_GRAD(layer_qkv_grad, Bf16, Bf16)
QKV_GRAD(layer_qkv_grad_widens, float, Bf16)
QKV_GRAD(layer_qkv_grad_wide, float, float)
