/* dequant_impl.h - the row functions behind dequant.c's table, and how they read a block. */
#ifndef WEFT_KERNELS_REF_DEQUANT_IMPL_H
#define WEFT_KERNELS_REF_DEQUANT_IMPL_H

#include "kernels/ref/dequant.h"

typedef void dequant_fn(const uint8_t *src, float *dst, int64_t n);

dequant_fn dequant_f32, dequant_f16, dequant_bf16;
dequant_fn dequant_q4_0, dequant_q4_1, dequant_q5_0, dequant_q5_1, dequant_q8_0;
dequant_fn dequant_q2_k, dequant_q3_k, dequant_q4_k, dequant_q5_k, dequant_q6_k;
dequant_fn dequant_iq4_nl, dequant_iq4_xs, dequant_mxfp4;

/* The 16 values that a 4-bit code of IQ4_NL and IQ4_XS stands for. */
extern const int8_t dequant_iq4_values[16];

static inline uint16_t load_u16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}
static inline float load_f16(const uint8_t *p)
{
    return f16_to_f32(load_u16(p));
}

#endif
