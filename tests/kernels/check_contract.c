/* check_contract.c - cases for linear, experts, head_linear, quantize and quantize4.
 *
 * Bound of a contraction. u = 2^-24 is the error of one rounding. A kernel adds its products in lanes:
 * at most n / 16 additions follow each other in a lane, and a few more join lanes, scales and bias, so
 * that the sum is off by at most (n / 16 + 16) u times the sum of magnitudes. Stored numbers of the form
 * d * code - m round on the way, relative to the largest of their block rather than to themselves; twice
 * that largest stands for d * code and m, which random codes come near. Kernels that take activations as bf16 round
 * such numbers to it, each by up to 2^-8 of itself. Quantised activations are not an error here: the reference is given the
 * numbers they stand for. */
#include "tests/kernels/check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include "kernels/ref/dequant.h"

static const float U = 0x1p-24f;

typedef struct {
    int64_t rows, m, n;
} shape;

/* In blocks of the type where it has some: n is rounded up to whole ones. */
static const shape shapes[] = {
    {1, 1, 1},     {1, 3, 15},    {2, 5, 16},     {3, 4, 17},    {4, 31, 32},    {5, 33, 31},
    {7, 13, 97},   {33, 7, 64},   {37, 9, 256},   {1, 127, 512}, {4, 64, 1024},  {6, 17, 2048},
    {1, 40, 8192}, {2, 1, 896},   {8, 24, 96},    {9, 41, 160},  {6, 8, 4352},   {35, 5, 4352},
    {515, 5, 32},  {14, 16, 608}, {16, 24, 1312}, {17, 40, 768}, {32, 24, 1536}, {1, 80, 896},
    {1, 32, 4096}, {1, 48, 2880}, {1, 16, 14336},
};
enum { N_SHAPE = sizeof shapes / sizeof shapes[0] };

static const dtype any_types[] = {DT_Q4_K, DT_Q8_0, DT_F16, DT_F32, DT_Q5_1};

/* A row's own type, or one of several for a row that takes any. */
static dtype type_of(const kernel_row *row, int i)
{
    int n = (int)(sizeof any_types / sizeof any_types[0]);
    return row->type == DT_COUNT ? any_types[i % n] : row->type;
}

static shape shape_of(dtype t, int i)
{
    shape s = shapes[i];
    int64_t elems = dtype_row_of(t)->elems;
    s.n = (s.n + elems - 1) / elems * elems;
    return s;
}

/* For one weight row: twice the largest magnitude of each block's numbers, at each number. */
static void magnitudes(dtype t, const void *w, int64_t n, float *to)
{
    int64_t block = dtype_row_of(t)->elems;
    dequant_row(t, w, to, n);
    if (block == 1) {
        for (int64_t i = 0; i < n; i++)
            to[i] = fabsf(to[i]);
        return;
    }
    for (int64_t i = 0; i < n; i += block) {
        float max = 0;
        for (int64_t j = 0; j < block; j++)
            max = fmaxf(max, fabsf(to[i + j]));
        for (int64_t j = 0; j < block; j++)
            to[i + j] = 2 * max;
    }
}

/* What a kernel may be off by. */
typedef struct {
    float *w;     /* [n]: the magnitudes of a weight row */
    float *own;   /* [n]: its numbers, where the kernel rounds them; or NULL */
    double round; /* by so much of their products */
} limits;

static limits limits_make(check *c, const kernel_row *row, dtype t, int64_t n)
{
    /* As one bf16; or as two of which the second ones are not multiplied with second parts of activations, 2^-8 of either. */
    const double round = row->act == ACT_BF1 && t != DT_BF16                           ? 0x1p-8
                         : act_rounds_near(row->act) && t == DT_F16 && row->most <= 64 ? 0x1p-16
                                                                                       : 0;
    return (limits){check_numbers(c, n), round > 0 ? check_numbers(c, n) : NULL, round};
}

static void limits_of(limits *l, dtype t, const void *w, int64_t n)
{
    magnitudes(t, w, n, l->w);
    if (l->own)
        dequant_row(t, w, l->own, n);
}

static float bound_of(const float *x, const limits *l, int64_t n, const float *bias)
{
    double sum = bias ? fabs((double)*bias) : 0, rounded = 0;
    for (int64_t i = 0; i < n; i++)
        sum += fabs((double)x[i]) * (double)l->w[i];
    for (int64_t i = 0; i < n && l->own; i++)
        rounded += fabs((double)x[i] * (double)l->own[i]);
    return (float)((double)(n / 16 + 16) * (double)U * sum + l->round * rounded) + 1e-30f;
}

