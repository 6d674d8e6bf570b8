// Training sequences drawn from learning histories, a warp a row. Bit for bit kernel.RegionSpec.Row: the same words of the same Philox
// calls, the same order of tokens.
#include "haul.cuh"

constexpr int warps = 4, fields = 6;
enum { TRANSITION, START, END };

KERNEL __launch_bounds__(32 * warps) regions(int *index, int *labels, int *first, const int *history, const State *state, u64 seed, u32 purpose, int rows, u32 streams,
                                            int steps, int horizon, int tokens, u32 compressed, int shortest, int choices, int ahead) {
  const int row = blockIdx_x * warps + threadIdx_x / 32, lane = threadIdx_x % 32, all = steps / horizon;
  if (row >= rows) return;
  index += (long)row * tokens * fields, labels += (long)row * tokens * 2, first += (long)row * tokens;
  auto episodes = [&](int n) { return (n + horizon - 1) / horizon; };
  int begin = 0;
  for (u32 q = 0; begin < tokens; q++) {
    const Words w = philox(seed, state->instances + row, q, purpose);
    const int *stream = history + (long)below(w.w[0], streams) * steps;
    // The sequence: from0 on n0 transitions, from1 on n1; compressed, each between two markers.
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
    for (int k = lane; k < total && begin + k < tokens; k += 32) {
      const bool second = k >= n0 + marks;
      const int place = (second ? k - n0 - marks : k) - marks / 2, n = second ? n1 : n0, t = (second ? from1 : from0) + place;
      int token[fields] = {-1, -1, -1, -1, place < 0 ? START : END, k}, label = -1, next = -1;
      if (place >= 0 && place < n) {
        const int h = stream[t];
        token[0] = h & 0xff, token[1] = h >> 8 & 0xff, token[4] = TRANSITION;
        label = h >> 16 & 0xff;
        if (t > 0) {
          const int before = stream[t - 1];
          token[2] = before >> 16 & 0xff, token[3] = before >> 24;
        }
        if (compressed) next = place == n - 1 ? END : TRANSITION;
      }
      const int to = begin + k;
#pragma unroll
      for (int f = 0; f < fields; f++) index[to * fields + f] = token[f];
      labels[2 * to] = label, labels[2 * to + 1] = next;
      first[to] = begin;
    }
    begin += total;
  }
}
