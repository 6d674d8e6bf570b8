// The rollout's gradient for up to 16 nodes, with tf32 products.
#define PASSES 1
#define TILES 2
#include "grad.cuh"
