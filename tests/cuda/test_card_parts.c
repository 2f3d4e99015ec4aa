/* test_card_parts.c - models whose layers are divided between the CPU and the tests' card: values, memory, state, trouble. */
#include "compiler/plan_parts.h"
#include "runtime/engine/profile.h"
#include "runtime/engine/verify.h"
#include "tests/cuda/card_kit.h"

#include <string.h>

static const fake_card small_card = {.cards = 1,
                                     .version = CUDA_VERSION_LEAST,
                                     .multiprocessors = 2,
                                     .threads = 32,
                                     .card_bytes = (size_t)1 << 30,
                                     .shared_bytes = 100 << 10,
                                     .together = true};
static const double CLOSE = 1e-4; /* as tests/golden allows */

typedef struct {
    card_model m;
    plan_parts parts;
    device *d;
    session_options opt;
} divided;

static target cpu_target(const card_model *m, dtype kv)
{
    static const char *const outputs[] = {"hidden", "logits", "resid"};
    return (target){.be = backend_cpu_best(),
                    .n_ctx = m->n,
                    .n_seq = 2,
                    .n_tok_max = m->n,
                    .kv = kv,
                    .outputs = outputs,
                    .n_output = 3,
                    .may_fork = true,
                    .deterministic = true};
}

static divided open_divided(const char *name, int64_t n, const fake_card *c)
{
    divided x = {.m = card_model_open(name, NULL)};
    target cpu = cpu_target(&x.m, DT_F32), card = cpu;
    card.be = backend_cuda();
    ck_assert_int_eq(plan_make(x.m.dg, x.m.bm->graph, &cpu, NULL, x.m.a, &x.m.p), WEFT_OK);
    ck_assert_int_eq(plan_make_parts(x.m.dg, x.m.bm->graph, &cpu, &card, n, x.m.a, &x.parts),
                     WEFT_OK);
    x.d = card_open(x.m.dg, c);
    return x;
}

static void close_divided(divided *x)
{
    card_close(x->d);
    card_model_close(&x->m);
}

static weft_status create(divided *x, session **out_s)
{
    x->opt = card_options(&x->m, x->d);
    x->opt.parts = &x->parts;
    return session_create(x->m.dg, x->m.p, model_file_source(x->m.mf), &x->opt, out_s);
}

/* What it takes on the card, and elsewhere, is what it said before, to the byte. */
static session *open_session(divided *x)
{
    session *s = NULL;
    session_memory need[3], got[3];
    const device *on[] = {NULL, x->d, device_cpu()};
    ck_assert_int_eq(create(x, &s), WEFT_OK);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(
            session_need_on(x->m.dg, x->m.p, model_file_source(x->m.mf), &x->opt, on[i], &need[i]),
            WEFT_OK);
        got[i] = session_bytes_on(s, on[i]);
        ck_assert_mem_eq(&need[i], &got[i], sizeof need[i]);
    }
    ck_assert_uint_eq(session_memory_sum(&need[0]),
                      session_memory_sum(&need[1]) + session_memory_sum(&need[2]));
    ck_assert_uint_eq(fake_seen().card_bytes, session_memory_sum(&need[1]));
    ck_assert_uint_gt(need[1].state, 0);
    return s;
}

static void expect(divided *x, session *s, int32_t seq, int64_t first, int64_t n)
{
    ck_assert_int_eq(card_eval(&x->m, s, seq, first, n), WEFT_OK);
    ck_assert_double_le(card_off(&x->m, s, first, n), CLOSE);
}

/* Outputs of all parts, by the session's views and by its copies. */
static void expect_outputs(divided *x, session *s, int64_t rows)
{
    int64_t layers = graph_layers(x->m.bm->graph);
    for (int64_t i = -1; i < layers; i++) {
        const float *data;
        float copy[4];
        int64_t n_row, width;
        const char *name = i < 0 ? "hidden" : "resid";
        ck_assert(session_output(s, name, (int)i, &data, &n_row, &width));
        ck_assert_int_eq(n_row, rows);
        ck_assert_int_eq(session_read(x->m.dg, s, name, (int)i, copy, 4), WEFT_OK);
        ck_assert_mem_eq(copy, data, sizeof copy);
    }
}

START_TEST(any_number_of_layers_can_be_on_the_card)
{
    static const char *const names[] = {"llama-mha", "gemma2", "gpt_oss"};
    for (size_t k = 0; k < COUNT_OF(names); k++)
        for (int64_t n = 1; n <= 4; n += k == 0 ? 1 : 3) {
            divided x = open_divided(names[k], n, &small_card);
            session *s = open_session(&x);
            expect(&x, s, 0, 0, 10);
            expect_outputs(&x, s, 10);
            expect(&x, s, 0, 10, 1);
            session_destroy(s);
            close_divided(&x);
        }
}
END_TEST