/* Now and then a number that is none, or infinite: it must come through. */
static void spoil(check *c, float *x, int64_t n, int i)
{
    if (i % 5 == 4)
        x[check_below(c, n)] = i % 2 ? NAN : INFINITY;
}

/* The same in a weight. */
static void spoil_weight(check *c, dtype t, void *w, int64_t pitch, shape s, int i)
{
    const dtype_row *d = dtype_row_of(t);
    int64_t row = check_below(c, s.m), block = check_below(c, s.n / d->elems);
    if (i % 5 == 3)
        check_spoil_block(c, t, (char *)w + row * pitch + block * (int64_t)d->bytes);
}

/* Rows of a matrix, and what a tile of its columns is a multiple of. */
static int64_t whole_groups(const kernel_row *row, int64_t m)
{
    return row->layout == LAYOUT_STORED ? m : (m + LAYOUT_GROUP - 1) / LAYOUT_GROUP * LAYOUT_GROUP;
}
static int64_t grain_of(const kernel_row *row)
{
    return row->layout == LAYOUT_STORED ? 1 : LAYOUT_GROUP;
}

/* The fields that ref and kernel share are in out->ref; here the kernel gets its own x. */
static void finish(check *c, const kernel_row *row, check_case *out, float *x, int64_t vectors,
                   int64_t n)
{
    const void *quantized = check_quantized(c, row->act, x, vectors, n, &out->k.pitch[0]);
    int64_t pitch = out->k.pitch[0];
    out->k = out->ref;
    out->k.in[0] = quantized;
    out->k.pitch[0] = pitch;
    out->ref.in[0] = x;
    out->ref.pitch[0] = n * 4;
}

static void linear_setup(check *c, const kernel_row *row, dtype t, shape s, bool bias, int spoiled,
                         check_case *out)
{
    float *x = check_numbers(c, s.rows * s.n);
    kargs *k = &out->ref;
    s.m = whole_groups(row, s.m);
    snprintf(out->shape, sizeof out->shape, "%s %lldx%lld, %lld rows", dtype_row_of(t)->name,
             (long long)s.m, (long long)s.n, (long long)s.rows);
    spoil(c, x, s.rows * s.n, spoiled);
    void *w = check_weights(c, t, s.m, s.n, &k->pitch[1]);
    spoil_weight(c, t, w, k->pitch[1], s, spoiled);
    k->in[1] = w;
    k->type[1] = t;
    if (bias)
        k->in[2] = check_numbers(c, s.m);
    k->size = (ksizes){.linear = {s.rows, s.m, s.n}};
    finish(c, row, out, x, s.rows, s.n);
    out->k.in[1] = check_interleaved(c, row, t, w, k->pitch[1], s.m, s.n, &out->k.pitch[1]);
    out->out[0] = (check_out){.type = DT_F32, .rows = s.rows, .width = s.m};
    out->cols = s.m;
    out->grain = grain_of(row);
}

static bool linear_make(check *c, const kernel_row *row, int i, check_case *out)
{
    if (i >= N_SHAPE)
        return false;
    dtype t = type_of(row, i);
    shape s = shape_of(t, i);
    linear_setup(c, row, t, s, i % 2, i, out);
    const kargs *k = &out->ref;
    s.m = k->size.linear.out;
    limits w = limits_make(c, row, t, s.n);
    float *bound = check_numbers(c, s.rows * s.m);
    for (int64_t j = 0; j < s.m; j++) {
        const float *bias = k->in[2] ? (const float *)k->in[2] + j : NULL;
        limits_of(&w, t, (const char *)k->in[1] + j * k->pitch[1], s.n);
        for (int64_t r = 0; r < s.rows; r++)
            bound[r * s.m + j] = bound_of((const float *)k->in[0] + r * s.n, &w, s.n, bias);
    }
    out->out[0].bound = bound;
    return true;
}

/* Llama 1B's widest matrix, as decode and as prefill meet it. */
static bool linear_bench(check *c, const kernel_row *row, int i, check_case *out)
{
    static const int64_t rows[] = {1, 4, 16, 64};
    if (i >= (int)(sizeof rows / sizeof rows[0]))
        return false;
    shape s = {rows[i], i ? 1024 : 8192, 2048};
    dtype t = type_of(row, 0);
    linear_setup(c, row, t, s, false, 0, out);
    out->bytes = (double)(s.m / grain_of(row) * out->k.pitch[1]);
    out->flops = 2.0 * (double)s.rows * (double)s.m * (double)s.n;
    return true;
}

