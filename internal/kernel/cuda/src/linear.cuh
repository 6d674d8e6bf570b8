// Matrix products C[M,N] (+)= A·B, one source for three precisions and three pairs of layouts.
//
// What a reader could break: who owns which element. A warp works on blocks of 32×32; in each of them thread
// (g, t) = (lane/4, lane%4) owns the patch of rows 4g..4g+3 and columns 8t..8t+7, in every precision. Tensor
// cores number rows, columns and terms otherwise, but any order does as long as both operands keep to it:
//
//   row g of half s%2 of tile s/2   is row 4g+s of the block       s = 0..3
//   column g of tile j              is column 4g+j                 j = 0..3
//   terms of thread t               are terms 4t..4t+3 of 16
//
// so a thread reads four terms of a row at once, and writes eight neighbours of a row.
//
// A slab of an operand is 16 terms of its ROWS rows in shared memory, laid out as global memory has it:
//   terms adjacent: row r, term k at r·20 + k; rows 20 apart put eight lanes' 16-byte reads into different banks
//   rows adjacent:  row r, term k at k·ROWS + (r ^ 8·(k/4%4)), the exclusive or to the same end
#pragma once
#include "ptx.cuh"

enum Precision { FP32, TF32, BF16 };

constexpr int slabFloats(bool termsAdjacent, int rows) { return termsAdjacent ? rows * 20 : rows * 16; }

// The shape of a block's work: BM×BN of C; WM×WN×WK warps over rows, columns and slabs of terms; STAGES loads under way.
template <int BM_, int BN_, int WM_, int WN_, int WK_, int STAGES_> struct Shape {
  static constexpr int BM = BM_, BN = BN_, WM = WM_, WN = WN_, WK = WK_, STAGES = STAGES_;
  static constexpr int threads = 32 * WM * WN * WK, terms = 16 * WK;
  static constexpr int MG = BM / WM / 32, NG = BN / WN / 32; // 32×32 blocks of a warp
};
typedef Shape<128, 128, 2, 4, 1, 4> Large;
typedef Shape<64, 64, 2, 2, 2, 3> Medium;
typedef Shape<32, 32, 1, 1, 4, 3> Small; // the warps share the terms: many blocks, little wait

// Product is one block's job. A row r, term k is a[r·lda + k] or, rows adjacent, a[k·lda + r]; B likewise by column.
struct Product {
  float *c;
  const float *a, *b;
  const float *bias, *add; // added to C where not null; add may be c
  float *sums;             // row sums of A, where not null and the block is in the first column
  bool addSums;
  int m, n, from, to; // rows, columns, range of terms
  int ldc, lda, ldb, ldadd;
};

// bring starts the copy of ROWS rows × WK slabs of terms from k0 on; what lies outside the matrix is zeros.
template <bool TERMS, int ROWS, int WK, int THREADS, int VEC>
__device__ __forceinline__ void bring(float *slab, const float *src, int ld, int row0, int rows, int k0, int to) {
  constexpr int pieces = ROWS * 16 * WK / VEC;
#pragma unroll
  for (int i = 0; i < pieces / THREADS; i++) {
    int piece = i * THREADS + (int)threadIdx_x;
    int r, k, left, at; // left: elements from here that exist
    if (TERMS) {
      r = piece / (16 * WK / VEC);
      k = piece % (16 * WK / VEC) * VEC;
      left = row0 + r < rows ? to - k0 - k : 0;
      at = k / 16 * slabFloats(true, ROWS) + r * 20 + k % 16;
    } else {
      k = piece / (ROWS / VEC);
      r = piece % (ROWS / VEC) * VEC;
      left = k0 + k < to ? rows - row0 - r : 0;
      at = k * ROWS + (r ^ (8 * (k / 4 % 4)));
    }
    left = left < 0 ? 0 : left > VEC ? VEC : left;
    const float *from = TERMS ? src + (long)(row0 + r) * ld + (k0 + k) : src + (long)(k0 + k) * ld + (row0 + r);
    copy_async<VEC>(slab + at, left > 0 ? from : src, 4 * left);
  }
}

