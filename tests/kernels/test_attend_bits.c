/* test_attend_bits.c - attention gives the same bits whatever pages its rows lie in, and whichever rows
 * come with it in a call, and in two steps as in one. With CHECK_CUDA or CHECK_METAL the kernels are those of cards (tests/cuda,
 * tests/metal), in some of the cases. */
#include "tests/base/suite.h"

#include "kernels/kernels.h"

#if defined(CHECK_CUDA) || defined(CHECK_METAL)
#include "tests/kernels/check.h"
void check_fail(const char *what)
{
    ck_abort_msg("%s", what);
}
#define attend_rows check_more_rows
enum { CASES_EVERY = 29 };
#ifdef CHECK_METAL
enum { SPLITS_EVERY = 3 }; /* fibres are slow at long contexts */
#else
enum { SPLITS_EVERY = 1 };
#endif
#else
#define attend_rows kernel_rows
enum { CASES_EVERY = 1, SPLITS_EVERY = 1 };
#endif

enum { LEN = 300, HEADS = 6, WIDTH = 64, LATENT_HEADS = 12, LATENT_WIDTH = 72, ROWS = 40 };
enum { QUERY_MAX = LATENT_HEADS * LATENT_WIDTH, RESULT_MAX = LATENT_HEADS * WIDTH };

/* Of the cell: heads, so that one or more query heads share one, and the widths of keys and of values, with and without a
 * rest; WIDTH is one that cards have a way for. Latent rows have a head, which more query heads share than a card's unit of one row. */
static int heads, cell_heads, k_width, v_width;
static bool latent;
static const int widths[][2] = {{24, 20}, {24, 16}, {WIDTH, WIDTH}, {LATENT_WIDTH, WIDTH}};
enum { LATENT = COUNT_OF(widths) - 1 };
static float keys[LEN * HEADS * WIDTH], values[LEN * HEADS * WIDTH], q[ROWS * QUERY_MAX];
static int32_t pos[LEN], pages[LEN + 1];

static void widths_set(size_t row, int n_heads, int n_cell)
{
    k_width = widths[row][0];
    v_width = widths[row][1];
    latent = row == LATENT;
    heads = latent ? 2 * n_heads : n_heads;
    cell_heads = latent ? 1 : n_cell;
}

/* Numbers of a position in the cell. */
static int64_t position_elems(void)
{
    return cell_heads * (k_width + (latent ? 0 : v_width));
}

static void numbers(float *x, size_t n, unsigned *seed)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(rand_r(seed) % 2001 - 1000) / 500;
}

static kcell cell_create(dtype type, int64_t page_tok)
{
    int64_t each = (int64_t)dtype_row_of(type)->bytes, n_page = LEN / page_tok + 1;
    kform form = kform_of_dtype(type);
    kcell c = {
        .tier = {{.page_bytes = page_tok * position_elems() * each, .key = form, .value = form}},
        .n_tier = 1,
        .page_tok = page_tok,
        .heads = cell_heads,
        .k = k_width,
        .v = v_width,
        .latent = latent};
    c.tier[0].base = malloc((size_t)(n_page * c.tier[0].page_bytes));
    for (int64_t i = 0; i < n_page; i++)
        pages[i] = (int32_t)(n_page - 1 - i);
    return c;
}

static const kernel_row *variant; /* of attend */

/* Rows at positions `at` of one sequence. */
static void batch_set(kbatch *b, int64_t n, const int32_t *at, const int32_t *table, int64_t n_page)
{
    *b = (kbatch){.n_tok = n, .n_seq = 1, .n_table = 1, .n_page = n_page};
    memset(kbatch_room(b, KBATCH_SEQ), 0, (size_t)n * sizeof *at);
    memcpy(kbatch_room(b, KBATCH_POS), at, (size_t)n * sizeof *at);
    kbatch_pages_clear(b);
    memcpy(kbatch_pages_room(b, 0, 0), table, (size_t)n_page * sizeof *table);
}

