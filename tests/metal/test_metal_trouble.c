/* test_metal_trouble.c - no GPU, one that is too old, too small or lost, shaders that do not compile, and a barrier that is missing: an
 * error that says so, nothing left behind, and the process lives. */
#include "tests/metal/metal_kit.h"

static gpu_model model;

/* Opening fails, with this error; nothing stays. */
static void expect_closed(weft_code code, const char *words)
{
    device *d = NULL;
    ck_assert_int_ne(metal_device_open(model.dg, gpu_driver(model.dg), 0, &d), WEFT_OK);
    ck_assert_ptr_null(d);
    gpu_expect_error(&model, code, words);
}

START_TEST(gpus_may_not_be_there)
{
    device *d = NULL;
    model = gpu_model_open("llama-mha");
    metal_fake_set("devices", 0);
    expect_closed(W1614, "Metal finds no GPU");
    metal_fake_set("devices", 1);
    ck_assert_int_ne(metal_device_open(model.dg, gpu_driver(model.dg), 1, &d), WEFT_OK);
    gpu_expect_error(&model, W1605, "there is no metal:1: this machine has 1 GPU");
    gpu_model_close(&model);
}
END_TEST

START_TEST(gpus_may_be_too_old)
{
    model = gpu_model_open("llama-mha");
    metal_fake_set("family", 6);
    expect_closed(W0901, "it is of family apple6, apple7 is needed");
    metal_fake_set("family", 7);
    device *d = gpu_open(model.dg);
    gpu_close(d);
    gpu_model_close(&model);
}
END_TEST

/* Its own message, with our file and line. */
START_TEST(shaders_may_not_compile)
{
    session *s = NULL;
    model = gpu_model_open("llama-mha");
    metal_fake_set("broken_shader", 1);
    device *d = gpu_open(model.dg);
    ck_assert_int_ne(gpu_session(&model, d, &s), WEFT_OK);
    gpu_expect_error(&model, W1615, "kernels/metal/");
    metal_fake_set("broken_shader", 2);
    ck_assert_int_ne(gpu_session(&model, d, &s), WEFT_OK);
    gpu_expect_error(&model, W1615, "weft_phase cannot be made on metal:0");
    gpu_close(d);
    metal_fake_set("broken_shader", 0);
    metal_fake_set("threads_max", 128);
    d = gpu_open(model.dg);
    ck_assert_int_ne(gpu_session(&model, d, &s), WEFT_OK);
    gpu_expect_error(&model, W1615, "threadgroups of at most 128 threads");
    gpu_close(d);
    gpu_model_close(&model);
}
END_TEST

/* What is needed and what is there is told before anything is allocated; to the byte. */
START_TEST(gpus_may_be_too_small)
{
    session_memory need;
    model = gpu_model_open("llama-mha");
    device *d = gpu_open(model.dg);
    session_options opt = gpu_options(&model, d);
    ck_assert_int_eq(session_need(model.dg, model.p, model_file_source(model.mf), &opt, &need),
                     WEFT_OK);
    gpu_close(d);
    for (int less = 0; less < 2; less++) {
        session *s = NULL;
        char words[64];
        snprintf(words, sizeof words, "takes %zu bytes, 1 more than", session_memory_sum(&need));
        metal_fake_set("working_set", (int64_t)session_memory_sum(&need) - less);
        d = gpu_open(model.dg);
        ck_assert_int_eq(gpu_session(&model, d, &s) == WEFT_OK, less == 0);
        if (less) {
            gpu_expect_error(&model, W0902, words);
            ck_assert_int_eq(gpu_counts().buffers + gpu_counts().wrapped, 0);
        }
        session_destroy(s);
        gpu_close(d);
    }
    gpu_model_close(&model);
}
END_TEST

/* Each allocation in turn, and all after it. */
START_TEST(allocations_may_be_refused)
{
    weft_status st = WEFT_ERR_TARGET;
    int n = 0;
    model = gpu_model_open("llama-mha");
    while (st != WEFT_OK) {
        device *d = gpu_open(model.dg);
        session *s = NULL;
        metal_fake_set("refuse", ++n);
        st = gpu_session(&model, d, &s);
        metal_fake_set("refuse", 0);
        if (st != WEFT_OK)
            gpu_expect_error(&model, W0902, "bytes of memory cannot be allocated");
        session_destroy(s);
        gpu_close(d);
    }
    ck_assert_int_gt(n, 5); /* weights, the file's pages, state, arena, threadgroups, tables */
    gpu_model_close(&model);
}
END_TEST

START_TEST(queues_may_not_be_given)
{
    session *s = NULL;
    model = gpu_model_open("llama-mha");
    device *d = gpu_open(model.dg);
    metal_fake_set("no_queue", 1);
    ck_assert_int_ne(gpu_session(&model, d, &s), WEFT_OK);
    gpu_expect_error(&model, W1610, "making a queue failed on metal:0");
    gpu_close(d);
    gpu_model_close(&model);
}
END_TEST

/* In a call: it fails, no sequence has changed, and the session ends. */
START_TEST(gpus_may_be_lost)
{
    model = gpu_model_open("llama-mha");
    device *d = gpu_open(model.dg);
    session *s = NULL;
    ck_assert_int_eq(gpu_session(&model, d, &s), WEFT_OK);
    gpu_expect(&model, s, 0, 0, 2);
    metal_fake_set("lost", 1);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_ne(gpu_eval(&model, s, 0, 2, 1), WEFT_OK);
        gpu_expect_error(&model, W1610, "running the plan failed on metal:0");
        ck_assert_int_eq(session_length(s, 0), 2);
    }
    session_destroy(s);
    gpu_close(d);
    gpu_model_close(&model);
}
END_TEST

START_TEST(plans_of_others_are_refused)
{
    session *s = NULL;
    plan *cuda = NULL;
    model = gpu_model_open("llama-mha");
    device *d = gpu_open(model.dg);
    target t = {.be = backend_cuda(), .n_ctx = model.n, .n_seq = 2, .n_tok_max = 4};
    ck_assert_int_eq(plan_make(model.dg, model.bm->graph, &t, NULL, model.a, &cuda), WEFT_OK);
    session_options opt = gpu_options(&model, d);
    ck_assert_int_ne(session_create(model.dg, cuda, model_file_source(model.mf), &opt, &s),
                     WEFT_OK);
    gpu_expect_error(&model, W1501, "which Metal GPUs have not");
    gpu_close(d);
    gpu_model_close(&model);
}
END_TEST

SUITE_MAIN("metal_trouble", gpus_may_not_be_there, gpus_may_be_too_old, shaders_may_not_compile,
           gpus_may_be_too_small, allocations_may_be_refused, queues_may_not_be_given,
           gpus_may_be_lost, plans_of_others_are_refused)
