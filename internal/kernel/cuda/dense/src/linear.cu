// Matrix products C[M,N] (+)= A·B, one source for three precisions and three pairs of layouts.
// PRECISION makes a module of each (scripts/ptx), so that a run loads one: FP32 by fused
// multiply-adds, TF32 and BF16 by tensor cores on rounded operands.
//
// What a reader could break: who owns which element. A warp works on blocks of 32×32; in each of
// them thread (g, t) = (lane/4, lane%4) owns rows 4g..4g+3 and columns 4t..4t+3 and 16+4t..16+4t+3,
// in every precision. Tensor cores number rows, columns and terms otherwise, but any order does as
// long as both operands keep to it:
//
//   row g of half s%2 of tile s/2   is row 4g+s of the block              s = 0..3
//   column g of tile j              is column 16·(g%2) + 4·(g/2) + j      j = 0..3
//   terms of thread t               are terms 4t..4t+3 of 16
//
// so a thread reads four terms of a row at once, and the four threads of a row write 64 bytes in
// one piece.
//
// A slab of an operand is 16 terms of its ROWS rows in shared memory, laid out as global memory has
// it:
//   terms adjacent: row r, term k at 16·(r ^ (r/4 + r/16)%2) + k
//   rows adjacent:  row r, term k at k·ROWS + (r ^ SWIZZLE·(k/4%4)), SWIZZLE 8 for A and 4 for B
// where the exclusive or puts the 16-byte reads of any eight neighbouring lanes into different
// banks.
#include "ptx.cuh"

enum Precision { FP32, TF32, BF16 };

// The shape of a block's work: BM×BN of C; WM×WN×WK warps over rows, columns and slabs of terms,
// DEPTH slabs a warp in a stage; STAGES-1 stages are loaded ahead. Where warps share the terms (WK
// > 1) a block has one tile, else it may have many.
template <int BM_, int BN_, int WM_, int WN_, int WK_, int DEPTH_, int STAGES_> struct Shape {
  static constexpr int BM = BM_, BN = BN_, WM = WM_, WN = WN_, WK = WK_, DEPTH = DEPTH_, STAGES = STAGES_;
  static constexpr int threads = 32 * WM * WN * WK, slabs = WK * DEPTH, terms = 16 * slabs;
  static constexpr int MG = BM / WM / 32; // 32×32 blocks of a warp, one below the other
  static_assert(BN == 32 * WN && (WK == 1 || (MG == 1 && 4 % WK == 0)), "warps that share terms share out rows of one block");
};
typedef Shape<128, 128, 2, 4, 1, 2, 3> Large;
typedef Shape<64, 64, 2, 2, 2, 2, 3> Medium;
typedef Shape<32, 32, 1, 1, 4, 2, 3> Small; // the warps share the terms: many blocks, little wait

// Product is one block's job. A row r, term k is a[r·lda + k] or, rows adjacent, a[k·lda + r]; B
// likewise by column.
struct Product {
  float *c;
  const float *a, *b;
  const float *bias, *add; // added to C where not null; add may be c
  float *sums;             // row sums of A, where not null and the block is in the first column
  bool addSums;
  int m, n, from, to; // rows, columns, range of terms
  int ldc, lda, ldb, ldadd;
  // where not null, C is the gradient of a gated unit's input g, of twice as many columns, from
  // that of its result, which is A·B
  const float *gate;
};

// Where row r of a slab begins, terms adjacent.
__device__ __forceinline__ int row_at(int r) { return 16 * (r ^ ((r >> 2 ^ r >> 4) & 1)); }

// bring starts the copy of ROWS rows × SLABS slabs of terms from k0 on; what lies outside the
// matrix is zeros.
template <bool TERMS, int ROWS, int SWIZZLE, int SLABS, int THREADS, int VEC>
__device__ __forceinline__ void bring(float *slab, const float *src, int ld, int row0, int rows, int k0, int to) {
  constexpr int across = (TERMS ? 16 * SLABS : ROWS) / VEC, step = THREADS / across, pieces = ROWS * 16 * SLABS / VEC / THREADS;
  static_assert(THREADS % across == 0, "a thread's pieces lie one below the other");
  const int x = threadIdx_x % across * VEC, y0 = threadIdx_x / across, left = TERMS ? row0 : k0, top = TERMS ? k0 : row0;
  const bool inside = top + x < (TERMS ? to : rows); // a vector is inside as a whole or not at all
  const float *from = src + (long)(left + y0) * ld + top + x;
  auto place = [&](int y) { return TERMS ? x / 16 * ROWS * 16 + row_at(y) + x % 16 : y * ROWS + (x ^ (SWIZZLE * (y / 4 % 4))); };
  // the exclusive or is the same for all of a thread's pieces
  constexpr bool regular = step % (TERMS ? 32 : 16) == 0;
#pragma unroll
  for (int i = 0; i < pieces; i++) {
    int y = y0 + i * step, at = regular ? place(y0) + i * step * (TERMS ? 16 : ROWS) : place(y);
    copy_async<VEC>(slab + at, from, inside && left + y < (TERMS ? rows : to) ? 4 * VEC : 0);
    from += (long)step * ld;
  }
}

