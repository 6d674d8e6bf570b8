// The vehicle of VRP: kernel/rules_vrp.go states its rules.
#pragma once
#include "rules_going.cuh"

// FURTHER is the node of further depot d of n nodes, 0: there is none.
#define FURTHER(d, n) 0

// Shares are what an instance's vehicles divide by for a context, as reciprocals.
struct Shares { float load_, time_, length_; };
__device__ __forceinline__ Shares shares(const Customer *nodes, int capacity) {
  return Shares{rcp((float)capacity), rcp(nodes->late_), rcp(nodes->home_)};
}

struct Vehicle {
  int at_;       // node
  int left_;     // of the capacity, where it is fullest
  int unserved_; // customers
  int picked_, capacity_;
  int kind_;     // attributes of the instance
  float x_, y_;  // of the node
  float length_, time_;
  float limit_, end_;

  // at is the node that the vehicle stands at.
  __device__ __forceinline__ int at() const { return at_; }

  // from and to are the nodes between which the way to node a is driven: one node twice where it
  // costs nothing.
  __device__ __forceinline__ int from() const { return at_; }
  __device__ __forceinline__ int to(int a) const { return a == 0 && kind_ & OPEN ? at_ : a; }

  // fits: a customer that nobody has served may be next. Without a branch: lanes ask of different
  // customers.
  __device__ __forceinline__ bool fits(const Customer &c) const {
    const bool delivers = (c.demand_ <= left_) & ((picked_ == 0) | ((kind_ & MIXED_ORDER) != 0)), picks = picked_ - c.demand_ <= capacity_;
    const float way = length(c.x_ - x_, c.y_ - y_), arrival = add_(time_, way);
    const bool near = add_(add_(length_, way), c.home_) <= limit_, soon = arrival <= c.late_;
    const bool back = add_(add_(__builtin_fmaxf(arrival, c.early_), c.service_), c.home_) <= end_;
    return (c.demand_ >= 0 ? delivers : picks) & ((at_ == 0) | (near & soon & back));
  }

  // going is how a vehicle that stands at a customer asks others: a delivery must fit beside what
  // is on board, and a pickup beside what was picked up.
  __device__ __forceinline__ Going going() const {
    const int most = picked_ == 0 || kind_ & MIXED_ORDER ? left_ : -1;
    return Going{picked_ - capacity_, most, __builtin_offsetof(Customer, home_), x_, y_, length_, time_, limit_, end_};
  }

  // leaving: what fits a vehicle that stands at a depot is always the same. It says which answer of
  // leaves that is, less than 0 at a customer.
  static constexpr int LEAVINGS = 1;
  __device__ __forceinline__ int leaving() const { return at_ == 0 ? 0 : -1; }
  static __device__ __forceinline__ bool leaves(int which, const Customer &c, int capacity) {
    return (c.demand_ <= capacity) & (-c.demand_ <= capacity);
  }

  // further: of nodes that fit, bits of further depots become what they are. There are none.
  __device__ __forceinline__ u32 further(u32 fit, u32, u32) const { return fit; }

  // levels tell nothing: see rules.cuh.
  __device__ __forceinline__ int level() const { return 0; }
  static __device__ __forceinline__ bool level_tells(const Customer &c) { return false; }
  static __device__ __forceinline__ Vehicle reach(int level) { return Vehicle{}; }

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
    const float way = length(c.x_ - x_, c.y_ - y_);
    at_ = a;
    x_ = c.x_, y_ = c.y_;
    if (a == 0) {
      left_ = capacity, picked_ = 0;
      length_ = time_ = 0;
      return;
    }
    length_ = add_(length_, way);
    time_ = add_(__builtin_fmaxf(add_(time_, way), c.early_), c.service_);
    unserved_--;
    if (c.demand_ >= 0) {
      left_ -= c.demand_;
    } else {
      picked_ -= c.demand_;
      const int room = capacity - picked_;
      left_ = room < left_ ? room : left_;
    }
  }

  // ended: all are served and the vehicle is back. A route begins like this too where there are no
  // customers, so ask after a move.
  __device__ __forceinline__ bool ended() const { return unserved_ == 0 && at_ == 0; }

  // context: the shares of the load, the room, the time and the route's length that are left.
  __device__ __forceinline__ Context context(int capacity) const {
    return Context{{div_((float)left_, (float)capacity), div_((float)(capacity - picked_), (float)capacity), 1.0f - div_(time_, end_),
                    1.0f - div_(length_, limit_)}};
  }
  __device__ __forceinline__ Context context(const Shares &s) const {
    return Context{{quotient((float)left_, (float)capacity_, s.load_), quotient((float)(capacity_ - picked_), (float)capacity_, s.load_),
                    1.0f - quotient(time_, end_, s.time_), 1.0f - quotient(length_, limit_, s.length_)}};
  }
};

// depart is a vehicle at the depot of an instance of n nodes.
__device__ __forceinline__ Vehicle depart(const Customer *nodes, int n, int capacity) {
  return Vehicle{0, capacity, n - 1, 0, capacity, nodes->kind_, nodes->x_, nodes->y_, 0, 0, nodes->home_, nodes->late_};
}
