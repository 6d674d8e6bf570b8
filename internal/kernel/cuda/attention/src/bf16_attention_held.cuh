// How blocks that hold a head's rows bring its keys and values.
#pragma once
#include "bf16_attention_steps.cuh"

// Shared: for each head k and v [rows][HD] | 16 rows of zeros. rows is tokens in whole sixteens.
template <int HD> __device__ __forceinline__ void bring_keys(u32 at, const Bf16 *qkv, int tokens, int rows, int d, int hd, int each) {
  constexpr int across = HD / 8;
  const int pieces = 2 * each * across, p = threadIdx_x % pieces, step = blockDim_x / pieces;
  const int value = p / (each * across), h = p / across % each, c = p % across;
  const bool inside = 8 * c < hd;
  const Bf16 *from = qkv + (1 + value) * d + h * hd + 8 * c;
  const u32 to = at + 2 * (2 * h + value) * rows * HD;
#pragma unroll 4
  for (int j = threadIdx_x / pieces; j < rows; j += step) {
    bool valid = inside && j < tokens;
    copy16(to + 2 * piece<HD>(j, c), valid ? from + (long)j * 3 * d : qkv, valid);
  }
  for (int e = threadIdx_x; e < 2 * HD; e += blockDim_x) copy16(at + 4 * each * rows * HD + 16 * e, qkv, false);
  commit_copies();
}
