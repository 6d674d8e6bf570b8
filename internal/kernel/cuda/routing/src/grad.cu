// The rollout's gradient on tensor cores, after walk (rollout_grad.cu) has listed the decisions of
// each instance: grad_rows goes forward and leaves the glimpse and the gradient of every pointer
// dot product; grad_heads goes back through one head of one instance.
//
// What a reader could break: a (instance, head) belongs to one block, which adds its decisions in
// their order and writes every gradient of its columns once. Decisions past the last read as zero
// gradients at the depot.
#include "decode.cuh"
#include "decision.cuh"

// mask_of gathers the bits of this lane's nodes (decode.cuh) out of a decision's 128.
template <int NT>
__device__ __forceinline__ u32 mask_of(const u32 *words) {
  int t2 = 2 * (threadIdx_x & 3);
  u32 m = 0;
#pragma unroll
  for (int T = 0; T < NT; T++) m |= (words[T >> 2] >> ((T & 3) * 8 + t2) & 3) << (2 * T);
  return m;
}

// leave writes row I's gradient of the dot products:
//
//	dz = wa·(δ(j = action) - p) - we·p·(log p + entropy);  du = dz·mult·(1 - th²)·pointerScale
template <int NT, int I>
__device__ __forceinline__ void leave(float *du, const float (&th)[NT][4], const float (&e)[NT][4], const Distribution &w, const Decision &r, float scale,
                                      float mult) {
  int t2 = 2 * (threadIdx_x & 3);
  float over = div_(1.0f, w.sum), k = mult * scale;
#pragma unroll
  for (int T = 0; T < NT; T++) {
    float out[2];
#pragma unroll
    for (int b = 0; b < 2; b++) {
      float x = th[T][2 * I + b], p = e[T][2 * I + b] * over;
      float dz = -p * (r.wa + r.we * ((x - w.top) * mult - w.logSum + w.entropy));
      if (8 * T + t2 + b == r.action) dz += r.wa;
      out[b] = p > 0 || 8 * T + t2 + b == r.action ? dz * k * (1.0f - x * x) : 0.0f;
    }
    *(float2_ *)(du + 8 * T + t2) = float2_{out[0], out[1]};
  }
}

// forward_rows, for each decision k of instance blockIdx_x (in tiles of sixteen, dealt to warps and
// to blockIdx_y):
//
//	glimpses[k] = the glimpse;  dus[k][j] = d loss / d (glimpse·pointer_j), j < 8·NT
template <int NT>
__device__ __forceinline__ void forward_rows(float *dus, float *glimpses, const Decision *decisions, const int *order, const int *counts,
                                             const float *proj, const float *pointer, const float *graph, const float *load,
                                             const Control *control, int first, int n, int stride, int heads, int hd, int room, int splits,
                                             float scale, float pointerScale, const float *biases, int wide) {
  int local = blockIdx_x, i = first + local, d = heads * hd;
  int count = counts[local];
  if (count == 0) return;
  proj += (u64)i * n * stride;
  Instance in;
  lay<NT>(in, d);
  fetch<NT>(in, proj, stride, pointer + (u64)i * n * d, graph + (u64)i * d, load, n, d);
  sync();
  int lane = threadIdx_x & 31, g = lane >> 2, warps = blockDim_x >> 5;
  float mult = div_(10.0f, control->temperature);
  const Biases bias(biases, i, n, wide);
  decisions += (u64)local * room;
  order += (u64)local * room;
  dus += (u64)local * room * (8 * NT);
  glimpses += (u64)local * room * d;
#pragma unroll 1
  for (int tile = blockIdx_y * warps + (threadIdx_x >> 5); tile * 16 < count; tile += splits * warps) {
    int k0 = tile * 16 + g, k1 = k0 + 8;
    const Decision r0 = decisions[order[k0 < count ? k0 : 0]], r1 = decisions[order[k1 < count ? k1 : 0]];
    float dots[NT][4], e[NT][4];
    u32 mask0 = mask_of<NT>(r0.mask), mask1 = mask_of<NT>(r1.mask);
    forward<NT, true>(dots, in, heads, hd, proj + (u64)r0.cur * stride, proj + (u64)r1.cur * stride, r0.cap, r1.cap, mask0, mask1, scale,
                      k0 < count ? glimpses + (u64)k0 * d : 0, k1 < count ? glimpses + (u64)k1 * d : 0);
    biased<NT, 0>(dots, bias, r0.cur, r0.cap);
    biased<NT, 1>(dots, bias, r1.cur, r1.cap);
    Distribution w0 = tanh_softmax<NT, 0>(dots, e, mask0, pointerScale, mult), w1 = tanh_softmax<NT, 1>(dots, e, mask1, pointerScale, mult);
    if (k0 < count) leave<NT, 0>(dus + (u64)k0 * (8 * NT), dots, e, w0, r0, pointerScale, mult);
    if (k1 < count) leave<NT, 1>(dus + (u64)k1 * (8 * NT), dots, e, w1, r1, pointerScale, mult);
  }
}

