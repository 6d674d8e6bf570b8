// Matrix products by tensor cores, operands rounded to bf16. A module of its own, so that a run loads one precision.
#include "linear.cuh"

LINEAR(BF16)
