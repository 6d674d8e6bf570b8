// Y = X·Wᵀ with X and W in bf16: fp32 results with residual and dropout, bf16 results, and bf16 results through a GELU.
#include "half_linear_ring.cuh"
#include "half_linear_short.cuh"
PLAIN_PRODUCTS(linear_plain, false)
LONG_PRODUCTS(linear_plain, PLAIN, false)
SHORT_PRODUCTS(linear_compact, COMPACT, false)
LONG_PRODUCTS(linear_compact, COMPACT, false)
SHORT_PRODUCTS(linear_gelu, GELU, false)
LONG_PRODUCTS(linear_gelu, GELU, false)
