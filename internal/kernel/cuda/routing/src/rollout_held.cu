// Rollouts of one row, an (instance, start), a block, a warp a head, with keys, values and pointer
// keys in registers for the whole route, as right operands of tensor cores in fp16, whose ten bits
// of mantissa are tf32's. All decode steps in one launch. TILES, a module's, is how many tiles of
// eight nodes there are room for.
//
// What a reader could break: as in rollout.cu, every warp decides for itself from the same partial
// dot products, in the same order, so that all hold the same state and take the same branches; one
// barrier a step is enough only because the partial products alternate between two buffers.
//
// Who holds what: lane = 4g + t. The one query of a step is many equal rows of a left operand, so
// that every g has the same results. Terms that are columns of a head: lane t has 4t..4t+3 of every
// 16 in the first product. The glimpse comes out with column g of tile c being HD/8·g + c, so that
// the third product takes it as it stands. Nodes as terms: lane t has four of every 16, see
// `owner`. Everything else has nodes by lanes: lane l has nodes EACH·l..EACH·l+EACH-1.
#include "decode.cuh"
#include "rules.cuh"

constexpr int NODES = 8 * TILES;
constexpr int EACH = NODES <= 32 ? 1 : NODES <= 64 ? 2 : NODES <= 128 ? 4 : NODES <= 192 ? 6 : 8; // nodes of a lane
constexpr int SPAN = 32 * EACH;                             // floats of a list of nodes
constexpr int STEPS = (TILES + 1) / 2;                      // of 16 nodes as terms
constexpr float HIGHEST = 65504;                            // fp16's
constexpr u32 ONES = 0x3c003c00;                            // two of its ones

__device__ __forceinline__ u32 halves(float low, float high) {
  u32 r;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}
__device__ __forceinline__ float bounded(float x) { return __builtin_fminf(__builtin_fmaxf(x, -HIGHEST), HIGHEST); }
// held rounds what stays in registers: what fp16 cannot hold becomes its largest number, not
// infinity.
__device__ __forceinline__ u32 held(float low, float high) { return halves(bounded(low), bounded(high)); }

// Pair are left operands of two products at once: rows 0..7, all alike, of the one, rows 8..15 of
// the other, so that four different registers serve both without a copy. A product with the one's
// right operand is read in rows 0..7 of its result (c[0], c[1]), with the other's in rows 8..15
// (c[2], c[3]).
struct Pair { u32 one[2], other[2]; };

// c[16×8] (+)= a·b over 16 terms. With fresh it starts from 0, which takes no register.
__device__ __forceinline__ void multiply(float (&c)[4], const Pair &a, const u32 (&b)[2], bool fresh) {
  if (fresh)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%10,%10,%10};"
        : "=f"(c[0]), "=f"(c[1]), "=f"(c[2]), "=f"(c[3])
        : "r"(a.one[0]), "r"(a.other[0]), "r"(a.one[1]), "r"(a.other[1]), "r"(b[0]), "r"(b[1]), "f"(0.0f));
  else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a.one[0]), "r"(a.other[0]), "r"(a.one[1]), "r"(a.other[1]), "r"(b[0]), "r"(b[1]));
}

// owner: terms 4t.. of step m are nodes 4·STEPS·t + 4m.., so that a lane's weights lie side by
// side.
__device__ __forceinline__ int owner(int m, int t) { return 4 * STEPS * t + 4 * m; }

