/* test_attend_tiers.c - attention over cells of several tiers gives the same bits however rows come in calls, and in two
 * steps as in one; products of codes stay near what the codes stand for. With CHECK_CUDA the kernels are those of cards (tests/cuda),
 * over codes that these have a way for. */
#include "tests/base/suite.h"

#include <math.h>
#include "kernels/kernels.h"
#include "kernels/ref/cell_tier.h"

#ifdef CHECK_CUDA
#include "tests/kernels/check.h"
void check_fail(const char *what)
{
    ck_abort_msg("%s", what);
}
#define attend_rows check_more_rows
enum { LEN = 300, ROWS = 7, HEADS = 6, WIDTH_MAX = 256 };
static const double OFF_MOST = 1e-6; /* nothing is rounded */
#else
#define attend_rows kernel_rows
enum { LEN = 300, ROWS = 40, HEADS = 6, WIDTH_MAX = 128 };
static const double OFF_MOST =
    3e-4; /* 14 bits of a query and of a weight leave 1e-4, as f16 values would */
#endif

typedef struct {
    int n;
    kform key[K_TIERS_MAX], value[K_TIERS_MAX];
    int32_t last[K_TIERS_MAX];
} tier_set;

/* Rows 260 to 299 see pages cross from tier to tier. */
static const tier_set sets[] = {
#ifdef CHECK_CUDA
    {2, {KFORM_F16, KFORM_Q8}, {KFORM_F16, KFORM_Q8}, {0}},
    {2, {KFORM_F16, KFORM_Q4}, {KFORM_F16, KFORM_Q4}, {40}},
};
static const struct {
    int cell_heads, k, v;
} widths[] = {{2, 64, 64}, {1, 128, 128}, {3, 256, 256}};
#else
    {2, {KFORM_F16, KFORM_Q8}, {KFORM_F16, KFORM_Q8}, {0}},
    {3, {KFORM_F16, KFORM_Q8, KFORM_Q4}, {KFORM_F16, KFORM_Q8, KFORM_Q4}, {20, 90}},
    {2, {KFORM_F32, KFORM_Q4}, {KFORM_F32, KFORM_Q8}, {17}},
    {3, {KFORM_BF16, KFORM_Q8, KFORM_Q8}, {KFORM_BF16, KFORM_F16, KFORM_Q4}, {30, 100}},
};
static const struct {
    int cell_heads, k, v;
} widths[] = {{2, 64, 64}, {6, 24, 20}, {1, 128, 80}, {3, 48, 96}};
#endif

typedef struct {
    kcell cell;
    kbatch *b;
    int64_t len, n_page;
    float *q; /* [ROWS, HEADS, k] */
} tiers_case;

static float *numbers(size_t n, unsigned *seed)
{
    float *x = malloc(n * sizeof *x);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(rand_r(seed) % 2001 - 1000) / 500;
    return x;
}

/* Rows at positions [at, at + n) of one sequence, whose pages lie the other way round; full ones are in every tier. */
static void batch_set(tiers_case *c, const tier_set *set, int64_t at, int64_t n)
{
    kbatch *b = c->b;
    *b = (kbatch){.n_tok = n, .n_seq = 1, .n_table = set->n, .n_page = c->n_page};
    kbatch_pages_clear(b);
    for (int64_t i = 0; i < n; i++) {
        kbatch_room(b, KBATCH_SEQ)[i] = 0;
        kbatch_room(b, KBATCH_POS)[i] = (int32_t)(at + i);
    }
    for (int t = 0; t < set->n; t++) {
        b->data[kbatch_last_at(b, t)] = t + 1 < set->n ? set->last[t] : INT32_MAX;
        for (int64_t e = 0; e < c->n_page; e++)
            if (t == 0 || (e + 1) * c->cell.page_tok <= c->len)
                kbatch_pages_room(b, t, 0)[e] = (int32_t)(c->n_page - 1 - e);
    }
}

static void part_fill(const kcell *cell, int tier, int32_t page, int64_t h)
{
    page_part from = cell_key_part(cell, tier - 1), to = cell_key_part(cell, tier);
    page_convert(&to, cell_key_at(cell, tier, page, h), &from,
                 cell_key_at(cell, tier - 1, page, h));
    from = cell_value_part(cell, tier - 1);
    to = cell_value_part(cell, tier);
    page_convert(&to, cell_value_at(cell, tier, page, h), &from,
                 cell_value_at(cell, tier - 1, page, h));
}

