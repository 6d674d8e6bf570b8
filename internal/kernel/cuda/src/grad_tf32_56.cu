// The rollout's gradient for up to 56 nodes, with tf32 products.
#define PASSES 1
#define TILES 7
#include "grad.cuh"
