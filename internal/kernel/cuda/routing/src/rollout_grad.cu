// The rollout's gradient, but for the tensor cores' part (grad.cu): walking the recorded routes,
// any shape without tensor cores, and the sum over instances.
#include "decode.cuh"
#include "decision.cuh"
#include "replay.cuh"

#if CONTEXTS == 1
// Fits asks a warp whose lanes have four nodes each: lane, lane + 32 and so on.
struct Fits {
  Customer mine[4];

  __device__ __forceinline__ void ask(const Vehicle &) {}
  __device__ __forceinline__ bool has(int) const { return true; }
  __device__ __forceinline__ u32 operator()(int w, const Vehicle &v) const { return ballot(v.fits(mine[w])); }
  __device__ __forceinline__ Customer node(int a) const {
    Customer c = {};
#pragma unroll
    for (int w = 0; w < 4; w++)
      if (a >> 5 == w) c = shuffle(mine[w], a & 31);
    return c;
  }
};

// walk lists the decisions of instance blockIdx_x + first, start by start, at most 128 nodes, a
// warp a start:
//
//	for each start s, step t: if more than one node is allowed (and t is not the forced one):
//	  decisions[s·limit + k] = the state, the action and its weights, k counting from 0
//	order = the places of all decisions, by start and step; counts = how many
KERNEL __launch_bounds__(512) walk(Decision *decisions, int *order, int *counts, const int *actions, const int *steps, const float *adv,
                                   const Customer *instances, const Control *control, int first, int n, int starts, int limit, int capacity,
                                   int begins, float weight, int bonus) {
  int local = blockIdx_x, i = first + local, warp = threadIdx_x >> 5, lane = threadIdx_x & 31, warps = blockDim_x >> 5;
  int *found = (int *)smem; // [starts + 1]
  decisions += (u64)local * starts * limit;
  order += (u64)local * starts * limit;
  Fits fits;
#pragma unroll
  for (int k = 0; k < 4; k++) fits.mine[k] = customer(instances + i * n, k * 32 + lane, n);
#pragma unroll 1
  for (int s = warp; s < starts; s += warps) {
    const Route route = {actions + ((u64)i * starts + s) * limit, steps[i * starts + s], begins};
    const float wa = adv[i * starts + s], we = entropy_weight(control, bonus, weight, route.steps, begins);
    int k = 0;
    replay(Warp<4, Fits>(fits), route, depart(instances + i * n, n, capacity), capacity, [&](const u32 (&mask)[4], const Vehicle &v, int a, bool view) {
      if (lane == 0) {
        Decision r;
#pragma unroll
        for (int w = 0; w < 4; w++) r.mask[w] = mask[w];
        r.cur = view ? s + 1 : v.at();
        r.action = a;
        r.cap = sole(v.context(capacity));
        r.wa = wa;
        r.we = we;
        r.pad[0] = r.pad[1] = r.pad[2] = 0;
        decisions[(u64)s * limit + k] = r;
      }
      k++;
    });
    if (lane == 0) found[s] = k;
  }
  sync();
  if (threadIdx_x == 0) { // starts are few: a running sum in order
    int sum = 0;
    for (int s = 0; s < starts; s++) {
      int k = found[s];
      found[s] = sum;
      sum += k;
    }
    found[starts] = sum;
    counts[local] = sum;
  }
  sync();
#pragma unroll 1
  for (int s = warp; s < starts; s += warps)
    for (int k = lane; k < found[s + 1] - found[s]; k += 32) order[found[s] + k] = s * limit + k;
}
#endif

