/* block256_i8mm.c - woven weights with a scale for each 256 columns, for many rows.
 *
 * The sums of 256 columns are whole numbers. Minima multiply the sums of the activations over 32 columns, eight
 * of them to a row: what smmla takes, once with the low bits of the sums and once with the high.
 *
 * GFLOP/s of one Neoverse V1 core at 64 rows of 2048 columns: Q4_K 240, Q5_K 230, Q6_K 240. */
#include "kernels/kernel_decls.h"

#include "kernels/neon/panel.h"

enum { BLOCK = 256 };

NEON_INLINE void spread(const float32x4_t w[2], float *to)
{
    for (int i = 0; i < 2; i++) {
        vst1q_f32(to + i * 8, vzip1q_f32(w[i], w[i]));
        vst1q_f32(to + i * 8 + 4, vzip2q_f32(w[i], w[i]));
    }
}

/* Scales of a group, of eight rows, to [4 pairs][4]. */
NEON_INLINE void spread_scales(const uint8_t *scale, bool is_signed, int32_t *to)
{
    int16x8_t s = is_signed ? vmovl_s8(vld1_s8((const int8_t *)scale))
                            : vreinterpretq_s16_u16(vmovl_u8(vld1_u8(scale)));
    int32x4_t w[2] = {vmovl_s16(vget_low_s16(s)), vmovl_high_s16(s)};
    for (int i = 0; i < 2; i++) {
        vst1q_s32(to + i * 8, vzip1q_s32(w[i], w[i]));
        vst1q_s32(to + i * 8 + 4, vzip2q_s32(w[i], w[i]));
    }
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

NEON_INLINE void unpack_block(const uint8_t *w, int8_t *q, panel256_block *p, const woven256 *t)
{
    uint8_t scale6[64], min6[64];
    const uint8_t *scales = t->has_min ? scale6 : w + 16;
    float32x4_t d[2];
    neon_halves(w, d);
    for (int i = 0; i < 2 && t->zero == 0; i++)
        d[i] = vmulq_n_f32(d[i], 1.0f / (float)(1 << t->shift));
    spread(d, p->d);
    if (t->has_min) {
        neon_halves(w + 16, d);
        spread(d, p->dmin);
        code_scales6(w + 32, scale6, min6);
        turn(min6, p->min);
    }
    for (int g = 0; g < t->groups; g++)
        spread_scales(scales + g * 8, !t->has_min, p->scale + g * 16);
    for (int i = 0; i < 16; i++) {
        int8x16_t v[8];
        t->codes(w + t->codes_at + i / 2 * t->sub_bytes, i % 2, v);
        for (int j = 0; j < 8; j++) {
            if (t->zero) /* as it was stored: the minima are then the type's own */
                v[j] = vaddq_s8(vshrq_n_s8(v[j], 3), vdupq_n_s8((int8_t)t->zero));
            vst1q_s8(q + i / 2 * 256 + j % 4 * 64 + (i % 2 * 2 + j / 4) * 16, v[j]);
        }
    }
}

NEON_INLINE void unpack(const uint8_t *w, int64_t cols, void *panel, const woven256 *t)
{
    panel256 *p = panel;
    for (int64_t b = 0; b < cols / BLOCK; b++, w += t->bytes) {
        neon_hint(w, t->bytes);
        unpack_block(w, p->q + b * BLOCK * LAYOUT_GROUP, &p->block[b], t);
    }
}

NEON_INLINE void tile(const void *panel, const char *x, int64_t n, int64_t first, int64_t cols,
                      float t[TILE], const woven256 *type)
{
    const panel256 *p = panel;
    const float *d = act_d4(x, n) + first / BLOCK * 8;
    const int8_t *sums = (const int8_t *)act_sum4(ACT_Q8KX4, x, n) + first / BLOCK * 64;
    const int8_t *q = (const int8_t *)x + first * TILE_X;
    if (type->has_min)
        panel_tile256_min(p->q, p->block, q, d, sums, cols / BLOCK, t);
    else
        panel_tile256_groups16(p->q, p->block, q, d, cols / BLOCK, t);
}

#define KERNELS(type, size)                                                                        \
    static void unpack_##type(const uint8_t *w, int64_t cols, void *panel)                         \
    {                                                                                              \
        unpack(w, cols, panel, &woven_##type);                                                     \
    }                                                                                              \
    static void tile_##type(const void *panel, const char *x, int64_t n, int64_t first,            \
                            int64_t cols, float t[TILE])                                           \
    {                                                                                              \
        tile(panel, x, n, first, cols, t, &woven_##type);                                          \
    }                                                                                              \
    static const panel_core core_##type = {BLOCK, size, unpack_##type, tile_##type};               \
    void k_linear_##type##_FEW_i8mm(const kargs *k, const kthread *t, int64_t begin, int64_t end)  \
    {                                                                                              \
        panel_linear(k, t, begin, end, &core_##type);                                              \
    }                                                                                              \
    void k_linear_##type##_MANY_i8mm(const kargs *k, const kthread *t, int64_t begin, int64_t end) \
    {                                                                                              \
        panel_linear(k, t, begin, end, &core_##type);                                              \
    }
/* clang-format off */
KERNELS(Q4_K, 1152)
KERNELS(Q5_K, 1408)
KERNELS(Q6_K, 1680)
/* clang-format on */
