/* block32_i8mm.c - interleaved weights with a scale for each 32 columns, for several rows.
 *
 * Unpacking 32 columns of 8 rows takes 14 cycles of a Neoverse V1 core, a tile 18 to 19 (panel_tile_i8mm.c). Few rows are
 * multiplied as they are unpacked, two or four at a time: Q8_0 14.5 cycles for two, 21.4 for four, Q4_0 17.8 and
 * 27 (direct_i8mm.c has those for four). */
#include "kernels/kernel_decls.h"

#include "kernels/neon/direct.h"
#include "kernels/neon/panel_i8mm.h"

enum { BLOCK = 32 };

NEON_INLINE void unpack(const uint8_t *w, int64_t cols, void *panel, const rows8_block32 *t)
{
    panel32 *p = panel;
    for (int64_t b = 0; b < cols / BLOCK; b++, w += t->bytes) {
        float32x4_t scale[2], min[2];
        neon_hint(w, t->bytes);
        t->scales(w, scale);
        for (int i = 0; i < 2 && t->has_min; i++) {
            neon_halves(w + 16, min);
            vst1q_f32(p->min + b * 8 + i * 4, vfmaq_n_f32(min[i], scale[i], t->zero));
        }
        for (int i = 0; i < 2; i++)
            scale[i] = vmulq_n_f32(scale[i], 1.0f / (float)(1 << t->shift));
        float32x4_t spread[4];
        panel_spread(scale, spread);
        for (int i = 0; i < 4; i++)
            vst1q_f32(p->scale + b * 16 + i * 4, spread[i]);
        for (int half = 0; half < 2; half++) {
            int8x16_t v[8];
            t->codes(w + t->codes_at, half, v);
            for (int i = 0; i < 8; i++)
                vst1q_s8(p->q + b * 256 + i % 4 * 64 + (half * 2 + i / 4) * 16, v[i]);
        }
    }
}

/* The minima of eight rows times the sums of four: added to a tile. */
static void add_minima(const panel32 *p, const float *sums, int64_t n_block, int64_t next,
                       float t[TILE])
{
    float32x4_t acc[TILE_X][2];
    for (int x = 0; x < TILE_X; x++)
        acc[x][0] = acc[x][1] = vdupq_n_f32(0);
    for (int64_t b = 0; b < n_block; b++) {
        float32x4_t s = vld1q_f32(sums + b * 4);
        if (b % 4 == 0)
            __asm__ volatile("prfm pldl1keep, [%0, %1]" ::"r"(sums + b * 4), "r"(next));
        for (int i = 0; i < 2; i++) {
            float32x4_t m = vld1q_f32(p->min + b * 8 + i * 4);
            acc[0][i] = vfmaq_laneq_f32(acc[0][i], m, s, 0);
            acc[1][i] = vfmaq_laneq_f32(acc[1][i], m, s, 1);
            acc[2][i] = vfmaq_laneq_f32(acc[2][i], m, s, 2);
            acc[3][i] = vfmaq_laneq_f32(acc[3][i], m, s, 3);
        }
    }
    for (int i = 0; i < 2; i++)
        for (int h = 0; h < 2; h++) { /* rows 2h and 2h + 1, which a tile has side by side */
            float32x4_t low = vzip1q_f32(acc[2 * h][i], acc[2 * h + 1][i]);
            float32x4_t high = vzip2q_f32(acc[2 * h][i], acc[2 * h + 1][i]);
            float *a = t + (i * 4 + h) * 4, *b = a + 8;
            vst1q_f32(a, vaddq_f32(vld1q_f32(a), low));
            vst1q_f32(b, vaddq_f32(vld1q_f32(b), high));
        }
}

NEON_INLINE void tile(const void *panel, const panel_acts *x, float t[TILE], bool has_min)
{
    const panel32 *p = panel;
    int64_t b = x->first / BLOCK, n_block = x->cols / BLOCK;
    panel_tile32(p->q, p->scale, (const int8_t *)x->x + x->first * TILE_X,
                 act_d4(x->x, x->n) + b * 8, n_block, x->next, t);
    if (has_min)
        add_minima(p, (const float *)act_sum4(ACT_Q8X4, x->x, x->n) + b * TILE_X, n_block, x->next,
                   t);
}

/* Two of four numbers, twice. */
NEON_INLINE float32x4_t twice(const float *p)
{
    return vreinterpretq_f32_f64(vld1q_dup_f64((const double *)(const void *)p));
}

NEON_INLINE float32x4_t float_of(int32x4_t s, int shift)
{
    return shift == 0   ? vcvtq_f32_s32(s)
           : shift == 3 ? vcvtq_n_f32_s32(s, 3)
                        : vcvtq_n_f32_s32(s, 4);
}

