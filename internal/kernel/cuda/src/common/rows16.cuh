// Sixteen rows of 128 columns in shared memory, normalised and multiplied with weights that come
// straight from memory: what the kernels that do a whole half of a small batch's layer have in
// common, eight warps a block. Products are in tf32.
//
// What a reader could break: who holds what. With g = lane/4 and t = lane%4 the terms of a thread
// are columns 16c + 4t.. of rows g and g+8; of 16 columns of a result it gets 4t.. of both rows,
// since column 2i + b of tile v of the tensor core stands for column 4i + 2v + b (`weight_row`).
// Weights are used once by a block, so they pass through no shared memory; `Weights` is a batch of
// them under way. Two blocks fit a multiprocessor: 128 registers a thread.
#pragma once
#include "ptx.cuh"

constexpr int WIDTH = 128, CHUNKS = WIDTH / 16, WARPS = 8;
// floats of a row in shared memory: neighbours begin in different halves of the banks
constexpr int ROW = WIDTH + 16;

// others_ended stands where a kernel must have waited for those that it depends on, if not in its
// first instruction (overlap.go): before it, only what no kernel of a step but the optimizer writes
// may be read, which is weights.
__device__ __forceinline__ void others_ended() { asm volatile("// haul: others ended" ::: "memory"); }

// norm_rows is layer normalisation of rows first..first+15 of x, of which there are `rows`, two a
// warp, into shared memory and h; a barrier must follow. Rows past the end repeat the last and are
// not written to h, nor is any where none is `real`.
__device__ __forceinline__ void norm_rows(float *shared, float *h, float *mean, float *rstd, const float *x, const float *gamma,
    const float *beta, long first, long rows, float eps, bool real = true) {
  const int lane = threadIdx_x % 32, warp = threadIdx_x / 32;
  f4 v[2];
  float mu[2], rs[2];
#pragma unroll
  for (int i = 0; i < 2; i++) {
    const long r = first + 2 * warp + i;
    v[i] = load4(x + (r < rows ? r : rows - 1) * WIDTH + 4 * lane);
  }
  const f4 gm = load4(gamma + 4 * lane), bt = load4(beta + 4 * lane);
#pragma unroll
  for (int i = 0; i < 2; i++) mu[i] = warp_sum(sum4(v[i])) * (1.0f / WIDTH);
#pragma unroll
  for (int i = 0; i < 2; i++) {
    v[i] -= mu[i];
    rs[i] = rcp(sqrtf_(warp_sum(sum4(v[i] * v[i])) * (1.0f / WIDTH) + eps));
  }
#pragma unroll
  for (int i = 0; i < 2; i++) {
    const long r = first + 2 * warp + i;
    const f4 out = v[i] * rs[i] * gm + bt;
    store4(shared + (2 * warp + i) * ROW + 4 * lane, out);
    if (r >= rows || !real) continue;
    store4(h + r * WIDTH + 4 * lane, out);
    if (lane == 0) mean[r] = mu[i], rstd[r] = rs[i];
  }
}

// operand makes the left operands of chunk c of 16 rows in shared memory, `stride` apart: two steps
// of a tensor core.
__device__ __forceinline__ void operand(u32 (&a)[2][4], const float *shared, int stride, int c) {
  const int g = threadIdx_x % 32 / 4, t = threadIdx_x % 4;
  const f4 row = load4(shared + g * stride + 16 * c + 4 * t), row8 = load4(shared + (g + 8) * stride + 16 * c + 4 * t);
#pragma unroll
  for (int s = 0; s < 2; s++) a[s][0] = tf32(row[2 * s]), a[s][1] = tf32(row8[2 * s]), a[s][2] = tf32(row[2 * s + 1]),
      a[s][3] = tf32(row8[2 * s + 1]);
}