/* Matrices for the reference; returns them as the kernel wants them, whose pitch is out->k.pitch[1]. */
static const void *table_make(check *c, const kernel_row *row, dtype t, int64_t count, int64_t m,
                              int64_t n, check_case *out)
{
    const void **stored = check_alloc(c, (size_t)count * sizeof *stored, 0);
    const void **own = check_alloc(c, (size_t)count * sizeof *own, 0);
    for (int64_t e = 0; e < count; e++) {
        stored[e] = check_weights(c, t, m, n, &out->ref.pitch[1]);
        own[e] = check_interleaved(c, row, t, stored[e], out->ref.pitch[1], m, n, &out->k.pitch[1]);
    }
    out->ref.in[1] = stored;
    return own;
}

typedef struct {
    int64_t rows, top, m, n, experts;
    bool each;
} expert_shape;

static void experts_setup(check *c, const kernel_row *row, dtype t, const expert_shape *s, int i,
                          check_case *out)
{
    int64_t slots = s->rows * s->top, vectors = s->each ? slots : s->rows;
    float *x = check_numbers(c, vectors * s->n);
    kargs *k = &out->ref;
    snprintf(out->shape, sizeof out->shape, "%s %lldx%lld, %lld rows, %lld of %lld%s",
             dtype_row_of(t)->name, (long long)s->m, (long long)s->n, (long long)s->rows,
             (long long)s->top, (long long)s->experts, s->each ? ", x each" : "");
    spoil(c, x, vectors * s->n, i);
    const void *table = table_make(c, row, t, s->experts, s->m, s->n, out);
    int64_t pitch = out->k.pitch[1];
    k->type[1] = t;
    k->in[2] = check_ids(c, slots, s->experts);
    if (i % 2) {
        k->in[3] = check_numbers(c, s->experts * s->m);
        k->pitch[3] = s->m * 4;
    }
    k->size = (ksizes){.experts = {s->rows, s->top, s->m, s->n, s->each ? s->top : 1, s->experts}};
    finish(c, row, out, x, vectors, s->n);
    out->k.in[1] = table;
    out->k.pitch[1] = pitch;
    out->out[0] = (check_out){.type = DT_F32, .rows = slots, .width = s->m};
    out->cols = s->m;
    out->grain = grain_of(row);
}

static bool experts_make(check *c, const kernel_row *row, int i, check_case *out)
{
    static const expert_shape all[] = {
        {1, 1, 1, 1, 1, false},
        {1, 2, 7, 32, 8, false},
        {3, 2, 17, 64, 4, true},
        {5, 4, 33, 256, 8, false},
        {40, 2, 5, 96, 2, false},
        {11, 8, 16, 512, 60, true},
        {300, 1, 5, 64, 2, false},
        {1, 4, 48, 2880, 5, false},
        {1, 3, 80, 2880, 4, true},
        {1, 2, 19, 4096, 3, false},
        {1, 2, 16, 14336, 2, true},
        {1, 6, 33, 2880, 8, true},
        /* For kernels of few rows alone: one expert for all, one for each, columns that end within a chunk. */
        {2, 1, 16, 256, 1, false},
        {8, 8, 8, 768, 64, true},
        {64, 8, 24, 512, 64, false},
        {33, 2, 19, 800, 3, true},
        {9, 4, 35, 2880, 12, false},
        {16, 1, 100, 2048, 64, false},
    };
    enum { ALL = sizeof all / sizeof all[0], ANY_ROWS = 12 };
    if (i >= (row->most > 1 && row->most < INT64_MAX ? ALL : ANY_ROWS))
        return false;
    dtype t = type_of(row, i);
    expert_shape s = all[i];
    int64_t elems = dtype_row_of(t)->elems;
    s.n = (s.n + elems - 1) / elems * elems;
    s.m = whole_groups(row, s.m);
    experts_setup(c, row, t, &s, i, out);
    const kargs *k = &out->ref;
    const char *const *table = k->in[1];
    const int32_t *ids = k->in[2];
    limits w = limits_make(c, row, t, s.n);
    float *bound = check_numbers(c, s.rows * s.top * s.m);
    for (int64_t slot = 0; slot < s.rows * s.top; slot++)
        for (int64_t j = 0; j < s.m; j++) {
            const float *bias = k->in[3] ? (const float *)k->in[3] + ids[slot] * s.m + j : NULL;
            const float *x = (const float *)k->in[0] + (s.each ? slot : slot / s.top) * s.n;
            limits_of(&w, t, table[ids[slot]] + j * k->pitch[1], s.n);
            bound[slot * s.m + j] = bound_of(x, &w, s.n, bias);
        }
    out->out[0].bound = bound;
    return true;
}

