// What the fp16 gradient of the decisions begins with (choices.cuh): the recorded routes are walked
// and their decisions sorted, and the scores that decisions at one node share are tabled.
#include "bf16.cuh"
#include "choices.cuh"
#include "distribution.cuh"
#include "replay.cuh"

__device__ __forceinline__ void or_shared(u32 *p, u32 v) {
  asm volatile("{.reg .u64 t; cvta.to.shared.u64 t, %0; red.shared.or.b32 [t], %1;}" ::"l"(p), "r"(v) : "memory");
}

#if CONTEXTS > 1
#include "half_walk_listed.cuh"
#else
#if TILES > 16
#define WORDS 5
#else
#define WORDS 4
#endif

// Bits are a bit for each node.
struct Bits { u32 w[WORDS]; } __attribute__((aligned(16)));

// Fits is what an instance's rules say of nodes. Where the level of a vehicle tells, it is kept
// (rules.cuh).
struct Fits {
  const Customer *customers;
  const Bits *levels;
  int n;
  bool told;

  __device__ __forceinline__ void ask(u32 (&mask)[WORDS], const Vehicle &v) const {
#pragma unroll
    for (int w = 0; w < WORDS; w++) mask[w] = 0;
    for (int j = 0; j < n; j++)
      if (v.fits(customers[j])) {
#pragma unroll
        for (int w = 0; w < WORDS; w++) mask[w] |= j >> 5 == w ? 1u << (j & 31) : 0;
      }
  }
  __device__ __forceinline__ void operator()(u32 (&mask)[WORDS], const Vehicle &v) const {
    if (!told) return ask(mask, v);
    const u32 *bits = levels[v.level()].w;
    const u4 near = *(const u4 *)bits;
    mask[0] = near.x, mask[1] = near.y, mask[2] = near.z, mask[3] = near.w;
    if constexpr (WORDS > 4) mask[WORDS - 1] = bits[WORDS - 1];
  }
};

// walk_sorted lists the decisions of instance blockIdx_x, at most 128 nodes, or 136 where TILES are
// so many, a thread a start, and walks twice: to count, and to write.
//
//	choices = the decisions in order;  stands[g] = the node of group g
//	counts = how many, groups and tiles filled up
//	present[j] = how many stand at node j;  ups = a power of two that brings gradients near one
//
// Shared memory: LEVELS Bits and starts + 4n + 3 + n·⌈starts/32⌉ words.
KERNEL __launch_bounds__(128) walk_sorted(Choice *choices, int *stands, int *counts, int *present, float *ups, const int *actions, const int *steps,
                                          const float *adv, const Customer *instances, const Control *control, int n, int starts, int limit, int room,
                                          int capacity, int begins, float weight, int bonus, float pointerScale) {
  int i = blockIdx_x, warp = threadIdx_x >> 5, lane = threadIdx_x & 31, warps = blockDim_x >> 5, words = (starts + 31) >> 5;
  Bits *levels = (Bits *)smem;
  Customer *customers = (Customer *)(levels + LEVELS); // [n]
  // [starts + 1]: a start's decisions at the depot, then how many come before
  int *depots = (int *)(customers + n);
  int *from = depots + starts + 1;                     // [n + 1]: where a node's decisions begin
  int *here = from + n + 1;                            // [n]: how many there are
  // [n]: its own start's decision as from this customer, which may stand here later, too
  int *views = here + n;
  float *heaviest = (float *)(views + n);
  // [n][words]: the starts that decide at a customer, once each
  u32 *who = (u32 *)(views + n + 1);
  choices += (u64)i * room;
  stands += (u64)i * (room >> 3);
  actions += (u64)i * starts * limit;
  steps += i * starts;
  adv += i * starts;
  bool told = true;
  for (int j = lane; j < n; j += 32) {
    Customer c = customer(instances + i * n, j, n);
    told = told && Vehicle::level_tells(c);
    customers[j] = c; // every warp the same
  }
  told = ballot(!told) == 0;
  for (int k = threadIdx_x; k < n * words; k += blockDim_x) who[k] = 0;
  for (int j = threadIdx_x; j < n; j += blockDim_x) views[j] = 0;
  sync();
  Fits fits = {customers, levels, n, told};
  if (threadIdx_x < LEVELS) {
    Bits bits;
    fits.ask(bits.w, Vehicle::reach(threadIdx_x));
    levels[threadIdx_x] = bits;
  }
  sync();
  auto follow = [&](int s, auto decide) __attribute__((always_inline)) {
    const Route route = {actions + s * limit, steps[s], begins};
    replay(Alone<WORDS, Fits>(fits, route), route, depart(customers, n, capacity), capacity, decide);
  };
#pragma unroll 1
  for (int s = threadIdx_x; s < starts; s += blockDim_x) {
    int home = 0;
    follow(s, [&](const u32 (&)[WORDS], const Vehicle &v, int, bool view) {
      if (view)
        views[s + 1] = 1;
      else if (v.at())
        or_shared(who + v.at() * words + (s >> 5), 1u << (s & 31));
      else
        home++;
    });
    depots[s] = home;
  }
  sync();
  if (warp == 0) before(depots, starts);
  if (warp == warps - 1) {
    float top = 0;
    for (int s = lane; s < starts; s += 32) {
      top = larger(top, __builtin_fabsf(adv[s]));
      top = larger(top, __builtin_fabsf(entropy_weight(control, bonus, weight, steps[s], begins)));
    }
    top = warp_max(top);
    if (lane == 0) *heaviest = top;
  }
  sync();
  for (int j = threadIdx_x; j < n; j += blockDim_x) {
    int sum = 0;
    for (int w = 0; w < words; w++) sum += __builtin_popcount(who[j * words + w]);
    here[j] = j ? sum + views[j] : depots[starts];
    from[j] = (here[j] + 7) & ~7;
    present[i * PRESENT + j] = here[j];
  }
  sync();
  if (warp == 0) before(from, n);
  sync();
  int all = (from[n] + 15) & ~15;
  if (threadIdx_x == 0) {
    counts[i] = all;
    ups[i] = near_one(*heaviest * div_(10.0f, control->temperature) * pointerScale);
  }
  for (int j = warp; j < n; j += warps) {
    // the last node fills up the tile
    int end = from[j + 1] == from[n] && here[j] ? all : from[j + 1];
    for (int k = from[j] + lane; k < end; k += 32) {
      if ((k & 7) == 0) stands[k >> 3] = j;
      if (k - from[j] >= here[j]) choices[k] = Choice{{1, 0, 0, 0}, 0, 0, 0, j << 16};
    }
  }
#pragma unroll 1
  for (int s = threadIdx_x; s < starts; s += blockDim_x) {
    int home = from[0] + depots[s];
    float wa = adv[s], we = entropy_weight(control, bonus, weight, steps[s], begins);
    follow(s, [&](const u32 (&mask)[WORDS], const Vehicle &v, int a, bool view) {
      int to = home, at = v.at();
      if (view) {
        at = s + 1;
        to = from[at] + here[at] - 1; // behind those who stand there
      } else if (v.at()) {
        const u32 *others = who + v.at() * words;
        to = from[v.at()] + __builtin_popcount(others[s >> 5] & ((1u << (s & 31)) - 1));
        for (int w = 0; w < s >> 5; w++) to += __builtin_popcount(others[w]);
      } else {
        home++;
      }
      u4 rest = {(u32)as_int(sole(v.context(capacity))), (u32)as_int(wa), (u32)as_int(we), (u32)(a | at << 16)};
      if constexpr (WORDS > 4) rest.w |= mask[WORDS - 1] << 8;
      u4 *c = (u4 *)(choices + to);
      c[0] = u4{mask[0], mask[1], mask[2], mask[3]};
      c[1] = rest;
    });
  }
}

