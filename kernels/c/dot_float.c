/* dot_float.c - cores for weights of whole numbers: F32, F16, BF16.
 *
 * Sixteen lanes, each the sum of every sixteenth product; a rest of fewer than sixteen is filled
 * up with zeros. */
#include "kernels/c/dot_impl.h"

enum { STEP = 16 };

/* 16 numbers of a row to f32. */
typedef void widen_fn(const uint8_t *w, float *f);

LANES_INLINE void widen_f32(const uint8_t *w, float *f)
{
    memcpy(f, w, STEP * sizeof *f);
}

LANES_INLINE void widen_bf16(const uint8_t *w, float *f)
{
    uint16_t h[STEP];
    memcpy(h, w, sizeof h);
    for (int i = 0; i < STEP; i++) {
        uint32_t bits = (uint32_t)h[i] << 16;
        memcpy(f + i, &bits, sizeof bits);
    }
}

#if defined(__ARM_FP16_FORMAT_IEEE)
LANES_INLINE void widen_f16(const uint8_t *w, float *f)
{
    __fp16 h[STEP];
    memcpy(h, w, sizeof h);
    for (int i = 0; i < STEP; i++)
        f[i] = (float)h[i];
}
#else
/* Exponents lie 112 apart; the product also makes subnormals right. */
LANES_INLINE void widen_f16(const uint8_t *w, float *f)
{
    uint16_t h[STEP];
    memcpy(h, w, sizeof h);
    for (int i = 0; i < STEP; i++) {
        uint32_t bits = (h[i] & 0x7fffu) << 13, sign = (h[i] & 0x8000u) << 16;
        uint32_t special = (h[i] & 0x7c00u) == 0x7c00u ? 0x7f800000u : 0;
        float x;
        memcpy(&x, &bits, sizeof x);
        x *= 0x1p112f;
        memcpy(&bits, &x, sizeof x);
        bits |= special | sign;
        memcpy(f + i, &bits, sizeof bits);
    }
}
#endif

LANES_INLINE void add_step(const float *f, const float *x, f32x4 s[4])
{
    for (int v = 0; v < 4; v++)
        s[v] = floats_add_product(s[v], f + 4 * v, x + 4 * v);
}

LANES_INLINE void dot_float(const uint8_t *w, size_t bytes, widen_fn *widen, const void *const *x,
                            int64_t n, float *out, int rows)
{
    f32x4 s[4][4] = {0};
    float f[STEP];
    int64_t whole = n / STEP * STEP;
    for (int64_t i = 0; i < whole; i += STEP, w += STEP * bytes) {
        prefetch(w);
        widen(w, f);
        for (int r = 0; r < rows; r++)
            add_step(f, (const float *)x[r] + i, s[r]);
    }
    if (whole < n) {
        uint8_t rest[STEP * sizeof(float)] = {0};
        memcpy(rest, w, (size_t)(n - whole) * bytes);
        widen(rest, f);
        for (int r = 0; r < rows; r++) {
            float y[STEP] = {0};
            memcpy(y, (const float *)x[r] + whole, (size_t)(n - whole) * sizeof *y);
            add_step(f, y, s[r]);
        }
    }
    for (int r = 0; r < rows; r++)
        out[r] = floats_sum(floats_add(floats_add(s[r][0], s[r][1]), floats_add(s[r][2], s[r][3])));
}

LANES_INLINE void dot_f32(const void *w, const void *const *x, int64_t n, float *out, int rows)
{
    dot_float(w, 4, widen_f32, x, n, out, rows);
}
LANES_INLINE void dot_f16(const void *w, const void *const *x, int64_t n, float *out, int rows)
{
    dot_float(w, 2, widen_f16, x, n, out, rows);
}
LANES_INLINE void dot_bf16(const void *w, const void *const *x, int64_t n, float *out, int rows)
{
    dot_float(w, 2, widen_bf16, x, n, out, rows);
}

DOT_CORE(dot_f32)
DOT_CORE(dot_f16)
DOT_CORE(dot_bf16)

const dot_core dot_core_F32 = {ACT_F32, dot_f32_1, dot_f32_4};
const dot_core dot_core_F16 = {ACT_F32, dot_f16_1, dot_f16_4};
const dot_core dot_core_BF16 = {ACT_F32, dot_bf16_1, dot_bf16_4};
