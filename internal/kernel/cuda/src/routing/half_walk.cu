// What the fp16 gradient of the decisions begins with (choices.cuh): the recorded routes are walked and their decisions sorted, and the
// scores that decisions at one node share are tabled.
#include "choices.cuh"
#include "law.cuh"
#include "rules.cuh"

__device__ __forceinline__ void or_shared(u32 *p, u32 v) {
  asm volatile("{.reg .u64 t; cvta.to.shared.u64 t, %0; red.shared.or.b32 [t], %1;}" ::"l"(p), "r"(v) : "memory");
}

// walk_sorted lists the decisions of instance blockIdx_x + first, at most 128 nodes, a warp a start:
//
//	choices = the decisions in order;  stands[g] = the node of group g;  counts = how many, groups and tiles filled up
//	present[j] = how many stand at node j;  ups = a power of two that brings gradients near one
//
// found[s·limit + k] is where decision k of start s waits until all are known. Shared memory: 2·starts + 2n + 3 +
// n·⌈starts/32⌉ words.
KERNEL __launch_bounds__(512) walk_sorted(Choice *choices, int *stands, int *counts, int *present, float *ups, Choice *found, const int *actions,
                                          const int *steps, const float *adv, const int *demand, const Control *control, int first, int n, int starts,
                                          int limit, int room, int capacity, int forced, float weight, int bonus, float pointerScale) {
  int local = blockIdx_x, i = first + local, warp = threadIdx_x >> 5, lane = threadIdx_x & 31, warps = blockDim_x >> 5, words = (starts + 31) >> 5;
  int *many = (int *)smem;            // [starts]: decisions of a start
  int *depots = many + starts;        // [starts + 1]: those at the depot, then how many come before
  int *from = depots + starts + 1;    // [n + 1]: where a node's decisions begin
  int *here = from + n + 1;           // [n]: how many there are
  float *heaviest = (float *)(here + n);
  u32 *who = (u32 *)(here + n + 1);   // [n][words]: the starts that decide at a customer, once each
  found += (u64)local * starts * limit;
  choices += (u64)local * room;
  stands += (u64)local * (room >> 3);
  for (int k = threadIdx_x; k < n * words; k += blockDim_x) who[k] = 0;
  sync();
  Customer mine[4]; // nodes lane + 32k
#pragma unroll
  for (int k = 0; k < 4; k++) mine[k] = customer(demand + i * n, k * 32 + lane, n);
#pragma unroll 1
  for (int s = warp; s < starts; s += warps) {
    const int *route = actions + ((u64)i * starts + s) * limit;
    int total = steps[i * starts + s], k = 0, home = 0, batch = 0;
    float wa = adv[i * starts + s], we = entropy_weight(control, bonus, weight, total, forced);
    Vehicle v = depart(n, capacity);
    u32 served[4] = {};
#pragma unroll 1
    for (int t = 0; t < total; t++) {
      if ((t & 31) == 0) batch = t + lane < total ? route[t + lane] : 0;
      int a = shfl(batch, t & 31);
      u32 mask[4];
      int allowed = 0;
#pragma unroll
      for (int w = 0; w < 4; w++) {
        mask[w] = v.allowed(ballot(v.fits(mine[w])), served[w], w == 0);
        allowed += __builtin_popcount(mask[w]);
      }
      if (allowed > 1 && !(forced && t == 0)) {
        if (lane == 0) {
          found[s * limit + k] = Choice{{mask[0], mask[1], mask[2], mask[3]}, v.load(capacity), wa, we, a | v.at << 16};
          if (v.at) or_shared(who + v.at * words + (s >> 5), 1u << (s & 31));
        }
        k++;
        home += v.at == 0;
      }
      Customer next = {};
#pragma unroll
      for (int w = 0; w < 4; w++)
        if (a >> 5 == w) {
          next.demand = shfl(mine[w].demand, a & 31);
          served[w] |= 1u << (a & 31); // the depot's bit is never asked
        }
      v.move(a, next, capacity);
    }
    if (lane == 0) {
      many[s] = k;
      depots[s] = home;
    }
  }
  sync();
  if (warp == 0) { // starts are few: running sums in order
    int sum = 0;
    for (int s = 0; s < starts; s += 32) {
      int mine = s + lane < starts ? depots[s + lane] : 0, run = mine;
#pragma unroll
      for (int d = 1; d < 32; d <<= 1) {
        int low = shfl(run, lane - d);
        if (lane >= d) run += low;
      }
      if (s + lane < starts) depots[s + lane] = sum + run - mine;
      sum += shfl(run, 31);
    }
    float top = 0;
    for (int s = lane; s < starts; s += 32) {
      top = larger(top, __builtin_fabsf(adv[i * starts + s]));
      top = larger(top, __builtin_fabsf(entropy_weight(control, bonus, weight, steps[i * starts + s], forced)));
    }
    top = warp_max(top);
    if (lane == 0) {
      depots[starts] = sum;
      *heaviest = top;
    }
  }
  sync();
  for (int j = threadIdx_x; j < n; j += blockDim_x) {
    int sum = 0;
    for (int w = 0; w < words; w++) sum += __builtin_popcount(who[j * words + w]);
    here[j] = j ? sum : depots[starts];
    present[local * 128 + j] = here[j];
  }
  sync();
  if (threadIdx_x == 0) {
    int sum = 0, last = 0;
    for (int j = 0; j < n; j++) {
      from[j] = sum;
      sum += (here[j] + 7) & ~7;
      if (here[j]) last = j;
    }
    from[n] = sum = (sum + 15) & ~15;
    for (int j = last + 1; j < n; j++) from[j] = sum; // the last node fills up the tile
    counts[local] = sum;
    // What a weight becomes on its way to a dot product, near a quarter: fp16 holds 2^16 times as much and, less exactly, 2^-22 of it.
    float most = *heaviest * div_(10.0f, control->temperature) * pointerScale;
    int e = 252 - ((as_int(most) >> 23) & 255);
    ups[local] = as_float((u32)(e < 1 ? 1 : e) << 23);
  }
  sync();
  for (int j = warp; j < n; j += warps) {
    for (int k = from[j] + lane; k < from[j + 1]; k += 32) {
      if ((k & 7) == 0) stands[k >> 3] = j;
      if (k - from[j] >= here[j]) choices[k] = Choice{{1, 0, 0, 0}, 0, 0, 0, j << 16};
    }
  }
#pragma unroll 1
  for (int s = warp; s < starts; s += warps) {
    int before = depots[s];
#pragma unroll 1
    for (int k = 0; k < many[s]; k += 32) {
      bool real = k + lane < many[s];
      Choice c = found[s * limit + (real ? k + lane : 0)];
      int j = c.node >> 16;
      u32 home = ballot(real && j == 0);
      int to = from[j];
      if (j == 0) {
        to += before + __builtin_popcount(home & ((1u << lane) - 1));
      } else {
        for (int w = 0; w < s >> 5; w++) to += __builtin_popcount(who[j * words + w]);
        to += __builtin_popcount(who[j * words + (s >> 5)] & ((1u << (s & 31)) - 1));
      }
      if (real) choices[to] = c;
      before += __builtin_popcount(home);
    }
  }
}

