// The gradient of the decisions with any number of nodes, node by node, after stream_rows.cu:
// nodes_stream sums over the decisions what belongs to a value, a pointer key and a table of
// scores; tables_stream goes on to keys and queries. Sums are fp32.
//
// What a reader could break: a pair of heads of a range of nodes belongs to one block, a tile of
// sixteen nodes to one warp, and all take the decisions in their order, so sums are the same in
// every run. A buffer of decisions is overwritten two slabs later, after the barrier that ends its
// use.
#include "stream_grad.cuh"

#define SLAB 32 // decisions in shared memory at a time
#define PAIR 2  // heads of a block, so that what depends on no head is done once

// Where the parts of a slab of decisions lie, in bytes. Rows of fp16 numbers are an odd number of
// 16-byte pieces long: eight rows fall into different banks.
template <int HD> struct Slab {
  static constexpr int SPAN = PAIR * HD, LINE = 2 * SPAN + 16, EACH = sizeof(Taken), MASK = EACH * SLAB, GLIMPSE = MASK + 32 * SLAB,
                       DGLIMPSE = GLIMPSE + SLAB * LINE, QUERY = DGLIMPSE + SLAB * LINE, LSE = QUERY + SLAB * LINE, DELTA = LSE + PAIR * 4 * SLAB,
                       STANDS = DELTA + PAIR * 4 * SLAB, DU = STANDS + 4 * SLAB;
  static __device__ __forceinline__ int line_du(int tiles) { return 32 * tiles + 16; }
  static __device__ __forceinline__ int bytes(int tiles) { return DU + SLAB * line_du(tiles); }
};

__device__ __forceinline__ void copy16(char *to, const void *from) { copy16(shared_at(to), (const Bf16 *)from, true); }

