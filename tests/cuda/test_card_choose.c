/* test_card_choose.c - tokens chosen on the tests' card, with the next call queued ahead: the same ones as on the host, and
 * nothing else can be seen of it. */
#include "runtime/engine/choose.h"
#include "tests/cuda/card_kit.h"

typedef struct {
    card_model m;
    device *d;
    session *s;
    cancel_flag cancel;
} rig;

static void rig_open(rig *r, const char *model)
{
    fake_card small = fake_card_usual;
    small.threads = 32;
    small.multiprocessors = 2;
    *r = (rig){.m = card_model_open(model, NULL)};
    r->d = card_open(r->m.dg, &small);
    session_options opt = card_options(&r->m, r->d);
    session_memory need, got;
    opt.cancel = &r->cancel;
    ck_assert_int_eq(session_need(r->m.dg, r->m.p, model_file_source(r->m.mf), &opt, &need),
                     WEFT_OK);
    ck_assert_int_eq(session_create(r->m.dg, r->m.p, model_file_source(r->m.mf), &opt, &r->s),
                     WEFT_OK);
    got = session_bytes(r->s);
    ck_assert_mem_eq(&need, &got, sizeof need);
    ck_assert(session_chooses(r->s));
}

static void rig_close(rig *r)
{
    session_destroy(r->s);
    card_close(r->d);
    card_model_close(&r->m);
}

/* A text of a sequence that goes on. */
typedef struct {
    int32_t ids[64];
    int64_t n, held;
    int32_t seq;
    sampler *pick;
} text;

