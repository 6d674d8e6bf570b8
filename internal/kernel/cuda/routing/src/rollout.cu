// Rollouts of one row, an (instance, start), a block: all decode steps in one launch, a warp a
// head.
//
// What a reader could break: every warp decides for itself from the same partial dot products, in
// the same order, so that all hold the same state and take the same branches; one barrier a step is
// enough only because the partial products alternate between two buffers.
#include "decode.cuh"
#include "rules.cuh"

enum { EXTEND = REPLAY + 1 }; // kernel.Extend, which this kernel alone has

// dot is Σ a·b over `count` floats; VEC: both aligned to 16 bytes, count a multiple of four.
template <bool VEC>
__device__ __forceinline__ float dot(const float *a, const float *b, int count) {
  if (VEC) {
    float x = 0, y = 0, z = 0, w = 0;
#pragma unroll 4
    for (int i = 0; i < count; i += 4) {
      float4_ p = four(a + i), q = four(b + i);
      x += p.x * q.x;
      y += p.y * q.y;
      z += p.z * q.z;
      w += p.w * q.w;
    }
    return (x + y) + (z + w);
  }
  float x = 0;
#pragma unroll 4
  for (int i = 0; i < count; i++) x += a[i] * b[i];
  return x;
}

// place copies a matrix of n rows of heads·hd columns into rows of `row` floats, each head padded
// to hp; the padding is zero. VEC: everything is a multiple of four floats and hp = hd.
__device__ __forceinline__ void place(float *dst, int row, int hp, const float *src, int stride, int n, int heads, int hd, bool vec) {
  if (vec) {
    int quads = heads * hd / 4;
#pragma unroll 4
    for (int i = threadIdx_x; i < n * quads; i += blockDim_x) {
      int j = i / quads, c = (i - j * quads) * 4;
      *(float4_ *)(dst + j * row + c) = four(src + (u64)j * stride + c);
    }
    return;
  }
  for (int i = threadIdx_x; i < n * heads * hp; i += blockDim_x) {
    int j = i / (heads * hp), c = i - j * heads * hp, h = c / hp, k = c - h * hp;
    dst[j * row + c] = k < hd ? src[(u64)j * stride + h * hd + k] : 0.0f;
  }
}

