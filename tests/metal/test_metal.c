/* test_metal.c - whole models on a Metal GPU, through the host side and the shaders of the product, on the tests' Metal. */
#include "tests/metal/metal_kit.h"

#include "runtime/exec/session_impl.h"

/* ---- results ---- */

/* Whole, forked within a page and row by row, cut and in pieces. */
START_TEST(a_model_runs_there)
{
    gpu_model m = gpu_model_open("llama-mha");
    device *d = gpu_open(m.dg);
    session *s = NULL;
    ck_assert_int_eq(gpu_session(&m, d, &s), WEFT_OK);
    int64_t keep = m.n / 2 - 1;
    gpu_expect(&m, s, 0, 0, m.n);
    ck_assert_int_eq(session_fork(m.dg, s, 0, 1, keep), WEFT_OK);
    for (int64_t at = keep; at < keep + 3; at++)
        gpu_expect(&m, s, 1, at, 1);
    ck_assert_int_eq(session_truncate(m.dg, s, 0, 3), WEFT_OK);
    gpu_expect(&m, s, 0, 3, 5);
    session_destroy(s);
    gpu_close(d);
    gpu_model_close(&m);
}
END_TEST

/* As before macOS 15. */
START_TEST(it_needs_no_residency_sets)
{
    gpu_model m = gpu_model_open("llama-mha");
    metal_fake_set("residency_sets", 0);
    device *d = gpu_open(m.dg);
    session *s = NULL;
    ck_assert_int_eq(gpu_session(&m, d, &s), WEFT_OK);
    gpu_expect(&m, s, 0, 0, 3);
    gpu_expect(&m, s, 0, 3, 1);
    session_destroy(s);
    gpu_close(d);
    gpu_model_close(&m);
}
END_TEST

START_TEST(two_sessions_share_a_gpu)
{
    gpu_model m = gpu_model_open("llama-mha");
    device *d = gpu_open(m.dg);
    session *a = NULL, *b = NULL;
    ck_assert_int_eq(gpu_session(&m, d, &a), WEFT_OK);
    ck_assert_int_eq(gpu_session(&m, d, &b), WEFT_OK);
    gpu_expect(&m, a, 0, 0, 4);
    gpu_expect(&m, b, 0, 0, 2);
    session_destroy(a);
    gpu_expect(&m, b, 0, 2, 2);
    session_destroy(b);
    gpu_close(d);
    gpu_model_close(&m);
}
END_TEST

/* Maps as text of shaders, in place of instructions that are read: the same bits. */
START_TEST(maps_may_be_text)
{
    gpu_model m = gpu_model_open("llama-mha");
    float *read = malloc((size_t)(3 * m.vocab) * sizeof *read);
    device *d = gpu_open(m.dg);
    for (int made = 0; made < 2; made++) {
        const float *got = NULL;
        int64_t n_row = 0, width = 0, before = gpu_counts().libraries;
        session *s = NULL;
        setenv("WEFT_METAL_MAPS", made ? "" : "off", 1);
        ck_assert_int_eq(gpu_session(&m, d, &s), WEFT_OK);
        ck_assert_int_eq(gpu_counts().libraries, before + 1);
        gpu_expect(&m, s, 0, 0, 3);
        ck_assert(session_output(s, "logits", -1, &got, &n_row, &width));
        if (made)
            ck_assert_mem_eq(got, read, (size_t)(3 * m.vocab) * sizeof *read);
        memcpy(read, got, (size_t)(3 * m.vocab) * sizeof *read);
        session_destroy(s);
    }
    free(read);
    gpu_close(d);
    gpu_model_close(&m);
}
END_TEST

/* ---- what it takes ---- */