static text text_open(rig *r, int32_t seq, int64_t n_prompt, const sampler_options *o)
{
    text t = {.n = n_prompt, .seq = seq};
    memcpy(t.ids, r->m.ids, (size_t)n_prompt * sizeof *t.ids);
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

/* On the host, from the card's logits. */
static void step_host(rig *r, text *t)
{
    batch_row rows[64];
    const float *logits;
    int64_t n, width;
    ck_assert_int_eq(session_eval(r->m.dg, r->s, rows, text_rows(t, rows)), WEFT_OK);
    ck_assert(session_output(r->s, "logits", -1, &logits, &n, &width));
    text_add(t, sampler_choose(t->pick, logits));
}

static weft_status step_card(rig *r, chooser *c, text *t, bool more)
{
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
    o.temp = i % 4 == 0 ? 0 : i % 4 == 1 ? 0.8 : 3;
    o.top_k = i % 3 == 0 ? 0 : 40;
    o.min_p = i % 2 ? 0 : 0.01;
    return o;
}

/* The text that the host would make, to the end of the context. */
static text expected(rig *r, int64_t n_prompt, const sampler_options *o)
{
    text t = text_open(r, 1, n_prompt, o);
    while (t.n <= r->m.n)
        step_host(r, &t);
    sampler_destroy(t.pick);
    ck_assert_int_eq(session_truncate(r->m.dg, r->s, 1, 0), WEFT_OK);
    return t;
}

/* Until the context is full, which the last token stands behind. */
static void same_texts(const char *model, int n_seed)
{
    rig r;
    rig_open(&r, model);
    for (int i = 0; i < n_seed; i++) {
        sampler_options o = option(i);
        text want = expected(&r, 3, &o), t = text_open(&r, 0, 3, &o);
        chooser c;
        chooser_init(&c, r.s);
        int64_t ahead = 0;
        while (t.n <= r.m.n) {
            ck_assert_int_eq(step_card(&r, &c, &t, true), WEFT_OK);
            ck_assert_int_eq(session_length(r.s, 0), t.n - 1);
            ahead += c.ahead != 0;
        }
        ck_assert_mem_eq(t.ids, want.ids, (size_t)t.n * sizeof *t.ids);
        ck_assert_int_gt(ahead, (r.m.n - 3) / 2);
        ck_assert_uint_eq(c.ahead, 0); /* there is no place for one more */
        ck_assert_int_eq(session_truncate(r.m.dg, r.s, 0, 0), WEFT_OK);
        sampler_destroy(t.pick);
        chooser_deinit(&c);
    }
    rig_close(&r);
}

START_TEST(texts_are_the_hosts)
{
    same_texts("llama-mha", 4);
}
END_TEST

/* Windows whose pages go back while the text goes on. */
START_TEST(texts_with_windows_are_the_hosts)
{
    same_texts("gemma2", 1);
}
END_TEST

/* The batch, and the tokens in it, are in front of the graph. */
START_TEST(texts_by_graphs_are_the_hosts)
{
    setenv("WEFT_CUDA_CALLS", "graph", 1);
    same_texts("llama-mha", 2);
    unsetenv("WEFT_CUDA_CALLS");
    ck_assert_int_gt(fake_seen().graphs, 10);
}
END_TEST

/* Logits stay where they are, and the card has its next work before the host sees a token. */
START_TEST(little_is_copied_and_nobody_waits)
{
    rig r;
    rig_open(&r, "llama-mha");
    sampler_options o = option(1);
    text t = text_open(&r, 0, 3, &o);
    chooser c;
    chooser_init(&c, r.s);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(step_card(&r, &c, &t, true), WEFT_OK);
    int64_t allocated = fake_calls(FAKE_cuMemAlloc) + fake_calls(FAKE_cuMemHostAlloc);
    for (int i = 0; i < 12; i++) {
        fake_counts before = fake_seen();
        uint64_t under_way = session_under_way(r.s);
        ck_assert_uint_ne(under_way, 0);
        ck_assert_int_eq(step_card(&r, &c, &t, true), WEFT_OK);
        fake_counts now = fake_seen();
        ck_assert_uint_eq(session_under_way(r.s), under_way + 1);
        ck_assert_int_eq(now.bytes_out - before.bytes_out, 0);
        ck_assert_int_le(now.bytes_in - before.bytes_in, 4096);
        ck_assert_int_eq(now.launches - before.launches, 1);
        ck_assert_int_eq(now.waits - before.waits, 0); /* for all that is queued */
        ck_assert_int_eq(now.chosen - before.chosen, 1);
    }
    ck_assert_int_eq(allocated, fake_calls(FAKE_cuMemAlloc) + fake_calls(FAKE_cuMemHostAlloc));
    ck_assert_uint_eq(session_chosen_count(r.s), 15);
    sampler_destroy(t.pick);
    chooser_deinit(&c);
    rig_close(&r);
}
END_TEST

/* The call that was queued is not what comes: another token, another sampler, a cut, a fork. All goes on as if it had never
 * been. */
static void goes_another_way(const char *model)
{
    rig r;
    rig_open(&r, model);
    sampler_options o = option(1), other = option(5);
    text want = expected(&r, 3, &o);
    for (int way = 0; way < 4; way++)
        for (int64_t at = 6 + way; at < r.m.n - 2; at += 16) {
            text t = text_open(&r, 0, 3, &o);
            chooser c;
            chooser_init(&c, r.s);
            while (t.n < at)
                ck_assert_int_eq(step_card(&r, &c, &t, true), WEFT_OK);
            if (way == 0) { /* another token, then the right one */
                text u = t;
                u.ids[u.n - 1] = (u.ids[u.n - 1] + 1) % (int32_t)r.m.vocab;
                sampler *pick = u.pick;
                ck_assert_int_eq(sampler_create(r.m.dg, &other, r.m.vocab, 8, &u.pick), WEFT_OK);
                ck_assert_int_eq(step_card(&r, &c, &u, true), WEFT_OK);
                sampler_destroy(u.pick);
                t.pick = pick;
                int64_t keep = session_keepable(r.s, 0, t.held);
                ck_assert_int_eq(session_truncate(r.m.dg, r.s, 0, keep), WEFT_OK);
                t.held = keep;
            } else if (way == 1) {
                ck_assert_int_eq(session_truncate(r.m.dg, r.s, 0, t.held), WEFT_OK);
            } else if (way == 2) {
                ck_assert_int_eq(session_fork(r.m.dg, r.s, 0, 1, t.held), WEFT_OK);
                t.seq = 1;
            } else {
                step_host(&r, &t);
            }
            while (t.n < at + 5 && t.n <= r.m.n)
                ck_assert_int_eq(step_card(&r, &c, &t, true), WEFT_OK);
            ck_assert_mem_eq(t.ids, want.ids, (size_t)t.n * sizeof *t.ids);
            sampler_destroy(t.pick);
            chooser_deinit(&c);
            for (int32_t i = 0; i < 2; i++)
                ck_assert_int_eq(session_truncate(r.m.dg, r.s, i, 0), WEFT_OK);
        }
    rig_close(&r);
}

START_TEST(what_was_queued_can_be_dropped)
{
    goes_another_way("llama-mha");
}
END_TEST

START_TEST(with_windows_too)
{
    goes_another_way("gemma2");
}
END_TEST

/* Cancelled with one call running and one behind it: no sequence has changed, and both can be made again. */
START_TEST(cancelled_calls_leave_nothing)
{
    rig r;
    rig_open(&r, "llama-mha");
    sampler_options o = option(1);
    text want = expected(&r, 3, &o), t = text_open(&r, 0, 3, &o);
    chooser c;
    chooser_init(&c, r.s);
    for (int i = 0; t.n <= r.m.n; i++) {
        if (i % 3 == 1) {
            cancel_ask(&r.cancel, true);
            ck_assert_int_eq(step_card(&r, &c, &t, true), WEFT_ERR_CANCELLED);
            ck_assert_int_eq(session_length(r.s, 0), t.held);
            ck_assert_uint_eq(session_under_way(r.s), 0);
            cancel_ask(&r.cancel, false);
        }
        ck_assert_int_eq(step_card(&r, &c, &t, true), WEFT_OK);
    }
    ck_assert_mem_eq(t.ids, want.ids, (size_t)t.n * sizeof *t.ids);
    sampler_destroy(t.pick);
    chooser_deinit(&c);
    rig_close(&r);
}
END_TEST

/* Two texts in one call, each with its sampler; one ends before the other. */
START_TEST(rows_have_samplers_of_their_own)
{
    rig r;
    rig_open(&r, "llama-mha");
    const sampler_options o[2] = {option(1), option(2)};
    text want[2] = {expected(&r, 3, &o[0]), expected(&r, 4, &o[1])};
    text t[2] = {text_open(&r, 0, 3, &o[0]), text_open(&r, 1, 4, &o[1])};
    chooser c;
    chooser_init(&c, r.s);
    int ahead = 0;
    while (t[1].n < 14) {
        batch_row rows[64];
        int32_t ids[2];
        const bool first = t[0].n < 9, more[2] = {first ? t[0].n < 8 : true, true};
        int64_t n = first ? text_rows(&t[0], rows) : 0;
        n += text_rows(&t[1], rows + n);
        sampler *pick[2] = {first ? t[0].pick : t[1].pick, t[1].pick};
        ck_assert_int_eq(chooser_run(r.m.dg, &c, rows, n, pick, more, ids), WEFT_OK);
        ahead += c.ahead != 0;
        if (first)
            text_add(&t[0], ids[0]);
        text_add(&t[1], ids[first ? 1 : 0]);
    }
    ck_assert_int_eq(ahead, 10); /* the rows that were said came every time */
    for (int i = 0; i < 2; i++) {
        ck_assert_mem_eq(t[i].ids, want[i].ids, (size_t)t[i].n * sizeof *t[i].ids);
        sampler_destroy(t[i].pick);
    }
    chooser_deinit(&c);
    rig_close(&r);
}
END_TEST

/* As many rows as do not fit the argument of a kernel. */
START_TEST(many_rows_are_chosen_at_once)
{
    rig r;
    rig_open(&r, "llama-mha");
    batch_row rows[20];
    ksample how[20];
    ksampled got[20];
    int32_t want[20];
    const float *logits;
    int64_t n, width;
    sampler *pick[20];
    for (int i = 0; i < 20; i++) {
        sampler_options o = option(i);
        rows[i] = (batch_row){.id = r.m.ids[i], .pos = i, .out = true};
        ck_assert_int_eq(sampler_create(r.m.dg, &o, r.m.vocab, 8, &pick[i]), WEFT_OK);
        ck_assert_ptr_null(sampler_for_device(pick[i], &how[i]));
    }
    ck_assert_int_eq(session_eval(r.m.dg, r.s, rows, 20), WEFT_OK);
    ck_assert(session_output(r.s, "logits", -1, &logits, &n, &width));
    for (int i = 0; i < 20; i++)
        want[i] = sampler_choose(pick[i], logits + i * width);
    ck_assert_int_eq(session_truncate(r.m.dg, r.s, 0, 0), WEFT_OK);
    ck_assert_int_eq(session_choose(r.m.dg, r.s, rows, 20, how), WEFT_OK);
    ck_assert_int_eq(session_chosen(r.m.dg, r.s, got), WEFT_OK);
    ck_assert(!session_output(r.s, "logits", -1, &logits, &n, &width));
    for (int i = 0; i < 20; i++) {
        ck_assert_int_eq(got[i].id, want[i]);
        sampler_destroy(pick[i]);
    }
    rig_close(&r);
}
END_TEST

SUITE_MAIN("card_choose", texts_are_the_hosts, texts_with_windows_are_the_hosts,
           texts_by_graphs_are_the_hosts, little_is_copied_and_nobody_waits,
           what_was_queued_can_be_dropped, with_windows_too, cancelled_calls_leave_nothing,
           rows_have_samplers_of_their_own, many_rows_are_chosen_at_once)
