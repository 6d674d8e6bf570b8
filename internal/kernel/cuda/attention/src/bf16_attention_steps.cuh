// The steps of causal attention over bf16 and of its gradient that do not know where keys, values
// and sums lie: both for heads held whole in shared memory and for those streamed through it.
#pragma once
#include "bf16_attention.cuh"

constexpr float huge = 0x1p60f; // a row's sum above it goes over to a larger score

__device__ __forceinline__ int last(int row, int tokens) { return row < tokens ? row : tokens - 1; }

// scaled multiplies two bf16 numbers.
__device__ __forceinline__ u32 scaled(u32 v, float by) { return bf16x2(bf16_low(v) * by, bf16_high(v) * by); }

// Queries are 16 rows of q as left operands, and where the sequences of this lane's two rows
// begin.
template <int K> struct Queries {
  u32 q[K][4];
  int from[2];

  __device__ __forceinline__ void read(const Bf16 *head, const int *first, int tile, int tokens, int d, int hd) {
    const int g = threadIdx_x % 32 / 4, t = threadIdx_x % 4;
#pragma unroll
    for (int x = 0; x < 2; x++) {
      const int i = last(16 * tile + g + 8 * x, tokens);
      from[x] = first[i];
#pragma unroll
      for (int k = 0; k < 2 * K; k++) q[k / 2][k % 2 * 2 + x] = 8 * k < hd ? *(const u32 *)(head + (long)i * 3 * d + 8 * k + 2 * t) : 0;
    }
  }
};

// outside tells that n is below `from` or above `to`.
__device__ __forceinline__ bool outside(int n, int from, int to) { return (u32)(n - from) > (u32)(to - from); }

// scores are q·k for tile r and group J, minus infinity where the query does not see the key: `i`
// are this lane's queries, `from` where their sequences begin, `highest` where the tile's last
// does. TURNED: a lane's two columns are keys 16 apart, as turned_row has them.
template <int HD, bool TURNED>
__device__ __forceinline__ void scores(float (&s)[4][4], const u32 (&q)[HD / 16][4], const Tiles<HD> &keys, int r, int J, const int (&i)[2], const int (&from)[2],
                                       int highest) {
#pragma unroll
  for (int n = 0; n < 4; n++)
#pragma unroll
    for (int e = 0; e < 4; e++) s[n][e] = 0;
#pragma unroll
  for (int a = 0; a < 2; a++)
#pragma unroll
    for (int k = 0; k < HD / 16; k++) {
      u32 m[4];
      keys.right(m, 32 * J + 16 * a, k);
      multiply(s[2 * a], q[k], m[0], m[1]);
      multiply(s[2 * a + 1], q[k], m[2], m[3]);
    }
  if (J != r / 2 && 32 * J >= highest) return;
  const int j = opaque(32 * J + (TURNED ? 1 : 2) * (threadIdx_x % 4));
#pragma unroll
  for (int n = 0; n < 4; n++)
#pragma unroll
    for (int e = 0; e < 4; e++)
      if (outside((TURNED ? 4 * n + e % 2 * 16 : 8 * n + e % 2) + j, from[e / 2], i[e / 2])) s[n][e] = -__builtin_inff();
}

// largest raises what rows are relative to, which base has negative, to their largest scores.
__device__ __forceinline__ void largest(float (&base)[4], const float (&s)[4][4]) {
#pragma unroll
  for (int x = 0; x < 2; x++) {
    float most = -base[2 * x];
#pragma unroll
    for (int n = 0; n < 4; n++) most = larger(most, larger(s[n][2 * x], s[n][2 * x + 1]));
    most = larger(most, shfl_xor(most, 1));
    base[2 * x] = base[2 * x + 1] = -larger(most, shfl_xor(most, 2));
  }
}

// c[16×8] = from + a·b.
__device__ __forceinline__ void multiply(float (&c)[4], const float (&from)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
               : "=f"(c[0]), "=f"(c[1]), "=f"(c[2]), "=f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(from[0]), "f"(from[1]), "f"(from[2]), "f"(from[3]));
}