// score_tables: table[cur][table_at(j)] = (node_cur + graph)·key_j·k for head blockIdx_y of instance blockIdx_x + first, and row n the same of load; zero
// past n. `wide` floats a row. Shared memory: (2n + 1)·(hd + 4) floats. A thread makes four by four.
KERNEL __launch_bounds__(256) score_tables(float *tables, const float *proj, const float *graph, const float *load, int first, int n, int stride,
                                           int heads, int hd, int wide, float k) {
  int i = first + blockIdx_x, h = blockIdx_y, line = hd + 4, d = heads * hd;
  float *queries = smem, *keys = queries + (n + 1) * line;
  proj += (u64)i * n * stride + h * hd;
  tables += ((u64)blockIdx_x * heads + h) * (n + 1) * wide;
  graph += (u64)i * d + h * hd;
  for (int p = threadIdx_x; p < n * (hd / 4); p += blockDim_x) {
    int j = p / (hd / 4), c = p % (hd / 4) * 4;
    *(float4_ *)(queries + j * line + c) = four(proj + (u64)j * stride + c) + float4_{graph[c], graph[c + 1], graph[c + 2], graph[c + 3]};
    *(float4_ *)(keys + j * line + c) = four(proj + (u64)j * stride + d + c);
  }
  for (int c = threadIdx_x; c < hd; c += blockDim_x) queries[n * line + c] = load[h * hd + c];
  sync();
  int across = wide / 4, rows = (n + 4) / 4;
  for (int p = threadIdx_x; p < rows * across; p += blockDim_x) {
    int cur = p / across * 4, j = p % across * 4;
    float sum[4][4] = {};
    int q[4], w[4];
#pragma unroll
    for (int a = 0; a < 4; a++) {
      q[a] = smaller(cur + a, n) * line;
      w[a] = smaller(j + a, n - 1) * line;
    }
#pragma unroll 1
    for (int c = 0; c < hd; c += 4) {
      float4_ x[4], y[4];
#pragma unroll
      for (int a = 0; a < 4; a++) x[a] = four(queries + q[a] + c), y[a] = four(keys + w[a] + c);
#pragma unroll
      for (int a = 0; a < 4; a++)
#pragma unroll
        for (int b = 0; b < 4; b++) sum[a][b] += x[a].x * y[b].x + x[a].y * y[b].y + x[a].z * y[b].z + x[a].w * y[b].w;
    }
#pragma unroll
    for (int a = 0; a < 4; a++)
      if (cur + a <= n)
#pragma unroll
        for (int b = 0; b < 4; b++) tables[(cur + a) * wide + table_at(j + b)] = j + b < n ? sum[a][b] * k : 0.0f;
  }
}
