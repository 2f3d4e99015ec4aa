/* check_cell.c - cases for append, convert and attend: cells of all stored types and page sizes, sequences whose
 * rows come turn by turn, windows, chunks, softcap, sinks, slopes, latent rows.
 *
 * Bounds of attend, with U = 2^-24: a logit is off by d = (k + 8) U times scale * sum |q| |k|, and
 * by the rounding of the bias and of its difference to the largest, so that a weight is off by a
 * factor of 1 + 2 d + (8 + 2 |bias|) U; the sums of n weights and values add n + 24 roundings. Both
 * apply to the weighted mean of |v|, which is at most the largest |v|. The reference reads the
 * same stored numbers, from pages of another size.
 *
 * Where keys and values are codes, kernels may multiply those. A query times a block's steps is then rounded to whole
 * numbers up to 16319, which leaves a logit off by half a unit per channel and code, k / 2 * 120 units at most, where
 * 120 times a step is no more than the largest |k|; weights times steps are rounded likewise in each block of 64 positions,
 * 64 / 2 units of its largest weight at most. What q4's sums begin with is rounded by half of 16 units more.
 *
 * Kernels that round queries and weights to 16 bits are off by 2^-8 of each at most, bf16's half unit. */
#include "tests/kernels/check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include "kernels/ref/cell_place.h"
#include "kernels/ref/cell_tier.h"

static const double U = 0x1p-24;

enum { SEQ_MAX = 3 };

typedef struct {
    int64_t heads, cell_heads, k, v;
    int64_t len[SEQ_MAX]; /* positions of each sequence, 0: no such */
    int64_t rows;         /* of each in the call, or as many as there are */
    int64_t page_tok;
    int64_t window, chunk;
    double scale, softcap;
    bool latent, sinks, slopes;
} cell_shape;

/* Tiers of a cell, finest first. */
typedef struct {
    int n;
    kform key[K_TIERS_MAX], value[K_TIERS_MAX];
    int32_t last[K_TIERS_MAX];
    int64_t pinned;
    bool missing; /* of every other page the second tier has none */
    bool gone;    /* and the first has none of those between */
} tier_set;

static const tier_set tier_sets[] = {
    {2, {KFORM_F16, KFORM_Q8}, {KFORM_F16, KFORM_Q8}, {0}, 0, false, false},
    {2, {KFORM_F32, KFORM_Q4}, {KFORM_F32, KFORM_Q4}, {0}, 0, false, false},
    {3, {KFORM_F16, KFORM_Q8, KFORM_Q4}, {KFORM_F16, KFORM_Q8, KFORM_Q4}, {9, 70}, 0, false, false},
    {3,
     {KFORM_BF16, KFORM_Q8, KFORM_Q8},
     {KFORM_BF16, KFORM_Q8, KFORM_Q4},
     {0, 64},
     1,
     false,
     false},
    {2, {KFORM_F16, KFORM_F16}, {KFORM_F16, KFORM_Q8}, {5}, 0, false, false},
    {2, {KFORM_F32, KFORM_Q8}, {KFORM_F32, KFORM_F16}, {0}, 0, false, false},
    {4,
     {KFORM_F32, KFORM_F16, KFORM_Q8, KFORM_Q4},
     {KFORM_F32, KFORM_F16, KFORM_Q8, KFORM_Q4},
     {1, 40, 90},
     0,
     true,
     false},
};
enum { N_TIERS = sizeof tier_sets / sizeof tier_sets[0] };

