// Routing instances and their features, a thread a node. Bit for bit vrp.Source.Fill: the same
// words of the same Philox blocks, divisions rounded to nearest, no fused operation.
#include "rules.cuh"

#define SECOND_BLOCK (1 << 20) // secondBlock of kernel/rules_vrp.go
#if defined(VRP) || defined(MDVRP)
#define MIXED , u64 mix
#define DRAWN Drawn{mix}
#else
#define MIXED
#define DRAWN Drawn{}
#endif

// generate: node j of row r is node j of instance g = state.instances + r:
//
//	u = philox(seed, g/symmetries, j, purpose)
//	x, y = u[0], u[1] on the grid or in [0,1), under symmetry g%symmetries
//	demand = low + u[2] below span, 0 at the depot;  what else a node has is the rules'
//
// With capacities > 0 the instance has its own, q = least + the lesser of the depot's u[2] and u[3]
// below capacities, and demand = demand·capacity/q, rounded down.
KERNEL generate(float *posX, float *posY, Customer *customers, Feature *feature, const State *state, u64 seed, u32 purpose, u32 grid, u32 low, u32 span,
                int capacity, u32 least, u32 capacities, int symmetries, int nodes, int n, float range MIXED) {
  int k = blockIdx_x * blockDim_x + threadIdx_x;
  if (k >= nodes) return;
  int j = k % n;
  u64 index = state->instances + k / n;
  u32 symmetry = 0;
  if (symmetries > 1) {
    symmetry = (u32)(index % symmetries);
    index /= symmetries;
  }
  // place is where a node lies, and its words.
  auto place = [&](int j, float &x, float &y) {
    Words u = philox(seed, index, j, purpose);
    if (grid > 0) {
      x = div_((float)below(u.w[0], grid + 1), (float)grid);
      y = div_((float)below(u.w[1], grid + 1), (float)grid);
    } else {
      x = unit(u.w[0]);
      y = unit(u.w[1]);
    }
    if (symmetry & 1) x = 1.0f - x;
    if (symmetry & 2) y = 1.0f - y;
    if (symmetry & 4) {
      float z = x;
      x = y;
      y = z;
    }
    return u;
  };
  float x, y;
  const Words u = place(j, x, y);
  int load = j == 0 ? 0 : (int)(low + below(u.w[2], span));
  if (capacities > 0) {
    Words d = philox(seed, index, 0, purpose);
    u32 a = below(d.w[2], capacities), b = below(d.w[3], capacities);
    load = (int)((u64)load * (u64)capacity / (least + (a < b ? a : b)));
  }
#ifndef MDVRP // whose depots may move
  posX[k] = x;
  posY[k] = y;
#endif
  Own own;
  auto second = [&](int j) { return philox(seed, index, SECOND_BLOCK + j, purpose); };
  const Customer c = drawn(load, x, y, j, n, range, DRAWN, place, second, own);
#ifdef MDVRP
  posX[k] = x;
  posY[k] = y;
#endif
  customers[k] = c;
  feature[k] = featured(c, own, x, y, j, capacity);
}
