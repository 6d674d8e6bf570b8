// Matrix products by fused multiply-adds, in fp32 throughout. A module of its own, so that a run loads one precision.
#include "linear.cuh"

LINEAR(FP32)