static const cell_shape shapes[] = {
    {1, 1, 1, 1, {1}, 1, 16, 0, 0, 1, 0, false, false, false},
    {2, 2, 3, 5, {7}, 7, 1, 0, 0, 0.5, 0, false, false, false},
    {4, 2, 16, 16, {65}, 3, 16, 0, 0, 0.25, 0, false, false, false},
    {8, 2, 64, 64, {200}, 1, 64, 0, 0, 0.125, 0, false, false, false},
    {4, 4, 33, 17, {63, 130}, 2, 5, 0, 0, 0.2, 0, false, false, false},
    {4, 1, 80, 80, {31, 64, 129}, 4, 32, 0, 0, 0.11, 0, false, true, false},
    {6, 3, 32, 32, {140, 9}, 33, 16, 20, 0, 0.2, 0, false, false, false},
    {2, 1, 24, 24, {300}, 7, 128, 100, 0, 0.2, 3, false, false, false},
    {2, 2, 8, 8, {150, 90}, 7, 7, 0, 64, 0.3, 0, false, false, true},
    {4, 2, 128, 128, {257, 100}, 2, 256, 70, 48, 0.09, 30, false, true, true},
    {4, 1, 72, 64, {80, 20}, 5, 16, 0, 0, 0.1, 0, true, false, false},
    {16, 1, 40, 40, {66}, 1, 64, 33, 0, 0.15, 0, true, true, false},
    {2, 1, 256, 256, {70}, 2, 8, 1, 0, 0.06, 0, false, false, false},
    {2, 1, 5, 4, {25, 11}, 25, 4, 5, 0, 0.5, 0, false, false, false}, /* every position */
    {2, 1, 5, 4, {25, 11}, 25, 4, 0, 5, 0.5, 0, false, false, false},
    /* Whole blocks in a page; more rows than a unit has (16 of four heads), of which the first see another number of pages.
     * The reference reads every key anew for each query: no more rows than that. */
    {4, 1, 128, 128, {150}, 24, 64, 0, 0, 0.09, 0, false, false, false},
    {8, 1, 64, 64, {130}, 1, 64, 0, 0, 0.125, 0, false, true, false},
    {3, 3, 96, 96, {141, 65}, 1, 64, 0, 0, 0.1, 0, false, false, false},
    {2, 1, 80, 80, {100}, 40, 128, 0, 0, 0.11, 0, false, false, true},
    {8, 4, 256, 256, {131}, 1, 64, 100, 0, 0.06, 30, false, false, false},
    {12, 1, 96, 64, {129}, 3, 64, 0, 0, 0.1, 0, true, false, false},
    /* As wide as latent rows are. */
    {6, 1, 576, 512, {67}, 2, 64, 0, 0, 0.05, 0, true, false, false},
    /* Latent rows that a block of a card copies as they are: numbers of query heads, positions where tiles, pages and stretches begin
     * and end, widths that are no whole sixteens of columns. */
    {4, 1, 40, 32, {66, 31, 1}, 1, 16, 0, 0, 0.15, 0, true, false, false},
    {8, 1, 576, 512, {257}, 1, 64, 0, 0, 0.05, 0, true, true, false},
    {16, 1, 576, 512, {33, 129}, 1, 64, 0, 0, 0.05, 0, true, false, false},
    {128, 1, 576, 512, {40}, 1, 32, 0, 0, 0.05, 0, true, false, false},
    {20, 1, 192, 128, {2100}, 1, 192, 0, 0, 0.07, 0, true, false, true},
    {9, 1, 72, 60, {530, 129, 64}, 3, 48, 200, 0, 0.12, 20, true, true, true},
    {17, 1, 64, 64, {160}, 40, 16, 0, 70, 0.125, 0, true, false, false},
    {12, 1, 96, 80, {75, 40}, 70, 32, 33, 0, 0.1, 0, true, true, false},
    /* Rows that a warp of a card loads as they are: each number of query heads to one of the cell's, positions where blocks
     * and stretches begin and end. */
    {1, 1, 64, 64, {1}, 1, 32, 0, 0, 0.125, 0, false, false, false},
    {4, 2, 64, 64, {2, 32, 33}, 1, 32, 0, 0, 0.125, 0, false, false, false},
    {3, 1, 64, 64, {128, 129, 16}, 1, 192, 0, 0, 0.125, 0, false, true, false},
    {8, 1, 128, 128, {2001}, 1, 192, 0, 0, 0.09, 0, false, false, false},
    {4, 1, 64, 64, {700, 520}, 2, 192, 300, 0, 0.125, 0, false, false, true},
    {2, 2, 64, 64, {600}, 1, 64, 0, 0, 0.125, 20, false, true, false},
    {1, 1, 256, 256, {140}, 1, 32, 0, 0, 0.06, 0, false, false, true},
    {5, 1, 128, 128, {513, 140}, 3, 32, 0, 100, 0.09, 0, false, true, false},
    {9, 1, 64, 64, {256, 257, 34}, 1, 64, 0, 0, 0.125, 0, false, true, true},
    /* Rows that are filled up to a width. */
    {2, 2, 96, 96, {1100}, 1, 64, 0, 0, 0.1, 0, false, false, false},
    {4, 1, 96, 96, {700, 520}, 2, 64, 300, 0, 0.1, 0, false, false, true},
    {8, 1, 112, 112, {150}, 24, 64, 0, 0, 0.09, 0, false, true, false},
    {5, 1, 200, 200, {300}, 1, 32, 0, 0, 0.07, 30, false, false, false},
    {8, 1, 64, 64, {1025}, 1, 64, 0, 0, 0.125, 0, false, false, false},
    {8, 2, 256, 256, {300}, 2, 64, 0, 0, 0.06, 0, false, true, false},
};
enum { N_SHAPE = sizeof shapes / sizeof shapes[0] };