#define ROWS 64 // decisions of a tile: sixteen a warp, four warps

// transposed: out[c][j] += Σ over rows of y[row][c]·x[row][j] for the tiles of eight nodes that
// this warp owns (T = warp, warp+4, ...); rows are taken eight at a time.
template <int NT, int HD, int LX, int LY>
__device__ __forceinline__ void transposed(float (&out)[HD / 16][(NT + 3) / 4][4], const float *x, const float *y, int rows) {
  int lane = threadIdx_x & 31, g = lane >> 2, t = lane & 3, warp = threadIdx_x >> 5;
#pragma unroll 1
  for (int k = 0; k < rows; k += 8) {
    const float *y0 = y + (k + t) * LY + g, *x0 = x + (k + t) * LX + 8 * warp + g;
    Left a[HD / 16];
#pragma unroll
    for (int m = 0; m < HD / 16; m++) a[m] = left(y0[16 * m], y0[16 * m + 4 * LY], y0[16 * m + 8], y0[16 * m + 8 + 4 * LY]);
#pragma unroll
    for (int i = 0; i < (NT + 3) / 4; i++) {
      if (4 * i + warp >= NT) continue;
      float b0 = x0[32 * i], b1 = x0[32 * i + 4 * LX];
#pragma unroll
      for (int m = 0; m < HD / 16; m++) multiply(out[m][i], a[m], b0, b1);
    }
  }
}

// spill writes a transposed sum to the head's columns of n rows of `stride` floats.
template <int NT, int HD>
__device__ __forceinline__ void spill(float *dst, int stride, const float (&sum)[HD / 16][(NT + 3) / 4][4], int n) {
  int lane = threadIdx_x & 31, g = lane >> 2, t = lane & 3, warp = threadIdx_x >> 5;
#pragma unroll
  for (int m = 0; m < HD / 16; m++)
#pragma unroll
    for (int i = 0; i < (NT + 3) / 4; i++)
#pragma unroll
      for (int k = 0; k < 4; k++) {
        int j = 8 * (4 * i + warp) + 2 * t + (k & 1), c = 16 * m + g + (k >> 1) * 8;
        if (j < n) dst[(u64)j * stride + c] = sum[m][i][k];
      }
}

