/* check_rows.c - cases for what works row by row: norms, rope, softmax, combine, route, embed, and the ops
 * that only move numbers.
 *
 * Bounds, with U = 2^-24 for one rounding: the norms sum in double and round the inverse root and each
 * of at most four operations, so 8 U of what is added; rope's cosine and sine are right to 2 U, and two
 * products and a sum follow: 8 U of the magnitudes; in softmax the difference to the maximum is rounded,
 * which its size multiplies: (8 + |x - max|) U; combine adds K products: (K + 1) U of their
 * magnitudes. All others give the reference's bits. */
#include "tests/kernels/check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include "kernels/ref/dequant.h"

static const double U = 0x1p-24;

static const int64_t row_counts[] = {1, 2, 7, 33};

/* Rows of x as they are for the reference, and with gaps in between for the kernel. */
static void input_rows(check *c, check_case *out, int i, const void *x, int64_t rows, int64_t width,
                       bool gaps)
{
    int64_t bytes = width * 4;
    out->ref.in[i] = out->k.in[i] = x;
    out->ref.pitch[i] = out->k.pitch[i] = bytes;
    if (!gaps)
        return;
    int64_t pitch = bytes + 4 * (1 + check_below(c, 9));
    char *to = check_alloc(c, (size_t)(rows * pitch), 0);
    for (int64_t row = 0; row < rows; row++)
        memcpy(to + row * pitch, (const char *)x + row * bytes, (size_t)bytes);
    check_unused_gaps(c, to, rows, pitch, bytes);
    out->k.in[i] = to;
    out->k.pitch[i] = pitch;
}

#define SIZES(out, args, ...)                                                                      \
    (out)->ref.size = (out)->k.size = (ksizes)                                                     \
    {                                                                                              \
        .args = { __VA_ARGS__ }                                                                    \
    }
#define CHOICES(out, args, ...)                                                                    \
    (out)->ref.choice = (out)->k.choice = (kchoices)                                               \
    {                                                                                              \
        .args = { __VA_ARGS__ }                                                                    \
    }
#define SCALARS(out, args, ...)                                                                    \
    (out)->ref.scalar = (out)->k.scalar = (kscalars)                                               \
    {                                                                                              \
        .args = { __VA_ARGS__ }                                                                    \
    }

static float *result(check *c, check_case *out, int64_t rows, int64_t width)
{
    float *bound = check_numbers(c, rows * width);
    out->out[0] = (check_out){.type = DT_F32, .rows = rows, .width = width, .bound = bound};
    return bound;
}

/* ---- norms ---- */

typedef struct {
    int64_t vectors, width, w_rows;
    bool w, bias;
    float middle; /* what the numbers lie around */
} norm_shape;

static const norm_shape norms[] = {
    {1, 1, 1, true, true, 0},      {1, 7, 1, true, true, 0},      {1, 64, 1, true, false, 0},
    {3, 5, 3, true, true, 0},      {4, 16, 1, false, false, 0},   {5, 17, 5, true, false, 0},
    {8, 128, 1, true, true, 0},    {1, 2053, 1, true, true, 0},   {1, 4096, 1, true, true, 100},
    {2, 97, 1, false, true, 1000}, {16, 64, 16, true, true, 0.5}, {6, 33, 2, true, true, 0},
    {1, 640, 1, true, true, 0},    {2, 768, 2, false, false, 3},  {3, 516, 1, true, false, 0},
};
enum { N_NORM = sizeof norms / sizeof norms[0] };

static void norm_bound(const norm_shape *s, const float *x, const float *w, const float *bias,
                       bool centred, float *bound)
{
    double mean = 0, square = 0;
    for (int64_t i = 0; i < s->width; i++)
        mean += (double)x[i] / (double)s->width;
    mean = centred ? mean : 0;
    for (int64_t i = 0; i < s->width; i++)
        square += ((double)x[i] - mean) * ((double)x[i] - mean) / (double)s->width;
    for (int64_t i = 0; i < s->width; i++) {
        double y = fabs((double)x[i] - mean) / sqrt(square + 1e-5);
        y = (w ? y * fabs((double)w[i]) : y) + (bias ? fabs((double)bias[i]) : 0);
        bound[i] = (float)(8 * U * y + 1e-30);
    }
}