// grad_plain adds the gradient of every decision of instance blockIdx_x, one decision after the
// other, into the output tensors themselves; any shape whose H·N weights fit shared memory.
// reference.Decoder.grad is the loop. A thread owns the elements it strides over, in every decision
// the same, so nothing races.
KERNEL __launch_bounds__(256) grad_plain(float *dproj, float *dpointer, float *dgraph, float *dloads, const int *actions, const int *steps,
                                         const float *adv, const float *proj, const float *pointer, const float *graph, const float *load,
                                         const Customer *instances, const Control *control, int n, int stride, int dstride, int heads, int hd,
                                         int starts, int limit, int capacity, int begins, float weight, float scale, float pointerScale, int bonus,
                                         const float *biases, float *dbiases, int wide) {
  int i = blockIdx_x, tid = threadIdx_x, lane = tid & 31, warp = tid >> 5, threads = blockDim_x, warps = threads >> 5, d = heads * hd;
  proj += (u64)i * n * stride;
  pointer += (u64)i * n * d;
  dproj += (u64)i * n * dstride;
  dpointer += (u64)i * n * d;
  graph += (u64)i * d;
  const Customer *customers = instances + i * n;
  float *p = smem;
  float *q = p; p += d;
  float *g = p; p += d;
  float *dg = p; p += d;
  float *dq = p; p += d;
  float *sumGraph = p; p += d;
  float *sumContext = p; p += CONTEXTS * d;
  float *w = p; p += heads * n;
  float *ds = p; p += heads * n;
  float *th = p; p += n;
  float *du = p; p += n;
  int *ok = (int *)p; p += n;
  int *served = (int *)p;
  float mult = div_(10.0f, control->temperature);
  for (int k = tid; k < n * 3 * d; k += threads) dproj[(u64)(k / (3 * d)) * dstride + k % (3 * d)] = 0;
  for (int k = tid; k < n * d; k += threads) dpointer[k] = 0;
  const Biases bias(biases, i, n, wide);
  if (dbiases) {
    dbiases += (u64)i * (n + CONTEXTS) * wide;
    for (int k = 0; k < n + CONTEXTS; k++)
      for (int j = tid; j < wide; j += threads) dbiases[k * wide + j] = 0;
  }
  for (int c = tid; c < d; c += threads) {
    sumGraph[c] = 0;
#pragma unroll
    for (int k = 0; k < CONTEXTS; k++) sumContext[k * d + c] = 0;
  }
#pragma unroll 1
  for (int s = 0; s < starts; s++) {
    int row = i * starts + s, total = steps[row];
    const float wa = adv[row], we = entropy_weight(control, bonus, weight, total, begins);
    const Route route = {actions + (u64)row * limit, total, begins};
    replay(Block(customers, served, ok, n), route, depart(customers, n, capacity), capacity, [&](const int *open, const Vehicle &v, int a, bool view) {
      const int from = view ? s + 1 : v.at();
      for (int c = tid; c < d; c += threads)
        q[c] = v.context(capacity).times(load + c, d, proj[(u64)from * stride + c] + graph[c]);
      sync();
      for (int k = tid; k < heads * n; k += threads) {
        int h = k / n, j = k - h * n;
        float x = 0;
        for (int c = 0; c < hd; c++) x += q[h * hd + c] * proj[(u64)j * stride + d + h * hd + c];
        w[k] = x * scale;
      }
      sync();
      for (int h = warp; h < heads; h += warps) {
        float top = -INFINITE, sum = 0;
        for (int j = lane; j < n; j += 32)
          if (open[j]) top = larger(top, w[h * n + j]);
        top = warp_max(top);
        for (int j = lane; j < n; j += 32) {
          float e = open[j] ? ex2((w[h * n + j] - top) * LOG2E) : 0.0f;
          w[h * n + j] = e;
          sum += e;
        }
        sum = warp_sum(sum);
        for (int j = lane; j < n; j += 32) w[h * n + j] = div_(w[h * n + j], sum);
      }
      sync();
      for (int c = tid; c < d; c += threads) {
        float x = 0;
        for (int j = 0; j < n; j++) x += w[c / hd * n + j] * proj[(u64)j * stride + 2 * d + c];
        g[c] = x;
      }
      sync();
      for (int j = tid; j < n; j += threads) {
        float x = 0;
        for (int c = 0; c < d; c++) x += g[c] * pointer[(u64)j * d + c];
        x *= pointerScale;
        if (bias.table) x += bias(from, v.context(capacity), j);
        th[j] = tanh_(x);
      }
      sync();
      if (warp == 0) {
        float top = -INFINITE, sum = 0, mean = 0;
        for (int j = lane; j < n; j += 32)
          if (open[j]) top = larger(top, th[j]);
        top = warp_max(top);
        for (int j = lane; j < n; j += 32) {
          float z = (th[j] - top) * mult, e = open[j] ? ex2(z * LOG2E) : 0.0f;
          du[j] = e;
          sum += e;
          mean += e * z;
        }
        sum = warp_sum(sum);
        mean = warp_sum(mean);
        float logSum = logf_(sum), entropy = logSum - div_(mean, sum);
        for (int j = lane; j < n; j += 32) {
          float prob = div_(du[j], sum), dz = -prob * (wa + we * ((th[j] - top) * mult - logSum + entropy));
          if (j == a) dz += wa;
          du[j] = open[j] ? dz * mult * (1.0f - th[j] * th[j]) * pointerScale : 0.0f;
        }
      }
      sync();
      for (int c = tid; c < d; c += threads) {
        float x = 0;
        for (int j = 0; j < n; j++) x += du[j] * pointer[(u64)j * d + c];
        dg[c] = x;
      }
      for (int k = tid; k < n * d; k += threads) dpointer[k] += du[k / d] * g[k % d];
      if (dbiases)
        for (int j = tid; j < n; j += threads) {
          dbiases[from * wide + j] += du[j];
#pragma unroll
          for (int k = 0; k < CONTEXTS; k++) dbiases[(n + k) * wide + j] += v.context(capacity).part[k] * du[j];
        }
      sync();
      for (int k = tid; k < heads * n; k += threads) {
        int h = k / n, j = k - h * n;
        float x = 0;
        for (int c = 0; c < hd; c++) x += dg[h * hd + c] * proj[(u64)j * stride + 2 * d + h * hd + c];
        ds[k] = x;
      }
      sync();
      for (int h = warp; h < heads; h += warps) {
        float dot = 0;
        for (int j = lane; j < n; j += 32) dot += w[h * n + j] * ds[h * n + j];
        dot = warp_sum(dot);
        for (int j = lane; j < n; j += 32) ds[h * n + j] = w[h * n + j] * (ds[h * n + j] - dot) * scale;
      }
      sync();
      for (int k = tid; k < n * d; k += threads) {
        int j = k / d, c = k - j * d, h = c / hd;
        float *at = dproj + (u64)j * dstride + c;
        at[d] += ds[h * n + j] * q[c];
        at[2 * d] += w[h * n + j] * dg[c];
      }
      for (int c = tid; c < d; c += threads) {
        float x = 0;
        for (int j = 0; j < n; j++) x += ds[c / hd * n + j] * proj[(u64)j * stride + d + c];
        dq[c] = x;
        sumGraph[c] += x;
#pragma unroll
        for (int k = 0; k < CONTEXTS; k++) sumContext[k * d + c] += v.context(capacity).part[k] * x;
        dproj[(u64)from * dstride + c] += x;
      }
    });
  }
  sync();
  for (int c = tid; c < d; c += threads) {
    dgraph[(u64)i * d + c] = sumGraph[c];
#pragma unroll
    for (int k = 0; k < CONTEXTS; k++) dloads[((u64)i * CONTEXTS + k) * d + c] = sumContext[k * d + c];
  }
}

// sum_loads: gradient lane l gets Σ over its instances, a contiguous share, of dloads[i·each +
// k][c], k < each, in order; all of it is written, or added to where the gradient is not fresh. A
// thread per column, a row of blocks per gradient lane.
KERNEL sum_loads(float *grad, const float *dloads, int instances, int each, int gradLanes, int gradLaneSize, int d, int fresh) {
  int c = blockIdx_x * blockDim_x + threadIdx_x, l = blockIdx_y;
  if (c >= d) return;
  int from = (int)((u64)instances * l / gradLanes) * each, to = (int)((u64)instances * (l + 1) / gradLanes) * each;
  float sum = 0;
#pragma unroll 8
  for (int i = from; i < to; i++) sum += dloads[(u64)i * d + c];
  grad += (u64)l * gradLaneSize + c;
  *grad = fresh ? sum : *grad + sum;
}