// nodes_stream, for heads PAIR·blockIdx_y on of instance blockIdx_x, over its decisions in
// order, warp m of the block for tile m of range blockIdx_z, nodes 16m..16m+15:
//
//	dpointers += duᵀ·glimpse
//	w = exp2(key·query - lse) where allowed;       dvalues += wᵀ·dglimpse
//	ds = w·(values·dglimpse - delta);  dtables[cur] = Σ ds;    dtables[n + f] = Σ seen_f·ds
//
// A row of dtables has `wide` numbers; rows of nodes where no vehicle decided are not written.
template <int HD>
__device__ __forceinline__ void nodes_stream(float *dproj, float *dpointer, float *dtables, const Half *dus, const Half *glimpses, const Half *dglimpses,
                                             const float *lse, const float *deltas, const Taken *taken, const u32 *masks, const int *stands,
                                             const int *counts, const float *ups, const char *packed, const float *load, const float *proj, int n,
                                             int blocks, int stride, int dstride, int heads, int room, int wide, float scale,
                                             float pointerScale) {
  typedef Slab<HD> S;
  constexpr int U = HD / 8, K = HD / 16, H = PAIR, SPAN = S::SPAN;
  const int i = blockIdx_x, h0 = blockIdx_y * H, d = heads * HD, at = h0 * HD, across = BLOCK * blocks;
  const int tid = threadIdx_x, lane = tid & 31, g = lane >> 2, t = lane & 3, warp = tid >> 5, tiles = blockDim_x >> 5, tile0 = blockIdx_z * tiles;
  const int count = counts[i], lineDu = S::line_du(tiles), bytes = S::bytes(tiles), line = mask_words(n);
  char *slab = (char *)smem;
  const u64 base = (u64)i * room;
  taken += base;
  masks += base * line;
  stands += base;
  dus += base * across;
  glimpses += base * d + at;
  dglimpses += base * d + at;
  lse += base * heads + (u64)h0 * room;
  deltas += base * heads + (u64)h0 * room;
  const Half *queries = (const Half *)packed_of(packed, i, blocks).queries + at;
  const u64 head = (u64)(n + CONTEXTS) * wide; // floats of a head's table
  dtables += ((u64)i * heads + h0) * head;
  const int window = tile0 & ~7, pieces = smaller(2, (line * 2 - window + 7) / 8); // tiles of a piece of mask: eight

  // What no copy writes: columns of du past the last block of nodes.
  for (int k = tid; k < 2 * SLAB; k += blockDim_x)
    for (int c = 0; c < 16 * tiles; c += 8)
      if (16 * tile0 + c >= across) *(u4 *)(slab + (k / SLAB) * bytes + S::DU + k % SLAB * lineDu + 2 * c) = u4{0, 0, 0, 0};
  auto fetch = [&](int from) {
    char *to = slab + (from / SLAB & 1) * bytes;
    const int rows = smaller(SLAB, count - from);
    for (int k = tid; k < rows * (S::EACH / 16); k += blockDim_x) copy16(to + 16 * k, (const char *)(taken + from) + 16 * k);
    for (int k = tid; k < rows * pieces; k += blockDim_x) {
      const int r = k / pieces, c = k - r * pieces;
      copy16(to + S::MASK + 32 * r + 16 * c, (const char *)(masks + (u64)(from + r) * line) + 2 * window + 16 * c);
    }
    for (int k = tid; k < H * (SLAB / 4); k += blockDim_x) { // whole: room ends with a slab
      const int h = k / (SLAB / 4), c = 4 * (k % (SLAB / 4));
      copy16(to + S::LSE + 16 * k, lse + (u64)h * room + from + c);
      copy16(to + S::DELTA + 16 * k, deltas + (u64)h * room + from + c);
    }
    for (int k = tid; k < rows * (SPAN / 8); k += blockDim_x) {
      const int r = k / (SPAN / 8), c = k % (SPAN / 8);
      copy16(to + S::GLIMPSE + r * S::LINE + 16 * c, glimpses + (u64)(from + r) * d + 8 * c);
      copy16(to + S::DGLIMPSE + r * S::LINE + 16 * c, dglimpses + (u64)(from + r) * d + 8 * c);
      copy16(to + S::QUERY + r * S::LINE + 16 * c, queries + (u64)stands[from + r] * d + 8 * c);
    }
    for (int k = tid; k < SLAB / 4; k += blockDim_x) copy16(to + S::STANDS + 16 * k, stands + from + 4 * k);
    const int own = smaller(16 * tiles, across - 16 * tile0) / 8;
    for (int k = tid; k < rows * own; k += blockDim_x) {
      const int r = k / own, c = k - r * own;
      copy16(to + S::DU + r * lineDu + 16 * c, dus + (u64)(from + r) * across + 16 * tile0 + 8 * c);
    }
    commit_copies();
  };

  const int node0 = 16 * (tile0 + warp) + g, node1 = node0 + 8;
  const float k2 = scale * LOG2E;
  Half2 value[H][K][4], key[H][K][4]; // left operands: this warp's nodes
  Half2 loads[CONTEXTS][H][K][2];
#pragma unroll
  for (int h = 0; h < H; h++)
#pragma unroll
    for (int k = 0; k < K; k++) {
#pragma unroll
      for (int j = 0; j < 4; j++) {
        const int node = j & 1 ? node1 : node0;
        float2_ x = {0, 0}, y = {0, 0};
        if (node < n) {
          const float *row = proj + ((u64)i * n + node) * stride + d + at + HD * h + 16 * k + 8 * (j >> 1) + 2 * t;
          y = two(row), x = two(row + d);
        }
        value[h][k][j] = half2(x.x, x.y);
        key[h][k][j] = half2(y.x, y.y);
      }
#pragma unroll
      for (int f = 0; f < CONTEXTS; f++)
#pragma unroll
        for (int j = 0; j < 2; j++) {
          const float2_ x = two(load + f * d + at + HD * h + 16 * k + 8 * j + 2 * t);
          loads[f][h][k][j] = half2(x.x, x.y);
        }
    }
  float dpointers[H][U][4] = {}, dvalues[H][U][4] = {}, dload0[CONTEXTS][H] = {}, dload1[CONTEXTS][H] = {}, sum0[H] = {}, sum1[H] = {};
  int cur = -1;
  // leave writes the sums of the node that the vehicle stood at.
  auto leave = [&]() {
#pragma unroll
    for (int h = 0; h < H; h++) {
      const float a = quad_sum(sum0[h]), b = quad_sum(sum1[h]);
      if (t == 0 && cur >= 0) {
        if (node0 < wide) dtables[h * head + (u64)cur * wide + node0] = a;
        if (node1 < wide) dtables[h * head + (u64)cur * wide + node1] = b;
      }
      sum0[h] = sum1[h] = 0;
    }
  };
  const int l7 = lane & 7, l8 = lane >> 3 & 1, l16 = lane >> 4;
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
    const u32 to = shared_at(here);
    const u32 duAt = to + S::DU + (l7 + 8 * l16) * lineDu + 2 * (16 * warp + 8 * l8);
    const u32 turnedAt = to + (l7 + 8 * l8) * S::LINE + 16 * l16; // rows 0..15, 16 columns
    // rows 0..7, 32 columns; or 0..15, 16
    const u32 uprightAt = to + S::DGLIMPSE + (HD == 32 ? l7 * S::LINE + 16 * (lane >> 3) : (l7 + 8 * l16) * S::LINE + 16 * l8);
    const int rows = smaller(SLAB, count - from);
#pragma unroll 1
    for (int r = 0; r < rows; r += 16) {
      const u4 x = turned4(duAt + r * lineDu);
#pragma unroll
      for (int u = 0; u < H * U; u += 2) {
        const u4 b = turned4(turnedAt + S::GLIMPSE + r * S::LINE + 16 * u);
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
            const u4 b = upright4(uprightAt + (r + 8 * j) * S::LINE + 64 * h);
            mma(dw[h][j], v[0][0], v[0][1], v[0][2], v[0][3], b.x, b.y);
            mma(dw[h][j], v[K - 1][0], v[K - 1][1], v[K - 1][2], v[K - 1][3], b.z, b.w);
          }
        } else {
          const u4 b = upright4(uprightAt + r * S::LINE + 32 * h);
          mma(dw[h][0], v[0][0], v[0][1], v[0][2], v[0][3], b.x, b.y);
          mma(dw[h][1], v[0][0], v[0][1], v[0][2], v[0][3], b.z, b.w);
        }
      }
      Half2 w[H][4];
