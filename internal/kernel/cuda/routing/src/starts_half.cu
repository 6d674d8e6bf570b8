// Rollouts of many starts of one instance with products of fp16 numbers: sixteen starts a warp, the
// instance's projections once in shared memory, all steps in one launch. starts.cu does the same in
// fp32, and for other widths in tf32.
//
// What a reader could break, beside what starts.cuh says: two blocks fit a multiprocessor, with 128
// registers a thread and half its shared memory (half.go). Where no multiprocessor gets more than
// eight warps, rollout_few has twice as many registers.
#include "half.cuh"
#include "starts.cuh"

// Queries lie apart from the other matrices: row j is Node_j + Graph, and lane t's piece of 32
// columns holds columns 8i+2t and 8i+2t+1, i < 4: its part of two left operands.
__device__ __forceinline__ u4 turned_piece(const float *a, const float *b, int chunk, int t) {
  Half2 v[4];
#pragma unroll
  for (int i = 0; i < 4; i++) {
    int c = 32 * chunk + 8 * i + 2 * t;
    v[i] = half2(a[c] + b[c], a[c + 1] + b[c + 1]);
  }
  return u4{v[0], v[1], v[2], v[3]};
}

#if CONTEXTS == 1
#define OF_CONTEXT(...) __VA_ARGS__
#define LOADS 1 // rows of the context's weights
// query is a left operand of two rows: what lies at their nodes, plus capacity·load.
__device__ __forceinline__ void query(Half2 (&q)[4], Half2 a0, Half2 a1, Half2 b0, Half2 b1, Half2 l0, Half2 l1, Half2 cap0, Half2 cap1) {
  q[0] = fma2(cap0, l0, a0);
  q[1] = fma2(cap1, l0, b0);
  q[2] = fma2(cap0, l1, a1);
  q[3] = fma2(cap1, l1, b1);
}
#else
#define OF_CONTEXT(...) const Seen &seen
#define LOADS FEATURES
// add_context adds to eight columns of two rows their features times the features' weights.
__device__ __forceinline__ void add_context(Half2 &row0, Half2 &row1, const Seen &seen, Half2 weights) {
  asm("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3}, {%4}, {%0,%1};"
      : "+r"(row0), "+r"(row1)
      : "r"(seen.row0), "r"(seen.row1), "r"(weights));
}

// query is a left operand of two rows: what lies at their nodes, plus what their features add.
__device__ __forceinline__ void query(Half2 (&q)[4], Half2 a0, Half2 a1, Half2 b0, Half2 b1, Half2 l0, Half2 l1, const Seen &seen) {
  q[0] = a0, q[1] = b0, q[2] = a1, q[3] = b1;
  add_context(q[0], q[1], seen, l0);
  add_context(q[2], q[3], seen, l1);
}

// weights_at is the lane's part of the features' weights of column 32·chunk + 8·i + g: word i.
__device__ __forceinline__ u4 weights_at(const char *load, int chunk) { return ((const u4 *)load)[32 * chunk + (threadIdx_x & 31)]; }
#endif

struct Projections {
  u32 keys, values, pointers;
  const char *queries, *load;
  const float *biases;
#if CONTEXTS == 1
  const float *biasLoad;
#else
  const u2 *biasOperands;
#endif
};

