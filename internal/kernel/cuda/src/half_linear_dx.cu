// DX = DY·W with DY and W in bf16: fp32 results, bf16 results, and bf16 results on through a GELU's gradient.
#include "half_linear_ring.cuh"
#include "half_linear_short.cuh"
PLAIN_PRODUCTS(linear_dx_plain, true)
LONG_PRODUCTS(linear_dx_plain, PLAIN, true)
SHORT_PRODUCTS(linear_dx_compact, COMPACT, true)
LONG_PRODUCTS(linear_dx_compact, COMPACT, true)
SHORT_PRODUCTS(linear_dx_gelu, GELU_GRAD, true)
LONG_PRODUCTS(linear_dx_gelu, GELU_GRAD, true)