// Held is one head of an instance.
template <int HD> struct Held {
  u32 keys[TILES][HD / 16][2], values[STEPS][HD / 8][2], pointers[TILES][HD / 16][2];

  __device__ __forceinline__ void read(const float *proj, int stride, const float *pointer, int n, int d) {
    const int lane = threadIdx_x & 31, g = lane >> 2, t = lane & 3;
#pragma unroll
    for (int T = 0; T < TILES; T++) {
      const int j = 8 * T + g;
#pragma unroll
      for (int c = 0; c < HD / 16; c++) {
        const float4_ k = j < n ? four(proj + d + (u64)j * stride + 16 * c + 4 * t) : float4_{0, 0, 0, 0};
        keys[T][c][0] = held(k.x, k.y), keys[T][c][1] = held(k.z, k.w);
      }
      const float *p = pointer + (u64)j * d + HD / 4 * t;
      if (HD == 32) {
        const float4_ u = j < n ? four(p) : float4_{0, 0, 0, 0}, v = j < n ? four(p + 4) : float4_{0, 0, 0, 0};
        pointers[T][0][0] = held(u.x, v.x), pointers[T][0][1] = held(u.y, v.y);
        pointers[T][HD / 16 - 1][0] = held(u.z, v.z), pointers[T][HD / 16 - 1][1] = held(u.w, v.w);
      } else {
        const float4_ u = j < n ? four(p) : float4_{0, 0, 0, 0};
        pointers[T][0][0] = held(u.x, u.z), pointers[T][0][1] = held(u.y, u.w);
      }
    }
#pragma unroll
    for (int m = 0; m < STEPS; m++) {
      float4_ v[4];
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const int j = owner(m, t) + i;
        const float *p = proj + 2 * d + (u64)j * stride + HD / 8 * g;
        v[i] = float4_{0, 0, 0, 0};
        if (j < n) {
          if (HD == 32) {
            v[i] = four(p);
          } else {
            const float2_ w = two(p);
            v[i].x = w.x, v[i].y = w.y;
          }
        }
      }
#pragma unroll
      for (int c = 0; c < HD / 8; c++) values[m][c][0] = held(v[0][c], v[1][c]), values[m][c][1] = held(v[2][c], v[3][c]);
    }
  }
};

// list writes a product's results, nodes 8T+2t and 8T+2t+1 of tile T, into a list of nodes in
// shared memory. Every g has them, and all write the same.
template <int HD> __device__ __forceinline__ void list(float *to, const Pair &a, const u32 (&b)[TILES][HD / 16][2]) {
  to += 2 * (threadIdx_x & 3);
#pragma unroll
  for (int T = 0; T < TILES; T++) {
    float s[4], s2[4];
    multiply(s, a, b[T][0], true);
    if (HD == 32) {
      multiply(s2, a, b[T][HD / 16 - 1], true);
      s[0] += s2[2], s[1] += s2[3];
    }
    *(float2_ *)(to + 8 * T) = float2_{s[0], s[1]};
  }
}

struct List { float v[EACH]; };
// mine are a lane's own nodes of a list.
__device__ __forceinline__ List mine(const float *list) {
  const int lane = threadIdx_x & 31;
  List out;
  if constexpr (EACH > 4) {
#pragma unroll
    for (int k = 0; k < EACH; k += 2) {
      const float2_ v = two(list + EACH * lane + k);
      out.v[k] = v.x, out.v[k + 1] = v.y;
    }
  } else if constexpr (EACH == 4) {
    const float4_ v = four(list + 4 * lane);
    out.v[0] = v.x, out.v[1] = v.y, out.v[2] = v.z, out.v[3] = v.w;
  } else if constexpr (EACH == 2) {
    const float2_ v = two(list + 2 * lane);
    out.v[0] = v.x, out.v[1] = v.y;
  } else {
    out.v[0] = list[lane];
  }
  return out;
}

__device__ __forceinline__ float warp_add(float v) {
#pragma unroll
  for (int m = 16; m > 0; m >>= 1) v += shfl_xor(v, m);
  return v;
}

