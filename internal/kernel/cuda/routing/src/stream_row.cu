// Rollouts of one row, an (instance, start), a block, with any number of nodes: a head is a warp's
// or several warps', and the instance's keys, values and pointer keys are read as rows of fp16
// numbers from the card's caches, of the allowed nodes alone.
//
// What a reader could break: every thread holds the same vehicle, and all take the same branches;
// what one step leaves in shared memory is overwritten a barrier after its last reader.
#include "stream.cuh"

enum { EXTEND = REPLAY + 1 }; // kernel.Extend

__device__ __forceinline__ u4 eight16(const Half *from) {
  u4 v;
  asm("ld.global.nc.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(from));
  return v;
}

// apart16 takes eight fp16 numbers apart.
__device__ __forceinline__ void apart16(float (&to)[8], const u4 &v) {
#pragma unroll
  for (int e = 0; e < 4; e++) {
    const float2_ x = floats(v[e]);
    to[2 * e] = x.x, to[2 * e + 1] = x.y;
  }
}

// row_stream is rollout_row (rollout.cu) with r for 1 - 2·tanh as in half.cuh; packed has an
// instance's queries, keys, values and pointer keys as rows.
//
// Shared memory, in words: WIDTH of the context's weights each, WIDTH of the glimpse, 96 for
// reductions, HD + 2 a warp, the customers, 2n positions, n of r, ⌈n/32⌉ of served, of allowed and
// of sums.
template <int HD, int AHEAD>
__device__ __forceinline__ void row_stream(int *actions, int *steps, float *length, float *logProb, float *entropy, const char *packed,
                                           const float *load, const float *posX, const float *posY, const Customer *instances, const Control *control,
                                           const State *state, u64 seed, u32 purpose, int capacity, int n, int blocks, int starts, int limit,
                                           int choice, int begins, float scale, const float *biases, int wide) {
  const int row = blockIdx_x, i = row / starts, s = row - i * starts, tid = threadIdx_x, warp = tid >> 5, lane = tid & 31;
  constexpr int HEADS = WIDTH / HD, L = HD / 8, SPREAD = 32 / L; // lanes of a node, nodes of a warp
  const int THREADS = blockDim_x, WARPS = THREADS >> 5, parts = WARPS / HEADS, head = warp % HEADS, part = warp / HEADS;
  const int words = (n + 31) / 32;
  float *p = smem;
  float *weigh = p; p += CONTEXTS * WIDTH;
  float *glimpse = p; p += WIDTH;
  float *high = p; p += 32;
  float2_ *sides = (float2_ *)p; p += 64;
  float *merged = p; p += WARPS * (HD + 2);
  Customer *customers = (Customer *)p; p += ((n + 3) & ~3) * (sizeof(Customer) / 4);
  float *x = p; p += n;
  float *y = p; p += n;
  float *r = p; p += n;
  u32 *served = (u32 *)p; p += words;
  u32 *allowed = (u32 *)p; p += words;
  float *sums = p; p += words;
  const u64 each = (u64)blocks * (PACKED_BLOCK / 2);
  const Half *queries = (const Half *)packed + (u64)i * 4 * each + head * HD + 8 * (lane % L), *keys = queries + each, *values = queries + 2 * each;
  const Half *pointers = (const Half *)packed + (u64)i * 4 * each + 3 * each;
  for (int j = tid; j < n; j += THREADS) {
    x[j] = posX[i * n + j];
    y[j] = posY[i * n + j];
    customers[j] = customer(instances + (u64)i * n, j, n);
  }
  for (int w = tid; w < words; w += THREADS) served[w] = 0;
  for (int c = tid; c < CONTEXTS * WIDTH; c += THREADS) weigh[c] = load[c];
  if (biases) biases += (u64)i * (n + CONTEXTS) * wide;
  actions += (u64)row * limit;
  const float mult = div_(10.0f, control->temperature), k = 2 * LOG2E * mult, k2 = scale * LOG2E;
  int t = 0;
  Vehicle v = depart(instances + (u64)i * n, n, capacity);
  float len = 0, lp = 0, ent = 0;
  Words drawn = {};
#pragma unroll 1
  for (; t < limit && !(t > 0 && v.ended()); t++) {
    choice = opaque(choice);
    if (choice == SAMPLE && (t & 3) == 0) drawn = philox(seed, state->instances + i, (u32)s << 16 | (u32)t >> 2, purpose);
    int a = s + 1;
    const int given = choice == EXTEND ? actions[t] : -1;
    sync(); // what the step before left has been read, and the bit it served is there
    if (begins == FORCED && t == 0) {
      if (choice == REPLAY) a = actions[0];
    } else if (given >= 0) {
      a = given;
    } else {
      for (int w = warp; w < words; w += WARPS) {
        const int j = 32 * w + lane;
        const u32 votes = ballot(j < n && v.allows(j < n ? j : 0, served[w] >> lane & 1, customers));
        if (lane == 0) allowed[w] = votes;
      }
      sync();
      int count = 0, only = 1 << 20;
      for (int w = lane; w < words; w += 32) {
        count += __builtin_popcount(allowed[w]);
        if (allowed[w]) only = smaller(only, 32 * w + __builtin_ctz(allowed[w]));
      }
      count = warp_count(count), only = -redux_max(-only);
      if (count == 1) {
        a = only;
      } else {
        const Context context = v.context(capacity);
        const int from = seen(v, begins, t, s);
        float q[8], out[8] = {}, sum = 0, top = -1e30f;
        apart16(q, eight16(queries + (u64)from * WIDTH));
#pragma unroll
        for (int c = 0; c < 8; c++) q[c] = context.times(weigh + head * HD + 8 * (lane % L) + c, WIDTH, q[c]) * k2;
        // L lanes have a node's columns, and AHEAD of a lane's nodes are under way.
#pragma unroll 1
        for (int j0 = part * SPREAD + lane / L; j0 - lane / L < n; j0 += AHEAD * parts * SPREAD) {
          u4 key[AHEAD], value[AHEAD];
          bool ok[AHEAD];
#pragma unroll
          for (int e = 0; e < AHEAD; e++) {
            const int j = j0 + e * parts * SPREAD;
            ok[e] = j < n && allowed[j >> 5] >> (j & 31) & 1;
            key[e] = value[e] = u4{0, 0, 0, 0};
            if (ok[e]) key[e] = eight16(keys + (u64)j * WIDTH), value[e] = eight16(values + (u64)j * WIDTH);
          }
          float z[AHEAD], most = top;
#pragma unroll
          for (int e = 0; e < AHEAD; e++) {
            float y[8];
            apart16(y, key[e]);
            z[e] = 0;
#pragma unroll
            for (int c = 0; c < 8; c++) z[e] = fma_(q[c], y[c], z[e]);
#pragma unroll
            for (int m = 1; m < L; m <<= 1) z[e] += shfl_xor(z[e], m);
            if (ok[e]) most = max_(most, z[e]);
          }
          const float less = ex2(top - most);
          top = most;
          sum *= less;
#pragma unroll
          for (int c = 0; c < 8; c++) out[c] *= less;
#pragma unroll
          for (int e = 0; e < AHEAD; e++) {
            const float weight = ok[e] ? ex2(z[e] - top) : 0.0f;
            float y[8];
            apart16(y, value[e]);
            sum += weight;
#pragma unroll
            for (int c = 0; c < 8; c++) out[c] = fma_(weight, y[c], out[c]);
          }
        }
        {
          float *own = merged + warp * (HD + 2);
          const float most = warp_max(top), by = ex2(top - most);
          sum *= by;
#pragma unroll
          for (int m = L; m < 32; m <<= 1) {
            sum += shfl_xor(sum, m);
          }
#pragma unroll
          for (int c = 0; c < 8; c++) {
            out[c] *= by;
#pragma unroll
            for (int m = L; m < 32; m <<= 1) out[c] += shfl_xor(out[c], m);
            if (lane < L) own[8 * lane + c] = out[c];
          }
          if (lane == 0) own[HD] = most, own[HD + 1] = sum;
        }
        sync();
        for (int c = tid; c < WIDTH; c += THREADS) { // what the warps of a head have
          const float *own = merged + c / HD * (HD + 2);
          float most = own[HD], all = 0, value = 0;
          for (int e = 1; e < parts; e++) most = max_(most, own[e * HEADS * (HD + 2) + HD]);
          for (int e = 0; e < parts; e++) {
            const float *one = own + e * HEADS * (HD + 2);
            const float by = ex2(one[HD] - most);
            all = fma_(by, one[HD + 1], all), value = fma_(by, one[c % HD], value);
          }
          glimpse[c] = value * rcp_fast(all);
        }
        sync();
        // Eight lanes a node: r of half.cuh, NOWHERE where it is forbidden.
        float least = NOWHERE, g[16];
        const int eighth = 8 * (lane & 7);
#pragma unroll
        for (int c = 0; c < 8; c++) g[c] = glimpse[eighth + c], g[8 + c] = glimpse[64 + eighth + c];
#pragma unroll 1
        for (int j0 = 4 * warp; j0 < n; j0 += 2 * AHEAD * WARPS) {
          u4 low[AHEAD / 2], high[AHEAD / 2];
          bool ok[AHEAD / 2];
#pragma unroll
          for (int e = 0; e < AHEAD / 2; e++) {
            const int j = j0 + 4 * WARPS * e + (lane >> 3);
            ok[e] = j < n && allowed[j >> 5] >> (j & 31) & 1;
            low[e] = high[e] = u4{0, 0, 0, 0};
            if (ok[e]) low[e] = eight16(pointers + (u64)j * WIDTH + eighth), high[e] = eight16(pointers + (u64)j * WIDTH + 64 + eighth);
          }
#pragma unroll
          for (int e = 0; e < AHEAD / 2; e++) {
            const int j = j0 + 4 * WARPS * e + (lane >> 3);
            float y[8], u = 0;
            apart16(y, low[e]);
#pragma unroll
            for (int c = 0; c < 8; c++) u = fma_(g[c], y[c], u);
            apart16(y, high[e]);
#pragma unroll
            for (int c = 0; c < 8; c++) u = fma_(g[8 + c], y[c], u);
            u += shfl_xor(u, 1), u += shfl_xor(u, 2), u += shfl_xor(u, 4);
            if (biases && ok[e]) {
              const int at = table_at(j);
              u += biases[(u64)from * wide + at];
#pragma unroll
              for (int f = 0; f < CONTEXTS; f++) u = fma_(context.part[f], biases[(u64)(n + f) * wide + at], u);
            }
            u = ok[e] ? rcp_fast(ex2(u) + 1.0f) : NOWHERE;
            if (j < n && (lane & 7) == 0) r[j] = u;
            least = min_(least, u);
          }
        }
        least = -warp_max(-least);
        if (lane == 0) high[warp] = least;
        sync();
        for (int w = 0; w < WARPS; w++) least = min_(least, high[w]);
        const float off = least * k;
        // Sums by words of 32 nodes, in the order of nodes.
        float mine = 0, mean = 0;
        for (int w = warp; w < words; w += WARPS) {
          const int j = 32 * w + lane;
          const float z = fma_(j < n ? r[j] : NOWHERE, -k, off), e = ex2(z);
          const float whole = warp_sum(e);
          mine += whole;
          mean = fma_(e, z, mean);
          if (lane == 0) sums[w] = whole;
        }
        mean = warp_sum(mean);
        if (lane == 0) sides[warp] = float2_{mine, mean};
        sync();
        float total = 0, means = 0;
        for (int w = 0; w < WARPS; w++) total += sides[w].x, means += sides[w].y;
        // Every warp finds the choice for itself.
        if (choice == SAMPLE) {
          const u32 low = t & 1 ? drawn.w[1] : drawn.w[0], upper = t & 1 ? drawn.w[3] : drawn.w[2];
          float run = 0, base = 0;
          for (int w = 0; w < words; w++) run += sums[w];
          float edge = unit(t & 2 ? upper : low) * run;
          run = 0;
          int found = -1, last = 0;
          for (int w = 0; w < words; w++) {
            if (sums[w] > 0) last = w;
            if (found < 0 && sums[w] > 0 && run + sums[w] > edge) found = w, base = run;
            run += sums[w];
          }
          if (found < 0) found = last, base = 0, edge = INFINITE; // rounding left none
          const int j = 32 * found + lane;
          const float e = ex2(fma_(j < n ? r[j] : NOWHERE, -k, off));
          float upTo = e;
#pragma unroll
          for (int m = 1; m < 32; m <<= 1) {
            const float before = shfl_up(upTo, m);
            if (lane >= m) upTo += before;
          }
          const u32 past = ballot(e > 0 && base + upTo > edge), some = ballot(e > 0);
          a = 32 * found + (past ? __builtin_ctz(past) : some ? 31 - __builtin_clz(some) : 0);
        } else if (choice == REPLAY) {
          a = actions[t];
        } else {
          int best = 1 << 20;
          for (int j = lane; j < n; j += 32)
            if (r[j] == least) best = smaller(best, j);
          a = -redux_max(-best);
        }
        const float logSum = logf_(total);
        lp += 2 * mult * (least - r[a]) - logSum;
        ent += logSum - LN2 * means * rcp_fast(total);
      }
    }
    len += leg(x, y, FROM(v, a), v.to(a));
    if (tid == 0) {
      if (choice != REPLAY) actions[t] = a;
      if (SERVED(v, a)) served[a >> 5] |= 1u << (a & 31); // the depot's bit is never asked
    }
    v.move(a, customers[a], capacity);
  }
  if (choice != REPLAY)
    for (int e = t + tid; e < limit; e += THREADS) actions[e] = 0;
  if (tid == 0) {
    steps[row] = t;
    length[row] = len;
    logProb[row] = lp;
    entropy[row] = div_(ent, scored(t, begins));
  }
}

#define ROW(NAME, HD, AHEAD, THREADS, BLOCKS)                                                                                          \
  KERNEL __launch_bounds__(THREADS, BLOCKS) NAME(int *actions, int *steps, float *length, float *logProb, float *entropy, const char *packed, \
                                                 const float *load, const float *posX, const float *posY, const Customer *instances, \
                                                 const Control *control, const State *state, u64 seed, u32 purpose, int capacity, int n, \
                                                 int blocks, int starts, int limit, int choice, int begins, float scale,         \
                                                 const float *biases, int wide) {                                                 \
    row_stream<HD, AHEAD>(actions, steps, length, logProb, entropy, packed, load, posX, posY, instances, control, state, seed, purpose, capacity, n, \
                   blocks, starts, limit, choice, begins, scale, biases, wide);                                                   \
  }

// Many rows share a multiprocessor; of few each has all the warps that it can use.
ROW(row_stream_16, 16, 4, 256, 3)
ROW(row_stream_32, 32, 4, 256, 3)
ROW(row_few_16, 16, 4, 512, 1)
ROW(row_few_32, 32, 4, 512, 1)
ROW(row_ahead_32, 32, 8, 128, 4)
