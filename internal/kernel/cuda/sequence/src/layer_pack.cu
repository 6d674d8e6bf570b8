// The weights of a layer as its passes (layer_tail.cu, layer_tail_grad.cu, layer_qkv_grad.cu) read
// them, made anew in every step: in bf16, in tiles (hopper.cuh), terms and hidden columns in slots'
// order (layer.cuh), with each norm's scale and shift folded into the weight behind it:
//
//   W' = W·diag(gamma), b' = b + W·beta
//
// The tail itself has half of W₁: its GELU takes one instruction less.
#include "layer.cuh"

constexpr int packThreads = 256, tailBytes = pieces * pieceBytes, pairBytes = 2 * pieceBytes, qkvBytes = 6 * 16384;
// Where the parts begin: tail at 0, its gradient, the gradient of qkv, qkv for the tail of the
// layer before, qkv by rows, the biases of qkv and up. layer.go has the same places.
constexpr int atTailGrad = tailBytes, atQKVGrad = 2 * tailBytes, atBehind = atQKVGrad + qkvBytes, atQKV = atBehind + qkvBytes;
constexpr int atQKVBias = atQKV + qkvBytes, atUpBias = atQKVBias + 3 * layerWidth * 4;
constexpr int vectorsInAll = atQKVBias / 16, sumsInAll = 3 * layerWidth + layerFeed;

struct Layer {
  const float *qkv, *out, *up, *down, *gamma1, *beta1, *gamma2, *beta2;
};

// A tile's rows and terms by their places: row r of the tile, vector q as it lies.
__device__ __forceinline__ int term_of(int r, int q, int e) { return 8 * (q ^ r % 8) + e; }

// packed is element e of vector `at` of the packed weights.
__device__ __forceinline__ float packed(const Layer &l, int at, int e) {
  int byte = 16 * at;
  if (byte >= atQKV) {
    const int i = (byte - atQKV) / 2 + e;
    return l.qkv[i] * l.gamma1[i % layerWidth];
  }
  const int q = at % 8;
  if (byte >= atBehind) {
    const int tile = (byte - atBehind) / 16384, r = byte % 16384 / tileRowBytes, term = tile % 2 * 64 + term_of(r, q, e);
    return l.qkv[(tile / 2 * layerWidth + column_of(r)) * layerWidth + term] * l.gamma1[term];
  }
  if (byte >= atQKVGrad) {
    const int tile = (byte - atQKVGrad) / 16384, r = byte % 16384 / tileRowBytes, term = 64 * tile + term_of(r, q, e);
    return l.qkv[term * layerWidth + r] * l.gamma1[r];
  }
  const bool grad = byte >= atTailGrad;
  byte -= grad ? atTailGrad : 0;
  // hidden chunk, outside 0..7: the output matrix
  const int piece = byte / pairBytes, within = byte % pairBytes, c = grad ? piece : piece - 1;
  if (piece == (grad ? 8 : 0)) {
    const int r = within % 16384 / tileRowBytes, term = within / 16384 * 64 + term_of(r, q, e);
    return grad ? l.out[term * layerWidth + r] : l.out[r * layerWidth + column_of(term)];
  }
  if (grad || within < 16384) { // two tiles of 64 hidden rows: W₁, and for the gradient first W₂
    const int r = within % 8192 / tileRowBytes, hidden = 64 * c + column_of(r), term = within % 16384 / 8192 * 64 + term_of(r, q, e);
    if (grad && within < 16384) return l.down[term * layerFeed + hidden];
    return l.up[hidden * layerWidth + term] * l.gamma2[term] * (grad ? 1.0f : 0.5f);
  }
  const int r = (within - 16384) / tileRowBytes, hidden = 64 * c + column_of(term_of(r, q, e));
  return l.down[r * layerFeed + hidden];
}

KERNEL __launch_bounds__(packThreads) layer_pack(char *to, const float *qkv, const float *out, const float *up, const float *down,
    const float *upBias, const float *gamma1,
                                                 const float *beta1, const float *gamma2, const float *beta2) {
  const Layer l = {qkv, out, up, down, gamma1, beta1, gamma2, beta2};
  const int i = blockIdx_x * packThreads + threadIdx_x;
  if (i < vectorsInAll) {
    float v[8];
#pragma unroll
    for (int e = 0; e < 8; e++) v[e] = packed(l, i, e);
    *(u4 *)(to + (long)16 * i) = u4{bf16x2(v[0], v[1]), bf16x2(v[2], v[3]), bf16x2(v[4], v[5]), bf16x2(v[6], v[7])};
    return;
  }
  // vectorsInAll is a multiple of a block's threads: whole warps come here
  const int row = (i - vectorsInAll) / 32, lane = threadIdx_x % 32;
  if (row >= sumsInAll) return;
  const bool first = row < 3 * layerWidth;
  const int r = first ? row : row - 3 * layerWidth;
  const float *w = (first ? qkv : up) + r * layerWidth, *beta = first ? beta1 : beta2;
  float sum = 0;
  for (int k = lane; k < layerWidth; k += 32) sum += w[k] * beta[k];
  sum = warp_sum(sum);
  if (lane == 0) *(float *)(to + (first ? atQKVBias : atUpBias) + 4 * r) = sum + (first ? 0 : upBias[r]);
}
static_assert(vectorsInAll % packThreads == 0, "whole warps");
