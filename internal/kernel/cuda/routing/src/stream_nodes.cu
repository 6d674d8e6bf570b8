// The gradient of the decisions with any number of nodes, node by node, after stream_rows.cu:
// nodes_stream sums over the decisions what belongs to a value, a pointer key and a table of
// scores; tables_stream goes on to keys and queries. Sums are fp32.
//
// What a reader could break: a head of a block of nodes belongs to one warp, and all take the
// decisions in their order, so sums are the same in every run. A buffer of decisions is overwritten
// two slabs later, after the barrier that the slab between begins with. A lane's operands of values
// and keys lie in shared memory where the lane itself wrote them.
#include "stream_grad.cuh"

#define SLAB 32 // decisions in shared memory at a time
#define PAIR 2  // heads of a block
#define gridDim_z __nvvm_read_ptx_sreg_nctaid_z()

// Where the parts of a slab of decisions lie, in bytes. Rows of fp16 numbers are an odd number of
// 16-byte pieces long: eight rows fall into different banks.
template <int HD> struct Slab {
  static constexpr int SPAN = PAIR * HD, LINE = 2 * SPAN + 16, EACH = sizeof(Taken), MASK = EACH * SLAB, GLIMPSE = MASK + 32 * SLAB,
                       DGLIMPSE = GLIMPSE + SLAB * LINE, QUERY = DGLIMPSE + SLAB * LINE, LSE = QUERY + SLAB * LINE, DELTA = LSE + PAIR * 4 * SLAB,
                       STANDS = DELTA + PAIR * 4 * SLAB, DU = STANDS + 4 * SLAB;
  static __device__ __forceinline__ int line_du(int per) { return 2 * BLOCK * per + 16; }
  static __device__ __forceinline__ int bytes(int per) { return DU + SLAB * line_du(per); }
};

// same_bytes is byte k of a twice, and above it byte k of b twice.
__device__ __forceinline__ u32 same_bytes(u32 a, u32 b, u32 k) {
  u32 r;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(0x4400 + 0x1111 * k));
  return r;
}

// against_rows: c[m][j] += a[m]·rowsᵀ for M tiles of sixteen nodes and twice eight rows of a slab,
// from the lane's byte `at` on.
template <int HD, int LINE, int M>
__device__ __forceinline__ void against_rows(float (&c)[M][2][4], const u4 (&a)[M][HD / 16], u32 at) {
  if constexpr (HD == 32) {
#pragma unroll
    for (int j = 0; j < 2; j++) {
      const u4 b = upright4(at + 8 * j * LINE);
#pragma unroll
      for (int m = 0; m < M; m++) {
        mma(c[m][j], a[m][0].x, a[m][0].y, a[m][0].z, a[m][0].w, b.x, b.y);
        mma(c[m][j], a[m][1].x, a[m][1].y, a[m][1].z, a[m][1].w, b.z, b.w);
      }
    }
  } else {
    const u4 b = upright4(at);
#pragma unroll
    for (int m = 0; m < M; m++) {
      mma(c[m][0], a[m][0].x, a[m][0].y, a[m][0].z, a[m][0].w, b.x, b.y);
      mma(c[m][1], a[m][0].x, a[m][0].y, a[m][0].z, a[m][0].w, b.z, b.w);
    }
  }
}

// even_role is what a warp of eight does where PAIR·per do something, three or four a head. A
// multiprocessor has four parts, and warp w belongs to part w%4: two blocks beside one another
// leave other parts' warps idle. All threads of the block come here: barriers are passed.
__device__ __forceinline__ int even_role(int warp, int per) {
  if (threadIdx_x == 0) asm volatile("mov.u32 %0, %%warpid;" : "=r"(*(u32 *)smem));
  sync();
  const int turn = *(volatile u32 *)smem >> 3 & 1;
  sync();
  if (per == 4) return (warp & 4) | ((warp + (warp >> 2) * 2 + turn) & 3);
  return warp >= 4 && turn ? warp ^ 2 : warp;
}