static tiers_case *case_create(const tier_set *set, int shape, int64_t page_tok, int64_t len)
{
    tiers_case *c = calloc(1, sizeof *c);
    unsigned seed = 7;
    int64_t k = widths[shape].k, v = widths[shape].v, heads = widths[shape].cell_heads;
    c->len = len;
    c->n_page = len / page_tok + 1;
    c->cell = (kcell){.n_tier = set->n, .page_tok = page_tok, .heads = heads, .k = k, .v = v};
    for (int t = 0; t < set->n; t++) {
        kcell_tier *to = &c->cell.tier[t];
        to->key = set->key[t];
        to->value = set->value[t];
        to->page_bytes = cell_page_bytes(&c->cell, t);
        to->base = malloc((size_t)(c->n_page * to->page_bytes));
    }
    c->b = malloc(kbatch_bytes(
        &(kbatch){.n_tok = len, .n_seq = 1, .n_table = K_TIERS_MAX, .n_page = c->n_page}));
    batch_set(c, set, 0, len);
    float *keys = numbers((size_t)(len * heads * k), &seed);
    float *values = numbers((size_t)(len * heads * v), &seed);
    kargs a = {.in = {keys, values},
               .pitch = {heads * k * 4, heads * v * 4},
               .size.append = {len},
               .batch = c->b,
               .cell = &c->cell};
    kernel_find(KOP_append, "c")->fn(&a, &(kthread){.count = 1}, 0, len);
    for (int t = 1; t < set->n; t++)
        for (int64_t e = 0; (e + 1) * page_tok <= len; e++)
            for (int64_t h = 0; h < heads; h++)
                part_fill(&c->cell, t, (int32_t)(c->n_page - 1 - e), h);
    free(keys);
    free(values);
    c->q = numbers((size_t)(ROWS * HEADS * k), &seed);
    return c;
}

static void case_destroy(tiers_case *c)
{
    for (int t = 0; t < c->cell.n_tier; t++)
        free(c->cell.tier[t].base);
    free(c->b);
    free(c->q);
    free(c);
}

static void units_run(const kernel_row *row, const kargs *k, int64_t step)
{
    kthread t = {.count = 1, .scratch_bytes = kernel_scratch(row, k)};
    t.scratch = malloc(t.scratch_bytes);
    int64_t n = kernel_units(row, k);
    for (int64_t i = 0; i < n; i += step)
        row->fn(k, &t, i, i + step < n ? i + step : n);
    free(t.scratch);
}

static kargs attend_args(tiers_case *c, int64_t first, int64_t n, int64_t window, float *out)
{
    int64_t k = c->cell.k, v = c->cell.v;
    return (kargs){.in = {c->q + first * HEADS * k},
                   .out = {out + first * HEADS * v},
                   .pitch = {HEADS * k * 4},
                   .out_pitch = {HEADS * v * 4},
                   .size.attend = {n, HEADS, window},
                   .scalar.attend = {1 / sqrt((double)k)},
                   .batch = c->b,
                   .cell = &c->cell};
}

/* The last ROWS rows, n_call of them in a call. */
static void attend(const kernel_row *row, tiers_case *c, const tier_set *set, int64_t window,
                   int64_t n_call, float *out)
{
    for (int64_t at = 0; at < ROWS; at += n_call) {
        int64_t n = ROWS - at < n_call ? ROWS - at : n_call;
        batch_set(c, set, c->len - ROWS + at, n);
        kargs k = attend_args(c, at, n, window, out);
        units_run(row, &k, 3);
    }
}

/* rms of the difference over that of what is wanted. */
static double difference(const float *got, const float *want, int64_t n)
{
    double off = 0, all = 0;
    for (int64_t i = 0; i < n; i++) {
        off += ((double)got[i] - want[i]) * ((double)got[i] - want[i]);
        all += (double)want[i] * want[i];
    }
    return sqrt(off / all);
}

/* Not the reference itself. */
static bool is_checked(const kernel_row *row)
{
    return row->op == KOP_attend && row->variant != VARIANT_ref && kvariant_runs(row->variant);
}

