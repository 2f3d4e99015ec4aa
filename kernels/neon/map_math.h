/* map_math.h - exp, tanh, sigmoid and their kin of four floats: the functions of c/vec_math.h, fused, and within
 * the errors given there.
 *
 * What bounds a loop over one of these is how many elements are under way at once, so chains are short:
 * polynomials are summed in pairs, and nothing waits for what is not needed. A NaN goes through fmax, fmin and
 * the products by itself. */
#ifndef WEFT_KERNELS_NEON_MAP_MATH_H
#define WEFT_KERNELS_NEON_MAP_MATH_H

#include "kernels/neon/neon.h"

NEON_INLINE float32x4_t neon_f32(float x)
{
    return vdupq_n_f32(x);
}

/* a + b c */
NEON_INLINE float32x4_t neon_fma(float32x4_t a, float32x4_t b, float32x4_t c)
{
    return vfmaq_f32(a, b, c);
}

/* x with the sign of s. */
NEON_INLINE float32x4_t neon_signed(float32x4_t x, float32x4_t s)
{
    return vbslq_f32(vdupq_n_u32(0x80000000u), s, x);
}

/* -|x| */
NEON_INLINE float32x4_t neon_below(float32x4_t x)
{
    return vreinterpretq_f32_u32(vorrq_u32(vreinterpretq_u32_f32(x), vdupq_n_u32(0x80000000u)));
}

/* 2^n e^r with n whole and |r| <= ln 2 / 2, of x between -104 (e^-104 < 2^-150) and 89 (e^89 > 2^128). A number near
 * 1.5 * 2^23 has units of 1, so that adding and taking it away rounds, and leaves n in its low bits. 2^n is applied
 * in two halves, each of them a normal number even where the result is subnormal. */
NEON_INLINE float32x4_t neon_exp_held(float32x4_t x)
{
    const float32x4_t magic = neon_f32(0x1.8p23f);
    float32x4_t biased = vfmaq_n_f32(magic, x, 0x1.715476p0f);
    float32x4_t n = vsubq_f32(biased, magic);
    /* The bits of magic do not show below: half of them, too, are shifted out. */
    int32x4_t whole = vreinterpretq_s32_f32(biased), low = vshrq_n_s32(whole, 1);
    uint32x4_t halves[2] = {vreinterpretq_u32_s32(low),
                            vreinterpretq_u32_s32(vsubq_s32(whole, low))};
    const uint32x4_t one = vreinterpretq_u32_f32(neon_f32(1));
    float32x4_t by_low = vreinterpretq_f32_u32(vaddq_u32(vshlq_n_u32(halves[0], 23), one));
    float32x4_t by_high = vreinterpretq_f32_u32(vaddq_u32(vshlq_n_u32(halves[1], 23), one));
    float32x4_t r = vfmsq_n_f32(x, n, 0x1.62e4p-1f); /* ln 2 in two parts */
    r = vfmsq_n_f32(r, n, 0x1.7f7d1cp-20f);
    float32x4_t z = vmulq_f32(r, r);
    float32x4_t a = neon_fma(neon_f32(5.0000001201e-1f), r, neon_f32(1.6666665459e-1f));
    float32x4_t b = neon_fma(neon_f32(4.1665795894e-2f), r, neon_f32(8.3334519073e-3f));
    float32x4_t c = neon_fma(neon_f32(1.3981999507e-3f), r, neon_f32(1.9875691500e-4f));
    float32x4_t p = neon_fma(r, z, neon_fma(a, z, neon_fma(b, z, c)));
    return vmulq_f32(neon_fma(by_low, by_low, p), by_high);
}

NEON_INLINE float32x4_t neon_exp(float32x4_t x)
{
    return neon_exp_held(vmaxq_f32(vminq_f32(x, neon_f32(89)), neon_f32(-104)));
}

/* e^-|x| */
NEON_INLINE float32x4_t neon_exp_minus(float32x4_t x)
{
    return neon_exp_held(vmaxq_f32(neon_below(x), neon_f32(-104)));
}

/* From e^-|x|, which neither overflows nor leaves nothing of a small result. */
NEON_INLINE float32x4_t neon_sigmoid(float32x4_t x)
{
    float32x4_t e = neon_exp_minus(x);
    float32x4_t over = vbslq_f32(vcltzq_f32(x), e, neon_f32(1));
    return vdivq_f32(over, vaddq_f32(neon_f32(1), e));
}

NEON_INLINE float32x4_t neon_silu(float32x4_t x)
{
    return vmulq_f32(x, neon_sigmoid(x));
}

NEON_INLINE float32x4_t neon_gelu_quick(float32x4_t x)
{
    return vmulq_f32(x, neon_sigmoid(vmulq_n_f32(x, 1.702f)));
}

/* (1 + tanh u) / 2 is the sigmoid of 2u. */
NEON_INLINE float32x4_t neon_gelu_tanh(float32x4_t x)
{
    float32x4_t cube = vmulq_f32(vmulq_f32(x, x), x);
    float32x4_t u = vmulq_n_f32(vfmaq_n_f32(x, cube, 0.044715f), 1.5957691216f);
    return vmulq_f32(x, neon_sigmoid(u));
}

