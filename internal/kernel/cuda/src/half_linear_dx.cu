// DX = DY·W with DY and W in bf16: fp32 results, bf16 results, and bf16 results on through a GELU's gradient.
#include "half_linear.cuh"
PRODUCTS(linear_dx_plain, PLAIN, true)
PRODUCTS(linear_dx_compact, COMPACT, true)
PRODUCTS(linear_dx_gelu, GELU_GRAD, true)
