// The sum of a token's embeddings, and its gradient.
//
// What a reader could break: no two threads add to the same element of a table. In the gradient a
// block keeps rows of all tables in shared memory, and a column of table f belongs to one thread,
// which takes the block's tokens in order, a few at once: where two of them have the same row, the
// second goes on from the first one's sum; the blocks' tables are then added in order into the
// gradient's lanes. Threads of a warp have the same table, so that an absent index costs nothing.
#include "ptx.cuh"

constexpr int stage = 16; // tokens brought at a time
constexpr int ring = 4;   // stages in shared memory, all but one under way
constexpr int batch = 4;  // tokens whose rows are read together; divides stage

#define EACH_TABLE(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#define POINTERS(T) T *p0, T *p1, T *p2, T *p3, T *p4, T *p5, T *p6, T *p7
#define STARTS int s0, int s1, int s2, int s3, int s4, int s5, int s6, int s7
#define PICK_POINTER(i) f == i ? p##i:
#define PICK_START(i) f == i ? s##i:
#define PICK_END(i) f + 1 == i ? s##i:

// y[m,c] (+)= Σ_f p_f[index[m,f]·d + c] over the fields that have a table, VEC columns a thread. A
// token has `stride` fields. More than eight take a launch for every eight, which goes on from the
// sum before it (`adds`), so that the tables are added in their order.
template <int VEC>
__device__ __forceinline__ void embed(float *y, const int *index, POINTERS(const float), int fields, int stride, int adds, int rows, int d) {
  const u32 e = blockIdx_x * blockDim_x + threadIdx_x, width = d / VEC;
  if (e >= rows * width) return;
  const u32 r = e / width;
  const int c = VEC * (e % width);
  const int *at = index + (long)r * stride;
  float *to = y + (long)r * d + c;
  f4 sum = {0, 0, 0, 0};
  if (adds) sum = VEC == 4 ? load4(to) : f4{*to, 0, 0, 0};
#define ADD(i)                                                                              \
  if (i < fields && p##i && at[i] >= 0) {                                                   \
    const float *from = p##i + (long)at[i] * d + c;                                         \
    sum += VEC == 4 ? load4(from) : f4{*from, 0, 0, 0};                                     \
  }
  EACH_TABLE(ADD)
  if (VEC == 4)
    store4(to, sum);
  else
    *to = sum.x;
}
KERNEL embed4(float *y, const int *index, POINTERS(const float), int fields, int stride, int adds, int rows, int d) {
  embed<4>(y, index, p0, p1, p2, p3, p4, p5, p6, p7, fields, stride, adds, rows, d);
}
KERNEL embed1(float *y, const int *index, POINTERS(const float), int fields, int stride, int adds, int rows, int d) {
  embed<1>(y, index, p0, p1, p2, p3, p4, p5, p6, p7, fields, stride, adds, rows, d);
}

// any_flag tells all threads of a block whether one of the flags is set; without flags it is yes.
__device__ __forceinline__ bool any_flag(const u32 *flags, int count) {
  if (!flags) return true;
  u32 mine = 0, any;
  for (int i = threadIdx_x; i < count; i += blockDim_x) mine |= flags[i];
  asm volatile("{.reg .pred p, q; setp.ne.u32 p, %1, 0; bar.red.or.pred q, 0, p; selp.u32 %0, 1, 0, q;}" : "=r"(any) : "r"(mine) : "memory");
  return any;
}

