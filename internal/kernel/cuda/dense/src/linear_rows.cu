// Products C = A·B of many rows on Hopper's tensor cores (wgmma, sm_90a): Y = X·Wᵀ + bias +
// residual, and DX = DY·W. A block keeps its columns of B in shared memory for its life and streams
// rows of A past them, from global memory into registers, one tile ahead; products are in tf32,
// sums in fp32.
//
// What a reader could break: who holds what. A warpgroup has 64 rows, a warp 16 of them; with g =
// lane/4 and t = lane%4 a thread has rows g and g+8 of its warp. Terms and columns are numbered
// otherwise than the tensor core does, which is right as long as A, B and C keep to it:
//
//   term 16c + 4t + 2s + b       is term 8·(2c+s) + 4b + t of the tensor core, so that a thread
//                                reads four terms of a row at once
//   column 16u + 4t + 2v + b     is column 8·(2u+v) + 2t + b, so that a thread writes four columns
//                                of a row at once
//
// B lies in shared memory as the tensor core wants it: blocks of 32 terms, in a block rows of 128
// bytes, one per column, whose eight 16-byte pieces are turned by the column's last three bits;
// eight columns are 1024 bytes, which is what the block's start is aligned to.
#include "ptx.cuh"

// rows of a tile, terms of a step, threads of a block
constexpr int BM = 128, CHUNK = 128, threads = 256;

// term_of and column_of are the tensor core's numbers of a term and of a column.
__device__ __forceinline__ int term_of(int k) { return (k & ~15) | (k >> 1 & 1) << 3 | (k & 1) << 2 | (k >> 2 & 3); }
__device__ __forceinline__ int column_of(int n) { return (n & ~15) | (n >> 1 & 1) << 3 | (n >> 2 & 3) << 1 | (n & 1); }

// place is where an element of B lies, in floats, by the tensor core's numbers.
template <int BN> __device__ __forceinline__ int place(int n, int k) {
  return (k >> 5) * BN * 32 + n * 32 + (((k >> 2 & 7) ^ (n & 7)) << 2) + (k & 3);
}

__device__ __forceinline__ u32 shared_address(const void *p) {
  u32 at;
  asm("{.reg .u64 t; cvta.to.shared.u64 t, %1; cvt.u32.u64 %0, t;}" : "=r"(at) : "l"(p));
  return at;
}

// descriptor of B from a place in shared memory on: rows of 128 bytes turned by their number, eight
// rows 1024 bytes apart from the next eight.
__device__ __forceinline__ u64 descriptor(u32 at) { return (u64)(at >> 4 & 0x3fff) | (u64)1 << 16 | (u64)64 << 32 | (u64)1 << 62; }

