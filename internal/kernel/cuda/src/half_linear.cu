// Y = X·Wᵀ with X and W in bf16: fp32 results with residual and dropout, bf16 results, and bf16 results through a GELU.
#include "half_linear.cuh"
PRODUCTS(linear_plain, PLAIN, false)
PRODUCTS(linear_compact, COMPACT, false)
PRODUCTS(linear_gelu, GELU, false)
