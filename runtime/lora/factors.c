/* factors.c - transforms on low-rank tensors: rows move, and a transpose swaps the two factors. */
#include "runtime/lora/factors.h"

#include "runtime/base/intmath.h"

enum { ROWS_MAX = 1 << 28 }; /* more than any weight has; keeps sizes in range */

void factors_free(factors *f)
{
    VEC_FREE(&f->parts);
    VEC_FREE(&f->rows);
}

void factors_add(factors *f, const factor_part *part, const float *b, int64_t out)
{
    int id = -1;
    if (b) {
        id = (int)f->parts.n;
        VEC_PUSH(&f->parts, *part);
    }
    for (int64_t i = 0; i < out; i++)
        VEC_PUSH(&f->rows, ((factor_row){id, b ? b + i * part->rank : NULL}));
}

/* ---- rows and columns ---- */

static void keep_rows(factors *f, const factor_row *rows, int64_t n)
{
    memcpy(f->rows.at, rows, (size_t)n * sizeof *rows);
    f->rows.n = (size_t)n;
}

/* Columns first, first + step, .. of every A. */
static void slice_inputs(factors *f, int64_t first, int64_t n, int64_t step)
{
    for (size_t p = 0; p < f->parts.n; p++) {
        factor_part *part = &f->parts.at[p];
        float *a = ARENA_ARRAY(f->home, float, (size_t)(part->rank * n));
        for (int64_t r = 0; r < part->rank; r++)
            for (int64_t i = 0; i < n; i++)
                a[r * n + i] = part->a[r * part->in + first + i * step];
        part->a = a;
        part->in = n;
    }
}

static bool slice(factors *f, int64_t axis, const int64_t *arg, int n_arg)
{
    int64_t first = arg[0], end = arg[1], step = n_arg > 2 ? arg[2] : 1;
    if (axis < 0 || axis >= f->rank || first < 0 || end <= first || end > f->dim[axis] || step < 1)
        return false;
    int64_t n = (end - first + step - 1) / step, inner = 1, outer = 1, was = f->dim[axis];
    f->dim[axis] = n;
    if (axis == f->rank - 1) {
        slice_inputs(f, first, n, step);
        return true;
    }
    for (int64_t i = 0; i < axis; i++)
        outer *= f->dim[i];
    for (int64_t i = axis + 1; i < f->rank - 1; i++)
        inner *= f->dim[i];
    factor_row *to = f->rows.at; /* rows only move towards the front */
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < n; i++, to += inner)
            memmove(to, f->rows.at + (o * was + first + i * step) * inner,
                    (size_t)inner * sizeof *to);
    f->rows.n = (size_t)(to - f->rows.at);
    return true;
}

static bool do_rows(factors *f, const site_step *s)
{
    return s->n_arg >= 2 && slice(f, f->rank - 2, s->arg, s->n_arg);
}

static bool do_take(factors *f, const site_step *s)
{
    return s->n_arg >= 3 && slice(f, s->arg[0], s->arg + 1, s->n_arg - 1);
}

static bool do_reshape(factors *f, const site_step *s)
{
    int64_t n = 1;
    for (int i = 0; i + 1 < s->n_arg; i++)
        if (s->arg[i] < 1 || !i64_mul(n, s->arg[i], &n))
            return false;
    if (s->n_arg < 2 || s->arg[s->n_arg - 1] != f->dim[f->rank - 1] || n != (int64_t)f->rows.n)
        return false;
    f->rank = s->n_arg;
    memcpy(f->dim, s->arg, sizeof f->dim);
    return true;
}

static bool do_nothing(factors *f, const site_step *s)
{
    (void)f, (void)s;
    return true;
}

/* ---- matrices ---- */

/* The parts that rows [first, first + n) use, in out[n_part], by number. */
static size_t parts_of(const factors *f, int64_t first, int64_t n, int *out)
{
    size_t n_part = 0;
    for (int64_t i = first; i < first + n; i++) {
        int part = f->rows.at[i].part;
        bool known = part < 0;
        for (size_t k = n_part; k > 0 && !known; k--) /* that of the row before, most often */
            known = out[k - 1] == part;
        if (!known)
            out[n_part++] = part;
    }
    return n_part;
}

static bool scales_differ(const factors *f, const int *part, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (f->parts.at[part[i]].scale != f->parts.at[part[0]].scale)
            return true;
    return false;
}