/* An expert layer of a small mixture of experts. */
static bool experts_bench(check *c, const kernel_row *row, int i, check_case *out)
{
    static const int64_t rows[] = {1, 32};
    if (i >= 2)
        return false;
    expert_shape s = {rows[i], 4, 768, 2048, 16, false};
    experts_setup(c, row, type_of(row, 0), &s, 0, out);
    out->flops = 2.0 * (double)(s.rows * s.top * s.m) * (double)s.n;
    out->bytes =
        (double)((s.rows == 1 ? s.top : s.experts) * s.m / grain_of(row) * out->k.pitch[1]);
    return true;
}

static void head_setup(check *c, const kernel_row *row, dtype t, int64_t rows, int64_t heads,
                       int64_t m, int64_t n, int i, check_case *out)
{
    float *x = check_numbers(c, rows * heads * n);
    kargs *k = &out->ref;
    snprintf(out->shape, sizeof out->shape, "%s %lldx%lld, %lld rows of %lld heads",
             dtype_row_of(t)->name, (long long)m, (long long)n, (long long)rows, (long long)heads);
    spoil(c, x, rows * heads * n, i);
    const void *table = table_make(c, row, t, heads, m, n, out);
    int64_t pitch = out->k.pitch[1];
    k->type[1] = t;
    if (i % 2) {
        k->in[2] = check_numbers(c, heads * m);
        k->pitch[2] = m * 4;
    }
    k->size = (ksizes){.head_linear = {rows, heads, m, n}};
    finish(c, row, out, x, rows * heads, n);
    out->k.in[1] = table;
    out->k.pitch[1] = pitch;
    out->out[0] = (check_out){.type = DT_F32, .rows = rows * heads, .width = m};
    out->cols = heads * m;
    out->grain = m;
}

static bool head_linear_make(check *c, const kernel_row *row, int i, check_case *out)
{
    static const struct {
        int64_t rows, heads, m, n;
    } all[] = {{1, 1, 1, 1}, {3, 2, 5, 32}, {6, 7, 9, 64}, {1, 16, 16, 128}, {35, 3, 4, 256}};
    if (i >= (int)(sizeof all / sizeof all[0]))
        return false;
    dtype t = type_of(row, i + 1);
    int64_t elems = dtype_row_of(t)->elems, heads = all[i].heads, m = all[i].m;
    int64_t n = (all[i].n + elems - 1) / elems * elems, vectors = all[i].rows * heads;
    head_setup(c, row, t, all[i].rows, heads, m, n, i, out);
    const kargs *k = &out->ref;
    const char *const *table = k->in[1];
    limits w = limits_make(c, row, t, n);
    float *bound = check_numbers(c, vectors * m);
    for (int64_t v = 0; v < vectors; v++)
        for (int64_t j = 0; j < m; j++) {
            const float *bias = k->in[2] ? (const float *)k->in[2] + v % heads * m + j : NULL;
            limits_of(&w, t, table[v % heads] + j * k->pitch[1], n);
            bound[v * m + j] = bound_of((const float *)k->in[0] + v * n, &w, n, bias);
        }
    out->out[0].bound = bound;
    return true;
}

static bool head_linear_bench(check *c, const kernel_row *row, int i, check_case *out)
{
    if (i > 0)
        return false;
    head_setup(c, row, DT_F16, 1, 16, 512, 128, 0, out);
    out->bytes = (double)(16 * 512 * out->ref.pitch[1]);
    out->flops = 2.0 * 16 * 512 * 128;
    return true;
}

/* Blocks of all sorts: large and tiny numbers, none but zeros, halves that tie, none that is finite. */
static void quantize_numbers(check *c, float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i += 32) {
        int kind = (int)check_below(c, 8);
        float size = ldexpf(1, (int)check_below(c, 240) - 120);
        for (int64_t j = i; j < i + 32; j++)
            x[j] = kind == 0   ? 0
                   : kind == 1 ? ldexpf((float)(check_rand(c) & 15), -149)
                   : kind == 2 ? (float)(check_below(c, 255) - 127) / 2
                               : check_number(c) * size;
        if (kind == 3)
            x[i + check_below(c, 32)] = check_rand(c) & 1 ? NAN : -INFINITY;
    }
}

