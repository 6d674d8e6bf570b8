// The rules of a route: where a vehicle may go next, and what going there changes. All CUDA kernels
// that build or replay routes take them from here; kernel.Rollout states them, reference/rules.go
// and cpu/rules.go are the same in Go.
//
// What a reader could break: nothing here knows attention or sampling, and nothing outside decides
// what is allowed. To a kernel a Customer and a Vehicle are opaque: it keeps, copies and shuffles
// them whole, and asks fits, move and context. Their fields, whose names end in an underscore, are
// used in this file alone (internal/lint checks). Which customers are served is kept by the
// kernels, as bits where their threads need them; all else of a route's state is a Vehicle, equal
// in all threads that follow the route.
#pragma once
#include "warp.cuh"

// The rule set is chosen where PTX is made. CVRP has no define; scripts/ptx reads the others from
// the lines below, the name as kernel.RuleSet has it, and makes a module of each for every source
// of its list `ruled`.
//
//	rule set cvrpl: -DLIMIT    a limit of a route's length
//	rule set vrp: -DVRP        attributes by instance, in rules_vrp.cuh
//	rule set tsp: -DTSP        one vehicle, one tour of all, in rules_tsp.cuh
//	rule set mdvrp: -DMDVRP    VRP with several depots, in rules_mdvrp.cuh

// length is that of a way by its two sides, as kernel.Leg has it.
__device__ __forceinline__ float length(float dx, float dy) { return sqrtf_(add_(mul_(dx, dx), mul_(dy, dy))); }

// LEVELS is how many levels of vehicles there are at most (Vehicle::level).
#define LEVELS 16

// Context is what the policy sees of a vehicle beside its node: the rule set's context features,
// each of which has a row of weights.
#if defined(MDVRP)
#define CONTEXTS 7
#elif defined(VRP)
#define CONTEXTS 4
#elif defined(LIMIT)
#define CONTEXTS 2
#else
#define CONTEXTS 1
#endif
struct Context {
  float part[CONTEXTS];

  // times adds to x the features times their weights, which lie `line` floats apart.
  __device__ __forceinline__ float times(const float *weights, int line, float x) const {
#pragma unroll
    for (int k = 0; k < CONTEXTS; k++) x += part[k] * weights[k * line];
    return x;
  }
};

// sole is the context of a rule set with one feature, for kernels that are made for no other.
#if CONTEXTS == 1
__device__ __forceinline__ float sole(const Context &c) { return c.part[0]; }
#endif

#if defined(MDVRP)
#include "rules_mdvrp.cuh"
#include "rules_mdvrp_vehicle.cuh"
#elif defined(VRP)
#include "rules_vrp.cuh"
#include "rules_vrp_vehicle.cuh"
#elif defined(TSP)
#include "rules_tsp.cuh"
#else
// Own is what an instance has that its nodes' features show.
struct Own {};

// Customer is what the rules ask of a node. The depot's demand is not asked.
#ifdef LIMIT
// home_ is the way home; at the depot, which has none, the limit of a route's length.
struct Customer {
  int demand_;
  float x_, y_, home_;
} __attribute__((aligned(16)));
#else
struct Customer { int demand_; };
#endif

// Drawn is what a rule set draws instances by beside kernel.Drawing's numbers.
struct Drawn {};

// drawn is node j of n, drawn at x, y with a demand. place(k, x, y) says where node k lies and
// returns its words; second(k) are those of its second block.
template <class P, class S>
__device__ __forceinline__ Customer drawn(int demand, float x, float y, int j, int n, float range, const Drawn &, P place, S second, Own &) {
#ifdef LIMIT
  // kernel.RuleSet.Own, by the depot's thread
  float far = 0, px, py;
  for (int k = 1; k < n && j == 0; k++) {
    place(k, px, py);
    far = __builtin_fmaxf(far, length(x - px, y - py));
  }
  const Words own = place(j == 0 ? 1 : 0, px, py);
  const float low = 2.0f * far, high = __builtin_fmaxf(range, low);
  return Customer{demand, x, y, j == 0 ? add_(low, mul_(unit(own.w[3]), high - low)) : length(px - x, py - y)};
#else
  return Customer{demand};
#endif
}

// Feature is what the policy sees of a node: the rule set's features.
struct Feature { float x, y, share, depot; } __attribute__((aligned(16)));
__device__ __forceinline__ Feature featured(const Customer &c, const Own &, float x, float y, int j, int capacity) {
  return Feature{x, y, div_((float)c.demand_, (float)capacity), j == 0 ? 1.0f : 0.0f};
}

// customer reads node j of an instance; past its n nodes, one that no vehicle can serve.
__device__ __forceinline__ Customer customer(const Customer *nodes, int j, int n) {
#ifdef LIMIT
  if (j >= n) return Customer{0x7fffffff, 0, 0, 0};
  return Customer{nodes[j].demand_, nodes[j].x_, nodes[j].y_, nodes[j].home_};
#else
  return Customer{j < n ? nodes[j].demand_ : 0x7fffffff};
#endif
}

