// walk_sorted of half_walk.cu for rule sets whose vehicles have no levels: what fits is asked of
// every node at every step, so a whole warp follows a start, once, and lists what it decides; then
// the list is sorted.
#pragma once
#include "choices.cuh"
#include "distribution.cuh"
#include "half.cuh"
#include "replay.cuh"

// Fits asks the lanes of a warp which nodes fit a vehicle, 32 at a time.
struct Fits {
  const Customer *customers;
  int n, capacity;
  bool bound; // beside loads, lengths or times bind
  int which;
  Going going;

  __device__ __forceinline__ void ask(const Vehicle &v) { which = v.leaving(), going = v.going(); }
  __device__ __forceinline__ bool has(int w) const { return 32 * w < n; } // the same in all lanes
  __device__ __forceinline__ u32 operator()(int w, const Vehicle &v) const {
    const int j = 32 * w + (threadIdx_x & 31), one = FURTHER(1, n), two = FURTHER(2, n);
    const Customer &c = customers[j < n ? j : 0];
    u32 mine = which < 0 ? 0 : Vehicle::leaves(which, c, capacity);
    if (which < 0) going.ask(mine, 1, c, bound);
    return v.further(ballot(j < n && mine), one >> 5 == w ? 1u << (one & 31) : 0, two >> 5 == w ? 1u << (two & 31) : 0);
  }
  __device__ __forceinline__ const Customer &node(int a) const { return customers[a]; }
};

// walk_sorted lists the decisions of instance blockIdx_x, at most 128 nodes, and sorts them.
//
//	listed = the decisions, start by start, `limit` places each
//	choices = those in order;  stands[g] = the node of group g
//	counts = how many, groups and tiles filled up
//	present[j] = how many stand at node j;  ups = a power of two that brings gradients near one
//
// Shared memory: the customers, then 2·starts + 3n + 3 + n·⌈starts/32⌉ words, and starts + 1 more
// for each further depot. A start decides once at a customer, any number of times at a depot.
KERNEL __launch_bounds__(512, 2) walk_sorted(Choice *choices, Choice *listed, int *stands, int *counts, int *present, float *ups, const int *actions,
                                             const int *steps, const float *adv, const Customer *instances, const Control *control, int n, int starts,
                                             int limit, int room, int capacity, int begins, float weight, int bonus, float pointerScale) {
  const int i = blockIdx_x, warp = threadIdx_x >> 5, lane = threadIdx_x & 31, warps = blockDim_x >> 5, words = (starts + 31) >> 5;
  Customer *customers = (Customer *)smem; // [n]
  int *depots = (int *)(customers + n);   // [starts + 1]: a start's decisions at the depot, then how many come before
#ifdef DEPOTS
  int *own = depots + DEPOTS * (starts + 1); // behind one such list per depot
#else
  int *own = depots + starts + 1;         // [starts]: a start's decisions
#endif
  int *from = own + starts;               // [n + 1]: where a node's decisions begin
  int *here = from + n + 1;               // [n]: how many there are
  int *views = here + n;                  // [n]: its own start's decision as from this customer
  float *heaviest = (float *)(views + n);
  u32 *who = (u32 *)(views + n + 1);      // [n][words]: the starts that decide at a customer, once each
  choices += (u64)i * room;
  listed += (u64)i * starts * limit;
  stands += (u64)i * (room >> 3);
  actions += (u64)i * starts * limit;
  steps += i * starts;
  adv += i * starts;
  for (int j = threadIdx_x; j < n; j += blockDim_x) {
    customers[j] = customer(instances + i * n, j, n);
    views[j] = 0;
  }
  for (int k = threadIdx_x; k < n * words; k += blockDim_x) who[k] = 0;
  sync();
  bool bound = false;
  for (int j = lane; j < n; j += 32) bound = bound || binds(customers[j], j);
  bound = ballot(bound) != 0; // every warp asks for itself
#pragma unroll 1
  for (int s = warp; s < starts; s += warps) {
#ifdef DEPOTS
    int homes[DEPOTS] = {}, count = 0;
#else
    int home = 0, count = 0;
#endif
    const float wa = adv[s], we = entropy_weight(control, bonus, weight, steps[s], begins);
    u4 *to = (u4 *)(listed + s * limit) + lane;
    const Route route = {actions + s * limit, steps[s], begins};
    replay(Warp<4, Fits>(Fits{customers, n, capacity, bound}), route, depart(customers, n, capacity), capacity, [&](const u32 (&mask)[4], const Vehicle &v, int a, bool view) {
      const int at = view ? s + 1 : v.at();
      if (view) {
        if (lane == 0) views[at] = 1;
#ifdef DEPOTS
      } else if (v.depot() >= 0) {
#pragma unroll
        for (int d = 0; d < DEPOTS; d++) homes[d] += v.depot() == d;
      } else {
        if (lane == 0) or_shared(who + at * words + (s >> 5), 1u << (s & 31));
      }
#else
      } else if (at) {
        if (lane == 0) or_shared(who + at * words + (s >> 5), 1u << (s & 31));
      } else {
        home++;
      }
#endif
      // a lane writes a third of the decision
      const Context c = v.context(capacity);
      u4 part = {mask[0], mask[1], mask[2], mask[3]};
      if (lane == 1) part = u4{pair_of(c, 0), pair_of(c, 1), pair_of(c, 2), pair_of(c, 3)};
      if (lane == 2) part = u4{(u32)view, (u32)as_int(wa), (u32)as_int(we), (u32)(a | at << 16)};
      if (lane < 3) to[3 * count] = part;
      count++;
    });
#ifdef DEPOTS
#pragma unroll
    for (int d = 0; d < DEPOTS; d++)
      if (lane == d) depots[d * (starts + 1) + s] = homes[d];
    if (lane == 0) own[s] = count;
  }
  sync();
  if (warp == 0)
    for (int d = 0; d < DEPOTS; d++) before(depots + d * (starts + 1), starts);