static bool norm_setup(check *c, int64_t rows, const norm_shape *s, bool centred, bool gaps,
                       check_case *out)
{
    int64_t width = s->vectors * s->width;
    float *x = check_numbers(c, rows * width);
    for (int64_t i = 0; i < rows * width; i++)
        x[i] += s->middle;
    input_rows(c, out, 0, x, rows, width, gaps);
    if (s->w)
        input_rows(c, out, 1, check_numbers(c, s->w_rows * s->width), s->w_rows, s->width, gaps);
    if (s->bias && centred)
        input_rows(c, out, 2, check_numbers(c, s->w_rows * s->width), s->w_rows, s->width, gaps);
    SIZES(out, norm, rows, s->vectors, s->width, s->w_rows);
    SCALARS(out, norm, 1e-5);
    float *bound = result(c, out, rows, width);
    const float *w = out->ref.in[1], *bias = out->ref.in[2];
    for (int64_t v = 0; v < rows * s->vectors; v++) {
        int64_t at = v % s->vectors % s->w_rows * s->width;
        norm_bound(s, x + v * s->width, w ? w + at : NULL, bias ? bias + at : NULL, centred,
                   bound + v * s->width);
    }
    out->cols = width;
    out->grain = s->width;
    out->inplace = !gaps;
    snprintf(out->shape, sizeof out->shape, "%d rows of %dx%d around %g", (int)rows,
             (int)s->vectors, (int)s->width, (double)s->middle);
    return true;
}

static bool rms_norm_make(check *c, const kernel_row *row, int i, check_case *out)
{
    (void)row;
    return i < N_NORM * 4 && norm_setup(c, row_counts[i / N_NORM], &norms[i % N_NORM], false,
                                        (i + i / N_NORM) % 2 == 0, out);
}

static bool layer_norm_make(check *c, const kernel_row *row, int i, check_case *out)
{
    (void)row;
    return i < N_NORM * 4 && norm_setup(c, row_counts[i / N_NORM], &norms[i % N_NORM], true,
                                        (i + i / N_NORM) % 2 == 0, out);
}

static bool norm_bench(check *c, const kernel_row *row, int i, check_case *out)
{
    static const norm_shape real[] = {{1, 4096, 1, true, true, 0}, {32, 128, 1, true, true, 0}};
    if (i > 1)
        return false;
    norm_setup(c, 16, &real[i], row->op == KOP_layer_norm, false, out);
    out->bytes = 16.0 * 4096 * 4 * 2;
    out->cols = 0;
    return true;
}

/* ---- rope ---- */

static bool rope_setup(check *c, int64_t rows, int64_t heads, int64_t width, int64_t pairs,
                       int32_t order, bool gaps, check_case *out)
{
    float *x = check_numbers(c, rows * heads * width), *freqs = check_numbers(c, pairs);
    static const int32_t pos_ends[] = {1000, 1 << 20, 1 << 24}; /* the last: beyond short cuts */
    int32_t *pos = check_ids(c, rows, pos_ends[check_below(c, 3)]);
    double factor = order == ROPE_HALF ? 1.0 : 1.25;
    for (int64_t i = 0; i < pairs; i++)
        freqs[i] = (float)pow(10000, -(double)i / (double)pairs);
    input_rows(c, out, 0, x, rows, heads * width, gaps);
    out->ref.in[1] = out->k.in[1] = pos;
    out->ref.in[2] = out->k.in[2] = freqs;
    SIZES(out, rope, rows, heads, width, pairs);
    SCALARS(out, rope, factor);
    CHOICES(out, rope, order);
    float *bound = result(c, out, rows, heads * width);
    for (int64_t v = 0; v < rows * heads; v++)
        for (int64_t i = 0; i < pairs; i++) {
            int64_t a = v * width + (order == ROPE_INTERLEAVED ? 2 * i : i);
            int64_t b = v * width + (order == ROPE_INTERLEAVED ? 2 * i + 1 : i + pairs);
            bound[a] = bound[b] =
                (float)(8 * U * factor * (fabs((double)x[a]) + fabs((double)x[b])) + 1e-30);
        }
    for (int64_t v = 0; v < rows * heads; v++)
        for (int64_t i = 2 * pairs; i < width; i++)
            bound[v * width + i] = 0; /* only moved */
    out->cols = heads * width;
    out->grain = width;
    out->inplace = !gaps;
    snprintf(out->shape, sizeof out->shape, "%d rows of %dx%d, %d pairs, order %d", (int)rows,
             (int)heads, (int)width, (int)pairs, order);
    return true;
}