constexpr u32 ones = 0x3f803f80; // two ones in bf16

// powers puts 2^(s + base) into p, as left operands, and the rows' sums of them into part.
__device__ __forceinline__ void powers(float (&part)[4], u32 (&p)[2][4], float (&s)[4][4], const float (&base)[4]) {
#pragma unroll
  for (int n = 0; n < 4; n++)
#pragma unroll
    for (int e = 0; e < 4; e++) s[n][e] = ex2(s[n][e] + base[e]);
  left(p[0], s, 0), left(p[1], s, 1);
  const float zero[4] = {};
  multiply(part, zero, p[0], ones, ones);
  multiply(part, p[1], ones, ones);
}

// positive has two bf16 numbers that are not negative where the mask has bits 15 and 31, zeros
// elsewhere.
__device__ __forceinline__ u32 positive(u32 p, u32 mask) {
  u32 r;
  asm("{.reg .b32 t; lop3.b32 t, %1, %2, %3, 0xd2; fma.rn.relu.bf16x2 %0, t, %4, %3;}" : "=r"(r) : "r"(p), "r"(mask), "r"(0x80008000u), "r"(ones));
  return r;
}

// Dropped are the masks of a group, for columns as they lie in shared memory.
struct Dropped {
  u32 x[2];

  __device__ __forceinline__ void spread(u32 word, int half) {
    const int g = threadIdx_x % 32 / 4, t = threadIdx_x % 4;
#pragma unroll
    for (int row = 0; row < 2; row++) x[row] = (u32)shfl((int)word, half * 16 + g + 8 * row) * (8u >> t);
  }
  // drop zeroes what is dropped of register e of the left operand of columns 16·a on.
  __device__ __forceinline__ u32 drop(u32 p, int a, int e) const {
    const int n = 2 * a + e / 2;
    return positive(p, n == 3 ? x[e % 2] : x[e % 2] * (0x1000u >> 4 * n));
  }
};

