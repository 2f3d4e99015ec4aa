/* panels_dotprod.c - interleaved weights of every type for many rows: unpacked to panels for sdot.
 *
 * Scales of groups of 32 columns, as floats, are products of an f16 and an integer of at most 8 bits and therefore exact.
 * The 3-bit codes of Q3_K times their 6-bit scales, negated, are signed bytes, and so are the 2-bit codes of Q2_K times
 * theirs: panels hold those products, and floats come in once in 256 columns. Minima of groups of 32 meet the sums of the
 * activations: floats for each 32 columns (8 slots besides the 80 of a tile), or integers, four groups to a lane of
 * sdot (56 slots in 256 columns, 7 in 32). Those of Q2_K belong to 16 columns, of which there are no sums, and are
 * multiplied column by column like codes.
 *
 * Share of the sdot peak that the slots of Neoverse N1 allow, tiles alone: Q3_K 97 %; Q8_0, Q4_0, Q5_0, IQ4_NL, MXFP4,
 * IQ4_XS 80 %; Q4_K, Q5_K 74 %; Q4_1, Q5_1 73 %; Q6_K 67 %; Q2_K 48 %. Unpacking 32 columns takes 16 slots to bring four
 * columns of a row together, 16 to store and 10 to 40 for codes and scales, once for all rows of activations. Not
 * measured.
 *
 * A scale of MXFP4 of 2^104 or more gives NaN; no other type has such. */
#include "kernels/kernel_decls.h"

#include <assert.h>
#include "kernels/neon/panel_dotprod.h"

typedef struct {
    int8_t q[8 * ROWS8_COLS];
    union { /* of each group */
        dot_scale scale[ROWS8_COLS / 16];
        dot_scale_min scale_min[ROWS8_COLS / 32];
    };
    union {
        dot_minima min256[ROWS8_COLS / 256];
        struct {
            int8_t q[8 * ROWS8_COLS];
            dot_scale scale[ROWS8_COLS / 256];
        } min16;
    };
} panel;

static_assert(sizeof(panel) <= PANEL_BYTES, "the panel fits its scratch");

/* Of 32 columns, half of the rows: v as codes.h has it, to where four rows of a panel lie. */
NEON_INLINE void put_codes(const int8x16_t v[8], int half, int8_t *q)
{
    for (int step = 0; step < 4; step++) {
        int32x4_t a = vreinterpretq_s32_s8(v[step]), b = vreinterpretq_s32_s8(v[4 + step]);
        vst1q_s8(q + step * 64 + half * 16, vreinterpretq_s8_s32(vuzp1q_s32(a, b)));
        vst1q_s8(q + step * 64 + 32 + half * 16, vreinterpretq_s8_s32(vuzp2q_s32(a, b)));
    }
}

/* Which of two loops. */
NEON_INLINE int four(const panel_acts *x)
{
    return x->count > 2;
}

NEON_INLINE void tile_clear(float t[DOT_TILE])
{
    for (int i = 0; i < DOT_TILE; i++)
        t[i] = 0;
}

/* ---- a scale for each 32 columns ---- */

NEON_INLINE void unpack32(const uint8_t *w, int64_t cols, void *to, const rows8_block32 *t)
{
    panel *p = to;
    for (int64_t b = 0; b < cols / 32; b++, w += t->bytes) {
        float32x4_t scale[2], min[2];
        neon_hint(w, t->bytes);
        t->scales(w, scale);
        if (t->has_min)
            neon_halves(w + 16, min);
        for (int i = 0; i < 2; i++) {
            if (t->has_min)
                vst1q_f32(p->scale_min[b].min + i * 4, vfmaq_n_f32(min[i], scale[i], t->zero));
            scale[i] = vmulq_n_f32(scale[i], 1.0f / (float)(1 << t->shift));
        }
        dot_scale_put(t->has_min ? &p->scale_min[b].scale : &p->scale[b], scale);
        for (int half = 0; half < 2; half++) {
            int8x16_t v[8];
            t->codes(w + t->codes_at, half, v);
            put_codes(v, half, p->q + b * 256);
        }
    }
}

NEON_INLINE void tile32(const panel *p, const panel_acts *x, float *t, const rows8_block32 *type)
{
    int64_t b = x->first / 32;
    const float *sums = (const float *)act_sum4(ACT_Q8X4, x->x, x->n) + b * DOT_X;
    dot_tile_fn *tile = (type->has_min ? dot_tile32_min : dot_tile32)[four(x)];
    tile_clear(t);
    tile(p->q, p->scale, act_q(x->x) + x->first * DOT_X, act_d4(x->x, x->n) + b * 8, 0, sums,
         x->cols / 32, x->next, t);
}

/* ---- a scale for each 256, and integers that multiply it ---- */

