// walk_sorted of half_walk.cu for rule sets whose vehicles have no levels: what fits is asked of
// every node at every step, so a whole warp follows a start, once, and lists what it decides; then
// the list is sorted.
#pragma once
#include "choices.cuh"
#include "distribution.cuh"
#include "half.cuh"
#include "sorted.cuh"

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
  const int i = blockIdx_x, warp = threadIdx_x >> 5, lane = threadIdx_x & 31, warps = blockDim_x >> 5;
  Customer *customers = (Customer *)smem; // [n]
  const Sorted<8> sorted((int *)(customers + n), n, starts);
  int *own = sorted.end(); // [starts]: a start's decisions
  choices += (u64)i * room;
  listed += (u64)i * starts * limit;
  stands += (u64)i * (room >> 3);
  actions += (u64)i * starts * limit;
  steps += i * starts;
  const Loss loss = {steps, adv + i * starts, control, begins, bonus, weight};
  for (int j = threadIdx_x; j < n; j += blockDim_x) customers[j] = customer(instances + i * n, j, n);
  sorted.clear();
  sync();
  const Shares whole = shares(customers, capacity);
  bool bound = false;
  for (int j = lane; j < n; j += 32) bound = bound || binds(customers[j], j);
  bound = ballot(bound) != 0; // every warp asks for itself
#pragma unroll 1
  for (int s = warp; s < starts; s += warps) {
    int homes[HOMES] = {}, count = 0;
    const float wa = loss.of_choice(s), we = loss.of_entropy(s);
    u4 *to = (u4 *)(listed + s * limit) + lane;
    const Route route = {actions + s * limit, steps[s], begins};
    replay(Warp<4, Fits>(Fits{customers, n, capacity, bound}), route, depart(customers, n, capacity), capacity,
           [&](const u32 (&mask)[4], const Vehicle &v, int a, bool view) {
             sorted.note(homes, s, v, view, lane == 0);
             // a lane writes a third of the decision
             const Context c = v.context(whole);
             u4 part = {mask[0], mask[1], mask[2], mask[3]};
             if (lane == 1) part = u4{pair_of(c, 0), pair_of(c, 1), pair_of(c, 2), pair_of(c, 3)};
             if (lane == 2) part = u4{(u32)view, (u32)as_int(wa), (u32)as_int(we), (u32)(a | (view ? s + 1 : v.at()) << 16)};
             if (lane < 3) to[3 * count] = part;
             count++;
           });
    sorted.noted(homes, s, lane == 0);
    if (lane == 0) own[s] = count;
  }
  const int all = sorted.arrange(present + i * PRESENT, loss);
  if (threadIdx_x == 0) {
    counts[i] = all;
    ups[i] = sorted.up(control, pointerScale);
  }
  for (int j = warp; j < n; j += warps)
    for (int k = sorted.from[j] + lane; k < sorted.last(j, all); k += 32) {
      if ((k & 7) == 0) stands[k >> 3] = j;
      if (k - sorted.from[j] >= sorted.here[j]) choices[k] = Choice{{1, 0, 0, 0}, {0, 0, 0, 0}, 0, 0, 0, j << 16};
    }
#pragma unroll 1
  for (int s = warp; s < starts; s += warps) {
    int homes[HOMES];
    sorted.begin(homes, s);
#pragma unroll 1
    for (int k = 0; k < own[s]; k += 32) {
      const bool mine = k + lane < own[s];
      u4 part[3] = {};
      if (mine)
#pragma unroll
        for (int p = 0; p < 3; p++) part[p] = ((const u4 *)(listed + s * limit + k + lane))[p];
      const int at = (int)part[2].w >> 16, depot = depot_at(at, n);
      int to = 0;
#pragma unroll
      for (int d = 0; d < HOMES; d++) {
        const u32 those = ballot(mine && depot == d);
        if (depot == d) to = homes[d] + __builtin_popcount(those & ((1u << lane) - 1));
        homes[d] += __builtin_popcount(those);
      }
      if (!mine) continue;
      if (part[2].x || depot < 0) to = sorted.place(s, at, part[2].x);
#pragma unroll
      for (int p = 0; p < 3; p++) ((u4 *)(choices + to))[p] = part[p];
    }
  }
}