// Attending is a warp with 16 queries, tile r, that goes over their keys from the last to the
// first, in pairs of groups of 32. Masks are those of a pair as they lie in memory.
//
// What a reader could break: its queries are q times scale·log2 e, rounded, here and in the
// gradient, so that scores are powers of two as they come. A row's products are relative to its
// largest score in the first group it takes, its own, which is finite, for every query sees
// itself. Pairs whose keys every query sees take the short way, `whole`, which looks at nothing:
// where a row's sum has become huge at the end, the rows begin again, carefully, pair by pair the
// long way. There a row whose sum becomes huge goes over to its largest score so far.
template <int HD, bool DROP, bool TURNED = false> struct Attending {
  static constexpr int K = HD / 16;
  u32 q[K][4];
  int r, i[2], from[2], lowest, highest;
  // Of rows g, g, g+8, g+8: sums, and what they are relative to, negative.
  float o[2 * K][4], sum[4], base[4];

  __device__ __forceinline__ Attending(const Queries<K> &own, int r, int tokens, float unit2) : r(r) {
    const int g = threadIdx_x % 32 / 4;
#pragma unroll
    for (int k = 0; k < K; k++)
#pragma unroll
      for (int e = 0; e < 4; e++) q[k][e] = scaled(own.q[k][e], unit2);
#pragma unroll
    for (int x = 0; x < 2; x++) from[x] = own.from[x], i[x] = last(16 * r + g + 8 * x, tokens);
    lowest = shfl(from[0], 0) / 32, highest = shfl(from[1], 31);
    begin();
  }
  __device__ __forceinline__ void begin() {
#pragma unroll
    for (int n = 0; n < 2 * K; n++)
#pragma unroll
      for (int e = 0; e < 4; e++) o[n][e] = 0;
#pragma unroll
    for (int e = 0; e < 4; e++) sum[e] = 0, base[e] = __builtin_inff();
  }
  // plainly has scores relative to zero; steep tells whether sums have become too large or too
  // small for that, so that the rows have to begin again.
  __device__ __forceinline__ void plainly() { base[0] = base[1] = base[2] = base[3] = 0; }
  __device__ __forceinline__ bool steep() const {
    return !(larger(sum[0], sum[2]) < huge && -larger(-sum[0], -sum[2]) > 1 / huge);
  }
  // grown tells whether the rows have to begin again.
  __device__ __forceinline__ bool grown() const { return !(larger(sum[0], sum[2]) < huge); }

  // Spread are the masks of a group: x[row][h] has in the upper bit of byte n that of column 8n +
  // 2t + h.
  struct Spread {
    u32 x[2][2];
    __device__ __forceinline__ Spread(u32 word, int J) {
      const int g = threadIdx_x % 32 / 4, t = threadIdx_x % 4;
#pragma unroll
      for (int row = 0; row < 2; row++) {
        const u32 w = (u32)shfl((int)word, J % 2 * 16 + g + 8 * row);
        x[row][0] = w << (7 - 2 * t), x[row][1] = w << (6 - 2 * t);
      }
    }
    __device__ __forceinline__ void drop(u32 (&p)[4], int a) const {
#pragma unroll
      for (int e = 0; e < 4; e++) p[e] &= upper_bits(x[e % 2][0], x[e % 2][1], 2 * a + e / 2);
    }
  };

  // add adds probabilities, as `left` makes them, times 16 values from `row` on.
  __device__ __forceinline__ void add(const u32 (&p)[4], const Tiles<HD> &values, int row) {
#pragma unroll
    for (int k = 0; k < K; k++) {
      u32 m[4];
      values.turned(m, row, k);
      multiply(o[2 * k], p, m[0], m[1]);
      multiply(o[2 * k + 1], p, m[2], m[3]);
    }
  }

  // whole takes pair P, which every query sees, with next(n) between its powers, for odd n.
  template <class NEXT> __device__ __forceinline__ void whole(const Tiles<HD> &keys, const Tiles<HD> &values, u32 word, int P, NEXT &&next) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
      u32 p[2][4];
#pragma unroll
      for (int a = 0; a < 2; a++) {
        float s[2][4];
#pragma unroll
        for (int k = 0; k < K; k++) {
          u32 m[4];
          keys.right(m, 64 * P + 32 * half + 16 * a, k);
          if (k == 0) multiply(s[0], base, q[k], m[0], m[1]), multiply(s[1], base, q[k], m[2], m[3]);
          else multiply(s[0], q[k], m[0], m[1]), multiply(s[1], q[k], m[2], m[3]);
        }
#pragma unroll
        for (int n = 0; n < 2; n++)
#pragma unroll
          for (int e = 0; e < 4; e++) {
            asm volatile("ex2.approx.ftz.f32 %0, %1;" : "=f"(s[n][e]) : "f"(s[n][e]));
            if (e % 2) next(16 * half + 8 * a + 4 * n + e);
          }
        p[a][0] = bf16x2(s[0][0], s[0][1]), p[a][1] = bf16x2(s[0][2], s[0][3]), p[a][2] = bf16x2(s[1][0], s[1][1]), p[a][3] = bf16x2(s[1][2], s[1][3]);
        multiply(sum, p[a], ones, ones);
      }
      if (DROP) {
        const Spread spread(word, half);
        spread.drop(p[0], 0), spread.drop(p[1], 1);
      }
      add(p[0], values, 64 * P + 32 * half), add(p[1], values, 64 * P + 32 * half + 16);
    }
  }

  // one takes group J.
  __device__ __forceinline__ void one(const Tiles<HD> &keys, const Tiles<HD> &values, u32 word, int J) {
    float s[4][4], part[4];
    u32 p[2][4];
    scores<HD, TURNED>(s, q, keys, r, J, i, from, highest);
    if (J == r / 2) largest(base, s);
    powers(part, p, s, base);
    if (ballot(larger(part[0], part[2]) > huge)) {
      const float was[2] = {base[0], base[2]};
      scores<HD, TURNED>(s, q, keys, r, J, i, from, highest);
      largest(base, s);
      powers(part, p, s, base);
#pragma unroll
      for (int x = 0; x < 2; x++) {
        const float shrink = ex2(base[2 * x] - was[x]);
        sum[2 * x] *= shrink, sum[2 * x + 1] *= shrink;
#pragma unroll
        for (int n = 0; n < 2 * K; n++) o[n][2 * x] *= shrink, o[n][2 * x + 1] *= shrink;
      }
    }
#pragma unroll
    for (int e = 0; e < 4; e++) sum[e] += part[e];
    if (DROP) {
      if constexpr (TURNED) {
        Dropped masks;
        masks.spread(word, J % 2);
#pragma unroll
        for (int e = 0; e < 8; e++) p[e / 4][e % 4] = masks.drop(p[e / 4][e % 4], e / 4, e % 4);
      } else {
        const Spread spread(word, J);
#pragma unroll
        for (int a = 0; a < 2; a++) spread.drop(p[a], a);
      }
    }
#pragma unroll
    for (int a = 0; a < 2; a++) add(p[a], values, 32 * J + 16 * a);
  }

  // sees tells that every query sees all keys of pairs from..to.
  __device__ __forceinline__ bool sees(int from, int to) const { return 2 * to + 1 < r / 2 && 64 * from >= highest; }

  // pair takes pair P.
  __device__ __forceinline__ void pair(const Tiles<HD> &keys, const Tiles<HD> &values, u32 word, int P, bool careful) {
    if (sees(P, P) && !careful) return whole(keys, values, word, P, [](int) {});
#pragma unroll 1
    for (int J = least(r / 2, 2 * P + 1); J >= 2 * P && J >= lowest; J--) one(keys, values, word, J);
  }

  // write leaves the rows' results, y and logSum those of the instance's head.
  __device__ __forceinline__ void write(Bf16 *y, float *logSum, float keepScale, int tokens, int d, int hd) const {
    const int g = threadIdx_x % 32 / 4, t = threadIdx_x % 4;
#pragma unroll
    for (int x = 0; x < 2; x++) {
      const int row = 16 * r + g + 8 * x;
      const float total = sum[2 * x], inverse = keepScale * rcp(total);
      if (row >= tokens) continue;
      if (t == 0) logSum[row] = (lg2(total) - base[2 * x]) * LN2;
#pragma unroll
      for (int n = 0; n < 2 * K; n++)
        if (8 * n < hd) *(u32 *)(y + (long)row * d + 8 * n + 2 * t) = bf16x2(o[n][2 * x] * inverse, o[n][2 * x + 1] * inverse);
    }
  }
};

