/* codes.h - interleaved weights (layout.c says how they lie) as signed bytes.
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

/* Eight codes in three bytes, times 32. */
NEON_INLINE void half_threes(const uint8_t *w, int half, int8x16_t v[8])
{
    uint8x16_t b[3];
    for (int i = 0; i < 3; i++) {
        b[i] = vld1q_u8(w + (half * 3 + i) * 16);
        v[i * 2] = code_and(b[i], 0xe0);
        v[i * 2 + 1] = code_and(vshlq_n_u8(b[i], 3), 0xe0);
    }
    v[6] = code_and(vsliq_n_u8(vshlq_n_u8(b[2], 4), b[0], 6), 0xe0);
    v[7] = vreinterpretq_s8_u8(vsliq_n_u8(vshlq_n_u8(b[2], 5), b[1], 6));
}

/* Four codes in a byte, 0 to 3. */
NEON_INLINE void half_twos(const uint8_t *w, int half, int8x16_t v[8])
{
    for (int i = 0; i < 8; i += 4) {
        uint8x16_t b = vld1q_u8(w + (half * 2 + i / 4) * 16);
        v[i] = code_and(b, 3);
        v[i + 1] = code_and(vshrq_n_u8(b, 2), 3);
        v[i + 2] = code_and(vshrq_n_u8(b, 4), 3);
        v[i + 3] = vreinterpretq_s8_u8(vshrq_n_u8(b, 6));
    }
}

/* Codes that stand for values of a table. */
NEON_INLINE void half_values(const uint8_t *w, int half, const int8_t table[16], int8x16_t v[8])
{
    int8x16_t values = vld1q_s8(table), codes[8];
    half_plain_fours(w, half, codes);
    for (int i = 0; i < 8; i++)
        v[i] = vqtbl1q_s8(values, vreinterpretq_u8_s8(codes[i]));
}

NEON_INLINE void half_iq4(const uint8_t *w, int half, int8x16_t v[8])
{
    static const int8_t values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                      1,    13,   25,  38,  53,  69,  89,  113};
    half_values(w, half, values, v);
}

/* Times 2; code_e8m0 halves the scales. */
NEON_INLINE void half_mxfp4(const uint8_t *w, int half, int8x16_t v[8])
{
    static const int8_t values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
    half_values(w, half, values, v);
}

/* Half of 2^(e - 127), for eight bytes e. */
NEON_INLINE void code_e8m0(const void *p, float32x4_t to[2])
{
    uint16x8_t e = vmovl_u8(vld1_u8(p));
    for (int i = 0; i < 2; i++) {
        uint32x4_t wide = i ? vmovl_high_u16(e) : vmovl_u16(vget_low_u16(e));
        uint32x4_t normal = vshlq_n_u32(vsubq_u32(wide, vdupq_n_u32(1)), 23);
        uint32x4_t small = vshlq_u32(vdupq_n_u32(0x00200000), vreinterpretq_s32_u32(wide));
        to[i] = vreinterpretq_f32_u32(vbslq_u32(vcltq_u32(wide, vdupq_n_u32(2)), small, normal));
    }
}

typedef void scales_fn(const void *p, float32x4_t to[2]);

/* A type with a scale for each 32 columns; sizes are of eight rows. */
typedef struct {
    int bytes, codes_at;
    scales_fn *scales;
    half_fn *codes;
    int most;     /* the largest code as it comes */
    int shift;    /* codes come times 1 << shift */
    bool has_min; /* of each row, after the scales */
    float zero;   /* codes come less this, where there are minima to make up for it */
    bool in_asm;  /* one_row.h has it */
} rows8_block32;

