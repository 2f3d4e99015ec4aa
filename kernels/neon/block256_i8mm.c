/* block256_i8mm.c - interleaved weights with a scale for each 256 columns, for many rows.
 *
 * The sums of 256 columns are integers. Minima multiply the sums of the activations over 32 columns, eight
 * of them to a row: what smmla takes, once with the low bits of the sums and once with the high.
 *
 * Two Neoverse V1 cores at 256 rows of 2048 columns: Q4_K 0.53 TOP/s, Q6_K 0.51. Few rows are multiplied as they are
 * unpacked: two, four and eight take 18.4, 28.4 and 44 cycles for 32 columns of 8 rows of Q4_K, 24, 36 and 53 of Q6_K
 * (direct256_i8mm.c has those for eight). */
#include "kernels/kernel_decls.h"

#include <string.h>
#include "kernels/neon/direct.h"
#include "kernels/neon/panel_i8mm.h"

enum { BLOCK = 256 };

/* Scales of eight rows, where a panel has them. */
NEON_INLINE void put_spread(const float32x4_t w[2], float *to)
{
    float32x4_t spread[4];
    panel_spread(w, spread);
    for (int i = 0; i < 4; i++)
        vst1q_f32(to + i * 4, spread[i]);
}

/* [8][8] bytes, rows for columns: three perfect shuffles of 64. */
NEON_INLINE void turn(const uint8_t from[64], int8_t to[64])
{
    uint8x16_t v[4];
    for (int i = 0; i < 4; i++)
        v[i] = vld1q_u8(from + i * 16);
    for (int i = 0; i < 3; i++) {
        uint8x16_t a = v[0], b = v[1], c = v[2], d = v[3];
        v[0] = vzip1q_u8(a, c);
        v[1] = vzip2q_u8(a, c);
        v[2] = vzip1q_u8(b, d);
        v[3] = vzip2q_u8(b, d);
    }
    for (int i = 0; i < 4; i++)
        vst1q_s8(to + i * 16, vreinterpretq_s8_u8(v[i]));
}

/* As stored, so that minima are the type's own; else times 1 << shift. */
NEON_INLINE int8x16_t whole_code(int8x16_t v, const rows8_block256 *t)
{
    return t->zero ? vaddq_s8(vshrq_n_s8(v, 3), vdupq_n_s8((int8_t)t->zero)) : v;
}

/* All but the scales of groups, which are left as bytes (code_scales). */
NEON_INLINE const uint8_t *unpack_rows(const uint8_t *w, uint8_t own[128], panel256_block *p,
                                       const rows8_block256 *t)
{
    uint8_t min6[128];
    const uint8_t *scales = code_scales(w, own, min6, t);
    float32x4_t d[2];
    neon_halves(w, d);
    for (int i = 0; i < 2 && t->zero == 0; i++)
        d[i] = vmulq_n_f32(d[i], 1.0f / (float)(1 << t->shift));
    put_spread(d, p->d);
    if (t->has_min) {
        neon_halves(w + 16, d);
        put_spread(d, p->dmin);
        turn(min6, p->min);
    }
    return scales;
}

NEON_INLINE void unpack_scales(const uint8_t *w, panel256_block *p, const rows8_block256 *t)
{
    uint8_t own[128];
    const uint8_t *scales = unpack_rows(w, own, p, t);
    for (int g = 0; g < t->groups; g++) {
        int32x4_t spread[4];
        panel_spread_scales(scales + g * 8, !t->has_min, spread);
        for (int i = 0; i < 4; i++)
            vst1q_s32(p->scale + g * 16 + i * 4, spread[i]);
    }
}

/* The same with bytes in place of the scales of groups. */
NEON_INLINE void unpack_bytes(const uint8_t *w, panel256_block *p, const rows8_block256 *t)
{
    uint8_t *own = (uint8_t *)p->scale;
    const uint8_t *scales = unpack_rows(w, own, p, t);
    if (scales != own)
        memcpy(own, scales, (size_t)t->groups * 8);
}

NEON_INLINE void unpack_block(const uint8_t *w, int8_t *q, panel256_block *p,
                              const rows8_block256 *t)
{
    unpack_scales(w, p, t);
    const uint8_t *codes = w + t->codes_at;
    for (int sub = 0; sub < 8; sub++, codes += t->sub_bytes, q += 32 * LAYOUT_GROUP) {
        neon_hint(codes, t->sub_bytes);
        for (int half = 0; half < 2; half++) {
            int8x16_t v[8];
            t->codes(codes, half, v);
            for (int i = 0; i < 8; i++)
                vst1q_s8(q + i % 4 * 64 + (half * 2 + i / 4) * 16, whole_code(v[i], t));
        }
    }
}

