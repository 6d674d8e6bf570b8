// The tail of a transformer layer, from attention's result to the next layer's first norm, in one pass over rows:
//
//   middle = x + drop1(attended·Wₒᵀ + bₒ);  hat2 = norm(middle);  pre = hat2·W₁ᵀ + b₁
//   out = middle + drop2(GELU(pre)·W₂ᵀ + b₂);  hat1 = norm(out), where a layer follows
//
// What a reader could break: pre and GELU(pre) exist in registers alone, and `middle` on the chip; the gradient makes them again from hat2.
#define LAYER_GROUPS 3
#define LAYER_MATRICES 1
#define LAYER_BIASES (layerFeed + 2 * layerWidth)
#define LAYER_SLOTS 4
#include "layer.cuh"
#include "gelu.cuh"

// hat leaves (v - mean)·rstd of both rows in the group's matrix, and rstd.
__device__ __forceinline__ void hat(char *matrix, float *rstd, const float (&v)[64], const Row (&row)[2], float eps) {
  const int lane = threadIdx_x % 32, base = threadIdx_x / 32 % 4 * 16 + lane / 4;
#pragma unroll
  for (int h = 0; h < 2; h++) {
    float sum = 0, square = 0;
#pragma unroll
    for (int j = 0; j < 16; j++) sum += v[4 * j + 2 * h] + v[4 * j + 2 * h + 1];
    const float mean = quad_sum(sum) * (1.0f / layerWidth);
#pragma unroll
    for (int j = 0; j < 16; j++) {
      const float a = v[4 * j + 2 * h] - mean, b = v[4 * j + 2 * h + 1] - mean;
      square += a * a + b * b;
    }
    const float r = rcp(sqrtf_(quad_sum(square) * (1.0f / layerWidth) + eps)), shift = -mean * r;
    if (lane % 4 == 0 && row[h].real) rstd[row[h].at] = r;
#pragma unroll
    for (int j = 0; j < 16; j++) put(matrix, base + 8 * h, j, v[4 * j + 2 * h] * r + shift, v[4 * j + 2 * h + 1] * r + shift);
  }
}

// biased begins sums with a bias of 128 columns.
__device__ __forceinline__ void biased(float (&v)[64], const float *bias) {
#pragma unroll
  for (int j = 0; j < 16; j++) {
    const f2 b = *(const f2 *)(bias + 8 * j + threadIdx_x % 4 * 2);
    v[4 * j] = b.x, v[4 * j + 1] = b.y, v[4 * j + 2] = b.x, v[4 * j + 3] = b.y;
  }
}

// Stream is what a lane holds of one row of the residual stream.
struct Stream {
  f2 v[16];
  __device__ __forceinline__ void read(const float *x, const Row &row) {
#pragma unroll
    for (int j = 0; j < 16; j++) v[j] = *(const f2 *)(x + row.at * layerWidth + 8 * j + threadIdx_x % 4 * 2);
  }
  // join makes sums the stream plus what is kept of them.
  __device__ __forceinline__ void join(float (&sums)[64], const Kept &kept, int h) const {
#pragma unroll
    for (int j = 0; j < 16; j++) {
      float &a = sums[4 * j + 2 * h], &b = sums[4 * j + 2 * h + 1];
      a = v[j].x + kept.of(a, 4 * j + 2 * h), b = v[j].y + kept.of(b, 4 * j + 2 * h + 1);
    }
  }
};