// nodes_stream, for heads PAIR·blockIdx_y on of instance blockIdx_x, over its decisions in order; a
// warp has one of the heads and one of the blocks of nodes of range blockIdx_z:
//
//	dpointers += duᵀ·glimpse
//	w = exp2(key·query - lse) where allowed;       dvalues += wᵀ·dglimpse
//	ds = w·(values·dglimpse - delta);  dtables[cur] = Σ ds;    dtables[n + f] = Σ seen_f·ds
//
// The context's part of key·query is a number per node times the feature. A row of dtables has
// `wide` numbers; rows of nodes where no vehicle decided are not written. Shared memory: two slabs,
// then a warp's values and keys, 64·HD bytes each.
template <int HD, bool EVEN>
__device__ __forceinline__ void nodes_stream(float *dproj, float *dpointer, float *dtables, const Half *dus, const Half *glimpses, const Half *dglimpses,
                                             const float *lse, const float *deltas, const Taken *taken, const u32 *masks, const int *stands,
                                             const int *counts, const float *ups, const char *packed, const float *load, const float *proj, int n,
                                             int blocks, int stride, int dstride, int heads, int room, int wide, float scale,
                                             float pointerScale) {
  typedef Slab<HD> S;
  constexpr int U = HD / 8, K = HD / 16, P = S::SPAN / 8, TAKEN = S::EACH / 16;
  static_assert(3 * P + TAKEN + 2 <= 32, "a lane for each piece of a decision");
  const int tid = threadIdx_x, lane = tid & 31, g = lane >> 2, t = lane & 3, warp = tid >> 5, warps = blockDim_x >> 5;
  const int per = EVEN ? (blocks + (int)gridDim_z - 1) / (int)gridDim_z : warps / PAIR;
  const int i = blockIdx_x, h0 = blockIdx_y * PAIR, d = heads * HD, at = h0 * HD, across = BLOCK * blocks;
  const int role = EVEN ? even_role(warp, per) : warp, first = blockIdx_z * per;
  const bool spare = EVEN && role >= PAIR * per;
  const int head = spare ? 0 : role / per, block = spare ? blocks : first + role % per; // of the pair; of the range
  const int count = counts[i], lineDu = S::line_du(per), bytes = S::bytes(per), line = mask_words(n);
  char *slab = (char *)smem;
  const u32 first_slab = shared_at(slab);
  u4 *own = (u4 *)(slab + 2 * bytes) + warp * (2 * STEPS_IN * K * 32) + lane; // values, then keys
  const u64 base = (u64)i * room;
  taken += base;
  masks += base * line;
  stands += base;
  dus += base * across + BLOCK * first + 8 * lane;
  glimpses += base * d + at;
  dglimpses += base * d + at;
  lse += base * heads + (u64)h0 * room;
  deltas += base * heads + (u64)h0 * room;
  const Half *queries = (const Half *)packed_of(packed, i, blocks).queries + at;
  dtables += ((u64)i * heads + h0 + head) * (u64)(n + CONTEXTS) * wide;

  // A lane's piece of a decision: where it comes from and goes to. Of masks those pieces of four
  // words that the range has a part of.
  const int window = first & ~3, part = lane / P, c = lane % P, rest = lane - 3 * P - TAKEN;
  const char *src = (const char *)masks + 4 * window + 16 * rest;
  int step = 4 * line, to = S::MASK + 16 * rest, toStep = 32;
  if (part < 3) {
    src = (const char *)(part == 0 ? glimpses : part == 1 ? dglimpses : queries) + 16 * c;
    step = 2 * d, to = S::GLIMPSE + part * (SLAB * S::LINE) + 16 * c, toStep = S::LINE;
  } else if (rest < 0) {
    src = (const char *)taken + 16 * (rest + TAKEN);
    step = S::EACH, to = 16 * (rest + TAKEN), toStep = S::EACH;
  }
  const bool copies = rest < smaller(2, (line - window + 3) / 4);
  const int pieces = smaller(4 * per, 4 * (blocks - first)); // of du
  // fetch brings a slab; stand is that of decision from + lane
  auto fetch = [&](int from, int stand) {
    const u32 slot = first_slab + (from / SLAB & 1) * bytes;
    const int rows = smaller(SLAB, count - from);
    u32 at = slot + to + warp * toStep, atDu = slot + S::DU + warp * lineDu + 16 * lane;
#pragma unroll 1
    for (int r = warp; r < rows; r += warps) {
      const u32 node = shfl(stand, r), row = from + r;
      if (copies) copy16(at, (const Bf16 *)(src + (u64)(part == 2 ? node : row) * (u32)step), true);
      if (lane < pieces) copy16(atDu, dus + (u64)row * (u32)across, true);
      at += warps * toStep, atDu += warps * lineDu;
    }
    // whole: room ends with a slab
    if (warp == 0) copy16(slot + S::LSE + 16 * lane, (const Bf16 *)((lane < 16 ? lse : deltas) + (u64)(lane >> 3 & 1) * room + from + 4 * (lane & 7)), true);
    if (warp == 1 && lane < SLAB / 4) copy16(slot + S::STANDS + 16 * lane, (const Bf16 *)(stands + from + 4 * lane), true);
    commit_copies();
  };

  // A warp works on the tiles of sixteen nodes that its block has, two or one.
  auto work = [&](auto steps) INLINE {
    constexpr int M = steps.value;
    float dots[CONTEXTS][M][2] = {}; // a node's key times the context's weights, to base 2
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
      for (int k = 0; k < K; k++) {
        u4 value, key;
#pragma unroll
        for (int j = 0; j < 4; j++) {
          const int node = BLOCK * block + 16 * m + 8 * (j & 1) + g, column = at + HD * head + 16 * k + 8 * (j >> 1) + 2 * t;
          float2_ x = {0, 0}, y = {0, 0};
          if (node < n) {
            const float *row = proj + ((u64)i * n + node) * stride + d + column;
            y = two(row), x = two(row + d);
          }
          value[j] = half2(x.x, x.y);
          key[j] = half2(y.x, y.y);
          y = floats(key[j]);
#pragma unroll
          for (int f = 0; f < CONTEXTS; f++) {
            const float2_ l = context_weights(load + f * d + column, scale);
            dots[f][m][j & 1] = fma_(y.x, l.x, fma_(y.y, l.y, dots[f][m][j & 1]));
          }
        }
        own[(m * K + k) * 32] = value;
        own[((STEPS_IN + m) * K + k) * 32] = key;
      }
#pragma unroll
    for (int f = 0; f < CONTEXTS; f++)
#pragma unroll
      for (int m = 0; m < M; m++) dots[f][m][0] = quad_sum(dots[f][m][0]), dots[f][m][1] = quad_sum(dots[f][m][1]);
    float dpointers[M][U][4] = {}, dvalues[M][U][4] = {}, dload[CONTEXTS][M][2] = {}, sum[M][2] = {};
    int cur = -1;
    // leave writes the sums of the node that the vehicle stood at.
    auto leave = [&]() {
#pragma unroll
      for (int m = 0; m < M; m++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
          const float all = quad_sum(sum[m][e]);
          if (t == 0 && cur >= 0) dtables[(u64)cur * wide + BLOCK * block + 16 * m + 8 * e + g] = all;
          sum[m][e] = 0;
        }
    };
    const Half2 unit = g == 2 * t ? 0x3c00 : g == 2 * t + 1 ? 0x3c000000 : 0;
    const int l7 = lane & 7, l8 = lane >> 3 & 1, l16 = lane >> 4;
    const bool idle = block >= blocks; // it helps to fetch
    int stand = lane < count ? stands[lane] : 0;
    if (count > 0) {
      fetch(0, stand);
      stand = SLAB + lane < count ? stands[SLAB + lane] : 0;
    }
#pragma unroll 1
    for (int from = 0; from < count; from += SLAB) {
      wait_copies<0>();
      sync();
      if (from + SLAB < count) {
        fetch(from + SLAB, stand);
        const int next = from + 2 * SLAB + lane;
        stand = next < count ? stands[next] : 0;
      }
      if (idle) continue;
      const char *here = slab + (from / SLAB & 1) * bytes;
      const u32 place = shared_at(here);
      const u32 duAt = place + S::DU + (l7 + 8 * l16) * lineDu + 2 * (BLOCK * (block - first) + 8 * l8);
      const u32 turnedAt = place + (l7 + 8 * l8) * S::LINE + 16 * l16 + 2 * HD * head; // rows 0..15, 16 columns
      // rows 0..7, 32 columns; or 0..15, 16
      const u32 uprightAt = place + (HD == 32 ? l7 * S::LINE + 16 * (lane >> 3) : (l7 + 8 * l16) * S::LINE + 16 * l8) + 2 * HD * head;
      const int rows = smaller(SLAB, count - from);
#pragma unroll 1
      for (int r = 0; r < rows; r += 16) {
        {
          u4 x[M];
#pragma unroll
          for (int m = 0; m < M; m++) x[m] = turned4(duAt + r * lineDu + 32 * m);
#pragma unroll
          for (int u = 0; u < U; u += 2) {
            const u4 b = turned4(turnedAt + S::GLIMPSE + r * S::LINE + 16 * u);
#pragma unroll
            for (int m = 0; m < M; m++) {
              mma(dpointers[m][u], x[m].x, x[m].y, x[m].z, x[m].w, b.x, b.y);
              mma(dpointers[m][u + 1], x[m].x, x[m].y, x[m].z, x[m].w, b.z, b.w);
            }
          }
        }
        // The lane's four decisions: 8j + 2t + b.
        const Taken *c = (const Taken *)here + r + 2 * t;
        float ds[M][2][4], score[M][2][4];
#pragma unroll
        for (int j = 0; j < 2; j++) {
          const float *l = (const float *)(here + S::LSE) + head * SLAB + r + 8 * j + 2 * t;
          const float2_ less = two(l), delta = two(l + PAIR * SLAB);
#pragma unroll
          for (int b = 0; b < 2; b++)
#pragma unroll
            for (int m = 0; m < M; m++)
#pragma unroll
              for (int e = 0; e < 2; e++) {
                float s = -(b ? less.y : less.x);
#pragma unroll
                for (int f = 0; f < CONTEXTS; f++) s = fma_(c[8 * j + b].seen[f], dots[f][m][e], s);
                score[m][j][2 * e + b] = s;
                ds[m][j][2 * e + b] = -(b ? delta.y : delta.x);
              }
        }
#pragma unroll
        for (int j = 0; j < 2; j++) {
          // Where a node is not allowed the score is lowered by 40704, by a product with the unit
          // matrix: the byte f8 twice is that fp16 number.
          u32 bits[2];
#pragma unroll
          for (int b = 0; b < 2; b++)
            bits[b] = (~(((const u32 *)(here + S::MASK + 32 * (r + 8 * j + 2 * t + b)))[block - window] >> g) & 0x01010101) * 0xf8;
#pragma unroll
          for (int m = 0; m < M; m++) mma(score[m][j], same_bytes(bits[0], bits[1], 2 * m), same_bytes(bits[0], bits[1], 2 * m + 1), unit);
        }
        u4 a[M][K];
#pragma unroll
        for (int m = 0; m < M; m++)
#pragma unroll
          for (int k = 0; k < K; k++) a[m][k] = own[((STEPS_IN + m) * K + k) * 32];
        against_rows<HD, S::LINE, M>(score, a, uprightAt + S::QUERY + r * S::LINE);
#pragma unroll
        for (int m = 0; m < M; m++)
#pragma unroll
          for (int k = 0; k < K; k++) a[m][k] = own[(m * K + k) * 32];
        against_rows<HD, S::LINE, M>(ds, a, uprightAt + S::DGLIMPSE + r * S::LINE);
        Half2 w[M][4];
#pragma unroll
        for (int j = 0; j < 2; j++) {
#pragma unroll
          for (int m = 0; m < M; m++)
#pragma unroll
            for (int e = 0; e < 2; e++) {
              float p[2];
#pragma unroll
              for (int b = 0; b < 2; b++) {
                p[b] = ex2(score[m][j][2 * e + b]);
                const float x = ds[m][j][2 * e + b] *= p[b];
#pragma unroll
                for (int f = 0; f < CONTEXTS; f++) dload[f][m][e] = fma_(c[8 * j + b].seen[f], x, dload[f][m][e]);
              }
              w[m][2 * j + e] = half2(p[0], p[1]);
            }
        }
#pragma unroll
        for (int u = 0; u < U; u += 2) {
          const u4 b = turned4(turnedAt + S::DGLIMPSE + r * S::LINE + 16 * u);
#pragma unroll
          for (int m = 0; m < M; m++) {
            mma(dvalues[m][u], w[m][0], w[m][1], w[m][2], w[m][3], b.x, b.y);
            mma(dvalues[m][u + 1], w[m][0], w[m][1], w[m][2], w[m][3], b.z, b.w);
          }
        }
        // Decisions at one node are neighbours: most often all sixteen.
        const int *at = (const int *)(here + S::STANDS) + r;
        if (at[0] == cur && at[15] == cur) {
#pragma unroll
          for (int m = 0; m < M; m++)
#pragma unroll
            for (int e = 0; e < 2; e++) sum[m][e] += (ds[m][0][2 * e] + ds[m][0][2 * e + 1]) + (ds[m][1][2 * e] + ds[m][1][2 * e + 1]);
        } else {
#pragma unroll 1
          for (int q = 0; q < 16;) {
            const int node = at[q], end = q + __builtin_popcount(ballot(at[lane & 15] == node) & 0xffff);
            if (node != cur) {
              leave();
              cur = node;
            }
#pragma unroll
            for (int j = 0; j < 2; j++)
#pragma unroll
              for (int b = 0; b < 2; b++)
                if (8 * j + 2 * t + b >= q && 8 * j + 2 * t + b < end)
#pragma unroll
                  for (int m = 0; m < M; m++) sum[m][0] += ds[m][j][b], sum[m][1] += ds[m][j][2 + b];
            q = end;
          }
        }
      }
    }
    if (idle) return;
    leave();
    const float down = rcp(ups[i]), downPoint = down * POINT(pointerScale);
    const int column = at + HD * head + 2 * t;
    dproj += (u64)i * n * dstride + 2 * d + column;
    dpointer += (u64)i * n * d + column;
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
      for (int e = 0; e < 2; e++) {
        const int node = BLOCK * block + 16 * m + 8 * e + g;
#pragma unroll
        for (int f = 0; f < CONTEXTS; f++) {
          const float all = quad_sum(dload[f][m][e]);
          if (t == 0) dtables[(u64)(n + f) * wide + node] = all;
        }
        if (node >= n) continue;
#pragma unroll
        for (int u = 0; u < U; u++) {
          const float (&v)[4] = dvalues[m][u], (&p)[4] = dpointers[m][u];
          *(float2_ *)(dproj + (u64)node * dstride + 8 * u) = float2_{v[2 * e] * down, v[2 * e + 1] * down};
          *(float2_ *)(dpointer + (u64)node * d + 8 * u) = float2_{p[2 * e] * downPoint, p[2 * e + 1] * downPoint};
        }
      }
  };
  if (BLOCK * block + 16 < n || block >= blocks)
    work(Int<2>());
  else
    work(Int<1>());
}