// decode computes the pointer's dot products of sixteen rows, as distribution takes them:
//
//	for each head: w = softmax over mask of (node[cur] + graph + cap·load)·keyᵀ/sqrt(HD)
//	               glimpse = w·values;  dots += glimpse·pointersᵀ
template <int NT, int HD>
__device__ __forceinline__ void decode(float (&dots)[NT][4], const Projections &in, int at0, int at1, OF_CONTEXT(float cap0, float cap1), Allowed mask0,
                                       Allowed mask1, float scale) {
  constexpr int U = HD / 8, K = HD / 16, ALL = WIDTH / 16;
  int t = threadIdx_x & 3;
#if CONTEXTS == 1
  Half2 c0 = half2(cap0, cap0), c1 = half2(cap1, cap1);
#endif
  Half2 all[ALL][4] = {}; // glimpses; the loop pushes them through, so that it need not be unrolled
#pragma unroll 1
  for (int h = 0; h < WIDTH / HD; h++) {
    float s[NT][4], out[U][4], sum[4], top0, top1;
    Half2 w[NT][2], q[K][4];
    int piece = 4 * (h * HD / 32) + t;
    const char *a = in.queries + piece_at(at0, piece), *b = in.queries + piece_at(at1, piece);
#if CONTEXTS == 1
    const char *l = in.load + 16 * piece;
#endif
    mask0 = opaque(mask0); // else the loop would keep every bit in a register of its own
    mask1 = opaque(mask1);
#pragma unroll
    for (int T = 0; T < NT; T++) s[T][0] = s[T][1] = s[T][2] = s[T][3] = 0;
    forbid<NT>(s, mask0, mask1);
    if constexpr (HD == 32) {
#if CONTEXTS == 1
      u4 x = *(const u4 *)a, y = *(const u4 *)b, z = *(const u4 *)l;
      query(q[0], x.x, x.y, y.x, y.y, z.x, z.y, c0, c1);
      query(q[K - 1], x.z, x.w, y.z, y.w, z.z, z.w, c0, c1);
#else
      u4 x = *(const u4 *)a, y = *(const u4 *)b, z = weights_at(in.load, h);
      query(q[0], x.x, x.y, y.x, y.y, z.x, z.y, seen);
      query(q[K - 1], x.z, x.w, y.z, y.w, z.z, z.w, seen);
#endif
      against<NT, K>(s, q, 0, in.keys + across_at(h));
    } else {
      int half = 8 * (h & 1);
#if CONTEXTS == 1
      u2 x = *(const u2 *)(a + half), y = *(const u2 *)(b + half), z = *(const u2 *)(l + half);
      query(q[0], x.x, x.y, y.x, y.y, z.x, z.y, c0, c1);
#else
      u2 x = *(const u2 *)(a + half), y = *(const u2 *)(b + half);
      u4 z = weights_at(in.load, h >> 1);
      query(q[0], x.x, x.y, y.x, y.y, h & 1 ? z.z : z.x, h & 1 ? z.w : z.y, seen);
#endif
      against16<NT>(s, q[0], in.keys + across16_at(h));
    }
    weigh<NT>(w, s, scale * LOG2E, top0, top1);
    total<NT>(sum, w);
    if constexpr (HD == 32)
      blend<NT, U>(out, w, in.values + down_at(2 * h), in.values + down_at(2 * h + 1), in.values + down8_at(h));
    else
      blend<NT, U>(out, w, in.values + down_at(h), 0, in.values + down8_16_at(h));
    float over0 = rcp_fast(sum[0]), over1 = rcp_fast(sum[2]);
#pragma unroll
    for (int m = 0; m < ALL - K; m++)
#pragma unroll
      for (int j = 0; j < 4; j++) all[m][j] = all[m + K][j];
#pragma unroll
    for (int u = 0; u < U; u++) {
      all[ALL - K + (u >> 1)][2 * (u & 1)] = half2(out[u][0] * over0, out[u][1] * over0);
      all[ALL - K + (u >> 1)][2 * (u & 1) + 1] = half2(out[u][2] * over1, out[u][3] * over1);
    }
  }
#ifdef BIAS
  constexpr int WIDE = 16 * ((NT + 1) / 2);
#if CONTEXTS == 1
  biased<NT>(dots, in.biases + at0 * WIDE, in.biases + at1 * WIDE, in.biasLoad, cap0, cap1);
#else
  table_rows<NT>(dots, in.biases + at0 * WIDE, in.biases + at1 * WIDE);
  by_context<NT>(dots, seen, in.biasOperands);
#endif
#else
#pragma unroll
  for (int T = 0; T < NT; T++) dots[T][0] = dots[T][1] = dots[T][2] = dots[T][3] = 0;
#endif
#pragma unroll
  for (int c = 0; c < WIDTH / 32; c++) against<NT, ALL>(dots, all, 2 * c, in.pointers + across_at(c));
}

