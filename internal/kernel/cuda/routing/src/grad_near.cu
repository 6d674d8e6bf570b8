// The gradient of one route per instance of at most 16 nodes and 32 steps in one kernel, where
// batches are small and what counts is how long one instance takes: walk of rollout_grad.cu, then
// grad.cu's way forward and back. A block an instance, a warp a head.
//
// What a reader could break: every warp walks the route for itself and has decision k in lane k.
// The heads meet once, where their parts of the pointer's dot products are added, in the order of
// the heads; all else of a head belongs to its warp, so barriers of a warp are enough. Decisions
// past the last have no gradients and are at the depot.
#include "decode.cuh"
#include "replay.cuh"

constexpr int NT = 2, NP = 8 * NT, HD = 32, HEADS = 4, D = HD * HEADS, CHUNKS = HD / 8;
constexpr int TILES = 2;             // of sixteen decisions
constexpr int LN = D + 8, LY = HD + 8, LX = NP + 24;

typedef float Tile[NT][4];     // scores of sixteen decisions by nodes
typedef float Columns[CHUNKS][4]; // sixteen decisions by the head's columns

// keep writes a tile's rows into a list of rows in shared memory.
template <int N, int LINE> __device__ __forceinline__ void keep(float *rows, int m, const float (&v)[N][4]) {
  const int lane = threadIdx_x & 31, row = 16 * m + (lane >> 2), t2 = 2 * (lane & 3);
#pragma unroll
  for (int u = 0; u < N; u++) {
    *(float2_ *)(rows + row * LINE + 8 * u + t2) = float2_{v[u][0], v[u][1]};
    *(float2_ *)(rows + (row + 8) * LINE + 8 * u + t2) = float2_{v[u][2], v[u][3]};
  }
}

// transposed: dst[j][c] = Σ over decisions of y[k][c]·x[k][j], j < n, rows of dst `stride` apart.
__device__ __forceinline__ void transposed(float *dst, int stride, const float *x, const float *y, int rows, int n) {
  const int lane = threadIdx_x & 31, g = lane >> 2, t = lane & 3;
  float out[HD / 16][NT][4] = {};
#pragma unroll 1
  for (int k = 0; k < rows; k += 8) {
    const float *y0 = y + (k + t) * LY + g, *x0 = x + (k + t) * LX + g;
#pragma unroll
    for (int m = 0; m < HD / 16; m++) {
      const Left a = left(y0[16 * m], y0[16 * m + 4 * LY], y0[16 * m + 8], y0[16 * m + 8 + 4 * LY]);
#pragma unroll
      for (int T = 0; T < NT; T++) multiply(out[m][T], a, x0[8 * T], x0[8 * T + 4 * LX]);
    }
  }
#pragma unroll
  for (int m = 0; m < HD / 16; m++)
#pragma unroll
    for (int T = 0; T < NT; T++)
#pragma unroll
      for (int k = 0; k < 4; k++) {
        const int j = 8 * T + 2 * t + (k & 1), c = 16 * m + g + (k >> 1) * 8;
        if (j < n) dst[(u64)j * stride + c] = out[m][T][k];
      }
}

// pointer_grad is row I's gradient of the dot products, from what tanh_softmax made of them, as
// `leave` of grad.cu has it.
template <int I> __device__ __forceinline__ void pointer_grad(Tile &du, const Tile &th, const Tile &e, const Distribution &w, int action, float wa,
    float we, float scale, float mult, bool real) {
  const int t2 = 2 * (threadIdx_x & 3);
  const float over = div_(1.0f, w.sum), k = mult * scale;
#pragma unroll
  for (int T = 0; T < NT; T++)
#pragma unroll
    for (int b = 0; b < 2; b++) {
      const float x = th[T][2 * I + b], p = e[T][2 * I + b] * over;
      const bool chosen = 8 * T + t2 + b == action;
      float dz = -p * (wa + we * ((x - w.top) * mult - w.logSum + w.entropy));
      if (chosen) dz += wa;
      du[T][2 * I + b] = real && (p > 0 || chosen) ? dz * k * (1.0f - x * x) : 0.0f;
    }
}

// Fits asks a warp whose lanes have a node each.
struct Fits {
  Customer mine;

  __device__ __forceinline__ void ask(const Vehicle &) {}
  __device__ __forceinline__ bool has(int) const { return true; }
  __device__ __forceinline__ u32 operator()(int, const Vehicle &v) const { return ballot(v.fits(mine)); }
  __device__ __forceinline__ Customer node(int a) const { return shuffle(mine, a); }
};

