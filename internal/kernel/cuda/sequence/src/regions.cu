// Training sequences drawn from streams of records, a warp per row, or several that share a long
// row's tokens out, 32 at a time, where none depends on those before. Bit for bit
// kernel.RegionSpec.Row: the same words of the same Philox calls, the same order of tokens.
#include "haul.cuh"

constexpr int warps = 4;
enum { RECORD, START, END };

// A field of record t: bits 0 to 4 say how far it is shifted, bit 5 that it is of the record
// before, or -1 at a stream's beginning, bits 6 and 7 which of the record's words has it.
__device__ __forceinline__ int field(u32 code, const int *stream, int t, int stride) {
  if (code & 32 && t == 0) return -1;
  return stream[(long)(code & 32 ? t - 1 : t) * stride + (code >> 6)] >> (code & 31) & 0xff;
}

KERNEL __launch_bounds__(32 * warps) regions(int *index, int *labels, int *first, const int *records, const State *state, u64 seed, u32 purpose, int rows, u32 streams,
                                            int steps, int horizon, int tokens, u32 compressed, int shortest, int choices, int ahead,
                                            u64 fields, int count, u32 label, int stride, u32 relabels, u32 paid, u32 later, int pieces) {
  const int row = blockIdx_x * warps + threadIdx_x / 32, lane = threadIdx_x % 32, all = steps / horizon;
  if (row >= rows) return;
  index += (long)row * tokens * (count + 2), labels += (long)row * tokens * 2, first += (long)row * tokens;
  auto episodes = [&](int n) { return (n + horizon - 1) / horizon; };
  int begin = 0;
  for (u32 q = 0; begin < tokens; q++) {
    const Words w = philox(seed, state->instances + row, q, purpose);
    const int *stream = records + (long)below(w.w[0], streams) * steps * stride;
    // The sequence: from0 on n0 records, from1 on n1; compressed, each between two markers.
    int from0, from1 = 0, n0 = tokens, n1 = 0;
    if (compressed) {
      const int c = (int)below(w.w[3], (u32)(choices * choices));
      n0 = shortest + c / choices * horizon, n1 = shortest + c % choices * horizon;
      const int room = all - episodes(n0) - episodes(n1), e = (int)below(w.w[1], (u32)(room + 1));
      const int gap = (int)below(w.w[2], (u32)((ahead < room - e ? ahead : room - e) + 1));
      from0 = e * horizon, from1 = (e + episodes(n0) + gap) * horizon;
    } else {
      from0 = (int)below(w.w[1], (u32)(all - episodes(tokens) + 1)) * horizon;
    }
    const int marks = compressed ? 2 : 0, total = n0 + n1 + 2 * marks;
    bool told = false; // Later.Paid, by a token of an earlier round
    for (int k0 = 32 * blockIdx_y; k0 < total && begin + k0 < tokens; k0 += 32 * pieces) {
      const int k = k0 + lane;
      const bool here = k < total && begin + k < tokens;
      const bool second = k >= n0 + marks;
      const int place = (second ? k - n0 - marks : k) - marks / 2, n = second ? n1 : n0, t = (second ? from1 : from0) + place;
      const int to = begin + k;
      const bool record = place >= 0 && place < n;
      u32 code = label;
      if (relabels) {
        const u32 tells = ballot(here && record && field(paid, stream, t, stride) > 0);
        if (told || tells & (2u << lane) - 1) code = later;
        told = told || tells;
      }
      if (!here) continue;
      int *token = index + to * (count + 2);
      for (int f = 0; f < count; f++) token[f] = record ? field((u32)(fields >> 8 * f) & 255, stream, t, stride) : -1;
      token[count] = record ? RECORD : place < 0 ? START : END, token[count + 1] = k;
      labels[2 * to] = record ? field(code, stream, t, stride) : -1;
      labels[2 * to + 1] = record && compressed ? (place == n - 1 ? END : RECORD) : -1;
      first[to] = begin;
    }
    begin += total;
  }
}
