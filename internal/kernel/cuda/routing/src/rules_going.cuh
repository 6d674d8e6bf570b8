// A vehicle of VRP or MDVRP on its way, as it asks many customers whether they may be next: what
// Vehicle::fits says where it stands at a customer.
#pragma once

// way_between is length, bit for bit where that is 0 or at least 2^-50, without sqrt's branch for
// smaller ones: ways side by side would wait for one another.
__device__ __forceinline__ float way_between(float dx, float dy) {
  const float square = add_(mul_(dx, dx), mul_(dy, dy));
  float over;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(over) : "f"(__builtin_fmaxf(square, 0x1p-101f)));
  const float root = mul_(square, over);
  return fma_(fma_(-root, root, square), mul_(over, 0.5f), root);
}

// quotient is a / b by the reciprocal of b, bit for bit: where that is rounded correctly, so is the
// quotient after one step (Markstein). b may be infinite.
__device__ __forceinline__ float quotient(float a, float b, float over) {
  const float q = mul_(a, over);
  return over == 0 ? 0.0f : fma_(fma_(-q, b, a), over, q);
}

// binds: what node j of an instance says forbids something beside loads.
__device__ __forceinline__ bool binds(const Customer &c, int j) { return c.late_ < infinite() || (j == 0 && c.home_ < infinite()); }

// Going is a vehicle that stands at a customer, as it asks others whether they may be next: fits of
// many at a time.
struct Going {
  int least_, most_; // demands that fit
  int home_;         // byte of a customer's way home
  float x_, y_, length_, time_, limit_, end_;

  // ask adds a bit to a mask if a customer fits; where nothing of the instance binds, times and
  // lengths need not be asked for.
  __device__ __forceinline__ void ask(u32 &mask, u32 bit, const Customer &c, bool bound) const {
    if (!bound) {
      asm("{.reg .pred p; setp.ge.s32 p, %2, %3; setp.le.and.s32 p, %2, %4, p; @p or.b32 %0, %0, %1;}"
          : "+r"(mask) : "r"(bit), "r"(c.demand_), "r"(least_), "r"(most_));
      return;
    }
    const float way = way_between(c.x_ - x_, c.y_ - y_), arrival = add_(time_, way), home = *(const float *)((const char *)&c + home_);
    all(mask, bit, c.demand_, add_(add_(length_, way), home), arrival, c.late_, add_(add_(__builtin_fmaxf(arrival, c.early_), c.service_), home));
  }

  // all: the demand fits, the route and its end keep their limits, and the arrival is not late. A
  // chain of predicates, which the compiler would make numbers of.
  __device__ __forceinline__ void all(u32 &mask, u32 bit, int demand, float route, float arrival, float late, float end) const {
    asm("{.reg .pred p; setp.ge.s32 p, %2, %3; setp.le.and.s32 p, %2, %4, p; setp.le.and.f32 p, %5, %6, p; setp.le.and.f32 p, %7, %8, p; "
        "setp.le.and.f32 p, %9, %10, p; @p or.b32 %0, %0, %1;}"
        : "+r"(mask) : "r"(bit), "r"(demand), "r"(least_), "r"(most_), "f"(route), "f"(limit_), "f"(arrival), "f"(late), "f"(end), "f"(end_));
  }
};