__device__ __forceinline__ float dot2(u32 a, u32 b) { return bf16_low(a) * bf16_low(b) + bf16_high(a) * bf16_high(b); }

// same_bits is c[16×8] = a·b in fp16: c0 is row g, columns 2t and 2t+1, c1 row g+8.
__device__ __forceinline__ void same_bits(u32 &c0, u32 &c1, const u32 (&a)[4], u32 b0, u32 b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%8,%8};"
               : "=r"(c0), "=r"(c1)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "r"(0));
}

// turn gives a result's 16 columns from 16·a on as the left operand of a product over its rows: a
// tensor core multiplies them by the unit matrix, with the operand's columns read as rows. It
// takes their bits for fp16 numbers, which are finite while |x| < 2^121, and so gives them back
// packed and as they were. m is what `left` made of them.
__device__ __forceinline__ void turn(u32 (&out)[4], const u32 (&m)[4], const u32 (&one)[4]) {
  same_bits(out[0], out[1], one, m[0], m[2]);
  same_bits(out[2], out[3], one, m[1], m[3]);
}

// Own are 32 keys and values as operands of the gradient: rows on the left, and keys as terms on
// the right.
template <int HD> struct Own {
  Tiles<HD> k, v;

  __device__ __forceinline__ Own(u32 keys, u32 values) : k(keys), v(k, values) {}
  __device__ __forceinline__ void keys(u32 (&m)[4], int a, int c) const { k.left(m, 16 * a, c); }
  __device__ __forceinline__ void values(u32 (&m)[4], int a, int c) const { v.left(m, 16 * a, c); }
  __device__ __forceinline__ void turned(u32 (&m)[4], int a, int c) const { k.turned(m, 16 * a, c); }
};

