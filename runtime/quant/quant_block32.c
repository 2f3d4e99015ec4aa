/* quant_block32.c - the types with 32 numbers to a block and one scale.
 *
 * The results are those of the Python package `gguf`, so every step rounds where it rounds: the scale is
 * used in f32 and stored in f16, codes are cut, not rounded, after half a step was added. */
#include "runtime/quant/quant_impl.h"
#include <math.h>

enum { BLOCK = 32 };

/* The number of largest magnitude with its sign; a NaN wins over all. */
static float signed_max(const float *x)
{
    float max = x[0];
    for (int j = 1; j < BLOCK && !isnan(max); j++)
        if (isnan(x[j]) || fabsf(x[j]) > fabsf(max))
            max = x[j];
    return max;
}

static void range_of(const float *x, float *out_min, float *out_max)
{
    float min = x[0], max = x[0];
    for (int j = 0; j < BLOCK; j++) {
        if (isnan(x[j])) {
            *out_min = *out_max = x[j];
            return;
        }
        min = x[j] < min ? x[j] : min;
        max = x[j] > max ? x[j] : max;
    }
    *out_min = min;
    *out_max = max;
}

static float inverse(float d)
{
    return d == 0 ? 0 : 1 / d;
}

/* Codes of a block to their places: low halves in 16 bytes, the first 16 numbers in the low halves; a fifth bit in
 * the 32 bits of `fifth`, where there is one. */
static void put_codes(const uint8_t *code, uint8_t *fifth, uint8_t *low)
{
    for (int j = 0; j < BLOCK / 2; j++)
        low[j] = (uint8_t)((code[j] & 15) | (code[j + BLOCK / 2] & 15) << 4);
    for (int j = 0; fifth && j < BLOCK; j += 8) {
        fifth[j / 8] = 0;
        for (int b = 0; b < 8; b++)
            fifth[j / 8] = (uint8_t)(fifth[j / 8] | (code[j + b] >> 4) << b);
    }
}

/* f16 d, [fifth], low: (code - half) * d. The largest number becomes code 0 or, cut, the last. */
static void put_signed(const float *x, int half, uint8_t *dst)
{
    uint8_t code[BLOCK];
    float d = signed_max(x) / (float)-half, id = inverse(d);
    for (int j = 0; j < BLOCK; j++)
        code[j] = (uint8_t)code_of(x[j] * id + ((float)half + 0.5f), 2 * half - 1);
    store_f16(dst, d);
    put_codes(code, half > 8 ? dst + 2 : NULL, half > 8 ? dst + 6 : dst + 2);
}

/* f16 d, f16 m, [fifth], low: code * d + m. */
static void put_offset(const float *x, int code_max, uint8_t *dst)
{
    uint8_t code[BLOCK];
    float min, max;
    range_of(x, &min, &max);
    float d = (max - min) / (float)code_max, id = inverse(d);
    for (int j = 0; j < BLOCK; j++)
        code[j] = (uint8_t)code_of((x[j] - min) * id + 0.5f, code_max);
    store_f16(dst, d);
    store_f16(dst + 2, min);
    put_codes(code, code_max > 15 ? dst + 4 : NULL, code_max > 15 ? dst + 8 : dst + 4);
}

void quant_q4_0(const float *src, const float *importance, uint8_t *dst, int64_t n)
{
    (void)importance;
    for (int64_t i = 0; i < n; i += BLOCK, dst += 18)
        put_signed(src + i, 8, dst);
}

void quant_q5_0(const float *src, const float *importance, uint8_t *dst, int64_t n)
{
    (void)importance;
    for (int64_t i = 0; i < n; i += BLOCK, dst += 22)
        put_signed(src + i, 16, dst);
}

void quant_q4_1(const float *src, const float *importance, uint8_t *dst, int64_t n)
{
    (void)importance;
    for (int64_t i = 0; i < n; i += BLOCK, dst += 20)
        put_offset(src + i, 15, dst);
}

void quant_q5_1(const float *src, const float *importance, uint8_t *dst, int64_t n)
{
    (void)importance;
    for (int64_t i = 0; i < n; i += BLOCK, dst += 24)
        put_offset(src + i, 31, dst);
}

void quant_q8_0(const float *src, const float *importance, uint8_t *dst, int64_t n)
{
    (void)importance;
    for (int64_t i = 0; i < n; i += BLOCK, dst += 34) {
        float d = fabsf(signed_max(src + i)) / 127, id = inverse(d);
        store_f16(dst, d);
        for (int j = 0; j < BLOCK; j++) {
            float x = src[i + j] * id, a = fabsf(x);
            int magnitude = code_of(a, 127);
            magnitude += magnitude < 127 && a - (float)magnitude >= 0.5f;
            dst[2 + j] = (uint8_t)(x < 0 ? -magnitude : magnitude);
        }
    }
}
