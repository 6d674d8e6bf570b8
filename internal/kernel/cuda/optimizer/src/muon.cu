// Muon's update of square blocks of weights, a thread block for each: kernel.AdamW states the rule.
// It runs beside adamw_update, which leaves blocks alone.
//
// What a reader could break: X stays in registers in fp32, and only what products read of it is
// fp16. A round multiplies a small singular value by 3.4, five rounds by 485, and with it what was
// rounded off X; what is rounded off a product's operand is as small as that operand's share in X.
// All numbers are of order one behind the norm, so that fp16's range is enough. A thread has the
// same elements of X, A and the block all along, those of its warp's accumulators, and padding up
// to 128 is zeros, which products keep.
#include "bf16.cuh"
#include "update.cuh"

constexpr int most = 128;              // rows and columns of a matrix, padded
constexpr int threads = 512;           // 16 warps, each with 32 rows and 32 columns
// of a matrix in shared memory; piece p (16 bytes) of row r is at place p ^ (r & 7)
constexpr int row_bytes = 2 * most;
constexpr int matrix_bytes = most * row_bytes;

typedef float Tile[2][4][4]; // by 16 rows and 8 columns: an accumulator of mma

__device__ __forceinline__ u32 half2(float first, float second) {
  u32 r;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(second), "f"(first));
  return r;
}
__device__ __forceinline__ void mma_half(float (&c)[4], u4 a, u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
}

// What a thread has of a matrix: rows row()+16i and 8 further down, columns column()+8j and the
// next.
__device__ __forceinline__ int row() { return 32 * (threadIdx_x / 128) + (threadIdx_x % 32) / 4; }
__device__ __forceinline__ int column() { return 32 * (threadIdx_x / 32 % 4) + 2 * (threadIdx_x % 4); }

// each calls f(i, j, e, row, column) for every pair of neighbours that the thread has; they are
// elements e and e+1 of tile i, j.
template <class F> __device__ __forceinline__ void each(F f) {
#pragma unroll
  for (int i = 0; i < 2; i++)
#pragma unroll
    for (int j = 0; j < 4; j++)
#pragma unroll
      for (int e = 0; e < 4; e += 2) f(i, j, e, row() + 16 * i + 4 * e, column() + 8 * j);
}

// put writes k times a matrix in fp16.
__device__ __forceinline__ void put(char *matrix, const Tile &x, float k) {
  each([&](int i, int j, int e, int r, int c) {
    *(u32 *)(matrix + r * row_bytes + ((c / 8 ^ (r & 7)) << 4) + 2 * (c % 8)) = half2(k * x[i][j][e], k * x[i][j][e + 1]);
  });
}

// add: sum += a·bᵀ, or with PLAIN a·b.
template <bool PLAIN> __device__ __forceinline__ void add(Tile &sum, u32 a, u32 b) {
  const int l = threadIdx_x % 32, swizzle = l & 7, low = (l & 7) + 8 * (l >> 3 & 1);
  const int rows = 32 * (threadIdx_x / 128), columns = 32 * (threadIdx_x / 32 % 4);
  const u32 left = a + (rows + low) * row_bytes;
  const u32 right = b + (PLAIN ? low : columns + (l & 7) + 8 * (l >> 4)) * row_bytes;
#pragma unroll
  for (int k = 0; k < most / 16; k++) {
    u4 x[2], y[2];
#pragma unroll
    for (int i = 0; i < 2; i++) x[i] = upright4(left + 16 * i * row_bytes + ((2 * k + (l >> 4) ^ swizzle) << 4));
#pragma unroll
    for (int j = 0; j < 2; j++)
      if (PLAIN)
        y[j] = turned4(right + 16 * k * row_bytes + ((columns / 8 + 2 * j + (l >> 4) ^ swizzle) << 4));
      else
        y[j] = upright4(right + 16 * j * row_bytes + ((2 * k + (l >> 3 & 1) ^ swizzle) << 4));
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
      for (int j = 0; j < 2; j++) {
        mma_half(sum[i][2 * j], x[i], y[j].x, y[j].y);
        mma_half(sum[i][2 * j + 1], x[i], y[j].z, y[j].w);
      }
  }
}

__device__ __forceinline__ void scale(Tile &x, float k) {
  each([&](int i, int j, int e, int, int) { x[i][j][e] *= k, x[i][j][e + 1] *= k; });
}

