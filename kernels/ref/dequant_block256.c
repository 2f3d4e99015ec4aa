/* dequant_block256.c - the types with 256 numbers to a block, in groups with scales of their own.
 *
 * Layouts: the block structs of ggml-common.h in https://github.com/ggml-org/ggml. */
#include "kernels/ref/dequant_impl.h"

enum { BLOCK = 256 };

/* scales[16], codes[64], f16 d, f16 m. 16 groups of 16; a scale byte has the group's factor of d in
 * its low half and its factor of m in its high half: code * (d * low) - m * high. Two-bit codes:
 * each run of 32 bytes holds 128 numbers, the first 32 in bits 0-1, the next 32 in bits 2-3, ... */
void dequant_q2_k(const uint8_t *src, float *dst, int64_t n)
{
    for (int64_t i = 0; i < n; i += BLOCK, src += 84) {
        const uint8_t *scales = src, *codes = src + 16;
        float d = load_f16(src + 80), m = load_f16(src + 82);
        for (int j = 0; j < BLOCK; j++) {
            uint8_t scale = scales[j / 16];
            int code = codes[j / 128 * 32 + j % 32] >> j % 128 / 32 * 2 & 3;
            float dl = d * (float)(scale & 15), ml = m * (float)(scale >> 4);
            dst[i + j] = dl * (float)code - ml;
        }
    }
}

/* high[32], codes[64], scales[12], f16 d. 16 groups of 16: (code - 4 + 4 * high bit) * d * scale.
 * Codes lie as in Q2_K; the high bit of number j is bit j / 32 of high[j % 32]. Scales are 6 bits
 * less 32: scale g has its low 4 bits in half g / 8 of byte g % 8, its high 2 in bits 2 * (g / 4)
 * of byte 8 + g % 4. */
void dequant_q3_k(const uint8_t *src, float *dst, int64_t n)
{
    for (int64_t i = 0; i < n; i += BLOCK, src += 110) {
        const uint8_t *high = src, *codes = src + 32, *scales = src + 96;
        float d = load_f16(src + 108);
        for (int j = 0; j < BLOCK; j++) {
            int g = j / 16;
            int low4 = scales[g % 8] >> g / 8 * 4 & 15, high2 = scales[8 + g % 4] >> g / 4 * 2 & 3;
            int code = codes[j / 128 * 32 + j % 32] >> j % 128 / 32 * 2 & 3;
            int high_bit = high[j % 32] >> j / 32 & 1;
            float dl = d * (float)((low4 | high2 << 4) - 32);
            dst[i + j] = dl * (float)(code - 4 + 4 * high_bit);
        }
    }
}

typedef struct {
    int scale, min;
} scale_min;

/* Eight 6-bit scales and eight 6-bit minima in 12 bytes, as Q4_K and Q5_K have them: those of
 * groups 0-3 in the low 6 bits of bytes 0-3 and 4-7, whose high 2 bits belong to groups 4-7, as do
 * the two halves of bytes 8-11. */
static scale_min unpack_scale_min(const uint8_t *p, int g)
{
    if (g < 4)
        return (scale_min){p[g] & 63, p[g + 4] & 63};
    return (scale_min){(p[g + 4] & 15) | p[g - 4] >> 6 << 4, p[g + 4] >> 4 | p[g] >> 6 << 4};
}

/* f16 d, f16 m, scales[12], codes[128]. 8 groups of 32: code * (d * scale) - m * min. Each run of
 * 32 bytes holds 64 numbers, the first 32 in the low halves. */
void dequant_q4_k(const uint8_t *src, float *dst, int64_t n)
{
    for (int64_t i = 0; i < n; i += BLOCK, src += 144) {
        const uint8_t *scales = src + 4, *codes = src + 16;
        float d = load_f16(src), m = load_f16(src + 2);
        for (int g = 0; g < 8; g++) {
            scale_min s = unpack_scale_min(scales, g);
            float dl = d * (float)s.scale, ml = m * (float)s.min;
            for (int j = 0; j < 32; j++) {
                int code = codes[g / 2 * 32 + j] >> g % 2 * 4 & 15;
                dst[i + g * 32 + j] = dl * (float)code - ml;
            }
        }
    }
}

/* f16 d, f16 m, scales[12], fifth[32], codes[128]. As Q4_K, with the fifth bit of number j of group
 * g in bit g of fifth[j]. */
void dequant_q5_k(const uint8_t *src, float *dst, int64_t n)
{
    for (int64_t i = 0; i < n; i += BLOCK, src += 176) {
        const uint8_t *scales = src + 4, *fifth = src + 16, *codes = src + 48;
        float d = load_f16(src), m = load_f16(src + 2);
        for (int g = 0; g < 8; g++) {
            scale_min s = unpack_scale_min(scales, g);
            float dl = d * (float)s.scale, ml = m * (float)s.min;
            for (int j = 0; j < 32; j++) {
                int low4 = codes[g / 2 * 32 + j] >> g % 2 * 4 & 15;
                int code = low4 | (fifth[j] >> g & 1) << 4;
                dst[i + g * 32 + j] = dl * (float)code - ml;
            }
        }
    }
}

/* low[128], high[64], i8 scales[16], f16 d. 16 groups of 16: (code - 32) * (d * scale). 128 numbers
 * at a time: low 4 bits in 64 bytes, the first 64 numbers in the low halves; high 2 bits in 32
 * bytes, the first 32 numbers in bits 0-1, the next 32 in bits 2-3, ... */
void dequant_q6_k(const uint8_t *src, float *dst, int64_t n)
{
    for (int64_t i = 0; i < n; i += BLOCK, src += 210) {
        const uint8_t *low = src, *high = src + 128, *scales = src + 192;
        float d = load_f16(src + 208);
        for (int j = 0; j < BLOCK; j++) {
            int low4 = low[j / 128 * 64 + j % 64] >> j % 128 / 64 * 4 & 15;
            int high2 = high[j / 128 * 32 + j % 32] >> j % 128 / 32 * 2 & 3;
            float dl = d * (float)(int8_t)scales[j / 16];
            dst[i + j] = dl * (float)((low4 | high2 << 4) - 32);
        }
    }
}

/* f16 d, u16 high scale bits, low scale bits[4], codes[128]. 8 groups of 32: value[code] * d *
 * (scale - 32), a scale's low 4 bits in half g % 2 of byte g / 2, its high 2 in bits 2 * g. The
 * first 16 numbers of a group are in the low halves of its 16 bytes. */
void dequant_iq4_xs(const uint8_t *src, float *dst, int64_t n)
{
    for (int64_t i = 0; i < n; i += BLOCK, src += 136) {
        const uint8_t *scales_low = src + 4, *codes = src + 8;
        float d = load_f16(src);
        int scales_high = load_u16(src + 2);
        for (int g = 0; g < 8; g++) {
            int scale = (scales_low[g / 2] >> g % 2 * 4 & 15) | (scales_high >> 2 * g & 3) << 4;
            float dl = d * (float)(scale - 32);
            for (int j = 0; j < 32; j++) {
                int code = codes[g * 16 + j % 16] >> j / 16 * 4 & 15;
                dst[i + g * 32 + j] = dl * (float)dequant_iq4_values[code];
            }
        }
    }
}
