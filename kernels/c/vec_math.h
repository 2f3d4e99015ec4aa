/* vec_math.h - exp, tanh, sigmoid and their kin of one float, without branches or calls, so that a loop
 * over them becomes vector code.
 *
 * Relative errors in units of 2^-24 (check_map.c measures them): exp, sigmoid, tanh, softplus and silu 4.
 * The gelus, where rounding the argument of an exponential costs more the farther out it is: gelu_erf
 * 2 + 2 (1 + |x|)^2, gelu_tanh 2 + 2 (1 + |x|)^3, gelu_quick 3 + 3 (1 + |x|). Near 0 an error of
 * (2 + |x|) 2^-149 comes on top. NaN gives NaN, and infinities what the reference has for them. */
#ifndef WEFT_KERNELS_C_VEC_MATH_H
#define WEFT_KERNELS_C_VEC_MATH_H

#include <stdint.h>
#include <string.h>

static inline uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline float vec_abs(float x)
{
    return float_of(bits_of(x) & 0x7fffffffu);
}

/* |x| with the sign of s. */
static inline float vec_sign(float x, float s)
{
    return float_of((bits_of(x) & 0x7fffffffu) | (bits_of(s) & 0x80000000u));
}

/* 2^n e^r with n whole and |r| <= ln 2 / 2. A number near 1.5 * 2^23 has units of 1, so that adding
 * and taking it away rounds, and leaves n in its low bits. 2^n is applied in two halves, each of them a
 * normal number even where the result is subnormal. The polynomial is Cephes' expf.
 *
 * The argument is held between -104 (e^-104 < 2^-150) and 89 (e^89 > 2^128) by its bits, where floats of
 * one sign are in order as integers: comparing floats, for which a NaN is neither more nor less,
 * costs GCC twice as many instructions. */
static inline float vec_exp(float x)
{
    const float magic = 0x1.8p23f;
    const int32_t high_bits = 0x42b20000;  /* 89 */
    const uint32_t low_bits = 0xc2d00000u; /* -104 */
    int32_t below = (int32_t)bits_of(x);
    below = below < high_bits ? below : high_bits;
    uint32_t held = (uint32_t)below;
    held = held < low_bits ? held : low_bits;
    float a = float_of(held);
    float biased = a * 0x1.715476p0f + magic;
    float n = biased - magic;
    float r = a - n * 0x1.63p-1f; /* 9 bits of ln 2, so that the product is exact */
    r = r - n * -0x1.bd0106p-13f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r;
    p = p + 1.0f;
    int32_t whole = (int32_t)(bits_of(biased) - bits_of(magic));
    uint32_t low = (uint32_t)(whole >> 1), high = (uint32_t)whole - low;
    p = p * float_of((low + 127u) << 23) * float_of((high + 127u) << 23);
    return x == x ? p : x;
}

/* From e^-|x|, which neither overflows nor leaves nothing of a small result. */
static inline float vec_sigmoid(float x)
{
    float e = vec_exp(-vec_abs(x));
    return (x < 0 ? e : 1.0f) / (1.0f + e);
}

/* Near 0 Cephes' polynomial in x^2, farther out 1 - 2 / (e^2|x| + 1). */
static inline float vec_tanh(float x)
{
    float a = vec_abs(x), z = x * x;
    float p = -5.70498872745e-3f;
    p = p * z + 2.06390887954e-2f;
    p = p * z + -5.37397155531e-2f;
    p = p * z + 1.33314422036e-1f;
    p = p * z + -3.33332819422e-1f;
    float near_0 = p * z * x + x;
    float far = vec_sign(1.0f - 2.0f / (vec_exp(a + a) + 1.0f), x);
    return a < 0.625f ? near_0 : far;
}

/* log(1 + e) for 0 <= e <= 1: 2 atanh(s) with s = e / (2 + e) <= 1/3, by its series. */
static inline float vec_log1p(float e)
{
    float s = e / (2.0f + e), z = s * s;
    float p = 1.0f / 15;
    p = p * z + 1.0f / 13;
    p = p * z + 1.0f / 11;
    p = p * z + 1.0f / 9;
    p = p * z + 1.0f / 7;
    p = p * z + 1.0f / 5;
    p = p * z + 1.0f / 3;
    float s2 = s + s;
    return p * z * s2 + s2;
}

static inline float vec_softplus(float x)
{
    return (x > 0 ? x : 0) + vec_log1p(vec_exp(-vec_abs(x)));
}

static inline float vec_silu(float x)
{
    return x * vec_sigmoid(x);
}

static inline float vec_gelu_quick(float x)
{
    return x * vec_sigmoid(1.702f * x);
}

/* (1 + tanh u) / 2 is the sigmoid of 2u. */
static inline float vec_gelu_tanh(float x)
{
    float u = 1.5957691216f * (x + 0.044715f * x * x * x); /* 2 sqrt(2 / pi) (..) */
    return x * vec_sigmoid(u);
}

/* erfc(z) for z >= 0 with a relative error below 1.2e-7: a polynomial in 1 / (1 + z / 2) as exponent
 * (Press et al., Numerical Recipes, section 6.2). */
static inline float vec_erfc(float z)
{
    float t = 1.0f / (1.0f + 0.5f * z);
    float p = 0.17087277f;
    p = p * t + -0.82215223f;
    p = p * t + 1.48851587f;
    p = p * t + -1.13520398f;
    p = p * t + 0.27886807f;
    p = p * t + -0.18628806f;
    p = p * t + 0.09678418f;
    p = p * t + 0.37409196f;
    p = p * t + 1.00002368f;
    p = p * t + -1.26551223f;
    return t * vec_exp(p - z * z);
}

/* erf(z) for |z| < 1, Cephes' erff. */
static inline float vec_erf_small(float z)
{
    float y = z * z;
    float p = 7.853861353153693e-5f;
    p = p * y + -8.010193625184903e-4f;
    p = p * y + 5.188327685732524e-3f;
    p = p * y + -2.685381193529856e-2f;
    p = p * y + 1.128358514861418e-1f;
    p = p * y + -3.761262582423300e-1f;
    p = p * y + 1.128379165726710f;
    return p * z;
}

/* x/2 (1 + erf(x / sqrt 2)); below, where that is near 0, from erfc. */
static inline float vec_gelu_erf(float x)
{
    float z = x * 0.70710678f;
    float half = 0.5f * vec_erfc(vec_abs(z));
    float far = x < 0 ? half : 1.0f - half;
    float near_0 = 0.5f + 0.5f * vec_erf_small(z);
    return x * (vec_abs(z) < 0.5f ? near_0 : far);
}

#endif