#else
    if (lane == 0) depots[s] = home, own[s] = count;
  }
  sync();
  if (warp == 0) before(depots, starts);
#endif
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
#ifdef DEPOTS
    const int depot = depot_at(j, n);
    here[j] = depot < 0 ? sum + views[j] : depots[depot * (starts + 1) + starts];
#else
    here[j] = j ? sum + views[j] : depots[starts];
#endif
    from[j] = (here[j] + 7) & ~7;
    present[i * 128 + j] = here[j];
  }
  sync();
  if (warp == 0) before(from, n);
  sync();
  const int all = (from[n] + 15) & ~15;
  if (threadIdx_x == 0) {
    counts[i] = all;
    ups[i] = near_one(*heaviest * div_(10.0f, control->temperature) * pointerScale);
  }
  for (int j = warp; j < n; j += warps) {
    // the last node fills up the tile
    const int end = from[j + 1] == from[n] && here[j] ? all : from[j + 1];
    for (int k = from[j] + lane; k < end; k += 32) {
      if ((k & 7) == 0) stands[k >> 3] = j;
      if (k - from[j] >= here[j]) choices[k] = Choice{{1, 0, 0, 0}, {0, 0, 0, 0}, 0, 0, 0, j << 16};
    }
  }
#pragma unroll 1
  for (int s = warp; s < starts; s += warps) {
#ifdef DEPOTS
    int homes[DEPOTS];
#pragma unroll
    for (int d = 0; d < DEPOTS; d++) homes[d] = from[depot_node(d, n)] + depots[d * (starts + 1) + s];
#else
    int home = from[0] + depots[s];
#endif
#pragma unroll 1
    for (int k = 0; k < own[s]; k += 32) {
      const bool mine = k + lane < own[s];
      u4 part[3] = {};
      if (mine)
#pragma unroll
        for (int p = 0; p < 3; p++) part[p] = ((const u4 *)(listed + s * limit + k + lane))[p];
      const int at = (int)part[2].w >> 16;
#ifdef DEPOTS
      const int depot = depot_at(at, n);
      int to = 0;
#pragma unroll
      for (int d = 0; d < DEPOTS; d++) {
        const u32 those = ballot(mine && depot == d);
        if (depot == d) to = homes[d] + __builtin_popcount(those & ((1u << lane) - 1));
        homes[d] += __builtin_popcount(those);
      }
#else
      const u32 depot = ballot(mine && at == 0);
      int to = home + __builtin_popcount(depot & ((1u << lane) - 1));
      home += __builtin_popcount(depot);
#endif
      if (!mine) continue;
      if (part[2].x) {
        to = from[at] + here[at] - 1; // behind those who stand there
#ifdef DEPOTS
      } else if (depot < 0) {
#else
      } else if (at) {
#endif
        const u32 *others = who + at * words;
        to = from[at] + __builtin_popcount(others[s >> 5] & ((1u << (s & 31)) - 1));
        for (int w = 0; w < s >> 5; w++) to += __builtin_popcount(others[w]);
      }
#pragma unroll
      for (int p = 0; p < 3; p++) ((u4 *)(choices + to))[p] = part[p];
    }
  }
}
