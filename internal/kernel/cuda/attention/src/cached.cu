// One token's attention over keys and values kept from earlier steps, a warp a head of a row.
//
// What a reader could break: where every row has its own caches and every head its own keys, a warp
// writes the token's key and value of its head before it reads them, and reads nothing of another
// head, so that warps need not wait for each other. Rows that share caches need all tokens in them,
// and heads that share keys need those of their group: keep has written them, in a launch before.
#include "ptx.cuh"

constexpr int warps = 4;

__device__ __forceinline__ float read(const void *p, long i, u32 compact) {
  return compact ? __builtin_bit_cast(float, (u32)((const unsigned short *)p)[i] << 16) : ((const float *)p)[i];
}

// v = q·k and w = q·l over n columns in their order, N of which are read at a time.
template <int N> __device__ __forceinline__ void scores(float &v, float &w, const float *q, const float *k, const float *l, int n) {
  typedef float vector __attribute__((ext_vector_type(N)));
#pragma unroll 4
  for (int c = 0; c < n; c += N) {
    const vector x = *(const vector *)(k + c), y = *(const vector *)(l + c);
#pragma unroll
    for (int i = 0; i < N; i++) {
      v += q[c + i] * x[i];
      w += q[c + i] * y[i];
    }
  }
}

// keys[of[b],at[b]] = k; values[of[b],at[b]] = v; without of, those of row b. Of keys and values a
// row has `kept` columns; n is rows times that.
KERNEL keep(const void *qkv, float *keys, float *values, const int *at, const int *of, int n, int t, int d, int kept, u32 compact) {
  const int i = blockIdx_x * blockDim_x + threadIdx_x;
  if (i >= n) return;
  const int b = i / kept, c = i % kept, row = of ? of[b] : b;
  const long to = ((long)row * t + at[b]) * kept + c, in = (long)b * (d + 2 * kept) + d + c;
  keys[to] = read(qkv, in, compact);
  values[to] = read(qkv, in + kept, compact);
}

// keys[b,at] = k; values[b,at] = v; y[b] = Σ_j softmax_j(scale·q·keys[b,j])·values[b,j], j from 0
// to at; with of the caches are those of row of[b]. Of keys and values a row has `kept` columns,
// d/kept heads of queries for each head of those. With of, or fewer columns than d, the caches hold
// the token. qkv and y are bf16 where compact. Shared: for each warp the head's query [hd] and the
// scores [t].
KERNEL __launch_bounds__(32 * warps) cached(void *y, const void *qkv, float *keys, float *values, const int *at, const int *of, int pairs, int t, int d, int kept,
                                           int heads, float scale, u32 compact) {
  extern __shared__ float smem[] __attribute__((aligned(16)));
  const int lane = threadIdx_x % 32, warp = threadIdx_x / 32, pair = blockIdx_x * warps + warp, hd = d / heads;
  if (pair >= pairs) return;
  const int b = pair / heads, head = pair % heads, last = at[b], row = of ? of[b] : b;
  float *q = smem + warp * (hd + t), *s = q + hd;
  const long in = (long)b * (d + 2 * kept) + head * hd;
  keys += (long)row * t * kept + head / (d / kept) * hd;
  values += (long)row * t * kept + head / (d / kept) * hd;
  for (int c = lane; c < hd; c += 32) {
    q[c] = read(qkv, in + c, compact) * scale;
    if (of || kept < d) continue;
    keys[(long)last * kept + c] = read(qkv, in + d + c, compact);
    values[(long)last * kept + c] = read(qkv, in + 2 * d + c, compact);
  }
  syncwarp();
  float top = -__builtin_inff();
  // two positions at a time, whose keys are under way at once
  for (int j = lane; j <= last; j += 64) {
    const int next = j + 32 <= last ? j + 32 : j;
    float v = 0, w = 0;
    if (hd % 4 == 0)
      scores<4>(v, w, q, keys + (long)j * kept, keys + (long)next * kept, hd);
    else
      scores<1>(v, w, q, keys + (long)j * kept, keys + (long)next * kept, hd);
    s[j] = v;
    s[next] = w; // where there is one alone, the same once more
    top = v > top ? v : top;
    top = w > top ? w : top;
  }
  top = warp_max(top);
  float sum = 0;
  for (int j = lane; j <= last; j += 32) {
    float p = expf_(s[j] - top);
    s[j] = p;
    sum += p;
  }
  const float inverse = rcp(warp_sum(sum));
  syncwarp();
  int across = 1; // lanes over columns, a power of two; the others share out the positions
  while (across < hd && across < 32) across *= 2;
  for (int c0 = 0; c0 < hd; c0 += across) {
    const int c = c0 + lane % across;
    float v = 0;
    if (c < hd)
#pragma unroll 16 // the values are under way at once
      for (int j = lane / across; j <= last; j += 32 / across) v += s[j] * values[(long)j * kept + c];
    for (int m = across; m < 32; m *= 2) v += shfl_xor(v, m);
    if (c >= hd || lane >= across) continue;
    const long to = (long)b * d + head * hd + c;
    if (compact)
      ((unsigned short *)y)[to] = (unsigned short)bf16x2(v * inverse, 0);
    else
      ((float *)y)[to] = v * inverse;
  }
}
