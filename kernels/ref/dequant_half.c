/* dequant_half.c - f32, f16 and bf16, worked out on the bits so that every machine agrees. */
#include "kernels/ref/dequant_impl.h"

static float f32_from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint32_t f32_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

float f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h >> 15) << 31;
    uint32_t exponent = h >> 10 & 31, fraction = h & 0x3ff;
    if (exponent == 31) /* infinite, or not a number */
        return f32_from_bits(sign | 0xffu << 23 | fraction << 13);
    if (exponent == 0) /* zero or subnormal: a count of 2^-24 */
        return f32_from_bits(sign | f32_bits((float)fraction * 0x1p-24f));
    return f32_from_bits(sign | (exponent + 127 - 15) << 23 | fraction << 13);
}

float bf16_to_f32(uint16_t h)
{
    return f32_from_bits((uint32_t)h << 16);
}

/* bits >> shift, rounded to nearest, ties to even. */
static uint32_t round_shift(uint32_t bits, uint32_t shift)
{
    uint32_t odd = bits >> shift & 1;
    return (bits + (1u << (shift - 1)) - 1 + odd) >> shift;
}

uint16_t f32_to_f16(float x)
{
    uint32_t bits = f32_bits(x), magnitude = bits & 0x7fffffffu;
    uint32_t sign = bits >> 16 & 0x8000;
    uint32_t exponent = magnitude >> 23;
    if (magnitude > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
    if (exponent >= 127 + 16) /* 2^16 and up */
        return (uint16_t)(sign | 0x7c00);
    if (exponent >= 127 - 14) /* a carry out of the fraction moves the exponent, up to infinity */
        return (uint16_t)(sign | (round_shift(magnitude, 13) - ((127 - 15) << 10)));
    if (exponent < 127 - 25) /* below half of the smallest subnormal */
        return (uint16_t)sign;
    uint32_t fraction = (magnitude & 0x7fffff) | 0x800000;
    return (uint16_t)(sign | round_shift(fraction, 127 - 1 - exponent));
}

uint16_t f32_to_bf16(float x)
{
    uint32_t bits = f32_bits(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)round_shift(bits, 16);
}

void dequant_f32(const uint8_t *src, float *dst, int64_t n)
{
    memcpy(dst, src, (size_t)n * sizeof *dst);
}

void dequant_f16(const uint8_t *src, float *dst, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        dst[i] = load_f16(src + 2 * i);
}

void dequant_bf16(const uint8_t *src, float *dst, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        dst[i] = bf16_to_f32(load_u16(src + 2 * i));
}