/* clang-format off */
static const rows8_block32 rows8_Q8_0   = {272, 16, neon_halves, half_bytes,       128, 0, false, 0,  false};
static const rows8_block32 rows8_Q4_0   = {144, 16, neon_halves, half_fours,       128, 4, false, 0,  true};
static const rows8_block32 rows8_Q4_1   = {160, 32, neon_halves, half_plain_fours, 15,  0, true,  0,  false};
static const rows8_block32 rows8_Q5_0   = {176, 16, neon_halves, half_fives,       128, 3, false, 0,  false};
static const rows8_block32 rows8_Q5_1   = {192, 32, neon_halves, half_fives,       128, 3, true,  16, false};
static const rows8_block32 rows8_IQ4_NL = {144, 16, neon_halves, half_iq4,         127, 0, false, 0,  false};
static const rows8_block32 rows8_MXFP4  = {136, 8,  code_e8m0,   half_mxfp4,       12,  0, false, 0,  false};
/* clang-format on */

/* How integers that multiply the scale of 256 columns lie: signed bytes; signed sixes; 6 bits, with minima; 4 bits,
 * with minima. */
enum { SCALES_BYTES, SCALES_SIXES, SCALES_6, SCALES_4 };

/* A type with a scale for each 256 columns, and integers that multiply it for each 32 or 16. */
typedef struct {
    int bytes, codes_at, sub_bytes; /* of 32 columns */
    half_fn *codes;
    int most;
    int shift;
    int groups; /* in 256 columns: 8 or 16 */
    int scales;
    bool has_min; /* and scales without a sign */
    int zero;
} rows8_block256;

/* clang-format off */
static const rows8_block256 rows8_Q2_K   = {672,  160, 64,  half_twos,        3,   0, 16, SCALES_4,     true,  0};
static const rows8_block256 rows8_Q3_K   = {880,  112, 96,  half_threes,      128, 5, 16, SCALES_SIXES, false, 0};
static const rows8_block256 rows8_Q4_K   = {1152, 128, 128, half_plain_fours, 15,  0, 8,  SCALES_6,     true,  0};
static const rows8_block256 rows8_Q5_K   = {1408, 128, 160, half_fives,       128, 3, 8,  SCALES_6,     true,  16};
static const rows8_block256 rows8_Q6_K   = {1680, 144, 192, half_sixes,       128, 2, 16, SCALES_BYTES, false, 0};
static const rows8_block256 rows8_IQ4_XS = {1088, 64,  128, half_iq4,         127, 0, 8,  SCALES_SIXES, false, 0};
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

/* Signed scales of eight rows in sixes: [8 groups][8 rows]. */
NEON_INLINE void code_scale_sixes(const uint8_t *w, uint8_t scale[64])
{
    uint8x16_t b[3];
    for (int i = 0; i < 3; i++) {
        b[i] = vld1q_u8(w + i * 16);
        vst1q_s8((int8_t *)scale + i * 16, vshrq_n_s8(vreinterpretq_s8_u8(b[i]), 2));
    }
    uint8x16_t rest = vsliq_n_u8(vsliq_n_u8(vshlq_n_u8(b[2], 2), b[1], 4), b[0], 6);
    vst1q_s8((int8_t *)scale + 48, vshrq_n_s8(vreinterpretq_s8_u8(rest), 2));
}

/* The 4-bit scales and minima of eight rows: [16 groups][8 rows]. */
NEON_INLINE void code_scales4(const uint8_t *w, uint8_t scale[128], uint8_t min[128])
{
    for (int i = 0; i < 128; i += 16) {
        uint8x16_t both = vld1q_u8(w + i);
        vst1q_u8(scale + i, vandq_u8(both, vdupq_n_u8(15)));
        vst1q_u8(min + i, vshrq_n_u8(both, 4));
    }
}

/* The scales of a block's groups, as bytes: [groups][8 rows]; `own` and `min` are memory for them. */
NEON_INLINE const uint8_t *code_scales(const uint8_t *w, uint8_t own[128], uint8_t min[128],
                                       const rows8_block256 *t)
{
    if (t->scales == SCALES_BYTES)
        return w + 16;
    if (t->scales == SCALES_6)
        code_scales6(w + 32, own, min);
    if (t->scales == SCALES_4)
        code_scales4(w + 32, own, min);
    for (int g = 0; t->scales == SCALES_SIXES && g < t->groups; g += 8)
        code_scale_sixes(w + 16 + g * 6, own + g * 8);
    return own;
}

#endif