// Instances are the TILES of a block, n <= 16 rows each: the last block's may be past the end,
// repeats the last then and writes nothing.
template <int TILES> struct Instances {
  int n, index[TILES];
  bool has[TILES];

  __device__ __forceinline__ Instances(int n, int instances) : n(n) {
#pragma unroll
    for (int m = 0; m < TILES; m++) {
      const int b = blockIdx_x * TILES + m;
      has[m] = b < instances, index[m] = has[m] ? b : instances - 1;
    }
  }
  // first is where the rows of the block's instance m begin among all.
  __device__ __forceinline__ long first(int m) const { return (long)index[m] * n; }

  // place is that of the thread's i-th row among all, where it is real.
  __device__ __forceinline__ long place(int i) const { return first(i / 2) + within(i); }
  __device__ __forceinline__ bool real(int i) const { return within(i) < n && has[i / 2]; }
  static __device__ __forceinline__ int within(int i) { return (int)threadIdx_x % 32 / 4 + 8 * (i % 2); }
};

// turned is chunk c of N as this block counts them: blocks begin with different ones, since all of
// them read the same weights at the same time, and what all ask for at once comes last.
template <int N> __device__ __forceinline__ int turned(int c) {
  if ((N & (N - 1)) == 0) return (c + (int)blockIdx_x) & (N - 1);
  const int x = c + (int)(blockIdx_x % N);
  return x < N ? x : x - N;
}

// weight_row is the row of a weight that a lane reads for tile v of 16 columns.
__device__ __forceinline__ int weight_row(int v) {
  const int g = threadIdx_x % 32 / 4;
  return 4 * (g / 2) + 2 * v + (g & 1);
}

// Weights are C chunks of the two tiles of P groups of 16 columns, under way from memory.
template <int P, int C> struct Weights {
  f4 w[P][2][C];

  // from[p] is where the first of a group's 16 rows begins, rows `stride` apart; c0 the first
  // chunk.
  __device__ __forceinline__ void read(const float *const (&from)[P], int stride, int c0) {
    const int t = threadIdx_x % 4;
#pragma unroll
    for (int p = 0; p < P; p++)
#pragma unroll
      for (int v = 0; v < 2; v++)
#pragma unroll
        for (int c = 0; c < C; c++) w[p][v][c] = load4(from[p] + (long)weight_row(v) * stride + 16 * (c0 + c) + 4 * t);
  }

  // multiply adds chunk c's products to the groups' sums.
  __device__ __forceinline__ void multiply(float (&acc)[P][2][4], const u32 (&a)[2][4], int c) const {
#pragma unroll
    for (int p = 0; p < P; p++)
#pragma unroll
      for (int v = 0; v < 2; v++)
#pragma unroll
        for (int s = 0; s < 2; s++) {
          float(&o)[4] = acc[p][v];
          mma_tf32(o[0], o[1], o[2], o[3], a[s][0], a[s][1], a[s][2], a[s][3], tf32(w[p][v][c][2 * s]), tf32(w[p][v][c][2 * s + 1]));
        }
  }

  // multiply_rows does so with all chunks of `tiles` times 16 rows in shared memory, `stride`
  // apart, of which c0 is the first.
  template <int TILES>
  __device__ __forceinline__ void multiply_rows(float (&acc)[TILES][P][2][4], const float *rows, int stride, int c0,
      int tiles = TILES) const {
#pragma unroll
    for (int c = 0; c < C; c++)
#pragma unroll
      for (int m = 0; m < tiles; m++) {
        u32 a[2][4];
        operand(a, rows + m * 16 * stride, stride, c0 + c);
        multiply(acc[m], a, c);
      }
  }
};

// sums are a thread's four columns of row g (x = 0) or g+8 of a group.
__device__ __forceinline__ f4 sums(const float (&o)[2][4], int x) { return f4{o[0][2 * x], o[0][2 * x + 1], o[1][2 * x], o[1][2 * x + 1]}; }

