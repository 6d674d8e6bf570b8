// Causal self-attention within the sequences of a row, and its gradient, in fp32. The loops they
// compute are those of kernel.CausalAttention and kernel.CausalAttentionGrad.
//
// What a reader could break: a query (in causal_dkv a key) belongs to PARTS neighbouring lanes for
// the whole block. Lane p of them holds quads p, p+PARTS, ... of its 16·PARTS columns, zeros past
// the head's width, so that a product of two rows is a lane's sum, added over the PARTS lanes. Loop
// bounds are therefore a warp's, never a thread's: what lies outside a thread's own range is
// masked, not skipped.
#include "drop.cuh"
#include "ptx.cuh"

constexpr int threads = 128;

// Row is a lane's 16 columns of a row of a head.
struct Row {
  f4 v[4];
};
__device__ __forceinline__ float dot(const Row &a, const Row &b) {
  f4 s = a.v[0] * b.v[0];
#pragma unroll
  for (int u = 1; u < 4; u++) s += a.v[u] * b.v[u];
  return sum4(s);
}
__device__ __forceinline__ void add(Row &to, float w, const Row &a) {
#pragma unroll
  for (int u = 0; u < 4; u++) to.v[u] += w * a.v[u];
}

template <int PARTS> struct Causal {
  static constexpr int width = 16 * PARTS, rows = threads / PARTS, tile = PARTS < 4 ? 128 / PARTS : 32;
  // of 32 keys that a block's own rows touch
  static constexpr int words = rows < 32 ? 1 : rows / 32;

  int n, d, hd, part;
  u32 vec; // global rows are 16-byte aligned

  // sum over the lanes of a row.
  static __device__ __forceinline__ float joined(float v) {
#pragma unroll
    for (int m = 1; m < PARTS; m *= 2) v += shfl_xor(v, m);
    return v;
  }
  // mine is this lane's part of a global row.
  __device__ __forceinline__ Row mine(const float *row) const {
    Row r;
#pragma unroll
    for (int u = 0; u < 4; u++) r.v[u] = quad(row, 4 * (part + PARTS * u));
    return r;
  }
  __device__ __forceinline__ f4 quad(const float *row, int c) const {
    f4 v = {0, 0, 0, 0};
    if (vec) {
      if (c < hd) v = load4(row + c);
    } else {
#pragma unroll
      for (int j = 0; j < 4; j++)
        if (c + j < hd) v[j] = row[c + j];
    }
    return v;
  }
  __device__ __forceinline__ void put(float *row, const Row &r, float scale) const {
#pragma unroll
    for (int u = 0; u < 4; u++) {
      int c = 4 * (part + PARTS * u);
      f4 v = r.v[u] * scale;
      if (vec) {
        if (c < hd) store4(row + c, v);
      } else {
#pragma unroll
        for (int j = 0; j < 4; j++)
          if (c + j < hd) row[c + j] = v[j];
      }
    }
  }
  // kept is this lane's part of a row in shared memory.
  __device__ __forceinline__ Row kept(const float *row) const {
    Row r;
#pragma unroll
    for (int u = 0; u < 4; u++) r.v[u] = load4(row + 4 * (part + PARTS * u));
    return r;
  }
  // bring copies rows from r0 on, `stride` apart, into a tile; rows past the end are zeros.
  __device__ __forceinline__ void bring(float *to, const float *src, int stride, int r0) const {
    for (int e = threadIdx_x; e < tile * width / 4; e += threads) {
      int r = r0 + e / (width / 4), c = 4 * (e % (width / 4));
      store4(to + 4 * e, r < n ? quad(src + (long)r * stride, c) : f4{0, 0, 0, 0});
    }
  }
};