#define NODES(NAME, HD, EVEN)                                                                                                             \
  KERNEL __launch_bounds__(256, 2) NAME(float *dproj, float *dpointer, float *dtables, const Half *dus, const Half *glimpses,          \
                                        const Half *dglimpses, const float *lse, const float *deltas, const Taken *taken,            \
                                        const u32 *masks, const int *stands, const int *counts, const float *ups,                    \
                                        const char *packed, const float *load, const float *proj, int n, int blocks,                 \
                                        int stride, int dstride, int heads, int room, int wide, float scale, float pointerScale) {   \
    nodes_stream<HD, EVEN>(dproj, dpointer, dtables, dus, glimpses, dglimpses, lse, deltas, taken, masks, stands, counts, ups, packed, load, proj, \
                     n, blocks, stride, dstride, heads, room, wide, scale, pointerScale);                                     \
  }

NODES(nodes_stream_16, 16, false)
NODES(nodes_stream_32, 32, false)
NODES(nodes_even_16, 16, true)
NODES(nodes_even_32, 32, true)

// tables_stream, for head blockIdx_y of instance blockIdx_x, from the gradient of its table of
// scores:
//
//	dnode_cur = Σ over j of dtable[cur][j]·key_j;              dgraph = Σ dnode
//	dload_f = Σ over j of dtable[n + f][j]·key_j
//	dkey_j = Σ over cur of dtable[cur][j]·(node_cur + graph) + Σ over f of dtable[n + f][j]·load_f
//
// all times k, by products of tf32 numbers. 256 threads: 64 rows at a time, sixteen rows and half
// of the columns a warp. Shared memory: a tile of 64 by 72 and one of 64 by HD + 8 floats.
template <int HD>
__device__ __forceinline__ void tables_stream(float *dproj, float *dgraph, float *dloads, const float *dtables, const int *present, const float *ups,
                                              const float *proj, const float *graph, const float *load, int n, int stride, int dstride, int heads,
                                              int wide, float k) {
  // Pitches that leave a fragment's 32 numbers in different banks: of rows as they lie, turned, and
  // of a right operand.
  constexpr int LIES = 68, TURNED = 72, LINE = HD + 8, C = HD / 16;
  const int i = blockIdx_x, h = blockIdx_y, d = heads * HD, at = h * HD, tid = threadIdx_x, lane = tid & 31, g = lane >> 2, t = lane & 3;
  const int own = 16 * (tid >> 5 & 3), c0 = (tid >> 7) * (HD / 2);
  float *table = smem, *side = table + 64 * TURNED;
  proj += (u64)i * n * stride + at;
  graph += (u64)i * d + at;
  dproj += (u64)i * n * dstride + at;
  dtables += ((u64)i * heads + h) * (u64)(n + CONTEXTS) * wide;
  present += (u64)i * n;
  k *= rcp(ups[i]);
  auto rounded = [](float x) { return as_float(tf32(x)); };
  // bring copies rows from `row` and columns from `column` on of the table, zeros where there is
  // nothing.
  auto bring = [&](int row, int column, int pitch) {
#pragma unroll
    for (int e = 0; e < 4; e++) {
      const int p = tid + 256 * e, r = row + (p >> 4), j = column + 4 * (p & 15);
      float4_ v = {0, 0, 0, 0};
      if (j < n && (r < n ? present[r] != 0 : r < n + CONTEXTS)) v = four(dtables + (u64)r * wide + j);
      float *to = table + (p >> 4) * pitch + 4 * (p & 15);
#pragma unroll
      for (int c = 0; c < 4; c++) to[c] = j + c < n ? rounded(v[c]) : 0.0f;
    }
  };
  // multiply adds 64 terms; a term's step in the table is `term`, a row's `row`.
  auto multiply = [&](float (&sum)[C][4], int row, int term) {
#pragma unroll
    for (int e = 0; e < 64; e += 8) {
      const float *x = table + (own + g) * row + (e + t) * term, *y = side + (e + t) * LINE + c0 + g;
      const u32 a0 = as_int(x[0]), a1 = as_int(x[8 * row]), a2 = as_int(x[4 * term]), a3 = as_int(x[8 * row + 4 * term]);
#pragma unroll
      for (int c = 0; c < C; c++)
        mma_tf32(sum[c][0], sum[c][1], sum[c][2], sum[c][3], a0, a1, a2, a3, as_int(y[8 * c]), as_int(y[8 * c + 4 * LINE]));
    }
  };
  float all[C][2] = {};
  // dnode, and in rows from n on dload
#pragma unroll 1
  for (int from = 0; from < n + CONTEXTS; from += 64) {
    float sum[C][4] = {};
#pragma unroll 1
    for (int j0 = 0; j0 < n; j0 += 64) {
      sync();
      bring(from, j0, LIES);
      for (int p = tid; p < 64 * HD; p += 256) {
        const int j = p / HD, c = p % HD;
        side[j * LINE + c] = j0 + j < n ? rounded(proj[(u64)(j0 + j) * stride + d + c]) : 0.0f;
      }
      sync();
      multiply(sum, LIES, 1);
    }
#pragma unroll
    for (int e = 0; e < 2; e++) {
      const int cur = from + own + 8 * e + g;
#pragma unroll
      for (int c = 0; c < C; c++) {
        const float2_ v = {sum[c][2 * e], sum[c][2 * e + 1]};
        const int to = c0 + 8 * c + 2 * t;
        if (cur < n) {
          *(float2_ *)(dproj + (u64)cur * dstride + to) = v * k;
          all[c][0] += v.x, all[c][1] += v.y;
        } else if (cur < n + CONTEXTS) {
          *(float2_ *)(dloads + ((u64)i * CONTEXTS + cur - n) * d + at + to) = v * k;
        }
      }
    }
  }
  sync();
#pragma unroll
  for (int c = 0; c < C; c++)
#pragma unroll
    for (int e = 0; e < 2; e++) {
      float sum = all[c][e];
#pragma unroll
      for (int m = 4; m < 32; m <<= 1) sum += shfl_xor(sum, m);
      if (g == 0) side[own / 16 * HD + c0 + 8 * c + 2 * t + e] = sum;
    }
  sync();
  if (tid < HD) dgraph[(u64)i * d + at + tid] = ((side[tid] + side[HD + tid]) + (side[2 * HD + tid] + side[3 * HD + tid])) * k;
  // dkey
#pragma unroll 1
  for (int from = 0; from < n; from += 64) {
    float sum[C][4] = {};
#pragma unroll 1
    for (int j0 = 0; j0 < n + CONTEXTS; j0 += 64) {
      sync();
      bring(j0, from, TURNED);
      for (int p = tid; p < 64 * HD; p += 256) {
        const int cur = j0 + p / HD, c = p % HD;
        side[p / HD * LINE + c] =
            cur < n ? rounded(proj[(u64)cur * stride + c] + graph[c]) : cur < n + CONTEXTS ? rounded(load[(cur - n) * d + at + c]) : 0.0f;
      }
      sync();
      multiply(sum, 1, TURNED);
    }
#pragma unroll
    for (int e = 0; e < 2; e++) {
      const int j = from + own + 8 * e + g;
#pragma unroll
      for (int c = 0; c < C; c++)
        if (j < n) *(float2_ *)(dproj + (u64)j * dstride + d + c0 + 8 * c + 2 * t) = float2_{sum[c][2 * e], sum[c][2 * e + 1]} * k;
    }
  }
}

#define TABLES(NAME, HD)                                                                                                             \
  KERNEL __launch_bounds__(256, 4) NAME(float *dproj, float *dgraph, float *dloads, const float *dtables, const int *present, const float *ups, \
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