static bool rope_make(check *c, const kernel_row *row, int i, check_case *out)
{
    static const struct {
        int64_t heads, width, pairs;
    } all[] = {{1, 2, 1},   {1, 4, 2},    {3, 7, 3},  {8, 64, 32},
               {5, 80, 16}, {2, 128, 64}, {1, 33, 9}, {1, 640, 128}};
    enum { N = sizeof all / sizeof all[0] };
    (void)row;
    return i < N * 8 && rope_setup(c, row_counts[i / N % 4], all[i % N].heads, all[i % N].width,
                                   all[i % N].pairs, 1 + i / N / 4, i % 2 == 0, out);
}

static bool rope_bench(check *c, const kernel_row *row, int i, check_case *out)
{
    (void)row;
    if (i > 1)
        return false;
    rope_setup(c, 16, 32, 128, 64, 1 + i, false, out);
    out->bytes = 16.0 * 32 * 128 * 4 * 2;
    out->cols = 0;
    return true;
}

/* ---- softmax ---- */

static bool softmax_make(check *c, const kernel_row *row, int i, check_case *out)
{
    static const int64_t vectors[] = {1, 3, 1, 5, 2, 1, 1},
                         widths[] = {1, 2, 15, 16, 33, 1000, 8191};
    (void)row;
    if (i >= 28)
        return false;
    int64_t rows = row_counts[i / 7], n = vectors[i % 7], width = widths[i % 7];
    float *x = check_numbers(c, rows * n * width), *bound = result(c, out, rows, n * width);
    for (int64_t v = 0; v < rows * n; v++) {
        float *xv = x + v * width, max = -INFINITY;
        double sum = 0;
        for (int64_t j = 0; j < width; j++) {
            xv[j] = check_below(c, 9) == 0 && width > 1 && j > 0 ? -INFINITY : xv[j] * 40;
            max = fmaxf(max, xv[j]);
        }
        for (int64_t j = 0; j < width; j++)
            sum += exp((double)xv[j] - (double)max);
        for (int64_t j = 0; j < width; j++) {
            double off = (double)xv[j] - (double)max, y = exp(off) / sum;
            bound[v * width + j] = (float)(isinf(off) ? 0 : (8 + fabs(off)) * U * y + 0x1p-148);
        }
        if (i % 5 == 4 && v == 0)
            xv[check_below(c, width)] = NAN;
    }
    input_rows(c, out, 0, x, rows, n * width, i % 2 == 0);
    SIZES(out, softmax, rows, n, width);
    out->out[0].strict = true;
    out->inplace = i % 2 != 0;
    snprintf(out->shape, sizeof out->shape, "%d rows of %dx%d", (int)rows, (int)n, (int)width);
    return true;
}

/* ---- combine ---- */

static bool combine_make(check *c, const kernel_row *row, int i, check_case *out)
{
    static const int64_t tops[] = {1, 2, 3, 8, 4, 6}, widths[] = {1, 15, 16, 33, 257, 1024};
    (void)row;
    if (i >= 24)
        return false;
    int64_t rows = row_counts[i / 6], top = tops[i % 6], d = widths[i % 6];
    float *y = check_numbers(c, rows * top * d), *w = check_numbers(c, rows * top);
    input_rows(c, out, 0, y, rows * top, d, i % 2 == 0);
    input_rows(c, out, 1, w, rows, top, i % 3 == 0);
    SIZES(out, combine, rows, top, d);
    float *bound = result(c, out, rows, d);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t e = 0; e < d; e++) {
            double sum = 0;
            for (int64_t j = r * top; j < (r + 1) * top; j++)
                sum += fabs((double)w[j] * (double)y[j * d + e]);
            bound[r * d + e] = (float)((double)(top + 1) * U * sum + 1e-30);
        }
    out->cols = d;
    out->grain = 1 + check_below(c, 20);
    snprintf(out->shape, sizeof out->shape, "%d rows, %d of %d", (int)rows, (int)top, (int)d);
    return true;
}

