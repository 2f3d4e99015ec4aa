/* dequant_block32.c - the types with 32 numbers to a block.
 *
 * Where a byte holds two 4-bit codes, byte j has number j in its low half and number j + 16 in its
 * high half (MXFP4_HF apart). Layouts: the block structs of ggml-common.h in
 * https://github.com/ggml-org/ggml. MXFP4: OCP Microscaling Formats (MX) specification 1.0. */
#include "kernels/ref/dequant_impl.h"

enum { BLOCK = 32, HALF = BLOCK / 2 };

/* f16 d; codes[16]: (code - 8) * d */
void dequant_q4_0(const uint8_t *src, float *dst, int64_t n)
{
    for (int64_t i = 0; i < n; i += BLOCK, src += 2 + HALF) {
        float d = load_f16(src);
        const uint8_t *codes = src + 2;
        for (int j = 0; j < HALF; j++) {
            dst[i + j] = d * (float)((codes[j] & 15) - 8);
            dst[i + j + HALF] = d * (float)((codes[j] >> 4) - 8);
        }
    }
}

/* f16 d, f16 m; codes[16]: code * d + m */
void dequant_q4_1(const uint8_t *src, float *dst, int64_t n)
{
    for (int64_t i = 0; i < n; i += BLOCK, src += 4 + HALF) {
        float d = load_f16(src), m = load_f16(src + 2);
        const uint8_t *codes = src + 4;
        for (int j = 0; j < HALF; j++) {
            dst[i + j] = d * (float)(codes[j] & 15) + m;
            dst[i + j + HALF] = d * (float)(codes[j] >> 4) + m;
        }
    }
}

/* The fifth bits of 32 codes, number j's in bit j. */
static uint32_t load_fifth_bits(const uint8_t *p)
{
    return load_u16(p) | (uint32_t)load_u16(p + 2) << 16;
}

static int code5(int low4, uint32_t fifth_bits, int j)
{
    return low4 | (int)(fifth_bits >> j & 1) << 4;
}

/* f16 d, u32 fifth bits; codes[16]: (code - 16) * d */
void dequant_q5_0(const uint8_t *src, float *dst, int64_t n)
{
    for (int64_t i = 0; i < n; i += BLOCK, src += 6 + HALF) {
        float d = load_f16(src);
        uint32_t fifth = load_fifth_bits(src + 2);
        const uint8_t *codes = src + 6;
        for (int j = 0; j < HALF; j++) {
            dst[i + j] = d * (float)(code5(codes[j] & 15, fifth, j) - 16);
            dst[i + j + HALF] = d * (float)(code5(codes[j] >> 4, fifth, j + HALF) - 16);
        }
    }
}

/* f16 d, f16 m, u32 fifth bits; codes[16]: code * d + m */
void dequant_q5_1(const uint8_t *src, float *dst, int64_t n)
{
    for (int64_t i = 0; i < n; i += BLOCK, src += 8 + HALF) {
        float d = load_f16(src), m = load_f16(src + 2);
        uint32_t fifth = load_fifth_bits(src + 4);
        const uint8_t *codes = src + 8;
        for (int j = 0; j < HALF; j++) {
            dst[i + j] = d * (float)code5(codes[j] & 15, fifth, j) + m;
            dst[i + j + HALF] = d * (float)code5(codes[j] >> 4, fifth, j + HALF) + m;
        }
    }
}

/* f16 d; i8 codes[32]: code * d */
void dequant_q8_0(const uint8_t *src, float *dst, int64_t n)
{
    for (int64_t i = 0; i < n; i += BLOCK, src += 2 + BLOCK) {
        float d = load_f16(src);
        for (int j = 0; j < BLOCK; j++)
            dst[i + j] = d * (float)(int8_t)src[2 + j];
    }
}

const int8_t dequant_iq4_values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                       1,    13,   25,  38,  53,  69,  89,  113};

/* f16 d; codes[16]: value[code] * d */
void dequant_iq4_nl(const uint8_t *src, float *dst, int64_t n)
{
    for (int64_t i = 0; i < n; i += BLOCK, src += 2 + HALF) {
        float d = load_f16(src);
        const uint8_t *codes = src + 2;
        for (int j = 0; j < HALF; j++) {
            dst[i + j] = d * (float)dequant_iq4_values[codes[j] & 15];
            dst[i + j + HALF] = d * (float)dequant_iq4_values[codes[j] >> 4];
        }
    }
}

/* 2^(e - 127) of an E8M0 scale; 2^-127 is subnormal, and 255 gives infinity. */
static float e8m0_to_f32(uint8_t e)
{
    uint32_t bits = e == 0 ? 0x00400000u : (uint32_t)e << 23;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Half of that, as ggml computes it: 255 is 2^127, not infinity. */
static float e8m0_to_f32_half(uint8_t e)
{
    uint32_t bits = e < 2 ? 0x00200000u << e : (uint32_t)(e - 1) << 23;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* E8M0 scale; codes[16], E2M1. The table holds doubled values, the scale is halved; code 8 (minus
 * zero) gives plus zero. */
void dequant_mxfp4(const uint8_t *src, float *dst, int64_t n)
{
    static const int8_t doubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
    for (int64_t i = 0; i < n; i += BLOCK, src += 1 + HALF) {
        float d = e8m0_to_f32_half(src[0]);
        const uint8_t *codes = src + 1;
        for (int j = 0; j < HALF; j++) {
            dst[i + j] = d * (float)doubled[codes[j] & 15];
            dst[i + j + HALF] = d * (float)doubled[codes[j] >> 4];
        }
    }
}

/* As convert_moe_packed_tensors of transformers: value * 2^(scale - 127), and code 8 is -0.0. */
void dequant_row_mxfp4_hf(const void *blocks, const void *scales, float *dst, int64_t n)
{
    static const float values[16] = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                                     -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};
    const uint8_t *codes = blocks, *scale = scales;
    WEFT_ASSERT(n >= 0 && n % BLOCK == 0);
    for (int64_t i = 0; i < n; i += BLOCK, codes += HALF, scale++) {
        float d = e8m0_to_f32(*scale);
        for (int j = 0; j < HALF; j++) {
            dst[i + 2 * j] = d * values[codes[j] & 15];
            dst[i + 2 * j + 1] = d * values[codes[j] >> 4];
        }
    }
}
