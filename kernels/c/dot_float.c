/* dot_float.c - cores for weights stored as floats: F32, F16, BF16.
 *
 * Sixteen lanes, each the sum of every sixteenth product; a rest of fewer than sixteen is filled
 * up with zeros. */
#include "kernels/c/dot_impl.h"

enum { STEP = 16 };

typedef floats8 read_fn(const uint8_t *p);

typedef struct {
    floats8 low, high;
} lanes16;

LANES_INLINE lanes16 step_at(const uint8_t *p, size_t bytes, read_fn *read)
{
    return (lanes16){read(p), read(p + STEP / 2 * bytes)};
}

LANES_INLINE void add_step(lanes16 *s, const lanes16 *w, const float *x)
{
    s->low.a = floats_add_product(s->low.a, w->low.a, floats_at(x));
    s->low.b = floats_add_product(s->low.b, w->low.b, floats_at(x + 4));
    s->high.a = floats_add_product(s->high.a, w->high.a, floats_at(x + 8));
    s->high.b = floats_add_product(s->high.b, w->high.b, floats_at(x + 12));
}

LANES_INLINE float lanes16_sum(const lanes16 *s)
{
    return floats_sum(floats_add(floats_add(s->low.a, s->low.b), floats_add(s->high.a, s->high.b)));
}

LANES_INLINE void dot_float(const uint8_t *w, size_t bytes, read_fn *read, const void *const *x,
                            int64_t n, float *out, int rows)
{
    lanes16 s[4] = {0};
    int64_t whole = n / STEP * STEP;
    for (int64_t i = 0; i < whole; i += STEP, w += STEP * bytes) {
        if (bytes == sizeof(float))
            prefetch(w);
        const lanes16 f = step_at(w, bytes, read);
        for (int r = 0; r < rows; r++)
            add_step(&s[r], &f, (const float *)x[r] + i);
    }
    if (whole < n) {
        uint8_t rest[STEP * sizeof(float)] = {0};
        memcpy(rest, w, (size_t)(n - whole) * bytes);
        const lanes16 f = step_at(rest, bytes, read);
        for (int r = 0; r < rows; r++) {
            float y[STEP] = {0};
            memcpy(y, (const float *)x[r] + whole, (size_t)(n - whole) * sizeof *y);
            add_step(&s[r], &f, y);
        }
    }
    for (int r = 0; r < rows; r++)
        out[r] = lanes16_sum(&s[r]);
}

LANES_INLINE void dot_f32(const void *w, const void *const *x, int64_t n, float *out, int rows)
{
    dot_float(w, 4, floats8_at_f32, x, n, out, rows);
}
LANES_INLINE void dot_f16(const void *w, const void *const *x, int64_t n, float *out, int rows)
{
    dot_float(w, 2, floats8_at_f16, x, n, out, rows);
}
LANES_INLINE void dot_bf16(const void *w, const void *const *x, int64_t n, float *out, int rows)
{
    dot_float(w, 2, floats8_at_bf16, x, n, out, rows);
}

DOT_CORE(dot_f32)
DOT_CORE(dot_f16)
DOT_CORE(dot_bf16)

const dot_core dot_core_F32 = {ACT_F32, dot_f32_1, dot_f32_4, NULL};
const dot_core dot_core_F16 = {ACT_F32, dot_f16_1, dot_f16_4, NULL};
const dot_core dot_core_BF16 = {ACT_F32, dot_bf16_1, dot_bf16_4, NULL};