// Where a block stands: head `head` of instance b, rows from row0 on.
struct Place {
  int b, head, row0;
  long in;  // of the head's first column in qkv
  long out; // in y
  u64 instance;
};
template <int PARTS> __device__ __forceinline__ Place place(int n, int d, int heads, const State *state) {
  Place p;
  p.b = blockIdx_x / heads, p.head = blockIdx_x % heads, p.row0 = blockIdx_y * Causal<PARTS>::rows;
  p.in = (long)p.b * n * 3 * d + p.head * (d / heads);
  p.out = (long)p.b * n * d + p.head * (d / heads);
  p.instance = state->instances + p.b;
  return p;
}

// bring_keys brings a tile of keys and values from j0 on, and dropout's decisions between them and
// the block's queries. It waits for those that read the tile before, and until this one is there.
template <int PARTS>
__device__ __forceinline__ void bring_keys(float *ks, float *vs, u32 *masks, const float *qkv, const Causal<PARTS> &c, const Place &at,
                                           const Drop &drop, int j0) {
  typedef Causal<PARTS> C;
  constexpr int across = C::tile / 32;
  const int n = c.n, d = c.d;
  sync();
  c.bring(ks, qkv + at.in + d, 3 * d, j0);
  c.bring(vs, qkv + at.in + 2 * d, 3 * d, j0);
  if (drop.threshold)
    for (int e = threadIdx_x; e < C::rows * across; e += threads)
      masks[e] = drop_word(drop, at.instance, at.head * n + at.row0 + e / across, (n + 31) / 32, j0 / 32 + e % across);
  sync();
}

// S_j = scale·q_i·k_j; logSum_i = log Σ_j exp S_j; y_i = Σ_j drop(exp(S_j - logSum_i))·v_j, j from
// first_i to i. Shared: k, v [tile][width] | words of decisions [rows][tile/32].
template <int PARTS>
__device__ __forceinline__ void causal(float *y, float *logSum, const float *qkv, const int *first, const State *state, const Drop &drop, int n, int d, int heads,
                                       float scale, u32 vec) {
  extern __shared__ float smem[] __attribute__((aligned(16)));
  typedef Causal<PARTS> C;
  constexpr int group = 8, across = C::tile / 32;
  const C c{n, d, d / heads, (int)threadIdx_x % PARTS, vec};
  const Place at = place<PARTS>(n, d, heads, state);
  float *ks = smem, *vs = ks + C::tile * C::width;
  u32 *masks = (u32 *)(vs + C::tile * C::width);
  const int mine = threadIdx_x / PARTS, i = at.row0 + mine, last = at.row0 + C::rows < n ? at.row0 + C::rows : n;
  first += (long)at.b * n;
  const int lo = i < n ? first[i] : n, warpLo = (int)shfl(lo, 0), warpHi = (int)shfl(i, 31);
  Row q = {}, acc = {};
  if (i < n) q = c.mine(qkv + at.in + (long)i * 3 * d);
  float top = -1e30f, sum = 0;
  for (int j0 = first[at.row0] / 32 * 32; j0 < last; j0 += C::tile) {
    bring_keys(ks, vs, masks, qkv, c, at, drop, j0);
    for (int u = 0; u < C::tile; u += group) {
      if (j0 + u > warpHi || j0 + u + group <= warpLo) continue;
      float s[group], high = top;
#pragma unroll
      for (int k = 0; k < group; k++) {
        int j = j0 + u + k;
        s[k] = C::joined(dot(q, c.kept(ks + (u + k) * C::width))) * scale;
        if (j < lo || j > i) s[k] = -__builtin_inff();
        high = s[k] > high ? s[k] : high;
      }
      const float fade = expf_(top - high);
      const u32 mask = drop.threshold ? masks[mine * across + u / 32] >> u % 32 : 0xff;
      top = high;
      sum *= fade;
#pragma unroll
      for (int w = 0; w < 4; w++) acc.v[w] *= fade;
#pragma unroll
      for (int k = 0; k < group; k++) {
        float p = expf_(s[k] - high);
        sum += p;
        add(acc, mask >> k & 1 ? p * drop.scale : 0.0f, c.kept(vs + (u + k) * C::width));
      }
    }
  }
  if (i >= n) return;
  c.put(y + at.out + (long)i * d, acc, rcp(sum));
  if (c.part == 0) logSum[(long)blockIdx_x * n + i] = top + logf_(sum);
}