/* Codes that a warp of a card loads as they are: numbers of query heads to one of the cell's, positions and windows where tiles,
 * blocks, pages and stretches begin and end; with each of these tiers. */
static const cell_shape code_shapes[] = {
    {1, 1, 64, 64, {40}, 1, 32, 0, 0, 0.125, 0, false, false, false},
    {2, 2, 64, 64, {64, 65, 1}, 1, 64, 0, 0, 0.125, 0, false, false, false},
    {3, 1, 128, 128, {127, 128, 129}, 1, 64, 0, 0, 0.09, 0, false, true, false},
    {4, 1, 64, 64, {300, 33}, 2, 32, 0, 0, 0.125, 0, false, false, true},
    {5, 1, 128, 128, {400}, 3, 64, 90, 0, 0.09, 0, false, false, false},
    {6, 1, 64, 64, {257}, 2, 64, 33, 0, 0.125, 20, false, true, false},
    {7, 1, 64, 64, {500, 130}, 1, 128, 0, 100, 0.125, 0, false, false, true},
    {8, 1, 128, 128, {1100}, 1, 64, 0, 0, 0.09, 0, false, false, false},
    {9, 1, 64, 64, {1090, 70}, 1, 192, 700, 0, 0.125, 0, false, true, false},
    {12, 1, 128, 128, {200}, 2, 64, 0, 0, 0.09, 30, false, false, false},
    {16, 1, 64, 64, {130, 260}, 1, 64, 0, 0, 0.125, 0, false, false, false},
    {16, 2, 256, 256, {300}, 1, 64, 0, 0, 0.06, 0, false, true, false},
    {4, 2, 256, 256, {90, 1}, 2, 32, 0, 0, 0.06, 0, false, false, false},
    {4, 1, 128, 128, {1300}, 2, 64, 65, 0, 0.09, 0, false, false, false},
    {2, 1, 64, 64, {1250}, 3, 64, 672, 0, 0.125, 0, false, false, false},
    {2, 1, 64, 64, {8300}, 1, 64, 0, 0, 0.125, 0, false, false, false},
    /* Many rows, of which some see a page in one tier and some in another. */
    {4, 1, 64, 64, {190, 150}, 70, 64, 0, 0, 0.125, 0, false, false, false},
    {2, 1, 128, 128, {170}, 100, 32, 70, 0, 0.09, 0, false, true, false},
    {6, 3, 128, 128, {260}, 40, 128, 0, 0, 0.09, 30, false, false, false},
    {8, 1, 64, 64, {331, 67}, 66, 64, 150, 0, 0.125, 0, false, false, true},
};
static const tier_set code_sets[] = {
    {2, {KFORM_F16, KFORM_Q8}, {KFORM_F16, KFORM_Q8}, {0}, 0, false, false},
    {2, {KFORM_F16, KFORM_Q8}, {KFORM_F16, KFORM_Q8}, {100}, 1, false, false},
    {2, {KFORM_F16, KFORM_Q8}, {KFORM_F16, KFORM_Q8}, {INT32_MAX}, 0, true, true},
    {2, {KFORM_F16, KFORM_Q4}, {KFORM_F16, KFORM_Q4}, {0}, 0, false, false},
    {2, {KFORM_F16, KFORM_Q8}, {KFORM_F16, KFORM_Q4}, {100}, 1, false, false},
    {2, {KFORM_F16, KFORM_Q4}, {KFORM_F16, KFORM_Q8}, {INT32_MAX}, 0, true, true},
};
enum {
    N_CODES = sizeof code_shapes / sizeof code_shapes[0],
    N_CODE_SETS = sizeof code_sets / sizeof code_sets[0],
    N_CODES_Q8 = 3, /* of these, the first */
};
static const dtype types[] = {DT_F32, DT_F16, DT_BF16};

