// The rollout's gradient for up to 32 nodes, with tf32 products.
#define PASSES 1
#define TILES 4
#include "grad.cuh"