/* ---- route ---- */

static bool route_make(check *c, const kernel_row *row, int i, check_case *out)
{
    static const int64_t all[][4] = {/* E, K, groups, top_groups */
                                     {1, 1, 1, 1},  {8, 2, 1, 1},  {8, 8, 1, 1},   {60, 4, 1, 1},
                                     {64, 6, 8, 3}, {16, 5, 4, 1}, {128, 8, 1, 1}, {256, 8, 8, 4}};
    (void)row;
    if (i >= 64)
        return false;
    const int64_t *s = all[i % 8];
    int64_t rows = row_counts[i / 8 % 4];
    float *x = check_numbers(c, rows * s[0]);
    for (int64_t j = 0; j < rows * s[0]; j++) /* so coarse that some are alike */
        x[j] = i % 3 == 0 ? roundf(x[j] * 8) / 4 : x[j] * 5;
    if (i % 7 == 3)
        x[check_below(c, rows * s[0])] = NAN;
    input_rows(c, out, 0, x, rows, s[0], i % 2 == 0);
    if (i % 4 > 1)
        out->ref.in[1] = out->k.in[1] = check_numbers(c, s[0]);
    SIZES(out, route, rows, s[0], s[1], s[2], s[3]);
    SCALARS(out, route, 2.5);
    CHOICES(out, route, i / 8 % 4, i % 2, i / 4 % 2);
    out->out[0] = (check_out){.type = DT_I32, .rows = rows, .width = s[1]};
    out->out[1] = (check_out){.type = DT_F32, .rows = rows, .width = s[1]};
    snprintf(out->shape, sizeof out->shape, "%d rows, %d of %d, score %d", (int)rows, (int)s[1],
             (int)s[0], i / 8 % 4);
    return true;
}

/* ---- moves ---- */

static bool embed_make(check *c, const kernel_row *row, int i, check_case *out)
{
    dtype t = row->type == DT_COUNT ? (dtype)(i / 4) : row->type;
    if (i >= DT_COUNT * 4)
        return false;
    if (!dequant_has(t))
        t = DT_F32;
    int64_t rows = row_counts[i % 4], elems = dtype_row_of(t)->elems;
    int64_t vocab = row->layout == LAYOUT_STORED ? 13 : 3 * LAYOUT_GROUP;
    int64_t d = elems == 1 ? 64 + i % 5 : elems * 3;
    kargs *k = &out->ref;
    k->in[0] = check_weights(c, t, vocab, d, &k->pitch[0]);
    k->type[0] = t;
    k->in[1] = check_ids(c, rows, vocab);
    out->k = *k;
    out->k.in[0] = check_interleaved(c, row, t, k->in[0], k->pitch[0], vocab, d, &out->k.pitch[0]);
    SIZES(out, embed, rows, d, vocab);
    out->out[0] = (check_out){.type = DT_F32, .rows = rows, .width = d};
    snprintf(out->shape, sizeof out->shape, "%s, %d rows of %d", dtype_row_of(t)->name, (int)rows,
             (int)d);
    return true;
}