#pragma unroll
      for (int j = 0; j < 2; j++) {
        const int k = r + 8 * j, *stand = (const int *)(here + S::STANDS) + k;
        float ds[H][2][2]; // of the lane's two nodes and two decisions
        const Taken *c = (const Taken *)here + k;
        Half2 seen[CONTEXTS]; // of decision g, whose query the lane has
#pragma unroll
        for (int f = 0; f < CONTEXTS; f++) seen[f] = half2(c[g].seen[f], c[g].seen[f]);
        c += 2 * t;
        u32 bits[2];
#pragma unroll
        for (int b = 0; b < 2; b++) bits[b] = (u32)((const Half *)(here + S::MASK + 32 * (k + 2 * t + b)))[tile0 - window + warp] >> g;
#pragma unroll
        for (int h = 0; h < H; h++) {
          float score[4] = {};
#pragma unroll
          for (int m = 0; m < K; m++) {
            const Half2 *q = (const Half2 *)(here + S::QUERY + (k + g) * S::LINE + 2 * HD * h + 32 * m) + t;
            Half2 q0 = q[0], q1 = q[4];
#pragma unroll
            for (int f = 0; f < CONTEXTS; f++) q0 = fma2(seen[f], loads[f][h][m][0], q0), q1 = fma2(seen[f], loads[f][h][m][1], q1);
            mma(score, key[h][m][0], key[h][m][1], key[h][m][2], key[h][m][3], q0, q1);
          }
          const float2_ less = two((const float *)(here + S::LSE) + h * SLAB + k + 2 * t), delta = two((const float *)(here + S::DELTA) + h * SLAB + k + 2 * t);
          float out[4];
#pragma unroll
          for (int b = 0; b < 2; b++) {
            const float off = b ? less.y : less.x, mean = b ? delta.y : delta.x;
            float p0 = ex2(fma_(score[b], k2, -off)), p1 = ex2(fma_(score[2 + b], k2, -off));
            p0 = bits[b] & 1 ? p0 : 0.0f;
            p1 = bits[b] & 256 ? p1 : 0.0f;
            out[b] = p0;
            out[2 + b] = p1;
            const float ds0 = ds[h][0][b] = p0 * (dw[h][j][b] - mean), ds1 = ds[h][1][b] = p1 * (dw[h][j][2 + b] - mean);
#pragma unroll
            for (int f = 0; f < CONTEXTS; f++) {
              dload0[f][h] = fma_(c[b].seen[f], ds0, dload0[f][h]);
              dload1[f][h] = fma_(c[b].seen[f], ds1, dload1[f][h]);
            }
          }
          w[h][2 * j] = half2(out[0], out[1]);
          w[h][2 * j + 1] = half2(out[2], out[3]);
        }
        // Decisions at one node are neighbours: most often all eight.
#pragma unroll 1
        for (int e = 0; e < 8;) {
          const int node = stand[e];
          int end = 8;
          if (stand[7] != node)
            for (end = e + 1; stand[end] == node;) end++;
          if (node != cur) {
            leave();
            cur = node;
          }
#pragma unroll
          for (int b = 0; b < 2; b++)
            if (2 * t + b >= e && 2 * t + b < end)
#pragma unroll
              for (int h = 0; h < H; h++) sum0[h] += ds[h][0][b], sum1[h] += ds[h][1][b];
          e = end;
        }
      }