// norm is the root of the sum of x's squares over the block, in an order that is always the same.
__device__ __forceinline__ double norm(const Tile &x) {
  __shared__ double part[threads / 32];
  double sum = 0;
  each([&](int i, int j, int e, int, int) { sum += (double)x[i][j][e] * x[i][j][e] + (double)x[i][j][e + 1] * x[i][j][e + 1]; });
  for (int m = 16; m > 0; m >>= 1) sum += shfl_xor(sum, m);
  if (threadIdx_x % 32 == 0) part[threadIdx_x / 32] = sum;
  sync();
  sum = 0;
  for (int w = 0; w < threads / 32; w++) sum += part[w];
  return sqrt64(sum);
}

struct Block { int offset, stride; }; // kernel.Block

// M = μ·M + g; X = g + μ·M, over its norm; `rounds` times X = a·X + (b·A + c·A·A)·X with A = X·Xᵀ;
// w -= rate·(step·X + decay·w) for the side×side weights of a block; g = grads·scale, M is at m.
// half, where it is not null, gets the weights in bf16.
KERNEL __launch_bounds__(threads) muon(float *weights, u32 *half, float *m, const float *grads, const Update *update, const Block *blocks, int side, int rounds, float momentum, float a,
                                     float b, float c, float step, float decay, float eps) {
  extern __shared__ char room[] __attribute__((aligned(1024)));
  char *const left = room, *const right = room + matrix_bytes; // A, then b·A + c·A·A; and X
  const Update p = *update;
  if (!p.apply) return;
  const Block block = blocks[blockIdx_x];
  // pairs of neighbours are aligned then, and both inside or neither
  const bool even = side % 2 == 0;
  auto at = [&](int r, int col) { return block.offset + (long)r * block.stride + col; };
  auto get = [&](const float *from, int r, int col) {
    f2 v = {0, 0};
    if (r < side && col < side) {
      if (even)
        v = *(const f2 *)(from + at(r, col));
      else
        v = f2{from[at(r, col)], col + 1 < side ? from[at(r, col + 1)] : 0};
    }
    return v;
  };
  auto set = [&](float *to, int r, int col, f2 v) {
    if (r < side && col < side) {
      if (even) {
        *(f2 *)(to + at(r, col)) = v;
      } else {
        to[at(r, col)] = v.x;
        if (col + 1 < side) to[at(r, col + 1)] = v.y;
      }
    }
  };

  Tile x, sum;
  each([&](int i, int j, int e, int r, int col) {
    const f2 g = get(grads, r, col), old = get(m, r, col);
    x[i][j][e] = g.x, x[i][j][e + 1] = g.y;
    sum[i][j][e] = old.x, sum[i][j][e + 1] = old.y;
  });
  each([&](int i, int j, int e, int r, int col) {
    const f2 g = f2{x[i][j][e], x[i][j][e + 1]} * p.scale, mi = momentum * f2{sum[i][j][e], sum[i][j][e + 1]} + g, v = g + momentum * mi;
    set(m, r, col, mi);
    x[i][j][e] = v.x, x[i][j][e + 1] = v.y;
  });
  scale(x, (float)(1 / (norm(x) + eps)));

  const u32 leftAt = shared_at(left), rightAt = shared_at(right);
#pragma unroll 1
  for (int round = 0; round < rounds; round++) {
    put(right, x, 1);
    sync();
    each([&](int i, int j, int e, int, int) { sum[i][j][e] = sum[i][j][e + 1] = 0; });
    add<false>(sum, rightAt, rightAt);
    put(left, sum, 1);
    sync();
    scale(sum, b / c);
    add<false>(sum, leftAt, leftAt); // A is symmetric
    sync();
    put(left, sum, c);
    sync();
    scale(x, a);
    add<true>(x, leftAt, rightAt);
    sync();
  }

  each([&](int i, int j, int e, int r, int col) {
    f2 w = get(weights, r, col);
    w -= p.rate * (step * f2{x[i][j][e], x[i][j][e + 1]} + decay * w);
    set(weights, r, col, w);
    if (half && r < side && col < side) {
      const u32 both = bf16x2(w.x, w.y);
      if (even) {
        half[at(r, col) / 2] = both;
      } else {
        Bf16 *to = (Bf16 *)half + at(r, col);
        to[0] = (Bf16)both;
        if (col + 1 < side) to[1] = (Bf16)(both >> 16);
      }
    }
  });
}
