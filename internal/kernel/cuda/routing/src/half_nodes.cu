// The gradient of the decisions with products of fp16 numbers, node by node, after half_rows.cu:
// back_nodes sums over the decisions what belongs to a value, a pointer key and a table of scores;
// back_tables goes on to keys and queries. Sums are fp32.
//
// What a reader could break: a pair of heads of an instance belongs to one block, a tile of sixteen
// nodes to one warp, and all take the decisions in their order, so sums are the same in every run.
// A buffer of decisions is overwritten two slabs later, after the barrier that ends its use.
#include "choices.cuh"
#include "half.cuh"

#ifndef SLAB
#define SLAB 64 // decisions in shared memory at a time
#endif
#define PAIR 2  // heads of a block, so that what depends on no head is done once

// Where the parts of a slab of decisions lie, in bytes. Rows of fp16 numbers are an odd number of
// 16-byte pieces long: eight rows fall into different banks.
template <int HD> struct Slab {
  static constexpr int SPAN = PAIR * HD, LINE = 2 * SPAN + 16, GLIMPSE = sizeof(Choice) * SLAB, DGLIMPSE = GLIMPSE + SLAB * LINE, LSE = DGLIMPSE + SLAB * LINE,
                       DELTA = LSE + PAIR * 4 * SLAB, STANDS = DELTA + PAIR * 4 * SLAB, DU = STANDS + SLAB / 2;
  static __device__ __forceinline__ int line_du(int tiles) { return 32 * tiles + 16; }
  static __device__ __forceinline__ int bytes(int tiles) { return DU + SLAB * line_du(tiles); }
};

__device__ __forceinline__ void copy16(char *to, const void *from) { copy16(shared_at(to), (const Bf16 *)from, true); }