NEON_INLINE void few(const uint8_t *w, const panel_acts *x, int pairs, bool cold, float t[TILE],
                     const rows8_block32 *type, direct_fn *direct)
{
    const int8_t *q = (const int8_t *)x->x + x->first * TILE_X;
    const float *d = act_d4(x->x, x->n) + x->first / BLOCK * 8;
    const float *sums = (const float *)act_sum4(ACT_Q8X4, x->x, x->n) + x->first / BLOCK * TILE_X;
    const float *from = panel_before(x, t);
    float32x4_t acc[8];
    if (pairs == 2 && direct) {
        direct(w, q, d, x->cols / BLOCK, cold ? NEON_AHEAD : 0, from, t);
        return;
    }
    panel_begin(from, acc);
    for (int64_t b = 0; b < x->cols / BLOCK; b++, w += type->bytes, q += BLOCK * TILE_X) {
        float32x4_t scale[2], spread[4];
        if (cold)
            neon_hint(w, type->bytes);
        type->scales(w, scale);
        panel_spread(scale, spread);
        for (int half = 0; half < 2; half++) {
            int8x16_t v[8];
            type->codes(w + type->codes_at, half, v);
            for (int i = 0; i < 4; i++) {
                int at = half * 4 + i, h = i % 2;
                int32x4_t s = vdupq_n_s32(0);
                if (h >= pairs)
                    continue;
                for (int step = 0; step < 4; step++)
                    s = vmmlaq_s32(s, v[i / 2 * 4 + step], vld1q_s8(q + step * 32 + h * 16));
                float32x4_t y = vmulq_f32(float_of(s, type->shift), spread[at / 2]);
                acc[at] = vfmaq_f32(acc[at], y, vld1q_f32(d + b * 8 + h * 4));
            }
        }
        if (type->has_min) {
            float32x4_t min[2], min_spread[4];
            neon_halves(w + 16, min);
            for (int i = 0; i < 2; i++)
                min[i] = vfmaq_n_f32(min[i], scale[i], type->zero);
            panel_spread(min, min_spread);
            for (int i = 0; i < 8; i++)
                if (i % 2 < pairs)
                    acc[i] = vfmaq_f32(acc[i], min_spread[i / 2], twice(sums + b * 4 + i % 2 * 2));
        }
    }
    for (int i = 0; i < 8; i++)
        vst1q_f32(t + i * 4, acc[i]);
}

NEON_INLINE void eight(const uint8_t *w, const panel_acts *x, int64_t group, bool cold, float *t,
                       direct8_fn *direct)
{
    const int8_t *q = (const int8_t *)x->x + x->first * TILE_X;
    const float *d = act_d4(x->x, x->n) + x->first / BLOCK * 8;
    const float *from = panel_before(x, t);
    for (int half = 0; half < 2; half++)
        direct(w, half, q, d, group, x->cols / BLOCK, cold ? NEON_AHEAD : 0, from, t);
}

static void eight_Q8_0(const uint8_t *w, const panel_acts *x, int64_t group, int64_t rows,
                       bool cold, float *t)
{
    eight(w, x, group, cold, t, rows > 6 ? direct8_Q8_0 : direct6_Q8_0);
}

static void eight_Q4_0(const uint8_t *w, const panel_acts *x, int64_t group, int64_t rows,
                       bool cold, float *t)
{
    eight(w, x, group, cold, t, rows > 6 ? direct8_Q4_0 : direct6_Q4_0);
}

static void tile_scaled(const void *panel, const panel_acts *x, float *t)
{
    tile(panel, x, t, false);
}

static void tile_with_min(const void *panel, const panel_acts *x, float *t)
{
    tile(panel, x, t, true);
}

#define KERNELS(type, size, tile_of, direct, few_max, eight)                                       \
    static void unpack_##type(const uint8_t *w, int64_t pitch, int64_t rows, int64_t first,        \
                              int64_t cols, void *panel)                                           \
    {                                                                                              \
        (void)pitch, (void)rows;                                                                   \
        unpack(w + first / BLOCK * (size), cols, panel, &rows8_##type);                            \
    }                                                                                              \
    static void few_##type(const uint8_t *w, const panel_acts *x, int pairs, bool cold,            \
                           float t[TILE])                                                          \
    {                                                                                              \
        if (pairs == 1)                                                                            \
            few(w, x, 1, cold, t, &rows8_##type, direct);                                          \
        else                                                                                       \
            few(w, x, 2, cold, t, &rows8_##type, direct);                                          \
    }                                                                                              \
    FEW_KERNELS(type, ACT_Q8X4, BLOCK, size, tile_of, few_max, eight)
/* clang-format off */
KERNELS(Q8_0, 272, tile_scaled, direct_Q8_0, 16, eight_Q8_0)
KERNELS(Q4_0, 144, tile_scaled, direct_Q4_0, 16, eight_Q4_0)
KERNELS(Q4_1, 160, tile_with_min, NULL, 4, NULL)
KERNELS(Q5_0, 176, tile_scaled, NULL, 4, NULL)
KERNELS(Q5_1, 192, tile_with_min, NULL, 4, NULL)
KERNELS(IQ4_NL, 144, tile_scaled, NULL, 4, NULL)
KERNELS(MXFP4, 136, tile_scaled, NULL, 4, NULL)
/* clang-format on */