factor_pair factors_matrix(factors *f, int64_t index)
{
    int64_t out = f->dim[f->rank - 2], in = f->dim[f->rank - 1], first = index * out;
    int *part = ARENA_ARRAY(f->home, int, f->parts.n + 1);
    size_t n_part = parts_of(f, first, out, part);
    factor_pair m = {.scale = n_part ? f->parts.at[part[0]].scale : 1};
    bool folded = scales_differ(f, part, n_part);
    int64_t *at = ARENA_ARRAY(f->home, int64_t, f->parts.n + 1); /* a part's first column in B */
    for (size_t i = 0; i < n_part; i++) {
        at[part[i]] = m.rank;
        m.rank += f->parts.at[part[i]].rank;
    }
    float *b = ARENA_ARRAY(f->home, float, (size_t)(out * m.rank));
    for (int64_t i = 0; i < out; i++) {
        const factor_row *row = &f->rows.at[first + i];
        const factor_part *p = row->part >= 0 ? &f->parts.at[row->part] : NULL;
        float by = p && folded ? (float)p->scale : 1;
        for (int64_t r = 0; p && r < p->rank; r++)
            b[i * m.rank + at[row->part] + r] = row->b[r] * by;
    }
    m.b = b;
    m.scale = folded ? 1 : m.scale;
    if (n_part == 1) {
        m.a = f->parts.at[part[0]].a;
        return m;
    }
    float *a = ARENA_ARRAY(f->home, float, (size_t)(m.rank * in));
    for (size_t i = 0; i < n_part; i++) {
        const factor_part *p = &f->parts.at[part[i]];
        memcpy(a + at[part[i]] * in, p->a, (size_t)(p->rank * in) * sizeof *a);
    }
    m.a = a;
    return m;
}

const float *matrix_transposed(arena *a, const float *x, int64_t rows, int64_t columns)
{
    float *y = ARENA_ARRAY(a, float, (size_t)(rows * columns) + 1);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < columns; k++)
            y[k * rows + i] = x[i * columns + k];
    return y;
}

/* (B A)^T = A^T B^T: each matrix gets factors of its own. */
static bool do_transpose(factors *f, const site_step *s)
{
    (void)s;
    int64_t out = f->dim[f->rank - 2], in = f->dim[f->rank - 1];
    int64_t n_matrix = (int64_t)f->rows.n / out, n_row;
    if (!i64_mul(n_matrix, in, &n_row) || n_row > ROWS_MAX)
        return false;
    factors t = {.home = f->home, .rank = f->rank};
    memcpy(t.dim, f->dim, sizeof t.dim);
    t.dim[t.rank - 2] = in;
    t.dim[t.rank - 1] = out;
    for (int64_t i = 0; i < n_matrix; i++) {
        factor_pair m = factors_matrix(f, i);
        factor_part part = {m.rank, out, matrix_transposed(f->home, m.b, out, m.rank), m.scale};
        factors_add(&t, &part, m.rank ? matrix_transposed(f->home, m.a, m.rank, in) : NULL, in);
    }
    factors_free(f);
    *f = t;
    return true;
}

bool factors_turn(factors *f, int from, int to, int64_t run, int64_t turned)
{
    enum { INTERLEAVED = 2 };
    int64_t out = f->dim[f->rank - 2], half = turned / 2;
    if (from == to || from == 0 || to == 0)
        return true;
    if (run < 1 || turned < 0 || turned > run || turned % 2 || out % run)
        return false;
    factor_row *rows = ARENA_ARRAY(f->home, factor_row, f->rows.n);
    for (int64_t i = 0; i < (int64_t)f->rows.n; i++) { /* runs do not cross matrices */
        int64_t at = i % run, old = at;
        if (at < turned)
            old = to == INTERLEAVED ? at % 2 * half + at / 2
                  : at < half       ? 2 * at
                                    : 2 * (at - half) + 1;
        rows[i] = f->rows.at[i - at + old];
    }
    keep_rows(f, rows, (int64_t)f->rows.n);
    return true;
}

/* ---- the table ---- */

static bool (*const effects[TRANSFORM_COUNT])(factors *f, const site_step *s) = {
    /* clang-format off */
    [TRANSFORM_pairs]     = do_nothing, /* factors_turn, at the end */
    [TRANSFORM_rows]      = do_rows,
    [TRANSFORM_take]      = do_take,
    [TRANSFORM_reshape]   = do_reshape,
    [TRANSFORM_join]      = do_nothing, /* the rows are behind each other already */
    [TRANSFORM_transpose] = do_transpose,
    [TRANSFORM_raw]       = do_nothing,
    [TRANSFORM_mxfp4]     = do_nothing,
    /* clang-format on */
};

bool factors_apply(factors *f, const site_step *step)
{
    for (int i = 0; i < step->n_arg; i++)
        if (step->arg[i] < 0)
            return false;
    return effects[step->code](f, step);
}
