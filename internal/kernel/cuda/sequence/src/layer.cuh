// A transformer layer of 128 columns with a feed-forward layer of 512, in one pass over rows: what
// the kernels before and after attention share. A row never leaves the chip between the products of
// a pass, so each of a pass's tensors crosses memory once.
//
// What a reader could break: who holds what. A block is two warpgroups with 64 rows each, and one
// whose first thread brings the weights and whose registers the others take. Sums lie as hopper.cuh
// says. Hidden columns are numbered so that a lane's eight of a block of 32 are neighbours in
// memory: slot 8j + 2t + e of the block is column 8t + 2j + e. A left operand read straight from
// memory has the same order. layer_pack.cu lays the weights out to match: `column_of` is the one
// place that says so.
//
// A norm's scale and shift are folded into the weight behind it (layer_pack.cu), so a norm leaves
// (x - mean)·rstd alone, here called its hat.
#pragma once
#include "hopper.cuh"

constexpr int layerWidth = 128, layerFeed = 512;
// What a pass has in shared memory, if it says so before it includes this: a group's matrices, its
// biases, the slots of its weights, and bytes between two rows that are laid aside.
#ifndef LAYER_MATRICES
#define LAYER_MATRICES 1
#define LAYER_BIASES 0
#define LAYER_SLOTS 2
#endif
#ifndef LAYER_PADDING
#define LAYER_PADDING 0
#endif
// What a number of the stream takes where it is laid aside.
#ifndef LAYER_STREAM
#define LAYER_STREAM 4
#endif
constexpr int groupRows = 64, layerGroups = 2, blockRows = layerGroups * groupRows, layerThreads = 384;
static_assert(layerThreads == 128 * (layerGroups + 1), "the groups, and one that brings weights");
// The weights of a pass are 18 pieces, which pass through a few slots of shared memory in the order
// of their use: two for attention's output matrix, and two for every 64 hidden columns, of the
// product that makes them and of the one that takes them.
constexpr int pieceBytes = 16384, pieces = 18, slots = LAYER_SLOTS;
constexpr int groupBytes = groupRows * layerWidth * 2, asideRow = layerWidth * LAYER_STREAM + LAYER_PADDING, aside = groupRows * asideRow;
// Shared memory: each group's matrices in bf16, what each thread lays aside, the slots, biases,
// barriers.
constexpr int atAside = layerGroups * LAYER_MATRICES * groupBytes, atSlots = atAside + layerGroups * aside;
constexpr int atBiases = atSlots + slots * pieceBytes;
constexpr int atBarriers = atBiases + LAYER_BIASES * 4, layerShared = atBarriers + 16 * slots;

// column_of is the column of a slot.
__device__ __forceinline__ int column_of(int slot) { return slot / 32 * 32 + slot % 8 / 2 * 8 + slot % 32 / 8 * 2 + slot % 2; }

extern __shared__ char room[] __attribute__((aligned(1024)));

