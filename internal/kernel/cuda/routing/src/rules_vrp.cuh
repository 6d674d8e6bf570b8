// The nodes of VRP: kernel/rules_vrp.go has the columns, and how they are drawn.
#pragma once

enum { OPEN = 1, BACKHAUL = 2, MIXED_ORDER = 4, LIMITED = 8, WINDOWED = 16 }; // kernel.Attributes

struct Customer {
  int demand_; // less than 0: picked up
  float x_, y_, home_, early_, late_, service_;
  int kind_;
} __attribute__((aligned(16)));

// Own is what an instance has that its nodes' features show.
struct Own { int kind_; float limit_, end_; };

// Drawn is what instances are drawn by beside kernel.Drawing's numbers.
struct Drawn { u64 mix; };

__device__ __forceinline__ float infinite() { return __builtin_bit_cast(float, 0x7f800000); }

// drawn is node j of n, drawn at x, y with a demand. place(k, x, y) says where node k lies and
// returns its words; second(k) are those of its second block.
template <class P, class S>
__device__ __forceinline__ Customer drawn(int demand, float x, float y, int j, int n, float range, const Drawn &by, P place, S second, Own &own) {
  float px, py;
  u64 mix = by.mix;
  for (u32 k = below(place(1, px, py).w[3], (u32)__builtin_popcountll(mix)); k > 0; k--) mix &= mix - 1;
  const int kind = __builtin_ctzll(mix);
  float x0, y0;
  place(0, x0, y0);
  own = Own{kind, infinite(), kind & WINDOWED ? 4.6f : infinite()};
  if (kind & LIMITED) { // Drawing.limit
    float far = 0;
    for (int k = 1; k < n; k++) {
      place(k, px, py);
      far = __builtin_fmaxf(far, length(px - x0, py - y0));
    }
    const float low = 2.0f * far, high = __builtin_fmaxf(range, low);
    own.limit_ = add_(low, mul_(unit(second(0).w[0]), high - low));
  }
  if (j == 0) return Customer{demand, x, y, own.limit_, 0, own.end_, 0, kind};
  const float way = length(x - x0, y - y0);
  const Words u = second(j);
  Customer c{demand, x, y, kind & OPEN ? 0.0f : way, 0, infinite(), 0, 0};
  if (kind & BACKHAUL && unit(u.w[3]) < 0.2f) c.demand_ = -demand;
  if (kind & WINDOWED) { // drawnWindow
    const float width = add_(0.18f, mul_(0.02f, unit(u.w[1])));
    c.service_ = add_(0.15f, mul_(0.03f, unit(u.w[0])));
    c.early_ = add_(way, mul_(add_(add_(add_(4.6f, -c.service_), -width), -2.0f * way), unit(u.w[2])));
    c.late_ = add_(c.early_, width);
  }
  return c;
}

// Feature is what the policy sees of a node.
struct Feature { float x, y, share, depot, pickup, early, late, service, open, mixed, limit, end; } __attribute__((aligned(16)));
__device__ __forceinline__ Feature featured(const Customer &c, const Own &own, float x, float y, int j, int capacity) {
  auto finite = [](float v) { return v == infinite() ? 0.0f : v; };
  const int d = c.demand_;
  return Feature{x, y, div_((float)(d > 0 ? d : 0), (float)capacity), j == 0 ? 1.0f : 0.0f, div_((float)(d < 0 ? -d : 0), (float)capacity),
                 c.early_, finite(c.late_), c.service_, own.kind_ & OPEN ? 1.0f : 0.0f, own.kind_ & MIXED_ORDER ? 1.0f : 0.0f,
                 finite(own.limit_), finite(own.end_)};
}

// customer reads node j of an instance; past its n nodes, one that no vehicle can serve.
__device__ __forceinline__ Customer customer(const Customer *nodes, int j, int n) {
  if (j >= n) return Customer{0x7fffffff, 0, 0, 0, 0, 0, 0, 0};
  return nodes[j];
}

// shuffle is the customer that another lane of the warp has.
__device__ __forceinline__ Customer shuffle(const Customer &c, int lane) {
  return Customer{shfl(c.demand_, lane), shfl(c.x_, lane), shfl(c.y_, lane), shfl(c.home_, lane), shfl(c.early_, lane),
                  shfl(c.late_, lane), shfl(c.service_, lane), shfl(c.kind_, lane)};
}
