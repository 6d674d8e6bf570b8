// The rollout's gradient for up to 16 nodes, with products close to fp32, three tf32 products each.
#define PASSES 3
#define TILES 2
#include "grad.cuh"