// With p_j = exp(S_j - logSum_i), m_j what dropout multiplies it by and delta_i = dy_i·y_i, which
// is Σ_j p_j·m_j·(dy_i·v_j): dS_j = p_j·(m_j·(dy_i·v_j) - delta_i); dq_i = scale·Σ_j dS_j·k_j.
// delta is kept for causal_dkv. Shared: as causal.
template <int PARTS>
__device__ __forceinline__ void causal_dq(float *dqkv, float *delta, const float *dy, const float *y, const float *logSum, const float *qkv, const int *first,
                                          const State *state, const Drop &drop, int n, int d, int heads, float scale, u32 vec) {
  extern __shared__ float smem[] __attribute__((aligned(16)));
  typedef Causal<PARTS> C;
  constexpr int across = C::tile / 32;
  const C c{n, d, d / heads, (int)threadIdx_x % PARTS, vec};
  const Place at = place<PARTS>(n, d, heads, state);
  float *ks = smem, *vs = ks + C::tile * C::width;
  u32 *masks = (u32 *)(vs + C::tile * C::width);
  const int mine = threadIdx_x / PARTS, i = at.row0 + mine, last = at.row0 + C::rows < n ? at.row0 + C::rows : n;
  first += (long)at.b * n;
  const int lo = i < n ? first[i] : n, warpLo = (int)shfl(lo, 0), warpHi = (int)shfl(i, 31);
  Row q = {}, g = {}, acc = {}, out = {};
  if (i < n) {
    q = c.mine(qkv + at.in + (long)i * 3 * d);
    g = c.mine(dy + at.out + (long)i * d);
    out = c.mine(y + at.out + (long)i * d);
  }
  const float mean = C::joined(dot(g, out)), logs = i < n ? logSum[(long)blockIdx_x * n + i] : 0;
  if (i < n && c.part == 0) delta[(long)blockIdx_x * n + i] = mean;
  for (int j0 = first[at.row0] / 32 * 32; j0 < last; j0 += C::tile) {
    bring_keys(ks, vs, masks, qkv, c, at, drop, j0);
#pragma unroll 4
    for (int u = 0; u < C::tile; u++) {
      const int j = j0 + u;
      if (j > warpHi || j < warpLo) continue;
      const Row k = c.kept(ks + u * C::width);
      float s = C::joined(dot(q, k)) * scale, dp = C::joined(dot(g, c.kept(vs + u * C::width)));
      const bool keep = !drop.threshold || masks[mine * across + u / 32] >> u % 32 & 1;
      float p = j < lo || j > i ? 0.0f : expf_(s - logs);
      add(acc, p * ((keep ? dp * drop.scale : 0.0f) - mean), k);
    }
  }
  if (i < n) c.put(dqkv + at.in + (long)i * 3 * d, acc, scale);
}