NEON_INLINE void unpack(const uint8_t *w, int64_t cols, void *panel, const rows8_block256 *t)
{
    panel256 *p = panel;
    for (int64_t b = 0; b < cols / BLOCK; b++, w += t->bytes) {
        neon_hint(w, t->codes_at);
        unpack_block(w, p->q + b * BLOCK * LAYOUT_GROUP, &p->block[b], t);
    }
}

NEON_INLINE void tile(const void *panel, const panel_acts *x, float t[TILE],
                      const rows8_block256 *type)
{
    const panel256 *p = panel;
    int64_t b = x->first / BLOCK, n_block = x->cols / BLOCK;
    const float *d = act_d4(x->x, x->n) + b * 8;
    const int8_t *sums = (const int8_t *)act_sum4(ACT_Q8KX4, x->x, x->n) + b * 64;
    const int8_t *q = (const int8_t *)x->x + x->first * TILE_X;
    if (type->has_min)
        panel_tile256_min(p->q, p->block, q, d, sums, n_block, x->next, t);
    else if (type->groups == 8)
        panel_tile256_groups8(p->q, p->block, q, d, n_block, x->next, t);
    else
        panel_tile256_groups16(p->q, p->block, q, d, n_block, x->next, t);
}

/* 32 columns: sums times scales into u[pair * 2 + half of the rows of activations]. */
NEON_INLINE void few_sub(const uint8_t *codes, const uint8_t *scales, const int8_t *q, int pairs,
                         int32x4_t u[8], const rows8_block256 *t)
{
    int32x4_t scale[2][4];
    panel_spread_scales(scales, !t->has_min, scale[0]);
    if (t->groups == 16)
        panel_spread_scales(scales + 8, true, scale[1]);
    for (int half = 0; half < 2; half++) {
        int8x16_t v[8];
        t->codes(codes, half, v);
        for (int i = 0; i < 4; i++) {
            int at = half * 4 + i, h = i % 2;
            int32x4_t s[2] = {vdupq_n_s32(0), vdupq_n_s32(0)};
            if (h >= pairs)
                continue;
            for (int step = 0; step < 4; step++) {
                int to = t->groups == 16 ? step / 2 : 0;
                s[to] = vmmlaq_s32(s[to], whole_code(v[i / 2 * 4 + step], t),
                                   vld1q_s8(q + step * 32 + h * 16));
            }
            u[at] = vmlaq_s32(u[at], s[0], scale[0][at / 2]);
            if (t->groups == 16)
                u[at] = vmlaq_s32(u[at], s[1], scale[1][at / 2]);
        }
    }
}

/* Minima of two rows times sums of two rows of activations. */
NEON_INLINE int32x4_t minima(const int8_t *min, const int8_t *sums)
{
    int8x16_t m = vld1q_s8(min);
    int32x4_t high = vmmlaq_s32(vdupq_n_s32(0), m, vld1q_s8(sums + 32));
    return vmmlaq_s32(vshlq_n_s32(high, 7), m, vld1q_s8(sums));
}

