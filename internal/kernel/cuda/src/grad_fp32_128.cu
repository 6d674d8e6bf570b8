// The rollout's gradient for up to 128 nodes, with products close to fp32, three tf32 products each.
#define PASSES 3
#define TILES 16
#include "grad.cuh"
