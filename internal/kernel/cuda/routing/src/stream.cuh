// The policy of one decode step for sixteen rows of one instance, with any number of nodes: the
// instance's matrices are read a block of 32 nodes at a time, from shared memory as far as they fit
// and from the card's caches, and a softmax over nodes goes along. Products are of fp16 numbers
// with fp32 sums, as in half.cuh, whose bounds on size these kernels do not have. kernel.Decoder
// states the formulas, distribution.cuh the fragments.
//
// What a reader could break: stream_pack lays a matrix out in pieces, the right operands of a
// product for sixteen nodes and sixteen columns, 16 bytes a lane; who reads a piece must use it as
// it was laid, across (·matrixᵀ) or down (·matrix). Bit T + 8b of a lane's mask is node 8T + 2t + b
// of its block for row g, and bit 4 + T + 8b for row g + 8; `spread` moves b to bit 16. Of the last
// block the second half has no nodes where their tiles of sixteen are odd: nothing of it is read or
// written.
#pragma once
#include "choices.cuh"
#include "half.cuh"

#define BLOCK 32             // nodes
#define TILES_IN (BLOCK / 8) // tiles of a block
#define STEPS_IN (BLOCK / 16)
#define CHUNKS (WIDTH / 16)  // pieces of a matrix beside one another
#define PACKED_BLOCK (2 * WIDTH * BLOCK) // bytes of a block of a matrix
#define LOWEST -16384.0f     // what only forbidden nodes' scores are below
#define RISE 8.0f            // how far a score may be above what its row refers to, to base 2

// The matrices that stream_pack makes. Rows are as they stand, fp16.
enum { KEYS_ACROSS, VALUES_DOWN, POINTERS_ACROSS, POINTERS_DOWN, QUERIES, KEY_ROWS, VALUE_ROWS, POINTER_ROWS };

// Packed is where the matrices of one instance lie.
struct Packed { const u4 *keys, *values, *pointers, *back; const Half2 *queries; };

__device__ __forceinline__ Packed packed_of(const char *packed, u64 i, int blocks) {
  const u64 each = (u64)blocks * PACKED_BLOCK;
  packed += i * 5 * each;
  return Packed{(const u4 *)packed, (const u4 *)(packed + each), (const u4 *)(packed + 2 * each), (const u4 *)(packed + 3 * each),
                (const Half2 *)(packed + 4 * each)};
}

// INLINE keeps a lambda that is called twice in its caller, whose registers it works on.
#define INLINE __attribute__((always_inline))

// Int is a number as a type.
template <int N> struct Int { static constexpr int value = N; };

// by_blocks calls visit(steps, B) for each block of `tiles` tiles of sixteen nodes, steps being how
// many of the block's two tiles there are.
template <class F> __device__ __forceinline__ void by_blocks(int tiles, int first, int step, F visit) {
  int B = first;
#pragma unroll 1
  for (; 2 * B + 1 < tiles; B += step) visit(Int<2>(), B);
  if (2 * B < tiles) visit(Int<1>(), B);
}

// by_many is by_blocks of all with WIDE blocks at a time as long as there are so many, one or two.
template <int WIDE, class F> __device__ __forceinline__ void by_many(int tiles, F visit) {
  if constexpr (WIDE == 1)
    return by_blocks(tiles, 0, 1, visit);
  int B = 0;
#pragma unroll 1
  for (; 2 * B + 3 < tiles; B += 2) visit(Int<4>(), B);
  if (2 * B + 1 < tiles) visit(Int<2>(), B++);
  if (2 * B < tiles) visit(Int<1>(), B);
}