static void variant_check(const kernel_row *row, tiers_case *c, const tier_set *set, int64_t window,
                          const float *ref, const char *what)
{
    static float want[ROWS * HEADS * WIDTH_MAX], got[ROWS * HEADS * WIDTH_MAX];
    static const int64_t calls[] = {1, 2, 7};
    int64_t n = ROWS * HEADS * c->cell.v;
    attend(row, c, set, window, ROWS, want);
    double off = difference(want, ref, n);
    if (!(off < OFF_MOST))
        ck_abort_msg("%s: off by %g: %s", row->symbol, off, what);
    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        attend(row, c, set, window, calls[i], got);
        if (memcmp(got, want, (size_t)n * sizeof *got) != 0)
            ck_abort_msg("%s: other bits: %s, %d rows a call", row->symbol, what, (int)calls[i]);
    }
}

static void set_check(const tier_set *set, int shape, int64_t page_tok, int64_t window)
{
    static float ref[ROWS * HEADS * WIDTH_MAX];
    tiers_case *c = case_create(set, shape, page_tok, LEN);
    char what[80];
    int n;
    const kernel_row *rows = attend_rows(&n);
    snprintf(what, sizeof what, "set %d, widths %d, pages of %d, window %d", (int)(set - sets),
             shape, (int)page_tok, (int)window);
    attend(kernel_find(KOP_attend, "ref"), c, set, window, ROWS, ref);
    for (int i = 0; i < n; i++)
        if (is_checked(&rows[i]))
            variant_check(&rows[i], c, set, window, ref, what);
    case_destroy(c);
}

/* States of every stretch, in pieces, then merged: as the whole at once. */
static void split_check(const kernel_row *row, const tier_set *set, int shape, int64_t len)
{
    static float want[ROWS * HEADS * WIDTH_MAX], got[ROWS * HEADS * WIDTH_MAX];
    tiers_case *c = case_create(set, shape, 64, len);
    int64_t each = kernel_state_elems(c->cell.v) * HEADS, n = 3;
    batch_set(c, set, len - 10, n);
    kargs k = attend_args(c, 0, n, 0, want), first = k, then = attend_args(c, 0, n, 0, got);
    units_run(row, &k, 100);
    float *states = malloc((size_t)(n * each) * sizeof *states);
    first.choice.attend.part = ATTEND_STATES;
    first.out[0] = states;
    first.out_pitch[0] = each * 4;
    units_run(row, &first, 3);
    then.choice.attend.part = ATTEND_MERGE;
    then.in[0] = states;
    then.pitch[0] = each * 4;
    units_run(row, &then, 2);
    free(states);
    if (memcmp(want, got, (size_t)(n * HEADS * c->cell.v) * sizeof *got) != 0)
        ck_abort_msg("%s: other bits in two steps: set %d, widths %d, %d positions", row->symbol,
                     (int)(set - sets), shape, (int)len);
    case_destroy(c);
}

START_TEST(same_bits)
{
#ifdef CHECK_CUDA
    static const int64_t page_toks[] = {32, 64, 128};
#else
    static const int64_t page_toks[] = {16, 20, 64, 128};
#endif
    for (size_t s = 0; s < COUNT_OF(sets); s++)
        for (int w = 0; w < (int)COUNT_OF(widths); w++)
            for (size_t p = 0; p < COUNT_OF(page_toks); p++)
                set_check(&sets[s], w, page_toks[p], p % 2 ? 100 : 0);
}
END_TEST

START_TEST(two_steps_give_the_same_bits)
{
#ifdef CHECK_CUDA
    static const int64_t lens[] = {280, 1200, 8400}; /* fibres are slow: the last one but once */
#else
    static const int64_t lens[] = {2500};
#endif
    int n;
    const kernel_row *rows = attend_rows(&n);
    for (int i = 0; i < n; i++)
        for (size_t s = 0; s < COUNT_OF(sets); s++)
            for (int w = 0; w < (int)COUNT_OF(widths); w++)
                if (is_checked(&rows[i]) && kernel_splits(&rows[i]))
                    for (size_t p = 0; p < COUNT_OF(lens); p++)
                        if (lens[p] < 8000 || s + (size_t)w == 0)
                            split_check(&rows[i], &sets[s], w, lens[p]);
}
END_TEST

SUITE_MAIN("attend_tiers", same_bits, two_steps_give_the_same_bits)
