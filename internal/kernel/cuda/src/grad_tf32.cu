// The rollout's gradient with tf32 products.
#define PASSES 1
#include "grad.cuh"
