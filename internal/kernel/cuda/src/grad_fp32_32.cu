// The rollout's gradient for up to 32 nodes, with products close to fp32, three tf32 products each.
#define PASSES 3
#define TILES 4
#include "grad.cuh"