// Pick is what a row chose, and r there.
struct Pick { int node; float r; };

// Place is where a row's uniform falls: a tile of eight nodes, what comes before it, and how far to
// go. tile is NT where rounding left none.
struct Place { int tile; float base, edge; };

// place finds both rows' tiles. Lane parity says which row a lane sums for, so that one pass serves
// two rows.
template <int NT>
__device__ __forceinline__ void place(Place (&out)[2], const float (&part)[NT][2], float uniform) {
  int lane = threadIdx_x & 31;
  bool second = lane & 1;
  float all[NT], sum = 0;
#pragma unroll
  for (int T = 0; T < NT; T++) {
    float mine = second ? part[T][1] : part[T][0], other = second ? part[T][0] : part[T][1];
    mine += shfl_xor(other, 1);
    all[T] = mine + shfl_xor(mine, 2);
  }
#pragma unroll
  for (int T = 0; T < NT; T++) sum += all[T];
  Place p = {0, 0, uniform * sum};
  sum = 0;
#pragma unroll
  for (int T = 0; T < NT; T++) {
    sum += all[T];
    if (sum <= p.edge) {
      p.tile = T + 1;
      p.base = sum;
    }
  }
#pragma unroll
  for (int I = 0; I < 2; I++) {
    int from = (lane & 28) | I;
    out[I] = Place{shfl(p.tile, from), shfl(p.base, from), shfl(p.edge, from)};
  }
}

// greedy picks the likeliest node of row I, the lowest of equals.
template <int NT, int I>
__device__ __forceinline__ Pick greedy(const float (&r)[NT][4], float least) {
  int t2 = 2 * (threadIdx_x & 3), pick = 1 << 20;
#pragma unroll
  for (int T = NT - 1; T >= 0; T--)
#pragma unroll
    for (int k = 1; k >= 0; k--)
      if (r[T][2 * I + k] == least) pick = 8 * T + t2 + k;
  return Pick{quad_min(pick), least};
}

// last is the last node of a row's mask.
__device__ __forceinline__ int last(u32 mask) {
  int t2 = 2 * (threadIdx_x & 3);
  u32 even = mask & 0xffff, odd = mask >> 16;
  int a = even ? 8 * (31 - __builtin_clz(even)) + t2 : 0, b = odd ? 8 * (31 - __builtin_clz(odd)) + t2 + 1 : 0;
  return quad_max(a > b ? a : b);
}

#if TILES > 16
__device__ __forceinline__ int last(const Allowed &mask) {
  const int far = last(mask.far), near = last(mask.near); // the depot is never of the far
  return quad_max(mask.far ? 1 : 0) ? 128 + far : near;
}
#endif

// pick finds the node within its tile, or with REPLAY what r is at the recorded one.
template <int NT, int I>
__device__ __forceinline__ Pick pick(const float (&r)[NT][4], const Odds &w, const Allowed &mask, bool sample, const Place &p, int recorded, float k) {
  int t = threadIdx_x & 3, node = sample && p.tile == NT ? last(mask) : recorded;
  bool inside = sample && p.tile < NT;
  int tile = inside ? p.tile : node >> 3;
  float ra = NOWHERE, rb = NOWHERE;
#pragma unroll
  for (int T = 0; T < NT; T++)
    if (T == tile) {
      ra = r[T][2 * I];
      rb = r[T][2 * I + 1];
    }
  if (sample) {
    float off = w.least * k, a = ex2(fma_(ra, -k, off)), b = ex2(fma_(rb, -k, off)), run = a + b, upTo = p.base + quad_before(run) + a;
    int found = b > 0 && upTo + b > p.edge ? 2 * t + 1 : 8;
    if (a > 0 && upTo > p.edge) found = 2 * t;
    found = quad_min(found);
    int end = quad_max(b > 0 ? 2 * t + 1 : a > 0 ? 2 * t : 0);
    if (inside) node = 8 * tile + (found == 8 ? end : found);
  }
  return Pick{node, shfl(node & 1 ? rb : ra, (threadIdx_x & 28) | (node >> 1 & 3))};
}