// fetch reads terms 4q..4q+3 of rows row..row+3 of slab wk: out[s] is row+s. row is a multiple of 4.
template <bool TERMS, int ROWS> __device__ __forceinline__ void fetch(f4 (&out)[4], const float *slab, int wk, int row, int q) {
  if (TERMS) {
#pragma unroll
    for (int s = 0; s < 4; s++) out[s] = load4(slab + wk * slabFloats(true, ROWS) + (row + s) * 20 + 4 * q);
    return;
  }
#pragma unroll
  for (int i = 0; i < 4; i++) {
    f4 v = load4(slab + (wk * 16 + 4 * q + i) * ROWS + (row ^ (8 * q)));
    out[0][i] = v.x;
    out[1][i] = v.y;
    out[2][i] = v.z;
    out[3][i] = v.w;
  }
}

// patch adds to a thread's 4×8 patch the products of one slab: a[s] and b[j] are what fetch gave.
template <int P> __device__ __forceinline__ void patch(float (&c)[4][8], const f4 (&a)[4], const f4 (&b)[4]) {
  if (P == TF32) {
    Tf32 ra[4][4], rb[4][4];
#pragma unroll
    for (int s = 0; s < 4; s++)
#pragma unroll
      for (int i = 0; i < 4; i++) ra[s][i] = tf32(a[s][i]), rb[s][i] = tf32(b[s][i]);
#pragma unroll
    for (int h = 0; h < 4; h += 2)
#pragma unroll
      for (int s = 0; s < 4; s += 2)
#pragma unroll
        for (int j = 0; j < 4; j++)
          mma_tf32(c[s][j], c[s][j + 4], c[s + 1][j], c[s + 1][j + 4], ra[s][h], ra[s + 1][h], ra[s][h + 1], ra[s + 1][h + 1], rb[j][h],
                   rb[j][h + 1]);
  } else {
    Bf16x2 ra[4][2], rb[4][2];
#pragma unroll
    for (int s = 0; s < 4; s++) {
      ra[s][0] = bf16x2(a[s].x, a[s].y), ra[s][1] = bf16x2(a[s].z, a[s].w);
      rb[s][0] = bf16x2(b[s].x, b[s].y), rb[s][1] = bf16x2(b[s].z, b[s].w);
    }
#pragma unroll
    for (int s = 0; s < 4; s += 2)
#pragma unroll
      for (int j = 0; j < 4; j++)
        mma_bf16(c[s][j], c[s][j + 4], c[s + 1][j], c[s + 1][j + 4], ra[s][0], ra[s + 1][0], ra[s][1], ra[s + 1][1], rb[j][0], rb[j][1]);
  }
}

