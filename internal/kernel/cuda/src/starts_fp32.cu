// Rollouts of many starts with products close to fp32: three tf32 products each.
#define PASSES 3
#include "starts.cuh"
