/* test_ref_cell.c - append and attend through pages: sizes of page, orders of pages, stored types,
 * sequences whose rows come turn by turn. */
#include "tests/base/suite.h"
#include "tests/kernels/ref_case.h"

#include <math.h>
#include "kernels/ref/dequant.h"

enum { N_PAGE = 32, PAGE_PAD = 20 };

/* A cell with its memory, and page tables of all sequences. */
typedef struct {
    kcell cell;
    size_t bytes;
    int32_t table[ATTEND_SEQ_MAX][N_PAGE];
} store;

static int64_t type_bytes(dtype t)
{
    return (int64_t)dtype_row_of(t)->bytes;
}

/* All of it NaN, so that what was never written shows. Pages are dealt to the sequences in turn,
 * from the last to the first. */
static store store_create(const attend_case *c, dtype type, int64_t page_tok)
{
    store s = {0};
    int64_t tok = c->cell_heads * (c->k + (c->latent ? 0 : c->v));
    s.cell = (kcell){.tier = {{.page_bytes = page_tok * tok * type_bytes(type) + PAGE_PAD,
                               .key = kform_of_dtype(type),
                               .value = kform_of_dtype(type)}},
                     .n_tier = 1,
                     .page_tok = page_tok,
                     .heads = c->cell_heads,
                     .k = c->k,
                     .v = c->v,
                     .latent = c->latent};
    s.bytes = (size_t)(N_PAGE * s.cell.tier[0].page_bytes);
    s.cell.tier[0].base = malloc(s.bytes);
    memset(s.cell.tier[0].base, 0xff, s.bytes);
    int32_t next = N_PAGE;
    for (int64_t p = 0; p < N_PAGE / c->n_seq; p++)
        for (int64_t q = 0; q < c->n_seq; q++)
            s.table[q][p] = --next;
    return s;
}

/* Rows of any of the case's sequences. */
static kbatch *batch_create(const attend_case *c, const store *s, int64_t n, const int32_t *seq,
                            const int32_t *pos)
{
    kbatch counts = {.n_tok = n, .n_seq = c->n_seq, .n_table = 1, .n_page = N_PAGE};
    kbatch *b = calloc(1, kbatch_bytes(&counts));
    *b = counts;
    memcpy(kbatch_room(b, KBATCH_SEQ), seq, (size_t)n * sizeof *seq);
    memcpy(kbatch_room(b, KBATCH_POS), pos, (size_t)n * sizeof *pos);
    kbatch_pages_clear(b);
    for (int64_t q = 0; q < c->n_seq; q++)
        memcpy(kbatch_pages_room(b, 0, q), s->table[q], sizeof s->table[q]);
    return b;
}

/* Row t of the call, of an array [len, width] per sequence. */
static void gather(const kbatch *b, const float *const *from, int64_t width, float *to)
{
    for (int64_t t = 0; t < b->n_tok; t++)
        memcpy(to + t * width,
               from[kbatch_at(b, KBATCH_SEQ)[t]] + kbatch_at(b, KBATCH_POS)[t] * width,
               (size_t)width * sizeof *to);
}

static void append(const attend_case *c, store *s, const kbatch *b, bool one_by_one)
{
    static float keys[4096], values[4096];
    const kernel_row *row = kernel_find(KOP_append, "ref");
    kthread t = {0, 1, NULL, 0};
    gather(b, c->keys, c->cell_heads * c->k, keys);
    if (!c->latent)
        gather(b, c->values, c->cell_heads * c->v, values);
    kargs k = {.in = {keys, c->latent ? NULL : values},
               .size.append = {b->n_tok},
               .batch = b,
               .cell = &s->cell};
    if (!one_by_one) {
        row->fn(&k, &t, 0, b->n_tok);
        return;
    }
    for (int64_t u = b->n_tok - 1; u >= 0; u--)
        row->fn(&k, &t, u, u + 1);
}

/* What earlier calls have left: one row a call, the sequences in turn. */
static void append_history(const attend_case *c, store *s)
{
    int64_t had[ATTEND_SEQ_MAX], longest = 0;
    for (int64_t q = 0; q < c->n_seq; q++) {
        had[q] = c->len[q];
        for (int64_t t = 0; t < c->n_row; t++)
            had[q] -= c->seq[t] == q;
        longest = had[q] > longest ? had[q] : longest;
    }
    for (int64_t p = 0; p < longest; p++)
        for (int64_t q = 0; q < c->n_seq; q++) {
            int32_t seq = (int32_t)q, pos = (int32_t)p;
            if (p >= had[q])
                continue;
            kbatch *b = batch_create(c, s, 1, &seq, &pos);
            append(c, s, b, false);
            free(b);
        }
}

