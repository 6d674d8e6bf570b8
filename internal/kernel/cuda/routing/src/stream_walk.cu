// What the gradient of the decisions begins with (choices.cuh), with any number of nodes: the
// recorded routes are walked, a warp or a thread a start, and their decisions sorted by the node
// that they are made at.
#include "sorted.cuh"
#include "stream_grad.cuh"

// Fits is what an instance's rules say of nodes, for a warp that follows a start together. levels
// has what fits a vehicle of each level, a row of words each, null where a level does not tell
// (rules.cuh).
struct Fits {
  const Customer *customers;
  const u32 *levels;
  int n;

  __device__ __forceinline__ int words(int s) const { return smaller(32, (n + 31) / 32 - 32 * s); }
  __device__ __forceinline__ bool has(int s) const { return (int)(threadIdx_x & 31) < words(s); }
  __device__ __forceinline__ u32 operator()(int s, const Vehicle &v) const {
    const int lane = threadIdx_x & 31;
    if (levels) return has(s) ? levels[v.level() * ((n + 31) / 32) + 32 * s + lane] : 0;
    u32 mine = 0;
#pragma unroll 1
    for (int w = 0; w < words(s); w++) {
      const int j = 1024 * s + 32 * w + lane;
      const u32 fit = ballot(j < n && v.fits(customers[j < n ? j : 0]));
      if (lane == w) mine = fit;
    }
    return mine;
  }
};

#if CONTEXTS == 1
// FitsAlone is the same for one thread, which has all words. A row of levels has `pitch` words.
template <int WORDS> struct FitsAlone {
  const Customer *customers;
  const u32 *levels;
  int n, pitch;

  __device__ __forceinline__ void operator()(u32 (&mask)[WORDS], const Vehicle &v) const {
    const u32 *row = levels + v.level() * pitch;
#pragma unroll
    for (int w = 0; w < WORDS; w++) {
      mask[w] = 0;
      if (w >= (n + 31) / 32) continue;
      if (levels)
        mask[w] = row[w];
      else
#pragma unroll 1
        for (int j = 32 * w; j < smaller(32 * w + 32, n); j++) mask[w] |= (u32)v.fits(customers[j]) << (j & 31);
    }
  }
};
#endif

