// The sum of a token's embeddings, which begins the residual stream, and the norm that follows it,
// without its scale and shift (layer_pack.cu): a warp has a few rows of 128 columns, a lane four
// columns of each.
//
// What a reader could break: tables are added in their order, as in embed.cu, so that the stream
// has the same bits.
#include "bf16.cuh"

constexpr int embedWidth = 128, embedWarps = 8, embedRows = 4, mostFields = 8;
static_assert(embedRows * mostFields <= 32, "a lane fetches one index of a warp's rows");

KERNEL __launch_bounds__(32 * embedWarps)
    layer_embed(float *y, Bf16 *hat, float *rstd, const int *index, const float *p0, const float *p1, const float *p2, const float *p3,
        const float *p4, const float *p5, const float *p6, const float *p7, int fields, int rows, float eps) {
  const int lane = threadIdx_x % 32, first = (blockIdx_x * embedWarps + threadIdx_x / 32) * embedRows;
  if (first >= rows) return;
  const int count = rows - first < embedRows ? rows - first : embedRows;
  const int own = lane < count * fields ? index[(long)first * fields + lane] : -1;
  f4 v[embedRows] = {};
#define ADD(f)                                                                             \
  if (f < fields) {                                                                        \
    _Pragma("unroll") for (int i = 0; i < embedRows; i++) {                                \
      const int k = shfl(own, (i * fields + f) % 32);                                      \
      if (k >= 0) v[i] += load4(p##f + (long)k * embedWidth + 4 * lane);                   \
    }                                                                                      \
  }
  ADD(0) ADD(1) ADD(2) ADD(3) ADD(4) ADD(5) ADD(6) ADD(7)
#pragma unroll
  for (int i = 0; i < embedRows; i++) {
    const float mean = warp_sum(sum4(v[i])) * (1.0f / embedWidth);
    const f4 off = v[i] - mean;
    const float r = rcp(sqrtf_(warp_sum(sum4(off * off)) * (1.0f / embedWidth) + eps));
    if (i >= count) break;
    const long at = (long)(first + i) * embedWidth + 4 * lane;
    store4(y + at, v[i]);
    *(u2 *)(hat + at) = u2{bf16x2(off.x * r, off.y * r), bf16x2(off.z * r, off.w * r)};
    if (lane == 0) rstd[first + i] = r;
  }
}