/* The scales of a group as floats, times d. */
NEON_INLINE void scale_group(const uint8_t *scale, const float32x4_t d[2], const rows8_block256 *t,
                             dot_scale *to)
{
    int16x8_t s = t->has_min ? vreinterpretq_s16_u16(vmovl_u8(vld1_u8(scale)))
                             : vmovl_s8(vld1_s8((const int8_t *)scale));
    float32x4_t w[2] = {vmulq_f32(vcvtq_f32_s32(vmovl_s16(vget_low_s16(s))), d[0]),
                        vmulq_f32(vcvtq_f32_s32(vmovl_high_s16(s)), d[1])};
    dot_scale_put(to, w);
}

/* [8 groups][8 rows] to [2][8 rows][4 groups]. */
NEON_INLINE void turn(const uint8_t from[64], uint8_t to[64])
{
    for (int i = 0; i < 64; i += 32) {
        uint8x8x4_t four = {{vld1_u8(from + i), vld1_u8(from + i + 8), vld1_u8(from + i + 16),
                             vld1_u8(from + i + 24)}};
        vst4_u8(to + i, four);
    }
}

/* f16 of eight rows, times `by`. */
NEON_INLINE void d_times(const uint8_t *w, float by, float32x4_t d[2])
{
    neon_halves(w, d);
    for (int i = 0; i < 2; i++)
        d[i] = vmulq_n_f32(d[i], by);
}

/* As stored, so that minima are the type's own; else times 1 << shift. */
NEON_INLINE int8x16_t whole_code(int8x16_t v, const rows8_block256 *t)
{
    return t->zero ? vaddq_s8(vshrq_n_s8(v, 3), vdupq_n_s8((int8_t)t->zero)) : v;
}

NEON_INLINE void unpack_groups(const uint8_t *w, int64_t b, panel *p, const rows8_block256 *t)
{
    uint8_t own[128], min[128];
    const uint8_t *scales = code_scales(w, own, min, t);
    float32x4_t d[2];
    d_times(w, t->zero ? 1 : 1.0f / (float)(1 << t->shift), d);
    for (int g = 0; g < t->groups; g++)
        scale_group(scales + g * 8, d, t, &p->scale[b * t->groups + g]);
    if (t->has_min) {
        d_times(w + 16, -1, d);
        dot_scale_put(&p->min256[b].scale, d);
        turn(min, p->min256[b].q);
    }
}

/* The codes of 256 columns. */
NEON_INLINE void unpack_codes(const uint8_t *w, int8_t *q, const rows8_block256 *t)
{
    const uint8_t *codes = w + t->codes_at;
    neon_hint(w, t->codes_at);
    for (int sub = 0; sub < 8; sub++, codes += t->sub_bytes, q += 32 * LAYOUT_GROUP) {
        neon_hint(codes, t->sub_bytes);
        for (int half = 0; half < 2; half++) {
            int8x16_t v[8];
            t->codes(codes, half, v);
            for (int i = 0; i < 8; i++)
                v[i] = whole_code(v[i], t);
            put_codes(v, half, q);
        }
    }
}

NEON_INLINE void unpack256(const uint8_t *w, int64_t cols, void *to, const rows8_block256 *t)
{
    panel *p = to;
    for (int64_t b = 0; b < cols / 256; b++, w += t->bytes) {
        unpack_groups(w, b, p, t);
        unpack_codes(w, p->q + b * 256 * LAYOUT_GROUP, t);
    }
}

NEON_INLINE void tile256(const panel *p, const panel_acts *x, float *t, const rows8_block256 *type)
{
    int64_t b = x->first / 256, n_block = x->cols / 256;
    const float *d = act_d4(x->x, x->n) + b * 8;
    const int8_t *q = act_q(x->x) + x->first * DOT_X;
    tile_clear(t);
    if (type->groups == 16)
        dot_tile16[four(x)](p->q, p->scale, q, d, 4, NULL, n_block * 16, x->next, t);
    else
        dot_tile32[four(x)](p->q, p->scale, q, d, 3, NULL, n_block * 8, x->next, t);
    if (type->has_min)
        dot_tile_minima[four(x)]((const int8_t *)p->min256->q, &p->min256->scale,
                                 (const int8_t *)act_sum4(ACT_Q8KX4, x->x, x->n) + b * 64, d, 0,
                                 NULL, n_block, x->next, t);
}

/* ---- codes times scales ---- */

/* One byte for each of eight rows, four times each: rows 0 to 3, rows 4 to 7. */
NEON_INLINE void four_times(const uint8_t *rows, int8x16_t to[2])
{
    int8x16_t s = vreinterpretq_s8_u8(vcombine_u8(vld1_u8(rows), vdup_n_u8(0)));
    int16x8_t twice = vreinterpretq_s16_s8(vzip1q_s8(s, s));
    to[0] = vreinterpretq_s8_s16(vzip1q_s16(twice, twice));
    to[1] = vreinterpretq_s8_s16(vzip2q_s16(twice, twice));
}

