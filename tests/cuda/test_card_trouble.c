/* test_card_trouble.c - a driver whose functions fail, cards that are lost, too small or not there: an error that says so,
 * nothing left behind, and the process lives. */
#include "tests/cuda/card_kit.h"
#include "tests/cuda/simt_run.h"

#include <string.h>

static const fake_card small_card = {.cards = 1,
                                     .version = CUDA_VERSION_LEAST,
                                     .multiprocessors = 1,
                                     .threads = 32,
                                     .card_bytes = (size_t)1 << 30,
                                     .shared_bytes = 100 << 10,
                                     .together = true};

/* Whose calls of few rows are graphs. */
static const fake_card apart_card = {.cards = 1,
                                     .version = CUDA_VERSION_LEAST,
                                     .multiprocessors = 1,
                                     .threads = 32,
                                     .card_bytes = (size_t)1 << 30,
                                     .shared_bytes = 100 << 10};

static card_model model;

static void fresh(const fake_card *c)
{
    fake_reset(c);
    ck_assert_int_eq(fake_driver()->cuInit(0), CU_OK);
    diag_reset(model.dg);
}

/* A call that fails changes no sequence. */
static weft_status eval(session *s, int32_t seq, int64_t first, int64_t n)
{
    weft_status st = card_eval(&model, s, seq, first, n);
    ck_assert_int_eq(session_length(s, seq), st == WEFT_OK ? first + n : first);
    return st;
}

/* Tokens that the card chooses, with a call queued ahead; what fails changes nothing. */
static weft_status choose(session *s, int32_t seq, int64_t first)
{
    const ksample how = {.greedy = 1, .from = -1};
    const bool more = true;
    bool begun;
    ksampled got;
    batch_row row = {.id = 1, .pos = (int32_t)first, .seq = seq, .out = true};
    weft_status st = session_choose(model.dg, s, &row, 1, &how);
    if (st == WEFT_OK)
        st = session_choose_next(model.dg, s, &how, &more, &begun);
    if (st == WEFT_OK)
        st = session_chosen(model.dg, s, &got);
    ck_assert_int_eq(session_length(s, seq), st == WEFT_OK ? first + 1 : first);
    if (st == WEFT_OK)
        st = session_chosen(model.dg, s, &got);
    return st;
}

/* Some of everything that a session does on a card. */
static weft_status use_session(session *s)
{
    float x[4];
    WEFT_TRY(eval(s, 0, 0, 3));
    WEFT_TRY(session_fork(model.dg, s, 0, 1, 3));
    WEFT_TRY(eval(s, 1, 3, 1)); /* copies a page first */
    WEFT_TRY(session_read(model.dg, s, "hidden", -1, x, 4));
    WEFT_TRY(choose(s, 1, 4));
    session_profile_begin(s);
    return eval(s, 0, 3, 1);
}

static bool ended; /* nothing had failed before the card was given back */

static weft_status use_card(void)
{
    device *d = NULL;
    session *s = NULL;
    WEFT_TRY(cuda_device_open(model.dg, fake_driver(), &fake_kernels, NULL, 0, &d));
    session_options opt = card_options(&model, d);
    weft_status st = session_create(model.dg, model.p, model_file_source(model.mf), &opt, &s);
    if (st == WEFT_OK)
        st = use_session(s);
    ended = !fake_has_failed();
    session_destroy(s);
    device_close(d);
    return st;
}

/* Where these fail, or others when everything ends, something stays behind, and there is nobody to tell. */
static bool gives_back(fake_fn f)
{
    return f == FAKE_cuMemFree || f == FAKE_cuMemFreeHost || f == FAKE_cuStreamDestroy ||
           f == FAKE_cuModuleUnload || f == FAKE_cuCtxPopCurrent || f == FAKE_cuGraphDestroy ||
           f == FAKE_cuGraphExecDestroy || f == FAKE_cuDevicePrimaryCtxRelease;
}

