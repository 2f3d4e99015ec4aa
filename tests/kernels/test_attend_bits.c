/* test_attend_bits.c - attention gives the same bits whatever pages its rows lie in, and whichever rows
 * come with it in a call. */
#include "tests/base/suite.h"

#include "kernels/kernels.h"

enum { LEN = 300, HEADS = 6, CELL_HEADS = 2, K = 24, V = 20, ROWS = 40 };

static float keys[LEN * CELL_HEADS * K], values[LEN * CELL_HEADS * V], q[ROWS * HEADS * K];
static int32_t pos[LEN], seq[LEN], pages[LEN + 1];

static void numbers(float *x, size_t n, unsigned *seed)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(rand_r(seed) % 2001 - 1000) / 500;
}

static kcell cell_create(dtype type, int64_t page_tok)
{
    int64_t each = (int64_t)dtype_row_of(type)->bytes, n_page = LEN / page_tok + 1;
    kcell c = {.page_bytes = page_tok * CELL_HEADS * (K + V) * each,
               .page_tok = page_tok,
               .heads = CELL_HEADS,
               .k = K,
               .v = V,
               .type = type};
    c.base = malloc((size_t)(n_page * c.page_bytes));
    for (int64_t i = 0; i < n_page; i++)
        pages[i] = (int32_t)(n_page - 1 - i);
    return c;
}

static const kernel_row *variant; /* of attend */

/* The last ROWS rows, `n_call` of them in a call; all rows are in the cell before. */
static void attend(dtype type, int64_t page_tok, int64_t window, int64_t n_call, float *out)
{
    const int32_t *tables[] = {pages};
    const kernel_row *append = kernel_find("append", "c"), *row = variant;
    kcell cell = cell_create(type, page_tok);
    kbatch b = {.n_tok = LEN, .n_seq = 1, .seq = seq, .pos = pos, .pages = tables};
    kargs k = {.in = {keys, values},
               .pitch = {CELL_HEADS * K * 4, CELL_HEADS * V * 4},
               .n = {LEN},
               .batch = &b,
               .cell = &cell};
    append->fn(&k, &(kthread){.count = 1}, 0, LEN);
    for (int64_t at = 0; at < ROWS; at += n_call) {
        b.pos = pos + LEN - ROWS + at;
        b.n_tok = ROWS - at < n_call ? ROWS - at : n_call;
        k = (kargs){.in = {q + at * HEADS * K},
                    .out = {out + at * HEADS * V},
                    .pitch = {HEADS * K * 4},
                    .out_pitch = {HEADS * V * 4},
                    .n = {b.n_tok, HEADS, window},
                    .f = {0.25},
                    .batch = &b,
                    .cell = &cell};
        kthread t = {.count = 1, .scratch_bytes = kernel_scratch(row, &k)};
        t.scratch = malloc(t.scratch_bytes);
        row->fn(&k, &t, 0, kernel_units(row, &k));
        free(t.scratch);
    }
    free(cell.base);
}

static void bits_hold(void)
{
    static const dtype types[] = {DT_F32, DT_F16, DT_BF16};
    static const int64_t page_toks[] = {1, 5, 16, 64, 100, 512}, windows[] = {0, 33, 64, 200};
    static const int64_t calls[] = {1, 7, ROWS};
    static float want[ROWS * HEADS * V], got[ROWS * HEADS * V];
    unsigned seed = 5;
    numbers(keys, COUNT_OF(keys), &seed);
    numbers(values, COUNT_OF(values), &seed);
    numbers(q, COUNT_OF(q), &seed);
    for (int32_t i = 0; i < LEN; i++)
        pos[i] = i;
    for (size_t t = 0; t < COUNT_OF(types); t++)
        for (size_t w = 0; w < COUNT_OF(windows); w++) {
            attend(types[t], 32, windows[w], ROWS, want);
            for (size_t p = 0; p < COUNT_OF(page_toks); p++)
                for (size_t c = 0; c < COUNT_OF(calls); c++) {
                    attend(types[t], page_toks[p], windows[w], calls[c], got);
                    if (memcmp(got, want, sizeof got) != 0)
                        ck_abort_msg("%s: other bits: %s, pages of %d, window %d, %d rows a call",
                                     variant->symbol, dtype_row_of(types[t])->name,
                                     (int)page_toks[p], (int)windows[w], (int)calls[c]);
                }
        }
}

START_TEST(same_bits)
{
    int n;
    const kernel_row *rows = kernel_rows(&n);
    for (int i = 0; i < n; i++) {
        variant = &rows[i];
        if (strcmp(variant->op, "attend") == 0 && variant->variant != VARIANT_ref &&
            kvariant_runs(variant->variant))
            bits_hold();
    }
}
END_TEST

SUITE_MAIN("attend_bits", same_bits)