// The gradient of a large table whose rows are places in an instance: row p sums the tokens at
// place p of every instance, `tokens` apart. Lane y's block x takes every gridDim'th piece of four
// columns. A token at another place than its index says is a stray: the block then sets its flag,
// and the kernels behind make the table again from scratch.
KERNEL __launch_bounds__(256) embed_grad_places(float *table, u32 *strays, const float *dy, const int *index, int f, int fields, int rows, int tokens, int size, int d,
                                                int chunk, int gradLaneSize) {
  const int l = blockIdx_y, begin = l * chunk, end = begin + chunk < rows ? begin + chunk : rows, width = d / 4;
  table += (long)l * gradLaneSize;
  bool stray = false;
#pragma unroll 2
  for (int e = blockIdx_x * 256 + threadIdx_x; e < size * width; e += gridDim_x * 256) {
    const int p = e / width, c = 4 * (e % width);
    f4 sum = {0, 0, 0, 0};
    if (p < tokens)
#pragma unroll 4
      for (int m = p + (begin > p ? (begin - p + tokens - 1) / tokens * tokens : 0); m < end; m += tokens) {
        const int i = index[(long)m * fields + f];
        const f4 v = load4(dy + (long)m * d + c);
        if (i == p) sum += v;
        else stray |= i >= 0;
      }
    store4(table + (long)p * d + c, sum);
  }
  u32 any;
  asm volatile("{.reg .pred p, q; setp.ne.u32 p, %1, 0; bar.red.or.pred q, 0, p; selp.u32 %0, 1, 0, q;}" : "=r"(any) : "r"((u32)stray) : "memory");
  if (threadIdx_x == 0) strays[l * gridDim_x + blockIdx_x] = any;
}

// partial[block, s, c] = Σ over the block's tokens with s_f + index[m,f] = s of dy[m,c], where the
// tables' rows are numbered through and table f begins at s_f and ends where the next begins. Block
// (x, y, z): x is one of `blocks` of lane x/blocks and takes `each` of its `chunk` tokens, y a tile
// of `width` columns, z the rows of the tables from z·keep on. Shared: tables [keep][width] | dy
// [ring][stage][width] | index [ring][stage][fields]. A thread has VEC columns; a token has
// `stride` fields in memory, of which `fields` are these tables'. Where there are flags of strays,
// nothing is done unless one is set.
template <int VEC>
__device__ __forceinline__ void embed_grad(float *partial, const float *dy, const int *index, STARTS, int fields, int stride, int rows, int d, int all,
                                           int keep, int width, int chunk, int each, int blocks, const u32 *strays, int flags) {
  if (!any_flag(strays, flags)) return;
  extern __shared__ float smem[] __attribute__((aligned(16)));
  typedef float Vec __attribute__((ext_vector_type(VEC)));
  float *tables = smem, *dys = tables + keep * width, *indexes = dys + ring * stage * width;
  const int l = blockIdx_x / blocks, end = (l + 1) * chunk < rows ? (l + 1) * chunk : rows;
  const int from = l * chunk + ((int)blockIdx_x - l * blocks) * each, to = from + each < end ? from + each : end;
  const int f = VEC * threadIdx_x / width, c = VEC * threadIdx_x % width, c0 = blockIdx_y * width, first = blockIdx_z * keep;
  const int start = (EACH_TABLE(PICK_START) 0) - first, stop = (EACH_TABLE(PICK_END) all) - first, limit = stop < keep ? stop : keep;
  for (int e = VEC * threadIdx_x; e < keep * width; e += VEC * blockDim_x) *(Vec *)(tables + e) = 0;
  // a group of copies even where there is nothing to copy, for they are counted
  auto bring = [&](int r0, int slot) {
    for (int e = VEC * threadIdx_x; r0 < to && e < stage * width; e += VEC * blockDim_x) {
      int r = r0 + e / width, x = c0 + e % width;
      copy_async<VEC>(dys + slot * stage * width + e, dy + (long)r * d + x, r < to && x < d ? 4 * VEC : 0);
    }
    for (int e = threadIdx_x; r0 < to && e < stage * fields; e += blockDim_x)
      copy_async<1>(indexes + slot * stage * fields + e, (const float *)index + (long)(r0 + e / fields) * stride + e % fields, r0 + e / fields < to ? 4 : 0);
    commit_copies();
  };
#pragma unroll
  for (int k = 0; k < ring - 1; k++) bring(from + k * stage, k);
  for (int r0 = from, slot = 0; r0 < to; r0 += stage, slot = (slot + 1) % ring) {
    wait_copies<ring - 2>();
    sync(); // this stage is everyone's, and the one before it free
    bring(r0 + (ring - 1) * stage, (slot + ring - 1) % ring);
    const float *g = dys + slot * stage * width + c;
    const int *at = (const int *)indexes + slot * stage * fields + f, count = to - r0;
#pragma unroll 1
    for (int k = 0; k < stage; k += batch) {
      int s[batch];
      Vec sum[batch];
#pragma unroll
      for (int j = 0; j < batch; j++) {
        const int i = at[(k + j) * fields], row = start + i;
        s[j] = k + j < count && i >= 0 && row >= 0 && row < limit ? row : -1;
        sum[j] = s[j] >= 0 ? *(const Vec *)(tables + s[j] * width + c) : (Vec)0;
      }
#pragma unroll
      for (int j = 0; j < batch; j++) {
#pragma unroll
        for (int m = 0; m < j; m++)
          if (s[m] == s[j]) sum[j] = sum[m];
        sum[j] += *(const Vec *)(g + (k + j) * width);
      }
#pragma unroll
      for (int j = 0; j < batch; j++)
        if (s[j] >= 0) *(Vec *)(tables + s[j] * width + c) = sum[j];
    }
  }
  sync();
  partial += ((long)blockIdx_x * all + first) * d + c0;
  const int count = all - first < keep ? all - first : keep;
  for (int e = VEC * threadIdx_x; e < count * width; e += VEC * blockDim_x)
    if (c0 + e % width < d) *(Vec *)(partial + (long)(e / width) * d + e % width) = *(const Vec *)(tables + e);
}
KERNEL __launch_bounds__(256) embed_grad4(float *partial, const float *dy, const int *index, STARTS, int fields, int stride, int rows, int d, int all, int keep, int width,
                                          int chunk, int each, int blocks, const u32 *strays, int flags) {
  embed_grad<4>(partial, dy, index, s0, s1, s2, s3, s4, s5, s6, s7, fields, stride, rows, d, all, keep, width, chunk, each, blocks, strays, flags);
}
KERNEL __launch_bounds__(1024) embed_grad1(float *partial, const float *dy, const int *index, STARTS, int fields, int stride, int rows, int d, int all, int keep, int width,
                                          int chunk, int each, int blocks, const u32 *strays, int flags) {
  embed_grad<1>(partial, dy, index, s0, s1, s2, s3, s4, s5, s6, s7, fields, stride, rows, d, all, keep, width, chunk, each, blocks, strays, flags);
}