/* What Metal allocated is what was said before, to the byte; weights stay in their file. */
START_TEST(memory_is_known_before)
{
    gpu_model m = gpu_model_open_file("llama-mha", "model-bf16.gguf");
    device *d = gpu_open(m.dg);
    session_options opt = gpu_options(&m, d);
    session_memory need, got;
    session *s = NULL;
    device_memory own;
    ck_assert_int_eq(session_need(m.dg, m.p, model_file_source(m.mf), &opt, &need), WEFT_OK);
    ck_assert_int_eq(gpu_counts().buffers, 0);
    ck_assert_int_eq(gpu_session(&m, d, &s), WEFT_OK);
    got = session_bytes(s);
    ck_assert_mem_eq(&need, &got, sizeof need);
    d->kind->bytes(s->part[0].e, &own);
    weights_memory w = weights_bytes(session_weights(s, 0));
    ck_assert_int_eq(gpu_counts().buffer_bytes,
                     (int64_t)(need.weights_copied + need.state + need.arena + need.scratch +
                               need.adapters + own.tables + w.tables));
    ck_assert_uint_ge(need.tables, own.tables + w.tables + own.host + w.host);
    ck_assert_uint_gt(need.weights_mapped, need.weights_copied);
    ck_assert_int_ge(gpu_counts().wrapped_bytes, (int64_t)need.weights_mapped);
    ck_assert_int_le(gpu_counts().wrapped, 2); /* neighbours are one */
    session_destroy(s);
    gpu_close(d);
    gpu_model_close(&m);
}
END_TEST

/* The tensors of another source, each a byte further on than its kernels read it. */
typedef struct {
    weight_source base;
    const weight_source *of;
    char *copy[512];
} odd_source;

static size_t odd_count(const weight_source *s)
{
    const odd_source *o = (const odd_source *)(const void *)s;
    return o->of->kind->count(o->of);
}

static weight_tensor odd_tensor(const weight_source *s, size_t i)
{
    odd_source *o = (odd_source *)(uintptr_t)s;
    weight_tensor t = o->of->kind->tensor(o->of, i);
    if (!o->copy[i]) {
        o->copy[i] = malloc(t.bytes + 1);
        memcpy(o->copy[i] + 1, t.data, t.bytes);
    }
    t.data = o->copy[i] + 1;
    return t;
}

static model_hash odd_identity(const weight_source *s)
{
    const odd_source *o = (const odd_source *)(const void *)s;
    return o->of->kind->identity(o->of);
}

START_TEST(weights_at_odd_places_are_copied)
{
    static const weight_source_kind odd = {
        .count = odd_count, .tensor = odd_tensor, .identity = odd_identity};
    gpu_model m = gpu_model_open_file("llama-mha", "model-bf16.gguf");
    odd_source src = {.base = {.kind = &odd, .path = ""}, .of = model_file_source(m.mf)};
    device *d = gpu_open(m.dg);
    session_options opt = gpu_options(&m, d);
    session_memory need, even;
    session *s = NULL;
    ck_assert_uint_le(odd_count(&src.base), COUNT_OF(src.copy));
    ck_assert_int_eq(session_need(m.dg, m.p, src.of, &opt, &even), WEFT_OK);
    ck_assert_int_eq(session_need(m.dg, m.p, &src.base, &opt, &need), WEFT_OK);
    ck_assert_uint_eq(need.weights_mapped, 0);
    ck_assert_uint_ge(need.weights_copied, even.weights_mapped + even.weights_copied);
    ck_assert_int_eq(session_create(m.dg, m.p, &src.base, &opt, &s), WEFT_OK);
    ck_assert_int_eq(gpu_counts().wrapped, 0);
    gpu_expect(&m, s, 0, 0, 2);
    session_destroy(s);
    gpu_close(d);
    for (size_t i = 0; i < COUNT_OF(src.copy); i++)
        free(src.copy[i]);
    gpu_model_close(&m);
}
END_TEST

/* ---- calls ---- */