// product is the whole block: loads run STAGES-1 ahead of the arithmetic, one barrier a stage.
template <int P, bool ATERMS, bool BTERMS, class S, int VEC> __device__ __forceinline__ void product(const Product &p) {
  extern __shared__ float smem[] __attribute__((aligned(16)));
  constexpr int aFloats = S::WK * slabFloats(ATERMS, S::BM), bFloats = S::WK * slabFloats(BTERMS, S::BN), stage = aFloats + bFloats;
  const int lane = threadIdx_x % 32, warp = threadIdx_x / 32, g = lane / 4, t = lane % 4;
  const int wk = warp / (S::WM * S::WN), wn = warp / S::WM % S::WN, wm = warp % S::WM;
  const int across = (p.n + S::BN - 1) / S::BN;
  const int m0 = (int)blockIdx_x / across * S::BM, n0 = (int)blockIdx_x % across * S::BN;
  const int rounds = (p.to - p.from + S::terms - 1) / S::terms;
  const bool summing = p.sums && n0 == 0 && wn == 0;

  auto begin = [&](int round) {
    if (round < rounds) {
      float *to = smem + round % S::STAGES * stage;
      int k0 = p.from + round * S::terms;
      bring<ATERMS, S::BM, S::WK, S::threads, VEC>(to, p.a, p.lda, m0, p.m, k0, p.to);
      bring<BTERMS, S::BN, S::WK, S::threads, VEC>(to + aFloats, p.b, p.ldb, n0, p.n, k0, p.to);
    }
    commit_copies();
  };
  float acc[S::MG][S::NG][4][8] = {}, rowSum[S::MG][4] = {};
  for (int i = 0; i < S::STAGES - 1; i++) begin(i);
  for (int round = 0; round < rounds; round++) {
    wait_copies<S::STAGES - 2>();
    sync(); // this round's data are everyone's, and the stage of the round before is free
    begin(round + S::STAGES - 1);
    const float *a = smem + round % S::STAGES * stage, *b = a + aFloats;
    const int row = wm * S::MG * 32, col = wn * S::NG * 32;
    if (P == FP32) {
#pragma unroll
      for (int q = 0; q < 4; q++)
#pragma unroll
        for (int x = 0; x < S::MG; x++) {
          f4 fa[4];
          fetch<ATERMS, S::BM>(fa, a, wk, row + 32 * x + 4 * g, q);
#pragma unroll
          for (int s = 0; s < 4; s++)
            if (summing) rowSum[x][s] += sum4(fa[s]);
#pragma unroll
          for (int y = 0; y < 2 * S::NG; y++) {
            f4 fb[4];
            fetch<BTERMS, S::BN>(fb, b, wk, col + y / 2 * 32 + 8 * t + y % 2 * 4, q);
#pragma unroll
            for (int s = 0; s < 4; s++)
#pragma unroll
              for (int j = 0; j < 4; j++)
#pragma unroll
                for (int i = 0; i < 4; i++) acc[x][y / 2][s][y % 2 * 4 + j] += fa[s][i] * fb[j][i];
          }
        }
    } else {
      f4 fb[S::NG][4];
#pragma unroll
      for (int y = 0; y < S::NG; y++) fetch<BTERMS, S::BN>(fb[y], b, wk, col + 32 * y + 4 * g, t);
#pragma unroll
      for (int x = 0; x < S::MG; x++) {
        f4 fa[4];
        fetch<ATERMS, S::BM>(fa, a, wk, row + 32 * x + 4 * g, t);
#pragma unroll
        for (int s = 0; s < 4; s++)
          if (summing) rowSum[x][s] += sum4(fa[s]);
#pragma unroll
        for (int y = 0; y < S::NG; y++) patch<P>(acc[x][y], fa, fb[y]);
      }
    }
  }

  // In tensor-core precisions the four threads of a row saw different terms.
  if (P != FP32 && summing)
#pragma unroll
    for (int x = 0; x < S::MG; x++)
#pragma unroll
      for (int s = 0; s < 4; s++) {
        rowSum[x][s] += shfl_xor(rowSum[x][s], 1);
        rowSum[x][s] += shfl_xor(rowSum[x][s], 2);
      }

  // Warps that took other terms hand over what they have, and the first adds it in their order.
  if (S::WK > 1) {
    constexpr int patches = S::MG * S::NG * 32, pile = S::WM * S::WN * (patches + S::MG * 4) * 32;
    wait_copies<0>();
    sync();
    float *mine = smem + (wn * S::WM + wm) * (patches + S::MG * 4) * 32 + lane;
    if (wk > 0) {
      float *at = mine + (wk - 1) * pile;
#pragma unroll
      for (int e = 0; e < patches; e++) at[e * 32] = acc[e / 32 / S::NG][e / 32 % S::NG][e / 8 % 4][e % 8];
#pragma unroll
      for (int e = 0; e < S::MG * 4; e++) at[(patches + e) * 32] = rowSum[e / 4][e % 4];
    }
    sync();
    if (wk > 0) return;
#pragma unroll
    for (int w = 0; w < S::WK - 1; w++) {
      const float *at = mine + w * pile;
#pragma unroll
      for (int e = 0; e < patches; e++) acc[e / 32 / S::NG][e / 32 % S::NG][e / 8 % 4][e % 8] += at[e * 32];
#pragma unroll
      for (int e = 0; e < S::MG * 4; e++) rowSum[e / 4][e % 4] += at[(patches + e) * 32];
    }
  }

#pragma unroll
  for (int x = 0; x < S::MG; x++)
#pragma unroll
    for (int s = 0; s < 4; s++) {
      int m = m0 + (wm * S::MG + x) * 32 + 4 * g + s;
      if (m >= p.m) continue;
      if (summing && t == 0) p.sums[m] = p.addSums ? p.sums[m] + rowSum[x][s] : rowSum[x][s];
#pragma unroll
      for (int y = 0; y < S::NG; y++)
#pragma unroll
        for (int h = 0; h < 8; h += 4) {
          int n = n0 + (wn * S::NG + y) * 32 + 8 * t + h;
          const float(&from)[8] = acc[x][y][s];
          f4 v = {from[h], from[h + 1], from[h + 2], from[h + 3]};
          if (VEC == 4 && n < p.n) {
            if (p.bias) v += load4(p.bias + n);
            if (p.add) v += load4(p.add + (long)m * p.ldadd + n);
            store4(p.c + (long)m * p.ldc + n, v);
          }
          if (VEC == 1)
#pragma unroll
            for (int i = 0; i < 4; i++)
              if (n + i < p.n) {
                float e = v[i];
                if (p.bias) e += p.bias[n + i];
                if (p.add) e += p.add[(long)m * p.ldadd + n + i];
                p.c[(long)m * p.ldc + n + i] = e;
              }
        }
    }
}