// score lets a row that is asked go where it picked.
__device__ __forceinline__ void score(Row &row, const Pick &p, const Odds &w, bool ask, float mult) {
  if (!ask) return;
  row.action = p.node;
  row.logProb += 2 * mult * (w.least - p.r) - w.logSum;
  row.entropy += w.entropy;
}

// advance lets both rows choose from their dots, where they are asked, and scores the choices.
template <int NT>
__device__ __forceinline__ void advance(Row (&row)[2], float (&dots)[NT][4], const Allowed (&mask)[2], const bool (&ask)[2], int choice, float uniform,
                                        float mult) {
  float part[NT][2], k = 2 * LOG2E * mult;
  Odds w0 = distribution<NT, 0, true>(dots, part, mask[0], k), w1 = distribution<NT, 1, true>(dots, part, mask[1], k);
  if (choice == GREEDY) {
    score(row[0], greedy<NT, 0>(dots, w0.least), w0, ask[0], mult);
    score(row[1], greedy<NT, 1>(dots, w1.least), w1, ask[1], mult);
    return;
  }
  Place at[2] = {};
  bool sample = choice == SAMPLE;
  if (sample) place<NT>(at, part, uniform);
  score(row[0], pick<NT, 0>(dots, w0, mask[0], sample, at[0], row[0].action, k), w0, ask[0], mult);
  score(row[1], pick<NT, 1>(dots, w1, mask[1], sample, at[1], row[1].action, k), w1, ask[1], mult);
}

// fitting is a lane's mask of the customers that fit a vehicle.
#if TILES > 16
template <int NT>
__device__ __forceinline__ Allowed fitting(const Vehicle &v, const Customer *customers, int t) {
  Allowed mask = {0, 0};
#pragma unroll
  for (int T = 0; T < NT; T++)
#pragma unroll
    for (int b = 0; b < 2; b++)
      if (v.fits(customers[8 * T + 2 * t + b])) (T < 16 ? mask.near : mask.far) |= 1u << (T % 16 + 16 * b);
  return mask;
}

// lowest is the lane's first node of a mask, 1 << 20 where it has none.
__device__ __forceinline__ int lowest(u32 mask, int t) {
  const u32 even = mask & 0xffff, odd = mask >> 16;
  const int node = even ? 8 * __builtin_ctz(even) + 2 * t : 1 << 20;
  return odd ? smaller(node, 8 * __builtin_ctz(odd) + 2 * t + 1) : node;
}
#else
template <int NT>
__device__ __forceinline__ u32 fitting(const Vehicle &v, const Customer *customers, int t) {
  u32 mask = 0;
#pragma unroll
  for (int T = 0; T < NT; T++)
#pragma unroll
    for (int b = 0; b < 2; b++)
      if (v.fits(customers[8 * T + 2 * t + b])) mask |= 1u << (T + 16 * b);
  return mask;
}
#endif

#if CONTEXTS > 1
// Fits is what is asked of the customers of an instance, by a lane of a quad.
struct Fits {
  const Customer *customers; // from the lane's first on
  const u32 *leaves;         // what fits a vehicle that leaves, every fourth: Vehicle::leaving
  u32 one, two;              // bits of further depots
  bool bound;                // beside loads, lengths or times bind

  // goes asks all customers for two vehicles, which share what is read of one. The loop stays one:
  // unrolled it would take more registers than there are.
  template <int NT, bool BOUND>
  __device__ __forceinline__ void goes(u32 (&mask)[2], const Going &v0, const Going &v1) const {
    const Customer *c = customers;
#pragma unroll 1
    for (u32 bit = 1; bit < 1u << NT; bit <<= 1, c += 8)
#pragma unroll
      for (int b = 0; b < 2; b++) {
        v0.ask(mask[0], bit << (16 * b), c[b], BOUND);
        v1.ask(mask[1], bit << (16 * b), c[b], BOUND);
      }
  }