// back_nodes, for heads PAIR·blockIdx_y on of instance blockIdx_x + first, over its decisions in
// order, warp m for nodes 16m..16m+15:
//
//	dpointers += duᵀ·glimpse
//	w = exp2(table[cur] + cap·table[n] - lse) where allowed;   dvalues += wᵀ·dglimpse
//	ds = w·(values·dglimpse - delta);  dtables[cur] = Σ ds;    dtables[n] = Σ cap·ds
//
// and with several context features a row of the tables from n on for each. Their parts of scores
// and of dtables are products of fp16 numbers then (half.cuh).
//
// `across` numbers a row of du has. A row of dtables is in the order of nodes; rows of nodes where
// no vehicle decided are not written.
template <int HD>
__device__ __forceinline__ void back_nodes(float *dproj, float *dpointer, float *dtables, const Half *dus, const Half *glimpses, const Half *dglimpses,
                                           const float *lse, const float *deltas, const Choice *choices, const int *stands, const int *counts,
                                           const float *ups, const float *tables, const float *proj, int first, int n, int stride, int dstride,
                                           int heads, int room, int across, float scale BY_CONTEXT(const u2 *operands)) {
  typedef Slab<HD> S;
  constexpr int U = HD / 8, K = HD / 16, H = PAIR, SPAN = S::SPAN;
  int local = blockIdx_x, i = first + local, h0 = blockIdx_y * H, d = heads * HD, at = h0 * HD;
#if TILES > 16
  // Tiles are dealt to blockIdx_z too; of the last's warps some may be idle.
  constexpr int ALL = (TILES + 1) / 2, wide = 16 * ALL;
  int tid = threadIdx_x, lane = tid & 31, g = lane >> 2, t = lane & 3, tiles = blockDim_x >> 5, first16 = blockIdx_z * tiles;
  const bool idle = first16 + (tid >> 5) >= ALL;
  const int tile = smaller(first16 + (tid >> 5), ALL - 1), pieces = smaller(2 * tiles, across / 8 - 2 * first16);
#else
  int tid = threadIdx_x, lane = tid & 31, g = lane >> 2, t = lane & 3, warp = tid >> 5, tiles = blockDim_x >> 5, wide = 16 * tiles;
#endif
  int count = counts[local], lineDu = S::line_du(tiles), bytes = S::bytes(tiles);
  char *slab = (char *)smem;
  u64 base = (u64)local * room;
  choices += base;
  stands += base >> 3;
  dus += base * across;
  glimpses += base * d + at;
  dglimpses += base * d + at;
  lse += base * heads + (u64)h0 * room;
  deltas += base * heads + (u64)h0 * room;
  int head = (n + CONTEXTS) * wide; // floats of a head's table
  tables += ((u64)local * heads + h0) * head;
  dtables += ((u64)local * heads + h0) * head;

  // What no copy writes: columns of du between `across` and the last tile's end.
  for (int k = tid; k < 2 * SLAB; k += blockDim_x)
#if TILES > 16
    for (int c = 8 * pieces; c < 16 * tiles; c += 8) *(u4 *)(slab + (k / SLAB) * bytes + S::DU + k % SLAB * lineDu + 2 * c) = u4{0, 0, 0, 0};
#else
    for (int c = across; c < wide; c += 8) *(u4 *)(slab + (k / SLAB) * bytes + S::DU + k % SLAB * lineDu + 2 * c) = u4{0, 0, 0, 0};
#endif
  auto fetch = [&](int from) {
    char *to = slab + (from / SLAB & 1) * bytes;
    int rows = smaller(SLAB, count - from);
    for (int k = tid; k < (int)sizeof(Choice) / 16 * rows; k += blockDim_x) copy16(to + 16 * k, (const char *)(choices + from) + 16 * k);
    for (int k = tid; k < H * (SLAB / 4); k += blockDim_x) { // whole: room ends with a slab
      int h = k / (SLAB / 4), c = 4 * (k % (SLAB / 4));
      copy16(to + S::LSE + 16 * k, lse + h * room + from + c);
      copy16(to + S::DELTA + 16 * k, deltas + h * room + from + c);
    }
    for (int k = tid; k < rows * (SPAN / 8); k += blockDim_x) {
      int r = k / (SPAN / 8), c = k % (SPAN / 8);
      copy16(to + S::GLIMPSE + r * S::LINE + 16 * c, glimpses + (u64)(from + r) * d + 8 * c);
      copy16(to + S::DGLIMPSE + r * S::LINE + 16 * c, dglimpses + (u64)(from + r) * d + 8 * c);
    }
    for (int k = tid; k < SLAB / 32; k += blockDim_x) copy16(to + S::STANDS + 16 * k, stands + (from >> 3) + 4 * k);
#if TILES > 16
    for (int k = tid; k < rows * pieces; k += blockDim_x) {
      int r = k / pieces, c = k - r * pieces;
      copy16(to + S::DU + r * lineDu + 16 * c, dus + (u64)(from + r) * across + 16 * first16 + 8 * c);
    }
#else
    int pieces = across / 8;
    for (int k = tid; k < rows * pieces; k += blockDim_x) {
      int r = k / pieces, c = k - r * pieces;
      copy16(to + S::DU + r * lineDu + 16 * c, dus + (u64)from * across + 8 * k);
    }
#endif
    commit_copies();
  };

#if TILES > 16
  const int node0 = 16 * tile + g, node1 = node0 + 8;
#else
  int node0 = 16 * warp + g, node1 = node0 + 8;
#endif
  Half2 value[H][K][4]; // left operands: this warp's nodes
#if CONTEXTS == 1
  float load0[H], load1[H];
#else
  u2 byContext[H][2]; // left operands: what features add at this warp's nodes
#endif
#pragma unroll
  for (int h = 0; h < H; h++) {
#pragma unroll
    for (int k = 0; k < K; k++)
#pragma unroll
      for (int j = 0; j < 4; j++) {
        int node = j & 1 ? node1 : node0;
        float2_ x = {0, 0};
        if (node < n) x = two(proj + ((u64)i * n + node) * stride + 2 * d + at + HD * h + 16 * k + 8 * (j >> 1) + 2 * t);
        value[h][k][j] = half2(x.x, x.y);
      }
#if CONTEXTS == 1
    load0[h] = tables[h * head + n * wide + table_at(node0)];
    load1[h] = tables[h * head + n * wide + table_at(node1)];
#else
#pragma unroll
    for (int j = 0; j < 2; j++) byContext[h][j] = operand(operands + ((u64)local * heads + h0 + h) * (64 * tiles), 2 * warp + j);
#endif
  }
#if CONTEXTS == 1
  float dpointers[H][U][4] = {}, dvalues[H][U][4] = {}, dload0[H] = {}, dload1[H] = {}, sum0[H] = {}, sum1[H] = {}, score0[H] = {}, score1[H] = {};
#else
  float dpointers[H][U][4] = {}, dvalues[H][U][4] = {}, dcontext[H][4] = {}, sum0[H] = {}, sum1[H] = {}, score0[H] = {}, score1[H] = {};
#endif
  int cur = -1;
  // leave writes the sums of the node that the vehicle stood at.
  auto leave = [&]() {
#pragma unroll
    for (int h = 0; h < H; h++) {
      float a = quad_sum(sum0[h]), b = quad_sum(sum1[h]);
      if (t == 0 && cur >= 0) {
        dtables[h * head + cur * wide + node0] = a;
        dtables[h * head + cur * wide + node1] = b;
      }
      sum0[h] = sum1[h] = 0;
    }
  };
  int l7 = lane & 7, l8 = lane >> 3 & 1, l16 = lane >> 4;
#if TILES > 16
  // where a decision has the bits of this warp's nodes: of its mask, or from bit 8 of `node` on
  const int word = tile < 8 ? tile : sizeof(Choice) / 2 - 2, bit = tile < 8 ? g : g + 8;
#endif
  if (count > 0) fetch(0);
#pragma unroll 1
  for (int from = 0; from < count; from += SLAB) {
    if (from + SLAB < count) {
      fetch(from + SLAB);
      wait_copies<1>();
    } else {
      wait_copies<0>();
    }
    sync();
    const char *here = slab + (from / SLAB & 1) * bytes;
    u32 to = shared_at(here);
#if TILES > 16
    u32 duAt = to + S::DU + (l7 + 8 * l16) * lineDu + 2 * (16 * (tid >> 5) + 8 * l8);
#else
    u32 duAt = to + S::DU + (l7 + 8 * l16) * lineDu + 2 * (16 * warp + 8 * l8);
#endif
    u32 turnedAt = to + (l7 + 8 * l8) * S::LINE + 16 * l16; // rows 0..15, 16 columns
    // rows 0..7, 32 columns; or 0..15, 16
    u32 uprightAt = to + S::DGLIMPSE + (HD == 32 ? l7 * S::LINE + 16 * (lane >> 3) : (l7 + 8 * l16) * S::LINE + 16 * l8);
#if TILES > 16
    const int rows = idle ? 0 : smaller(SLAB, count - from);
#else
    int rows = smaller(SLAB, count - from);
#endif
#pragma unroll 1
    for (int r = 0; r < rows; r += 16) {
      u4 x = turned4(duAt + r * lineDu);
#pragma unroll
      for (int u = 0; u < H * U; u += 2) {
        u4 b = turned4(turnedAt + S::GLIMPSE + r * S::LINE + 16 * u);
        mma(dpointers[u / U][u % U], x.x, x.y, x.z, x.w, b.x, b.y);
        mma(dpointers[u / U][u % U + 1], x.x, x.y, x.z, x.w, b.z, b.w);
      }
      float dw[H][2][4] = {};
#pragma unroll
      for (int h = 0; h < H; h++) {
        const Half2 (&v)[K][4] = value[h];
        if (HD == 32) {
#pragma unroll
          for (int j = 0; j < 2; j++) {
            u4 b = upright4(uprightAt + (r + 8 * j) * S::LINE + 64 * h);
            mma(dw[h][j], v[0][0], v[0][1], v[0][2], v[0][3], b.x, b.y);
            mma(dw[h][j], v[K - 1][0], v[K - 1][1], v[K - 1][2], v[K - 1][3], b.z, b.w);
          }
        } else {
          u4 b = upright4(uprightAt + r * S::LINE + 32 * h);
          mma(dw[h][0], v[0][0], v[0][1], v[0][2], v[0][3], b.x, b.y);
          mma(dw[h][1], v[0][0], v[0][1], v[0][2], v[0][3], b.z, b.w);
        }
      }
      Half2 w[H][4];
#if CONTEXTS > 1
      Half2 ds[H][4];
#endif
#pragma unroll
      for (int j = 0; j < 2; j++) {
        int k = r + 8 * j, stand = ((const int *)(here + S::STANDS))[k >> 3];
        if (stand != cur) {
          leave();
          cur = stand;
#pragma unroll
          for (int h = 0; h < H; h++) {
            score0[h] = tables[h * head + cur * wide + table_at(node0)];
            score1[h] = tables[h * head + cur * wide + table_at(node1)];
          }
        }
        const Choice *c = (const Choice *)here + k + 2 * t;
#if CONTEXTS == 1
        float cap[2] = {c->cap, c[1].cap};
#else
        Half2 seen = ((const Choice *)here)[k + g].seen[t]; // a right operand: decision g, features 2t and 2t+1
#endif
#if TILES > 16
        u32 bits[2] = {(u32)((const Half *)c)[word] >> bit, (u32)((const Half *)(c + 1))[word] >> bit};
#else
        u32 bits[2] = {(u32)((const Half *)c->mask)[warp] >> g, (u32)((const Half *)c[1].mask)[warp] >> g};
#endif
#pragma unroll
        for (int h = 0; h < H; h++) {
          float2_ less = two((const float *)(here + S::LSE) + h * SLAB + k + 2 * t), delta = two((const float *)(here + S::DELTA) + h * SLAB + k + 2 * t);
          float out[4];
#if CONTEXTS > 1
          float score[4] = {score0[h], score0[h], score1[h], score1[h]}, back[4];
          mma(score, byContext[h][0].x, byContext[h][1].x, byContext[h][0].y, byContext[h][1].y, seen, seen);
#endif
#pragma unroll
          for (int b = 0; b < 2; b++) {
            float off = b ? less.y : less.x, mean = b ? delta.y : delta.x;
#if CONTEXTS == 1
            float p0 = ex2(fma_(cap[b], load0[h], score0[h]) - off), p1 = ex2(fma_(cap[b], load1[h], score1[h]) - off);
#else
            float p0 = ex2(score[b] - off), p1 = ex2(score[2 + b] - off);
#endif
            p0 = bits[b] & 1 ? p0 : 0.0f;
            p1 = bits[b] & 256 ? p1 : 0.0f;
            out[b] = p0;
            out[2 + b] = p1;
            float ds0 = p0 * (dw[h][j][b] - mean), ds1 = p1 * (dw[h][j][2 + b] - mean);
            sum0[h] += ds0;
            sum1[h] += ds1;
#if CONTEXTS == 1
            dload0[h] = fma_(cap[b], ds0, dload0[h]);
            dload1[h] = fma_(cap[b], ds1, dload1[h]);
#else
            back[b] = ds0;
            back[2 + b] = ds1;
#endif
          }
#if CONTEXTS > 1
          ds[h][2 * j] = half2(back[0], back[1]);
          ds[h][2 * j + 1] = half2(back[2], back[3]);
#endif
          w[h][2 * j] = half2(out[0], out[1]);
          w[h][2 * j + 1] = half2(out[2], out[3]);
        }
      }
#if CONTEXTS > 1
      u4 features = turned4(to + (u32)sizeof(Choice) * (r + (lane & 15)) + 16); // of sixteen decisions, twice
#pragma unroll
      for (int h = 0; h < H; h++) mma(dcontext[h], ds[h][0], ds[h][1], ds[h][2], ds[h][3], features.x, features.y);
#endif
#pragma unroll
      for (int u = 0; u < H * U; u += 2) {
        const Half2 (&a)[4] = w[u / U];
        u4 b = turned4(turnedAt + S::DGLIMPSE + r * S::LINE + 16 * u);
        mma(dvalues[u / U][u % U], a[0], a[1], a[2], a[3], b.x, b.y);
        mma(dvalues[u / U][u % U + 1], a[0], a[1], a[2], a[3], b.z, b.w);
      }
    }
    sync();
  }
#if TILES > 16
  if (idle) return;
#endif
  leave();
  float down = rcp(ups[local]), downPoint = down * POINT(scale);
  dproj += (u64)i * n * dstride + 2 * d + at + 2 * t;
  dpointer += (u64)i * n * d + at + 2 * t;
#pragma unroll
  for (int h = 0; h < H; h++) {
#if CONTEXTS == 1
    float a = quad_sum(dload0[h]), b = quad_sum(dload1[h]);
    if (t == 0) {
      dtables[h * head + n * wide + node0] = a;
      dtables[h * head + n * wide + node1] = b;
    }
#else
#pragma unroll
    for (int e = 0; e < 2; e++)
      if (2 * t + e < CONTEXTS) {
        dtables[h * head + (n + 2 * t + e) * wide + node0] = dcontext[h][e];
        dtables[h * head + (n + 2 * t + e) * wide + node1] = dcontext[h][2 + e];
      }
#endif
#pragma unroll
    for (int u = 0; u < U; u++) {
      const float (&v)[4] = dvalues[h][u], (&p)[4] = dpointers[h][u];
      int c = HD * h + 8 * u;
      if (node0 < n) {
        *(float2_ *)(dproj + (u64)node0 * dstride + c) = float2_{v[0] * down, v[1] * down};
        *(float2_ *)(dpointer + (u64)node0 * d + c) = float2_{p[0] * downPoint, p[1] * downPoint};
      }
      if (node1 < n) {
        *(float2_ *)(dproj + (u64)node1 * dstride + c) = float2_{v[2] * down, v[3] * down};
        *(float2_ *)(dpointer + (u64)node1 * d + c) = float2_{p[2] * downPoint, p[3] * downPoint};
      }
    }
  }
}