// shuffle is the customer that another lane of the warp has.
__device__ __forceinline__ Customer shuffle(const Customer &c, int lane) {
#ifdef LIMIT
  return Customer{shfl(c.demand_, lane), shfl(c.x_, lane), shfl(c.y_, lane), shfl(c.home_, lane)};
#else
  return Customer{shfl(c.demand_, lane)};
#endif
}

struct Vehicle {
  int at_;       // node
  int left_;     // load
  int unserved_; // customers
#ifdef LIMIT
  float x_, y_;          // of the node
  float length_, limit_; // of the route
#endif

  // at is the node that the vehicle stands at.
  __device__ __forceinline__ int at() const { return at_; }

  // from and to are the nodes between which the way to node a is driven: one node twice where it
  // costs nothing.
  __device__ __forceinline__ int from() const { return at_; }
  __device__ __forceinline__ int to(int a) const { return a; }

  // fits: a customer that nobody has served may be next.
  __device__ __forceinline__ bool fits(const Customer &c) const {
#ifdef LIMIT
    return c.demand_ <= left_ && add_(add_(length_, length(c.x_ - x_, c.y_ - y_)), c.home_) <= limit_;
#else
    return c.demand_ <= left_;
#endif
  }

  // level maps a vehicle to a small integer, so that a kernel can keep one answer of fits per level
  // instead of asking again. Vehicles of equal level accept the same customers, and reach(level) is
  // one such vehicle. level_tells reports whether that holds for a customer; if it is false for one
  // of an instance, callers must ask fits.
#ifdef LIMIT
  __device__ __forceinline__ int level() const { return 0; }
  static __device__ __forceinline__ bool level_tells(const Customer &c) { return false; }
#else
  __device__ __forceinline__ int level() const { return left_ < LEVELS ? left_ : LEVELS - 1; }
  static __device__ __forceinline__ bool level_tells(const Customer &c) { return c.demand_ < LEVELS; }
#endif
  static __device__ __forceinline__ Vehicle reach(int level) { return Vehicle{0, level, 1}; }

  // home: the depot may be next. At the depot it may not while customers remain.
  __device__ __forceinline__ bool home() const { return unserved_ == 0 || at_ != 0; }

  // allows: node j may be next.
  __device__ __forceinline__ bool allows(int j, bool served, const Customer *customers) const { return j == 0 ? home() : !served && fits(customers[j]); }

  // allowed is the same for the nodes of a word of bits: those that fit, those that are served, and
  // the depot's bit or 0.
  __device__ __forceinline__ u32 allowed(u32 fit, u32 served, u32 depot) const {
    if (unserved_ == 0) return depot;
    return (fit & ~served & ~depot) | (at_ != 0 ? depot : 0);
  }

  // move goes to node a, which is c. The kernel marks it as served.
  __device__ __forceinline__ void move(int a, const Customer &c, int capacity) {
    at_ = a;
#ifdef LIMIT
    length_ = a == 0 ? 0.0f : add_(length_, length(c.x_ - x_, c.y_ - y_));
    x_ = c.x_, y_ = c.y_;
#endif
    if (a == 0) {
      left_ = capacity;
    } else {
      left_ -= c.demand_;
      unserved_--;
    }
  }

  // ended: all are served and the vehicle is back. A route begins like this too where there are no
  // customers, so ask after a move.
  __device__ __forceinline__ bool ended() const { return unserved_ == 0 && at_ == 0; }

  // context: the shares of the load and of the route's length that are left.
  __device__ __forceinline__ Context context(int capacity) const {
#ifdef LIMIT
    return Context{{div_((float)left_, (float)capacity), 1.0f - div_(length_, limit_)}};
#else
    return Context{{div_((float)left_, (float)capacity)}};
#endif
  }
};

// depart is a vehicle at the depot of an instance of n nodes.
__device__ __forceinline__ Vehicle depart(const Customer *nodes, int n, int capacity) {
#ifdef LIMIT
  return Vehicle{0, capacity, n - 1, nodes->x_, nodes->y_, 0, nodes->home_};
#else
  return Vehicle{0, capacity, n - 1};
#endif
}
#endif

// FROM is the node that the way to node a begins at, and SERVED says whether a kernel marks node a
// as served when a vehicle goes there. Both depend on a where there are several depots (MDVRP).
// KEPT is where a vehicle finds its instance's nodes: one of several depots reads them at every
// step. To other sets they are the plain text, so that the PTX of their kernels stays what it is.
#ifdef DEPOTS
#define FROM(v, a) (v).from(a)
#define SERVED(v, a) (v).serves(a)
#define KEPT(global, shared) (shared)
#else
#define FROM(v, a) (v).from()
#define SERVED(v, a) true
#define KEPT(global, shared) (global)
#endif

// how a start begins: at the depot, at its customer, or at the depot as seen from its customer
enum { FREE, FORCED, VIEWED };

// seen is the node that the policy sees the vehicle at: in the first step of a start that is
// viewed, its customer.
__device__ __forceinline__ int seen(const Vehicle &v, int begins, int t, int start) { return begins == VIEWED && t == 0 ? start + 1 : v.at(); }

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
