// Lays the matrices of instances out in fp16 as stream.cuh reads them, and as rows.
#include "stream.cuh"

// stream_pack, for block blockIdx_y of nodes of instance blockIdx_x: matrix first + blockIdx_z of
// stream.cuh's list. An instance has as many matrices as the grid is deep. Nodes past the last are
// zeros. Pointer keys are multiplied by `point`, and queries, those of nodes plus the graph's, by
// `ask`.
KERNEL __launch_bounds__(256) stream_pack(u4 *packed, const float *proj, const float *pointer, const float *graph, int n, int stride, int blocks, int first,
                                          int matrices, float point, float ask) {
  const int i = blockIdx_x, block = blockIdx_y, matrix = first + blockIdx_z;
  const bool pointers = matrix == POINTERS_ACROSS || matrix == POINTERS_DOWN || matrix == POINTER_ROWS;
  const int column = matrix == KEYS_ACROSS || matrix == KEY_ROWS ? WIDTH : matrix == VALUES_DOWN || matrix == VALUE_ROWS ? 2 * WIDTH : 0;
  const float *src = pointers ? pointer + (u64)i * n * WIDTH : proj + (u64)i * n * stride + column;
  const int line = pointers ? WIDTH : stride;
  const bool query = matrix == QUERIES;
  const float by = pointers ? point : query ? ask : 1.0f;
  graph += (u64)i * WIDTH;
  auto at = [&](int node, int c) { return node < n ? (src[(u64)node * line + c] + (query ? graph[c] : 0.0f)) * by : 0.0f; };
  packed += (((u64)i * matrices + blockIdx_z) * blocks + block) * (PACKED_BLOCK / 16);
  for (int k = threadIdx_x; k < PACKED_BLOCK / 16; k += 256) {
    u4 v;
    if (matrix >= QUERIES) { // rows
      const int node = BLOCK * block + k / (WIDTH / 8), c = 8 * (k % (WIDTH / 8));
      v = u4{half2(at(node, c), at(node, c + 1)), half2(at(node, c + 2), at(node, c + 3)), half2(at(node, c + 4), at(node, c + 5)),
             half2(at(node, c + 6), at(node, c + 7))};
    } else {
      const int lane = k & 31, g = lane >> 2, t2 = 2 * (lane & 3), c = 16 * (k >> 5 & (CHUNKS - 1)), node = BLOCK * block + 16 * (k / (32 * CHUNKS));
      if (matrix == VALUES_DOWN || matrix == POINTERS_DOWN)
        v = u4{half2(at(node + t2, c + g), at(node + t2 + 1, c + g)), half2(at(node + 8 + t2, c + g), at(node + 9 + t2, c + g)),
               half2(at(node + t2, c + 8 + g), at(node + t2 + 1, c + 8 + g)), half2(at(node + 8 + t2, c + 8 + g), at(node + 9 + t2, c + 8 + g))};
      else
        v = u4{half2(at(node + g, c + t2), at(node + g, c + t2 + 1)), half2(at(node + g, c + 8 + t2), at(node + g, c + 9 + t2)),
               half2(at(node + 8 + g, c + t2), at(node + 8 + g, c + t2 + 1)), half2(at(node + 8 + g, c + 8 + t2), at(node + 8 + g, c + 9 + t2))};
    }
    packed[k] = v;
  }
}
