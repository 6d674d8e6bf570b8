// Products of bf16 matrices: fp32 results with residual and dropout, bf16 results, and bf16 results
// through a GELU. Without DX the module has Y = X·Wᵀ, with it DX = DY·W, whose GELU is the way back
// through one (scripts/ptx).
#include "bf16_linear_ring.cuh"
#include "bf16_linear_short.cuh"

#ifndef DX
PLAIN_PRODUCTS(linear_plain, false)
LONG_PRODUCTS(linear_plain, PLAIN, false)
SHORT_PRODUCTS(linear_compact, COMPACT, false)
LONG_PRODUCTS(linear_compact, COMPACT, false)
SHORT_PRODUCTS(linear_gelu, GELU, false)
LONG_PRODUCTS(linear_gelu, GELU, false)
#else
PLAIN_PRODUCTS(linear_dx_plain, true)
LONG_PRODUCTS(linear_dx_plain, PLAIN, true)
SHORT_PRODUCTS(linear_dx_compact, COMPACT, true)
LONG_PRODUCTS(linear_dx_compact, COMPACT, true)
SHORT_PRODUCTS(linear_dx_gelu, GELU_GRAD, true)
LONG_PRODUCTS(linear_dx_gelu, GELU_GRAD, true)
#endif
