// What the fp16 gradient of the decisions begins with (choices.cuh): the recorded routes are walked
// and their decisions sorted, and the scores that decisions at one node share are tabled.
#include "bf16.cuh"
#include "choices.cuh"
#include "distribution.cuh"
#include "sorted.cuh"

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
  const int i = blockIdx_x, warp = threadIdx_x >> 5, lane = threadIdx_x & 31, warps = blockDim_x >> 5;
  Bits *levels = (Bits *)smem;
  Customer *customers = (Customer *)(levels + LEVELS); // [n]
  const Sorted<8> sorted((int *)(customers + n), n, starts);
  choices += (u64)i * room;
  stands += (u64)i * (room >> 3);
  actions += (u64)i * starts * limit;
  steps += i * starts;
  const Loss loss = {steps, adv + i * starts, control, begins, bonus, weight};
  bool told = true;
  for (int j = lane; j < n; j += 32) {
    Customer c = customer(instances + i * n, j, n);
    told = told && Vehicle::level_tells(c);
    customers[j] = c; // every warp the same
  }
  told = ballot(!told) == 0;
  sorted.clear();
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
    int homes[HOMES] = {};
    follow(s, [&](const u32 (&)[WORDS], const Vehicle &v, int, bool view) { sorted.note(homes, s, v, view, true); });
    sorted.noted(homes, s, true);
  }
  const int all = sorted.arrange(present + i * PRESENT, loss);
  if (threadIdx_x == 0) {
    counts[i] = all;
    ups[i] = sorted.up(control, pointerScale);
  }
  for (int j = warp; j < n; j += warps)
    for (int k = sorted.from[j] + lane; k < sorted.last(j, all); k += 32) {
      if ((k & 7) == 0) stands[k >> 3] = j;
      if (k - sorted.from[j] >= sorted.here[j]) choices[k] = Choice{{1, 0, 0, 0}, 0, 0, 0, j << 16};
    }
#pragma unroll 1
  for (int s = threadIdx_x; s < starts; s += blockDim_x) {
    int homes[HOMES];
    sorted.begin(homes, s);
    const float wa = loss.of_choice(s), we = loss.of_entropy(s);
    follow(s, [&](const u32 (&mask)[WORDS], const Vehicle &v, int a, bool view) {
      u4 rest = {(u32)as_int(sole(v.context(capacity))), (u32)as_int(wa), (u32)as_int(we), (u32)(a | (view ? s + 1 : v.at()) << 16)};
      if constexpr (WORDS > 4) rest.w |= mask[WORDS - 1] << 8;
      u4 *c = (u4 *)(choices + sorted.place(homes, s, v, view));
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
