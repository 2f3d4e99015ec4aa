/* vec_neon.h - functions of four floats. */
#ifndef WEFT_KERNELS_NEON_VEC_NEON_H
#define WEFT_KERNELS_NEON_VEC_NEON_H

#include "kernels/neon/neon.h"

/* 2^x of x <= 0, within 3 units of 2^-24; below -126 it is 2^-126, for a NaN anything. A number near 1.5 * 2^23 has
 * units of 1, so that adding and taking it away rounds, and leaves the whole part in its low bits. The
 * polynomial has the least relative error of its degree on [-1/2, 1/2], 1.5 units, and is 1 at 0. */
NEON_INLINE float32x4_t neon_exp2_below(float32x4_t x)
{
    const float32x4_t magic = vdupq_n_f32(0x1.8p23f);
    x = vmaxq_f32(x, vdupq_n_f32(-126));
    float32x4_t biased = vaddq_f32(x, magic);
    float32x4_t r = vsubq_f32(x, vsubq_f32(biased, magic));
    float32x4_t p = vdupq_n_f32(0x1.5bba12p-10f);
    p = vfmaq_f32(vdupq_n_f32(0x1.3cea88p-7f), p, r);
    p = vfmaq_f32(vdupq_n_f32(0x1.c6b752p-5f), p, r);
    p = vfmaq_f32(vdupq_n_f32(0x1.ebf9bcp-3f), p, r);
    p = vfmaq_f32(vdupq_n_f32(0x1.62e42ap-1f), p, r);
    p = vfmaq_f32(vdupq_n_f32(1), p, r);
    uint32x4_t whole = vshlq_n_u32(vreinterpretq_u32_f32(biased), 23);
    return vreinterpretq_f32_u32(vaddq_u32(vreinterpretq_u32_f32(p), whole));
}

#endif