/* The last ROWS rows, `n_call` of them in a call; all rows are in the cell before. */
static void attend(dtype type, int64_t page_tok, int64_t window, int64_t n_call, float *out)
{
    const kernel_row *append = kernel_find(KOP_append, "c"), *row = variant;
    kcell cell = cell_create(type, page_tok);
    kbatch *b =
        malloc(kbatch_bytes(&(kbatch){.n_tok = LEN, .n_seq = 1, .n_table = 1, .n_page = LEN + 1}));
    batch_set(b, LEN, pos, pages, LEN + 1);
    kargs k = {.in = {keys, latent ? NULL : values},
               .pitch = {cell_heads * k_width * 4, cell_heads * v_width * 4},
               .size.append = {LEN},
               .batch = b,
               .cell = &cell};
    append->fn(&k, &(kthread){.count = 1}, 0, LEN);
    for (int64_t at = 0; at < ROWS; at += n_call) {
        int64_t n = ROWS - at < n_call ? ROWS - at : n_call;
        batch_set(b, n, pos + LEN - ROWS + at, pages, LEN + 1);
        k = (kargs){.in = {q + at * heads * k_width},
                    .out = {out + at * heads * v_width},
                    .pitch = {heads * k_width * 4},
                    .out_pitch = {heads * v_width * 4},
                    .size.attend = {n, heads, window},
                    .scalar.attend = {0.25},
                    .batch = b,
                    .cell = &cell};
        kthread t = {.count = 1, .scratch_bytes = kernel_scratch(row, &k)};
        t.scratch = malloc(t.scratch_bytes);
        row->fn(&k, &t, 0, kernel_units(row, &k));
        free(t.scratch);
    }
    free(b);
    free(cell.tier[0].base);
}

/* Cards read rows of WIDTH, or any, in another way where pages are no multiple of 32 positions, which those of models are. */
static int64_t pages_even(void)
{
#if defined(CHECK_METAL)
    return 32;
#elif defined(CHECK_CUDA)
    return k_width == WIDTH ? 32 : 1;
#else
    return 1;
#endif
}

static void bits_hold(void)
{
    static const dtype types[] = {DT_F32, DT_F16, DT_BF16};
    static const int64_t page_toks[] = {1, 5, 16, 64, 100, 512}, windows[] = {0, 33, 64, 200};
    static const int64_t calls[] = {1, 7, ROWS};
    static float want[ROWS * RESULT_MAX], got[ROWS * RESULT_MAX];
    static int seen;
    unsigned seed = 5;
    numbers(keys, COUNT_OF(keys), &seed);
    numbers(values, COUNT_OF(values), &seed);
    numbers(q, COUNT_OF(q), &seed);
    for (int32_t i = 0; i < LEN; i++)
        pos[i] = i;
    for (size_t t = 0; t < COUNT_OF(types); t++)
        for (size_t w = 0; w < COUNT_OF(windows); w++) {
            bool wanted = false;
            for (size_t p = 0; p < COUNT_OF(page_toks); p++)
                for (size_t c = 0; c < COUNT_OF(calls); c++) {
                    if (seen++ % CASES_EVERY != 0 || page_toks[p] % pages_even() != 0)
                        continue;
                    if (!wanted)
                        attend(types[t], 32, windows[w], ROWS, want);
                    wanted = true;
                    attend(types[t], page_toks[p], windows[w], calls[c], got);
                    if (memcmp(got, want, (size_t)(ROWS * heads * v_width) * sizeof *got) != 0)
                        ck_abort_msg("%s: other bits: %d/%d heads, %s, pages of %d, window %d, %d "
                                     "rows a call",
                                     variant->symbol, heads, cell_heads,
                                     dtype_row_of(types[t])->name, (int)page_toks[p],
                                     (int)windows[w], (int)calls[c]);
                }
        }
}

START_TEST(same_bits)
{
    static const int cells[] = {1, 2, 3, HEADS};
    int n;
    const kernel_row *rows = attend_rows(&n);
    for (int i = 0; i < n; i++) {
        variant = &rows[i];
        if (variant->op == KOP_attend && variant->variant != VARIANT_ref &&
            kvariant_runs(variant->variant))
            for (size_t c = 0; c < COUNT_OF(cells); c++)
                for (size_t w = 0; w < COUNT_OF(widths); w++) {
                    if (w == LATENT && c > 0)
                        continue;
                    widths_set(w, HEADS, cells[c]);
                    bits_hold();
                }
    }
}
END_TEST

/* ---- one step or two ---- */

enum { LONG = 16400, LONG_PAGE = 64, SPLIT_ROWS = 3 };

/* A cell of LONG positions of noise, and a row of it. */
typedef struct {
    kcell cell;
    kargs k;
    kbatch *b;
    int32_t pages[LONG / LONG_PAGE + 1];
    float q[SPLIT_ROWS * QUERY_MAX], sinks[LATENT_HEADS], out[SPLIT_ROWS * RESULT_MAX];
} long_case;