static void check_attend(const attend_case *c, dtype type, int64_t page_tok)
{
    char what[160];
    snprintf(what, sizeof what, "attend, %s (%s, pages of %d)", c->name, dtype_row_of(type)->name,
             (int)page_tok);
    store s = store_create(c, type, page_tok);
    kbatch *b = batch_create(c, &s, c->n_row, c->seq, c->pos);
    append_history(c, &s);
    append(c, &s, b, false);
    kargs k = {.in = {c->q, NULL, c->sinks, c->slopes},
               .size.attend = {c->n_row, c->heads, c->window, c->chunk},
               .scalar.attend = {c->scale, c->softcap},
               .batch = b,
               .cell = &s.cell};
    run_checked(what, kernel_find(KOP_attend, "ref"), &k, &c->out, 1, false);
    free(b);
    free(s.cell.tier[0].base);
}

START_TEST(attend_recorded)
{
    static const int64_t page_toks[] = {1, 3, 16};
    static const dtype types[] = {DT_F32, DT_F16, DT_BF16};
    FILE *f = ref_cases_open();
    arena *a = arena_create();
    attend_case c;
    int n = 0;
    for (; attend_case_next(f, a, &c); n++)
        for (size_t p = 0; p < COUNT_OF(page_toks); p++)
            for (size_t t = 0; t < COUNT_OF(types); t++)
                check_attend(&c, types[t], page_toks[p]);
    ck_assert_int_ge(n, 18);
    arena_destroy(a);
    fclose(f);
}
END_TEST

/* ---- append, byte by byte ---- */

static void put(dtype type, float x, char *to)
{
    uint16_t h = type == DT_F16 ? f32_to_f16(x) : f32_to_bf16(x);
    if (type == DT_F32)
        memcpy(to, &x, 4);
    else
        memcpy(to, &h, 2);
}

/* The memory that a call must leave, worked out element by element. */
static void expect_rows(const attend_case *c, const store *s, const kbatch *b, char *image)
{
    dtype type = kform_dtype(s->cell.tier[0].key);
    int64_t each = type_bytes(type);
    const int32_t *seq = kbatch_at(b, KBATCH_SEQ), *pos = kbatch_at(b, KBATCH_POS);
    for (int64_t t = 0; t < b->n_tok; t++) {
        int64_t page_tok = s->cell.page_tok, slot = pos[t] % page_tok;
        char *page = image + s->table[seq[t]][pos[t] / page_tok] * s->cell.tier[0].page_bytes;
        for (int64_t h = 0; h < c->cell_heads; h++) {
            for (int64_t i = 0; i < c->k; i++)
                put(type, c->keys[seq[t]][(pos[t] * c->cell_heads + h) * c->k + i],
                    page + ((h * s->cell.page_tok + slot) * c->k + i) * each);
            for (int64_t i = 0; i < c->v && !c->latent; i++)
                put(type, c->values[seq[t]][(pos[t] * c->cell_heads + h) * c->v + i],
                    page + s->cell.page_tok * c->cell_heads * c->k * each +
                        ((h * s->cell.page_tok + slot) * c->v + i) * each);
        }
    }
}

static void check_append(const attend_case *c, dtype type, int64_t page_tok, bool one_by_one)
{
    store s = store_create(c, type, page_tok);
    char *image = malloc(s.bytes);
    memset(image, 0xff, s.bytes);
    kbatch *b = batch_create(c, &s, c->n_row, c->seq, c->pos);
    append(c, &s, b, one_by_one);
    expect_rows(c, &s, b, image);
    free(b);
    ck_assert_mem_eq(s.cell.tier[0].base, image, s.bytes);
    free(image);
    free(s.cell.tier[0].base);
}

/* Keys and values of all kinds: some need rounding, some are no numbers. */
START_TEST(append_layout)
{
    static float numbers[4][9 * 2 * 4];
    static const int32_t seq[] = {0, 1, 0, 1, 1, 0}, pos[] = {3, 6, 4, 7, 8, 5};
    static const dtype types[] = {DT_F32, DT_F16, DT_BF16};
    static const float strange[] = {1.0f / 3, 1e-8f, 65519, 65520, 1e38f, INFINITY, -INFINITY, NAN};
    for (size_t s = 0; s < 4; s++)
        for (size_t i = 0; i < COUNT_OF(numbers[s]); i++)
            numbers[s][i] = i % 5 == 0 ? strange[(i / 5 + s) % 8] : (float)(s * 100 + i) / 7;
    for (int latent = 0; latent < 2; latent++)
        for (size_t t = 0; t < COUNT_OF(types); t++)
            for (int64_t page_tok = 1; page_tok <= 16; page_tok++) {
                attend_case c = {.cell_heads = latent ? 1 : 2,
                                 .k = 4,
                                 .v = 3,
                                 .n_row = 6,
                                 .n_seq = 2,
                                 .latent = latent != 0,
                                 .keys = {numbers[0], numbers[1]},
                                 .values = {numbers[2], numbers[3]},
                                 .seq = seq,
                                 .pos = pos};
                check_append(&c, types[t], page_tok, false);
                check_append(&c, types[t], page_tok, true);
            }
}
END_TEST

SUITE_MAIN("ref_cell", attend_recorded, append_layout)