// Pieces are the weights on their way: `place` says where piece i is once it has come, and `done`
// that this warp needs it no more. The first are on their way before the threads of a block have
// met, and a slot that is a piece's in every round is a constant.
template <int COUNT> struct Pieces {
  static constexpr bool same = COUNT % slots == 0;
  u32 at;    // of shared memory
  u32 round; // tiles of rows that this block has done

  __device__ __forceinline__ explicit Pieces(const char *weights) : at(shared_at(room)), round(0) {
    static_assert(slots <= pieces, "the first are the pass's own, and bring begins behind them");
    if (threadIdx_x == 128 * layerGroups) { // who brings the others
      init();
      seal();
      for (int s = 0; s < slots; s++) {
        barrier_expect(full(s), pieceBytes);
        bulk_copy(at + atSlots + s * pieceBytes, weights + (long)s * pieceBytes, pieceBytes, full(s));
      }
    }
    sync();
  }
  __device__ __forceinline__ void init() const {
    for (int s = 0; s < slots; s++) barrier_init(full(s), 1), barrier_init(empty(s), 4 * layerGroups);
    barrier_inited();
  }
  __device__ __forceinline__ u32 full(u32 s) const { return at + atBarriers + s % slots * 16; }
  __device__ __forceinline__ u32 empty(u32 s) const { return full(s) + 8; }
  __device__ __forceinline__ u32 place(int i) const {
    const u32 s = same ? i : round * COUNT + i;
    barrier_wait(full(s), (s / slots + (same ? round * (COUNT / slots) : 0)) % 2);
    return at + atSlots + s % slots * pieceBytes;
  }
  __device__ __forceinline__ void done(int i) const {
    if (threadIdx_x % 32 == 0) barrier_arrive(empty(same ? i : round * COUNT + i));
  }
  // bring is one thread's work: all pieces for all of the block's tiles. Those of the layer behind,
  // `other`, stand after the pass's own.
  __device__ __forceinline__ void bring(const char *weights, int tiles, const char *other) {
    if (threadIdx_x % 128) return;
    u32 s = 0;
    for (int tile = blockIdx_x; tile < tiles; tile += gridDim_x)
      for (int i = 0; i < COUNT; i++, s++) {
        if (s < slots) continue;
        barrier_wait(empty(s), (s / slots - 1) % 2);
        barrier_expect(full(s), pieceBytes);
        const char *from = i < pieces ? weights + (long)i * pieceBytes : other + (long)(i - pieces) * pieceBytes;
        bulk_copy(at + atSlots + s % slots * pieceBytes, from, pieceBytes, full(s));
      }
  }
};

// lay_aside keeps a warp's sums in shared memory while its registers have other uses: sixteen rows,
// 32 bytes apart so that eight of them are in different banks. aside_at is where a thread has the
// two numbers of block j of row g + 8h.
constexpr int warpAside = aside / 4; // bytes of a warp
__device__ __forceinline__ f2 *aside_at(int j, int h, int thread) {
  const int lane = thread % 32, g = lane / 4;
  return (f2 *)(room + atAside + thread / 32 * warpAside + (g + 8 * h) * asideRow + j * 32 + lane % 4 * 8);
}
__device__ __forceinline__ void lay_aside(const float (&v)[64]) {
  const int thread = apart((int)threadIdx_x); // places are worked out here: kept, they spill
#pragma unroll
  for (int h = 0; h < 2; h++)
#pragma unroll
    for (int j = 0; j < 16; j++) *aside_at(j, h, thread) = f2{v[4 * j + 2 * h], v[4 * j + 2 * h + 1]};
}

// stream_aside starts the copy of a warp's rows of the stream, or of its gradient, to where
// lay_aside would leave them; whole rows at a time. Between it and who reads stand wait_copies and
// syncwarp.
__device__ __forceinline__ void stream_aside(const float *x, int first, int m) {
  const int thread = apart((int)threadIdx_x), lane = thread % 32;
  const u32 to = shared_at(room + atAside + thread / 32 * warpAside);
#pragma unroll
  for (int r = 0; r < 16; r++)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to + r * asideRow + lane * 16),
        "l"(x + (long)(first + r < m ? first + r : m - 1) * layerWidth + 4 * lane) : "memory");
  commit_copies();
}

