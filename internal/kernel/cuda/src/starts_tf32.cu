// Rollouts of many starts with tf32 products.
#define PASSES 1
#include "starts.cuh"
