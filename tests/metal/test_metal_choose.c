/* test_metal_choose.c - tokens chosen on the tests' GPU, with the next call queued ahead: the same ones as on the host, and nothing
 * else can be seen of it. */
#include "runtime/engine/choose.h"
#include "tests/metal/metal_kit.h"

typedef struct {
    gpu_model m;
    device *d;
    session *s;
    cancel_flag cancel;
} rig;

static void rig_open(rig *r)
{
    *r = (rig){.m = gpu_model_open("llama-mha")};
    r->d = gpu_open(r->m.dg);
    session_options opt = gpu_options(&r->m, r->d);
    opt.cancel = &r->cancel;
    ck_assert_int_eq(session_create(r->m.dg, r->m.p, model_file_source(r->m.mf), &opt, &r->s),
                     WEFT_OK);
    ck_assert(session_chooses(r->s));
}

static void rig_close(rig *r)
{
    session_destroy(r->s);
    gpu_close(r->d);
    gpu_model_close(&r->m);
}

/* A text of a sequence that goes on. */
typedef struct {
    int32_t ids[64];
    int64_t n, held;
    int32_t seq;
    sampler *pick;
} text;

static text text_open(rig *r, int32_t seq, const sampler_options *o)
{
    text t = {.n = 2, .seq = seq};
    memcpy(t.ids, r->m.ids, 2 * sizeof *t.ids);
    ck_assert_int_eq(sampler_create(r->m.dg, o, r->m.vocab, 8, &t.pick), WEFT_OK);
    return t;
}

static int64_t text_rows(const text *t, batch_row *rows)
{
    for (int64_t i = t->held; i < t->n; i++)
        rows[i - t->held] =
            (batch_row){.id = t->ids[i], .pos = (int32_t)i, .seq = t->seq, .out = i + 1 == t->n};
    return t->n - t->held;
}

static void text_add(text *t, int32_t id)
{
    ck_assert_int_ge(id, 0);
    t->held = t->n;
    t->ids[t->n++] = id;
}

/* On the host, from the GPU's logits. */
static void step_host(rig *r, text *t)
{
    batch_row rows[64];
    const float *logits;
    int64_t n, width;
    ck_assert_int_eq(session_eval(r->m.dg, r->s, rows, text_rows(t, rows)), WEFT_OK);
    ck_assert(session_output(r->s, "logits", -1, &logits, &n, &width));
    text_add(t, sampler_choose(t->pick, logits));
}

static weft_status step_gpu(rig *r, chooser *c, text *t)
{
    const bool more = true;
    batch_row rows[64];
    int32_t id;
    WEFT_TRY(chooser_run(r->m.dg, c, rows, text_rows(t, rows), &t->pick, &more, &id));
    text_add(t, id);
    return WEFT_OK;
}

static sampler_options option(int i)
{
    sampler_options o = sampler_defaults();
    o.seed = (uint64_t)i;
    o.temp = i == 0 ? 0 : i == 1 ? 0.8 : 3;
    o.top_k = i == 2 ? 0 : 40;
    o.min_p = i % 2 ? 0 : 0.01;
    return o;
}

enum { TOKENS = 6 };

START_TEST(texts_are_the_hosts)
{
    rig r;
    rig_open(&r);
    for (int i = 0; i < 4; i++) {
        sampler_options o = option(i);
        text want = text_open(&r, 1, &o), t = text_open(&r, 0, &o);
        chooser c;
        int64_t ahead = 0;
        chooser_init(&c, r.s);
        for (int k = 0; k < TOKENS; k++)
            step_host(&r, &want);
        for (int k = 0; k < TOKENS; k++) {
            ck_assert_int_eq(step_gpu(&r, &c, &t), WEFT_OK);
            ck_assert_int_eq(session_length(r.s, 0), t.n - 1);
            ahead += c.ahead != 0;
        }
        ck_assert_mem_eq(t.ids, want.ids, (size_t)t.n * sizeof *t.ids);
        ck_assert_int_gt(ahead, TOKENS / 2);
        for (int64_t seq = 0; seq < 2; seq++) /* drops the one under way */
            ck_assert_int_eq(session_truncate(r.m.dg, r.s, seq, 0), WEFT_OK);
        sampler_destroy(t.pick);
        sampler_destroy(want.pick);
        chooser_deinit(&c);
    }
    rig_close(&r);
}
END_TEST

START_TEST(calls_under_way_may_be_cancelled_and_lost)
{
    rig r;
    sampler_options o = option(0);
    chooser c;
    rig_open(&r);
    text t = text_open(&r, 0, &o);
    chooser_init(&c, r.s);
    ck_assert_int_eq(step_gpu(&r, &c, &t), WEFT_OK);
    cancel_ask(&r.cancel, true);
    ck_assert_int_ne(step_gpu(&r, &c, &t), WEFT_OK);
    gpu_expect_error(&r.m, W1412, "was cancelled");
    ck_assert_int_eq(session_length(r.s, 0), 2);
    cancel_ask(&r.cancel, false);
    ck_assert_int_eq(step_gpu(&r, &c, &t), WEFT_OK);
    metal_fake_set("lost", 1);
    while (step_gpu(&r, &c, &t) == WEFT_OK)
        ck_assert_int_lt(t.n, 10);
    gpu_expect_error(&r.m, W1610, "running the plan failed on metal:0");
    sampler_destroy(t.pick);
    chooser_deinit(&c);
    rig_close(&r);
}
END_TEST

SUITE_MAIN("metal_choose", texts_are_the_hosts, calls_under_way_may_be_cancelled_and_lost)