// Matrix is where a lane reads a matrix: in shared memory where NEAR, else there or in the card's.
// Nothing here says that it reads memory: no piece is read before a barrier if its Matrix is made
// after it (hold).
template <bool NEAR> struct Matrix {
  const u4 *at;
  __device__ __forceinline__ Matrix(const void *matrix) : at((const u4 *)matrix + (threadIdx_x & 31)) { asm volatile("" : "+l"(at)); }
  // from is the matrix from node 16·m on.
  __device__ __forceinline__ Matrix from(int m) const {
    Matrix x = *this;
    x.at += m * (CHUNKS * 32);
    return x;
  }
  // beside is it from column 16·c on.
  __device__ __forceinline__ Matrix beside(int c) const {
    Matrix x = *this;
    x.at += c * 32;
    return x;
  }
  // piece is the lane's part of the piece of nodes from 16·m and columns from 16·c on.
  __device__ __forceinline__ u4 piece(int m, int c) const {
    u4 v;
    asm("ld.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(at + (m * CHUNKS + c) * 32));
    return v;
  }
};
template <> struct Matrix<true> {
  u32 at;
  __device__ __forceinline__ Matrix(const void *matrix) : at(shared_at(matrix) + 16 * (threadIdx_x & 31)) { asm volatile("" : "+r"(at)); }
  __device__ __forceinline__ Matrix from(int m) const {
    Matrix x = *this;
    x.at += m * (CHUNKS * 512);
    return x;
  }
  __device__ __forceinline__ Matrix beside(int c) const {
    Matrix x = *this;
    x.at += c * 512;
    return x;
  }
  __device__ __forceinline__ u4 piece(int m, int c) const {
    u4 v;
    asm("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(at + (m * CHUNKS + c) * 512));
    return v;
  }
};

// Matrices are those of one instance, the first HELD of them in shared memory.
template <int HELD> struct Matrices {
  Matrix<(HELD > KEYS_ACROSS)> keys;
  Matrix<(HELD > VALUES_DOWN)> values;
  Matrix<(HELD > POINTERS_ACROSS)> pointers;
  Matrix<(HELD > POINTERS_DOWN)> back;
  const Half2 *queries;

  // What a product takes of block B: keys and values of a head, pointer keys across and down.
  template <int HD> struct Side { Matrix<(HELD > KEYS_ACROSS)> keys; Matrix<(HELD > VALUES_DOWN)> values; };
  template <int HD> __device__ __forceinline__ Side<HD> side(int h, int B) const {
    return {keys.from(STEPS_IN * B).beside(h * (HD / 16)), values.from(STEPS_IN * B).beside(h * (HD / 16))};
  }
  __device__ __forceinline__ auto across(int B) const { return pointers.from(STEPS_IN * B); }
  __device__ __forceinline__ auto down(int B) const { return back.from(STEPS_IN * B); }
};

// Ring passes an instance's matrices through shared memory, RING_PARTS slots of RING_BYTES, in the
// one order in which every warp of the block asks for them: keys and values head by head, pointer
// keys across, pointer keys down, and again from the first. A part begins with a barrier of the
// block, so all warps ask for all of them.
#define RING_PARTS 3
#define RING_BYTES 8192
template <int HD> struct Ring {
  // EACH tiles of sixteen nodes of a head's keys, and of its values, are a part.
  static constexpr int KS = HD / 16, HEADS = WIDTH / HD, EACH = RING_BYTES / (2 * 512 * KS);
  const Packed in;
  const Half2 *queries;
  const int tiles;
  u32 slots, now; // of the first slot, and of the part that is read: bytes in shared memory
  int next, slot; // the part to fetch, and where the one that is read lies

  __device__ __forceinline__ Ring(const Packed &in, char *to, int tiles)
      : in(in), queries(in.queries), tiles(tiles), slots(shared_at(to)), now(0), next(0), slot(-1) {
    for (int k = 0; k < RING_PARTS - 1; k++) fetch(k);
  }
  __device__ __forceinline__ int blocks() const { return (tiles + 1) / 2; }

  // fetch brings the next part into a slot.
  __device__ __forceinline__ void fetch(int to) {
    const int each = (tiles + EACH - 1) / EACH, sides = HEADS * each, count = blocks();
    const u32 at = slots + to * RING_BYTES;
    for (int k = threadIdx_x; k < RING_BYTES / 16; k += blockDim_x) {
      const u4 *from;
      bool real = true;
      if (next < sides) {
        const int h = next / each, tile = next % each * EACH + k % (RING_BYTES / 32) / (32 * KS);
        real = tile < 2 * count;
        from = (k < RING_BYTES / 32 ? in.keys : in.values) + (tile * CHUNKS + h * KS) * 32 + k % (32 * KS);
      } else {
        const int B = next - sides;
        from = (B < count ? in.pointers + B * (PACKED_BLOCK / 16) : in.back + (B - count) * (PACKED_BLOCK / 16)) + k;
      }
      if (real) copy16(at + 16 * k, (const Bf16 *)from, true);
    }
    commit_copies();
    if (++next == sides + 2 * count) next = 0;
  }
  // turn goes on to the next part and gives its place.
  __device__ __forceinline__ u32 turn() {
    wait_copies<RING_PARTS - 2>();
    sync();
    if (++slot == RING_PARTS) slot = 0;
    fetch(slot == 0 ? RING_PARTS - 1 : slot - 1);
    return slots + slot * RING_BYTES;
  }

  template <int LINE> struct Near {
    u32 at;
    __device__ __forceinline__ u4 piece(int m, int c) const {
      u4 v;
      asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(at + (m * LINE + c) * 512) : "memory");
      return v;
    }
  };
  template <int> struct Side { Near<KS> keys, values; };
  template <int> __device__ __forceinline__ Side<HD> side(int h, int B) {
    if (STEPS_IN * B % EACH == 0) now = turn() + 16 * (threadIdx_x & 31);
    const u32 at = now + STEPS_IN * B % EACH * (KS * 512);
    return {{at}, {at + RING_BYTES / 2}};
  }
  __device__ __forceinline__ Near<CHUNKS> across(int B) { return {turn() + 16 * (threadIdx_x & 31)}; }
  __device__ __forceinline__ Near<CHUNKS> down(int B) { return {turn() + 16 * (threadIdx_x & 31)}; }
};

// hold copies the first matrices of an instance to shared memory, as many as `held` (HELD, or with
// HELD 0 any number). All threads of the block come here: a barrier is passed.
template <int HELD> __device__ __forceinline__ Matrices<HELD> hold(const Packed &in, char *to, int held, int blocks, int tiles) {
  const int each = tiles * (PACKED_BLOCK / 32), whole = blocks * (PACKED_BLOCK / 16);
  for (int m = 0; m < held; m++)
    for (int k = threadIdx_x; k < each; k += blockDim_x) ((u4 *)to)[m * each + k] = in.keys[m * whole + k];
  sync();
  auto of = [&](int matrix, const u4 *far) { return held > matrix ? (const void *)(to + 16 * matrix * each) : (const void *)far; };
  return Matrices<HELD>{of(KEYS_ACROSS, in.keys), of(VALUES_DOWN, in.values), of(POINTERS_ACROSS, in.pointers), of(POINTERS_DOWN, in.back), in.queries};
}

// Mask are two rows' allowed nodes of a block, of a lane.
typedef unsigned short Mask;
__device__ __forceinline__ u32 spread(u32 mask) { return (mask | mask << 8) & 0xff00ff; }

// larger2 is the larger of two pairs of fp16 numbers, apart.
__device__ __forceinline__ Half2 larger2(Half2 a, Half2 b) {
  Half2 r;
  asm("max.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  return r;
}

// forbidden lets a tile's scores of two rows begin with `from`, less 32768 where a node is not
// allowed: a product with the unit matrix (forbid of half.cuh). `not_` has the mask's bits turned.
__device__ __forceinline__ void forbidden(float (&s)[4], int T, u32 not_, Half2 unit, const float (&from)[4]) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%8,%9,%10};"
      : "=f"(s[0]), "=f"(s[1]), "=f"(s[2]), "=f"(s[3])
      : "r"((not_ & 0x10001u << T) * (0x1fu << (11 - T))), "r"((not_ & 0x100010u << T) * (0x1fu << (7 - T))), "r"(unit), "f"(from[0]), "f"(from[1]),
        "f"(from[2]), "f"(from[3]));
}

