// The tail of a transformer layer, from attention's result to the next layer's first norm, in one
// pass over rows:
//
//   middle = x + drop1(attended·Wₒᵀ + bₒ);  hat2 = norm(middle);  pre = hat2·W₁ᵀ + b₁
//   out = middle + drop2(GELU(pre)·W₂ᵀ + b₂)
//   hat1 = norm(out) and qkv = hat1·Wᵀ, where a layer follows
//
// What a reader could break: pre and GELU(pre) exist in registers alone, and `middle` on the chip;
// the gradient makes pre again from hat2. What is made here is half of pre: so W₁ is packed, and
// its bias halved below. Products are under way while hidden columns are
// activated: a piece of the weights is done with only when `taken` has waited for them.
#define LAYER_MATRICES 0
#define LAYER_BIASES (layerFeed + 5 * layerWidth)
#define LAYER_SLOTS 9
#define LAYER_PADDING 32
#include "layer.cuh"
#include "gelu.cuh"

// hat makes (v - mean)·rstd of both rows a product's left operand, and leaves rstd.
__device__ __forceinline__ void hat(u32 (&left)[4][8], float *rstd, const float (&v)[64], const Row (&row)[2], float eps) {
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
    if (threadIdx_x % 4 == 0 && row[h].real) rstd[row[h].at] = r;
#pragma unroll
    for (int j = 0; j < 16; j++) left[j / 4][j % 4 * 2 + h] = bf16x2(v[4 * j + 2 * h] * r + shift, v[4 * j + 2 * h + 1] * r + shift);
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

// join makes sums what is laid aside plus what is kept of them.
__device__ __forceinline__ void join(float (&sums)[64], const Kept &kept) {
  const int thread = apart((int)threadIdx_x); // places are worked out here: kept, they spill
#pragma unroll
  for (int h = 0; h < 2; h++)
#pragma unroll
    for (int j = 0; j < 16; j++) {
      const f2 v = *aside_at(j, h, thread);
      float &a = sums[4 * j + 2 * h], &b = sums[4 * j + 2 * h + 1];
      a = kept.add(v.x, a, 4 * j + 2 * h), b = kept.add(v.y, b, 4 * j + 2 * h + 1);
    }
}

// store_pairs stores a lane's two numbers of blocks j and j + 1 of eight columns, from `to` on: two
// lanes change places, so that each stores four numbers of one block.
__device__ __forceinline__ void store_pairs(float *to, int j, f2 first, f2 second, bool real) {
  const int t = threadIdx_x % 4;
  const bool odd = t & 1;
  const float x = shfl_xor(odd ? first.x : second.x, 1), y = shfl_xor(odd ? first.y : second.y, 1);
  const f4 v = odd ? f4{x, y, second.x, second.y} : f4{first.x, first.y, x, y};
  if (real) *(f4 *)(to + 8 * (j + odd) + 2 * (t - odd)) = v;
}

// Hats on their way to memory: a warp's sixteen rows of 256 bytes, 16 apart, where it lays its sums
// aside.
__device__ __forceinline__ int staged_place(int r, int q) { return r * (2 * layerWidth + 16) + q * 16; }
__device__ __forceinline__ void stage_left(char *staged, const u32 (&v)[4][8]) {
  const int lane = apart((int)threadIdx_x) % 32; // places are worked out here: kept, they spill
#pragma unroll
  for (int h = 0; h < 2; h++)
#pragma unroll
    for (int j = 0; j < 16; j++) *(u32 *)(staged + staged_place(lane / 4 + 8 * h, j) + lane % 4 * 4) = v[j / 4][j % 4 * 2 + h];
}
__device__ __forceinline__ void save_staged(Bf16 *to, const char *staged, int first, int m) {
  const int lane = apart((int)threadIdx_x) % 32, q = lane % 16;
#pragma unroll
  for (int i = 0; i < 8; i++) {
    const int r = 2 * i + lane / 16;
    const u4 v = *(const u4 *)(staged + staged_place(r, q));
    if (first + r < m) stream_out(to + (long)(first + r) * layerWidth + 8 * q, v);
  }
}

constexpr int hiddenColumns = 64, hiddenBlocks = layerFeed / hiddenColumns, behindPieces = 6;
static_assert(hiddenBlocks == 8, "the last three blocks are written out");

// half_gelu is the GELU of 2h (gelu.cuh) by the card's own tanh: one instruction less than from x.
__device__ __forceinline__ float half_gelu(float h) {
  float t;
  asm("tanh.approx.f32 %0, %1;" : "=f"(t) : "f"(h * (2 * geluRoot + 8 * geluRoot * geluCube * (h * h))));
  return h * t + h;
}

// activate makes the GELU of 64 hidden columns: of them and their bias there are halves.
__device__ __forceinline__ void activate(float (&part)[32], const float *bias, int c) {
#pragma unroll
  for (int b = 0; b < 2; b++)
#pragma unroll
    // columns 8t+2j and the next of the block of 32: slots of its tile j of eight
    for (int j = 0; j < 4; j++) {
      const f2 shift = *(const f2 *)(bias + hiddenColumns * c + 32 * b + 8 * (threadIdx_x % 4) + 2 * j);
#pragma unroll
      for (int h = 0; h < 2; h++) {
        const int i = 16 * b + 4 * j + 2 * h;
        part[i] = half_gelu(part[i] + shift.x), part[i + 1] = half_gelu(part[i + 1] + shift.y);
      }
    }
}

// FOLLOWED: a layer follows, whose first norm and product end the pass.
template <bool FOLLOWED>
__device__ __forceinline__ void tail(float *out, Bf16 *hat2, float *rstd2, const u32 *masks1, const u32 *masks2, const float *x,
    const Bf16 *attended, const char *weights, const float *outBias, const float *upBias, const float *downBias, int m, float eps,
    float scale1, float scale2, Bf16 *hat1, float *rstd1, Bf16 *qkv, const char *behind, const float *qkvBias) {
  const int warp = threadIdx_x / 32, t = threadIdx_x % 4, group = shfl(warp, 0) / 4, tiles = (m + blockRows - 1) / blockRows;
  float *biases = (float *)(room + atBiases); // up, out, down, qkv
  {
    const int i = threadIdx_x; // all at once: one wait for memory, not one for each
    static_assert(layerThreads < layerFeed && layerThreads + layerWidth >= layerFeed && layerThreads >= 2 * layerWidth, "two rounds");
    static_assert(layerThreads == 3 * layerWidth, "a thread each");
    const float behindBias = FOLLOWED ? qkvBias[i] : 0.0f;
    const float up = upBias[i], rest = i < layerFeed - layerThreads ? upBias[layerThreads + i] : 0.0f,
                other = i < layerWidth ? outBias[i] : i < 2 * layerWidth ? downBias[i - layerWidth] : 0.0f;
    biases[i] = 0.5f * up;
    if (i < layerFeed - layerThreads) biases[layerThreads + i] = 0.5f * rest;
    if (i < 2 * layerWidth) biases[layerFeed + i] = other;
    biases[layerFeed + 2 * layerWidth + i] = behindBias;
  }
  Pieces<pieces + (FOLLOWED ? behindPieces : 0)> w(weights);
  if (group == layerGroups) {
    fewer_registers<24>();
    w.bring(weights, tiles, behind);
    return;
  }
  more_registers<240>();
  // where hats lie on their way to memory, before and after what is laid aside
  char *staged = room + atAside + warp * warpAside;
  const float *qkvBiases = biases + layerFeed + 2 * layerWidth;
#pragma unroll 1
  for (int tile = blockIdx_x; tile < tiles; tile += gridDim_x, w.round++) {
    const int group0 = tile * blockRows + group * groupRows, row0 = group0 + warp % 4 * 16;
    const Row row[2] = {Row(row0, 0, m), Row(row0, 1, m)};
    // read here, where others are waited for anyway
    const Kept keeps1(masks1, scale1, row), keeps2(masks2, scale2, row);
    float sums[64];
    u32 left[4][8]; // hats
    stream_aside(x, row0, m);
    {
      u32 a[4][8];
      vector(a[0], attended, layerWidth, row, 0), vector(a[1], attended, layerWidth, row, 32);
      vector(a[2], attended, layerWidth, row, 64), vector(a[3], attended, layerWidth, row, 96);
      biased(sums, biases + layerFeed);
      const u32 first = w.place(0), second = w.place(1);
      begin_products();
      begin_taken(sums, a[0], a[1], tile_at(first));
      begin_taken(sums, a[2], a[3], tile_at(second));
      end_products();
      wait_products(sums, a);
      w.done(0), w.done(1);
    }
    wait_copies<0>();
    syncwarp();
    join(sums, keeps1);
    hat(left, rstd2, sums, row, eps);
    syncwarp(); // everyone has what was laid aside
    stage_left(staged, left);
    syncwarp();
    save_staged(hat2, staged, row0, m);
    syncwarp(); // hats have been read
    lay_aside(sums);
    // of hidden blocks by turns: while one is activated, the next is made and the one before it
    // taken
    float part[2][32];
    auto up = [](int c) { return 2 + 2 * c; }; // pieces
    auto down = [](int c) { return 3 + 2 * c; };
    {
      const u32 first = w.place(up(0)), second = w.place(up(1));
      begin_products();
      begin_made(part[0], left, tile_at(first));
      begin_made(part[1], left, tile_at(second));
      end_products();
    }
    biased(sums, biases + layerFeed + layerWidth);
    wait_products(part[0], left), wait_products(part[1], left);
    w.done(up(0)), w.done(up(1));
    // what the product under way takes: nobody writes there until it has been waited for
    u32 a[8], b[8];
    // take starts the product that takes block c, and those that make block c + 2 in its place;
    // taken says that they are there.
    auto take = [&](int c, float (&part)[32]) {
      left_of(a, part, 0), left_of(b, part, 16);
      const u32 takes = w.place(down(c)), makes = w.place(up(c + 2));
      begin_products();
      begin_made(part, left, tile_at(makes));
      begin_taken(sums, a, b, tile_at(takes));
      end_products();
    };
    auto taken = [&](int c, float (&part)[32]) {
      wait_products(sums, a, b), wait_products(part, left);
      w.done(down(c)), w.done(up(c + 2));
    };
    auto take_only = [&](int c, const float (&part)[32]) {
      left_of(a, part, 0), left_of(b, part, 16);
      const u32 takes = w.place(down(c));
      begin_products();
      begin_taken(sums, a, b, tile_at(takes));
      end_products();
    };
    activate(part[0], biases, 0);
    take(0, part[0]);
#pragma unroll 1
    for (int c = 1; c < hiddenBlocks - 3; c += 2) {
      activate(part[1], biases, c);
      taken(c - 1, part[0]);
      take(c, part[1]);
      activate(part[0], biases, c + 1);
      taken(c, part[1]);
      take(c + 1, part[0]);
    }
    rows_ahead(attended, 2 * layerWidth, group0 + gridDim_x * blockRows, m);
    rows_ahead(x, 4 * layerWidth, group0 + gridDim_x * blockRows, m);
    activate(part[1], biases, 5);
    taken(4, part[0]);
    take(5, part[1]);
    activate(part[0], biases, 6);
    taken(5, part[1]);
    take_only(6, part[0]);
    activate(part[1], biases, 7);
    wait_products(sums, a, b);
    w.done(down(6));
    take_only(7, part[1]);
    wait_products(sums, a, b);
    w.done(down(7));
    join(sums, keeps2);
#pragma unroll
    for (int h = 0; h < 2; h++) {
      float *to = out + (long)apart(row[h].at) * layerWidth;
#pragma unroll
      for (int j = 0; j < 16; j += 2)
        store_pairs(to, j, f2{sums[4 * j + 2 * h], sums[4 * j + 2 * h + 1]}, f2{sums[4 * j + 2 * h + 4], sums[4 * j + 2 * h + 5]}, row[h].real);
    }
    if constexpr (FOLLOWED) {
      hat(left, rstd1, sums, row, eps);
      syncwarp(); // everyone has back what was laid aside
      stage_left(staged, left);
      syncwarp();
#pragma unroll 1
      for (int i = 0; i < 3; i++) {
        const float *bias = qkvBiases + i * layerWidth + 8 * t;
#pragma unroll
        for (int j = 0; j < 16; j++) {
          const f2 shift = *(const f2 *)(bias + 32 * (j / 4) + 2 * (j % 4));
          sums[4 * j] = shift.x, sums[4 * j + 1] = shift.y, sums[4 * j + 2] = shift.x, sums[4 * j + 3] = shift.y;
        }
        const u32 first = w.place(18 + 2 * i), second = w.place(19 + 2 * i);
        begin_products();
        begin_taken(sums, left[0], left[1], tile_at(first));
        begin_taken(sums, left[2], left[3], tile_at(second));
        end_products();
        if (i == 0) save_staged(hat1, staged, row0, m);
        wait_products(sums, left);
        w.done(18 + 2 * i), w.done(19 + 2 * i);
#pragma unroll
        for (int b = 0; b < 4; b++) {
          u32 v[8];
          left_of(v, sums, 16 * b);
#pragma unroll
          for (int h = 0; h < 2; h++)
            if (row[h].real)
              stream_out(qkv + (long)apart(row[h].at) * (3 * layerWidth) + i * layerWidth + 32 * b + 8 * t, hidden_row(v, h));
        }
      }
    }
    syncwarp(); // rows of the next tile come where these were
  }
}

#define PASS                                                                                                                             \
  float *out, Bf16 *hat2, float *rstd2, const u32 *masks1, const u32 *masks2, const float *x, const Bf16 *attended, const char *weights, \
      const float *outBias, const float *upBias, const float *downBias, int m, float eps, float scale1, float scale2
#define THE_PASS out, hat2, rstd2, masks1, masks2, x, attended, weights, outBias, upBias, downBias, m, eps, scale1, scale2
KERNEL __launch_bounds__(layerThreads, 1) layer_tail(PASS) { tail<false>(THE_PASS, nullptr, nullptr, nullptr, nullptr, nullptr); }
KERNEL __launch_bounds__(layerThreads, 1)
    layer_tail_qkv(PASS, Bf16 *hat1, float *rstd1, Bf16 *qkv, const char *behind, const float *qkvBias) {
  tail<true>(THE_PASS, hat1, rstd1, qkv, behind, qkvBias);
}
