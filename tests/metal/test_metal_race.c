/* test_metal_race.c - a model in race mode: nothing is told of the product's own barriers; without one of them something is. */
#include "tests/metal/metal_kit.h"

static const metal_driver *real;
static int left_out; /* the barrier of each call that is left out; -1: none */
static int seen;     /* barriers of this call */

static bool begin(metal_queue *q, metal_call *out, metal_why *why)
{
    seen = 0;
    return real->begin(q, out, why);
}

static void barrier(metal_call *c)
{
    if (seen++ != left_out)
        real->barrier(c);
}

/* A row, then two where no barrier is left out. The session can be cancelled, for which threadgroups share a word in every phase. */
static weft_status run(gpu_model *m, int which)
{
    static metal_driver driver;
    const cancel_flag never = {0};
    device *d = NULL;
    session *s = NULL;
    real = gpu_driver(m->dg);
    driver = *real;
    driver.begin = begin;
    driver.barrier = barrier;
    left_out = which;
    ck_assert_int_eq(metal_device_open(m->dg, &driver, 0, &d), WEFT_OK);
    session_options opt = gpu_options(m, d);
    opt.cancel = &never;
    ck_assert_int_eq(session_create(m->dg, m->p, model_file_source(m->mf), &opt, &s), WEFT_OK);
    weft_status st = gpu_eval(m, s, 0, 0, 1);
    if (st == WEFT_OK)
        ck_assert_double_le(gpu_off(m, s, 0, 1), GPU_CLOSE);
    if (st == WEFT_OK && which < 0)
        st = gpu_eval(m, s, 0, 1, 2);
    session_destroy(s);
    gpu_close(d);
    return st;
}

START_TEST(no_race_is_told_of_the_product)
{
    gpu_model m = gpu_model_open("llama-mha");
    metal_fake_set("race", 1);
    ck_assert_msg(run(&m, -1) == WEFT_OK, "%s", diag_shown(m.dg));
    gpu_model_close(&m);
}
END_TEST

/* Tokens that the GPU chooses, and a call behind them that takes them from its memory: by the fence between the two. */
START_TEST(calls_that_follow_are_in_order)
{
    const ksample how = {.greedy = 1, .from = -1};
    const bool more = true;
    bool begun = false;
    ksampled got;
    session *s = NULL;
    gpu_model m = gpu_model_open("llama-mha");
    metal_fake_set("race", 1);
    device *d = gpu_open(m.dg);
    ck_assert_int_eq(gpu_session(&m, d, &s), WEFT_OK);
    batch_row row = {.id = m.ids[0], .pos = 0, .seq = 0, .out = true};
    ck_assert_int_eq(session_choose(m.dg, s, &row, 1, &how), WEFT_OK);
    ck_assert_int_eq(session_choose_next(m.dg, s, &how, &more, &begun), WEFT_OK);
    ck_assert(begun);
    for (int i = 0; i < 2; i++)
        ck_assert_msg(session_chosen(m.dg, s, &got) == WEFT_OK, "%s", diag_shown(m.dg));
    session_destroy(s);
    gpu_close(d);
    gpu_model_close(&m);
}
END_TEST

/* Of a layer: behind its linears, attention, the next two and the last. */
START_TEST(barriers_that_are_missing_are_told)
{
    gpu_model m = gpu_model_open("llama-mha");
    metal_fake_set("race", 1);
    for (int i = 0; i < 5; i++) {
        ck_assert_msg(run(&m, i) != WEFT_OK, "barrier %d is not missed", i);
        gpu_expect_error(&m, W1610, "race");
    }
    gpu_model_close(&m);
}
END_TEST

SUITE_MAIN("metal_race", no_race_is_told_of_the_product, calls_that_follow_are_in_order,
           barriers_that_are_missing_are_told)
