// The rollout's gradient for up to 104 nodes, with tf32 products.
#define PASSES 1
#define TILES 13
#include "grad.cuh"