// walk_stream lists the decisions of instance blockIdx_x and walks twice: to count, and to write.
//
//	taken = the decisions in order, masks what each was allowed;  stands = the node of each
//	counts = how many, tiles filled up;  present[j] = how many stand at node j
//	ups = a power of two that brings gradients near one
//
// Shared memory: the customers, then starts + 4n + 3 + n·⌈starts/32⌉ words, LEVELS·⌈n/32⌉ of what
// fits, and starts + 1 more for each further depot. A start decides once at a customer, and any
// number of times at a depot. ALONE, a thread follows a start and holds SPAN words of masks, else a
// warp SPAN a lane.
template <int SPAN, bool ALONE>
__device__ __forceinline__ void walk_stream(Taken *taken, u32 *masks, int *stands, int *counts, int *present, float *ups, const int *actions,
                                            const int *steps, const float *adv, const Customer *instances, const Control *control, int n, int starts,
                                            int limit, int room, int capacity, int begins, float weight, int bonus, float pointerScale) {
  const int i = blockIdx_x, lane = threadIdx_x & 31, warp = threadIdx_x >> 5, warps = blockDim_x >> 5, line = mask_words(n), own = (n + 31) / 32;
  const int pitch = ALONE ? own | 1 : own, first = ALONE ? threadIdx_x : warp, step = ALONE ? blockDim_x : warps;
  const bool one = ALONE || lane == 0; // of those who follow a start
  Customer *customers = (Customer *)smem;
  const Sorted<1> sorted((int *)(customers + n), n, starts);
  u32 *levels = (u32 *)sorted.end(); // [LEVELS][pitch]: what fits
  taken += (u64)i * room;
  masks += (u64)i * room * line;
  stands += (u64)i * room;
  actions += (u64)i * starts * limit;
  steps += i * starts;
  const Loss loss = {steps, adv + i * starts, control, begins, bonus, weight};
  for (int j = threadIdx_x; j < n; j += blockDim_x) customers[j] = customer(instances + (u64)i * n, j, n);
  sorted.clear();
  bool told = true;
  for (int j = lane; j < n; j += 32) told = told && Vehicle::level_tells(customer(instances + (u64)i * n, j, n));
  told = ballot(!told) == 0; // every warp asks for itself
  sync();
  if (told)
    for (int k = warp; k < LEVELS * own; k += warps) {
      const int j = 32 * (k % own) + lane;
      const u32 fit = ballot(j < n && Vehicle::reach(k / own).fits(customers[j < n ? j : 0]));
      if (lane == 0) levels[k / own * pitch + k % own] = fit;
    }
  else
    levels = 0;
  sync();
  auto follow = [&](int s, auto decide) INLINE {
    const Route route = {actions + s * limit, steps[s], begins};
    const Vehicle v = depart(customers, n, capacity);
#if CONTEXTS == 1
    if constexpr (ALONE) {
      const FitsAlone<SPAN> fits = {customers, levels, n, pitch};
      return replay(Alone<SPAN, FitsAlone<SPAN>>(fits, route), route, v, capacity, decide);
    }
#endif
    const Fits fits = {customers, levels, n};
    if constexpr (!ALONE) replay(Shared<SPAN, Fits>(fits), route, v, capacity, decide);
  };
#pragma unroll 1
  for (int s = first; s < starts; s += step) {
    int homes[HOMES] = {};
    follow(s, [&](const u32 (&)[SPAN], const Vehicle &v, int, bool view) { sorted.note(homes, s, v, view, one); });
    sorted.noted(homes, s, one);
  }
  const int all = sorted.arrange(present + (u64)i * n, loss);
  if (threadIdx_x == 0) {
    counts[i] = all;
    ups[i] = sorted.up(control, pointerScale);
  }
  for (int j = warp; j < n; j += warps) {
    const int end = sorted.last(j, all);
    for (int k = sorted.from[j] + lane; k < end; k += 32) stands[k] = j;
    for (int k = sorted.from[j] + sorted.here[j]; k < end; k++) { // what weighs nothing is allowed the depot
      if (lane == 0) taken[k] = Taken{};
      for (int w = lane; w < line; w += 32) masks[(u64)k * line + w] = w == 0;
    }
  }
#pragma unroll 1
  for (int s = first; s < starts; s += step) {
    int homes[HOMES];
    sorted.begin(homes, s);
    const float wa = loss.of_choice(s), we = loss.of_entropy(s);
    follow(s, [&](const u32 (&mask)[SPAN], const Vehicle &v, int a, bool view) {
      const int to = sorted.place(homes, s, v, view);
      if (one) {
        Taken c = {};
        const Context seen = v.context(capacity);
#pragma unroll
        for (int f = 0; f < CONTEXTS; f++) c.seen[f] = seen.part[f];
        c.wa = wa, c.we = we, c.action = a;
        taken[to] = c;
      }
      if constexpr (ALONE) {
#pragma unroll
        for (int w = 0; w < SPAN; w += 4)
          if (w < line) *(u4 *)(masks + (u64)to * line + w) = u4{mask[w], mask[w + 1], mask[w + 2], mask[w + 3]};
        return;
      }
#pragma unroll
      for (int w = 0; w < SPAN; w++)
        if (32 * w + lane < line) masks[(u64)to * line + 32 * w + lane] = 32 * w + lane < own ? mask[w] : 0;
    });
  }
}

#define WALK(NAME, SPAN, ALONE, THREADS)                                                                                            \
  KERNEL __launch_bounds__(THREADS) NAME(Taken *taken, u32 *masks, int *stands, int *counts, int *present, float *ups, const int *actions, \
                                     const int *steps, const float *adv, const Customer *instances, const Control *control, int n,  \
                                     int starts, int limit, int room, int capacity, int begins, float weight, int bonus,            \
                                     float pointerScale) {                                                                          \
    walk_stream<SPAN, ALONE>(taken, masks, stands, counts, present, ups, actions, steps, adv, instances, control, n, starts, limit, room, capacity, \
                      begins, weight, bonus, pointerScale);                                                                         \
  }

WALK(walk_stream_1024, 1, false, 1024)
WALK(walk_stream_4096, 4, false, 1024)
#if CONTEXTS == 1
WALK(walk_alone_256, 8, true, 256)
WALK(walk_alone_512, 16, true, 256)
WALK(walk_alone_1024, 32, true, 256)
#endif
