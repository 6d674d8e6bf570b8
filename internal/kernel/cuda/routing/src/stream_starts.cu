// Rollouts of many starts of one instance with any number of nodes (stream.cuh), sixteen starts a
// warp or, where starts are few, a team of warps: each has its share of the heads and of the
// blocks of nodes, and all follow the same rows. starts.cuh says what a reader could break.
#include "starts.cuh"
#include "stream.cuh"

// Shared memory of a warp, in words: what is served and what is allowed of its rows. Of a tile of
// sixteen rows: a block's sums of their distributions and, of a team, glimpses and tallies.
#define WARP_WORDS(blocks) (32 * (blocks))
#define TILE_WORDS(blocks, team) (32 * (blocks) + ((team) > 1 ? 128 * CHUNKS + 64 * (team) : 0))

// rollout_stream is rollout_row (rollout.cu) for instance blockIdx_x's starts, sixteen to each TEAM
// of warps. scratch holds r of a tile of sixteen rows, TILES_IN·512 bytes a block.
//
// Shared memory: `held` matrices of the instance | x, y, customers of all nodes of the blocks | the
// context's weights, fp16 | what fits a vehicle of each level, by block and lane of a quad |
// TILE_WORDS a tile | WARP_WORDS a warp.
template <int HD, int TEAM, int HELD>
__device__ __forceinline__ void rollout_stream(int *actions, int *steps, float *length, float *logProb, float *entropy, const char *packed,
                                               const float *load, const float *posX, const float *posY, const Customer *instances, const Control *control,
                                               const State *state, u64 seed, u32 purpose, int capacity, int n, int blocks, int starts, int limit,
                                               int choice, int begins, float scale, const float *biases, int wide, float4_ *scratch, int held) {
  const int i = blockIdx_x, warp = threadIdx_x >> 5, lane = threadIdx_x & 31, g = lane >> 2, t4 = lane & 3, tiles = (blockDim_x >> 5) / TEAM;
  const int own = warp / TEAM, member = warp % TEAM, tile = blockIdx_y * tiles + own, start = tile * 16 + g, all = BLOCK * blocks,
            count16 = (n + 15) / 16;
  float *p = smem + held * count16 * (PACKED_BLOCK / 8);
  float *x = p; p += all;
  float *y = p; p += all;
  Customer *customers = (Customer *)p; p += all * (sizeof(Customer) / 4);
  Half2 *loads = (Half2 *)p; p += CONTEXTS * (WIDTH / 2);
  unsigned short *levels = (unsigned short *)p; p += LEVELS * blocks * 2;
  float2_ *sums = (float2_ *)(p + own * TILE_WORDS(blocks, TEAM)); // [blocks][16]: of a row, and what it refers to
  u4 *passed = (u4 *)(sums + 16 * blocks);
  float4_ *tallies = (float4_ *)(passed + 32 * CHUNKS); // [TEAM][16]: least, sum, mean, and the least's node
  p += tiles * TILE_WORDS(blocks, TEAM);
  Mask *served = (Mask *)(p + warp * WARP_WORDS(blocks)), *masks = served + 32 * blocks;
  scratch += (((u64)i * (u64)((starts + 15) / 16) + tile) * blocks) * (32 * TILES_IN);
  const Matrices<HELD> in = hold<HELD>(packed_of(packed, i, blocks), (char *)smem, HELD ? HELD : held, blocks, count16);
  loads_in_half(loads, load, scale);
  for (int j = threadIdx_x; j < all; j += blockDim_x) {
    x[j] = j < n ? posX[i * n + j] : 0.0f;
    y[j] = j < n ? posY[i * n + j] : 0.0f;
    customers[j] = customer(instances + (u64)i * n, j, n);
  }
  for (int B = 0; B < blocks; B++) served[B * 32 + lane] = 0;
  bool told = true;
  for (int j = lane; j < n; j += 32) told = told && Vehicle::level_tells(customer(instances + (u64)i * n, j, n));
  told = ballot(!told) == 0; // every warp asks for itself
  sync();
  auto fitting = [&](const Vehicle &v, int B, int t) {
    u32 mask = 0;
#pragma unroll
    for (int T = 0; T < TILES_IN; T++)
#pragma unroll
      for (int b = 0; b < 2; b++)
        if (v.fits(customers[BLOCK * B + 8 * T + 2 * t + b])) mask |= 1u << (T + 8 * b);
    return mask;
  };
  for (int k = threadIdx_x; k < 4 * LEVELS * blocks; k += blockDim_x)
    levels[k] = (unsigned short)fitting(Vehicle::reach(k / (4 * blocks)), k / 4 % blocks, k & 3);
  sync();
  if (tile * 16 >= starts) return; // no barrier of the whole block follows

  const float mult = div_(10.0f, control->temperature), k = 2 * LOG2E * mult;
  const u64 index = state->instances + i;
  Row row[2];
#pragma unroll
  for (int r = 0; r < 2; r++) row[r] = begin(instances + (u64)i * n, start + 8 * r >= starts, n, capacity);
  const u64 at[2] = {((u64)i * starts + start) * limit, ((u64)i * starts + start + 8) * limit};
  if (biases) biases += (u64)i * (n + CONTEXTS) * wide;
  Words drawn = {};
#pragma unroll 1
  for (int t = 0; t < limit; t++) {
    if (ballot(!row[0].done || !row[1].done) == 0) break;
    choice = opaque(choice);
    int count[2] = {0, 0}, only[2] = {1 << 20, 1 << 20};
#pragma unroll 1
    for (int B = 0; B < blocks; B++) {
      const u32 before = served[B * 32 + lane], depot = B == 0 && t4 == 0;
      u32 mask = 0;
#pragma unroll
      for (int r = 0; r < 2; r++) {
        const Vehicle &v = row[r].vehicle;
        const u32 fit = told ? levels[(v.level() * blocks + B) * 4 + t4] : fitting(v, B, t4);
        const u32 mine = v.allowed(fit, before >> (4 * r) & 0xf0f, depot) & 0xf0f;
        count[r] += __builtin_popcount(mine);
        if (mine) {
          const int bit = __builtin_ctz(mine);
          only[r] = smaller(only[r], BLOCK * B + 8 * (bit & 7) + 2 * t4 + (bit >> 3));
        }
        mask |= mine << (4 * r);
      }
      masks[B * 32 + lane] = (Mask)mask;
    }
    bool ask[2];
#pragma unroll
    for (int r = 0; r < 2; r++) {
      const bool first = begins == FORCED && t == 0;
      ask[r] = asks(row[r], first, quad_sum(count[r]));
      row[r].action = quad_min(only[r]);
      if (first) row[r].action = start + 8 * r + 1;
      if (choice == REPLAY && !row[r].done && (first || ask[r])) row[r].action = actions[at[r] + t];
    }
    // lane parity: which of the quad's two rows this lane draws for
    if (choice == SAMPLE && (t & 3) == 0) drawn = philox(seed, index, (u32)(start + 8 * (t4 & 1)) << 16 | (u32)t >> 2, purpose);
    if (ballot(ask[0] || ask[1])) {
      const Vehicle &v0 = row[0].vehicle, &v1 = row[1].vehicle;
      // past the last start too
      const int from0 = smaller(seen(v0, begins, t, start), n - 1), from1 = smaller(seen(v1, begins, t, start + 8), n - 1);
      const Context c0 = v0.context(capacity), c1 = v1.context(capacity);
      Half2 glimpse[CHUNKS][4];
      look<HD, TEAM, 1>(glimpse, in, loads, count16, from0, from1, c0, c1, masks, member, passed, own + 1, [](int, float, float) {});
      const bool tame = TAME(k) && choice != GREEDY;
      Tally tally[2] = {{tame ? MIDDLE : NOWHERE, 0, 0}, {tame ? MIDDLE : NOWHERE, 0, 0}};
      int pick[2] = {0, 0};
      syncwarp(); // the sums of the step before have been read
      by_blocks(count16, member, TEAM, [&](auto steps, int B) INLINE {
        constexpr int M = steps.value;
        float r[2 * M][4], here[2] = {};
        const float before[2] = {tally[0].least, tally[1].least};
        point<M>(r, tally, here, glimpse, in, B, masks[B * 32 + lane], biases ? biases + from0 * wide : 0, biases ? biases + from1 * wide : 0,
                       biases ? biases + n * wide : 0, wide, c0, c1, k, !tame);
        const float2_ w[2] = {weighted<0>(r, tally[0].least, k), weighted<1>(r, tally[1].least, k)};
#pragma unroll
        for (int I = 0; I < 2; I++) tally[I].sum += w[I].x, tally[I].mean += w[I].y;
        if (choice == GREEDY) {
#pragma unroll
          for (int I = 0; I < 2; I++) {
            int best = 1 << 20;
#pragma unroll
            for (int T = 2 * M - 1; T >= 0; T--)
#pragma unroll
              for (int b = 1; b >= 0; b--)
                if (r[T][2 * I + b] == here[I]) best = BLOCK * B + 8 * T + 2 * t4 + b;
            best = quad_min(best);
            if (here[I] < before[I]) pick[I] = best;
          }
        } else {
#pragma unroll
          for (int T = 0; T < 2 * M; T++) scratch[(B * TILES_IN + T) * 32 + lane] = float4_{r[T][0], r[T][1], r[T][2], r[T][3]};
          if (choice == SAMPLE)
#pragma unroll
            for (int I = 0; I < 2; I++) {
              const float block = quad_sum(w[I].x);
              if (t4 == 0) sums[B * 16 + g + 8 * I] = float2_{block, tally[I].least};
            }
        }
      });
#pragma unroll
      for (int I = 0; I < 2; I++) tally[I].sum = quad_sum(tally[I].sum), tally[I].mean = quad_sum(tally[I].mean);
      if constexpr (TEAM > 1) {
        if (t4 == 0)
#pragma unroll
          for (int I = 0; I < 2; I++)
            tallies[member * 16 + g + 8 * I] = float4_{tally[I].least, tally[I].sum, tally[I].mean, as_float(pick[I])};
        meet(own + 1, 32 * TEAM);
#pragma unroll
        for (int I = 0; I < 2; I++) {
          tally[I] = Tally{NOWHERE, 0, 0};
#pragma unroll
          for (int e = 0; e < TEAM; e++) {
            const float4_ x = tallies[e * 16 + g + 8 * I];
            Tally other = {x.x, x.y, x.z};
            const int node = as_int(x.w);
            if (other.least < tally[I].least || (other.least == tally[I].least && node < pick[I])) pick[I] = node;
            if (other.least < tally[I].least)
              tally[I].refer(other.least, k);
            else
              other.refer(tally[I].least, k);
            tally[I].sum += other.sum, tally[I].mean += other.mean;
          }
        }
      }
      float chosen[2] = {tally[0].least, tally[1].least};
      if (choice == SAMPLE) {
        syncwarp();
        const u32 low = t & 1 ? drawn.w[1] : drawn.w[0], high = t & 1 ? drawn.w[3] : drawn.w[2];
        // The block where a row's uniform falls, by parity as drawn.
        const int I = t4 & 1;
        const float2_ *mine = sums + g + 8 * I;
        const float least = I ? tally[1].least : tally[0].least;
        float whole = 0, base = 0, run = 0;
        for (int B = 0; B < blocks; B++) whole += mine[B * 16].x * ex2(k * (least - mine[B * 16].y));
        float edge = unit(t & 2 ? high : low) * whole;
        int found = -1, last = 0;
        for (int B = 0; B < blocks; B++) {
          const float part = mine[B * 16].x * ex2(k * (least - mine[B * 16].y));
          if (part > 0) last = B;
          if (found < 0 && part > 0 && run + part > edge) found = B, base = run;
          run += part;
        }
        if (found < 0) found = last, edge = INFINITE, base = 0; // rounding left none
#pragma unroll
        for (int R = 0; R < 2; R++) {
          const int from = (lane & 28) | R, B = shfl(found, from);
          const float e = shfl(edge, from), off = tally[R].least * k;
          float before = shfl(base, from);
          int where = 1 << 20, end = 0;
#pragma unroll
          for (int T = 0; T < TILES_IN; T++) {
            // the half of the last block that has no nodes was not written
            const float2_ v = 2 * B + (T >> 1) < count16 ? two((const float *)(scratch + (B * TILES_IN + T) * 32 + lane) + 2 * R) : float2_{NOWHERE, NOWHERE};
            const float a = ex2(fma_(v.x, -k, off)), b = ex2(fma_(v.y, -k, off));
            float sum = a + b;
            const float upTo = before + quad_before(sum) + a;
            const int j = BLOCK * B + 8 * T + 2 * t4;
            if (b > 0 && upTo + b > e) where = smaller(where, j + 1);
            if (a > 0 && upTo > e) where = smaller(where, j);
            if (a > 0) end = j;
            if (b > 0) end = j + 1;
            before += shfl(sum, (lane & 28) | 3);
          }
          where = quad_min(where), end = quad_max(end);
          pick[R] = where == 1 << 20 ? end : where;
        }
      }
      if (choice == REPLAY) pick[0] = row[0].action, pick[1] = row[1].action;
      if (choice != GREEDY) {
        syncwarp(); // what other lanes wrote
#pragma unroll
        for (int I = 0; I < 2; I++) {
          const int a = pick[I];
          chosen[I] = *((const float *)(scratch + (a >> 3) * 32 + ((lane & 28) | (a >> 1 & 3))) + 2 * I + (a & 1));
        }
      }
#pragma unroll
      for (int I = 0; I < 2; I++) {
        const float sum = tally[I].sum, mean = tally[I].mean, logSum = logf_(sum);
        if (!ask[I]) continue;
        row[I].action = pick[I];
        row[I].logProb += 2 * mult * (tally[I].least - chosen[I]) - logSum;
        row[I].entropy += logSum - LN2 * mean * rcp_fast(sum);
      }
    }
#pragma unroll
    for (int r = 0; r < 2; r++) {
      if (row[r].done) continue;
      const int a = row[r].action;
      row[r].length += leg(x, y, FROM(row[r].vehicle, a), row[r].vehicle.to(a));
      if (choice != REPLAY && t4 == 0 && member == 0) actions[at[r] + t] = a;
      row[r].steps++;
      row[r].vehicle.move(a, customers[a], capacity);
      row[r].done = row[r].vehicle.ended();
      // the depot's is never asked
      if ((a >> 1 & 3) == t4 && SERVED(row[r].vehicle, a)) served[a / BLOCK * 32 + lane] |= (Mask)(1u << (4 * r + (a >> 3 & (TILES_IN - 1)) + 8 * (a & 1)));
    }
  }
#pragma unroll
  for (int r = 0; r < 2; r++)
    if (start + 8 * r < starts && member == 0)
      keep(actions, steps, length, logProb, entropy, row[r], at[r], i * starts + start + 8 * r, limit, choice, begins);
}

