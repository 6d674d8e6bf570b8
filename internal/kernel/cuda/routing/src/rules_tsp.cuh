// The travelling salesman problem: one vehicle serves all customers in one tour, and goes home when
// all are served. kernel/rules.go has the column and the features; reference/rules.go and
// cpu/rules.go are the same rules in Go.
#pragma once

// Customer is what the rules ask of a node: one customer as a share of all, the same at every node;
// less than 0 is no node.
struct Customer { float share_; };

// Own is what an instance has that its nodes' features show.
struct Own {};

// Drawn is what a rule set draws instances by beside kernel.Drawing's numbers.
struct Drawn {};

// drawn is a node of n. Demands are not asked, and nothing is drawn.
template <class P, class S>
__device__ __forceinline__ Customer drawn(int, float, float, int, int n, float, const Drawn &, P, S, Own &) {
  return Customer{div_(1.0f, (float)(n > 2 ? n - 1 : 1))};
}

// Feature is what the policy sees of a node.
struct Feature { float x, y, share, depot; } __attribute__((aligned(16)));
__device__ __forceinline__ Feature featured(const Customer &c, const Own &, float x, float y, int j, int) {
  return Feature{x, y, c.share_, j == 0 ? 1.0f : 0.0f};
}

// customer reads node j of an instance; past its n nodes, one that no vehicle can serve.
__device__ __forceinline__ Customer customer(const Customer *nodes, int j, int n) { return Customer{j < n ? nodes[j].share_ : -1.0f}; }

// shuffle is the customer that another lane of the warp has.
__device__ __forceinline__ Customer shuffle(const Customer &c, int lane) { return Customer{shfl(c.share_, lane)}; }

struct Vehicle {
  int at_;       // node
  int unserved_; // customers
  float share_;  // of one customer

  // at is the node that the vehicle stands at.
  __device__ __forceinline__ int at() const { return at_; }

  // from and to are the nodes between which the way to node a is driven.
  __device__ __forceinline__ int from() const { return at_; }
  __device__ __forceinline__ int to(int a) const { return a; }

  // fits: every customer that nobody has served may be next.
  __device__ __forceinline__ bool fits(const Customer &c) const { return c.share_ >= 0; }

  // All vehicles accept the same customers, so one level tells all: see rules.cuh.
  __device__ __forceinline__ int level() const { return 0; }
  static __device__ __forceinline__ bool level_tells(const Customer &) { return true; }
  static __device__ __forceinline__ Vehicle reach(int) { return Vehicle{0, 1, 0}; }

  // home: the depot may be next, when all are served.
  __device__ __forceinline__ bool home() const { return unserved_ == 0; }

  // allows: node j may be next.
  __device__ __forceinline__ bool allows(int j, bool served, const Customer *customers) const { return j == 0 ? home() : !served && fits(customers[j]); }

  // allowed is the same for the nodes of a word of bits: those that fit, those that are served, and
  // the depot's bit or 0.
  __device__ __forceinline__ u32 allowed(u32 fit, u32 served, u32 depot) const { return home() ? depot : fit & ~served & ~depot; }

  // move goes to node a. The kernel marks it as served.
  __device__ __forceinline__ void move(int a, const Customer &, int) {
    at_ = a;
    if (a != 0) unserved_--;
  }

  // ended: all are served and the vehicle is back. A route begins like this too where there are no
  // customers, so ask after a move.
  __device__ __forceinline__ bool ended() const { return unserved_ == 0 && at_ == 0; }

  // context: the share of the customers that are left.
  __device__ __forceinline__ Context context(int) const { return Context{{mul_((float)unserved_, share_)}}; }
};

// depart is a vehicle at the depot of an instance of n nodes.
__device__ __forceinline__ Vehicle depart(const Customer *nodes, int n, int) { return Vehicle{0, n - 1, nodes->share_}; }