// stream_out stores what later kernels read: kept in the card's cache, it would only drive others
// out.
__device__ __forceinline__ void stream_out(Bf16 *to, u4 v) {
  asm volatile("st.global.cs.v4.b32 [%0], {%1,%2,%3,%4};" ::"l"(to), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}

// rows_ahead prefetches a group's rows of a matrix of `bytes` a row.
__device__ __forceinline__ void rows_ahead(const void *matrix, int bytes, int row, int m) {
  const int rows = m - row < groupRows ? m - row : groupRows;
  if (threadIdx_x % 128 == 0 && rows > 0) bulk_prefetch((const char *)matrix + (long)row * bytes, rows * bytes);
}

__device__ __forceinline__ float quad_sum(float v) {
  v += shfl_xor(v, 1);
  return v + shfl_xor(v, 2);
}

// Row is one of the two rows that a lane has a part of: row g + 8h of its warp's sixteen. Past the
// last row it repeats that one and is not written.
struct Row {
  int at;
  bool real;
  __device__ __forceinline__ Row(int first, int h, int m) {
    const int row = first + threadIdx_x % 32 / 4 + 8 * h;
    real = row < m, at = real ? row : m - 1;
  }
};

// Masks of the two dropouts of the residual stream's branches (layer_masks.cu): a word for each of
// a row's four lanes, bit 4b + j + 16e for element e of block 4b + j of eight columns.
struct Kept {
  u32 bits[2]; // of rows g and g+8
  float scale;

  __device__ __forceinline__ Kept(const u32 *masks, float scale, const Row (&row)[2]) : scale(scale) {
#pragma unroll
    for (int h = 0; h < 2; h++) bits[h] = masks ? masks[4l * row[h].at + threadIdx_x % 4] : 0xffffffff;
  }
  // add is x and what is left of element i of a lane's sums.
  __device__ __forceinline__ float add(float x, float v, int i) const {
    asm("{.reg .pred kept; .reg .b32 bit;\n\tand.b32 bit, %2, %3; setp.ne.u32 kept, bit, 0;\n\t@kept fma.rn.f32 %0, %1, %4, %0;}"
        : "+f"(x) : "f"(v), "r"(bits[i / 2 % 2]), "r"(1u << (i / 4 + 16 * (i % 2))), "f"(scale));
    return x;
  }
  // of is what is left of element i of a lane's sums.
  __device__ __forceinline__ float of(float v, int i) const { return bits[i / 2 % 2] & 1u << (i / 4 + 16 * (i % 2)) ? v * scale : 0; }
};

// A group's matrix of 64 rows and 128 columns of bf16 in shared memory: two tiles. A warp touches
// its own sixteen rows; products read them all. put writes the two elements that a lane holds of
// block j of eight columns.
__device__ __forceinline__ void put(char *matrix, int row, int j, float a, float b) {
  *(u32 *)(matrix + j / 8 * (groupBytes / 2) + tile_place(row, j % 8) + threadIdx_x % 4 * 4) = bf16x2(a, b);
}
__device__ __forceinline__ u32 get(const char *matrix, int row, int j) {
  return *(const u32 *)(matrix + j / 8 * (groupBytes / 2) + tile_place(row, j % 8) + threadIdx_x % 4 * 4);
}
// save_rows copies the warp's rows to memory, whole lines at a time. Between put and it stands
// syncwarp.
__device__ __forceinline__ void save_rows(Bf16 *to, const char *matrix, int first, int m) {
  const int thread = apart((int)threadIdx_x); // places are worked out here: kept, they spill
  const int lane = thread % 32, q = lane % 16, base = thread / 32 % 4 * 16;
#pragma unroll
  for (int i = 0; i < 8; i++) {
    const int r = 2 * i + lane / 16;
    const u4 v = *(const u4 *)(matrix + q / 8 * (groupBytes / 2) + tile_place(base + r, q % 8));
    if (first + r < m) stream_out(to + (long)(first + r) * layerWidth + 8 * q, v);
  }
}
// vector reads the left operand of 32 terms straight from memory, in slots' order, where it stands:
// the assembler puts loads of memory that nobody writes (.nc) right before the product that takes
// them, and so waits for memory at every product.
__device__ __forceinline__ void vector(u32 (&a)[8], const Bf16 *matrix, int ld, const Row (&row)[2], int term) {
#pragma unroll
  for (int h = 0; h < 2; h++) {
    u4 v;
    asm volatile("ld.global.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(matrix + (long)row[h].at * ld + term + 8 * (threadIdx_x % 4)));
    a[h] = v.x, a[2 + h] = v.y, a[4 + h] = v.z, a[6 + h] = v.w;
  }
}

// left_of makes a left operand of 32 terms of the columns that a lane holds of sums.
template <int N> __device__ __forceinline__ void left_of(u32 (&a)[8], const float (&v)[N], int from) {
#pragma unroll
  for (int i = 0; i < 8; i++) a[i] = bf16x2(v[from + 2 * i], v[from + 2 * i + 1]);
}

// hidden_row is what a lane holds of 32 hidden columns of row h: eight neighbours in memory.
__device__ __forceinline__ u4 hidden_row(const u32 (&a)[8], int h) { return u4{a[h], a[2 + h], a[4 + h], a[6 + h]}; }