static void quantize_setup(check *c, kact act, int64_t rows, int64_t n, check_case *out)
{
    kargs *k = &out->ref;
    int64_t whole = (rows * n + 31) / 32 * 32; /* what quantize_numbers writes */
    float *x = check_numbers(c, whole);
    int64_t group = act_group(act), groups = (rows + group - 1) / group;
    snprintf(out->shape, sizeof out->shape, "%s %lld, %lld rows",
             act_is_split(act)      ? "split"
             : act_block(act) == 32 ? "Q8"
                                    : "Q8K",
             (long long)n, (long long)rows);
    quantize_numbers(c, x, whole);
    k->in[0] = x;
    k->pitch[0] = n * 4;
    k->size = (ksizes){.quantize = {rows, n}};
    k->choice.quantize.act = (int32_t)act;
    out->k = *k;
    out->out[0] = (check_out){
        .type = DT_U8, .rows = groups * group, .width = act_row_bytes(act, n), .fixed_pitch = true};
    out->cols = group == 1 ? n : 0; /* interleaved rows are quantised by groups of them alone */
    out->grain = 256;
}

static bool quantize_make(check *c, const kernel_row *row, int i, check_case *out)
{
    static const struct {
        kact act;
        int64_t rows, n;
    } all[] = {
        {ACT_Q8, 1, 32},     {ACT_Q8, 3, 96},      {ACT_Q8, 2, 256},    {ACT_Q8, 5, 288},
        {ACT_Q8, 2, 896},    {ACT_Q8, 1, 8192},    {ACT_Q8K, 1, 256},   {ACT_Q8K, 3, 512},
        {ACT_Q8K, 2, 1792},  {ACT_Q8K, 7, 2048},   {ACT_Q8K, 1, 8192},  {ACT_BF3T, 1, 1},
        {ACT_BF3T, 2, 37},   {ACT_BF3, 3, 2048},   {ACT_BF3X4, 1, 5},   {ACT_BF3X4, 6, 300},
        {ACT_BF3X4, 3, 256}, {ACT_BF3, 2, 300},    {ACT_Q8D, 3, 96},    {ACT_Q8D, 1, 2048},
        {ACT_Q8KD, 2, 768},  {ACT_BF1, 3, 13},     {ACT_BF1, 2, 2048},  {ACT_BF1, 1, 300},
        {ACT_BF2T, 1, 1},    {ACT_BF2T, 2, 37},    {ACT_BF2T, 3, 512},  {ACT_BF3T, 3, 512},
        {ACT_Q8X4, 1, 32},   {ACT_Q8X4, 3, 96},    {ACT_Q8X4, 9, 256},  {ACT_Q8X4, 5, 288},
        {ACT_Q8X4, 1, 8192}, {ACT_Q8KX4, 1, 256},  {ACT_Q8KX4, 3, 512}, {ACT_Q8KX4, 7, 2048},
        {ACT_BF1X4, 4, 19},  {ACT_BF1X4, 3, 2048}, {ACT_BF1X4, 5, 300},
    };
    bool rows84 = row->op == KOP_quantize4;
    int n = (int)(sizeof all / sizeof all[0]), at = 0;
    for (; at < n; at++)
        if ((act_group(all[at].act) > 1) == rows84 && i-- == 0)
            break;
    if (at < n)
        quantize_setup(c, all[at].act, all[at].rows, all[at].n, out);
    return at < n;
}

static bool quantize_bench(check *c, const kernel_row *row, int i, check_case *out)
{
    bool rows84 = row->op == KOP_quantize4;
    static const kact acts[2][5] = {{ACT_Q8, ACT_Q8K, ACT_Q8D, ACT_BF1, ACT_BF3},
                                    {ACT_Q8X4, ACT_Q8KX4, ACT_BF1X4, ACT_BF3X4, ACT_F32}};
    if (i > 4 || acts[rows84][i] == ACT_F32)
        return false;
    quantize_setup(c, acts[rows84][i], 16, 8192, out);
    for (int64_t j = 0; j < 16 * 8192; j++)
        ((float *)out->ref.in[0])[j] = check_number(c);
    out->bytes = 16.0 * 8192 * 4;
    return true;
}

const check_op check_ops_contract[] = {
    {KOP_linear, linear_make, linear_bench},
    {KOP_experts, experts_make, experts_bench},
    {KOP_head_linear, head_linear_make, head_linear_bench},
    {KOP_quantize, quantize_make, quantize_bench},
    {KOP_quantize4, quantize_make, quantize_bench},
    {0},
};