/* One command buffer, one encoder; for a token of a Llama at most 6 dispatches a layer; nothing is allocated. */
START_TEST(calls_are_few_dispatches)
{
    gpu_model m = gpu_model_open("llama-mha");
    device *d = gpu_open(m.dg);
    session *s = NULL;
    ck_assert_int_eq(gpu_session(&m, d, &s), WEFT_OK);
    gpu_expect(&m, s, 0, 0, 2);
    ck_assert_int_ge(m.layers, 2);
    for (int64_t at = 2; at < 5; at++) {
        metal_fake_count before = gpu_counts();
        gpu_expect(&m, s, 0, at, 1);
        metal_fake_count now = gpu_counts();
        ck_assert_int_eq(now.command_buffers - before.command_buffers, 1);
        ck_assert_int_eq(now.encoders - before.encoders, 1);
        ck_assert_int_le(now.dispatches - before.dispatches, 6 * m.layers);
        ck_assert_int_eq(now.dispatches - before.dispatches, (int64_t)session_barriers(s));
        ck_assert_int_eq(now.pipelines, before.pipelines);
        ck_assert_int_eq(now.buffer_bytes, before.buffer_bytes);
        ck_assert_int_eq(now.objects, before.objects);
    }
    session_destroy(s);
    gpu_close(d);
    gpu_model_close(&m);
}
END_TEST

static weft_status count_phases(void *ctx, weft_diag *dg, int32_t bucket, int32_t phase)
{
    int *n = ctx;
    (void)dg, (void)bucket, (void)phase;
    ++*n;
    return WEFT_OK;
}

START_TEST(phases_are_watched)
{
    gpu_model m = gpu_model_open("llama-mha");
    device *d = gpu_open(m.dg);
    session *s = NULL;
    int n = 0;
    ck_assert_int_eq(gpu_session(&m, d, &s), WEFT_OK);
    session_watch(s, 0, count_phases, &n);
    gpu_expect(&m, s, 0, 0, 1);
    ck_assert_int_eq(n, m.p->bucket[0].n_phase);
    session_watch(s, 0, NULL, NULL);
    gpu_expect(&m, s, 0, 1, 1);
    ck_assert_int_eq(n, m.p->bucket[0].n_phase);
    session_destroy(s);
    gpu_close(d);
    gpu_model_close(&m);
}
END_TEST

START_TEST(steps_are_measured)
{
    gpu_model m = gpu_model_open("llama-mha");
    device *d = gpu_open(m.dg);
    session *s = NULL;
    ck_assert_int_eq(gpu_session(&m, d, &s), WEFT_OK);
    session_profile_begin(s);
    gpu_expect(&m, s, 0, 0, 1);
    session_profile_end(s);
    const step_time *t = session_profile_steps(s, 0, 0);
    for (int32_t i = 0; i < m.p->bucket[0].n_step; i++)
        ck_assert_msg(t[i].calls == 1 && t[i].ns > 0, "step %d", (int)i);
    gpu_expect(&m, s, 0, 1, 1);
    ck_assert_uint_eq(t[0].calls, 1);
    session_destroy(s);
    gpu_close(d);
    gpu_model_close(&m);
}
END_TEST

/* What a call that is cancelled leaves: no sequence has changed, and the next call is right. */
START_TEST(calls_may_be_cancelled)
{
    gpu_model m = gpu_model_open("llama-mha");
    device *d = gpu_open(m.dg);
    session_options opt = gpu_options(&m, d);
    session *s = NULL;
    cancel_flag stop = {0};
    opt.cancel = &stop;
    ck_assert_int_eq(session_create(m.dg, m.p, model_file_source(m.mf), &opt, &s), WEFT_OK);
    gpu_expect(&m, s, 0, 0, 2);
    cancel_ask(&stop, true);
    ck_assert_int_ne(gpu_eval(&m, s, 0, 2, 2), WEFT_OK);
    gpu_expect_error(&m, W1412, "was cancelled");
    ck_assert_int_eq(session_length(s, 0), 2);
    cancel_ask(&stop, false);
    gpu_expect(&m, s, 0, 2, 2);
    session_destroy(s);
    gpu_close(d);
    gpu_model_close(&m);
}
END_TEST

SUITE_MAIN("metal", a_model_runs_there, maps_may_be_text, it_needs_no_residency_sets,
           two_sessions_share_a_gpu, memory_is_known_before, weights_at_odd_places_are_copied,
           calls_are_few_dispatches, phases_are_watched, steps_are_measured, calls_may_be_cancelled)
