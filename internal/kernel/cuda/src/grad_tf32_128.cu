// The rollout's gradient for up to 128 nodes, with tf32 products.
#define PASSES 1
#define TILES 16
#include "grad.cuh"