// backward_head, for head h = blockIdx_y of instance blockIdx_x, over its decisions in order:
//
//	dglimpse = du·pointers;           dpointers += duᵀ·glimpse
//	w = softmax(q·keysᵀ);             dvalues += wᵀ·dglimpse
//	dw = dglimpse·valuesᵀ;            ds = w·(dw - Σ w·dw)·scale
//	dq = ds·keys;                     dkeys += dsᵀ·q
//	dnode[cur] += dq; dgraph += dq; dload += cap·dq
template <int NT, int HD>
__device__ __forceinline__ void backward_head(float *dproj, float *dpointer, float *dgraph, float *dloads, const float *dus, const float *glimpses,
                                              const Decision *decisions, const int *order, const int *counts, const float *proj,
                                              const float *pointer, const float *graph, const float *load, int first, int n, int stride,
                                              int dstride, int heads, int room, float scale) {
  // strides of 8 or 24 mod 32: no two rows in a bank
  constexpr int NP = 8 * NT, LX = NP + (40 - NP % 32) % 32, LY = HD + 8;
  int local = blockIdx_x, i = first + local, h = blockIdx_y, d = heads * HD, at = h * HD;
  int tid = threadIdx_x, warp = tid >> 5, lane = tid & 31, g = lane >> 2, t2 = 2 * (lane & 3);
  int count = counts[local];
  float *keys = smem, *pointers = keys + NP * HD, *values = pointers + NP * HD;
  float *x = values + NP * HD;      // [ROWS][LX]: du, then w, then ds
  float *y = x + ROWS * LX;         // [ROWS][LY]: glimpse, then dglimpse, then q
  float *dq = y + ROWS * LY;        // [ROWS][LY]
  float *dnode = dq + ROWS * LY;    // [NP][HD]
  float *base = dnode + NP * HD, *loads = base + HD;
  float *caps = loads + HD;         // [ROWS]
  int *curs = (int *)(caps + ROWS); // [ROWS]
  proj += (u64)i * n * stride;
  chunked<NT, false>(keys, proj + d + at, stride, n, HD);
  chunked<NT, true>(pointers, pointer + (u64)i * n * d + at, d, n, HD);
  chunked<NT, false>(values, proj + 2 * d + at, stride, n, HD);
  for (int k = tid; k < NP * HD; k += 128) dnode[k] = 0;
  if (tid < HD) {
    base[tid] = graph[(u64)i * d + at + tid];
    loads[tid] = load[at + tid];
  }
  decisions += (u64)local * room;
  order += (u64)local * room;
  dus += (u64)local * room * NP;
  glimpses += (u64)local * room * d + at;

  float dpointers[HD / 16][(NT + 3) / 4][4] = {}, dvalues[HD / 16][(NT + 3) / 4][4] = {}, dkeys[HD / 16][(NT + 3) / 4][4] = {};
  float dload = 0; // column tid%HD, rows that are tid/HD modulo 128/HD
  int row0 = warp * 16 + g;
#pragma unroll 1
  for (int from = 0; from < count; from += ROWS) {
    int rows = count - from < ROWS ? (count - from + 15) & ~15 : ROWS; // whole fragments
    bool active = warp * 16 < rows;
    for (int k = tid; k < rows * (NP / 4); k += 128) {
      int r = k / (NP / 4), c = (k - r * (NP / 4)) * 4;
      float4_ v = {0, 0, 0, 0};
      if (from + r < count) v = four(dus + (u64)(from + r) * NP + c);
      *(float4_ *)(x + r * LX + c) = settle(v);
    }
    for (int k = tid; k < rows * (HD / 4); k += 128) {
      int r = k / (HD / 4), c = (k - r * (HD / 4)) * 4;
      float4_ v = {0, 0, 0, 0};
      if (from + r < count) v = four(glimpses + (u64)(from + r) * d + c);
      *(float4_ *)(y + r * LY + c) = settle(v);
    }
    u32 mask0 = 0, mask1 = 0;
    int cur0 = 0, cur1 = 0;
    float cap0 = 0, cap1 = 0;
    if (active) {
      int k0 = from + row0, k1 = k0 + 8;
      mask0 = mask1 = t2 == 0;
      if (k0 < count) {
        const Decision &r = decisions[order[k0]];
        mask0 = mask_of<NT>(r.mask);
        cur0 = r.cur;
        cap0 = r.cap;
      }
      if (k1 < count) {
        const Decision &r = decisions[order[k1]];
        mask1 = mask_of<NT>(r.mask);
        cur1 = r.cur;
        cap1 = r.cap;
      }
      if (t2 == 0) {
        curs[row0] = cur0;
        curs[row0 + 8] = cur1;
        caps[row0] = cap0;
        caps[row0 + 8] = cap1;
      }
    }
    sync();
    float s[NT][4], dg[HD / 8][4];
    if (active) {
#pragma unroll
      for (int T = 0; T < NT; T++) {
        float2_ a = two(x + row0 * LX + 8 * T + t2), b = two(x + (row0 + 8) * LX + 8 * T + t2);
        s[T][0] = a.x;
        s[T][1] = a.y;
        s[T][2] = b.x;
        s[T][3] = b.y;
      }
#pragma unroll
      for (int u = 0; u < HD / 8; u++) blend<NT, true>(dg[u], s, pointers + u * 8 * NP);
    }
    transposed<NT, HD, LX, LY>(dpointers, x, y, rows);
    const float *node0 = proj + (u64)cur0 * stride + at + t2, *node1 = proj + (u64)cur1 * stride + at + t2;
    if (active) {
      float sum0, sum1;
      zero(s);
#pragma unroll
      for (int u = 0; u < HD / 8; u++) {
        float q[4];
        query(q, node0 + 8 * u, node1 + 8 * u, base + 8 * u + t2, loads + 8 * u + t2, cap0, cap1);
        against(s, settled(q), keys + u * 8 * NP);
      }
      softmax2<NT>(s, mask0, mask1, scale, sum0, sum1);
      float over0 = div_(1.0f, sum0), over1 = div_(1.0f, sum1);
#pragma unroll
      for (int T = 0; T < NT; T++) {
        s[T][0] *= over0;
        s[T][1] *= over0;
        s[T][2] *= over1;
        s[T][3] *= over1;
      }
      settle(s);
#pragma unroll
      for (int u = 0; u < HD / 8; u++)
#pragma unroll
        for (int k = 0; k < 4; k++) dg[u][k] = settle(dg[u][k]);
    }
    sync(); // du and glimpse have been read
    if (active) {
#pragma unroll
      for (int T = 0; T < NT; T++) {
        *(float2_ *)(x + row0 * LX + 8 * T + t2) = float2_{s[T][0], s[T][1]};
        *(float2_ *)(x + (row0 + 8) * LX + 8 * T + t2) = float2_{s[T][2], s[T][3]};
      }
#pragma unroll
      for (int u = 0; u < HD / 8; u++) {
        *(float2_ *)(y + row0 * LY + 8 * u + t2) = float2_{dg[u][0], dg[u][1]};
        *(float2_ *)(y + (row0 + 8) * LY + 8 * u + t2) = float2_{dg[u][2], dg[u][3]};
      }
    }
    sync();
    transposed<NT, HD, LX, LY>(dvalues, x, y, rows);
    if (active) { // s = ds; w is read back from x: keeping it would cost as many registers as s
      zero(s);
#pragma unroll
      for (int u = 0; u < HD / 8; u++) against(s, left(dg[u]), values + u * 8 * NP);
      float dot0 = 0, dot1 = 0;
#pragma unroll
      for (int T = 0; T < NT; T++) {
        float2_ a = two(x + row0 * LX + 8 * T + t2), b = two(x + (row0 + 8) * LX + 8 * T + t2);
        dot0 += a.x * s[T][0] + a.y * s[T][1];
        dot1 += b.x * s[T][2] + b.y * s[T][3];
      }
      dot0 = quad_sum(dot0);
      dot1 = quad_sum(dot1);
#pragma unroll
      for (int T = 0; T < NT; T++) {
        float2_ a = two(x + row0 * LX + 8 * T + t2), b = two(x + (row0 + 8) * LX + 8 * T + t2);
        s[T][0] = a.x * (s[T][0] - dot0) * scale;
        s[T][1] = a.y * (s[T][1] - dot0) * scale;
        s[T][2] = b.x * (s[T][2] - dot1) * scale;
        s[T][3] = b.y * (s[T][3] - dot1) * scale;
      }
      settle(s);
    }
    sync(); // w and dglimpse have been read
    if (active) {
#pragma unroll
      for (int T = 0; T < NT; T++) {
        *(float2_ *)(x + row0 * LX + 8 * T + t2) = float2_{s[T][0], s[T][1]};
        *(float2_ *)(x + (row0 + 8) * LX + 8 * T + t2) = float2_{s[T][2], s[T][3]};
      }
#pragma unroll
      for (int u = 0; u < HD / 8; u++) {
        float q[4], back[4];
        query(q, node0 + 8 * u, node1 + 8 * u, base + 8 * u + t2, loads + 8 * u + t2, cap0, cap1);
        *(float2_ *)(y + row0 * LY + 8 * u + t2) = settle(float2_{q[0], q[1]});
        *(float2_ *)(y + (row0 + 8) * LY + 8 * u + t2) = settle(float2_{q[2], q[3]});
        blend<NT, false>(back, s, keys + u * 8 * NP);
        *(float2_ *)(dq + row0 * LY + 8 * u + t2) = float2_{back[0], back[1]};
        *(float2_ *)(dq + (row0 + 8) * LY + 8 * u + t2) = float2_{back[2], back[3]};
      }
    }
    sync();
    transposed<NT, HD, LX, LY>(dkeys, x, y, rows);
    // A thread owns a column of the nodes that are its group modulo the number of groups: sums in
    // row order. Each warp first finds the rows of its groups.
    const int groups = 128 / HD, each = 32 / HD; // groups a warp
    int c = tid % HD, group = tid / HD;
#pragma unroll 1
    for (int from = 0; from < rows; from += 32) {
      int mine = from + lane < rows ? curs[from + lane] % groups : -1;
      u32 todo = ballot(mine == warp * each);
      if (each == 2) {
        u32 other = ballot(mine == warp * each + 1);
        if (group & 1) todo = other;
      }
      for (; todo; todo &= todo - 1) {
        int r = from + __builtin_ctz(todo);
        dnode[curs[r] * HD + c] += dq[r * LY + c];
      }
    }
    for (int r = group; r < rows; r += groups) dload += caps[r] * dq[r * LY + c];
    sync(); // the next tile overwrites
  }
  sync(); // with no decision at all, dnode's zeros come straight from other threads
  float *dp = dproj + (u64)i * n * dstride + at;
  spill<NT, HD>(dp + d, dstride, dkeys, n);
  spill<NT, HD>(dp + 2 * d, dstride, dvalues, n);
  spill<NT, HD>(dpointer + (u64)i * n * d + at, d, dpointers, n);
  for (int k = tid; k < n * HD; k += 128) dp[(u64)(k / HD) * dstride + k % HD] = dnode[k];
  x[tid] = dload;
  sync();
  if (tid < HD) {
    float sum = 0, all = 0;
    for (int j = 0; j < n; j++) sum += dnode[j * HD + tid];
    for (int k = tid; k < 128; k += HD) all += x[k];
    dgraph[(u64)i * d + at + tid] = sum;
    dloads[(u64)i * d + at + tid] = all;
  }
}