// dk_j = scale·Σ_i dS_ij·q_i;  dv_j = Σ_i m_ij·p_ij·dy_i, over the queries i that see j.
// Shared: q, dy [tile][width] | logSum, delta, first [tile] | words of decisions [tile][words].
template <int PARTS>
__device__ __forceinline__ void causal_dkv(float *dqkv, const float *delta, const float *dy, const float *logSum, const float *qkv, const int *first,
                                           const State *state, const Drop &drop, int n, int d, int heads, float scale, u32 vec) {
  extern __shared__ float smem[] __attribute__((aligned(16)));
  typedef Causal<PARTS> C;
  const C c{n, d, d / heads, (int)threadIdx_x % PARTS, vec};
  const Place at = place<PARTS>(n, d, heads, state);
  float *qs = smem, *gs = qs + C::tile * C::width, *logs = gs + C::tile * C::width, *means = logs + C::tile;
  int *los = (int *)(means + C::tile);
  u32 *masks = (u32 *)(los + C::tile);
  const int mine = threadIdx_x / PARTS, j = at.row0 + mine, last = at.row0 + C::rows - 1;
  const int warpFirst = (int)shfl(j, 0), warpLast = (int)shfl(j, 31), word = j / 32 - at.row0 / 32;
  first += (long)at.b * n;
  Row k = {}, v = {}, dk = {}, dv = {};
  if (j < n) {
    k = c.mine(qkv + at.in + d + (long)j * 3 * d);
    v = c.mine(qkv + at.in + 2 * d + (long)j * 3 * d);
  }
  for (int i0 = at.row0; i0 < n && first[i0] <= last; i0 += C::tile) {
    sync();
    c.bring(qs, qkv + at.in, 3 * d, i0);
    c.bring(gs, dy + at.out, d, i0);
    for (int e = threadIdx_x; e < C::tile; e += threads) {
      const bool in = i0 + e < n;
      logs[e] = in ? logSum[(long)blockIdx_x * n + i0 + e] : 0;
      means[e] = in ? delta[(long)blockIdx_x * n + i0 + e] : 0;
      los[e] = in ? first[i0 + e] : n;
    }
    if (drop.threshold)
      for (int e = threadIdx_x; e < C::tile * C::words; e += threads)
        masks[e] = drop_word(drop, at.instance, at.head * n + i0 + e / C::words, (n + 31) / 32, at.row0 / 32 + e % C::words);
    sync();
#pragma unroll 2
    for (int u = 0; u < C::tile; u++) {
      const int i = i0 + u, lo = los[u];
      if (i < warpFirst || lo > warpLast) continue;
      const Row q = c.kept(qs + u * C::width), g = c.kept(gs + u * C::width);
      float s = C::joined(dot(q, k)) * scale, dp = C::joined(dot(g, v));
      const bool keep = !drop.threshold || masks[u * C::words + word] >> j % 32 & 1;
      float p = j < lo || j > i ? 0.0f : expf_(s - logs[u]);
      add(dv, keep ? p * drop.scale : 0.0f, g);
      add(dk, p * ((keep ? dp * drop.scale : 0.0f) - means[u]), q);
    }
  }
  if (j >= n) return;
  c.put(dqkv + at.in + d + (long)j * 3 * d, dk, scale);
  c.put(dqkv + at.in + 2 * d + (long)j * 3 * d, dv, 1.0f);
}

#define CAUSAL(PARTS)                                                                                                                                  \
  KERNEL __launch_bounds__(threads) causal_##PARTS(float *y, float *logSum, const float *qkv, const int *first, const State *state, u64 seed, u32 site, \
                                                  u32 threshold, float keep, int n, int d, int heads, float scale, u32 vec) {                          \
    causal<PARTS>(y, logSum, qkv, first, state, Drop{seed, site, threshold, keep}, n, d, heads, scale, vec);                                           \
  }                                                                                                                                                    \
  KERNEL __launch_bounds__(threads) causal_dq_##PARTS(float *dqkv, float *delta, const float *dy, const float *y, const float *logSum,                  \
                                                     const float *qkv, const int *first, const State *state, u64 seed, u32 site, u32 threshold,        \
                                                     float keep, int n, int d, int heads, float scale, u32 vec) {                                      \
    causal_dq<PARTS>(dqkv, delta, dy, y, logSum, qkv, first, state, Drop{seed, site, threshold, keep}, n, d, heads, scale, vec);                       \
  }                                                                                                                                                    \
  KERNEL __launch_bounds__(threads) causal_dkv_##PARTS(float *dqkv, const float *delta, const float *dy, const float *logSum, const float *qkv,         \
                                                      const int *first, const State *state, u64 seed, u32 site, u32 threshold, float keep, int n,      \
                                                      int d, int heads, float scale, u32 vec) {                                                        \
    causal_dkv<PARTS>(dqkv, delta, dy, logSum, qkv, first, state, Drop{seed, site, threshold, keep}, n, d, heads, scale, vec);                         \
  }
CAUSAL(1)
CAUSAL(2)
CAUSAL(4)
CAUSAL(8)
CAUSAL(16)