#pragma unroll
      for (int u = 0; u < H * U; u += 2) {
        const Half2 (&a)[4] = w[u / U];
        const u4 b = turned4(turnedAt + S::DGLIMPSE + r * S::LINE + 16 * u);
        mma(dvalues[u / U][u % U], a[0], a[1], a[2], a[3], b.x, b.y);
        mma(dvalues[u / U][u % U + 1], a[0], a[1], a[2], a[3], b.z, b.w);
      }
    }
    sync();
  }
  leave();
  const float down = rcp(ups[i]), downPoint = down * POINT(pointerScale);
  dproj += (u64)i * n * dstride + 2 * d + at + 2 * t;
  dpointer += (u64)i * n * d + at + 2 * t;
#pragma unroll
  for (int h = 0; h < H; h++) {
#pragma unroll
    for (int f = 0; f < CONTEXTS; f++) {
      const float a = quad_sum(dload0[f][h]), b = quad_sum(dload1[f][h]);
      if (t == 0) {
        if (node0 < wide) dtables[h * head + (u64)(n + f) * wide + node0] = a;
        if (node1 < wide) dtables[h * head + (u64)(n + f) * wide + node1] = b;
      }
    }
#pragma unroll
    for (int u = 0; u < U; u++) {
      const float (&v)[4] = dvalues[h][u], (&p)[4] = dpointers[h][u];
      const int c = HD * h + 8 * u;
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

#define NODES(NAME, HD)                                                                                                              \
  KERNEL __launch_bounds__(256, 2) NAME(float *dproj, float *dpointer, float *dtables, const Half *dus, const Half *glimpses,          \
                                        const Half *dglimpses, const float *lse, const float *deltas, const Taken *taken,            \
                                        const u32 *masks, const int *stands, const int *counts, const float *ups,                    \
                                        const char *packed, const float *load, const float *proj, int n, int blocks,                 \
                                        int stride, int dstride, int heads, int room, int wide, float scale, float pointerScale) {   \
    nodes_stream<HD>(dproj, dpointer, dtables, dus, glimpses, dglimpses, lse, deltas, taken, masks, stands, counts, ups, packed, load, proj, \
                     n, blocks, stride, dstride, heads, room, wide, scale, pointerScale);                                     \
  }

NODES(nodes_stream_16, 16)
NODES(nodes_stream_32, 32)

// tables_stream, for head blockIdx_y of instance blockIdx_x, from the gradient of its table of
// scores:
//
//	dnode_cur = Σ over j of dtable[cur][j]·key_j;              dgraph = Σ dnode
//	dload_f = Σ over j of dtable[n + f][j]·key_j
//	dkey_j = Σ over cur of dtable[cur][j]·(node_cur + graph) + Σ over f of dtable[n + f][j]·load_f
//
// all times k. 256 threads: 64 rows at a time, a row and HD/4 columns each. Shared memory: a tile
// of 64 by 65 and one of 64 by HD + 4 floats, and 64·HD for the sum over rows.
template <int HD>
__device__ __forceinline__ void tables_stream(float *dproj, float *dgraph, float *dloads, const float *dtables, const int *present, const float *ups,
                                              const float *proj, const float *graph, const float *load, int n, int stride, int dstride, int heads,
                                              int wide, float k) {
  constexpr int C = HD / 4, LINE = HD + 4, PITCH = 65;
  const int i = blockIdx_x, h = blockIdx_y, d = heads * HD, at = h * HD, tid = threadIdx_x, row = tid >> 2, c0 = (tid & 3) * C;
  float *table = smem, *side = table + 64 * PITCH, *sums = side + 64 * LINE;
  proj += (u64)i * n * stride + at;
  graph += (u64)i * d + at;
  dproj += (u64)i * n * dstride + at;
  dtables += ((u64)i * heads + h) * (n + CONTEXTS) * wide;
  present += (u64)i * n;
  k *= rcp(ups[i]);
  auto real = [&](int cur) { return cur < n ? present[cur] != 0 : cur < n + CONTEXTS; };
  float all[C] = {};
  // dnode, and in rows from n on dload
#pragma unroll 1
  for (int from = 0; from < n + CONTEXTS; from += 64) {
    float sum[C] = {};
#pragma unroll 1
    for (int j0 = 0; j0 < n; j0 += 64) {
      sync();
      for (int p = tid; p < 64 * 64; p += 256) {
        const int r = p >> 6, j = p & 63;
        table[r * PITCH + j] = j0 + j < n && real(from + r) ? dtables[(u64)(from + r) * wide + j0 + j] : 0.0f;
      }
      for (int p = tid; p < 64 * HD; p += 256) {
        const int j = p / HD, c = p % HD;
        side[j * LINE + c] = j0 + j < n ? proj[(u64)(j0 + j) * stride + d + c] : 0.0f;
      }
      sync();
#pragma unroll 4
      for (int j = 0; j < 64; j++) {
        const float x = table[row * PITCH + j];
#pragma unroll
        for (int c = 0; c < C; c++) sum[c] = fma_(x, side[j * LINE + c0 + c], sum[c]);
      }
    }
    const int cur = from + row;
#pragma unroll
    for (int c = 0; c < C; c++) {
      if (cur < n) {
        dproj[(u64)cur * dstride + c0 + c] = sum[c] * k;
        all[c] += sum[c];
      } else if (cur < n + CONTEXTS) {
        dloads[((u64)i * CONTEXTS + cur - n) * d + at + c0 + c] = sum[c] * k;
      }
    }
  }
#pragma unroll
  for (int c = 0; c < C; c++) sums[row * HD + c0 + c] = all[c];
  sync();
  if (tid < HD) {
    float sum = 0;
    for (int r = 0; r < 64; r++) sum += sums[r * HD + tid];
    dgraph[(u64)i * d + at + tid] = sum * k;
  }
  // dkey
#pragma unroll 1
  for (int from = 0; from < n; from += 64) {
    float sum[C] = {};
#pragma unroll 1
    for (int j0 = 0; j0 < n + CONTEXTS; j0 += 64) {
      sync();
      for (int p = tid; p < 64 * 64; p += 256) {
        const int cur = p >> 6, j = p & 63;
        table[cur * PITCH + j] = from + j < n && real(j0 + cur) ? dtables[(u64)(j0 + cur) * wide + from + j] : 0.0f;
      }
      for (int p = tid; p < 64 * HD; p += 256) {
        const int cur = j0 + p / HD, c = p % HD;
        side[p / HD * LINE + c] = cur < n ? proj[(u64)cur * stride + c] + graph[c] : cur < n + CONTEXTS ? load[(cur - n) * d + at + c] : 0.0f;
      }
      sync();
#pragma unroll 4
      for (int cur = 0; cur < 64; cur++) {
        const float x = table[cur * PITCH + row];
#pragma unroll
        for (int c = 0; c < C; c++) sum[c] = fma_(x, side[cur * LINE + c0 + c], sum[c]);
      }
    }
    if (from + row < n)
#pragma unroll
      for (int c = 0; c < C; c++) dproj[(u64)(from + row) * dstride + d + c0 + c] = sum[c] * k;
  }
}

#define TABLES(NAME, HD)                                                                                                             \
  KERNEL __launch_bounds__(256) NAME(float *dproj, float *dgraph, float *dloads, const float *dtables, const int *present, const float *ups, \
                                     const float *proj, const float *graph, const float *load, int n, int stride, int dstride, int heads, \
                                     int wide, float k) {                                                                            \
    tables_stream<HD>(dproj, dgraph, dloads, dtables, present, ups, proj, graph, load, n, stride, dstride, heads, wide, k);          \
  }

TABLES(tables_stream_16, 16)
TABLES(tables_stream_32, 32)

// biases_stream, for the decisions of instance blockIdx_x, block blockIdx_y of `loads` for
// every loads-th node, nodes from 128·blockIdx_z on: dbiases[cur][j] = Σ over decisions at cur of
// du_j; with one context feature dbiases[n + blockIdx_y][j] = Σ of seen·du_j. With several, `loads`
// is their number and one block makes the row of each from all decisions. A thread has a node, 128
// threads. Shared memory: n + 1 words.
KERNEL __launch_bounds__(128) biases_stream(float *dbiases, const Half *dus, const Taken *taken, const int *present, int n, int blocks, int room,
                                           int wide, int loads) {
  const int i = blockIdx_x, mine = blockIdx_y, j = 128 * blockIdx_z + threadIdx_x, across = BLOCK * blocks;
  int *from = (int *)smem;
  for (int c = threadIdx_x; c < n; c += 128) from[c] = present[(u64)i * n + c];
  sync();
  if (threadIdx_x < 32) before(from, n);
  sync();
  if (j >= wide) return;
  dbiases += (u64)i * (n + loads) * wide + j;
  taken += (u64)i * room;
  dus += (u64)i * room * across + j;
  float context = 0;
  for (int cur = 0; cur < n; cur++) {
    const bool own = cur % loads == mine;
    if (!own && CONTEXTS == 1) continue;
    float sum = 0;
#pragma unroll 4
    for (int k = from[cur]; k < from[cur + 1]; k++) {
      const float du = j < across ? floats(dus[(u64)k * across]).x : 0.0f;
      sum += du;
      context = fma_(taken[k].seen[CONTEXTS == 1 ? 0 : mine], du, context);
    }
    if (own) dbiases[(u64)cur * wide] = sum;
  }
  dbiases[(u64)(n + mine) * wide] = context;
}