static void expect_one_error(const char *what, int64_t n)
{
    int errors = 0;
    for (size_t i = 0; i < diag_count(model.dg); i++)
        errors += diag_at(model.dg, i).severity == DIAG_ERROR;
    ck_assert_msg(errors == 1, "%s, call %lld: %d errors", what, (long long)n, errors);
}

/* Call n of the function fails; false: there are fewer. */
static bool run_failing(const fake_card *card, fake_fn f, int64_t n)
{
    bool allocates = f == FAKE_cuMemAlloc || f == FAKE_cuMemHostAlloc;
    fresh(card);
    fake_fail_at(f, n, allocates ? CU_OUT_OF_MEMORY : CU_LAUNCH_FAILED);
    ended = false;
    weft_status st = use_card();
    if (!fake_has_failed()) {
        ck_assert_msg(st == WEFT_OK, "%s", fake_name(f));
        return false;
    }
    fake_fail_at(f, -1, CU_OK);
    if (gives_back(f) || ended || (f == FAKE_cuCtxPushCurrent && st == WEFT_OK))
        return true;
    bool optional = f == FAKE_cuDeviceGetAttribute || f == FAKE_cuDeviceGetName;
    ck_assert_msg(optional || st != WEFT_OK, "%s, call %lld, is not noticed", fake_name(f),
                  (long long)n);
    if (st != WEFT_OK)
        expect_one_error(fake_name(f), n);
    ck_assert_msg(fake_holds_nothing(), "%s, call %lld: something stays", fake_name(f),
                  (long long)n);
    ck_assert_msg(!fake_misuse(), "%s, call %lld: %s", fake_name(f), (long long)n, fake_misuse());
    return true;
}

/* Each of the first calls, then not all of those that are made often. */
static void fail_functions(const fake_card *card, fake_fn first, fake_fn end, int64_t least)
{
    model = card_model_open("llama-mha", NULL);
    model.p = card_plan(&model, DT_F32, 4);
    int64_t reached = 0;
    for (fake_fn f = first; f < end; f++) {
        int64_t n = 0;
        while (run_failing(card, f, n))
            n += 1 + n / 3;
        reached += n > 0;
    }
    ck_assert_int_ge(reached, least);
    fresh(card);
    ck_assert_int_eq(use_card(), WEFT_OK); /* as good as new */
    card_model_close(&model);
}

START_TEST(functions_may_fail)
{
    fail_functions(&small_card, 0, FAKE_cuMemAlloc, 9);
}
END_TEST

START_TEST(functions_of_memory_and_launches_may_fail)
{
    fail_functions(&small_card, FAKE_cuMemAlloc, FAKE_COUNT, 9);
}
END_TEST

START_TEST(functions_of_graphs_may_fail)
{
    fail_functions(&apart_card, FAKE_cuGraphCreate, FAKE_cuGraphDestroy + 1, 6);
}
END_TEST

/* A call whose graph cannot be made or launched changes nothing, and the next one is right. */
START_TEST(a_graph_that_cannot_be_made_is_told)
{
    static const fake_fn fails[] = {FAKE_cuGraphCreate, FAKE_cuGraphAddNode,
                                    FAKE_cuGraphInstantiateWithFlags, FAKE_cuGraphLaunch};
    session *s = NULL;
    model = card_model_open("llama-mha", NULL);
    device *d = card_open(model.dg, &apart_card);
    session_options opt = card_options(&model, d);
    ck_assert_int_eq(session_create(model.dg, model.p, model_file_source(model.mf), &opt, &s),
                     WEFT_OK);
    for (size_t i = 0; i < COUNT_OF(fails); i++) {
        diag_reset(model.dg);
        fake_fail_at(fails[i], fails[i] == FAKE_cuGraphAddNode ? 3 : 0, CU_OUT_OF_MEMORY);
        ck_assert_int_ne(eval(s, 0, 0, 2), WEFT_OK);
        expect_one(model.dg, W1610, "beginning a call failed on cuda:0");
    }
    for (int64_t at = 0; at < 6; at += 2) {
        ck_assert_int_eq(eval(s, 0, at, 2), WEFT_OK);
        ck_assert_double_le(card_off(&model, s, at, 2), 1e-4);
    }
    session_destroy(s);
    card_close(d);
    card_model_close(&model);
}
END_TEST

