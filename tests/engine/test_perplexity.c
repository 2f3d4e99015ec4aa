/* test_perplexity.c - the suite of runtime/engine/perplexity.c: which tokens are evaluated and scored. */
#include "runtime/engine/perplexity.h"
#include "runtime/base/vec.h"
#include "tests/base/suite.h"

enum { VOCAB = 100, BOS = 99 };

/* A model that says, in logit 0 of each row, which token the row was; notes what it is asked. */
typedef struct {
    int64_t length; /* of its sequence */
    VEC(int32_t) first, scored, before;
    float logits[64 * VOCAB];
    int64_t calls, calls_max;
} fake;

static weft_status on_eval(void *ctx, weft_diag *dg, const int32_t *ids, int64_t n, int64_t pos,
                           int64_t first, const float **out_logits)
{
    fake *f = ctx;
    (void)dg;
    if (pos == 0) {
        f->length = 0;
        VEC_PUSH(&f->first, ids[0]);
    }
    ck_assert_int_eq(pos, f->length);
    ck_assert(first >= 0 && first <= n && n > 0);
    f->length += n;
    for (int64_t i = first; i < n; i++)
        f->logits[(i - first) * VOCAB] = (float)ids[i];
    *out_logits = f->logits;
    f->calls++;
    return WEFT_OK;
}

static weft_status on_row(void *ctx, weft_diag *dg, const float *logits, int32_t token)
{
    fake *f = ctx;
    (void)dg;
    VEC_PUSH(&f->before, (int32_t)logits[0]);
    VEC_PUSH(&f->scored, token);
    return WEFT_OK;
}

static bool on_progress(void *ctx, int64_t n_done, int64_t n_total)
{
    const fake *f = ctx;
    ck_assert_int_le(n_done, n_total);
    return !f->calls_max || f->calls < f->calls_max;
}

/* Over the text 0, 1, 2, ... */
static ppl_result run(fake *f, ppl_options o, int64_t n_token)
{
    int32_t ids[64];
    weft_diag *dg = diag_create();
    ppl_calls calls = {on_eval, on_row, on_progress, f, VOCAB};
    ppl_result r;
    for (int i = 0; i < 64; i++)
        ids[i] = i;
    *f = (fake){.calls_max = f->calls_max};
    ck_assert_int_eq(ppl_run(dg, &o, ids, n_token, &calls, &r), WEFT_OK);
    diag_destroy(dg);
    return r;
}

static void drop(fake *f)
{
    VEC_FREE(&f->first);
    VEC_FREE(&f->scored);
    VEC_FREE(&f->before);
}

START_TEST(halves)
{
    fake f = {0};
    for (int64_t batch = 1; batch <= 9; batch++) {
        ppl_options o = {.context = 8, .batch = batch, .bos = BOS};
        ppl_result r = run(&f, o, 27); /* three chunks and a rest */
        ck_assert_int_eq(r.chunks, 3);
        ck_assert_int_eq(r.n_token, 21);
        ck_assert_uint_eq(f.scored.n, (size_t)(3 * ppl_chunk_rows(&o)));
        static const int32_t want[] = {5, 6, 7, 13, 14, 15, 21, 22, 23};
        for (int i = 0; i < 9; i++) {
            ck_assert_int_eq(f.scored.at[i], want[i]);
            ck_assert_int_eq(f.before.at[i], want[i] - 1);
        }
        for (int i = 0; i < 3; i++)
            ck_assert_int_eq(f.first.at[i], BOS);
        drop(&f);
    }
}
END_TEST

START_TEST(strides)
{
    fake f = {0};
    for (int64_t batch = 1; batch <= 9; batch++) {
        ppl_options o = {.context = 8, .stride = 3, .batch = batch, .bos = BOS};
        ppl_result r = run(&f, o, 15); /* chunks at 0, 3 and 6 */
        ck_assert_int_eq(r.chunks, 3);
        ck_assert_uint_eq(f.scored.n, 9);
        for (int i = 0; i < 9; i++)
            ck_assert_int_eq(f.scored.at[i], 5 + i); /* each token once */
        for (int i = 0; i < 3; i++)
            ck_assert_int_eq(f.first.at[i], 3 * i);
        drop(&f);
    }
}
END_TEST

START_TEST(counts)
{
    ppl_options o = {.context = 8, .batch = 8, .bos = -1};
    ck_assert_int_eq(ppl_chunks(&o, 7), 0);
    ck_assert_int_eq(ppl_chunks(&o, 8), 1);
    ck_assert_int_eq(ppl_chunks(&o, 31), 3);
    o.chunks_max = 2;
    ck_assert_int_eq(ppl_chunks(&o, 31), 2);
    ck_assert_int_eq(ppl_chunks(&o, 8), 1);
    o.chunks_max = 0;
    o.stride = 7;
    ck_assert_int_eq(ppl_chunk_rows(&o), 7);
    ck_assert_int_eq(ppl_chunks(&o, 8), 0);
    ck_assert_int_eq(ppl_chunks(&o, 9), 1);
    ck_assert_int_eq(ppl_chunks(&o, 16), 2);
    o = (ppl_options){.context = 2, .batch = 1};
    ck_assert_int_eq(ppl_chunk_rows(&o), 0);
}
END_TEST

START_TEST(it_can_be_stopped)
{
    fake f = {.calls_max = 3};
    ppl_result r = run(&f, (ppl_options){.context = 8, .batch = 4, .bos = -1}, 32);
    ck_assert(r.stopped);
    ck_assert_int_eq(r.chunks, 1);
    ck_assert_int_eq(f.calls, 3);
    ck_assert_int_eq(f.first.at[0], 0); /* no BOS */
    drop(&f);
}
END_TEST

SUITE_MAIN("perplexity", halves, strides, counts, it_can_be_stopped)