// warp_count sums over the warp.
__device__ __forceinline__ int warp_count(int v) {
  int r;
  asm volatile("redux.sync.add.s32 %0, %1, 0xffffffff;" : "=r"(r) : "r"(v));
  return r;
}

// context_half rounds two of the context's weights as queries are: times `scale`, to base 2.
__device__ __forceinline__ Half2 context_half(const float *load, float scale) {
  const float2_ x = two(load) * (scale * LOG2E);
  return half2(x.x, x.y);
}
__device__ __forceinline__ float2_ context_weights(const float *load, float scale) { return floats(context_half(load, scale)); }

// loads_in_half brings the context's weights into shared memory.
__device__ __forceinline__ void loads_in_half(Half2 *to, const float *load, float scale) {
  for (int k = threadIdx_x; k < CONTEXTS * (WIDTH / 2); k += blockDim_x) to[k] = context_half(load + 2 * k, scale);
}

// meet waits for as many threads at barrier `meeting`, of which 0 is the whole block's.
__device__ __forceinline__ void meet(int meeting, int threads) { asm volatile("bar.sync %0, %1;" : : "r"(meeting), "r"(threads) : "memory"); }

// look makes the glimpses of two rows a quad, left operands over the width, the rows at nodes at0
// and at1 with contexts c0 and c1. Scores are to base 2, as queries are laid out and the context's
// weights brought. kept(h, lse0, lse1) gets log2 of a head's sums.
//
// WIDE blocks are taken at a time. TEAM warps share the heads of the same rows. More than one pass
// glimpses through `passed`, 16 bytes a lane and chunk, and meet at barrier `meeting`.
template <int HD, int TEAM, int WIDE, class S, class K>
__device__ __forceinline__ void look(Half2 (&all)[CHUNKS][4], S &in, const Half2 *loads, int tiles, int at0, int at1, const Context &c0,
                                     const Context &c1, const Mask *masks, int member, u4 *passed, int meeting, K kept) {
  constexpr int U = HD / 8, KS = HD / 16, HEADS = WIDTH / HD;
  const int lane = threadIdx_x & 31, t = lane & 3, g = lane >> 2;
  const Half2 ones = 0x3c003c00, unit = g == 2 * t ? 0x3c00 : g == 2 * t + 1 ? 0x3c000000 : 0;
  const Half2 *q0 = in.queries + at0 * (WIDTH / 2) + t, *q1 = in.queries + at1 * (WIDTH / 2) + t;
  if constexpr (TEAM == 1)
#pragma unroll
    for (int c = 0; c < CHUNKS; c++) all[c][0] = all[c][1] = all[c][2] = all[c][3] = 0;
#pragma unroll 1
  for (int h = member; h < HEADS; h += TEAM) {
    Half2 q[KS][4];
#pragma unroll
    for (int k = 0; k < KS; k++) {
      const int at = 8 * (h * KS + k);
      q[k][0] = q0[at], q[k][1] = q1[at], q[k][2] = q0[at + 4], q[k][3] = q1[at + 4];
#pragma unroll
      for (int f = 0; f < CONTEXTS; f++) {
        const Half2 x0 = half2(c0.part[f], c0.part[f]), x1 = half2(c1.part[f], c1.part[f]);
        const Half2 l0 = loads[f * (WIDTH / 2) + at + t], l1 = loads[f * (WIDTH / 2) + at + 4 + t];
        q[k][0] = fma2(x0, l0, q[k][0]), q[k][1] = fma2(x1, l0, q[k][1]);
        q[k][2] = fma2(x0, l1, q[k][2]), q[k][3] = fma2(x1, l1, q[k][3]);
      }
    }
    // less is what rows refer to, turned: a score above it by RISE raises it. unset has bit 15 for
    // row g and bit 31 for row g + 8 until the row has seen a node that is allowed.
    float out[U][4] = {}, sum[4] = {}, less[4] = {};
    u32 unset = 0x80008000;
    by_many<WIDE>(tiles, [&](auto steps, int B) INLINE {
      constexpr int M = steps.value;
      const auto side = in.template side<HD>(h, B);
      float s[2 * M][4];
#pragma unroll
      for (int half = 0; half < (M + 1) / 2; half++) {
        const u32 not_ = ~spread(masks[(B + half) * 32 + lane]);
#pragma unroll
        for (int T = 0; T < TILES_IN; T++)
          if (TILES_IN * half + T < 2 * M) forbidden(s[TILES_IN * half + T], T, not_, unit, less);
      }
#pragma unroll
      for (int k = 0; k < KS; k++)
#pragma unroll
        for (int m = 0; m < M; m++) {
          const u4 x = side.keys.piece(m, k);
          mma(s[2 * m], q[k][0], q[k][1], q[k][2], q[k][3], x.x, x.y);
          mma(s[2 * m + 1], q[k][0], q[k][1], q[k][2], q[k][3], x.z, x.w);
        }
      u4 v[M][KS];
#pragma unroll
      for (int m = 0; m < M; m++)
#pragma unroll
        for (int k = 0; k < KS; k++) v[m][k] = side.values.piece(m, k);
      Half2 w[2 * M][2];
      auto weigh = [&]() INLINE {
        Half2 most = 0;
#pragma unroll
        for (int T = 0; T < 2 * M; T++) {
          w[T][0] = half2(ex2(s[T][0]), ex2(s[T][1]));
          w[T][1] = half2(ex2(s[T][2]), ex2(s[T][3]));
          most = larger2(most, larger2(w[T][0], w[T][1]));
        }
        return most;
      };
      // a weight above 2^RISE, 0x5c00 in fp16, has bit 15 or 31 of this
      if (ballot((((weigh() + 0x23ff23ff) & 0x80008000) | unset) != 0)) {
        float high[2] = {s[0][0], s[0][2]};
#pragma unroll
        for (int T = 0; T < 2 * M; T++)
#pragma unroll
          for (int I = 0; I < 2; I++) high[I] = max_(high[I], max_(s[T][2 * I], s[T][2 * I + 1]));
#pragma unroll
        for (int I = 0; I < 2; I++) {
          const u32 bit = 0x8000u << (16 * I);
          high[I] = quad_top(high[I]);
          const bool first = unset & bit, some = high[I] > LOWEST, raised = some && (first || high[I] > RISE);
          const float by = raised ? high[I] : 0.0f, down = raised ? first ? 0.0f : ex2(-by) : 1.0f;
          if (some) unset &= ~bit;
          less[2 * I] = less[2 * I + 1] = less[2 * I] - by;
          sum[2 * I] *= down, sum[2 * I + 1] *= down;
#pragma unroll
          for (int u = 0; u < U; u++) out[u][2 * I] *= down, out[u][2 * I + 1] *= down;
#pragma unroll
          for (int T = 0; T < 2 * M; T++) s[T][2 * I] -= by, s[T][2 * I + 1] -= by;
        }
        weigh();
      }
#pragma unroll
      for (int m = 0; m < M; m++) {
        mma(sum, w[2 * m][0], w[2 * m][1], w[2 * m + 1][0], w[2 * m + 1][1], ones, ones);
#pragma unroll
        for (int k = 0; k < KS; k++) {
          mma(out[2 * k], w[2 * m][0], w[2 * m][1], w[2 * m + 1][0], w[2 * m + 1][1], v[m][k].x, v[m][k].y);
          mma(out[2 * k + 1], w[2 * m][0], w[2 * m][1], w[2 * m + 1][0], w[2 * m + 1][1], v[m][k].z, v[m][k].w);
        }
      }
    });
    // a row that is allowed nothing stays finite
    const float over0 = rcp_fast(max_(sum[0], 1e-30f)), over1 = rcp_fast(max_(sum[2], 1e-30f));
    Half2 glimpse[KS][4];
#pragma unroll
    for (int u = 0; u < U; u++) {
      glimpse[u >> 1][2 * (u & 1)] = half2(out[u][0] * over0, out[u][1] * over0);
      glimpse[u >> 1][2 * (u & 1) + 1] = half2(out[u][2] * over1, out[u][3] * over1);
    }
    if constexpr (TEAM == 1) {
      // The loop pushes glimpses through, so that it need not be unrolled.
#pragma unroll
      for (int m = 0; m < CHUNKS - KS; m++)
#pragma unroll
        for (int j = 0; j < 4; j++) all[m][j] = all[m + KS][j];
#pragma unroll
      for (int k = 0; k < KS; k++)
#pragma unroll
        for (int j = 0; j < 4; j++) all[CHUNKS - KS + k][j] = glimpse[k][j];
    } else {
#pragma unroll
      for (int k = 0; k < KS; k++) passed[(h * KS + k) * 32 + lane] = u4{glimpse[k][0], glimpse[k][1], glimpse[k][2], glimpse[k][3]};
    }
    kept(h, lg2(sum[0]) - less[0], lg2(sum[2]) - less[2]);
  }
  if constexpr (TEAM > 1) {
    meet(meeting, 32 * TEAM);
#pragma unroll
    for (int c = 0; c < CHUNKS; c++) {
      const u4 x = passed[c * 32 + lane];
      all[c][0] = x.x, all[c][1] = x.y, all[c][2] = x.z, all[c][3] = x.w;
    }
  }
}

