// The vehicle of MDVRP: kernel/rules_mdvrp.go states its rules.
#pragma once
#include "rules_going.cuh"

// FURTHER is the node of further depot d of n nodes, 0: there is none.
#define FURTHER(d, n) depot_node(d, n)

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
  int home_;     // its depot
  float homeX_, homeY_;
  bool nowhere_; // the first vehicle, before it has a depot
  int serves0_, serves1_, serves2_; // customers left whom each depot can serve
  const Customer *nodes_;
  int n_;

  // at is the node that the vehicle stands at.
  __device__ __forceinline__ int at() const { return at_; }

  // depot is where the vehicle stands, less than 0 at a customer.
  __device__ __forceinline__ int depot() const { return depot_at(at_, n_); }

  // nearest is the depot that a customer is nearest to, the first of those that are as near.
  __device__ __forceinline__ int nearest(const Customer &c) const {
    int best = 0;
    float least = length(c.x_ - nodes_->x_, c.y_ - nodes_->y_);
#pragma unroll
    for (int d = 1; d < DEPOTS; d++) {
      const Customer &at = nodes_[depot_node(d, n_)];
      const float way = length(c.x_ - at.x_, c.y_ - at.y_);
      if (way < least) best = d, least = way;
    }
    return best;
  }

  // from and to are the nodes between which the way to node a is driven: one node twice where it
  // costs nothing.
  __device__ __forceinline__ int from(int a) const {
    return nowhere_ && depot_at(a, n_) < 0 ? depot_node(nearest(nodes_[a]), n_) : at_;
  }
  __device__ __forceinline__ int to(int a) const {
    if (depot_at(a, n_) < 0) return a;
    return depot() >= 0 || kind_ & OPEN ? at_ : depot_node(home_, n_);
  }

  // chooses: a depot may be next if it can serve somebody who is left.
  __device__ __forceinline__ bool chooses() const { return nowhere_ ? (kind_ & SEVERAL) != 0 : depot() < 0; }

  // fits: a customer that nobody has served, or a further depot, may be next. Without a branch:
  // lanes ask of different nodes.
  __device__ __forceinline__ bool fits(const Customer &c) const {
    const bool chosen = chooses() & ((c.kind_ == -1 ? serves1_ : serves2_) > 0);
    const bool leaves = nowhere_ ? c.kind_ != 0 : (c.kind_ >> home_ & 1) != 0; // from a depot
    const bool delivers = (c.demand_ <= left_) & ((picked_ == 0) | ((kind_ & MIXED_ORDER) != 0)), picks = picked_ - c.demand_ <= capacity_;
    const float way = length(c.x_ - x_, c.y_ - y_), arrival = add_(time_, way), home = home_ == 0 ? c.home_ : home_ == 1 ? c.home1_ : c.home2_;
    const bool near = add_(add_(length_, way), home) <= limit_, soon = arrival <= c.late_;
    const bool back = add_(add_(__builtin_fmaxf(arrival, c.early_), c.service_), home) <= end_;
    const bool goes = (c.kind_ != 0) & (c.demand_ >= 0 ? delivers : picks) & near & soon & back;
    return c.kind_ < 0 ? chosen : (nowhere_ | (depot() >= 0)) ? leaves : goes;
  }

  // going is how a vehicle that stands at a customer asks others: a delivery must fit beside what
  // is on board, and a pickup beside what was picked up.
  __device__ __forceinline__ Going going() const {
    const int home = home_ == 0   ? __builtin_offsetof(Customer, home_)
                     : home_ == 1 ? __builtin_offsetof(Customer, home1_)
                                  : __builtin_offsetof(Customer, home2_);
    return Going{picked_ - capacity_, picked_ == 0 || kind_ & MIXED_ORDER ? left_ : -1, home, x_, y_, length_, time_, limit_, end_};
  }

  // leaving: which customers fit a vehicle that stands at a depot, or nowhere, is always the same.
  // It says which answer of leaves that is, less than 0 at a customer.
  static constexpr int LEAVINGS = DEPOTS + 1;
  __device__ __forceinline__ int leaving() const { return nowhere_ ? DEPOTS : depot() >= 0 ? home_ : -1; }
  static __device__ __forceinline__ bool leaves(int which, const Customer &c, int capacity) {
    return which == DEPOTS ? c.kind_ != 0 : (c.kind_ >> which & 1) != 0;
  }

  // further: of nodes that fit, the bits of the two further depots become what they are.
  __device__ __forceinline__ u32 further(u32 fit, u32 one, u32 two) const {
    return (fit & ~(one | two)) | (chooses() && serves1_ > 0 ? one : 0) | (chooses() && serves2_ > 0 ? two : 0);
  }

  // levels tell nothing: see rules.cuh.
  __device__ __forceinline__ int level() const { return 0; }
  static __device__ __forceinline__ bool level_tells(const Customer &c) { return false; }
  // reach is asked, and its answer not read.
  static __device__ __forceinline__ Vehicle reach(int level) { return Vehicle{}; }

  // home: the first depot may be next.
  __device__ __forceinline__ bool home() const { return unserved_ == 0 || (chooses() && serves0_ > 0); }

  // allows: node j may be next.
  __device__ __forceinline__ bool allows(int j, bool served, const Customer *customers) const { return j == 0 ? home() : !served && fits(customers[j]); }

  // allowed is the same for the nodes of a word of bits: those that fit, those that are served, and
  // the first depot's bit or 0.
  __device__ __forceinline__ u32 allowed(u32 fit, u32 served, u32 depot) const {
    if (unserved_ == 0) return depot;
    return (fit & ~served & ~depot) | (home() ? depot : 0);
  }

  // serves: the kernel marks node a as served; further depots stay open.
  __device__ __forceinline__ bool serves(int a) const { return depot_at(a, n_) < 1; }

  // move goes to node a, which is c.
  __device__ __forceinline__ void move(int a, const Customer &c, int capacity) {
    at_ = a;
    if (a == 0 || c.kind_ < 0) {
      x_ = homeX_ = c.x_, y_ = homeY_ = c.y_;
      home_ = a == 0 ? 0 : -c.kind_, nowhere_ = false;
      left_ = capacity, picked_ = 0;
      length_ = time_ = 0;
      return;
    }
    if (nowhere_) {
      home_ = nearest(c), nowhere_ = false;
      const Customer &own = nodes_[depot_node(home_, n_)];
      x_ = homeX_ = own.x_, y_ = homeY_ = own.y_;
    }
    const float way = length(c.x_ - x_, c.y_ - y_);
    x_ = c.x_, y_ = c.y_;
    length_ = add_(length_, way);
    time_ = add_(__builtin_fmaxf(add_(time_, way), c.early_), c.service_);
    unserved_--;
    serves0_ -= c.kind_ & 1, serves1_ -= c.kind_ >> 1 & 1, serves2_ -= c.kind_ >> 2 & 1;
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

  // context: the shares of the load, the room, the time and the route's length that are left, where
  // its depot lies seen from the first, and the way there.
  __device__ __forceinline__ Context context(int capacity) const {
    return Context{{div_((float)left_, (float)capacity), div_((float)(capacity - picked_), (float)capacity), 1.0f - div_(time_, end_),
                    1.0f - div_(length_, limit_), homeX_ - nodes_->x_, homeY_ - nodes_->y_, length(homeX_ - x_, homeY_ - y_)}};
  }
  __device__ __forceinline__ Context context(const Shares &s) const {
    return Context{{quotient((float)left_, (float)capacity_, s.load_), quotient((float)(capacity_ - picked_), (float)capacity_, s.load_),
                    1.0f - quotient(time_, end_, s.time_), 1.0f - quotient(length_, limit_, s.length_),
                    homeX_ - nodes_->x_, homeY_ - nodes_->y_, length(homeX_ - x_, homeY_ - y_)}};
  }
};

// depart is the first vehicle of an instance of n nodes, nowhere yet; of a row that is past the
// last start n is 1.
__device__ __forceinline__ Vehicle depart(const Customer *nodes, int n, int capacity) {
  auto serves = [&](int d) { return n > DEPOTS ? __builtin_bit_cast(int, nodes[depot_node(d, n)].home1_) : 0; };
  return Vehicle{0, capacity, n > DEPOTS ? n - DEPOTS : 0, 0, capacity, nodes->kind_, nodes->x_, nodes->y_, 0, 0, nodes->home_, nodes->late_,
                 0, nodes->x_, nodes->y_, true, serves(0), serves(1), serves(2), nodes, n};
}