// rollout_row builds the route of row r = blockIdx, start s of instance i:
//
//	for t until all are served and the vehicle is back:
//	  a = the only node allowed, or the choice under the policy for the vehicle v
//	  length += |a - v.at|;  logProb += log p(a);  entropy += H(p);  go to a
//
// K·32 nodes at most. Nodes are spread over lanes: with K = 1 lane j is node j; else the allowed
// nodes are listed in order and position p belongs to lane p%32, so that steps cost what is left to
// choose from. SHARED: projections lie in shared memory (the Node part too with `nodes`), else they
// are read where they are.
template <int K, bool SHARED>
__device__ __forceinline__ void rollout_row(int *actions, int *steps, float *length, float *logProb, float *entropy, const float *proj,
                                            const float *pointer, const float *graph, const float *load, const float *posX, const float *posY,
                                            const Customer *instances, const Control *control, const State *state, u64 seed, u32 purpose, int capacity,
                                            int n, int stride, int heads, int hd, int starts, int limit, int choice, int begins, int vec, int nodes,
                                            float scale, float pointerScale, const float *biases, int biasWide) {
  const int np = K * 32;
  constexpr int U = K <= 4 ? K : 1; // past four nodes a lane, arrays live in local memory
  int row = blockIdx_x, i = row / starts, s = row - i * starts;
  int warp = threadIdx_x >> 5, lane = threadIdx_x & 31, warps = blockDim_x >> 5;
  int d = heads * hd, hp = (hd + 3) & ~3, wide = heads * hp;
  // an odd number of 16-byte words: rows start in different banks
  int line = wide + ((wide >> 2) & 1 ? 0 : 4);
  proj += (u64)i * n * stride;
  pointer += (u64)i * n * d;
  graph += (u64)i * d;
  const Biases bias(biases, i, n, biasWide);

  float *p = smem;
  float *q = p; p += wide;
  float *glimpse = p; p += wide;
  float *base = p; p += wide;
  float *weigh = p; p += CONTEXTS * wide;
  float *parts = p; p += 2 * heads * np;
  float *weights = p + warp * np; p += warps * np;
  int *list = (int *)p + warp * np; p += K > 1 ? warps * np : 0;
  float *uniform = p; p += (limit + 3) & ~3;
  float *x = p; p += (n + 3) & ~3;
  float *y = p; p += (n + 3) & ~3;
  Customer *customers = (Customer *)p; p += sizeof(Customer) / 4 * ((n + 3) & ~3);
  float *keys = p, *values = p + n * line, *pointers = p + 2 * n * line, *places = p + 3 * n * line;

  place(base, wide, hp, graph, d, 1, heads, hd, false);
  place(weigh, wide, hp, load, d, CONTEXTS, heads, hd, false);
  if (SHARED) {
    place(keys, line, hp, proj + d, stride, n, heads, hd, vec);
    place(values, line, hp, proj + 2 * d, stride, n, heads, hd, vec);
    place(pointers, line, hp, pointer, d, n, heads, hd, vec);
    if (nodes) place(places, line, hp, proj, stride, n, heads, hd, vec);
  }
  for (int j = threadIdx_x; j < n; j += blockDim_x) {
    x[j] = posX[i * n + j];
    y[j] = posY[i * n + j];
    customers[j] = customer(instances + i * n, j, n);
  }
  for (int c = threadIdx_x; c < wide; c += blockDim_x) q[c] = glimpse[c] = 0;
  if (choice == SAMPLE)
    for (int b = threadIdx_x; b * 4 < limit; b += blockDim_x) {
      Words w = philox(seed, state->instances + i, (u32)s << 16 | (u32)b, purpose);
      for (int k = 0; k < 4; k++) uniform[4 * b + k] = unit(w.w[k]);
    }
  sync();

  actions += (u64)row * limit;
  float mult = div_(10.0f, control->temperature);
  int split = hd < 32 && 32 % hd == 0 ? 32 / hd : 1; // groups of lanes that share a head's columns
  int t = 0, turn = 0;
  Vehicle v = depart(instances + i * n, n, capacity);
  u32 served = 0; // bit k: node lane + 32k
  float len = 0, lp = 0, ent = 0;
#pragma unroll 1
  for (; t < limit && !(t > 0 && v.ended()); t++) {
    choice = opaque(choice);
    int a = s + 1;
    // A warp that lags behind may read what thread 0 has written in this step: the same action.
    // Where it is to be computed there is a barrier between.
    int given = choice == EXTEND ? actions[t] : -1;
    if (choice == EXTEND) syncwarp(); // thread 0 writes it when all of its warp have read it
    if (begins == FORCED && t == 0) {
      if (choice == REPLAY) a = actions[0];
    } else if (given >= 0) {
      a = given;
    } else {
      u32 mine = 0;
      int count = 0, only = 0;
      if (K > 1) syncwarp(); // the list of the step before has been read
#pragma unroll U
      for (int k = 0; k < K; k++) {
        if (k * 32 >= n) continue;
        int j = k * 32 + lane;
        bool ok = j < n && v.allows(j, served >> k & 1, customers);
        u32 votes = ballot(ok);
        if (ok) {
          mine |= 1u << k;
          if (K > 1) list[count + __builtin_popcount(votes & ((1u << lane) - 1))] = j;
        }
        if (votes && count == 0) only = k * 32 + __builtin_ctz(votes);
        count += __builtin_popcount(votes);
      }
      if (count == 1) {
        a = only;
      } else {
        if (K > 1) syncwarp();
        int span = K > 1 ? count : n; // positions in use
        const Context context = v.context(capacity);
        int from = seen(v, begins, t, s);
        // Two buffers by turns of the steps that compute: each of those has one barrier, so a
        // buffer is written again only after all have read it. Counting all steps would not do: one
        // with a single node left has no barrier.
        float *part = parts + (turn & 1) * heads * np;
        turn++;
#pragma unroll 1
        for (int h = warp; h < heads; h += warps) {
          for (int c = lane; c < hd; c += 32) {
            int at = h * hp + c;
            float node = SHARED && nodes ? places[from * line + at] : proj[(u64)from * stride + h * hd + c];
            q[at] = context.times(weigh + at, wide, node + base[at]);
          }
          syncwarp();
          float w[K], top = -INFINITE, sum = 0;
#pragma unroll U
          for (int k = 0; k < K; k++) {
            w[k] = -INFINITE;
            if (k * 32 >= span) continue;
            bool ok = K > 1 ? k * 32 + lane < count : mine & 1;
            if (ok) {
              int j = K > 1 ? list[k * 32 + lane] : lane;
              w[k] = scale * (SHARED ? dot<true>(q + h * hp, keys + j * line + h * hp, hp)
                                     : dot<false>(q + h * hp, proj + (u64)j * stride + d + h * hd, hd));
            }
            top = larger(top, w[k]);
          }
          top = warp_top(top);
#pragma unroll U
          for (int k = 0; k < K; k++) {
            if (k * 32 >= span) continue;
            w[k] = ex2((w[k] - top) * LOG2E);
            sum += w[k];
            weights[k * 32 + lane] = w[k];
          }
          float over = div_(1.0f, warp_sum(sum));
          syncwarp();
          for (int c0 = 0; c0 < hd; c0 += 32) {
            int c = c0 + (split > 1 ? lane % hd : lane), from = split > 1 ? lane / hd : 0;
            float g = 0;
            if (c < hd) {
#pragma unroll 4
              for (int pos = from; pos < span; pos += split) {
                int j = K > 1 ? list[pos] : pos;
                g += weights[pos] * (SHARED ? values[j * line + h * hp + c] : proj[(u64)j * stride + 2 * d + h * hd + c]);
              }
            }
            for (int m = hd; m < 32 && split > 1; m <<= 1) g += shfl_xor(g, m);
            if (c < hd && from == 0) glimpse[h * hp + c] = g * over;
          }
          syncwarp();
#pragma unroll U
          for (int k = 0; k < K; k++) {
            if (k * 32 >= span) continue;
            int j = K > 1 ? list[k * 32 + lane < count ? k * 32 + lane : 0] : lane < n ? lane : 0;
            part[h * np + k * 32 + lane] = SHARED ? dot<true>(glimpse + h * hp, pointers + j * line + h * hp, hp)
                                                  : dot<false>(glimpse + h * hp, pointer + (u64)j * d + h * hd, hd);
          }
        }
        sync();
        float th[K], e[K], top = -INFINITE, sum = 0, mean = 0;
        u32 valid = 0;
#pragma unroll U
        for (int k = 0; k < K; k++) {
          th[k] = 0;
          e[k] = 0;
          if (k * 32 >= span) continue;
          float u = 0;
          for (int h = 0; h < heads; h++) u += part[h * np + k * 32 + lane];
          u *= pointerScale;
          if (bias.table) {
            int at = k * 32 + lane, j = K > 1 ? list[at < count ? at : 0] : lane < n ? lane : 0;
            u += bias(from, v.context(capacity), j);
          }
          th[k] = tanh_(u);
          if (K > 1 ? k * 32 + lane < count : mine & 1) {
            valid |= 1u << k;
            top = larger(top, th[k]);
          }
        }
        top = warp_top(top);
#pragma unroll U
        for (int k = 0; k < K; k++) {
          if (k * 32 >= span) continue;
          float z = (th[k] - top) * mult;
          if (valid >> k & 1) {
            e[k] = ex2(z * LOG2E);
            sum += e[k];
            mean += e[k] * z;
          }
        }
        sum = warp_sum(sum);
        mean = warp_sum(mean);
        int pick = -1; // position of the choice
        if (choice == SAMPLE) {
          float edge = uniform[t] * sum, before = 0;
#pragma unroll U
          for (int k = 0; k < K; k++) {
            if (k * 32 >= span || pick >= 0) continue;
            float run = e[k];
            for (int m = 1; m < 32; m <<= 1) {
              float low = shfl_up(run, m);
              if (lane >= m) run += low;
            }
            run += before;
            u32 past = ballot((valid >> k & 1) && e[k] > 0 && run > edge);
            if (past) pick = k * 32 + __builtin_ctz(past);
            before = shfl(run, 31);
          }
          if (pick < 0) // rounding left none: the last allowed
#pragma unroll U
            for (int k = 0; k < K; k++) {
              if (k * 32 >= span) continue;
              u32 votes = ballot(valid >> k & 1);
              if (votes) pick = k * 32 + 31 - __builtin_clz(votes);
            }
        } else {
          int wanted = choice == REPLAY ? actions[t] : 0;
#pragma unroll U
          for (int k = 0; k < K; k++) {
            if (k * 32 >= span || pick >= 0) continue;
            int at = k * 32 + lane, j = K > 1 ? list[at < count ? at : 0] : lane;
            u32 votes = ballot((valid >> k & 1) && (choice != REPLAY ? th[k] == top : j == wanted));
            if (votes) pick = k * 32 + __builtin_ctz(votes);
          }
          if (pick < 0) pick = 0; // a recorded action that the rules forbid
        }
        float z = 0;
#pragma unroll U
        for (int k = 0; k < K; k++)
          if (pick >> 5 == k) z = th[k];
        z = (shfl(z, pick & 31) - top) * mult;
        float logSum = logf_(sum);
        lp += z - logSum;
        ent += logSum - div_(mean, sum);
        a = K > 1 ? list[pick] : pick;
        if (choice == REPLAY) a = actions[t];
      }
    }
    len += leg(x, y, FROM(v, a), v.to(a));
    if (choice != REPLAY && threadIdx_x == 0) actions[t] = a;
    v.move(a, customers[a], capacity);
    if ((a & 31) == lane && SERVED(v, a)) served |= 1u << (a >> 5); // the depot's bit is never asked
  }
  if (choice != REPLAY)
    for (int k = t + threadIdx_x; k < limit; k += blockDim_x) actions[k] = 0;
  if (threadIdx_x == 0) {
    steps[row] = t;
    length[row] = len;
    logProb[row] = lp;
    entropy[row] = div_(ent, scored(t, begins));
  }
}

#define ROW(NAME, K, SHARED)                                                                                                     \
  KERNEL __launch_bounds__(256) NAME(int *actions, int *steps, float *length, float *logProb, float *entropy, const float *proj,  \
                                     const float *pointer, const float *graph, const float *load, const float *posX, const float *posY, \
                                     const Customer *instances, const Control *control, const State *state, u64 seed, u32 purpose, int capacity, \
                                     int n, int stride, int heads, int hd, int starts, int limit, int choice, int begins, int vec, \
                                     int nodes, float scale, float pointerScale, const float *biases, int biasWide) {             \
    rollout_row<K, SHARED>(actions, steps, length, logProb, entropy, proj, pointer, graph, load, posX, posY, instances, control, state, seed, \
                           purpose, capacity, n, stride, heads, hd, starts, limit, choice, begins, vec, nodes, scale, pointerScale, biases, \
                           biasWide);                                                                                            \
  }

ROW(rollout_row_32, 1, true)
ROW(rollout_row_128, 4, true)
ROW(rollout_row_1024, 32, true)
ROW(rollout_row_far_128, 4, false)
ROW(rollout_row_far_1024, 32, false)