  template <int NT>
  __device__ __forceinline__ void operator()(u32 (&mask)[2], const Vehicle &v0, const Vehicle &v1) const {
    mask[0] = mask[1] = 0;
    if (bound)
      goes<NT, true>(mask, v0.going(), v1.going());
    else
      goes<NT, false>(mask, v0.going(), v1.going());
    int which0 = v0.leaving(), which1 = v1.leaving();
    mask[0] = v0.further(which0 < 0 ? mask[0] : leaves[4 * which0], one, two);
    mask[1] = v1.further(which1 < 0 ? mask[1] : leaves[4 * which1], one, two);
  }
};
#endif

// rollout_half is rollout_row (rollout.cu) for rows [16·warp, 16·warp+16) of instance blockIdx_x's
// starts, from blockIdx_y·16·warps on; n <= 8·NT nodes, WIDTH columns, heads of HD.
template <int NT, int HD>
__device__ __forceinline__ void rollout_half(int *actions, int *steps, float *length, float *logProb, float *entropy, const float *proj,
                                             const float *pointer, const float *graph, const float *load, const float *posX, const float *posY,
                                             const Customer *instances, const Control *control, const State *state, u64 seed, u32 purpose, int capacity,
                                             int n, int stride, int starts, int limit, int choice, int begins, float scale, float pointerScale,
                                             const float *biases BY_CONTEXT(const u2 *biasOperands) BY_FAR(char *asked)) {
  int i = blockIdx_x, warp = threadIdx_x >> 5, lane = threadIdx_x & 31, g = lane >> 2, t4 = lane & 3;
  int start = (blockIdx_y * (blockDim_x >> 5) + warp) * 16 + g;
  char *p = (char *)smem;
  char *keys = p; p += 8 * NT * ROW_BYTES;
  char *values = p; p += 8 * NT * ROW_BYTES;
  char *pointers = p; p += 8 * NT * ROW_BYTES;
#if TILES > 16
  // in the card's caches, so that two blocks share a multiprocessor
  char *queries = asked + ((u64)blockIdx_y * gridDim_x + i) * (n * ROW_BYTES);
#else
  char *queries = p; p += n * ROW_BYTES;
#endif
  char *loads = p; p += LOADS * ROW_BYTES;
  float *x = (float *)p; p += 32 * NT;
  float *y = (float *)p; p += 32 * NT;
  Customer *customers = (Customer *)p; p += 8 * NT * sizeof(Customer);
  Allowed(*levels)[4] = (Allowed(*)[4])p; // [LEVELS]: what fits a vehicle of a level, or one that leaves, by lane of a quad
  proj += (u64)i * n * stride;
  fill(keys, proj + WIDTH, stride, n, 8 * NT, 1.0f);
  fill(values, proj + 2 * WIDTH, stride, n, 8 * NT, 1.0f);
  fill(pointers, pointer + (u64)i * n * WIDTH, WIDTH, n, 8 * NT, POINT(pointerScale));
  for (int k = threadIdx_x; k < n * (WIDTH / 8); k += blockDim_x) {
    int j = k / (WIDTH / 8), to = k % (WIDTH / 8);
    *(u4 *)(queries + piece_at(j, to)) = turned_piece(proj + (u64)j * stride, graph + (u64)i * WIDTH, to >> 2, to & 3);
  }
#if CONTEXTS == 1
  for (int k = threadIdx_x; k < CONTEXTS * (WIDTH / 2); k += blockDim_x) {
    int chunk = k >> 4, t = (k >> 2) & 3, c = 32 * chunk + 8 * (k & 3) + 2 * t; // rows follow one another
    ((Half2 *)loads)[k] = half2(load[c], load[c + 1]);
  }
#else
  for (int k = threadIdx_x; k < 4 * WIDTH; k += blockDim_x) { // weights_at, features 2t and 2t+1
    int c = 32 * (k >> 7) + 8 * (k & 3) + (k >> 4 & 7), f = 2 * (k >> 2 & 3);
    ((Half2 *)loads)[k] = half2(f < CONTEXTS ? load[f * WIDTH + c] : 0.0f, f + 1 < CONTEXTS ? load[(f + 1) * WIDTH + c] : 0.0f);
  }
#endif
  for (int j = threadIdx_x; j < 8 * NT; j += blockDim_x) {
    x[j] = j < n ? posX[i * n + j] : 0.0f;
    y[j] = j < n ? posY[i * n + j] : 0.0f;
    customers[j] = customer(instances + i * n, j, n);
  }
#if CONTEXTS == 1
  bool told = true;
  for (int j = lane; j < n; j += 32) told = told && Vehicle::level_tells(customer(instances + i * n, j, n));
  told = ballot(!told) == 0; // every warp asks for itself
  sync();
  for (int k = threadIdx_x; k < 4 * LEVELS; k += blockDim_x) levels[k >> 2][k & 3] = fitting<NT>(Vehicle::reach(k >> 2), customers, k & 3);
#else
  const Shares whole = shares(instances + i * n, capacity);
  bool bound = false;
  for (int j = lane; j < n; j += 32) bound = bound || binds(customer(instances + i * n, j, n), j);
  bound = ballot(bound) != 0; // every warp asks for itself
  sync();
  for (int k = threadIdx_x; k < 4 * Vehicle::LEAVINGS; k += blockDim_x) {
    u32 mask = 0;
    for (int b = 0; b < 2 * NT; b++)
      if (Vehicle::leaves(k >> 2, customers[8 * (b >> 1) + 2 * (k & 3) + (b & 1)], capacity)) mask |= 1u << ((b >> 1) + 16 * (b & 1));
    levels[k >> 2][k & 3] = mask;
  }
  auto bit = [&](int j) { return j > 0 && (j >> 1 & 3) == t4 ? 1u << ((j >> 3) + 16 * (j & 1)) : 0u; };
  const Fits fits = {customers + 2 * t4, &levels[0][t4], bit(FURTHER(1, n)), bit(FURTHER(2, n)), bound};
#endif
  sync();
  Projections in = {shared_at(keys), shared_at(values), shared_at(pointers), queries, loads, 0, 0};
#ifdef BIAS
  in.biases = biases + (u64)i * (n + CONTEXTS) * (16 * ((NT + 1) / 2)) + 4 * t4;
#if CONTEXTS == 1
  in.biasLoad = in.biases + n * (16 * ((NT + 1) / 2));
#else
  in.biasOperands = biasOperands + (u64)i * (64 * ((NT + 1) / 2));
#endif
#endif

  float mult = div_(10.0f, control->temperature);
  u64 index = state->instances + i;
  u32 depot = t4 == 0 ? 1 : 0;
  Row row[2];
#pragma unroll
  for (int r = 0; r < 2; r++) row[r] = begin(KEPT(instances + i * n, customers), start + 8 * r >= starts, n, capacity);
  u64 at[2] = {((u64)i * starts + start) * limit, ((u64)i * starts + start + 8) * limit};
  Words drawn = {};
#pragma unroll 1
  for (int t = 0; t < limit; t++) {
    if (ballot(!row[0].done || !row[1].done) == 0) break;
    choice = opaque(choice);
    Allowed mask[2] = {};
    bool ask[2];
#if CONTEXTS > 1
    fits.operator()<NT>(mask, row[0].vehicle, row[1].vehicle);
#else
    if (told) {
      mask[0] = levels[row[0].vehicle.level()][t4];
      mask[1] = levels[row[1].vehicle.level()][t4];
    } else {
      mask[0] = fitting<NT>(row[0].vehicle, customers, opaque(t4));
      mask[1] = fitting<NT>(row[1].vehicle, customers, opaque(t4));
    }
#endif
#pragma unroll
    for (int r = 0; r < 2; r++) {
#if TILES > 16
      mask[r] = Allowed{row[r].vehicle.allowed(mask[r].near, row[r].served, depot), row[r].vehicle.allowed(mask[r].far, row[r].far, 0)};
      int count = quad_sum(__builtin_popcount(mask[r].near) + __builtin_popcount(mask[r].far));
      row[r].action = quad_min(smaller(lowest(mask[r].near, t4), lowest(mask[r].far, t4) + 128));
#else
      mask[r] = row[r].vehicle.allowed(mask[r], row[r].served, depot);
      int count = quad_sum(__builtin_popcount(mask[r]));
      u32 even = mask[r] & 0xffff, odd = mask[r] >> 16;
      int node = even ? 8 * __builtin_ctz(even) + 2 * t4 : 1 << 20;
      row[r].action = quad_min(odd ? smaller(node, 8 * __builtin_ctz(odd) + 2 * t4 + 1) : node);
#endif
      bool first = begins == FORCED && t == 0;
      ask[r] = asks(row[r], first, count);
      if (first) row[r].action = start + 8 * r + 1;
      if (choice == REPLAY && !row[r].done && (first || ask[r])) row[r].action = actions[at[r] + t];
    }
    // lane parity: which of the quad's two rows this lane draws for
    if (choice == SAMPLE && (t & 3) == 0)
      drawn = philox(seed, index, (u32)(start + 8 * (t4 & 1)) << 16 | (u32)t >> 2, purpose);
    if (ballot(ask[0] || ask[1])) {
      float dots[NT][4];
      u32 low = t & 1 ? drawn.w[1] : drawn.w[0], high = t & 1 ? drawn.w[3] : drawn.w[2];
      float uniform = unit(t & 2 ? high : low);
      const Vehicle &v0 = row[0].vehicle, &v1 = row[1].vehicle;
      // past the last start too
      int from0 = smaller(seen(v0, begins, t, start), n - 1), from1 = smaller(seen(v1, begins, t, start + 8), n - 1);
#if CONTEXTS == 1
      decode<NT, HD>(dots, in, from0, from1, sole(v0.context(capacity)), sole(v1.context(capacity)), mask[0], mask[1], scale);
#else
      decode<NT, HD>(dots, in, from0, from1, Seen{pair_of(v0.context(whole), t4), pair_of(v1.context(whole), t4)}, mask[0], mask[1], scale);
#endif
      advance<NT>(row, dots, mask, ask, choice, uniform, mult);
    }
    move<1, 16>(row, actions, at, t, x, y, customers, capacity, choice);
  }
#pragma unroll
  for (int r = 0; r < 2; r++)
    if (start + 8 * r < starts)
      keep(actions, steps, length, logProb, entropy, row[r], at[r], i * starts + start + 8 * r, limit, choice, begins);
}

