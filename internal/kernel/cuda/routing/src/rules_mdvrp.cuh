// The nodes of MDVRP, VRP with up to three depots: kernel/rules_mdvrp.go has the columns, how they
// are drawn and the rules. Node 0 is the first depot, further ones are the last nodes.
#pragma once

enum { OPEN = 1, BACKHAUL = 2, MIXED_ORDER = 4, LIMITED = 8, WINDOWED = 16, SEVERAL = 32 }; // kernel.Attributes
#define DEPOTS 3

// depot_node is the node of depot d of n nodes.
__device__ __forceinline__ int depot_node(int d, int n) { return d == 0 ? 0 : n - DEPOTS + d; }

// depot_at is the depot at node j of n, less than 0 for a customer.
__device__ __forceinline__ int depot_at(int j, int n) { return j == 0 ? 0 : j > n - DEPOTS ? j - (n - DEPOTS) : -1; }

// At a customer kind_ has a bit for each depot that can serve it, and the homes are the ways there;
// at further depots it is less than 0, their number. At a depot home1_ is how many customers it
// can serve, as the bits of an integer.
struct Customer {
  int demand_; // less than 0: picked up
  float x_, y_, home_, early_, late_, service_;
  int kind_;
  float home1_, home2_;
};

// Own is what an instance has that its nodes' features show.
struct Own { int kind_; float limit_, end_; };

// Drawn is what instances are drawn by beside kernel.Drawing's numbers.
struct Drawn { u64 mix; };

__device__ __forceinline__ float infinite() { return __builtin_bit_cast(float, 0x7f800000); }

// drawn is node j of n, drawn at x, y with a demand. place(k, x, y) says where node k lies and
// returns its words; second(k) are those of its second block. x and y become those of the first
// depot where an instance has no further ones.
template <class P, class S>
__device__ __forceinline__ Customer drawn(int demand, float &x, float &y, int j, int n, float range, const Drawn &by, P place, S second, Own &own) {
  float px, py;
  u64 mix = by.mix;
  for (u32 k = below(place(1, px, py).w[3], (u32)__builtin_popcountll(mix)); k > 0; k--) mix &= mix - 1;
  const int kind = __builtin_ctzll(mix), depots = kind & SEVERAL ? DEPOTS : 1;
  float dx[DEPOTS], dy[DEPOTS];
  place(0, dx[0], dy[0]);
#pragma unroll
  for (int d = 1; d < DEPOTS; d++) {
    place(depot_node(d, n), dx[d], dy[d]);
    if (d >= depots) dx[d] = dx[0], dy[d] = dy[0];
  }
  own = Own{kind, infinite(), kind & WINDOWED ? 4.6f : infinite()};
  if (kind & LIMITED) { // Drawing.limit
    float far = 0;
    for (int k = 1; k <= n - DEPOTS; k++) {
      place(k, px, py);
      far = __builtin_fmaxf(far, length(px - dx[0], py - dy[0]));
    }
#pragma unroll
    for (int d = 1; d < DEPOTS; d++) far = __builtin_fmaxf(far, length(dx[d] - dx[0], dy[d] - dy[0]));
    const float low = 2.0f * far, high = __builtin_fmaxf(range, low);
    own.limit_ = add_(low, mul_(unit(second(0).w[0]), high - low));
  }
  // lone is customer k at x, y: its window, and the depots that can serve it.
  auto lone = [&](int k, float x, float y, int demand) {
    float ways[DEPOTS];
#pragma unroll
    for (int d = 0; d < DEPOTS; d++) ways[d] = length(x - dx[d], y - dy[d]);
    const bool open = kind & OPEN;
    const Words u = second(k);
    Customer c{demand, x, y, open ? 0.0f : ways[0], 0, infinite(), 0, 0, open ? 0.0f : ways[1], open ? 0.0f : ways[2]};
    if (kind & BACKHAUL && unit(u.w[3]) < 0.2f) c.demand_ = -demand;
    if (kind & WINDOWED) { // drawnWindow
      const float width = add_(0.18f, mul_(0.02f, unit(u.w[1])));
      c.service_ = add_(0.15f, mul_(0.03f, unit(u.w[0])));
      c.early_ = add_(ways[0], mul_(add_(add_(add_(4.6f, -c.service_), -width), -2.0f * ways[0]), unit(u.w[2])));
      c.late_ = add_(c.early_, width);
    }
    int nearest = 0;
#pragma unroll
    for (int d = 0; d < DEPOTS; d++) {
      if (ways[d] < ways[nearest]) nearest = d;
      const float home = open ? 0.0f : ways[d];
      const bool serves = add_(ways[d], home) <= own.limit_ && ways[d] <= c.late_ &&
                          add_(add_(__builtin_fmaxf(ways[d], c.early_), c.service_), home) <= own.end_;
      if (serves && d < depots) c.kind_ |= 1 << d;
    }
    c.kind_ |= 1 << nearest;
    return c;
  };
  const int depot = depot_at(j, n);
  if (depot < 0) return lone(j, x, y, demand);
  x = depot == 0 ? dx[0] : depot == 1 ? dx[1] : dx[2], y = depot == 0 ? dy[0] : depot == 1 ? dy[1] : dy[2];
  int count = 0;
  for (int k = 1; k <= n - DEPOTS; k++) {
    place(k, px, py);
    count += lone(k, px, py, 0).kind_ >> depot & 1;
  }
  return Customer{0, x, y, own.limit_, 0, own.end_, 0, depot == 0 ? kind : -depot, __builtin_bit_cast(float, count), 0};
}

// Feature is what the policy sees of a node.
struct Feature { float x, y, share, depot, pickup, early, late, service, open, mixed, limit, end, several; };
__device__ __forceinline__ Feature featured(const Customer &c, const Own &own, float x, float y, int j, int capacity) {
  auto finite = [](float v) { return v == infinite() ? 0.0f : v; };
  const int d = c.demand_;
  return Feature{x, y, div_((float)(d > 0 ? d : 0), (float)capacity), j == 0 || c.kind_ < 0 ? 1.0f : 0.0f,
                 div_((float)(d < 0 ? -d : 0), (float)capacity), c.early_, finite(c.late_), c.service_, own.kind_ & OPEN ? 1.0f : 0.0f,
                 own.kind_ & MIXED_ORDER ? 1.0f : 0.0f, finite(own.limit_), finite(own.end_), own.kind_ & SEVERAL ? 1.0f : 0.0f};
}

// customer reads node j of an instance; past its n nodes, one that no vehicle can serve.
__device__ __forceinline__ Customer customer(const Customer *nodes, int j, int n) {
  if (j >= n) return Customer{0x7fffffff, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  return nodes[j];
}

// shuffle is the customer that another lane of the warp has.
__device__ __forceinline__ Customer shuffle(const Customer &c, int lane) {
  return Customer{shfl(c.demand_, lane), shfl(c.x_, lane), shfl(c.y_, lane), shfl(c.home_, lane), shfl(c.early_, lane),
                  shfl(c.late_, lane), shfl(c.service_, lane), shfl(c.kind_, lane), shfl(c.home1_, lane), shfl(c.home2_, lane)};
}