static long_case *long_create(void)
{
    long_case *c = calloc(1, sizeof *c);
    unsigned seed = 9;
    size_t bytes = (size_t)(LONG / LONG_PAGE + 1) * LONG_PAGE * (size_t)position_elems() * 2;
    uint16_t *half = malloc(bytes);
    for (size_t i = 0; i < bytes / 2; i++) /* f16 numbers of 1/4 to 2 */
        half[i] = (uint16_t)(rand_r(&seed) & 0x8fff) | 0x3000;
    numbers(c->q, COUNT_OF(c->q), &seed);
    numbers(c->sinks, COUNT_OF(c->sinks), &seed);
    for (int32_t i = 0; i <= LONG / LONG_PAGE; i++)
        c->pages[i] = LONG / LONG_PAGE - i;
    c->cell = (kcell){.tier = {{.base = (char *)half,
                                .page_bytes = LONG_PAGE * position_elems() * 2,
                                .key = KFORM_F16,
                                .value = KFORM_F16}},
                      .n_tier = 1,
                      .page_tok = LONG_PAGE,
                      .heads = cell_heads,
                      .k = k_width,
                      .v = v_width,
                      .latent = latent};
    c->b = malloc(kbatch_bytes(&(kbatch){
        .n_tok = SPLIT_ROWS, .n_seq = 1, .n_table = 1, .n_page = (int64_t)COUNT_OF(c->pages)}));
    c->k = (kargs){.in = {c->q, NULL, c->sinks},
                   .out = {c->out},
                   .pitch = {heads * k_width * 4},
                   .out_pitch = {heads * v_width * 4},
                   .size.attend = {1, heads},
                   .scalar.attend = {0.25},
                   .batch = c->b,
                   .cell = &c->cell};
    return c;
}

static void units_run(const kargs *k, int64_t step)
{
    kthread t = {.count = 1, .scratch_bytes = kernel_scratch(variant, k)};
    t.scratch = malloc(t.scratch_bytes);
    for (int64_t i = 0; i < kernel_units(variant, k); i += step) {
        int64_t left = kernel_units(variant, k) - i;
        variant->fn(k, &t, i, i + (left < step ? left : step));
    }
    free(t.scratch);
}

/* States of every stretch, in pieces, then merged: as the whole at once. Of n rows from `at` on; a single one has no sinks. */
static void split_holds(long_case *c, int64_t n, int32_t at, int64_t window)
{
    int64_t each = kernel_state_elems(v_width) * heads;
    static float want[COUNT_OF(c->out)];
    const int32_t rows[SPLIT_ROWS] = {at, at + 1, at + 2};
    batch_set(c->b, n, rows, c->pages, (int64_t)COUNT_OF(c->pages));
    c->k.size.attend.rows = n;
    c->k.size.attend.window = window;
    c->k.in[2] = n > 1 ? c->sinks : NULL;
    memset(c->out, 0, sizeof c->out);
    units_run(&c->k, 100);
    memcpy(want, c->out, sizeof want);
    memset(c->out, 0, sizeof c->out);
    float *states = malloc((size_t)(SPLIT_ROWS * each) * sizeof *states);
    memset(states, 0xff, (size_t)(SPLIT_ROWS * each) * sizeof *states);
    kargs first = c->k, then = c->k;
    first.choice.attend.part = ATTEND_STATES;
    first.out[0] = states;
    first.out_pitch[0] = each * 4;
    units_run(&first, 3);
    then.choice.attend.part = ATTEND_MERGE;
    then.in[0] = states;
    then.pitch[0] = each * 4;
    units_run(&then, 2);
    free(states);
    if (memcmp(want, c->out, sizeof want) != 0)
        ck_abort_msg("%s: other bits in two steps: %d rows, %d heads, position %d, window %d",
                     variant->symbol, (int)n, heads, (int)at, (int)window);
}

START_TEST(two_steps_give_the_same_bits)
{
    static const int32_t at[] = {0, 70, 126, 254, 1022, 2500, 8190, 16382, 16390};
    int n;
    const kernel_row *rows = attend_rows(&n);
    for (int i = 0; i < n; i++) {
        variant = &rows[i];
        if (variant->op != KOP_attend || !kernel_splits(variant) ||
            !kvariant_runs(variant->variant))
            continue;
        for (int n_case = 0; n_case < 9; n_case += SPLITS_EVERY) {
            static const int heads_of[] = {1, 2, 4, HEADS};
            if (n_case < 8)
                widths_set(n_case < 4 ? 0 : LATENT - 1, heads_of[n_case % 4], 1);
            else
                widths_set(LATENT, HEADS, 1);
            long_case *c = long_create();
            for (size_t p = 0; p < COUNT_OF(at); p++) {
                if (SPLITS_EVERY > 1 && at[p] > 3000 && (n_case > 0 || p + 1 < COUNT_OF(at)))
                    continue;
                if (latent && at[p] > 3000 && p + 1 < COUNT_OF(at)) /* of many query heads */
                    continue;
                split_holds(c, SPLIT_ROWS, at[p], 0);
                split_holds(c, SPLIT_ROWS, at[p], 1500);
                split_holds(c, 1, at[p], 0);
            }
            free(c->cell.tier[0].base);
            free(c->b);
            free(c);
        }
    }
}
END_TEST

SUITE_MAIN("attend_bits", same_bits, two_steps_give_the_same_bits)
