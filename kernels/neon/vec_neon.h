/* vec_neon.h - functions of four floats. */
#ifndef WEFT_KERNELS_NEON_VEC_NEON_H
#define WEFT_KERNELS_NEON_VEC_NEON_H

#include "kernels/neon/neon.h"

/* e^x of x <= 0, within 2 units of 2^-24; below -87, where it is less than 2^-125, it is 0, and for a NaN too. As
 * vec_exp of c/vec_math.h, fused, and without what overflow and subnormal results need. */
NEON_INLINE float32x4_t neon_exp_below(float32x4_t x)
{
    const float32x4_t magic = vdupq_n_f32(0x1.8p23f);
    float32x4_t biased = vfmaq_n_f32(magic, x, 0x1.715476p0f);
    float32x4_t n = vsubq_f32(biased, magic);
    float32x4_t r = vfmsq_n_f32(x, n, 0x1.62e4p-1f); /* ln 2 in two parts */
    r = vfmsq_n_f32(r, n, 0x1.7f7d1cp-20f);
    float32x4_t p = vdupq_n_f32(1.9875691500e-4f);
    p = vfmaq_f32(vdupq_n_f32(1.3981999507e-3f), p, r);
    p = vfmaq_f32(vdupq_n_f32(8.3334519073e-3f), p, r);
    p = vfmaq_f32(vdupq_n_f32(4.1665795894e-2f), p, r);
    p = vfmaq_f32(vdupq_n_f32(1.6666665459e-1f), p, r);
    p = vfmaq_f32(vdupq_n_f32(5.0000001201e-1f), p, r);
    p = vfmaq_f32(r, p, vmulq_f32(r, r));
    p = vaddq_f32(p, vdupq_n_f32(1));
    int32x4_t whole = vshlq_n_s32(vreinterpretq_s32_f32(biased), 23);
    p = vreinterpretq_f32_s32(vaddq_s32(vreinterpretq_s32_f32(p), whole));
    uint32x4_t enough = vcgeq_f32(x, vdupq_n_f32(-87));
    return vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(p), enough));
}

#endif