/* The codes of 16 columns at q, times their scales. */
NEON_INLINE void times_scales(int8_t *q, const uint8_t *scales, const rows8_block256 *t)
{
    int8x16_t by[2];
    four_times(scales, by);
    for (int i = 0; i < 8; i++) {
        int8x16_t v = vld1q_s8(q + i * 16);
        v = t->has_min ? v : vnegq_s8(vshrq_n_s8(v, 5));
        vst1q_s8(q + i * 16, vmulq_s8(v, by[i % 2]));
    }
}

/* Minima for 16 columns. */
NEON_INLINE void put_minima16(const uint8_t *min, int8_t *q)
{
    int8x16_t rows[2];
    four_times(min, rows);
    for (int i = 0; i < 8; i++)
        vst1q_s8(q + i * 16, rows[i % 2]);
}

/* Q3_K, negated, or Q2_K, which has minima. */
NEON_INLINE void unpack_products(const uint8_t *w, int64_t cols, void *to, const rows8_block256 *t)
{
    panel *p = to;
    for (int64_t b = 0; b < cols / 256; b++, w += t->bytes) {
        uint8_t own[128], min[128];
        const uint8_t *scales = code_scales(w, own, min, t);
        int64_t at = b * 256 * LAYOUT_GROUP;
        float32x4_t d[2];
        d_times(w, t->has_min ? 1 : -1, d);
        dot_scale_put(&p->scale[b], d);
        unpack_codes(w, p->q + at, t);
        for (int g = 0; g < 16; g++)
            times_scales(p->q + at + g * 16 * LAYOUT_GROUP, scales + g * 8, t);
        if (!t->has_min)
            continue;
        d_times(w + 16, -1, d);
        dot_scale_put(&p->min16.scale[b], d);
        for (int g = 0; g < 16; g++)
            put_minima16(min + g * 8, p->min16.q + at + g * 16 * LAYOUT_GROUP);
    }
}

NEON_INLINE void tile_products(const panel *p, const panel_acts *x, float *t,
                               const rows8_block256 *type)
{
    int64_t b = x->first / 256, n_block = x->cols / 256;
    const float *d = act_d4(x->x, x->n) + b * 8;
    const int8_t *q = act_q(x->x) + x->first * DOT_X;
    tile_clear(t);
    dot_tile256[four(x)](p->q, p->scale, q, d, 0, NULL, n_block, x->next, t);
    if (type->has_min)
        dot_tile256[four(x)](p->min16.q, p->min16.scale, q, d, 0, NULL, n_block, x->next, t);
}

/* ---- the kernels ---- */

static void put(const float *t, float *const *out, const float *bias, bool add)
{
    for (int i = 0; i < DOT_X; i++, t += LAYOUT_GROUP)
        if (out[i]) {
            const float32x4_t sum[2] = {vld1q_f32(t), vld1q_f32(t + 4)};
            neon_store8(out[i], add ? out[i] : bias, sum);
        }
}

#define KERNELS(type, act, block, unpack, tile)                                                    \
    static void unpack_##type(const uint8_t *w, int64_t pitch, int64_t rows, int64_t first,        \
                              int64_t cols, void *to)                                              \
    {                                                                                              \
        (void)pitch, (void)rows;                                                                   \
        unpack(w + first / (block)*rows8_##type.bytes, cols, to, &rows8_##type);                   \
    }                                                                                              \
    static void tile_##type(const void *p, const panel_acts *x, float *t)                          \
    {                                                                                              \
        tile(p, x, t, &rows8_##type);                                                              \
    }                                                                                              \
    static const panel_core core_##type = {act,        LAYOUT_GROUP,  DOT_X,       LAYOUT_GROUP,   \
                                           ROWS8_COLS, unpack_##type, tile_##type, put};           \
    PANEL_KERNELS(type, dotprod, &core_##type)
/* clang-format off */
KERNELS(Q8_0,   ACT_Q8X4,  32,  unpack32,        tile32)
KERNELS(Q4_0,   ACT_Q8X4,  32,  unpack32,        tile32)
KERNELS(Q4_1,   ACT_Q8X4,  32,  unpack32,        tile32)
KERNELS(Q5_0,   ACT_Q8X4,  32,  unpack32,        tile32)
KERNELS(Q5_1,   ACT_Q8X4,  32,  unpack32,        tile32)
KERNELS(IQ4_NL, ACT_Q8X4,  32,  unpack32,        tile32)
KERNELS(MXFP4,  ACT_Q8X4,  32,  unpack32,        tile32)
KERNELS(Q4_K,   ACT_Q8KX4, 256, unpack256,       tile256)
KERNELS(Q5_K,   ACT_Q8KX4, 256, unpack256,       tile256)
KERNELS(Q6_K,   ACT_Q8KX4, 256, unpack256,       tile256)
KERNELS(IQ4_XS, ACT_Q8KX4, 256, unpack256,       tile256)
KERNELS(Q3_K,   ACT_Q8KX4, 256, unpack_products, tile_products)
KERNELS(Q2_K,   ACT_Q8KX4, 256, unpack_products, tile_products)
/* clang-format on */