NEON_INLINE void few(const uint8_t *w, const panel_acts *x, int pairs, bool cold, float t[TILE],
                     const rows8_block256 *type)
{
    const int8_t *q = (const int8_t *)x->x + x->first * TILE_X;
    const int8_t *sums = (const int8_t *)act_sum4(ACT_Q8KX4, x->x, x->n) + x->first / BLOCK * 64;
    const float *da = act_d4(x->x, x->n) + x->first / BLOCK * 8;
    float32x4_t acc[8];
    panel_begin(panel_before(x, t), acc);
    for (int64_t b = 0; b < x->cols / BLOCK; b++, w += type->bytes, sums += 64, da += 8) {
        uint8_t own[128], min6[128];
        int8_t min[64];
        const uint8_t *scales = code_scales(w, own, min6, type);
        int32x4_t u[8];
        float32x4_t d[2], spread[4], min_spread[4];
        if (cold)
            neon_hint(w, type->codes_at);
        if (type->has_min) {
            turn(min6, min);
            neon_halves(w + 16, d);
            panel_spread(d, min_spread);
        }
        for (int i = 0; i < 8; i++)
            u[i] = vdupq_n_s32(0);
        for (int sub = 0; sub < 8; sub++, q += 32 * TILE_X) {
            const uint8_t *codes = w + type->codes_at + sub * type->sub_bytes;
            if (cold)
                neon_hint(codes, type->sub_bytes);
            few_sub(codes, scales + sub * type->groups, q, pairs, u, type);
        }
        neon_halves(w, d);
        panel_spread(d, spread);
        for (int i = 0; i < 8; i++) {
            if (i % 2 >= pairs)
                continue;
            float32x4_t whole = type->zero || type->shift == 0 ? vcvtq_f32_s32(u[i])
                                : type->shift == 2             ? vcvtq_n_f32_s32(u[i], 2)
                                                               : vcvtq_n_f32_s32(u[i], 5);
            float32x4_t y = vmulq_f32(whole, spread[i / 2]);
            if (type->has_min)
                y = vfmsq_f32(y, vcvtq_f32_s32(minima(min + i / 2 * 16, sums + i % 2 * 16)),
                              min_spread[i / 2]);
            acc[i] = vfmaq_f32(acc[i], y, vld1q_f32(da + i % 2 * 4));
        }
    }
    for (int i = 0; i < 8; i++)
        vst1q_f32(t + i * 4, acc[i]);
}

/* As many blocks at once as are multiplied in turn by all rows (panel_i8mm.c), or fewer. */
NEON_INLINE void direct(const uint8_t *w, const panel_acts *x, int64_t group, bool cold, float *t,
                        const rows8_block256 *type, direct256_fn *multiply)
{
    enum { MOST = 4 };
    panel256_block block[MOST];
    int64_t first = x->first / BLOCK, n_block = x->cols / BLOCK;
    if (x->first == 0)
        memset(t, 0, 2 * TILE * sizeof *t);
    for (int64_t b = 0, n; b < n_block; b += n) {
        const char *sums = act_sum4(ACT_Q8KX4, x->x, x->n);
        direct256_acts acts = {x->x + (x->first + b * BLOCK) * TILE_X,
                               (const char *)(act_d4(x->x, x->n) + (first + b) * 8),
                               sums + (first + b) * 64, group};
        n = n_block - b < MOST ? n_block - b : MOST;
        for (int64_t i = 0; i < n; i++)
            unpack_bytes(w + (b + i) * type->bytes, &block[i], type);
        for (int half = 0; half < 2; half++)
            multiply(w + b * type->bytes, block, half, &acts, n, cold ? NEON_AHEAD : 0, t);
    }
}

#define DIRECT(type)                                                                               \
    static void eight_##type(const uint8_t *w, const panel_acts *x, int64_t group, int64_t rows,   \
                             bool cold, float *t)                                                  \
    {                                                                                              \
        direct256_fn *multiply = rows > 6 ? direct8_##type : direct6_##type;                       \
        direct(w, x, group, cold, t, &rows8_##type, multiply);                                     \
    }
DIRECT(Q4_K)
DIRECT(Q6_K)

#define KERNELS(type, size, few_max, eight)                                                        \
    static void unpack_##type(const uint8_t *w, int64_t pitch, int64_t rows, int64_t first,        \
                              int64_t cols, void *panel)                                           \
    {                                                                                              \
        (void)pitch, (void)rows;                                                                   \
        unpack(w + first / BLOCK * (size), cols, panel, &rows8_##type);                            \
    }                                                                                              \
    static void tile_##type(const void *panel, const panel_acts *x, float *t)                      \
    {                                                                                              \
        tile(panel, x, t, &rows8_##type);                                                          \
    }                                                                                              \
    static void few_##type(const uint8_t *w, const panel_acts *x, int pairs, bool cold,            \
                           float t[TILE])                                                          \
    {                                                                                              \
        if (pairs == 1)                                                                            \
            few(w, x, 1, cold, t, &rows8_##type);                                                  \
        else                                                                                       \
            few(w, x, 2, cold, t, &rows8_##type);                                                  \
    }                                                                                              \
    FEW_KERNELS(type, ACT_Q8KX4, BLOCK, size, tile_##type, few_max, eight)
/* clang-format off */
KERNELS(Q3_K, 880, 6, NULL)
KERNELS(Q4_K, 1152, 16, eight_Q4_K)
KERNELS(Q5_K, 1408, 4, NULL)
KERNELS(Q6_K, 1680, 8, eight_Q6_K)
KERNELS(IQ4_XS, 1088, 4, NULL)
/* clang-format on */
