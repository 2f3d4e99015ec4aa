/* quant_impl.h - the row functions behind quant.c's table, and what they share. */
#ifndef WEFT_RUNTIME_QUANT_QUANT_IMPL_H
#define WEFT_RUNTIME_QUANT_QUANT_IMPL_H

#include "kernels/ref/dequant.h"
#include "runtime/quant/quant.h"

typedef void quant_fn(const float *src, const float *importance, uint8_t *dst, int64_t n);

quant_fn quant_q4_0, quant_q4_1, quant_q5_0, quant_q5_1, quant_q8_0;
quant_fn quant_q4_k, quant_q5_k, quant_q6_k;

static inline void store_u16(uint8_t *p, uint16_t x)
{
    p[0] = (uint8_t)x;
    p[1] = (uint8_t)(x >> 8);
}

/* Returns what a reader will see. */
static inline float store_f16(uint8_t *p, float x)
{
    uint16_t h = f32_to_f16(x);
    store_u16(p, h);
    return f16_to_f32(h);
}

/* x without its fraction, 0 to max; a NaN is 0, and no float is too large to convert. */
static inline int code_of(float x, int max)
{
    return !(x > 0) ? 0 : x < (float)max ? (int)x : max;
}

#endif