/* At any operation: the session fails from there on, and ends. */
static void lose(const fake_card *card)
{
    model = card_model_open("llama-mha", NULL);
    model.p = card_plan(&model, DT_F32, 4);
    weft_status st = WEFT_ERR_TARGET;
    int64_t n = 0;
    for (; st != WEFT_OK; n += 1 + n / 6) {
        fresh(card);
        fake_lose_at(n);
        st = use_card();
        if (st != WEFT_OK)
            expect_one_error("a card that is lost", n);
        ck_assert(fake_holds_nothing());
        ck_assert_msg(!fake_misuse(), "%s", fake_misuse());
    }
    ck_assert_int_gt(n, 20);
    card_model_close(&model);
}

START_TEST(cards_may_be_lost)
{
    lose(&small_card);
    lose(&apart_card);
}
END_TEST

/* What is needed and what is free is told before anything is copied; to the byte. */
START_TEST(cards_may_be_too_small)
{
    model = card_model_open("llama-mha", NULL);
    session_memory need;
    device *d = card_open(model.dg, &small_card);
    session_options opt = card_options(&model, d);
    ck_assert_int_eq(session_need(model.dg, model.p, model_file_source(model.mf), &opt, &need),
                     WEFT_OK);
    card_close(d);
    for (int less = 0; less < 2; less++) {
        session *s = NULL;
        fake_card card = small_card;
        card.card_bytes = session_memory_sum(&need) - (size_t)less;
        diag_reset(model.dg);
        d = card_open(model.dg, &card);
        opt.dev = d;
        weft_status st = session_create(model.dg, model.p, model_file_source(model.mf), &opt, &s);
        ck_assert_int_eq(st == WEFT_OK, less == 0);
        if (less) {
            expect_one(model.dg, W0902, "on cuda:0 (a card of the tests)");
            ck_assert_int_eq(fake_seen().copies_in, 0);
            ck_assert_int_eq(fake_calls(FAKE_cuMemAlloc), 0);
        } else {
            ck_assert_int_eq(eval(s, 0, 0, 3), WEFT_OK);
            ck_assert_uint_eq(fake_seen().card_bytes, card.card_bytes);
        }
        session_destroy(s);
        card_close(d);
    }
    card_model_close(&model);
}
END_TEST

START_TEST(cards_may_not_be_there)
{
    const weft_cuda_image other = {.phases = {"an image of others", 1}};
    fake_card none = small_card;
    device *d = NULL;
    model = card_model_open("llama-mha", NULL);
    fresh(&small_card);
    ck_assert_int_ne(cuda_device_open(model.dg, fake_driver(), &fake_kernels, NULL, 1, &d),
                     WEFT_OK);
    expect_one(model.dg, W1605, "there is no cuda:1: this machine has 1 card");
    diag_reset(model.dg);
    ck_assert_int_ne(cuda_device_open(model.dg, fake_driver(), &other, NULL, 0, &d), WEFT_OK);
    expect_one(model.dg, W0901, "there are no kernels for the card on cuda:0");
    none.multiprocessors = 0;
    fresh(&none);
    ck_assert_int_ne(cuda_device_open(model.dg, fake_driver(), &fake_kernels, NULL, 0, &d),
                     WEFT_OK);
    expect_one(model.dg, W1610, "has no multiprocessors");
    ck_assert(fake_holds_nothing());
    card_model_close(&model);
}
END_TEST

