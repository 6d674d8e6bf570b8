// Where the decisions of an instance go: sorted by the node that the vehicle stands at, start by
// start within a node. Those who follow a start count its decisions (note, noted), the whole block
// arranges what was counted (arrange), and a start's decisions are placed (begins, place).
//
// What a reader could break: a start decides once at a customer, which a bit for each start and
// customer keeps, and any number of times at a depot, which is counted. The one decision of a start
// that is seen as from its customer comes behind those of that customer.
#pragma once
#include "choices.cuh"
#include "distribution.cuh"
#include "replay.cuh"

#ifdef DEPOTS
#define HOMES DEPOTS
__device__ __forceinline__ int home_of(const Vehicle &v) { return v.depot(); }
#else
#define HOMES 1
__device__ __forceinline__ int depot_node(int, int) { return 0; }
__device__ __forceinline__ int depot_at(int j, int) { return j == 0 ? 0 : -1; }

// home_of is the depot that the vehicle stands at, less than 0 at a customer.
__device__ __forceinline__ int home_of(const Vehicle &v) { return v.at() == 0 ? 0 : -1; }
#endif

__device__ __forceinline__ void or_shared(u32 *p, u32 v) {
  asm volatile("{.reg .u64 t; cvta.to.shared.u64 t, %0; red.shared.or.b32 [t], %1;}" ::"l"(p), "r"(v) : "memory");
}

// Loss is how a start's decisions weigh in the loss.
struct Loss {
  const int *steps;
  const float *adv;
  const Control *control;
  int begins, bonus;
  float weight;

  __device__ __forceinline__ float of_choice(int s) const { return adv[s]; }
  __device__ __forceinline__ float of_entropy(int s) const { return entropy_weight(control, bonus, weight, steps[s], begins); }
};

// Sorted lies in shared memory, sorted_words of it, and is cleared before its first use. At a node
// begin whole groups of GROUP decisions, and the last node's fill up a tile of sixteen.
template <int GROUP> struct Sorted {
  int n, starts, words;
  int *depots; // [HOMES][starts + 1]: a start's decisions at a depot, then how many come before
  int *from;   // [n + 1]: where a node's decisions begin
  int *here;   // [n]: how many there are
  int *views;  // [n]: its own start's decision as from this customer, which may stand here later, too
  float *heaviest;
  u32 *who;    // [n][words]: the starts that decide at a customer

  __device__ __forceinline__ Sorted(int *p, int n, int starts) : n(n), starts(starts), words((starts + 31) / 32) {
    depots = p, from = depots + HOMES * (starts + 1), here = from + n + 1, views = here + n;
    heaviest = (float *)(views + n), who = (u32 *)(heaviest + 1);
  }
  __device__ __forceinline__ int *end() const { return (int *)(who + n * words); }
  __device__ __forceinline__ void clear() const {
    for (int k = threadIdx_x; k < n * words; k += blockDim_x) who[k] = 0;
    for (int j = threadIdx_x; j < n; j += blockDim_x) views[j] = 0;
  }

  // note counts a decision of start s, in homes where it is made at a depot. One of those who
  // follow the start says so.
  __device__ __forceinline__ void note(int (&homes)[HOMES], int s, const Vehicle &v, bool view, bool one) const {
    const int home = home_of(v);
    if (view) {
      if (one) views[s + 1] = 1;
    } else if (home >= 0) {
#pragma unroll
      for (int d = 0; d < HOMES; d++) homes[d] += home == d;
    } else {
      if (one) or_shared(who + v.at() * words + (s >> 5), 1u << (s & 31));
    }
  }
  __device__ __forceinline__ void noted(const int (&homes)[HOMES], int s, bool one) const {
#pragma unroll
    for (int d = 0; d < HOMES; d++)
      if (one) depots[d * (starts + 1) + s] = homes[d];
  }

  // arrange decides where decisions go, when all starts have been noted, and returns how many
  // places there are. present[j] becomes how many stand at node j.
  __device__ __forceinline__ int arrange(int *present, const Loss &loss) const {
    const int lane = threadIdx_x & 31, warp = threadIdx_x >> 5, warps = blockDim_x >> 5;
    sync();
    if (warp == 0)
      for (int d = 0; d < HOMES; d++) before(depots + d * (starts + 1), starts);
    if (warp == warps - 1) {
      float top = 0;
      for (int s = lane; s < starts; s += 32) {
        top = larger(top, __builtin_fabsf(loss.of_choice(s)));
        top = larger(top, __builtin_fabsf(loss.of_entropy(s)));
      }
      top = warp_max(top);
      if (lane == 0) *heaviest = top;
    }
    sync();
    for (int j = threadIdx_x; j < n; j += blockDim_x) {
      int sum = 0;
      for (int w = 0; w < words; w++) sum += __builtin_popcount(who[j * words + w]);
      const int depot = depot_at(j, n);
      here[j] = depot < 0 ? sum + views[j] : depots[depot * (starts + 1) + starts];
      from[j] = (here[j] + GROUP - 1) & ~(GROUP - 1);
      present[j] = here[j];
    }
    sync();
    if (warp == 0) before(from, n);
    sync();
    return (from[n] + 15) & ~15;
  }

  // up is the power of two that brings gradients near one.
  __device__ __forceinline__ float up(const Control *control, float pointerScale) const {
    return near_one(*heaviest * div_(10.0f, control->temperature) * pointerScale);
  }

  // last is where the places of node j end, of `all`.
  __device__ __forceinline__ int last(int j, int all) const { return from[j + 1] == from[n] && here[j] ? all : from[j + 1]; }

  // begin is where the decisions of start s at each depot go.
  __device__ __forceinline__ void begin(int (&homes)[HOMES], int s) const {
    const int *mine = depots + s;
#pragma unroll
    for (int d = 0; d < HOMES; d++, mine += starts + 1) homes[d] = from[depot_node(d, n)] + *mine;
  }

  // place is where a decision of start s goes.
  __device__ __forceinline__ int place(int (&homes)[HOMES], int s, const Vehicle &v, bool view) const {
    const int home = home_of(v);
    if (view || home < 0) return place(s, view ? s + 1 : v.at(), view);
    int to = 0;
#pragma unroll
    for (int d = 0; d < HOMES; d++)
      if (home == d) to = homes[d]++;
    return to;
  }
  // The same at customer `at`.
  __device__ __forceinline__ int place(int s, int at, bool view) const {
    if (view) return from[at] + here[at] - 1; // behind those who stand there
    const u32 *others = who + at * words;
    int to = from[at] + __builtin_popcount(others[s >> 5] & ((1u << (s & 31)) - 1));
    for (int w = 0; w < s >> 5; w++) to += __builtin_popcount(others[w]);
    return to;
  }
};