/* The fork copies a page on both devices; a file holds the rows of both. */
START_TEST(state_is_where_its_layers_are)
{
    divided x = open_divided("llama-mha", 3, &small_card);
    session *s = open_session(&x);
    char path[] = "/tmp/weft-parts-XXXXXX";
    session_text text = {.ids = (int32_t *)x.m.ids, .n = 11}, got = {0};
    close(mkstemp(path));
    expect(&x, s, 0, 0, 10);
    ck_assert_int_eq(session_fork(x.m.dg, s, 0, 1, 7), WEFT_OK);
    expect(&x, s, 1, 7, 2);
    expect(&x, s, 0, 10, 1);
    ck_assert_int_eq(session_truncate(x.m.dg, s, 1, 0), WEFT_OK);
    ck_assert_int_eq(session_save(x.m.dg, s, 0, 0, &text, path), WEFT_OK);
    ck_assert_int_eq(session_load(x.m.dg, s, 1, 0, path, &got), WEFT_OK);
    expect(&x, s, 1, 11, 3);
    unlink(path);
    free(got.ids);
    session_destroy(s);
    close_divided(&x);
}
END_TEST

START_TEST(a_call_allocates_nothing)
{
    divided x = open_divided("llama-mha", 2, &small_card);
    session *s = open_session(&x);
    expect(&x, s, 0, 0, 4);
    fake_counts before = fake_seen();
    for (int64_t at = 4; at < x.m.n; at++)
        expect(&x, s, 0, at, 1);
    ck_assert_uint_eq(before.card_peak, fake_seen().card_peak);
    ck_assert_uint_eq(before.host_bytes, fake_seen().host_bytes);
    session_destroy(s);
    close_divided(&x);
}
END_TEST

/* Only what is on the card has to fit there. */
START_TEST(a_card_too_small_for_its_layers_is_refused)
{
    fake_card c = small_card;
    divided x = open_divided("llama-mha", 2, &c);
    session *s = NULL;
    session_memory need;
    x.opt = card_options(&x.m, x.d);
    x.opt.parts = &x.parts;
    ck_assert_int_eq(session_need_on(x.m.dg, x.m.p, model_file_source(x.m.mf), &x.opt, x.d, &need),
                     WEFT_OK);
    close_divided(&x);
    for (int less = 0; less < 2; less++) {
        c.card_bytes = session_memory_own(&need) - (size_t)less;
        x = open_divided("llama-mha", 2, &c);
        ck_assert_int_eq(create(&x, &s), less ? WEFT_ERR_TARGET : WEFT_OK);
        if (less)
            ck_assert(strstr(diag_at(x.m.dg, 0).message.p, "1 more than the"));
        else
            session_destroy(s);
        close_divided(&x);
    }
}
END_TEST

/* Whatever is lost in a call, sequences are as they were, and all is given back. */
START_TEST(a_lost_card_ends_the_call)
{
    for (int64_t at = 0, done = 0; !done; at += 3) {
        divided x = open_divided("llama-mha", 2, &small_card);
        session *s = open_session(&x);
        expect(&x, s, 0, 0, 3);
        fake_lose_at(at);
        done = card_eval(&x.m, s, 0, 3, 2) == WEFT_OK;
        ck_assert_int_eq(session_length(s, 0), done ? 5 : 3);
        if (!done)
            ck_assert_int_eq(diag_at(x.m.dg, 0).severity, DIAG_ERROR);
        ck_assert(done || at < 60);
        session_destroy(s);
        close_divided(&x);
        ck_assert(!done || at > 3);
    }
}
END_TEST

/* ---- looking at its values ---- */

static verify_report verify(divided *x, int64_t n)
{
    target cpu = cpu_target(&x->m, DT_F32), card = cpu, ref = cpu;
    plan *whole, *original;
    plan_parts ref_parts;
    graph *after;
    verify_report r;
    card.be = backend_cuda();
    ref.be = backend_reference();
    const graph *g = x->m.bm->graph;
    ck_assert_int_eq(plan_graph(x->m.dg, g, &cpu, NULL, &after), WEFT_OK);
    ck_assert_int_eq(plan_make(x->m.dg, after, &ref, NULL, x->m.a, &whole), WEFT_OK);
    ck_assert_int_eq(plan_make(x->m.dg, g, &ref, NULL, x->m.a, &original), WEFT_OK);
    ck_assert_int_eq(plan_make_parts_as(x->m.dg, g, &cpu, &card, n, &ref, x->m.a, &ref_parts),
                     WEFT_OK);
    verify_options how = {.ref = whole,
                          .rounded = whole,
                          .original = original,
                          .p = x->m.p,
                          .ref_parts = &ref_parts,
                          .rounded_parts = &ref_parts,
                          .src = model_file_source(x->m.mf),
                          .run = card_options(&x->m, x->d),
                          .ids = x->m.ids,
                          .n_id = x->m.n};
    how.run.parts = &x->parts;
    ck_assert_int_eq(verify_run(x->m.dg, &how, x->m.a, &r), WEFT_OK);
    graph_destroy(after);
    return r;
}

static bool is_output(const plan_bucket *b, const plan_step *s, int32_t output)
{
    for (int k = 0; k < s->n_out; k++)
        if (s->out[k].space == SPACE_ARENA && s->out[k].offset == b->output[output].offset)
            return true;
    return false;
}