// The formulas are those of forward_rows and backward_head in grad.cu. Shared: keys, pointers,
// values [NP][D] as chunks | graph, load [D] | nodes [NP][LN] | parts of dot products
// [HEADS][TILES][NT][32] | for each head x [32][LX], y [32][LY], dnode [NP][HD].
KERNEL __launch_bounds__(32 * HEADS) grad_near(float *dproj, float *dpointer, float *dgraph, float *dloads, const int *actions,
    const int *steps, const float *adv, const float *proj, const float *pointer, const float *graph, const float *load, const Customer *instances,
    const Control *control, int n, int stride, int dstride, int limit, int capacity, int begins, float weight, float scale,
    float pointerScale, int bonus) {
  const int i = blockIdx_x, lane = threadIdx_x & 31, h = threadIdx_x >> 5, g = lane >> 2, t2 = 2 * (lane & 3), at = h * HD;
  proj += (u64)i * n * stride, pointer += (u64)i * n * D, graph += (u64)i * D;
  Instance in;
  float *nodes = lay<NT>(in, D);
  float4_ *parts = (float4_ *)(nodes + NP * LN);
  float *x = (float *)(parts + HEADS * TILES * NT * 32) + h * (32 * LX + 32 * LY + NP * HD), *y = x + 32 * LX, *dnode = y + 32 * LY;
  chunked<NT, false>(in.keys, proj + D, stride, n, D);
  chunked<NT, false>(in.pointers, pointer, D, n, D);
  chunked<NT, false>(in.values, proj + 2 * D, stride, n, D);
  for (int e = threadIdx_x; e < NP * D / 4; e += 32 * HEADS) {
    const int j = e / (D / 4), c = 4 * (e % (D / 4));
    *(float4_ *)(nodes + j * LN + c) = j < n ? four(proj + (u64)j * stride + c) : float4_{0, 0, 0, 0};
  }
  in.graph[threadIdx_x] = graph[threadIdx_x], in.load[threadIdx_x] = load[threadIdx_x];
  const int total = steps[i];
  const float wa = adv[i], we = entropy_weight(control, bonus, weight, total, begins), mult = div_(10.0f, control->temperature);
  // The route: decision k stays in lane k.
  u32 mask = 1;
  int cur = 0, action = 0, count = 0;
  float cap = 0;
  {
    const Route route = {actions + (u64)i * limit, total, begins};
    replay(Warp<1, Fits>(Fits{customer(instances + i * n, lane, n)}), route, depart(instances + i * n, n, capacity), capacity,
           [&](const u32 (&allowed)[1], const Vehicle &v, int a, bool view) {
             if (lane == count) mask = allowed[0], cur = view ? 1 : v.at(), action = a, cap = sole(v.context(capacity));
             count++;
           });
  }
  const int tiles = count > 16 ? 2 : 1;
  sync();
  u32 masks[TILES][2];
  int curs[TILES][2];
  float caps[TILES][2];
  Tile w[TILES], du[TILES];
  Columns glimpse[TILES], dg[TILES];
  auto ask = [&](float(&q)[4], int m, int u) { // chunk u of a tile's queries
    const int c = at + 8 * u + t2;
    query(q, nodes + curs[m][0] * LN + c, nodes + curs[m][1] * LN + c, in.graph + c, in.load + c, caps[m][0], caps[m][1]);
  };
  auto chunk = [&](const float *matrix, int u) { return matrix + (at + 8 * u) * NP; };
#pragma unroll
  for (int m = 0; m < TILES; m++) {
    if (m >= tiles) break;
#pragma unroll
    for (int r = 0; r < 2; r++) {
      const int k = 16 * m + 8 * r + g;
      const u32 word = (u32)shfl((int)mask, k);
      masks[m][r] = (word >> t2 & 3) | (word >> (8 + t2) & 3) << 2;
      curs[m][r] = shfl(cur, k), caps[m][r] = shfl(cap, k);
    }
    float sum0, sum1;
    zero(w[m]);
#pragma unroll
    for (int u = 0; u < CHUNKS; u++) {
      float q[4];
      ask(q, m, u);
      against(w[m], settled(q), chunk(in.keys, u));
    }
    softmax2<NT>(w[m], masks[m][0], masks[m][1], scale, sum0, sum1);
    const float over0 = div_(1.0f, sum0), over1 = div_(1.0f, sum1);
#pragma unroll
    for (int T = 0; T < NT; T++) w[m][T][0] *= over0, w[m][T][1] *= over0, w[m][T][2] *= over1, w[m][T][3] *= over1;
    settle(w[m]);
    Tile dots;
    zero(dots);
#pragma unroll
    for (int u = 0; u < CHUNKS; u++) {
      blend<NT, false>(glimpse[m][u], w[m], chunk(in.values, u));
#pragma unroll
      for (int k = 0; k < 4; k++) glimpse[m][u][k] = settle(glimpse[m][u][k]);
      against(dots, left(glimpse[m][u]), chunk(in.pointers, u));
    }
#pragma unroll
    for (int T = 0; T < NT; T++) parts[((h * TILES + m) * NT + T) * 32 + lane] = float4_{dots[T][0], dots[T][1], dots[T][2], dots[T][3]};
  }
  sync();
#pragma unroll
  for (int m = 0; m < TILES; m++) {
    if (m >= tiles) break;
    Tile dots, e;
#pragma unroll
    for (int T = 0; T < NT; T++) {
      float4_ sum = parts[(m * NT + T) * 32 + lane];
#pragma unroll
      for (int k = 1; k < HEADS; k++) sum += parts[((k * TILES + m) * NT + T) * 32 + lane];
      dots[T][0] = sum.x, dots[T][1] = sum.y, dots[T][2] = sum.z, dots[T][3] = sum.w;
    }
    const Distribution w0 = tanh_softmax<NT, 0>(dots, e, masks[m][0], pointerScale, mult), w1 = tanh_softmax<NT, 1>(dots, e, masks[m][1], pointerScale, mult);
    const int k0 = 16 * m + g, k1 = k0 + 8;
    pointer_grad<0>(du[m], dots, e, w0, shfl(action, k0), wa, we, pointerScale, mult, k0 < count);
    pointer_grad<1>(du[m], dots, e, w1, shfl(action, k1), wa, we, pointerScale, mult, k1 < count);
    settle(du[m]);
#pragma unroll
    for (int u = 0; u < CHUNKS; u++) {
      blend<NT, false>(dg[m][u], du[m], chunk(in.pointers, u));
#pragma unroll
      for (int k = 0; k < 4; k++) dg[m][u][k] = settle(dg[m][u][k]);
    }
    keep<NT, LX>(x, m, du[m]), keep<CHUNKS, LY>(y, m, glimpse[m]);
  }
  float *dp = dproj + (u64)i * n * dstride + at;
  syncwarp();
  transposed(dpointer + (u64)i * n * D + at, D, x, y, 16 * tiles, n);
  syncwarp();
#pragma unroll
  for (int m = 0; m < TILES; m++)
    if (m < tiles) keep<NT, LX>(x, m, w[m]), keep<CHUNKS, LY>(y, m, dg[m]);
  syncwarp();
  transposed(dp + 2 * D, dstride, x, y, 16 * tiles, n);
#pragma unroll
  for (int m = 0; m < TILES; m++) { // w becomes the scores' gradient
    if (m >= tiles) break;
    Tile s;
    zero(s);
#pragma unroll
    for (int u = 0; u < CHUNKS; u++) against(s, left(dg[m][u]), chunk(in.values, u));
    float dot0 = 0, dot1 = 0;
#pragma unroll
    for (int T = 0; T < NT; T++) {
      dot0 += w[m][T][0] * s[T][0] + w[m][T][1] * s[T][1];
      dot1 += w[m][T][2] * s[T][2] + w[m][T][3] * s[T][3];
    }
    dot0 = quad_sum(dot0), dot1 = quad_sum(dot1);
#pragma unroll
    for (int T = 0; T < NT; T++) {
      w[m][T][0] *= (s[T][0] - dot0) * scale, w[m][T][1] *= (s[T][1] - dot0) * scale;
      w[m][T][2] *= (s[T][2] - dot1) * scale, w[m][T][3] *= (s[T][3] - dot1) * scale;
    }
    settle(w[m]);
  }
  syncwarp();
#pragma unroll
  for (int m = 0; m < TILES; m++) {
    if (m >= tiles) break;
    Columns q;
#pragma unroll
    for (int u = 0; u < CHUNKS; u++) {
      ask(q[u], m, u);
#pragma unroll
      for (int k = 0; k < 4; k++) q[u][k] = settle(q[u][k]);
    }
    keep<NT, LX>(x, m, w[m]), keep<CHUNKS, LY>(y, m, q);
  }
  syncwarp();
  transposed(dp + D, dstride, x, y, 16 * tiles, n);
  syncwarp();
#pragma unroll
  for (int m = 0; m < TILES; m++) {
    if (m >= tiles) break;
    Columns dq;
#pragma unroll
    for (int u = 0; u < CHUNKS; u++) blend<NT, false>(dq[u], w[m], chunk(in.keys, u));
    keep<CHUNKS, LY>(y, m, dq);
  }
  syncwarp();
  float all = 0, loads = 0; // a lane has a column, and its sums in the decisions' order
#pragma unroll
  for (int j = 0; j < NP; j++) dnode[j * HD + lane] = 0;
#pragma unroll 1
  for (int k = 0; k < count; k++) {
    const float v = y[k * LY + lane];
    dnode[shfl(cur, k) * HD + lane] += v;
    all += v, loads += shfl(cap, k) * v;
  }
  for (int j = 0; j < n; j++) dp[(u64)j * dstride + lane] = dnode[j * HD + lane];
  dgraph[(u64)i * D + at + lane] = all;
  dloads[(u64)i * D + at + lane] = loads;
}