#define GRAD_ROWS(NAME, NT)                                                                                                      \
  KERNEL __launch_bounds__(256, 1) NAME(float *dus, float *glimpses, const Decision *decisions, const int *order, const int *counts, \
                                        const float *proj, const float *pointer, const float *graph, const float *load,          \
                                        const Control *control, int first, int n, int stride, int heads, int hd, int room,       \
                                        int splits, float scale, float pointerScale, const float *biases, int wide) {             \
    forward_rows<NT>(dus, glimpses, decisions, order, counts, proj, pointer, graph, load, control, first, n, stride, heads, hd, room, splits, \
                  scale, pointerScale, biases, wide);                                                                             \
  }
#define GRAD_HEADS(NAME, NT, HD)                                                                                                 \
  KERNEL __launch_bounds__(128, 2) NAME(float *dproj, float *dpointer, float *dgraph, float *dloads, const float *dus, const float *glimpses, \
                                        const Decision *decisions, const int *order, const int *counts, const float *proj,       \
                                        const float *pointer, const float *graph, const float *load, int first, int n, int stride, \
                                        int dstride, int heads, int room, float scale) {                                         \
    backward_head<NT, HD>(dproj, dpointer, dgraph, dloads, dus, glimpses, decisions, order, counts, proj, pointer, graph, load, first, n, \
                       stride, dstride, heads, room, scale);                                                                     \
  }

// A module holds the kernels of one number of tiles: a run needs one of them, and the driver
// compiles whole modules.
GRAD_ROWS(grad_rows, TILES)
GRAD_HEADS(grad_heads_16, TILES, 16)
GRAD_HEADS(grad_heads_32, TILES, 32)