__device__ __forceinline__ void products_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
// products_end waits for them; nothing that uses the sums is moved before it.
template <int N> __device__ __forceinline__ void products_end(float (&c)[N]) {
  asm volatile("wgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
  for (int i = 0; i < N; i++) asm volatile("" : "+f"(c[i])::"memory");
}

#define C4(i) "+f"(c[i]), "+f"(c[i + 1]), "+f"(c[i + 2]), "+f"(c[i + 3])
#define C16(i) C4(i), C4(i + 4), C4(i + 8), C4(i + 12)
// c[64×BN] = a·b over eight terms, added to what c has where there is more.
__device__ __forceinline__ void multiply(float (&c)[64], const u32 (&a)[4], u64 b, u32 more) {
  asm volatile("{.reg .pred p; setp.ne.b32 p, %69, 0;\n"
               "wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 "
               "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,"
               "%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,"
               "%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}, "
               "{%64,%65,%66,%67}, %68, p, 1, 1;}"
               : C16(0), C16(16), C16(32), C16(48)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(more));
}
__device__ __forceinline__ void multiply(float (&c)[32], const u32 (&a)[4], u64 b, u32 more) {
  asm volatile("{.reg .pred p; setp.ne.b32 p, %37, 0;\n"
               "wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32 "
               "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,"
               "%28,%29,%30,%31}, {%32,%33,%34,%35}, %36, p, 1, 1;}"
               : C16(0), C16(16)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(more));
}

// Job is a launch's. Columns [0, n) of C in slices of BN, one to a block; A has k terms, a multiple
// of CHUNK.
struct Job {
  float *c;
  const float *a, *w, *bias, *add; // bias and add may be null
  int m, n, k, ldc, lda, ldadd;
  // GLU: C is g, and u = g·sigmoid(g of the other half). GLU_GRAD: C is dg, and u is g
  float *u;
  int half;       // their width
};

enum { PLAIN, GLU, GLU_GRAD };

__device__ __forceinline__ f4 sigmoid4(f4 x) { return f4{sigmoid_(x.x), sigmoid_(x.y), sigmoid_(x.z), sigmoid_(x.w)}; }

// TURNED: B is W, terms its rows; else Wᵀ, terms its columns. Shared: B [k][BN] | bias [BN].
template <int BN, bool TURNED, int END> __device__ __forceinline__ void rows(const Job &j) {
  extern __shared__ float smem[] __attribute__((aligned(1024)));
  const int lane = threadIdx_x % 32, warp = threadIdx_x / 32, g = lane / 4, t = lane % 4;
  const int slices = j.n / BN, slice = blockIdx_x % slices, tiles = (j.m + BM - 1) / BM, step = gridDim_x / slices;
  const int n0 = END == GLU ? slice * (BN / 2) : slice * BN;
  int tile = blockIdx_x / slices, row = tile * BM + 16 * warp + g;

  f4 next[2][8]; // A of the step to come
  auto read = [&](int row, int chunk) {
    const int last = j.m - 1, lower = row < last ? row : last, upper = row + 8 < last ? row + 8 : last;
    const float *p = j.a + (long)lower * j.lda + chunk + 4 * t, *q = j.a + (long)upper * j.lda + chunk + 4 * t;
#pragma unroll
    for (int c = 0; c < 8; c++) next[0][c] = load4(p + 16 * c), next[1][c] = load4(q + 16 * c);
  };
  if (tile < tiles) read(row, 0);

  // B comes in batches, whose reads are under way together.
  constexpr int batch = 8;
  const int pieces = BN / 4 * j.k;
  for (int e0 = 0; e0 < pieces; e0 += batch * threads) {
    f4 v[batch];
    auto at = [&](int i, int &n, int &k) {
      const int e = e0 + i * threads + threadIdx_x;
      if (TURNED) { // a warp has 32 terms, four columns
        k = e / 32 / (BN / 4) * 32 + lane, n = e / 32 % (BN / 4) * 4;
      } else { // a warp has 128 terms of a column
        n = e / 32 % BN, k = e / 32 / BN * 128 + 4 * lane;
      }
      return e < pieces;
    };
#pragma unroll
    for (int i = 0; i < batch; i++) {
      int n, k;
      if (!at(i, n, k)) continue;
      if (TURNED)
        v[i] = load4(j.w + (long)k * j.n + n0 + n);
      else
        v[i] = load4(j.w + (long)(END == GLU && n >= BN / 2 ? j.half + n0 + n - BN / 2 : n0 + n) * j.k + k);
    }
#pragma unroll
    for (int i = 0; i < batch; i++) {
      int n, k;
      if (!at(i, n, k)) continue;
#pragma unroll
      for (int x = 0; x < 4; x++) {
        const float e = __builtin_bit_cast(float, tf32(v[i][x]));
        smem[TURNED ? place<BN>(column_of(n + x), term_of(k)) : place<BN>(column_of(n), term_of(k + x))] = e;
      }
    }
  }
  float *bias = smem + BN * j.k; // BN numbers
  if (END != GLU_GRAD)
    for (int n = threadIdx_x; n < BN; n += threads)
      bias[n] = j.bias ? j.bias[END == GLU && n >= BN / 2 ? j.half + n0 + n - BN / 2 : n0 + n] : 0.0f;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  sync();
  const u32 base = shared_address(smem);

#pragma unroll 1
  for (; tile < tiles; tile += step) {
    float acc[BN / 2];
#pragma unroll
    for (int i = 0; i < BN / 2; i++) acc[i] = 0;
    const int here = row;
#pragma unroll 1
    for (int chunk = 0; chunk < j.k; chunk += CHUNK) {
      u32 a[16][4];
#pragma unroll
      for (int c = 0; c < 8; c++)
#pragma unroll
        for (int s = 0; s < 2; s++) {
          u32(&to)[4] = a[2 * c + s];
          to[0] = tf32(next[0][c][2 * s]), to[1] = tf32(next[1][c][2 * s]);
          to[2] = tf32(next[0][c][2 * s + 1]), to[3] = tf32(next[1][c][2 * s + 1]);
        }
      if (chunk + CHUNK < j.k) {
        read(here, chunk + CHUNK);
      } else if (tile + step < tiles) {
        row += step * BM;
        read(row, 0);
      }
      products_begin();
#pragma unroll
      for (int i = 0; i < 16; i++) multiply(acc, a[i], descriptor(base + (chunk / 32 + i / 4) * BN * 128 + i % 4 * 32), chunk + i > 0);
      products_end(acc);
    }
    // What is added or multiplied is read all at once, before the first write.
    constexpr int U = BN / 16;
#pragma unroll
    for (int x = 0; x < 2; x++) {
      const int r = here + 8 * x;
      if (r >= j.m) continue;
      auto sums = [&](int u) { return f4{acc[8 * u + 2 * x], acc[8 * u + 2 * x + 1], acc[8 * u + 4 + 2 * x], acc[8 * u + 5 + 2 * x]}; };
      float *to = j.c + (long)r * j.ldc + n0 + 4 * t;
      if (END == PLAIN) {
        f4 plus[U] = {};
        if (j.add)
#pragma unroll
          for (int u = 0; u < U; u++) plus[u] = load4(j.add + (long)r * j.ldadd + n0 + 4 * t + 16 * u);
#pragma unroll
        for (int u = 0; u < U; u++) store4(to + 16 * u, sums(u) + load4(bias + 16 * u + 4 * t) + plus[u]);
      } else if (END == GLU) {
        float *out = j.u + (long)r * j.half + n0 + 4 * t;
#pragma unroll
        for (int u = 0; u < U / 2; u++) {
          const f4 v = sums(u) + load4(bias + 16 * u + 4 * t), w = sums(U / 2 + u) + load4(bias + BN / 2 + 16 * u + 4 * t);
          if (j.c) store4(to + 16 * u, v), store4(to + j.half + 16 * u, w);
          store4(out + 16 * u, v * sigmoid4(w));
        }
      } else {
        const float *gate = j.u + (long)r * 2 * j.half + n0 + 4 * t;
#pragma unroll
        for (int u0 = 0; u0 < U; u0 += 4) {
          f4 a[4], s[4];
#pragma unroll
          for (int u = 0; u < 4; u++) a[u] = load4(gate + 16 * (u0 + u)), s[u] = load4(gate + j.half + 16 * (u0 + u));
#pragma unroll
          for (int u = 0; u < 4; u++) {
            const f4 v = sums(u0 + u), g = sigmoid4(s[u]);
            store4(to + 16 * (u0 + u), v * g);
            store4(to + j.half + 16 * (u0 + u), v * a[u] * g * (1.0f - g));
          }
        }
      }
    }
  }
}

#define ROWS(NAME, BN, TURNED, END)                                                                                                       \
  KERNEL __launch_bounds__(threads, 1) NAME(float *c, const float *a, const float *w, const float *bias, const float *add, float *u,      \
      int m, int n, int k, int ldc, int lda, int ldadd, int half) {                                                                       \
    rows<BN, TURNED, END>(Job{c, a, w, bias, add, m, n, k, ldc, lda, ldadd, u, half});                                                    \
  }
ROWS(linear_rows, 128, false, PLAIN)
ROWS(linear_rows_glu, 128, false, GLU)
ROWS(linear_rows_dx, 128, true, PLAIN)
ROWS(linear_rows_dx_narrow, 64, true, PLAIN)
ROWS(linear_rows_dx_glu, 128, true, GLU_GRAD)