#define STARTS(NAME, HD, TEAM, HELD)                                                                                                        \
  KERNEL __launch_bounds__(512, 1) NAME(int *actions, int *steps, float *length, float *logProb, float *entropy, const char *packed, \
                                        const float *load, const float *posX, const float *posY, const Customer *instances,      \
                                        const Control *control, const State *state, u64 seed, u32 purpose, int capacity, int n, int blocks, \
                                        int starts, int limit, int choice, int begins, float scale, const float *biases, int wide, \
                                        float4_ *scratch, int held) {                                                            \
    rollout_stream<HD, TEAM, HELD>(actions, steps, length, logProb, entropy, packed, load, posX, posY, instances, control, state, seed, purpose, capacity, n, \
                       blocks, starts, limit, choice, begins, scale, biases, wide, scratch, held);                                \
  }

STARTS(rollout_stream_16, 16, 1, 0)
STARTS(rollout_stream_32, 32, 1, 0)
STARTS(rollout_two_16, 16, 1, 2)
STARTS(rollout_two_32, 32, 1, 2)
STARTS(rollout_three_16, 16, 1, 3)
STARTS(rollout_three_32, 32, 1, 3)
STARTS(rollout_team_one_16, 16, 4, 1)
STARTS(rollout_team_one_32, 32, 4, 1)
STARTS(rollout_team_16, 16, 4, 0)
STARTS(rollout_team_32, 32, 4, 0)