#define NODES(NAME, HD, THREADS, BLOCKS)                                                                                                              \
  KERNEL __launch_bounds__(THREADS, BLOCKS) NAME(float *dproj, float *dpointer, float *dtables, const Half *dus, const Half *glimpses,          \
                                        const Half *dglimpses, const float *lse, const float *deltas, const Choice *choices,         \
                                        const int *stands, const int *counts, const float *ups, const float *tables,                 \
                                        const float *proj, int first, int n, int stride, int dstride, int heads, int room, int across, \
                                        float scale BY_CONTEXT(const u2 *operands)) { \
    back_nodes<HD>(dproj, dpointer, dtables, dus, glimpses, dglimpses, lse, deltas, choices, stands, counts, ups, tables, proj, first, n, \
                   stride, dstride, heads, room, across, scale BY_CONTEXT(operands));                                                       \
  }

#if TILES > 16
NODES(back_nodes_16, 16, 160, 3)
NODES(back_nodes_32, 32, 160, 3)
#else
NODES(back_nodes_16, 16, 256, 2)
NODES(back_nodes_32, 32, 256, 2)
#endif

// of_context: a row of a table of n nodes is a context feature's.
__device__ __forceinline__ bool of_context(int row, int n) { return CONTEXTS == 1 ? row == n : row >= n && row < n + CONTEXTS; }

