// One replay of recorded routes, for every gradient: who follows a route, and what is done at a
// decision, are types. A step is a decision where more than one node is allowed and the start does
// not force it.
//
// A follower keeps which nodes are closed, and has
//
//	action(route, t)   the action of step t
//	allowed(mask, v)   fills its part of the mask of nodes that may be next, and counts all of them
//	close(v, a)        closes node a, which the vehicle goes to
//	node(a)            what the rules ask of node a
//
// What a reader could break: all threads that follow a route call each of these in every step, so
// that a follower may use the whole warp. A node is closed before the vehicle moves.
#pragma once
#include "rules.cuh"

// Route is a recorded one.
struct Route { const int *actions; int steps, begins; };

// replay calls decide(mask, vehicle, action, view) at each decision; view: it was made as from the
// customer of a start that is viewed.
template <class Who, class Decide>
__device__ __forceinline__ void replay(Who &&who, const Route &route, Vehicle v, int capacity, Decide &&decide) {
#pragma unroll 1
  for (int t = 0; t < route.steps; t++) {
    const int a = who.action(route, t);
    typename Who::Mask mask;
    const int count = who.allowed(mask, v);
    if (count > 1 && !(route.begins == FORCED && t == 0)) decide(mask, v, a, route.begins == VIEWED && t == 0);
    who.close(v, a);
    v.move(a, who.node(a), capacity);
  }
}

// Alone is a thread that follows a route by itself: it has all words of the masks. Fits gives the
// words of the nodes that fit: fits(mask, v).
template <int WORDS, class Fits> struct Alone {
  typedef u32 Mask[WORDS];
  const Fits &fits;
  int next;
  Mask closed = {};

  __device__ __forceinline__ Alone(const Fits &fits, const Route &route) : fits(fits), next(route.steps > 0 ? route.actions[0] : 0) {}
  __device__ __forceinline__ int action(const Route &route, int t) {
    const int a = next;
    if (t + 1 < route.steps) next = route.actions[t + 1];
    return a;
  }
  __device__ __forceinline__ int allowed(Mask &mask, const Vehicle &v) const {
    int count = 0;
    fits(mask, v);
#pragma unroll
    for (int w = 0; w < WORDS; w++) {
      mask[w] = v.allowed(mask[w], closed[w], w == 0);
      count += __builtin_popcount(mask[w]);
    }
    return count;
  }
  __device__ __forceinline__ void close(const Vehicle &v, int a) { // the depot's bit is never asked
#pragma unroll
    for (int w = 0; w < WORDS; w++) closed[w] |= a >> 5 == w && SERVED(v, a) ? 1u << (a & 31) : 0;
  }
  __device__ __forceinline__ const Customer &node(int a) const { return fits.customers[a]; }
};

// sum adds up an integer of each lane of a warp.
__device__ __forceinline__ int sum(int v) {
  int r;
  asm volatile("redux.sync.add.s32 %0, %1, 0xffffffff;" : "=r"(r) : "r"(v));
  return r;
}

// Batch is the actions of a route that a warp follows, 32 at a time.
struct Batch {
  int actions = 0;
  __device__ __forceinline__ int action(const Route &route, int t) {
    const int lane = threadIdx_x & 31;
    if ((t & 31) == 0) actions = t + lane < route.steps ? route.actions[t + lane] : 0;
    return shfl(actions, t & 31);
  }
};

// Warp is a warp that follows a route: every lane has all words of the masks, a node a bit. Fits
// gives word w of the nodes that fit, equal in all lanes: fits.ask(v) once a step, then fits(w, v).
template <int WORDS, class Fits> struct Warp : Batch {
  typedef u32 Mask[WORDS];
  Fits fits;
  Mask closed = {};

  __device__ __forceinline__ Warp(const Fits &fits) : fits(fits) {}
  __device__ __forceinline__ int allowed(Mask &mask, const Vehicle &v) {
    int count = 0;
    fits.ask(v);
#pragma unroll
    for (int w = 0; w < WORDS; w++) {
      mask[w] = fits.has(w) ? v.allowed(fits(w, v), closed[w], w == 0) : 0;
      count += __builtin_popcount(mask[w]);
    }
    return count;
  }
  __device__ __forceinline__ void close(const Vehicle &v, int a) { // the depot's bit is never asked
#pragma unroll
    for (int w = 0; w < WORDS; w++)
      if (a >> 5 == w && SERVED(v, a)) closed[w] |= 1u << (a & 31);
  }
  __device__ __forceinline__ auto node(int a) const { return fits.node(a); }
};

// Shared is a warp that follows a route together: lane l has words l, l + 32, ... of the masks, at
// most SPAN of them. Fits gives the lane's word s of the nodes that fit, fits(s, v), and says
// whether there is such a word: fits.has(s).
template <int SPAN, class Fits> struct Shared : Batch {
  typedef u32 Mask[SPAN];
  const Fits &fits;
  Mask closed = {};

  __device__ __forceinline__ Shared(const Fits &fits) : fits(fits) {}
  __device__ __forceinline__ int allowed(Mask &mask, const Vehicle &v) const {
    int count = 0;
#pragma unroll
    for (int s = 0; s < SPAN; s++) {
      const u32 fit = fits(s, v);
      mask[s] = fits.has(s) ? v.allowed(fit, closed[s], s == 0 && (threadIdx_x & 31) == 0) : 0;
      count += __builtin_popcount(mask[s]);
    }
    return sum(count);
  }
  __device__ __forceinline__ void close(const Vehicle &v, int a) { // the depot's bit is never asked
    const int lane = threadIdx_x & 31;
#pragma unroll
    for (int s = 0; s < SPAN; s++)
      if (a >> 5 == 32 * s + lane && SERVED(v, a)) closed[s] |= 1u << (a & 31);
  }
  __device__ __forceinline__ const Customer &node(int a) const { return fits.customers[a]; }
};

// Block is a block of threads that follows a route: of each node it has in shared memory whether it
// is closed, and whether it may be next, which is the mask. A thread has the same nodes in every
// step.
struct Block {
  typedef const int *Mask;
  const Customer *customers;
  int *closed, *open, n; // [n] each

  __device__ __forceinline__ Block(const Customer *customers, int *closed, int *open, int n) : customers(customers), closed(closed), open(open), n(n) {
    sync(); // the route before has been followed to its end
    for (int j = threadIdx_x; j < n; j += blockDim_x) closed[j] = 0;
  }
  __device__ __forceinline__ int action(const Route &route, int t) const { return route.actions[t]; }
  __device__ __forceinline__ int allowed(Mask &mask, const Vehicle &v) const {
    sync(); // the mask before has been read
    for (int j = threadIdx_x; j < n; j += blockDim_x) open[j] = v.allows(j, closed[j], customers);
    sync();
    int count = 0; // every warp counts for itself
    for (int j = 0, lane = threadIdx_x & 31; j < n; j += 32) count += __builtin_popcount(ballot(j + lane < n && open[j + lane]));
    mask = open;
    return count;
  }
  __device__ __forceinline__ void close(const Vehicle &v, int a) {
    if (threadIdx_x == a % blockDim_x && SERVED(v, a)) closed[a] = 1;
  }
  __device__ __forceinline__ const Customer &node(int a) const { return customers[a]; }
};