/* Was what a part is given looked at where it was made? */
static bool was_seen(const divided *x, const verify_report *r, const plan_input *in)
{
    for (int32_t i = 0; i < r->n_value; i++) {
        const verify_value *v = &r->value[i];
        const plan_bucket *b = &x->parts.part[v->part].p->bucket[v->bucket];
        if (v->part == in->part && is_output(b, &b->step[v->step], in->output))
            return true;
    }
    return false;
}

START_TEST(values_of_all_parts_are_verified)
{
    for (int64_t n = 1; n <= 4; n++) {
        divided x = open_divided("llama-mha", n, &small_card);
        verify_report r = verify(&x, n);
        ck_assert(verify_passed(&r));
        ck_assert_int_eq(r.n_layer, 4);
        for (int32_t i = 0; i < r.n_layer; i++)
            ck_assert_double_ge(r.layer_drift[i], 0);
        for (int32_t i = 0; i < x.parts.n_part; i++)
            for (int32_t k = 0; k < x.parts.part[i].n_in; k++)
                ck_assert(was_seen(&x, &r, &x.parts.part[i].in[k]));
        close_divided(&x);
    }
}
END_TEST

static void tamper(const plan *p)
{
    for (int32_t b = 0; b < p->n_bucket; b++)
        for (int32_t i = 0; i < p->bucket[b].n_step; i++) {
            plan_step *s = (plan_step *)(uintptr_t)&p->bucket[b].step[i];
            if (plan_kernel_of(p, s)->op == KOP_rms_norm)
                s->f[0] = 0.5; /* eps */
        }
}

/* Each step is blamed for what it does itself: what it was given is right. */
START_TEST(a_wrong_step_is_found_in_its_part)
{
    for (int32_t part = 0; part < 3; part++) {
        divided x = open_divided("llama-mha", 2, &small_card);
        tamper(x.parts.part[part].p);
        verify_report r = verify(&x, 2);
        ck_assert_int_ge(r.first_bad, 0);
        for (int32_t i = 0; i < r.n_value; i++)
            ck_assert(r.value[i].part == part || r.value[i].error <= r.value[i].bound);
        close_divided(&x);
    }
}
END_TEST

START_TEST(a_value_that_arrives_elsewhere_is_found)
{
    divided x = open_divided("llama-mha", 2, &small_card);
    ((plan_input *)(uintptr_t)x.parts.part[1].in)->offset += PLAN_ALIGN;
    verify_report r = verify(&x, 2);
    ck_assert_int_ge(r.first_bad, 0);
    ck_assert_int_eq(r.value[r.first_bad].part, 1);
    close_divided(&x);
}
END_TEST

/* Times of all parts add up, each held against the limits of its own device. */
START_TEST(steps_of_all_parts_are_measured)
{
    divided x = open_divided("llama-mha", 2, &small_card);
    session *s = open_session(&x);
    profile_options what = {.n_prompt = 8, .n_decode = 4};
    profile f;
    for (int i = 0; i < 3; i++)
        what.limits[i] = (profile_limits){.threads = 1 + i, .bandwidth = i == 1 ? 1e9 : 0};
    ck_assert_int_eq(profile_make(x.m.dg, s, &what, x.m.a, &f), WEFT_OK);
    ck_assert_int_eq(f.plans.n_part, 3);
    for (int part = 0; part < PROFILE_PARTS; part++) {
        const profile_run *r = &f.run[part];
        profile_sum lines = {0}, all = {0};
        for (int32_t i = 0; i < 3; i++) {
            ck_assert_double_gt(r->each[i].seconds, 0);
            ck_assert_int_eq(r->each[i].roof > 0, i == 1);
            profile_add(&all, &r->each[i]);
        }
        for (int32_t i = 0; i < f.n_line; i++)
            profile_add(&lines, &f.line[i].part[part]);
        ck_assert_double_eq_tol(all.seconds, r->all.seconds, 1e-9);
        ck_assert_double_eq_tol(lines.seconds, r->all.seconds, 1e-9);
        ck_assert_double_eq_tol(lines.bytes, r->all.bytes, 1);
    }
    int32_t layers[4] = {0};
    for (int32_t i = 0; i < f.run[PROFILE_DECODE].n_step; i++) {
        const profile_step *step = &f.run[PROFILE_DECODE].step[i];
        int32_t layer = profile_step_of(&f, step)->layer;
        ck_assert(layer < 0 || (layer >= 2) == (step->plan == 1));
        if (layer >= 0)
            layers[layer]++;
    }
    for (int i = 0; i < 4; i++)
        ck_assert_int_gt(layers[i], 5);
    session_destroy(s);
    close_divided(&x);
}
END_TEST

SUITE_MAIN("card_parts", any_number_of_layers_can_be_on_the_card, state_is_where_its_layers_are,
           a_call_allocates_nothing, a_card_too_small_for_its_layers_is_refused,
           a_lost_card_ends_the_call, values_of_all_parts_are_verified,
           a_wrong_step_is_found_in_its_part, a_value_that_arrives_elsewhere_is_found,
           steps_of_all_parts_are_measured)