// Shared, in floats: node projections with the graph's added [n][d] | partial dot products, two
// buffers [heads][SPAN] | a warp's scores [SPAN] and its weights in fp16 [SPAN/2] | uniforms
// [limit] | x, y, customers [n]. Sizes are rollout_held.go's.
template <int HD>
__device__ __forceinline__ void rollout(int *actions, int *steps, float *length, float *logProb, float *entropy, const float *proj,
    const float *pointer, const float *graph, const float *load, const float *posX, const float *posY, const Customer *instances,
    const Control *control, const State *state, u64 seed, u32 purpose, int capacity, int n, int stride, int heads, int starts,
    int limit, int choice, int begins, float scale, float pointerScale, const float *biases, int wide) {
  const int row = blockIdx_x, i = row / starts, start = row - i * starts, h = threadIdx_x >> 5, lane = threadIdx_x & 31, t = lane & 3,
      d = heads * HD;
  proj += (u64)i * n * stride;
  pointer += (u64)i * n * d;
  graph += (u64)i * d;
  const Biases bias(biases, i, n, wide);
  float *p = smem;
  float *places = p; p += n * d;
  float *parts = p; p += 2 * heads * SPAN;
  float *scores = p + h * SPAN; p += heads * SPAN;
  u32 *weights = (u32 *)p + h * (SPAN / 2); p += heads * (SPAN / 2);
  float *uniform = p; p += (limit + 3) & ~3;
  float *x = p; p += (n + 3) & ~3;
  float *y = p; p += (n + 3) & ~3;
  Customer *customers = (Customer *)p;

  const float q1 = scale * LOG2E;
  for (int e = 4 * threadIdx_x; e < n * d; e += 4 * blockDim_x) {
    const int j = e / d, c = e - j * d;
    const float4_ v = four(proj + (u64)j * stride + c) + four(graph + c);
    *(float4_ *)(places + e) = v * q1;
  }
  for (int j = threadIdx_x; j < n; j += blockDim_x) {
    x[j] = posX[i * n + j];
    y[j] = posY[i * n + j];
    customers[j] = customer(instances + i * n, j, n);
  }
  // past the last tile too
  for (int e = threadIdx_x; e < 2 * heads * SPAN; e += blockDim_x) parts[e] = 0;
  for (int e = lane; e < SPAN; e += 32) scores[e] = 0;
  if (choice == SAMPLE)
    for (int b = threadIdx_x; b * 4 < limit; b += blockDim_x) {
      Words w = philox(seed, state->instances + i, (u32)start << 16 | (u32)b, purpose);
      for (int k = 0; k < 4; k++) uniform[4 * b + k] = unit(w.w[k]);
    }
  Held<HD> in;
  in.read(proj + h * HD, stride, pointer + h * HD, n, d);
  float4_ loads[HD / 16];
#pragma unroll
  for (int c = 0; c < HD / 16; c++) loads[c] = four(load + h * HD + 16 * c + 4 * t) * q1;
  Customer own[EACH]; // this lane's nodes
#pragma unroll
  for (int k = 0; k < EACH; k++) own[k] = customer(instances + i * n, EACH * lane + k, n);
  sync();

  actions += (u64)row * limit;
  const float mult = div_(10.0f, control->temperature);
  int time = 0, turn = 0;
  Vehicle v = depart(instances + i * n, n, capacity);
  u32 served = 0; // bit k: node EACH·lane + k
  float len = 0, lp = 0, ent = 0, means = 0; // means: this lane's part of what the entropy is less
#pragma unroll 1
  for (; time < limit && !(time > 0 && v.ended()); time++) {
    choice = opaque(choice);
    int a = start + 1;
    if (begins == FORCED && time == 0) {
      if (choice == REPLAY) a = actions[0];
    } else {
      u32 allowed = 0, any = 0; // of this lane
      int count = 0;
#pragma unroll
      for (int k = 0; k < EACH; k++) {
        bool ok = EACH * lane + k == 0 ? v.home() : !(served >> k & 1) && v.fits(own[k]);
        if (ok && EACH * lane + k < n) allowed |= 1u << k;
        u32 votes = ballot(allowed >> k & 1);
        count += __builtin_popcount(votes);
        any |= votes;
      }
      if (count == 1) {
        const int who = __builtin_ctz(any);
        a = shfl((int)(EACH * lane + __builtin_ctz(allowed | 0x80000000u)), who);
      } else {
        const float cap = sole(v.context(capacity));
        const int from = seen(v, begins, time, start);
        // by turns of the steps that compute, as in rollout.cu
        float *part = parts + (turn & 1) * heads * SPAN;
        turn++;
        Pair q = {{ONES, ONES}, {ONES, ONES}};
#pragma unroll
        for (int c = 0; c < HD / 16; c++) {
          const float4_ u = four(places + from * d + h * HD + 16 * c + 4 * t) + cap * loads[c];
          u32(&half)[2] = c ? q.other : q.one;
          half[0] = held(u.x, u.y), half[1] = held(u.z, u.w);
        }
        list<HD>(scores, q, in.keys);
        syncwarp();
        List s = mine(scores);
        float top = -INFINITE;
#pragma unroll
        for (int k = 0; k < EACH; k++)
          if (allowed >> k & 1) top = larger(top, s.v[k]);
        top = warp_top(top);
#pragma unroll
        for (int k = 0; k < EACH; k++) s.v[k] = allowed >> k & 1 ? ex2(s.v[k] - top) : 0.0f;
        if constexpr (EACH > 4)
#pragma unroll
          for (int k = 0; k < EACH; k += 2) weights[(EACH * lane + k) / 2] = halves(s.v[k], s.v[k + 1]);
        else if constexpr (EACH == 4)
          *(u64 *)(weights + 2 * lane) = (u64)halves(s.v[2], s.v[3]) << 32 | halves(s.v[0], s.v[1]);
        else if constexpr (EACH == 2)
          weights[lane] = halves(s.v[0], s.v[1]);
        else
          ((unsigned short *)weights)[lane] = (unsigned short)halves(s.v[0], 0);
        syncwarp();
        Pair w[(STEPS + 1) / 2];
#pragma unroll
        for (int m = 0; m < STEPS + STEPS % 2; m++) {
          const u64 both = m < STEPS ? *(const u64 *)(weights + owner(m, t) / 2) : 0;
          u32(&half)[2] = m % 2 ? w[m / 2].other : w[m / 2].one;
          half[0] = (u32)both, half[1] = (u32)(both >> 32);
        }
        // blend is Σ weights·b, b a column of each node by steps.
        auto blend = [&](float &x, float &y, auto b) {
          float even[4], odd[4] = {0, 0, 0, 0};
#pragma unroll
          for (int m = 0; m < STEPS; m++) multiply(m % 2 ? odd : even, w[m / 2], b(m), m < 2);
          x = even[0] + odd[2], y = even[1] + odd[3];
        };
        const u32 ones[2] = {ONES, ONES};
        float sum, same;
        // the weights' sum is their product with ones
        blend(sum, same, [&](int) -> const u32(&)[2] { return ones; });
        const float over = rcp_fast(sum);
        Pair glimpse = {{ONES, ONES}, {ONES, ONES}};
#pragma unroll
        for (int c = 0; c < HD / 8; c++) {
          float x, y;
          blend(x, y, [&](int m) -> const u32(&)[2] { return in.values[m][c]; });
          u32(&half)[2] = c / 2 ? glimpse.other : glimpse.one;
          half[c % 2] = halves(x * over, y * over);
        }
        list<HD>(part + h * SPAN, glimpse, in.pointers);
        sync();
        float th[EACH], e[EACH], total = 0, mean = 0;
        List u = mine(part);
#pragma unroll
        for (int k = 1; k < 128 / HD; k++) {
          if (k >= heads) break;
          const List more = mine(part + k * SPAN);
#pragma unroll
          for (int j = 0; j < EACH; j++) u.v[j] += more.v[j];
        }
        top = -INFINITE;
#pragma unroll
        for (int k = 0; k < EACH; k++) {
          float score = u.v[k] * pointerScale;
          if (bias.table) score += bias(from, sole(v.context(capacity)), EACH * lane + k < n ? EACH * lane + k : 0);
          th[k] = tanh_(score);
          if (allowed >> k & 1) top = larger(top, th[k]);
        }
        top = warp_top(top);
#pragma unroll
        for (int k = 0; k < EACH; k++) {
          const float z = (th[k] - top) * mult;
          e[k] = allowed >> k & 1 ? ex2(z * LOG2E) : 0.0f;
          total += e[k];
          mean += e[k] * z;
        }
        float run = total; // of lanes up to this one
#pragma unroll
        for (int m = 1; m < 32; m <<= 1) {
          const float low = shfl_up(run, m);
          if (lane >= m) run += low;
        }
        const float all = shfl(run, 31);
        int pick = -1; // this lane's first node that may be the choice
        if (choice == SAMPLE) {
          const float edge = uniform[time] * all;
          const float lower = shfl_up(run, 1);
          float before = lane > 0 ? +lower : 0.0f;
#pragma unroll
          for (int k = 0; k < EACH; k++) {
            before += e[k];
            if (pick < 0 && e[k] > 0 && before > edge) pick = k;
          }
        } else {
          const int told = choice == REPLAY ? actions[time] : 0;
#pragma unroll
          for (int k = 0; k < EACH; k++)
            if (pick < 0 && (allowed >> k & 1) && (choice == GREEDY ? th[k] == top : EACH * lane + k == told)) pick = k;
        }
        u32 votes = ballot(pick >= 0);
        // rounding left none: the last allowed; or a recorded action that the rules forbid: the
        // first
        if (!votes) {
          pick = choice == SAMPLE ? 31 - __builtin_clz(allowed | 1) : __builtin_ctz(allowed | 0x80000000u);
          votes = any;
          if (choice == SAMPLE) votes = 1u << (31 - __builtin_clz(any));
        }
        const int who = __builtin_ctz(votes);
        float chosen = th[0];
#pragma unroll
        for (int k = 1; k < EACH; k++)
          if (pick == k) chosen = th[k];
        a = shfl(EACH * lane + pick, who);
        const float z = (shfl(chosen, who) - top) * mult, logSum = logf_(all);
        lp += z - logSum;
        ent += logSum;
        means += mean * rcp_fast(all);
        if (choice == REPLAY) a = actions[time];
      }
    }
    len += leg(x, y, v.from(), v.to(a));
    if (choice != REPLAY && threadIdx_x == 0) actions[time] = a;
    v.move(a, customers[a], capacity);
    if (a / EACH == lane) served |= 1u << (a % EACH); // the depot's bit is never asked
  }
  if (choice != REPLAY)
    for (int k = time + threadIdx_x; k < limit; k += blockDim_x) actions[k] = 0;
  means = warp_add(means);
  if (threadIdx_x == 0) {
    steps[row] = time;
    length[row] = len;
    logProb[row] = lp;
    entropy[row] = div_(ent - means, scored(time, begins));
  }
}

#define ROLLOUT(HD, WARPS, LEAST)                                                                                                         \
  KERNEL __launch_bounds__(32 * WARPS, LEAST) rollout_held_##HD(int *actions, int *steps, float *length, float *logProb, float *entropy,  \
      const float *proj, const float *pointer, const float *graph, const float *load, const float *posX, const float *posY,               \
      const Customer *instances, const Control *control, const State *state, u64 seed, u32 purpose, int capacity, int n, int stride, int heads,   \
      int starts, int limit, int choice, int begins, float scale, float pointerScale, const float *biases, int wide) {                     \
    rollout<HD>(actions, steps, length, logProb, entropy, proj, pointer, graph, load, posX, posY, instances, control, state, seed, purpose,  \
        capacity, n, stride, heads, starts, limit, choice, begins, scale, pointerScale, biases, wide);                                     \
  }
ROLLOUT(16, 8, NODES <= 56 ? 3 : 2)
ROLLOUT(32, 4, NODES <= 32 ? 4 : NODES <= 56 ? 3 : 2)
