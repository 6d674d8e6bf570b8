// The rollout's gradient for up to 56 nodes, with products close to fp32, three tf32 products each.
#define PASSES 3
#define TILES 7
#include "grad.cuh"
