/* quant.h - f32 to stored numbers, a row at a time: what kernels/ref/dequant.h reads back.
 *
 * Q8_0, Q4_0, Q4_1, Q5_0 and Q5_1 are those of the Python package `gguf`, byte for byte. Q4_K, Q5_K and Q6_K
 * look for the scales that make the squared error smallest. A NaN or an infinity makes its block
 * non-finite, so that it is seen and not lost. Stateless, safe from any thread; dst may lie at any byte. */
#ifndef WEFT_RUNTIME_QUANT_QUANT_H
#define WEFT_RUNTIME_QUANT_QUANT_H

#include "runtime/base/dtype.h"

/* Whether quant_row makes this type: F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K. */
bool quant_has(dtype t);

/* The row at dst from src[n]. quant_has(t), and n is whole blocks of t. importance[n] weighs the squared
 * error of each column where the type searches (the K types); NULL: all alike. */
void quant_row(dtype t, const float *src, const float *importance, void *dst, int64_t n);

#endif
