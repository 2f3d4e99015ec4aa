/* cuda_runtime.h - simt.h has what CUDA declares here. */
#include "tests/cuda/simt.h"
