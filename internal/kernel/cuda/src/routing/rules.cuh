// The rules of a route: where a vehicle may go next, and what going there changes. All CUDA kernels
// that build or replay routes take them from here; kernel.Rollout states them, reference/rules.go
// and cpu/rules.go are the same in Go.
//
// What a reader could break: nothing here knows attention or sampling, and nothing outside decides
// what is allowed. Which customers are served is kept by the kernels, as bits where their threads
// need them; all else of a route's state is a Vehicle, equal in all threads that follow the route.
// A rule more, such as a time window, is a field of Customer and of Vehicle and a line in fits and
// move.
#pragma once
#include "warp.cuh"

// Customer is what the rules ask of a node. The depot's is not asked.
struct Customer { int demand; };

// customer reads node j of an instance; past its n nodes, one that no vehicle can serve.
__device__ __forceinline__ Customer customer(const int *demand, int j, int n) { return Customer{j < n ? demand[j] : 0x7fffffff}; }

#define LEVELS 16

struct Vehicle {
  int at;       // node
  int left;     // load
  int unserved; // customers

  // fits: a customer that nobody has served may be next.
  __device__ __forceinline__ bool fits(const Customer &c) const { return c.demand <= left; }

  // level is what fits asks of a vehicle as a small number: vehicles of one level fit the same
  // customers, where level_tells all of those, and reach(level) is one of them. A kernel may keep
  // what fits says for each level; a rule that no small number tells has level_tells say no.
  __device__ __forceinline__ int level() const { return left < LEVELS ? left : LEVELS - 1; }
  static __device__ __forceinline__ bool level_tells(const Customer &c) { return c.demand < LEVELS; }
  static __device__ __forceinline__ Vehicle reach(int level) { return Vehicle{0, level, 1}; }

  // home: the depot may be next. At the depot it may not while customers remain.
  __device__ __forceinline__ bool home() const { return unserved == 0 || at != 0; }

  // allows: node j may be next.
  __device__ __forceinline__ bool allows(int j, bool served, const Customer *customers) const { return j == 0 ? home() : !served && fits(customers[j]); }

  // allowed is the same for the nodes of a word of bits: those that fit, those that are served, and
  // the depot's bit or 0.
  __device__ __forceinline__ u32 allowed(u32 fit, u32 served, u32 depot) const {
    if (unserved == 0) return depot;
    return (fit & ~served & ~depot) | (at != 0 ? depot : 0);
  }

  // move goes to node a. The kernel marks it as served.
  __device__ __forceinline__ void move(int a, const Customer &c, int capacity) {
    at = a;
    if (a == 0) {
      left = capacity;
    } else {
      left -= c.demand;
      unserved--;
    }
  }

  // ended: all are served and the vehicle is back. A route begins like this too where there are no
  // customers, so ask after a move.
  __device__ __forceinline__ bool ended() const { return unserved == 0 && at == 0; }

  // load is what the policy sees of the vehicle beside its node.
  __device__ __forceinline__ float load(int capacity) const { return div_((float)left, (float)capacity); }
};

// depart is a vehicle at the depot of an instance of n nodes.
__device__ __forceinline__ Vehicle depart(int n, int capacity) { return Vehicle{0, capacity, n - 1}; }

// how a start begins: at the depot, at its customer, or at the depot as seen from its customer
enum { FREE, FORCED, VIEWED };

// seen is the node that the policy sees the vehicle at: in the first step of a start that is
// viewed, its customer.
__device__ __forceinline__ int seen(const Vehicle &v, int begins, int t, int start) { return begins == VIEWED && t == 0 ? start + 1 : v.at; }

// leg is the length of the way between two nodes.
__device__ __forceinline__ float leg(const float *x, const float *y, int from, int to) {
  float dx = x[to] - x[from], dy = y[to] - y[from];
  return sqrtf_(add_(mul_(dx, dx), mul_(dy, dy)));
}

// scored is how many of a route's steps the policy answers for, at least one.
__device__ __forceinline__ float scored(int steps, int begins) {
  int n = begins == FORCED ? steps - 1 : steps;
  return (float)(n < 1 ? 1 : n);
}

// entropy_weight is that of a decision's entropy in the loss.
__device__ __forceinline__ float entropy_weight(const Control *control, int bonus, float weight, int steps, int begins) {
  return div_(mul_(-control->coefficients[bonus], weight), scored(steps, begins));
}