// fetch reads terms 4q..4q+3 of rows row..row+3 of a slab: out[s] is row+s. row is a multiple of 4.
template <bool TERMS, int ROWS, int SWIZZLE> __device__ __forceinline__ void fetch(f4 (&out)[4], const float *slab, int row, int q) {
  if (TERMS) {
#pragma unroll
    for (int s = 0; s < 4; s++) out[s] = load4(slab + row_at(row + s) + 4 * q);
    return;
  }
#pragma unroll
  for (int i = 0; i < 4; i++) {
    f4 v = load4(slab + (4 * q + i) * ROWS + (row ^ (SWIZZLE * q)));
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

// product is the whole block: loads run STAGES-1 stages ahead of the arithmetic, into the next tile
// while one is written.
template <int P, bool ATERMS, bool BTERMS, class S, int VEC> __device__ __forceinline__ void product(const Product &p) {
  extern __shared__ float smem[] __attribute__((aligned(16)));
  constexpr int aFloats = S::terms * S::BM, stage = aFloats + S::terms * S::BN, W = S::WM * S::WN, OWN = 4 / S::WK, unrolled = P == FP32 || S::WK == 1 ? 1 : S::DEPTH;
  const int lane = threadIdx_x % 32, warp = threadIdx_x / 32, g = lane / 4, t = lane % 4;
  const int wk = warp / W, wn = warp / S::WM % S::WN, wm = warp % S::WM;
  const int across = (p.n + S::BN - 1) / S::BN, tiles = across * ((p.m + S::BM - 1) / S::BM);
  const int terms = p.to - p.from, rounds = terms > 0 ? (terms + S::terms - 1) / S::terms : 1;

  int nextTile = blockIdx_x, nextM = nextTile / across * S::BM, nextN = nextTile % across * S::BN, nextRound = 0, nextStage = 0;
  auto begin = [&] {
    if (nextTile < tiles) {
      float *to = smem + nextStage * stage;
      int k0 = p.from + nextRound * S::terms;
      bring<ATERMS, S::BM, 8, S::slabs, S::threads, VEC>(to, p.a, p.lda, nextM, p.m, k0, p.to);
      bring<BTERMS, S::BN, 4, S::slabs, S::threads, VEC>(to + aFloats, p.b, p.ldb, nextN, p.n, k0, p.to);
      nextStage = nextStage + 1 < S::STAGES ? nextStage + 1 : 0;
      if (++nextRound == rounds) {
        nextRound = 0;
        nextTile = S::WK > 1 ? tiles : nextTile + (int)gridDim_x;
        if (S::WK == 1) nextM = nextTile / across * S::BM, nextN = nextTile % across * S::BN;
      }
    }
    commit_copies();
  };

  // the stage being worked on; rounds below 0 only load, so that the code of a load is there once
  int at = 0, first = 1 - S::STAGES;
  for (int tile = blockIdx_x; tile < tiles; tile += gridDim_x) {
    const int m0 = tile / across * S::BM, n0 = tile % across * S::BN;
    const int row = wm * S::MG * 32, col = wn * 32;
    const bool summing = p.sums && n0 == 0 && wn == 0;

    // What is added to C is read all at once, before the arithmetic where there are registers for
    // it.
    // gated: p.gate may be set
    constexpr bool early = S::WK > 1, gated = ATERMS && !BTERMS && VEC == 4 && S::WK == 4;
    f4 bias[2] = {}, add[OWN][2] = {}, gates[gated ? OWN : 1][2][2];
    auto read_added = [&](int x) {
#pragma unroll
      for (int h = 0; h < 2; h++) {
        int n = n0 + col + 16 * h + 4 * t;
        if (VEC == 1 || n >= p.n) continue;
        if (p.bias) bias[h] = load4(p.bias + n);
#pragma unroll
        for (int s = 0; s < OWN; s++) {
          int m = m0 + row + 32 * x + 4 * g + wk * OWN + s;
          if (p.add && m < p.m) add[s][h] = load4(p.add + (long)m * p.ldadd + n);
          if (gated && p.gate && m < p.m)
#pragma unroll
            for (int half = 0; half < 2; half++) gates[s][h][half] = load4(p.gate + (long)m * 2 * p.n + half * p.n + n);
        }
      }
    };
    if (early) read_added(0);

    float acc[S::MG][4][8] = {}, rowSum[S::MG][4] = {};
#pragma unroll 1
    for (int round = first; round < rounds; round++) {
      if (round >= 0) {
        wait_copies<S::STAGES - 2>();
        sync(); // this round's data are everyone's, and the stage of the round before is free
      }
      begin();
      if (round < 0) continue;
      const float *stageA = smem + at * stage, *stageB = stageA + aFloats;
      at = at + 1 < S::STAGES ? at + 1 : 0;
#pragma unroll unrolled
      for (int depth = 0; depth < S::DEPTH; depth++) {
        const float *a = stageA + (depth * S::WK + wk) * 16 * S::BM, *b = stageB + (depth * S::WK + wk) * 16 * S::BN;
        if (P == FP32) {
#pragma unroll
          for (int q = 0; q < 4; q++)
#pragma unroll
            for (int x = 0; x < S::MG; x++) {
              f4 fa[4];
              fetch<ATERMS, S::BM, 8>(fa, a, row + 32 * x + 4 * g, q);
#pragma unroll
              for (int s = 0; s < 4; s++)
                if (summing) rowSum[x][s] += sum4(fa[s]);
#pragma unroll
              for (int y = 0; y < 2; y++) {
                f4 fb[4];
                fetch<BTERMS, S::BN, 4>(fb, b, col + 16 * y + 4 * t, q);
#pragma unroll
                for (int s = 0; s < 4; s++)
#pragma unroll
                  for (int j = 0; j < 4; j++)
#pragma unroll
                    for (int i = 0; i < 4; i++) acc[x][s][4 * y + j] += fa[s][i] * fb[j][i];
              }
            }
        } else {
          f4 fb[4];
          fetch<BTERMS, S::BN, 4>(fb, b, col + g % 2 * 16 + g / 2 * 4, t);
#pragma unroll
          for (int x = 0; x < S::MG; x++) {
            f4 fa[4];
            fetch<ATERMS, S::BM, 8>(fa, a, row + 32 * x + 4 * g, t);
#pragma unroll
            for (int s = 0; s < 4; s++)
              if (summing) rowSum[x][s] += sum4(fa[s]);
            patch<P>(acc[x], fa, fb);
          }
        }
      }
    }

    first = 0;

    // In tensor-core precisions the four threads of a row saw different terms.
    if (P != FP32 && summing)
#pragma unroll
      for (int x = 0; x < S::MG; x++)
#pragma unroll
        for (int s = 0; s < 4; s++) {
          rowSum[x][s] += shfl_xor(rowSum[x][s], 1);
          rowSum[x][s] += shfl_xor(rowSum[x][s], 2);
        }

    // Warps that took different terms of a block pile up what they have; warp wk adds rows wk·OWN..
    // of each patch, in the warps' order, into acc[0][0..OWN-1].
    if (S::WK > 1) {
      // floats of a pile; where row sums begin
      constexpr int pile = W * 8 * 128, sums = S::WK * pile;
      float *mine = smem + (wn * S::WM + wm) * 8 * 128 + 4 * lane, *rowSums = smem + sums + wm * 32;
      wait_copies<0>();
      sync();
#pragma unroll
      for (int e = 0; e < 8; e++) {
        const float(&from)[8] = acc[0][e / 2];
        store4(mine + wk * pile + e * 128, f4{from[e % 2 * 4], from[e % 2 * 4 + 1], from[e % 2 * 4 + 2], from[e % 2 * 4 + 3]});
      }
      if (summing && t == 0) store4(rowSums + wk * S::BM + 4 * g, f4{rowSum[0][0], rowSum[0][1], rowSum[0][2], rowSum[0][3]});
      sync();
#pragma unroll
      for (int e = 0; e < 2 * OWN; e++) {
        f4 v = {0, 0, 0, 0};
#pragma unroll
        for (int w = 0; w < S::WK; w++) v += load4(mine + w * pile + (wk * 2 * OWN + e) * 128);
#pragma unroll
        for (int i = 0; i < 4; i++) acc[0][e / 2][e % 2 * 4 + i] = v[i];
      }
      if (summing)
#pragma unroll
        for (int s = 0; s < OWN; s++) {
          rowSum[0][s] = 0;
#pragma unroll
          for (int w = 0; w < S::WK; w++) rowSum[0][s] += rowSums[w * S::BM + 4 * g + wk * OWN + s];
        }
    }

#pragma unroll
    for (int x = 0; x < S::MG; x++) {
      if (!early) read_added(x);
#pragma unroll
      for (int s = 0; s < OWN; s++) {
        int m = m0 + row + 32 * x + 4 * g + wk * OWN + s;
        if (m >= p.m) continue;
        if (summing && t == 0) p.sums[m] = p.addSums ? p.sums[m] + rowSum[x][s] : rowSum[x][s];
#pragma unroll
        for (int h = 0; h < 2; h++) {
          int n = n0 + col + 16 * h + 4 * t;
          const float(&from)[8] = acc[x][s];
          f4 v = {from[4 * h], from[4 * h + 1], from[4 * h + 2], from[4 * h + 3]};
          if (gated && p.gate) {
            if (n >= p.n) continue;
            const f4 a = gates[s][h][0], b = gates[s][h][1], g = {sigmoid_(b.x), sigmoid_(b.y), sigmoid_(b.z), sigmoid_(b.w)};
            store4(p.c + (long)m * p.ldc + n, v * g);
            store4(p.c + (long)m * p.ldc + p.n + n, v * a * g * (1.0f - g));
          } else if (VEC == 4 && n < p.n) {
            store4(p.c + (long)m * p.ldc + n, v + bias[h] + add[s][h]);
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
    if (S::WK > 1) return; // the piles lie where another tile's terms would
  }
}

// Y[m,n] = Σ_k X[m,k]·W[n,k] + bias[n] + residual[m,n]
template <int P, class S, int VEC>
__device__ __forceinline__ void linear(float *y, const float *x, const float *w, const float *bias, const float *residual, int m, int n, int k,
                                       int ldy, int ldx, int ldr) {
  product<P, true, true, S, VEC>(Product{y, x, w, bias, residual, nullptr, false, m, n, 0, k, ldy, ldx, k, ldr, nullptr});
}

// DX[m,k] = Σ_n DY[m,n]·W[n,k] + add[m,k]; add is DX or null. With gate = g of a gated unit whose
// result the layer reads: with s = sigmoid(g[m,K+k]) and v the sum, DX[m,k] = v·s and DX[m,K+k] =
// v·g[m,k]·s·(1-s)
template <int P, class S, int VEC>
__device__ __forceinline__ void linear_dx(float *dx, const float *dy, const float *w, const float *add, int m, int n, int k, int lddx, int lddy, const float *gate) {
  product<P, true, false, S, VEC>(Product{dx, dy, w, nullptr, add, nullptr, false, m, k, 0, n, lddx, lddy, k, lddx, gate});
}

// For gradient lane l, with rows r in [l·chunk, (l+1)·chunk):
// DW_l[n,k] (+)= Σ_r DY[r,n]·X[r,k];  dbias_l[n] (+)= Σ_r DY[r,n]
template <int P, class S, int VEC>
__device__ __forceinline__ void linear_dw(float *dw, float *dbias, const float *dy, const float *x, int rows, int n, int k, int lddy, int ldx,
                                          int chunk, int gradLaneSize, u32 addW, u32 addBias) {
  long gradLane = (long)blockIdx_y * gradLaneSize;
  int from = (int)blockIdx_y * chunk, to = from + chunk < rows ? from + chunk : rows;
  dw += gradLane;
  if (dbias) dbias += gradLane;
  product<P, false, false, S, VEC>(
      Product{dw, dy, x, nullptr, addW ? dw : nullptr, dbias, addBias != 0, n, k, from < to ? from : to, to, k, lddy, ldx, k, nullptr});
}

#define LINEAR_SET(P, NAME, S, VEC, BLOCKS)                                                                                                        \
  KERNEL __launch_bounds__(S::threads, BLOCKS) linear_##NAME(float *y, const float *x, const float *w, const float *bias, const float *residual,   \
                                                            int m, int n, int k, int ldy, int ldx, int ldr) {                                      \
    linear<P, S, VEC>(y, x, w, bias, residual, m, n, k, ldy, ldx, ldr);                                                                            \
  }                                                                                                                                                \
  KERNEL __launch_bounds__(S::threads, BLOCKS) linear_dx_##NAME(float *dx, const float *dy, const float *w, const float *add, int m, int n, int k, \
                                                               int lddx, int lddy, const float *gate) {                                            \
    linear_dx<P, S, VEC>(dx, dy, w, add, m, n, k, lddx, lddy, gate);                                                                               \
  }                                                                                                                                                \
  KERNEL __launch_bounds__(S::threads, BLOCKS) linear_dw_##NAME(float *dw, float *dbias, const float *dy, const float *x, int rows, int n, int k,  \
                                                               int lddy, int ldx, int chunk, int gradLaneSize, u32 addW, u32 addBias) {                \
    linear_dw<P, S, VEC>(dw, dbias, dy, x, rows, n, k, lddy, ldx, chunk, gradLaneSize, addW, addBias);                                                 \
  }

LINEAR_SET(PRECISION, large, Large, 4, 2)
LINEAR_SET(PRECISION, medium, Medium, 4, 2)
LINEAR_SET(PRECISION, small, Small, 4, 3)
LINEAR_SET(PRECISION, odd, Small, 1, 3)