static bool split_make(check *c, const kernel_row *row, int i, check_case *out)
{
    static const int64_t all[][4] = {/* vectors, width, first, width of out */
                                     {1, 1, 0, 1},
                                     {1, 100, 33, 17},
                                     {3, 7, 2, 4},
                                     {8, 96, 32, 64},
                                     {5, 9, 0, 9}};
    (void)row;
    if (i >= 20)
        return false;
    const int64_t *s = all[i % 5];
    int64_t rows = row_counts[i / 5];
    input_rows(c, out, 0, check_numbers(c, rows * s[0] * s[1]), rows, s[0] * s[1], i % 2);
    SIZES(out, split, rows, s[0], s[1], s[2], s[3]);
    out->out[0] = (check_out){.type = DT_F32, .rows = rows, .width = s[0] * s[3]};
    snprintf(out->shape, sizeof out->shape, "%d rows, [%d..] of %dx%d", (int)rows, (int)s[2],
             (int)s[0], (int)s[1]);
    return true;
}

static bool concat_make(check *c, const kernel_row *row, int i, check_case *out)
{
    static const int64_t all[][3] = {{1, 1, 1}, {3, 7, 2}, {1, 64, 33}, {8, 128, 64}};
    (void)row;
    if (i >= 16)
        return false;
    const int64_t *s = all[i % 4];
    int64_t rows = row_counts[i / 4];
    input_rows(c, out, 0, check_numbers(c, rows * s[0] * s[1]), rows, s[0] * s[1], i % 2);
    input_rows(c, out, 1, check_numbers(c, rows * s[0] * s[2]), rows, s[0] * s[2], i % 3 == 0);
    SIZES(out, concat, rows, s[0], s[1], s[2]);
    out->out[0] = (check_out){.type = DT_F32, .rows = rows, .width = s[0] * (s[1] + s[2])};
    snprintf(out->shape, sizeof out->shape, "%d rows of %dx(%d + %d)", (int)rows, (int)s[0],
             (int)s[1], (int)s[2]);
    return true;
}

static bool take_rows_make(check *c, const kernel_row *row, int i, check_case *out)
{
    static const int64_t widths[] = {1, 15, 64, 257};
    (void)row;
    if (i >= 16)
        return false;
    int64_t n_out = row_counts[i / 4], n_tok = n_out * 2 + 1, width = widths[i % 4];
    kbatch *b = check_batch(c, &(kbatch){.n_tok = n_tok, .n_out = n_out});
    const int32_t *odd = check_ids(c, n_out, 2);
    for (int64_t j = 0; j < n_out; j++)
        kbatch_room(b, KBATCH_OUT)[j] = odd[j] + (int32_t)(2 * j); /* ascending */
    input_rows(c, out, 0, check_numbers(c, n_tok * width), n_tok, width, i % 2);
    out->ref.batch = out->k.batch = b;
    SIZES(out, take_rows, n_out, width);
    out->out[0] = (check_out){.type = DT_F32, .rows = n_out, .width = width};
    snprintf(out->shape, sizeof out->shape, "%d of %d rows of %d", (int)n_out, (int)n_tok,
             (int)width);
    return true;
}

static bool at_pos_make(check *c, const kernel_row *row, int i, check_case *out)
{
    static const int64_t lengths[] = {1, 5, 100};
    (void)row;
    if (i >= 12)
        return false;
    int64_t rows = row_counts[i / 3], n = lengths[i % 3];
    kargs *k = &out->ref;
    k->in[0] = check_numbers(c, n);
    k->in[1] = check_ids(c, rows, 2 * n);
    out->k = *k;
    SIZES(out, at_pos, rows, n);
    out->out[0] = (check_out){.type = DT_F32, .rows = rows, .width = 1};
    snprintf(out->shape, sizeof out->shape, "%d rows, %d numbers", (int)rows, (int)n);
    return true;
}

const check_op check_ops_rows[] = {
    {KOP_rms_norm, rms_norm_make, norm_bench},
    {KOP_layer_norm, layer_norm_make, norm_bench},
    {KOP_rope, rope_make, rope_bench},
    {KOP_softmax, softmax_make, NULL},
    {KOP_combine, combine_make, NULL},
    {KOP_route, route_make, NULL},
    {KOP_embed, embed_make, NULL},
    {KOP_split, split_make, NULL},
    {KOP_concat, concat_make, NULL},
    {KOP_take_rows, take_rows_make, NULL},
    {KOP_at_pos, at_pos_make, NULL},
    {0},
};
