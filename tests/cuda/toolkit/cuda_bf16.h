/* cuda_bf16.h - simt.h has what CUDA declares here. */
#include "tests/cuda/simt.h"
