// The gradient of the decisions with any number of nodes, row by row: sixteen decisions of an
// instance a warp go forward, and back as far as the gradient of the glimpse. stream_nodes.cu goes
// on from there, node by node.
#include "stream_grad.cuh"

// eight gathers bits 8T + 2t + b of a word, T < 4, b < 2, as bits T + 8b.
__device__ __forceinline__ u32 eight(u32 word, int t) {
  const u32 y = word >> (2 * t);
  // The factor brings bits 0, 8, 16 and 24 to 28, 29, 30 and 31.
  return (y & 0x01010101) * 0x10204080u >> 28 | ((y >> 1 & 0x01010101) * 0x10204080u >> 28) << 8;
}

// matrices are all held in shared memory or, RING, pass through it.
template <int HD, bool RING> __device__ __forceinline__ auto matrices(const Packed &packed, int blocks, int tiles) {
  if constexpr (RING) {
    sync(); // for what the block brought otherwise, as hold does
    return Ring<HD>(packed, (char *)smem, tiles);
  } else {
    return hold<QUERIES>(packed, (char *)smem, QUERIES, blocks, tiles);
  }
}

// rows_stream, for each decision k of instance blockIdx_x (in tiles of sixteen, dealt to
// warps and to blockIdx_y):
//
//	glimpses[k] = the glimpse;  lse[h][k] = log2 of a head's sum of exp2 of its scores
//	dus[k][j] = d loss / d dot_j·up, dot_j the product with a pointer key times POINT(scale)
//	dglimpses[k] = Σ over j of dus[k][j]·that key
//	deltas[h][k] = glimpse·dglimpse over a head's columns
//
// scratch holds r of a warp's rows, TILES_IN·512 bytes a block. Shared memory: the matrices of the
// instance or, RING, what passes of them, the context's weights, fp16, and 16 words a block of
// nodes and warp.
template <int HD, bool RING>
__device__ __forceinline__ void rows_stream(Half *dus, Half *glimpses, Half *dglimpses, float *lse, float *deltas, const Taken *taken, const u32 *masks,
                                            const int *stands, const int *counts, const float *ups, const char *packed, const float *load,
                                            const Control *control, int n, int blocks, int room, int splits, float scale, const float *biases,
                                            int wide, float4_ *scratch) {
  constexpr int HEADS = WIDTH / HD;
  const int i = blockIdx_x, count = counts[i], all = BLOCK * blocks, tiles = (n + 15) / 16;
  const int lane = threadIdx_x & 31, g = lane >> 2, t = lane & 3, warp = threadIdx_x >> 5, warps = blockDim_x >> 5;
  Half2 *loads = (Half2 *)(smem + (RING ? RING_PARTS * RING_BYTES / 4 : QUERIES * tiles * (PACKED_BLOCK / 8)));
  Mask *allowed = (Mask *)(loads + CONTEXTS * (WIDTH / 2)) + warp * 32 * blocks;
  loads_in_half(loads, load, scale);
  auto in = matrices<HD, RING>(packed_of(packed, i, blocks), blocks, tiles);
  const float mult = div_(10.0f, control->temperature), k = 2 * LOG2E * mult, up = ups[i];
  const int line = mask_words(n);
  const u64 base = (u64)i * room;
  taken += base;
  masks += base * line;
  stands += base;
  dus += base * all;
  glimpses += base * WIDTH;
  dglimpses += base * WIDTH;
  lse += base * HEADS;
  deltas += base * HEADS;
  scratch += (((u64)i * splits + blockIdx_y) * warps + warp) * blocks * (32 * TILES_IN);
  if (biases) biases += (u64)i * (n + CONTEXTS) * wide;
#pragma unroll 1
  for (int base = blockIdx_y * warps; base * 16 < count; base += splits * warps) {
    // A warp without a tile does the last one again where all must go along, and leaves nothing.
    const bool mine = (base + warp) * 16 < count;
    if (!RING && !mine) break;
    const int tile = mine ? base + warp : count / 16 - 1;
    const int k0 = tile * 16 + g, k1 = k0 + 8, at0 = stands[k0], at1 = stands[k1];
    Context c0, c1;
#pragma unroll
    for (int f = 0; f < CONTEXTS; f++) c0.part[f] = taken[k0].seen[f], c1.part[f] = taken[k1].seen[f];
    for (int B = 0; B < blocks; B++)
      allowed[B * 32 + lane] = (Mask)(eight(masks[(u64)k0 * line + B], t) | eight(masks[(u64)k1 * line + B], t) << 4);
    Half2 glimpse[CHUNKS][4];
    look<HD, 1, 2>(glimpse, in, loads, tiles, at0, at1, c0, c1, allowed, 0, 0, 0, [&](int h, float lse0, float lse1) {
      if (t == 0 && mine) lse[(u64)h * room + k0] = lse0, lse[(u64)h * room + k1] = lse1;
    });
    const bool tame = TAME(k);
    Tally tally[2] = {{tame ? MIDDLE : NOWHERE, 0, 0}, {tame ? MIDDLE : NOWHERE, 0, 0}};
    by_blocks(tiles, 0, 1, [&](auto steps, int B) INLINE {
      constexpr int M = steps.value;
      float r[2 * M][4], here[2];
      point<M>(r, tally, here, glimpse, in, B, allowed[B * 32 + lane], biases ? biases + at0 * wide : 0, biases ? biases + at1 * wide : 0,
                     biases ? biases + n * wide : 0, wide, c0, c1, k, !tame);
      const float2_ w0 = weighted<0>(r, tally[0].least, k), w1 = weighted<1>(r, tally[1].least, k);
      tally[0].sum += w0.x, tally[0].mean += w0.y, tally[1].sum += w1.x, tally[1].mean += w1.y;
#pragma unroll
      for (int T = 0; T < 2 * M; T++) scratch[(B * TILES_IN + T) * 32 + lane] = float4_{r[T][0], r[T][1], r[T][2], r[T][3]};
    });
    // dz = wa·(δ(j = action) - p) - we·p·(log p + entropy)
    // du = dz·d logit/d dot, tanh' = 4r(1 - r)
    const float each = 4 * mult * up / POINT(1.0f);
    float flat[2], slope[2], off[2], chosen[2];
    int action[2];
#pragma unroll
    for (int I = 0; I < 2; I++) {
      const Taken &c = taken[I ? k1 : k0];
      const float sum = quad_sum(tally[I].sum), mean = quad_sum(tally[I].mean), logSum = logf_(sum), entropy = logSum - LN2 * mean * rcp_fast(sum);
      const float over = -each * rcp_fast(sum);
      flat[I] = over * (c.wa + c.we * (entropy - logSum)), slope[I] = over * c.we * LN2, off[I] = tally[I].least * k;
      chosen[I] = each * c.wa;
      action[I] = c.action - 2 * t;
    }
    float dg[2 * CHUNKS][4] = {};
    float4_ next[TILES_IN]; // r of the block that follows
#pragma unroll
    for (int T = 0; T < TILES_IN; T++) next[T] = scratch[T * 32 + lane];
    Half *du0 = dus + (u64)k0 * all + 2 * t, *du1 = dus + (u64)k1 * all + 2 * t;
    by_blocks(tiles, 0, 1, [&](auto steps, int B) INLINE {
      constexpr int M = steps.value;
      const auto back = in.down(B);
      float4_ r4[2 * M];
#pragma unroll
      for (int T = 0; T < 2 * M; T++) r4[T] = next[T];
      if (2 * B + 2 < tiles)
#pragma unroll
        for (int T = 0; T < TILES_IN; T++) next[T] = scratch[((B + 1) * TILES_IN + T) * 32 + lane];
      Half2 du[2 * M][2];
      const int here[2] = {action[0] - BLOCK * B, action[1] - BLOCK * B};
#pragma unroll
      for (int T = 0; T < 2 * M; T++) {
#pragma unroll
        for (int I = 0; I < 2; I++) {
          float out[2];
#pragma unroll
          for (int b = 0; b < 2; b++) {
            const float r = r4[T][2 * I + b], z = fma_(r, -k, off[I]);
            float dz = ex2(z) * fma_(slope[I], z, flat[I]);
            if (8 * T + b == here[I]) dz += chosen[I];
            out[b] = dz * fma_(-r, r, r);
          }
          du[T][I] = half2(out[0], out[1]);
        }
        if (RING && !mine) continue;
        *(Half2 *)(du0 + BLOCK * B + 8 * T) = du[T][0];
        *(Half2 *)(du1 + BLOCK * B + 8 * T) = du[T][1];
      }
#pragma unroll
      for (int m = 0; m < M; m++)
#pragma unroll
        for (int c = 0; c < CHUNKS; c++) {
          const u4 x = back.piece(m, c);
          mma(dg[2 * c], du[2 * m][0], du[2 * m][1], du[2 * m + 1][0], du[2 * m + 1][1], x.x, x.y);
          mma(dg[2 * c + 1], du[2 * m][0], du[2 * m][1], du[2 * m + 1][0], du[2 * m + 1][1], x.z, x.w);
        }
    });
#pragma unroll
    for (int h = 0; h < HEADS; h++) {
      float delta0 = 0, delta1 = 0;
#pragma unroll
      for (int u = 0; u < HD / 8; u++) {
        const int T = h * (HD / 8) + u; // a tile of eight columns
        const float2_ a = floats(glimpse[T / 2][2 * (T & 1)]), b = floats(glimpse[T / 2][2 * (T & 1) + 1]);
        delta0 += a.x * dg[T][0] + a.y * dg[T][1];
        delta1 += b.x * dg[T][2] + b.y * dg[T][3];
      }
      delta0 = quad_sum(delta0), delta1 = quad_sum(delta1);
      if (t == 0 && mine) deltas[(u64)h * room + k0] = delta0, deltas[(u64)h * room + k1] = delta1;
    }
    if (RING && !mine) continue;
#pragma unroll
    for (int T = 0; T < 2 * CHUNKS; T++) {
      const u64 a = (u64)k0 * WIDTH + 8 * T + 2 * t, b = (u64)k1 * WIDTH + 8 * T + 2 * t;
      *(Half2 *)(glimpses + a) = glimpse[T / 2][2 * (T & 1)];
      *(Half2 *)(glimpses + b) = glimpse[T / 2][2 * (T & 1) + 1];
      *(Half2 *)(dglimpses + a) = half2(dg[T][0], dg[T][1]);
      *(Half2 *)(dglimpses + b) = half2(dg[T][2], dg[T][3]);
    }
  }
  if constexpr (RING) wait_copies<0>(); // what nobody asks for any more
}

#define ROWS(NAME, HD, RING)                                                                                                              \
  KERNEL __launch_bounds__(384, 1) NAME(Half *dus, Half *glimpses, Half *dglimpses, float *lse, float *deltas, const Taken *taken,      \
                                        const u32 *masks, const int *stands, const int *counts, const float *ups, const char *packed, \
                                        const float *load, const Control *control, int n, int blocks, int room, int splits, \
                                        float scale, const float *biases, int wide, float4_ *scratch) {                    \
    rows_stream<HD, RING>(dus, glimpses, dglimpses, lse, deltas, taken, masks, stands, counts, ups, packed, load, control, n, blocks, room, \
                    splits, scale, biases, wide, scratch);                                                                     \
  }

ROWS(rows_held_16, 16, false)
ROWS(rows_held_32, 32, false)
ROWS(rows_ring_16, 16, true)
ROWS(rows_ring_32, 32, true)
