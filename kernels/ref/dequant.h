/* dequant.h - stored numbers to f32, a row at a time, and the two half-width floats both ways.
 *
 * These define what every storage type means: faster kernels are compared with them. The results
 * are those of the Python package `gguf`, bit for bit; only the sign and payload of a NaN that
 * arithmetic makes are the machine's. Stateless, safe from any thread; src may lie at any byte. */
#ifndef WEFT_KERNELS_REF_DEQUANT_H
#define WEFT_KERNELS_REF_DEQUANT_H

#include "runtime/base/dtype.h"

/* Whether dequant_row takes this type: every weight type but MXFP4_HF, which is stored in two. */
bool dequant_has(dtype t);

/* dst[n] from the row that begins at src. dequant_has(t), and n is whole blocks of t. */
void dequant_row(dtype t, const void *src, float *dst, int64_t n);

/* The same for MXFP4_HF: blocks[n / 2], two numbers a byte, scales[n / 32]; n is a multiple of 32.
 * Here the low half of a byte comes right before its high half, unlike in GGUF's MXFP4. */
void dequant_row_mxfp4_hf(const void *blocks, const void *scales, float *dst, int64_t n);

/* Exact; a NaN keeps its payload and stays signalling. */
float f16_to_f32(uint16_t h);
float bf16_to_f32(uint16_t h);
/* Rounded to nearest, ties to even; too large becomes infinite; a NaN becomes quiet. */
uint16_t f32_to_f16(float x);
uint16_t f32_to_bf16(float x);

#endif