static int64_t positions(const cell_shape *s)
{
    return s->len[0] + s->len[1] + s->len[2];
}

static int64_t sequences(const cell_shape *s)
{
    return 1 + (s->len[1] > 0) + (s->len[2] > 0);
}

static kcell cell_make(const cell_shape *s, dtype type, int64_t page_tok, size_t *out_bytes)
{
    int64_t each = (int64_t)dtype_row_of(type)->bytes;
    int64_t tok = s->cell_heads * (s->k + (s->latent ? 0 : s->v));
    kform form = kform_of_dtype(type);
    kcell c = {.tier = {{.page_bytes = page_tok * tok * each +
                                       (page_tok % 16 ? 8 : 16), /* not the rows' alone */
                         .key = form,
                         .value = form}},
               .n_tier = 1,
               .page_tok = page_tok,
               .heads = s->cell_heads,
               .k = s->k,
               .v = s->v,
               .latent = s->latent,
               .table = 1};
    int64_t n_page = positions(s) / page_tok + SEQ_MAX;
    *out_bytes = (size_t)(n_page * c.tier[0].page_bytes);
    return c;
}

static int64_t pages_of(const cell_shape *s, int64_t page_tok)
{
    return positions(s) / page_tok + SEQ_MAX;
}

/* Page numbers for every sequence in table 1, mixed up; table 0 is another cell's. */
static void pages_make(check *c, const cell_shape *s, int64_t page_tok, kbatch *b)
{
    int64_t n_page = pages_of(s, page_tok), next = 0;
    int32_t *order = check_ids(c, n_page, 1);
    for (int64_t i = 0; i < n_page; i++)
        order[i] = (int32_t)i;
    for (int64_t i = n_page - 1; i > 0; i--) {
        int64_t j = check_below(c, i + 1);
        int32_t swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }
    kbatch_pages_clear(b);
    for (int64_t q = 0; q < b->n_seq; q++) {
        int64_t n = (s->len[q] + page_tok - 1) / page_tok;
        memcpy(kbatch_pages_room(b, 1, q), order + next, (size_t)n * sizeof *order);
        next += n;
    }
}

/* The same pages in another call. */
static void pages_share(const kbatch *from, kbatch *to)
{
    memcpy(to->data + kbatch_last_at(to, 0), from->data + kbatch_last_at(from, 0),
           (size_t)to->n_table * sizeof *to->data);
    for (int64_t t = 0; t < to->n_table; t++)
        for (int64_t q = 0; q < to->n_seq; q++)
            memcpy(kbatch_pages_room(to, t, q), kbatch_pages(from, t, q),
                   (size_t)to->n_page * sizeof *to->data);
}

/* A call with the last `rows` positions of every sequence, turn by turn. */
static kbatch *batch_make(check *c, const cell_shape *s, int64_t rows, int64_t page_tok)
{
    int64_t n = 0;
    for (int64_t q = 0; q < SEQ_MAX; q++)
        n += s->len[q] < rows ? s->len[q] : rows;
    kbatch *b = check_batch(c, &(kbatch){.n_tok = n,
                                         .n_seq = sequences(s),
                                         .n_table = 1 + K_TIERS_MAX,
                                         .n_page = pages_of(s, page_tok)});
    int32_t *seq = kbatch_room(b, KBATCH_SEQ), *pos = kbatch_room(b, KBATCH_POS);
    n = 0;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t q = 0; q < SEQ_MAX; q++) {
            int64_t had = s->len[q] > rows ? s->len[q] - rows : 0;
            if (had + i >= s->len[q])
                continue;
            seq[n] = (int32_t)q;
            pos[n++] = (int32_t)(had + i);
        }
    pages_make(c, s, page_tok, b);
    return b;
}