// Y[m,n] = Σ_k X[m,k]·W[n,k] + bias[n] + residual[m,n]
template <int P, class S, int VEC>
__device__ __forceinline__ void linear(float *y, const float *x, const float *w, const float *bias, const float *residual, int m, int n, int k,
                                       int ldy, int ldx, int ldr) {
  product<P, true, true, S, VEC>(Product{y, x, w, bias, residual, nullptr, false, m, n, 0, k, ldy, ldx, k, ldr});
}

// DX[m,k] = Σ_n DY[m,n]·W[n,k] + add[m,k]; add is DX or null
template <int P, class S, int VEC>
__device__ __forceinline__ void linear_dx(float *dx, const float *dy, const float *w, const float *add, int m, int n, int k, int lddx, int lddy) {
  product<P, true, false, S, VEC>(Product{dx, dy, w, nullptr, add, nullptr, false, m, k, 0, n, lddx, lddy, k, lddx});
}

// For lane l of the gradient, with rows r in [l·chunk, (l+1)·chunk):
// DW_l[n,k] (+)= Σ_r DY[r,n]·X[r,k];  dbias_l[n] (+)= Σ_r DY[r,n]
template <int P, class S, int VEC>
__device__ __forceinline__ void linear_dw(float *dw, float *dbias, const float *dy, const float *x, int rows, int n, int k, int lddy, int ldx,
                                          int chunk, int laneSize, u32 addW, u32 addBias) {
  long lane = (long)blockIdx_y * laneSize;
  int from = (int)blockIdx_y * chunk, to = from + chunk < rows ? from + chunk : rows;
  dw += lane;
  if (dbias) dbias += lane;
  product<P, false, false, S, VEC>(
      Product{dw, dy, x, nullptr, addW ? dw : nullptr, dbias, addBias != 0, n, k, from < to ? from : to, to, k, lddy, ldx, k});
}

#define LINEAR_SET(P, NAME, S, VEC, BLOCKS)                                                                                                        \
  KERNEL __launch_bounds__(S::threads, BLOCKS) linear_##NAME(float *y, const float *x, const float *w, const float *bias, const float *residual,   \
                                                            int m, int n, int k, int ldy, int ldx, int ldr) {                                      \
    linear<P, S, VEC>(y, x, w, bias, residual, m, n, k, ldy, ldx, ldr);                                                                            \
  }                                                                                                                                                \
  KERNEL __launch_bounds__(S::threads, BLOCKS) linear_dx_##NAME(float *dx, const float *dy, const float *w, const float *add, int m, int n, int k, \
                                                               int lddx, int lddy) {                                                               \
    linear_dx<P, S, VEC>(dx, dy, w, add, m, n, k, lddx, lddy);                                                                                     \
  }                                                                                                                                                \
  KERNEL __launch_bounds__(S::threads, BLOCKS) linear_dw_##NAME(float *dw, float *dbias, const float *dy, const float *x, int rows, int n, int k,  \
                                                               int lddy, int ldx, int chunk, int laneSize, u32 addW, u32 addBias) {                \
    linear_dw<P, S, VEC>(dw, dbias, dy, x, rows, n, k, lddy, ldx, chunk, laneSize, addW, addBias);                                                 \
  }

#define LINEAR(P)                       \
  LINEAR_SET(P, large, Large, 4, 2)     \
  LINEAR_SET(P, medium, Medium, 4, 2)   \
  LINEAR_SET(P, small, Small, 4, 3)     \
  LINEAR_SET(P, odd, Small, 1, 3)