// For gradient lane l = block y: p_f[l·gradLaneSize + i·d + c] (+)= Σ of partial[b, s_f + i, c]
// over its blocks, in order. Bit f of `adds` says that there is a gradient of table f already; a
// table without a pointer wants none.
KERNEL __launch_bounds__(256) embed_grad_lanes(POINTERS(float), STARTS, const float *partial, int fields, int d, int all, int blocks, int gradLaneSize, u32 adds,
                                               const u32 *strays, int flags) {
  if (!any_flag(strays, flags)) return;
  const int e = blockIdx_x * 256 + threadIdx_x, l = blockIdx_y, row = e / d;
  if (row >= all) return;
  int f = 0;
#define PASSED(i) \
  if (i > 0 && i < fields && row >= s##i) f = i;
  EACH_TABLE(PASSED)
  float *to = EACH_TABLE(PICK_POINTER) nullptr;
  if (!to) return;
  to += (long)l * gradLaneSize + e - (long)(EACH_TABLE(PICK_START) 0) * d;
  const float *from = partial + (long)l * blocks * all * d + e;
  float sum = adds >> f & 1 ? *to : 0.0f;
#pragma unroll 8
  for (int b = 0; b < blocks; b++) sum += from[(long)b * all * d];
  *to = sum;
}