// Tally is one row's distribution as far as its blocks have been seen, to the reference `least`:
// sums of e = exp2(k·(least - r)) and of e·log2 e, of this lane's nodes.
struct Tally {
  float least, sum, mean;

  // refer changes the reference to a smaller one.
  __device__ __forceinline__ void refer(float to, float k) {
    const float less = k * (to - least), by = ex2(less);
    mean = by * fma_(less, sum, mean);
    sum *= by;
    least = to;
  }
};

// MIDDLE is a reference for any r, between 0 and 1, where k/2 is a power that fp32 holds with room:
// rows need no least of their own then.
#define MIDDLE 0.5f
#define TAME(k) ((k) <= 100.0f)

// point makes r (half.cuh's complement of tanh) of block B for both rows, NOWHERE where it is
// forbidden. With `least` it leaves the least of each row in `here`, and tallies refer to the least
// of all. biases0 and biases1 are the rows of the table of biases for the rows'
// nodes, null where nothing is added; biasContext has the rows of the context's features, `wide`
// floats apart.
template <int M, class S>
__device__ __forceinline__ void point(float (&r)[2 * M][4], Tally (&tally)[2], float (&here)[2], const Half2 (&all)[CHUNKS][4], S &in, int B,
                                      Mask mask, const float *biases0, const float *biases1, const float *biasContext, int wide, const Context &c0,
                                      const Context &c1, float k, bool least) {
  const int t = threadIdx_x & 3;
  const auto pointers = in.across(B);
#pragma unroll
  for (int m = 0; m < M; m++) {
    float4_ a = {0, 0, 0, 0}, b = {0, 0, 0, 0};
    if (biases0) {
      const int at = BLOCK * B + 16 * m + 4 * t;
      a = whole4(biases0 + at), b = whole4(biases1 + at);
#pragma unroll
      for (int f = 0; f < CONTEXTS; f++) {
        const float4_ l = whole4(biasContext + f * wide + at);
        a += c0.part[f] * l, b += c1.part[f] * l;
      }
    }
    r[2 * m][0] = a.x, r[2 * m][1] = a.y, r[2 * m + 1][0] = a.z, r[2 * m + 1][1] = a.w;
    r[2 * m][2] = b.x, r[2 * m][3] = b.y, r[2 * m + 1][2] = b.z, r[2 * m + 1][3] = b.w;
  }
#pragma unroll
  for (int c = 0; c < CHUNKS; c++)
#pragma unroll
    for (int m = 0; m < M; m++) {
      const u4 x = pointers.piece(m, c);
      mma(r[2 * m], all[c][0], all[c][1], all[c][2], all[c][3], x.x, x.y);
      mma(r[2 * m + 1], all[c][0], all[c][1], all[c][2], all[c][3], x.z, x.w);
    }
#pragma unroll
  for (int I = 0; I < 2; I++)
#pragma unroll
    for (int T = 0; T < 2 * M; T++)
#pragma unroll
      for (int b = 0; b < 2; b++) {
        const float x = rcp_fast(ex2(r[T][2 * I + b]) + 1.0f);
        r[T][2 * I + b] = mask >> (4 * I + T + 8 * b) & 1 ? x : NOWHERE;
      }
  if (!least) return;
#pragma unroll
  for (int I = 0; I < 2; I++) {
    float low = NOWHERE;
#pragma unroll
    for (int T = 0; T < 2 * M; T++) low = min_(low, min_(r[T][2 * I], r[T][2 * I + 1]));
    low = min_(low, shfl_xor(low, 1));
    here[I] = low = min_(low, shfl_xor(low, 2));
    if (low < tally[I].least) tally[I].refer(low, k);
  }
}

// weighted are the sums of one row's e and e·log2 e over this lane's nodes of a block.
template <int I, int N> __device__ __forceinline__ float2_ weighted(const float (&r)[N][4], float least, float k) {
  const float off = least * k;
  float sum = 0, mean = 0;
#pragma unroll
  for (int T = 0; T < N; T++) {
    const float y = fma_(r[T][2 * I], -k, off), z = fma_(r[T][2 * I + 1], -k, off), a = ex2(y), b = ex2(z);
    mean = fma_(b, z, fma_(a, y, mean));
    sum += a + b;
  }
  return float2_{sum, mean};
}