START_TEST(plans_of_others_are_refused)
{
    session *s = NULL;
    model = card_model_open("llama-mha", NULL);
    device *d = card_open(model.dg, &small_card);
    plan *cpu = NULL;
    target t = {.be = backend_reference(), .n_ctx = model.n, .n_seq = 2, .n_tok_max = 4};
    ck_assert_int_eq(plan_make(model.dg, model.bm->graph, &t, NULL, model.a, &cpu), WEFT_OK);
    session_options opt = card_options(&model, d);
    ck_assert_int_eq(session_create(model.dg, cpu, model_file_source(model.mf), &opt, &s),
                     WEFT_ERR_PLAN);
    expect_one(model.dg, W1501, "which CUDA cards have not");
    diag_reset(model.dg);
    opt.dev = NULL;
    ck_assert_int_eq(session_create(model.dg, model.p, model_file_source(model.mf), &opt, &s),
                     WEFT_ERR_PLAN);
    expect_one(model.dg, W1501, "a kernel k_");
    card_close(d);
    card_model_close(&model);
}
END_TEST

/* What a call that is cancelled leaves: no sequence has changed, and the next call is right. */
START_TEST(calls_may_be_cancelled)
{
    model = card_model_open("llama-mha", NULL);
    device *d = card_open(model.dg, &small_card);
    session_options opt = card_options(&model, d);
    session *s = NULL;
    cancel_flag stop = {0};
    opt.cancel = &stop;
    ck_assert_int_eq(session_create(model.dg, model.p, model_file_source(model.mf), &opt, &s),
                     WEFT_OK);
    expect_one(model.dg, W1616, ""); /* the card is small */
    diag_reset(model.dg);
    ck_assert_int_eq(eval(s, 0, 0, 4), WEFT_OK);
    cancel_ask(&stop, true);
    ck_assert_int_ne(eval(s, 0, 4, 2), WEFT_OK);
    expect_one(model.dg, W1412, "");
    diag_reset(model.dg);
    cancel_ask(&stop, false);
    ck_assert_int_eq(eval(s, 0, 4, 2), WEFT_OK);
    ck_assert_double_le(card_off(&model, s, 4, 2), 1e-4);
    session_destroy(s);
    card_close(d);
    card_model_close(&model);
}
END_TEST

/* The same wherever in a call a card hears of it: with all phases in one launch, and with a graph of them. */
static void cancel_at_every_look(const fake_card *c, int64_t rows, int least)
{
    model = card_model_open("llama-mha", NULL);
    device *d = card_open(model.dg, c);
    session_options opt = card_options(&model, d);
    session *s = NULL;
    cancel_flag stop = {0};
    int cancelled = 0;
    opt.cancel = &stop;
    ck_assert_int_eq(session_create(model.dg, model.p, model_file_source(model.mf), &opt, &s),
                     WEFT_OK);
    ck_assert_int_eq(eval(s, 0, 0, 4), WEFT_OK);
    for (bool ended_before = false; !ended_before; cancelled++) {
        diag_reset(model.dg);
        simt_host_writes(cancelled);
        ended_before = eval(s, 0, 4, rows) == WEFT_OK;
        simt_host_writes(-1);
        if (!ended_before) {
            expect_one(model.dg, W1412, "");
            ck_assert_int_eq(eval(s, 0, 4, rows), WEFT_OK);
        }
        ck_assert_double_le(card_off(&model, s, 4, rows), 1e-4);
        ck_assert_int_eq(session_truncate(model.dg, s, 0, 4), WEFT_OK);
    }
    ck_assert_int_gt(cancelled, least);
    session_destroy(s);
    card_close(d);
    card_model_close(&model);
}

START_TEST(calls_may_be_cancelled_in_their_middle)
{
    fake_card apart = fake_card_usual;
    apart.together = false;
    for (int64_t rows = 1; rows <= 16; rows *= 4)
        cancel_at_every_look(&fake_card_usual, rows, 1);
    cancel_at_every_look(&apart, 2, 20);
}
END_TEST

SUITE_MAIN("card_trouble", functions_may_fail, functions_of_memory_and_launches_may_fail,
           functions_of_graphs_may_fail, a_graph_that_cannot_be_made_is_told, cards_may_be_lost,
           cards_may_be_too_small, cards_may_not_be_there, plans_of_others_are_refused,
           calls_may_be_cancelled, calls_may_be_cancelled_in_their_middle)