static int64_t longest(const cell_shape *s)
{
    int64_t n = s->len[0];
    for (int q = 1; q < SEQ_MAX; q++)
        n = s->len[q] > n ? s->len[q] : n;
    return n;
}

/* The numbers of input i with gaps between rows for the kernel, dense for the reference. */
static void rows_give(check *c, check_case *out, int i, const float *x, int64_t rows, int64_t width)
{
    int64_t pitch = width * 4 + 4 * check_below(c, 5);
    char *to = check_alloc(c, (size_t)(rows * pitch), 0);
    for (int64_t r = 0; r < rows; r++)
        memcpy(to + r * pitch, x + r * width, (size_t)width * 4);
    check_unused_gaps(c, to, rows, pitch, width * 4);
    out->ref.in[i] = x;
    out->ref.pitch[i] = width * 4;
    out->k.in[i] = to;
    out->k.pitch[i] = pitch;
}

/* ---- append ---- */

static bool append_make(check *c, const kernel_row *row, int i, check_case *out)
{
    (void)row;
    if (i >= N_SHAPE * 3 * 3)
        return false;
    const cell_shape *s = &shapes[i % N_SHAPE];
    dtype type = types[i / N_SHAPE % 3];
    int what = s->latent ? 1 : 1 + i / N_SHAPE / 3; /* keys, values, or both */
    kcell *cell = check_alloc(c, sizeof *cell, 0);
    kbatch *b = batch_make(c, s, s->rows, s->page_tok);
    *cell = cell_make(s, type, s->page_tok, &out->cell_bytes);
    for (int k = 0; k < 2; k++) {
        int64_t width = s->cell_heads * (k ? s->v : s->k);
        float *x = check_numbers(c, b->n_tok * width);
        for (int64_t j = 0; j < b->n_tok * width; j++) /* some round to nothing, some to infinity */
            x[j] = ldexpf(x[j], (int)check_below(c, 48) - 28);
        x[check_below(c, b->n_tok * width)] = NAN;
        if (what & (1 << k))
            rows_give(c, out, k, x, b->n_tok, width);
    }
    out->ref.cell = out->k.cell = cell;
    out->ref.batch = out->k.batch = b;
    out->ref.size.append.rows = out->k.size.append.rows = b->n_tok;
    out->grain = what & 1 ? s->k : s->v;
    out->cols = s->cell_heads * out->grain;
    snprintf(out->shape, sizeof out->shape, "%s, %d rows of %dx(%d, %d), pages of %d, inputs %d",
             dtype_row_of(type)->name, (int)b->n_tok, (int)s->cell_heads, (int)s->k, (int)s->v,
             (int)s->page_tok, what);
    return true;
}

/* ---- attend ---- */

/* A cell that holds all positions of all sequences, as the reference puts them there. */
static kcell *cell_fill(check *c, const cell_shape *s, dtype type, int64_t page_tok,
                        const float *keys, const float *values, const kbatch *all)
{
    size_t bytes;
    kcell *cell = check_alloc(c, sizeof *cell, 0);
    *cell = cell_make(s, type, page_tok, &bytes);
    cell->tier[0].base = check_alloc(c, bytes, 0);
    kargs k = {.in = {keys, s->latent ? NULL : values}, .cell = cell, .batch = all};
    k.size.append.rows = all->n_tok;
    char *base = cell->tier[0].base, *again = check_complement(c, base, bytes);
    for (int i = 0; i < 2; i++) {
        cell->tier[0].base = i ? base : again;
        kernel_find(KOP_append, "ref")->fn(&k, &(kthread){.count = 1}, 0, all->n_tok);
    }
    check_unused_unwritten(c, base, again, bytes);
    return cell;
}