// back_tables, for head blockIdx_y of instance blockIdx_x, from the gradient of its table of
// scores:
//
//	dnode_cur = Σ over j of dtable[cur][j]·key_j;  dgraph = Σ dnode
//	dload = Σ over j of dtable[n][j]·key_j
//	dkey_j = Σ over cur of dtable[cur][j]·(node_cur + graph) + dtable[n][j]·load
//
// all times k, and dload for each context feature. Shared memory: (n + features)·(wide + 4) + (2n +
// features)·(hd + 4) floats. A thread makes four rows by four columns.
KERNEL __launch_bounds__(256) back_tables(float *dproj, float *dgraph, float *dloads, const float *dtables, const int *present, const float *ups,
                                          const float *proj, const float *graph, const float *load, int n, int stride, int dstride,
                                          int heads, int hd, int wide, float k) {
  int i = blockIdx_x, h = blockIdx_y, d = heads * hd, line = hd + 4, at = h * hd, tid = threadIdx_x, pitch = wide + 4;
  float *table = smem, *queries = table + (n + CONTEXTS) * pitch, *keys = queries + (n + CONTEXTS) * line;
  proj += (u64)i * n * stride + at;
  graph += (u64)i * d + at;
  dproj += (u64)i * n * dstride + at;
  dtables += ((u64)i * heads + h) * (n + CONTEXTS) * wide;
  k *= rcp(ups[i]);
  for (int p = tid; p < (n + CONTEXTS) * (wide / 4); p += blockDim_x) {
    int cur = p / (wide / 4);
    float4_ v = {0, 0, 0, 0};
    if (of_context(cur, n) || present[i * PRESENT + cur]) v = four(dtables + 4 * p);
    *(float4_ *)(table + cur * pitch + 4 * (p % (wide / 4))) = v;
  }
  for (int p = tid; p < n * (hd / 4); p += blockDim_x) {
    int j = p / (hd / 4), c = p % (hd / 4) * 4;
    *(float4_ *)(queries + j * line + c) = four(proj + (u64)j * stride + c) + float4_{graph[c], graph[c + 1], graph[c + 2], graph[c + 3]};
    *(float4_ *)(keys + j * line + c) = four(proj + (u64)j * stride + d + c);
  }
#pragma unroll
  for (int f = 0; f < CONTEXTS; f++)
    for (int c = tid; c < hd; c += blockDim_x) queries[(n + f) * line + c] = load[f * d + at + c];
  sync();
  int across = hd / 4;
  int rows = (n + CONTEXTS + 3) / 4;
  // dnode, and in row n dload; rows `rows` apart, so that lanes read rows side by side
  for (int p = tid; p < rows * across; p += blockDim_x) {
    int row = p / across, c = p % across * 4;
    float4_ sum[4] = {};
    const float *x[4];
#pragma unroll
    for (int a = 0; a < 4; a++) x[a] = table + smaller(row + a * rows, n + CONTEXTS - 1) * pitch;
#pragma unroll 4
    for (int j = 0; j < n; j++) {
      float4_ y = four(keys + j * line + c);
#pragma unroll
      for (int a = 0; a < 4; a++) sum[a] += x[a][j] * y;
    }
#pragma unroll
    for (int a = 0; a < 4; a++) {
      int to = row + a * rows;
      if (to < n) *(float4_ *)(dproj + (u64)to * dstride + c) = sum[a] * k;
      if (of_context(to, n)) *(float4_ *)(dloads + ((u64)i * CONTEXTS + (CONTEXTS == 1 ? 0 : to - n)) * d + at + c) = sum[a] * k;
    }
  }
  for (int p = tid; p < (n + 3) / 4 * across; p += blockDim_x) {
    int row = p / across * 4, c = p % across * 4;
    float4_ sum[4] = {};
#pragma unroll 4
    for (int cur = 0; cur < n + CONTEXTS; cur++) {
      float4_ x = four(table + cur * pitch + row), y = four(queries + cur * line + c);
#pragma unroll
      for (int a = 0; a < 4; a++) sum[a] += x[a] * y;
    }
#pragma unroll
    for (int a = 0; a < 4; a++)
      if (row + a < n) *(float4_ *)(dproj + (u64)(row + a) * dstride + d + c) = sum[a] * k;
  }
  // dgraph sums tables over where vehicles stood before it meets a key.
  sync();
  for (int j = tid; j < n; j += blockDim_x) {
    float sum = 0;
    for (int cur = 0; cur < n; cur++) sum += table[cur * pitch + j];
    table[n * pitch + j] = sum;
  }
  sync();
  for (int c = tid; c < hd; c += blockDim_x) {
    float sum = 0;
    for (int j = 0; j < n; j++) sum += table[n * pitch + j] * keys[j * line + c];
    dgraph[(u64)i * d + at + c] = sum * k;
  }
}