// Across is C chunks of weights as the way back multiplies with them, under way from memory: terms
// are rows of the weight, of which a thread has four a chunk, and V of the 8·V columns of each.
// Column c of tile v of the tensor core stands for column V·c + v.
template <int V, int C> struct Across {
  typedef float vector __attribute__((ext_vector_type(V)));
  vector w[C][4];

  // from is where the first of the 8·V columns begins in the first of all rows, rows `stride`
  // apart; c0 the first chunk.
  __device__ __forceinline__ void read(const float *from, int stride, int c0) {
    const int g = threadIdx_x % 32 / 4, t = threadIdx_x % 4;
#pragma unroll
    for (int c = 0; c < C; c++)
#pragma unroll
      for (int j = 0; j < 4; j++) w[c][j] = *(const vector *)(from + (long)(16 * (c0 + c) + 4 * t + j) * stride + V * g);
  }

  // read_turned brings chunks c0.. of N as the block counts them.
  template <int N> __device__ __forceinline__ void read_turned(const float *from, int stride, int c0) {
    const int g = threadIdx_x % 32 / 4, t = threadIdx_x % 4;
#pragma unroll
    for (int c = 0; c < C; c++) {
      const float *row = from + (long)(16 * turned<N>(c0 + c) + 4 * t) * stride + V * g;
#pragma unroll
      for (int j = 0; j < 4; j++) w[c][j] = *(const vector *)(row + (long)j * stride);
    }
  }

  __device__ __forceinline__ void multiply(float (&acc)[V][4], const u32 (&a)[2][4], int c) const {
#pragma unroll
    for (int v = 0; v < V; v++)
#pragma unroll
      for (int s = 0; s < 2; s++) {
        float(&o)[4] = acc[v];
        mma_tf32(o[0], o[1], o[2], o[3], a[s][0], a[s][1], a[s][2], a[s][3], tf32(w[c][2 * s][v]), tf32(w[c][2 * s + 1][v]));
      }
  }

  // multiply_rows does so with all chunks of 16 rows in shared memory, ROW apart, of which c0 is
  // the first.
  __device__ __forceinline__ void multiply_rows(float (&acc)[V][4], const float *rows, int c0) const {
#pragma unroll
    for (int c = 0; c < C; c++) {
      u32 a[2][4];
      operand(a, rows, ROW, c0 + c);
      multiply(acc, a, c);
    }
  }
};

// half_terms is the product of 16 rows with weights of 128 columns over one half of the terms a
// group of four warps; a warp has 32 columns. The halves are added in `to`, [16][ROW], which nobody
// reads any more. BATCHES of C chunks: left(a, c) makes the left operands of chunk c of the half,
// fetch(w, i) brings batch i, of which 0 and 1 are under way already. All threads must come here,
// and a barrier is behind it.
template <int BATCHES, int C, class Left, class Fetch> __device__ __forceinline__ void half_terms(float *to, Across<4, C> (&w)[2], Left left,
    Fetch fetch) {
  const int lane = threadIdx_x % 32, warp = threadIdx_x / 32, q = lane / 4, t = lane % 4, half = warp / 4;
  float acc[4][4] = {};
#pragma unroll
  for (int i = 0; i < BATCHES; i++) {
#pragma unroll
    for (int c = 0; c < C; c++) {
      u32 a[2][4];
      left(a, C * i + c);
      w[i % 2].multiply(acc, a, c);
    }
    if (i + 2 < BATCHES) fetch(w[i % 2], i + 2);
  }
  f4 sum[2][2];
#pragma unroll
  for (int x = 0; x < 2; x++)
#pragma unroll
    for (int y = 0; y < 2; y++) sum[x][y] = f4{acc[0][2 * x + y], acc[1][2 * x + y], acc[2][2 * x + y], acc[3][2 * x + y]};
  float *at = to + q * ROW + 32 * (warp % 4) + 8 * t;
  if (half)
#pragma unroll
    for (int x = 0; x < 2; x++)
#pragma unroll
      for (int y = 0; y < 2; y++) store4(at + 8 * x * ROW + 4 * y, sum[x][y]);
  sync();
  if (!half)
#pragma unroll
    for (int x = 0; x < 2; x++)
#pragma unroll
      for (int y = 0; y < 2; y++) store4(at + 8 * x * ROW + 4 * y, load4(at + 8 * x * ROW + 4 * y) + sum[x][y]);
  sync();
}