// Lines is where a lane's lines of a tile of 16 queries begin, in bytes from a matrix: in the
// order of turned and of right operands.
struct Lines {
  u32 down, across;
};
template <int HD> __device__ __forceinline__ Lines lines_of(int end) { // end: lines from it on repeat the one before
  const int l = threadIdx_x % 32, r = l % 16, s = l % 8 + l / 16 * 8;
  return Lines{2 * (u32)piece<HD>(r < end ? r : end - 1, l / 16), 2 * (u32)piece<HD>(s < end ? s : end - 1, l / 8 % 2)};
}

// Seen is what a lane's four queries of a tile are to a group of 32 keys: query 8x + 2t + h has
// -logSum·log2 e and -D/keepScale, D = dy·y, twice, as a result has them for two rows, and its
// word of masks.
struct Seen {
  float logs[2][4], none[2][4];
  u32 words[2][2];
};

// either has a's bits where the mask's are set, b's elsewhere.
__device__ __forceinline__ u32 either(u32 mask, u32 a, u32 b) {
  u32 r;
  asm("lop3.b32 %0, %1, %2, %3, 0xca;" : "=r"(r) : "r"(mask), "r"(a), "r"(b));
  return r;
}
// product2 multiplies two bf16 numbers by two others; zero is ±0 twice.
__device__ __forceinline__ Bf16x2 product2(Bf16x2 a, Bf16x2 b, u32 zero = 0x80008000u) {
  u32 r;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(zero));
  return r;
}

// Gradient adds the products of a group of 32 keys and a tile of 16 queries to their gradients.
//
// What a reader could break: scores are made turned, a row a key: so they lie as the left
// operands of dk and dv, which are sums over queries; for dq alone they are turned back. Queries
// are q times scale·log2 e, as attention has them, so dk is log2 e times too large.
template <int HD, bool DROP> struct Gradient {
  static constexpr int K = HD / 16;
  float dk[2][2 * K][4] = {}, dv[2][2 * K][4] = {};

  // With p = exp(s - logSum), kept the dropout's mask times keepScale, and D_i = dy_i·y_i: dv_j =
  // Σ_i p·kept·dy_i; ds = p·(kept·dy_i·v_j - D_i); dq_i = scale·Σ_j ds·k_j; dk_j = scale·Σ_i
  // ds·q_i. keepScale is left out of ds, hence D/keepScale, and multiplies the sums instead.
  // Where queries do not see all keys, `edge`, hidden(s) zeroes the probabilities of those they
  // do not. before() fills dq with the sums so far.
  // N = 1: of the first 16 keys alone.
  template <int N = 2, class HIDDEN, class BEFORE>
  __device__ __forceinline__ void add(float (&dq)[2 * K][4], const Own<HD> &own, u32 queries, u32 grads, Lines lines, const Seen &seen, const u32 (&one)[4], bool edge,
                                      HIDDEN &&hidden, BEFORE &&before) {
    const int g = threadIdx_x % 32 / 4;
    u32 q[K][4], o[K][4];
#pragma unroll
    for (int k = 0; k < K; k++) matrices(q[k], queries + (lines.across ^ 32 * k)), matrices(o[k], grads + (lines.across ^ 32 * k));
    float s[N][2][4];
#pragma unroll
    for (int a = 0; a < N; a++)
#pragma unroll
      for (int k = 0; k < K; k++) {
        u32 m[4];
        own.keys(m, a, k);
#pragma unroll
        for (int x = 0; x < 2; x++)
          if (k == 0) multiply(s[a][x], seen.logs[x], m, q[k][2 * x], q[k][2 * x + 1]);
          else multiply(s[a][x], m, q[k][2 * x], q[k][2 * x + 1]);
      }
#pragma unroll
    for (int a = 0; a < N; a++)
#pragma unroll
      for (int x = 0; x < 2; x++)
#pragma unroll
        for (int e = 0; e < 4; e++) s[a][x][e] = ex2(s[a][x][e]);
    if (edge) hidden(s);
    u32 words[2][2], none[2];
    if (DROP)
#pragma unroll
      for (int x = 0; x < 2; x++) words[x][0] = seen.words[x][0] << (7 - g), words[x][1] = seen.words[x][1] << (7 - g), none[x] = bf16x2(seen.none[x][0], seen.none[x][1]);
#pragma unroll
    for (int a = 0; a < N; a++) {
      float dp[2][4]; // less D
#pragma unroll
      for (int k = 0; k < K; k++) {
        u32 m[4];
        own.values(m, a, k);
#pragma unroll
        for (int x = 0; x < 2; x++)
          if (k == 0) multiply(dp[x], seen.none[x], m, o[k][2 * x], o[k][2 * x + 1]);
          else multiply(dp[x], m, o[k][2 * x], o[k][2 * x + 1]);
      }
      u32 p[4], ds[4], same[4];
#pragma unroll
      for (int x = 0; x < 2; x++)
#pragma unroll
        for (int e = 0; e < 4; e += 2) {
          u32 all = bf16x2(s[a][x][e], s[a][x][e + 1]), rest = bf16x2(dp[x][e], dp[x][e + 1]), kept = all;
          if (DROP) {
            const u32 mask = upper_bits(words[x][0], words[x][1], 2 * a + e / 2);
            kept &= mask, rest = either(mask, rest, none[x]);
          }
          // ds twice: a left operand's registers follow each other otherwise than a right one's
          p[2 * x + e / 2] = kept, ds[2 * x + e / 2] = product2(all, rest);
          same[2 * x + e / 2] = product2(all, rest, one[1]);
        }
      u32 back[4];
      turn(back, same, one);
      if (a == 0) before();
#pragma unroll
      for (int k = 0; k < K; k++) {
        u4 m = turned4(grads + (lines.down ^ 32 * k));
        multiply(dv[a][2 * k], p, m.x, m.y);
        multiply(dv[a][2 * k + 1], p, m.z, m.w);
        m = turned4(queries + (lines.down ^ 32 * k));
        multiply(dk[a][2 * k], ds, m.x, m.y);
        multiply(dk[a][2 * k + 1], ds, m.z, m.w);
        u32 t[4];
        own.turned(t, a, k);
        multiply(dq[2 * k], back, t[0], t[1]);
        multiply(dq[2 * k + 1], back, t[2], t[3]);
      }
    }
  }
};

