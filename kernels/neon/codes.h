/* codes.h - woven weights (layout.c tells how they lie) as signed bytes.
 *
 * Of 32 columns of eight rows, half 0 or 1 is two pairs of rows: v[pair * 4 + step] holds eight columns of the two
 * rows of a pair. Codes come times `times`, a power of two that costs nothing to undo later. */
#ifndef WEFT_KERNELS_NEON_CODES_H
#define WEFT_KERNELS_NEON_CODES_H

#include "kernels/neon/neon.h"

typedef void half_fn(const uint8_t *w, int half, int8x16_t v[8]);

NEON_INLINE int8x16_t code_and(uint8x16_t v, uint8_t mask)
{
    return vreinterpretq_s8_u8(vandq_u8(v, vdupq_n_u8(mask)));
}

/* Bytes as they are. */
NEON_INLINE void half_bytes(const uint8_t *w, int half, int8x16_t v[8])
{
    for (int i = 0; i < 8; i++)
        v[i] = neon_load(w + i % 4 * 64 + (half * 2 + i / 4) * 16);
}

/* Signed halves of bytes, times 16. */
NEON_INLINE void half_fours(const uint8_t *w, int half, int8x16_t v[8])
{
    for (int i = 0; i < 8; i += 4)
        for (int step = 0; step < 2; step++) {
            uint8x16_t both = vld1q_u8(w + step * 64 + (half * 2 + i / 4) * 16);
            v[i + step] = vreinterpretq_s8_u8(vshlq_n_u8(both, 4));
            v[i + step + 2] = code_and(both, 0xf0);
        }
}

/* Halves of bytes, 0 to 15. */
NEON_INLINE void half_plain_fours(const uint8_t *w, int half, int8x16_t v[8])
{
    for (int i = 0; i < 8; i += 4)
        for (int step = 0; step < 2; step++) {
            uint8x16_t both = vld1q_u8(w + step * 64 + (half * 2 + i / 4) * 16);
            v[i + step] = code_and(both, 0x0f);
            v[i + step + 2] = vreinterpretq_s8_u8(vshrq_n_u8(both, 4));
        }
}

/* Eight codes in five bytes, times 8. */
NEON_INLINE void half_fives(const uint8_t *w, int half, int8x16_t v[8])
{
    uint8x16_t b[5];
    for (int i = 0; i < 5; i++) {
        b[i] = vld1q_u8(w + (half * 5 + i) * 16);
        v[i] = code_and(b[i], 0xf8);
    }
    v[5] = vreinterpretq_s8_u8(vsliq_n_u8(vshlq_n_u8(b[1], 3), b[0], 5));
    uint8x16_t six = vbslq_u8(vdupq_n_u8(0x10), vshlq_n_u8(b[1], 2), vshlq_n_u8(b[2], 5));
    v[6] = vreinterpretq_s8_u8(vbslq_u8(vdupq_n_u8(0x08), vshlq_n_u8(b[3], 1), six));
    v[7] = vreinterpretq_s8_u8(vsliq_n_u8(vshlq_n_u8(b[3], 3), b[4], 5));
}

/* Four codes in three bytes, times 4. */
NEON_INLINE void half_sixes(const uint8_t *w, int half, int8x16_t v[8])
{
    for (int pair = 0; pair < 2; pair++) {
        uint8x16_t b[3];
        for (int i = 0; i < 3; i++) {
            b[i] = vld1q_u8(w + ((half * 2 + pair) * 3 + i) * 16);
            v[pair * 4 + i] = code_and(b[i], 0xfc);
        }
        uint8x16_t rest = vsliq_n_u8(vshlq_n_u8(b[2], 2), b[1], 4);
        v[pair * 4 + 3] = vreinterpretq_s8_u8(vsliq_n_u8(rest, b[0], 6));
    }
}

/* A type with a scale for each 32 columns; sizes are of eight rows. */
typedef struct {
    int bytes, codes_at;
    half_fn *codes;
    int shift;    /* codes come times 1 << shift */
    bool has_min; /* of each row, after the scales */
    float zero;   /* codes come less this, where there are minima to make up for it */
    bool in_asm;  /* one_row.h has it */
} woven32;

/* clang-format off */
static const woven32 woven_Q8_0 = {272, 16, half_bytes,       0, false, 0,  false};
static const woven32 woven_Q4_0 = {144, 16, half_fours,       4, false, 0,  true};
static const woven32 woven_Q4_1 = {160, 32, half_plain_fours, 0, true,  0,  false};
static const woven32 woven_Q5_0 = {176, 16, half_fives,       3, false, 0,  false};
static const woven32 woven_Q5_1 = {192, 32, half_fives,       3, true,  16, false};
/* clang-format on */

/* A type with a scale for each 256 columns, and whole numbers that multiply it for each 32 or 16. */
typedef struct {
    int bytes, codes_at, sub_bytes; /* of 32 columns */
    half_fn *codes;
    int shift;
    int groups;   /* in 256 columns: 8 or 16 */
    bool has_min; /* and scales of 6 bits; else of 8 bits, signed */
    int zero;
} woven256;

/* clang-format off */
static const woven256 woven_Q4_K = {1152, 128, 128, half_plain_fours, 0, 8,  true,  0};
static const woven256 woven_Q5_K = {1408, 128, 160, half_fives,       3, 8,  true,  16};
static const woven256 woven_Q6_K = {1680, 144, 192, half_sixes,       2, 16, false, 0};
/* clang-format on */

/* The 6-bit scales and minima of eight rows: [8 groups][8 rows], from 12 bytes of each. */
NEON_INLINE void code_scales6(const uint8_t *w, uint8_t scale[64], uint8_t min[64])
{
    const uint8x16_t six = vdupq_n_u8(0x3f), four = vdupq_n_u8(0x0f), high = vdupq_n_u8(0x30);
    for (int i = 0; i < 2; i++) {
        uint8x16_t a = vld1q_u8(w + i * 16), b = vld1q_u8(w + 32 + i * 16);
        uint8x16_t c = vld1q_u8(w + 64 + i * 16);
        vst1q_u8(scale + i * 16, vandq_u8(a, six));
        vst1q_u8(min + i * 16, vandq_u8(b, six));
        vst1q_u8(scale + 32 + i * 16,
                 vorrq_u8(vandq_u8(c, four), vandq_u8(vshrq_n_u8(a, 2), high)));
        vst1q_u8(min + 32 + i * 16, vorrq_u8(vshrq_n_u8(c, 4), vandq_u8(vshrq_n_u8(b, 2), high)));
    }
}

#endif
