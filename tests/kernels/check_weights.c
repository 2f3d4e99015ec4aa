/* check_weights.c - what kernels multiply: random weights of every type, and quantised activations. */
#include "tests/kernels/check.h"

#include <math.h>
#include <string.h>
#include "kernels/ref/dequant.h"

/* ---- weights ---- */

/* Where a block keeps its f16 scales, -1: nowhere; MXFP4 has an exponent byte at 0. */
static const struct {
    dtype type;
    int at[2];
} scale_at[] = {
    {DT_Q8_0, {0, -1}}, {DT_Q4_0, {0, -1}},   {DT_Q4_1, {0, 2}},    {DT_Q5_0, {0, -1}},
    {DT_Q5_1, {0, 2}},  {DT_IQ4_NL, {0, -1}}, {DT_Q2_K, {80, 82}},  {DT_Q3_K, {108, -1}},
    {DT_Q4_K, {0, 2}},  {DT_Q5_K, {0, 2}},    {DT_Q6_K, {208, -1}}, {DT_IQ4_XS, {0, -1}},
};

static void random_f16(check *c, uint8_t *p, float size)
{
    float x = check_number(c) * size;
    uint16_t h = f32_to_f16(x == 0 ? size : x);
    memcpy(p, &h, sizeof h);
}

static void random_block(check *c, dtype t, uint8_t *p)
{
    uint16_t half;
    float x = check_number(c);
    switch (t) {
    case DT_F32:
        memcpy(p, &x, sizeof x);
        return;
    case DT_F16:
    case DT_BF16:
        half = t == DT_F16 ? f32_to_f16(x) : f32_to_bf16(x);
        memcpy(p, &half, sizeof half);
        return;
    case DT_MXFP4:
        p[0] = (uint8_t)(118 + check_below(c, 8));
        return;
    default:
        for (size_t i = 0; i < sizeof scale_at / sizeof scale_at[0]; i++)
            for (int s = 0; s < 2 && scale_at[i].type == t; s++)
                if (scale_at[i].at[s] >= 0)
                    random_f16(c, p + scale_at[i].at[s], 0.03f);
    }
}

void check_spoil_block(check *c, dtype t, void *p)
{
    float x = check_rand(c) & 1 ? NAN : -INFINITY;
    uint16_t f16 = f32_to_f16(x), bf16 = f32_to_bf16(x);
    if (t == DT_F32)
        memcpy(p, &x, sizeof x);
    if (t == DT_F16 || t == DT_BF16)
        memcpy(p, t == DT_F16 ? &f16 : &bf16, sizeof f16);
    for (size_t i = 0; i < sizeof scale_at / sizeof scale_at[0]; i++)
        if (scale_at[i].type == t)
            memcpy((char *)p + scale_at[i].at[0], &f16, sizeof f16);
}

void *check_weights(check *c, dtype t, int64_t rows, int64_t n, int64_t *out_pitch)
{
    const dtype_row *d = dtype_row_of(t);
    int64_t blocks = n / d->elems, pitch = blocks * (int64_t)d->bytes + (check_packs() ? 0 : 6);
    int64_t skew = 1 + check_below(c, 32);
    /* noise is random codes already */
    uint8_t *w = check_alloc(c, (size_t)(rows * pitch), (size_t)(check_packs() ? 16 : skew));
    for (int64_t row = 0; row < rows; row++)
        for (int64_t b = 0; b < blocks; b++)
            random_block(c, t, w + row * pitch + b * (int64_t)d->bytes);
    check_unused_gaps(c, w, rows, pitch, blocks * (int64_t)d->bytes);
    *out_pitch = pitch;
    return w;
}

const void *check_interleaved(check *c, const kernel_row *row, dtype t, const void *stored,
                              int64_t pitch, int64_t m, int64_t n, int64_t *out_pitch)
{
    const char *w = stored;
    *out_pitch = pitch;
    if (row->layout == LAYOUT_STORED)
        return w;
    *out_pitch = LAYOUT_GROUP * n / dtype_row_of(t)->elems * (int64_t)dtype_row_of(t)->bytes;
    char *to = check_alloc(c, (size_t)(m / LAYOUT_GROUP * *out_pitch), 0);
    for (int64_t g = 0; g < m / LAYOUT_GROUP; g++) {
        const void *rows[LAYOUT_GROUP];
        for (int r = 0; r < LAYOUT_GROUP; r++)
            rows[r] = w + (g * LAYOUT_GROUP + r) * pitch;
        layout_interleave(row->layout, t, rows, n, to + g * *out_pitch);
    }
    return to;
}

/* ---- quantised activations ---- */

static const void *quantize_rows(check *c, kop op, kact act, const float *x, int64_t rows,
                                 int64_t n)
{
    int64_t group = act_group(act), n_group = (rows + group - 1) / group;
    size_t bytes = (size_t)(n_group * group * act_row_bytes(act, n));
    char *to = check_alloc(c, bytes, 0), *again = check_complement(c, to, bytes);
    kargs k = {.in = {x}, .out = {to}, .pitch = {n * 4}, .out_pitch = {act_row_bytes(act, n)}};
    k.size = (ksizes){.quantize = {rows, n}};
    k.choice.quantize.act = (int32_t)act;
    kernel_find(op, "ref")->fn(&k, &(kthread){.count = 1}, 0, n_group);
    k.out[0] = again;
    kernel_find(op, "ref")->fn(&k, &(kthread){.count = 1}, 0, n_group);
    check_unused_unwritten(c, to, again, bytes);
    return to;
}

/* Rows of numbers split into parts, and x as their sum. */
static const void *check_split(check *c, kact act, float *x, int64_t rows, int64_t n)
{
    int64_t group = act_group(act), parts = act_parts(act);
    const char *quantized =
        quantize_rows(c, group > 1 ? KOP_quantize4 : KOP_quantize, act, x, rows, n);
    for (int64_t row = 0; row < rows; row++)
        for (int64_t i = 0; i < n; i++) {
            const uint16_t *at =
                (const uint16_t *)(quantized + row / group * group * act_row_bytes(act, n));
            float part[3] = {0};
            for (int64_t p = 0; p < parts; p++)
                part[p] = bf16_to_f32(at[act_split_at(act, i, p, row % group)]);
            x[row * n + i] = part[0] + (part[1] + part[2]);
        }
    return quantized;
}

const void *check_quantized(check *c, kact act, float *x, int64_t rows, int64_t n,
                            int64_t *out_pitch)
{
    *out_pitch = act_row_bytes(act, n);
    if (act == ACT_F32)
        return x;
    if (act_is_split(act))
        return check_split(c, act, x, rows, n);
    kact single = act_block(act) == 32 ? ACT_Q8 : ACT_Q8K;
    const char *quantized = quantize_rows(c, KOP_quantize, single, x, rows, n);
    const void *own = quantized; /* of the same x */
    if (act != single)
        own = quantize_rows(c, act_group(act) == 1 ? KOP_quantize : KOP_quantize4, act, x, rows, n);
    for (int64_t row = 0; row < rows; row++, quantized += act_row_bytes(single, n))
        for (int64_t i = 0; i < n; i++)
            x[row * n + i] = act_d(quantized, n)[i / act_block(act)] * (float)act_q(quantized)[i];
    return own;
}