/* Near 0 Cephes' polynomial in x^2, farther out 1 - 2 / (e^2|x| + 1). */
NEON_INLINE float32x4_t neon_tanh(float32x4_t x)
{
    float32x4_t size = vabsq_f32(x), z = vmulq_f32(x, x), zz = vmulq_f32(z, z);
    float32x4_t a = neon_fma(neon_f32(-3.33332819422e-1f), z, neon_f32(1.33314422036e-1f));
    float32x4_t b = neon_fma(neon_f32(-5.37397155531e-2f), z, neon_f32(2.06390887954e-2f));
    float32x4_t p = neon_fma(a, zz, vfmaq_n_f32(b, zz, -5.70498872745e-3f));
    float32x4_t near_0 = neon_fma(x, vmulq_f32(p, z), x);
    float32x4_t e = neon_exp_held(vminq_f32(vaddq_f32(size, size), neon_f32(89)));
    float32x4_t far = vsubq_f32(neon_f32(1), vdivq_f32(neon_f32(2), vaddq_f32(e, neon_f32(1))));
    return vbslq_f32(vcltq_f32(size, neon_f32(0.625f)), near_0, neon_signed(far, x));
}

/* log(1 + e) for 0 <= e <= 1: 2 atanh(s) with s = e / (2 + e) <= 1/3, by its series. */
NEON_INLINE float32x4_t neon_log1p(float32x4_t e)
{
    float32x4_t s = vdivq_f32(e, vaddq_f32(neon_f32(2), e)), z = vmulq_f32(s, s);
    float32x4_t zz = vmulq_f32(z, z), s2 = vaddq_f32(s, s);
    float32x4_t a = neon_fma(neon_f32(1.0f / 3), z, neon_f32(1.0f / 5));
    float32x4_t b = neon_fma(neon_f32(1.0f / 7), z, neon_f32(1.0f / 9));
    float32x4_t c = neon_fma(neon_f32(1.0f / 11), z, neon_f32(1.0f / 13));
    c = vfmaq_n_f32(c, zz, 1.0f / 15);
    float32x4_t p = neon_fma(a, zz, neon_fma(b, zz, c));
    return neon_fma(s2, vmulq_f32(p, z), s2);
}

NEON_INLINE float32x4_t neon_softplus(float32x4_t x)
{
    return vaddq_f32(vmaxq_f32(x, neon_f32(0)), neon_log1p(neon_exp_minus(x)));
}

/* erfc(z) for z >= 0 with a relative error below 1.2e-7: a polynomial in 1 / (1 + z / 2) as exponent
 * (Press et al., Numerical Recipes, section 6.2). */
NEON_INLINE float32x4_t neon_erfc(float32x4_t z)
{
    float32x4_t t = vdivq_f32(neon_f32(1), vfmaq_n_f32(neon_f32(1), z, 0.5f));
    float32x4_t t2 = vmulq_f32(t, t), t4 = vmulq_f32(t2, t2);
    float32x4_t a = neon_fma(neon_f32(-1.26551223f), t, neon_f32(1.00002368f));
    float32x4_t b = neon_fma(neon_f32(0.37409196f), t, neon_f32(0.09678418f));
    float32x4_t c = neon_fma(neon_f32(-0.18628806f), t, neon_f32(0.27886807f));
    float32x4_t d = neon_fma(neon_f32(-1.13520398f), t, neon_f32(1.48851587f));
    float32x4_t e = neon_fma(neon_f32(-0.82215223f), t, neon_f32(0.17087277f));
    float32x4_t far = neon_fma(neon_fma(c, t2, d), t4, e);
    float32x4_t p = neon_fma(neon_fma(a, t2, b), t4, far);
    return vmulq_f32(t, neon_exp(vfmsq_f32(p, z, z)));
}

/* erf(z) for |z| < 1, Cephes' erff. */
NEON_INLINE float32x4_t neon_erf_small(float32x4_t z)
{
    float32x4_t y = vmulq_f32(z, z), yy = vmulq_f32(y, y);
    float32x4_t a = neon_fma(neon_f32(1.128379165726710f), y, neon_f32(-3.761262582423300e-1f));
    float32x4_t b = neon_fma(neon_f32(1.128358514861418e-1f), y, neon_f32(-2.685381193529856e-2f));
    float32x4_t c = neon_fma(neon_f32(5.188327685732524e-3f), y, neon_f32(-8.010193625184903e-4f));
    c = vfmaq_n_f32(c, yy, 7.853861353153693e-5f);
    return vmulq_f32(neon_fma(a, yy, neon_fma(b, yy, c)), z);
}

/* x/2 (1 + erf(x / sqrt 2)); below, where that is near 0, from erfc. */
NEON_INLINE float32x4_t neon_gelu_erf(float32x4_t x)
{
    const float32x4_t one_half = neon_f32(0.5f);
    float32x4_t z = vmulq_n_f32(x, 0.70710678f), size = vabsq_f32(z);
    float32x4_t half = vmulq_f32(one_half, neon_erfc(size));
    float32x4_t far = vbslq_f32(vcltzq_f32(x), half, vsubq_f32(neon_f32(1), half));
    float32x4_t near_0 = neon_fma(one_half, one_half, neon_erf_small(z));
    return vmulq_f32(x, vbslq_f32(vcltq_f32(size, neon_f32(0.5f)), near_0, far));
}

#endif