KERNEL __launch_bounds__(layerThreads, 1)
    layer_tail(float *out, Bf16 *hat1, float *rstd1, Bf16 *hat2, float *rstd2, const u32 *masks1, const u32 *masks2,
        const float *x, const Bf16 *attended,
               const char *weights, const float *outBias, const float *upBias, const float *downBias, int m, float eps,
                   float scale1, float scale2) {
  const int warp = threadIdx_x / 32, t = threadIdx_x % 4, group = warp / 4, tiles = (m + blockRows - 1) / blockRows;
  float *biases = (float *)(room + atBiases); // up, out, down
  for (int i = threadIdx_x; i < layerFeed; i += layerThreads) biases[i] = upBias[i];
  for (int i = threadIdx_x; i < 2 * layerWidth;
      i += layerThreads) biases[layerFeed + i] = i < layerWidth ? outBias[i] : downBias[i - layerWidth];
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
    float sums[64];
    Stream stream;
    {
      u32 a[8], b[8], c[8], d[8];
      vector(a, attended, layerWidth, row, 0), vector(b, attended, layerWidth, row, 32);
      vector(c, attended, layerWidth, row, 64), vector(d, attended, layerWidth, row, 96);
      stream.read(x, row[0]);
      biased(sums, biases + layerFeed);
      u32 piece = w.place(0);
      product_wider(sums, a, b, tile_at(piece));
      w.done(0);
      piece = w.place(1);
      product_wider(sums, c, d, tile_at(piece));
      w.done(1);
    }
    {
      const Kept kept(masks1, scale1, row);
      Stream other;
      other.read(x, row[1]);
      stream.join(sums, kept, 0);
      other.join(sums, kept, 1);
    }
    lay_aside(sums);
    hat(matrix, rstd2, sums, row, eps);
    seal();
    sync_group(group);
    save_rows(hat2, matrix, row0, m);
    u32 up = w.place(2), down = 0;
    float part[16];
    product_narrow(part, left, up_tile(up, 0));
    biased(sums, biases + layerFeed + layerWidth);
#pragma unroll 1
    for (int c = 0; c < layerChunks; c++) {
      u32 a[8];
#pragma unroll
      for (int i = 0; i < 2; i++) {
        // columns 8t+4i.. of the chunk: slots of its blocks 2i and 2i+1 of eight
        const f4 v = load4(biases + layerChunk * c + 8 * t + 4 * i);
        float *p = part + 8 * i;
        p[0] += v.x, p[1] += v.y, p[2] += v.x, p[3] += v.y, p[4] += v.z, p[5] += v.w, p[6] += v.z, p[7] += v.w;
      }
#pragma unroll
      for (int i = 0; i < 16; i++) part[i] = gelu_approx(part[i]);
      left_of(a, part, 0);
      if (c % 2 == 0) down = w.place(c + 3);
      const u64 right = down_tile(down, c);
      if (c % 2 && c + 1 < layerChunks) up = w.place(c + 3);
      if (c + 1 < layerChunks)
        product_both(sums, a, right, part, left, up_tile(up, c + 1));
      else
        product_wide(sums, a, right);
      w.done(c + 2); // even c: the piece that made the columns; odd: the one that takes them
      if (c == layerChunks - 4) {
        rows_ahead(attended, 2 * layerWidth, group0 + gridDim_x * blockRows, m);
        rows_ahead(x, 4 * layerWidth, group0 + gridDim_x * blockRows, m);
      }
    }
    {
      const Kept kept(masks2, scale2, row);
#pragma unroll
      for (int j = 0; j < 16; j++) {
        const f4 v = again(j);
#pragma unroll
        for (int e = 0; e < 4; e++) sums[4 * j + e] = v[e] + kept.of(sums[4 * j + e], 4 * j + e);
      }
    }
#pragma unroll
    for (int h = 0; h < 2; h++)
      if (row[h].real)
#pragma unroll
        for (int j = 0; j < 16; j++) *(f2 *)(out + row[h].at * layerWidth + 8 * j + 2 * t) = f2{sums[4 * j + 2 * h],
            sums[4 * j + 2 * h + 1]};
    sync_group(group); // the last product has read the group's matrix
    if (hat1) {
      hat(matrix, rstd1, sums, row, eps);
      syncwarp();
      save_rows(hat1, matrix, row0, m);
      syncwarp();
    }
  }
}