/* What no row of a call sees is nobody's either. */
static void cell_unseen(check *c, const cell_shape *s, const kcell *cell, const kargs *k,
                        const kbatch *all)
{
    size_t each = dtype_row_of(kform_dtype(cell->tier[0].key))->bytes;
    const int32_t *seq = kbatch_at(all, KBATCH_SEQ), *at = kbatch_at(all, KBATCH_POS);
    for (int64_t t = 0; t < all->n_tok; t++) {
        bool seen = false;
        for (int64_t i = 0; i < k->batch->n_tok && !seen; i++) {
            int64_t pos = kbatch_at(k->batch, KBATCH_POS)[i];
            seen = kbatch_at(k->batch, KBATCH_SEQ)[i] == seq[t] && at[t] <= pos &&
                   at[t] >= attend_first(k, pos);
        }
        const int32_t *pages = kcell_pages(cell, 0, all, t);
        for (int64_t h = 0; h < s->cell_heads && !seen; h++) {
            check_unused(c, cell_key(cell, 0, pages, at[t], h), (size_t)s->k * each);
            if (!s->latent)
                check_unused(c, cell_value(cell, 0, pages, at[t], h), (size_t)s->v * each);
        }
    }
}

/* Of one row and query head; the keys and values of all sequences stand in the order of `all`. */
static float bound_of(const cell_shape *s, const kbatch *all, const float *keys, const float *q,
                      int32_t seq, int32_t pos, int64_t head, double slope, double round)
{
    int64_t cell_head = head / (s->heads / s->cell_heads);
    double most = 0;
    for (int64_t t = 0; t < all->n_tok; t++) {
        double sum = 0;
        if (kbatch_at(all, KBATCH_SEQ)[t] != seq || kbatch_at(all, KBATCH_POS)[t] > pos)
            continue;
        for (int64_t i = 0; i < s->k; i++)
            sum += fabs((double)q[i] * (double)keys[(t * s->cell_heads + cell_head) * s->k + i]);
        most = sum > most ? sum : most;
    }
    double d = ((double)(s->k + 8) * U + round) * s->scale * most * 1.01;
    double roundings = 8 + 2 * slope * (double)pos + (double)pos + 24;
    return (float)(2 * d + roundings * U + 2 * round);
}

/* Tables of the other tiers: those of pages that are full. */
static void tables_add(const cell_shape *s, const tier_set *tiers, kbatch *b)
{
    for (int i = 0; i < tiers->n; i++) {
        if (i + 1 < tiers->n)
            b->data[kbatch_last_at(b, 1 + i)] = tiers->last[i];
        for (int64_t q = 0; i > 0 && q < b->n_seq; q++)
            for (int64_t e = 0; e < s->len[q] / s->page_tok; e++)
                if (!(tiers->missing && i == 1 && e % 2))
                    kbatch_pages_room(b, 1 + i, q)[e] = kbatch_pages(b, 1, q)[e];
    }
    for (int64_t q = 0; tiers->gone && q < b->n_seq; q++)
        for (int64_t e = 0; e < s->len[q] / s->page_tok; e += 2)
            kbatch_pages_room(b, 1, q)[e] = -1;
}

static void page_make(const kcell *cell, int tier, int32_t page)
{
    for (int64_t h = 0; h < cell->heads; h++) {
        page_part from = cell_key_part(cell, tier - 1), to = cell_key_part(cell, tier);
        page_convert(&to, cell_key_at(cell, tier, page, h), &from,
                     cell_key_at(cell, tier - 1, page, h));
        if (cell->latent)
            continue;
        from = cell_value_part(cell, tier - 1);
        to = cell_value_part(cell, tier);
        page_convert(&to, cell_value_at(cell, tier, page, h), &from,
                     cell_value_at(cell, tier - 1, page, h));
    }
}

/* The other tiers of a cell, each page made from the tier before, whether its table has it or not. */
static void tiers_fill(check *c, const cell_shape *s, const tier_set *tiers, kcell *cell,
                       const kbatch *all)
{
    for (int i = 1; i < tiers->n; i++) {
        kcell_tier *t = &cell->tier[i];
        *t = (kcell_tier){.key = tiers->key[i], .value = tiers->value[i]};
        t->page_bytes = cell_page_bytes(cell, i) + 64;
        size_t bytes = (size_t)(pages_of(s, s->page_tok) * t->page_bytes);
        t->base = check_alloc(c, bytes, 0);
        for (int64_t q = 0; q < all->n_seq; q++)
            for (int64_t e = 0; e < s->len[q] / s->page_tok; e++)
                page_make(cell, i, kbatch_pages(all, 1, q)[e]);
    }
    cell->n_tier = tiers->n;
    cell->pinned = tiers->pinned;
}