// hide zeroes the probabilities that query i0 + 8x + 2t + h does not give key j0 + 16a + 8·(e/2)
// + g: keys after it, and before from[x][h].
template <int N> __device__ __forceinline__ void hide(float (&s)[N][2][4], const int (&from)[2][2], int i0, int j0) {
  const int g = threadIdx_x % 32 / 4, t = threadIdx_x % 4, j = opaque(j0 + g);
#pragma unroll
  for (int a = 0; a < N; a++)
#pragma unroll
    for (int x = 0; x < 2; x++)
#pragma unroll
      for (int e = 0; e < 4; e++)
        if (outside(16 * a + e / 2 * 8 + j, from[x][e % 2], i0 + 8 * x + 2 * t + e % 2)) s[a][x][e] = 0;
}

// write puts 16 rows from `row` on into dqkv, from which `to` is the head's first column.
template <int N> __device__ __forceinline__ void write(Bf16 *to, const float (&c)[N][4], float scale, int row, int tokens, int d, int hd) {
  const int g = threadIdx_x % 32 / 4, t = threadIdx_x % 4;
#pragma unroll
  for (int x = 0; x < 2; x++)
    if (row + g + 8 * x < tokens)
#pragma unroll
      for (int n = 0; n < N; n++)
        if (8 * n < hd) *(u32 *)(to + (long)(row + g + 8 * x) * 3 * d + 8 * n + 2 * t) = bf16x2(c[n][2 * x] * scale, c[n][2 * x + 1] * scale);
}

__device__ __forceinline__ f4 pack(const float (&c)[4]) { return f4{c[0], c[1], c[2], c[3]}; }
__device__ __forceinline__ void unpack(float (&c)[4], f4 v) { c[0] = v.x, c[1] = v.y, c[2] = v.z, c[3] = v.w; }
