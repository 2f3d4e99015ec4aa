/* q2_k_i8mm.c - Q2_K for several rows.
 *
 * A scale has 4 bits and a code 2, so that their product is a signed byte: a panel holds products, and the sums of 256
 * columns need no scaling on the way. Minima belong to 16 columns, of which the activations bring no sums; they
 * are multiplied column by column like the products, each vector of them with two steps.
 *
 * For each 32 columns of 8 by 4 rows that is twice 32 smmla. */
#include "kernels/kernel_decls.h"

#include <assert.h>
#include "kernels/neon/panel_i8mm.h"

enum { BLOCK = 256, BYTES = 672 }; /* BYTES: of eight rows */

typedef struct {
    float32x4_t d[4], dmin[4]; /* [pairs] */
    int8x16_t min[16][4];      /* [groups][pairs]: eight of the first row, eight of the second */
} minima;

typedef struct {
    int8_t q[8 * ROWS8_COLS];
    minima block[ROWS8_COLS / BLOCK];
} panel_q2_k;

static_assert(sizeof(panel_q2_k) <= PANEL_BYTES, "the panel fits its scratch");

/* A number of each row of a pair, for eight columns of it. */
NEON_INLINE int8x16_t of_pair(const uint8_t *rows, int pair)
{
    return vcombine_s8(vdup_n_s8((int8_t)rows[pair * 2]), vdup_n_s8((int8_t)rows[pair * 2 + 1]));
}

static void unpack_block(const uint8_t *w, int8_t *q, minima *m)
{
    const rows8_block256 *t = &rows8_Q2_K;
    uint8_t own[128], min[128];
    float32x4_t d[2];
    code_scales(w, own, min, t);
    neon_halves(w, d);
    panel_spread(d, m->d);
    neon_halves(w + 16, d);
    panel_spread(d, m->dmin);
    for (int g = 0; g < 16; g++)
        for (int pair = 0; pair < 4; pair++)
            m->min[g][pair] = of_pair(min + g * 8, pair);
    for (int i = 0; i < 16; i++) {
        int8x16_t v[8];
        half_twos(w + t->codes_at + i / 2 * t->sub_bytes, i % 2, v);
        for (int j = 0; j < 8; j++) {
            int pair = i % 2 * 2 + j / 4, step = j % 4;
            int8x16_t scale = of_pair(own + (i / 2 * 2 + step / 2) * 8, pair);
            vst1q_s8(q + i / 2 * 256 + step * 64 + pair * 16, vmulq_s8(v[j], scale));
        }
    }
}

/* 256 columns: s of products, u of minima; [pair * 2 + half of the rows of activations]. */
NEON_INLINE void sums_of(const int8_t *w, const minima *m, const int8_t *q, int32x4_t s[8],
                         int32x4_t u[8])
{
    for (int i = 0; i < 8; i++)
        s[i] = u[i] = vdupq_n_s32(0);
    for (int step = 0; step < BLOCK / 8; step++, w += 64, q += 32)
        for (int i = 0; i < 8; i++) {
            int8x16_t x = vld1q_s8(q + i % 2 * 16);
            s[i] = vmmlaq_s32(s[i], vld1q_s8(w + i / 2 * 16), x);
            u[i] = vmmlaq_s32(u[i], m->min[step / 2][i / 2], x);
        }
}

NEON_INLINE void add_block(const int8_t *w, const minima *m, const int8_t *q, const float *d,
                           float32x4_t acc[8])
{
    int32x4_t s[8], u[8];
    sums_of(w, m, q, s, u);
    for (int i = 0; i < 8; i++) {
        float32x4_t y = vmulq_f32(vcvtq_f32_s32(s[i]), m->d[i / 2]);
        y = vfmsq_f32(y, vcvtq_f32_s32(u[i]), m->dmin[i / 2]);
        acc[i] = vfmaq_f32(acc[i], y, vld1q_f32(d + i % 2 * 4));
    }
}

static void unpack_Q2_K(const uint8_t *w, int64_t pitch, int64_t rows, int64_t first, int64_t cols,
                        void *panel)
{
    panel_q2_k *p = panel;
    (void)pitch, (void)rows;
    w += first / BLOCK * BYTES;
    for (int64_t b = 0; b < cols / BLOCK; b++, w += BYTES) {
        neon_hint(w, BYTES);
        unpack_block(w, p->q + b * BLOCK * LAYOUT_GROUP, &p->block[b]);
    }
}

static void tile(const void *panel, const panel_acts *x, float *t)
{
    const panel_q2_k *p = panel;
    const int8_t *q = (const int8_t *)x->x + x->first * TILE_X;
    const float *d = act_d4(x->x, x->n) + x->first / BLOCK * 8;
    float32x4_t acc[8];
    for (int i = 0; i < 8; i++)
        acc[i] = vdupq_n_f32(0);
    for (int64_t b = 0; b < x->cols / BLOCK; b++, q += BLOCK * TILE_X, d += 8)
        add_block(p->q + b * BLOCK * LAYOUT_GROUP, &p->block[b], q, d, acc);
    for (int i = 0; i < 8; i++)
        vst1q_f32(t + i * 4, acc[i]);
}

static void few_Q2_K(const uint8_t *w, const panel_acts *x, int pairs, bool cold, float t[TILE])
{
    const int8_t *q = (const int8_t *)x->x + x->first * TILE_X;
    const float *d = act_d4(x->x, x->n) + x->first / BLOCK * 8;
    float32x4_t acc[8];
    (void)pairs;
    panel_begin(panel_before(x, t), acc);
    for (int64_t b = 0; b < x->cols / BLOCK; b++, w += BYTES, d += 8) {
        int8_t codes[BLOCK * LAYOUT_GROUP];
        minima m;
        if (cold)
            neon_hint(w, BYTES);
        unpack_block(w, codes, &m);
        add_block(codes, &m, q + b * BLOCK * TILE_X, d, acc);
    }
    for (int i = 0; i < 8; i++)
        vst1q_f32(t + i * 4, acc[i]);
}

FEW_KERNELS(Q2_K, ACT_Q8KX4, BLOCK, BYTES, tile, 4, NULL)