/* What rounding to whole numbers adds, which cards do not do; numbers are 1 at most. */
static float codes_bound(const kernel_row *row, const cell_shape *s, const tier_set *tiers)
{
    bool codes = false, card = strstr(row->symbol, "_cuda");
    for (int i = 0; i < tiers->n && !card; i++)
        codes = codes || (!kform_is_float(tiers->key[i]) && !kform_is_float(tiers->value[i]));
    double unit = 1.01 / 16319 / 2, begin = 16.0 / 120;
    return codes ? (float)(2 * ((double)s->k + begin) * s->scale * unit + (64 + begin) * unit) : 0;
}

static bool attend_setup(check *c, const kernel_row *row, const cell_shape *s,
                         const tier_set *tiers, check_case *out)
{
    const double round = act_rounds(row->act) ? 0x1p-8 : 0;
    dtype type = kform_dtype(tiers->key[0]);
    int64_t width = s->heads * s->k, page_ref = s->page_tok == 16 ? 3 : 16;
    page_ref = tiers->n > 1 ? s->page_tok : page_ref; /* tiers go by pages */
    kbatch *all = batch_make(c, s, longest(s), s->page_tok);
    float *keys = check_numbers(c, all->n_tok * s->cell_heads * s->k);
    float *values = check_numbers(c, all->n_tok * s->cell_heads * s->v);
    kbatch *b = batch_make(c, s, s->rows, s->page_tok);
    pages_share(all, b);
    kbatch *b_ref = batch_make(c, s, s->rows, page_ref);
    kbatch *all_ref = batch_make(c, s, longest(s), page_ref);
    pages_share(all_ref, b_ref);
    kargs *k = &out->ref;
    if (s->sinks)
        k->in[2] = check_numbers(c, s->heads);
    if (s->slopes)
        k->in[3] = check_numbers(c, s->heads);
    k->size = (ksizes){.attend = {b->n_tok, s->heads, s->window, s->chunk}};
    k->scalar = (kscalars){.attend = {s->scale, s->softcap}};
    out->k = *k;
    rows_give(c, out, 0, check_numbers(c, b->n_tok * width), b->n_tok, width);
    out->ref.cell = cell_fill(c, s, type, page_ref, keys, values, all_ref);
    kcell *cell = cell_fill(c, s, type, s->page_tok, keys, values, all);
    out->k.cell = cell;
    out->ref.batch = b_ref;
    out->k.batch = b;
    cell_unseen(c, s, out->k.cell, &out->k, all);
    if (tiers->n > 1) {
        tiers_fill(c, s, tiers, cell, all);
        tables_add(s, tiers, b);
        out->ref.batch = b;
        out->ref.cell = cell;
    }
    float *bound = check_numbers(c, b->n_tok * s->heads * s->v);
    for (int64_t i = 0; i < b->n_tok * s->heads; i++) {
        double slope = s->slopes ? fabs((double)((const float *)k->in[3])[i % s->heads]) : 0;
        float most = bound_of(s, all, keys, (const float *)out->ref.in[0] + i * s->k,
                              kbatch_at(b, KBATCH_SEQ)[i / s->heads],
                              kbatch_at(b, KBATCH_POS)[i / s->heads], i % s->heads, slope, round);
        most += codes_bound(row, s, tiers);
        for (int64_t j = 0; j < s->v; j++)
            bound[i * s->v + j] = most;
    }
    out->out[0] =
        (check_out){.type = DT_F32, .rows = b->n_tok, .width = s->heads * s->v, .bound = bound};
    snprintf(out->shape, sizeof out->shape, "%s%s%s, %d rows, heads %d/%d of %d, pages of %d",
             kform_name(tiers->key[0]), tiers->n > 1 ? " and " : "",
             tiers->n > 1 ? kform_name(tiers->key[tiers->n - 1]) : "", (int)b->n_tok, (int)s->heads,
             (int)s->cell_heads, (int)s->k, (int)s->page_tok);
    return true;
}

/* One tier of floats. */
static tier_set tier_of(dtype type)
{
    kform form = kform_of_dtype(type);
    return (tier_set){.n = 1, .key = {form}, .value = {form}};
}