// as many warps as hold a start at every customer
#if TILES > 16
#define MOST_THREADS 256
#else
#define MOST_THREADS 224
#endif

#define STARTS(NAME, HD, BLOCKS)                                                                                                \
  KERNEL __launch_bounds__(MOST_THREADS, BLOCKS) NAME(int *actions, int *steps, float *length, float *logProb, float *entropy, const float *proj, \
                                        const float *pointer, const float *graph, const float *load, const float *posX, const float *posY, \
                                        const Customer *instances, const Control *control, const State *state, u64 seed, u32 purpose, int capacity, \
                                        int n, int stride, int starts, int limit, int choice, int begins, float scale, float pointerScale, \
                                        const float *biases BY_CONTEXT(const u2 *biasOperands) BY_FAR(char *asked)) {           \
    rollout_half<TILES, HD>(actions, steps, length, logProb, entropy, proj, pointer, graph, load, posX, posY, instances, control, state, seed, \
                            purpose, capacity, n, stride, starts, limit, choice, begins, scale, pointerScale, biases BY_CONTEXT(biasOperands) BY_FAR(asked));    \
  }

STARTS(rollout_half_16, 16, 2)
STARTS(rollout_half_32, 32, 2)
STARTS(rollout_few_16, 16, 1)
STARTS(rollout_few_32, 32, 1)