#endif

// score_tables: table[cur][table_at(j)] = (node_cur + graph)·key_j·k for head blockIdx_y of
// instance blockIdx_x, and rows from n on the same of the context's weights; zero past n. `wide`
// floats a row. Shared memory: (2n + features)·(hd + 4) floats. A thread makes four by four.
KERNEL __launch_bounds__(256) score_tables(float *tables, const float *proj, const float *graph, const float *load, int n, int stride, int heads, int hd,
                                           int wide, float k) {
  int i = blockIdx_x, h = blockIdx_y, line = hd + 4, d = heads * hd;
  float *queries = smem, *keys = queries + (n + CONTEXTS) * line;
  proj += (u64)i * n * stride + h * hd;
  tables += ((u64)blockIdx_x * heads + h) * (n + CONTEXTS) * wide;
  graph += (u64)i * d + h * hd;
  for (int p = threadIdx_x; p < n * (hd / 4); p += blockDim_x) {
    int j = p / (hd / 4), c = p % (hd / 4) * 4;
    *(float4_ *)(queries + j * line + c) = four(proj + (u64)j * stride + c) + float4_{graph[c], graph[c + 1], graph[c + 2], graph[c + 3]};
    *(float4_ *)(keys + j * line + c) = four(proj + (u64)j * stride + d + c);
  }
#pragma unroll
  for (int f = 0; f < CONTEXTS; f++)
    for (int c = threadIdx_x; c < hd; c += blockDim_x) queries[(n + f) * line + c] = load[f * d + h * hd + c];
  sync();
  int across = wide / 4, rows = (n + CONTEXTS + 3) / 4;
  for (int p = threadIdx_x; p < rows * across; p += blockDim_x) {
    int cur = p / across * 4, j = p % across; // and j + across, ...: lanes read rows side by side
    float sum[4][4] = {};
    int q[4], w[4];
#pragma unroll
    for (int a = 0; a < 4; a++) {
      q[a] = smaller(cur + a, n + CONTEXTS - 1) * line;
      w[a] = smaller(j + a * across, n - 1) * line;
    }
#pragma unroll 1
    for (int c = 0; c < hd; c += 4) {
      float4_ x[4], y[4];
#pragma unroll
      for (int a = 0; a < 4; a++) x[a] = four(queries + q[a] + c), y[a] = four(keys + w[a] + c);
#pragma unroll
      for (int a = 0; a < 4; a++)
#pragma unroll
        for (int b = 0; b < 4; b++) sum[a][b] += x[a].x * y[b].x + x[a].y * y[b].y + x[a].z * y[b].z + x[a].w * y[b].w;
    }
#pragma unroll
    for (int a = 0; a < 4; a++)
      if (cur + a < n + CONTEXTS)
#pragma unroll
        for (int b = 0; b < 4; b++) {
          int to = j + b * across;
          tables[(cur + a) * wide + table_at(to)] = to < n ? sum[a][b] * k : 0.0f;
        }
  }
}