static bool attend_make(check *c, const kernel_row *row, int i, check_case *out)
{
    const cell_shape *s = &shapes[i % N_SHAPE];
    int turn = i / N_SHAPE, code = i - 5 * N_SHAPE, round = code / N_CODES;
    if (code >= N_CODES * (N_CODES_Q8 + 1))
        return false;
    if (code >= 0) /* all sets of q8, then those of q4 in turn */
        return attend_setup(
            c, row, &code_shapes[code % N_CODES],
            &code_sets[round < N_CODES_Q8 ? round : N_CODES_Q8 + code % (N_CODE_SETS - N_CODES_Q8)],
            out);
    if (turn >= 3) /* two sets of tiers for each shape, all of them in turn */
        return attend_setup(c, row, s, &tier_sets[(i + turn) % N_TIERS], out);
    tier_set one = tier_of(types[turn]);
    return attend_setup(c, row, s, &one, out);
}

/* Llama 1B and 8B, decode at a context of 2048. */
static bool attend_bench(check *c, const kernel_row *row, int i, check_case *out)
{
    if (i >= 6)
        return false;
    cell_shape s = {.heads = 32,
                    .cell_heads = 8,
                    .k = i % 2 ? 128 : 64,
                    .v = i % 2 ? 128 : 64,
                    .len = {2048},
                    .rows = 1,
                    .page_tok = 64,
                    .scale = 0.1};
    tier_set one = tier_of(types[i / 2]);
    attend_setup(c, row, &s, &one, out);
    double each = (double)dtype_row_of(types[i / 2])->bytes;
    out->bytes = 2048.0 * 8 * 2 * (double)s.k * each;
    out->flops = 4.0 * 2048 * 32 * (double)s.k;
    return true;
}

/* ---- convert ---- */

/* Some of each sequence's full pages become pages of a tier. */
static bool convert_make(check *c, const kernel_row *row, int i, check_case *out)
{
    (void)row;
    const int code = i - N_SHAPE * 3;
    if (code >= N_CODES)
        return false;
    const cell_shape *s = code < 0 ? &shapes[i % N_SHAPE] : &code_shapes[code];
    tier_set tiers =
        code < 0 ? tier_sets[(i + i / N_SHAPE) % N_TIERS] : code_sets[code % N_CODE_SETS];
    tiers.missing = tiers.gone = false;
    int tier = 1 + (int)check_below(c, tiers.n - 1);
    kbatch *all = batch_make(c, s, longest(s), s->page_tok);
    float *keys = check_numbers(c, all->n_tok * s->cell_heads * s->k);
    float *values = check_numbers(c, all->n_tok * s->cell_heads * s->v);
    keys[check_below(c, all->n_tok * s->cell_heads * s->k)] = NAN;
    kcell *cell = cell_fill(c, s, kform_dtype(tiers.key[0]), s->page_tok, keys, values, all);
    tiers_fill(c, s, &tiers, cell, all);
    tables_add(s, &tiers, all);
    for (int64_t q = 0; q < all->n_seq; q++) {
        int64_t n = s->len[q] / s->page_tok, begin = check_below(c, n + 1);
        int32_t *range = kbatch_pages_room(all, 1 + tier, q) - KBATCH_RANGE;
        range[0] = (int32_t)begin;
        range[1] = (int32_t)(begin + check_below(c, n - begin + 1));
    }
    out->cell_bytes = (size_t)(pages_of(s, s->page_tok) * cell->tier[tier].page_bytes);
    out->cell_tier = tier;
    out->ref.cell = out->k.cell = cell;
    out->ref.batch = out->k.batch = all;
    out->ref.size = out->k.size = (ksizes){.convert = {all->n_tok, tier}};
    snprintf(out->shape, sizeof out->shape, "%s to %s, heads %d of %d, pages of %d",
             kform_name(tiers.key[tier - 1]), kform_name(tiers.key[tier]), (int)s->cell_heads,
             (int)s->k, (int)s->page_tok);
    return true;
}

const check_op check_ops_cell[] = {
    {KOP_append, append_make, NULL},
    {KOP_convert, convert_make, NULL},
    {KOP_attend, attend_make, attend_bench},
    {0},
};