// half_weight is where a warp's columns and half of the terms begin for half_terms.
template <int CHUNKS> __device__ __forceinline__ const float *half_weight(const float *weight) {
  const int warp = threadIdx_x / 32;
  return weight + (long)(warp / 4 * 16 * CHUNKS) * WIDTH + 32 * (warp % 4);
}

// Stream is what the way back through a norm needs of a warp's two rows: gradients of the residual
// stream and what was normalised.
struct Stream {
  f4 dy[2], h[2];
  float rs[2];

  // read brings gradients of rows first.. of which there are `rows`; rows past the end are zeros.
  __device__ __forceinline__ void read(const float *from, long first, long rows) {
    const int lane = threadIdx_x % 32, warp = threadIdx_x / 32;
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const long r = first + 2 * warp + i;
      dy[i] = r < rows ? load4(from + r * WIDTH + 4 * lane) : f4{0, 0, 0, 0};
    }
  }

  // read_norm brings what was normalised.
  __device__ __forceinline__ void read_norm(const float *x, const float *mean, const float *rstd, long first, long rows) {
    const int lane = threadIdx_x % 32, warp = threadIdx_x / 32;
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const long r = first + 2 * warp + i;
      const bool real = r < rows;
      rs[i] = real ? rstd[r] : 0.0f;
      h[i] = real ? (load4(x + r * WIDTH + 4 * lane) - mean[r]) * rs[i] : f4{0, 0, 0, 0};
    }
  }

  // keep leaves the gradients in shared memory, [16][ROW]; a barrier must follow.
  __device__ __forceinline__ void keep(float *to) const {
    const int lane = threadIdx_x % 32, warp = threadIdx_x / 32;
#pragma unroll
    for (int i = 0; i < 2; i++) store4(to + (2 * warp + i) * ROW + 4 * lane, dy[i]);
  }

  // norm_grad is dx = dy + the norm's gradient from dh, [16][ROW] in shared memory, and the block's
  // sums over its rows of dh·h and of dh in partial. room is for 2·WARPS·WIDTH floats and nobody
  // else's by then. dy is dx afterwards.
  __device__ __forceinline__ void norm_grad(float *dx, float *partial, const float *dh, const float *gamma, float *room, long first,
      long rows) {
    const int lane = threadIdx_x % 32, warp = threadIdx_x / 32;
    const f4 gm = load4(gamma + 4 * lane);
    f4 dg = {0, 0, 0, 0}, db = {0, 0, 0, 0};
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const long r = first + 2 * warp + i;
      const f4 g = r < rows ? load4(dh + (2 * warp + i) * ROW + 4 * lane) : f4{0, 0, 0, 0}, e = g * gm;
      dg += g * h[i], db += g;
      const float meanE = warp_sum(sum4(e)) * (1.0f / WIDTH), meanEH = warp_sum(sum4(e * h[i])) * (1.0f / WIDTH);
      dy[i] += (e - meanE - h[i] * meanEH) * rs[i];
      if (r < rows) store4(dx + r * WIDTH + 4 * lane, dy[i]);
    }
    store4(room + warp * 2 * WIDTH + 4 * lane, dg), store4(room + warp * 2 * WIDTH + WIDTH + 4 * lane, db);
    sync();
    float v = 0;
#pragma unroll
    for (int w = 0; w < WARPS; w++) v += room[w * 2 * WIDTH + threadIdx_x];
    partial[threadIdx_x] = v;
  }
};
