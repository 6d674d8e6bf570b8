// Rollouts of many starts of one instance, sixteen starts a warp: the state of a row, and what a
// step does around the policy, which starts.cu computes in fp32 and in tf32 and starts_half.cu in
// fp16. A quad of lanes has two rows, eight starts apart.
//
// What a reader could break: warps share nothing but the read-only projections, so there is no
// barrier once those are there; every shuffle needs all lanes, so whatever a row does, its lanes
// stay in the loop until the warp's last row has ended.
#pragma once
#include "distribution.cuh"
#include "rules.cuh"

// Row is the state of one row, the same in all four lanes of its quad except served.
struct Row {
  Vehicle vehicle;
  int steps, action;
  bool done;
  u32 served; // of this lane's nodes
  float length, logProb, entropy;
#if TILES > 16
  u32 far; // of `served`: this lane's nodes from 128 on, as if they were its first
#endif
};

// quad_before is the sum of a quad's numbers before this lane's; run, this lane's own, becomes the
// sum up to it.
__device__ __forceinline__ float quad_before(float &run) {
  int t = threadIdx_x & 3;
  float low = shfl_up(run, 1);
  if (t >= 1) run += low;
  low = shfl_up(run, 2);
  if (t >= 2) run += low;
  low = shfl_up(run, 1);
  return t >= 1 ? low : 0.0f;
}

// begin is a row before its first step. One past the last start is done from the first on, and has
// no customer.
__device__ __forceinline__ Row begin(const Customer *nodes, bool done, int n, int capacity) {
  return Row{depart(nodes, done ? 1 : n, capacity), 0, 0, done, 0, 0, 0, 0};
}

// asks: the policy chooses the row's next node, of `count` that are allowed. A forced first step
// asks nobody.
__device__ __forceinline__ bool asks(const Row &row, bool first, int count) { return !row.done && !first && count > 1; }

// move takes both rows to their actions, and records them from `at` on, unless they are replayed.
// Bit TILE·T + ODD·b of a lane's masks is node 8T + 2t + b, b < 2.
template <int TILE, int ODD>
__device__ __forceinline__ void move(Row (&row)[2], int *actions, const u64 (&at)[2], int t, const float *x, const float *y,
                                     const Customer *customers, int capacity, int choice) {
  int t4 = threadIdx_x & 3;
#pragma unroll
  for (int r = 0; r < 2; r++) {
    if (row[r].done) continue;
    int a = row[r].action;
    row[r].length += leg(x, y, FROM(row[r].vehicle, a), row[r].vehicle.to(a));
    if (choice != REPLAY && t4 == 0) actions[at[r] + t] = a;
    row[r].steps++;
    row[r].vehicle.move(a, customers[a], capacity);
    row[r].done = row[r].vehicle.ended();
    // the depot's is never asked
#if TILES > 16
    if ((a >> 1 & 3) == t4 && SERVED(row[r].vehicle, a)) {
      const u32 bit = 1u << (TILE * (a >> 3 & 15) + ODD * (a & 1));
      row[r].served |= a < 128 ? bit : 0;
      row[r].far |= a < 128 ? 0 : bit;
    }
#else
    if ((a >> 1 & 3) == t4 && SERVED(row[r].vehicle, a)) row[r].served |= 1u << (TILE * (a >> 3) + ODD * (a & 1));
#endif
  }
}

// keep writes what a row came to as number `to` of all starts, and zeros for the actions after its
// last.
__device__ __forceinline__ void keep(int *actions, int *steps, float *length, float *logProb, float *entropy, const Row &row, u64 at,
                                     u32 to, int limit, int choice, int begins) {
  int t4 = threadIdx_x & 3;
  if (choice != REPLAY)
    for (int k = row.steps + t4; k < limit; k += 4) actions[at + k] = 0;
  if (t4 != 0) return;
  steps[to] = row.steps;
  length[to] = row.length;
  logProb[to] = row.logProb;
  entropy[to] = div_(row.entropy, scored(row.steps, begins));
}
