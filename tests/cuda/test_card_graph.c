/* test_card_graph.c - calls of few rows as graphs: the same bits as by one launch and by single ones, how many nodes they have and which
 * edges, when they are made again, and what the environment may ask for. */
#include "runtime/engine/profile.h"
#include "tests/cuda/card_kit.h"

static void ask(const char *how)
{
    if (how)
        setenv("WEFT_CUDA_CALLS", how, 1);
    else
        unsetenv("WEFT_CUDA_CALLS");
}

static device *open_card(weft_diag *dg, const fake_card *card, const char *how)
{
    ask(how);
    device *d = card_open(dg, card);
    ask(NULL);
    return d;
}

static session *open_session(card_model *m, device *d)
{
    session *s = NULL;
    const session_options opt = card_options(m, d);
    ck_assert_int_eq(session_create(m->dg, m->p, model_file_source(m->mf), &opt, &s), WEFT_OK);
    return s;
}

/* Rows [first, first + n) of the text in one call, and their logits. */
static void eval(card_model *m, session *s, int64_t first, int64_t n, float *to)
{
    const float *got;
    int64_t n_row, width;
    ck_assert_msg(card_eval(m, s, 0, first, n) == WEFT_OK, "%s", diag_shown(m->dg));
    ck_assert(session_output(s, "logits", -1, &got, &n_row, &width));
    memcpy(to, got, (size_t)(n_row * width) * sizeof *got);
}

/* The whole text in calls of different sizes. */
static fake_counts run_text(card_model *m, const fake_card *card, const char *how, int64_t n,
                            float *to)
{
    static const int64_t sizes[] = {5, 1, 1, 3, 1, 2};
    device *d = open_card(m->dg, card, how);
    session *s = open_session(m, d);
    for (int64_t at = 0, i = 0, rows; at < n; at += rows, i++) {
        rows = sizes[i % (int64_t)COUNT_OF(sizes)];
        rows = rows < n - at ? rows : n - at;
        eval(m, s, at, rows, to + at * m->vocab);
    }
    const fake_counts seen = fake_seen();
    session_destroy(s);
    card_close(d);
    return seen;
}

/* On cards whose launches overlap and on others; one that cannot do all at once has graphs unasked. */
START_TEST(results_have_the_same_bits)
{
    static const char *const golden[] = {"llama-mha", "gemma2", "gpt_oss"};
    fake_card old = fake_card_usual, apart = fake_card_usual;
    old.old = true;
    apart.together = false;
    const struct {
        const fake_card *card;
        const char *how;
        bool graphs, overlap;
    } ways[] = {{&fake_card_usual, "persistent", false, false},
                {&fake_card_usual, "graph", true, true},
                {&old, "graph", true, false},
                {&apart, NULL, true, true},
                {&fake_card_usual, "launches", false, false}};
    for (size_t i = 0; i < COUNT_OF(golden); i++) {
        card_model m = card_model_open(golden[i], NULL);
        const int64_t n = m.n < 16 ? m.n : 16;
        const size_t bytes = (size_t)(n * m.vocab) * sizeof(float);
        float *want = malloc(bytes), *got = malloc(bytes);
        for (size_t w = 0; w < COUNT_OF(ways); w++) {
            const fake_counts seen = run_text(&m, ways[w].card, ways[w].how, n, w ? got : want);
            ck_assert_msg(w == 0 || memcmp(got, want, bytes) == 0, "%s, way %d", golden[i], (int)w);
            ck_assert_int_eq(seen.graphs > 0, ways[w].graphs);
            ck_assert_int_eq(seen.nodes, ways[w].graphs ? seen.phases : 0);
            ck_assert_int_eq(seen.overlaps, ways[w].overlap ? seen.nodes - seen.graphs : 0);
        }
        free(want);
        free(got);
        card_model_close(&m);
    }
}
END_TEST

/* A layer of a Llama is at most six kernels for one row, and ten for several, whose norms and the like no block has for itself; beside
 * them are two for what is before and behind all layers. A call is one launch; its graph stays, also for other rows of its bucket. */
START_TEST(layers_are_few_nodes)
{
    enum { N = 14, LAYERS = 2, VOCAB = 512 };
    static const int32_t ids[N] = {1, 7, 300, 5, 99, 42, 17, 256, 3, 8, 500, 64, 9, 11};
    static float to[8 * VOCAB];
    random_model *rm = NULL;
    card_model m = card_random_open("tiny-wide:BF16", ids, N, &rm);
    m.p = card_plan(&m, DT_F16, 8);
    device *d = open_card(m.dg, &fake_card_usual, "graph");
    session *s = open_session(&m, d);
    static const int64_t calls[] = {4, 3, 1, 1, 1, 1, 1, 1};
    static const int made[] = {1, 1, 2, 2, 2, 2, 2, 2};
    for (size_t i = 0, at = 0; i < COUNT_OF(calls); at += (size_t)calls[i++]) {
        const fake_counts before = fake_seen();
        eval(&m, s, (int64_t)at, calls[i], to);
        const fake_counts now = fake_seen();
        ck_assert_int_eq(now.launches - before.launches, 1);
        ck_assert_int_eq(now.graphs - before.graphs, 1);
        ck_assert_int_le(now.nodes - before.nodes, (calls[i] == 1 ? 6 : 10) * LAYERS + 2);
        ck_assert_int_eq(fake_calls(FAKE_cuGraphInstantiateWithFlags), made[i]);
        ck_assert_int_eq(fake_calls(FAKE_cuGraphDestroy), made[i]);
    }
    session_destroy(s);
    card_close(d);
    card_model_close(&m);
    random_model_destroy(rm);
}
END_TEST

/* Pages that become codes are steps that most calls have not: then the graph is another. */
START_TEST(other_phases_are_another_graph)
{
    enum { N = 20, VOCAB = 512 };
    static const char *const logits[] = {"logits"};
    static float want[N * VOCAB], got[N * VOCAB];
    int32_t ids[N];
    random_model *rm = NULL;
    for (int32_t i = 0; i < N; i++)
        ids[i] = 1 + i * 37 % 500;
    card_model m = card_random_open("tiny:BF16", ids, N, &rm);
    target t = {.be = backend_cuda(), .n_ctx = N, .n_seq = 2, .n_tok_max = N, .kv = DT_F16};
    t.tiers = (kpolicy){.n_tier = 2,
                        .tier = {{KFORM_F16, KFORM_F16, 4}, {KFORM_Q8, KFORM_Q8, KPOLICY_REST}}};
    t.outputs = logits;
    t.n_output = 1;
    m.vocab = VOCAB;
    ck_assert_int_eq(plan_make(m.dg, m.bm->graph, &t, NULL, m.a, &m.p), WEFT_OK);
    run_text(&m, &fake_card_usual, "persistent", N, want);
    run_text(&m, &fake_card_usual, "graph", N, got);
    ck_assert_mem_eq(got, want, sizeof want);
    const int64_t made = fake_calls(FAKE_cuGraphInstantiateWithFlags);
    ck_assert_int_gt(made, 4); /* as many as there are numbers of rows */
    ck_assert_int_eq(fake_calls(FAKE_cuGraphExecDestroy), made);
    card_model_close(&m);
    random_model_destroy(rm);
}
END_TEST

/* Steps whose time is measured are launched one by one; then graphs again. */
START_TEST(measured_calls_are_none)
{
    card_model m = card_model_open("llama-mha", NULL);
    device *d = open_card(m.dg, &fake_card_usual, "graph");
    session *s = open_session(&m, d);
    profile_options what = {
        .n_prompt = 8, .n_decode = 4, .limits = {{.threads = 1, .bandwidth = 1e9}}};
    for (size_t i = 0; i < COUNT_OF(what.limits->peaks.rate); i++)
        what.limits->peaks.rate[i] = 1e9;
    profile prof;
    ck_assert_int_eq(profile_make(m.dg, s, &what, m.a, &prof), WEFT_OK);
    uint64_t ns = 0;
    for (int32_t i = 0; i < m.p->bucket[0].n_step; i++)
        ns += session_profile_steps(s, 0, 0)[i].ns;
    ck_assert_uint_gt(ns, 0);
    const fake_counts before = fake_seen();
    ck_assert_int_gt(before.launches, before.graphs + 4);
    session_destroy(s);
    card_close(d);
    card_model_close(&m);
}
END_TEST

START_TEST(what_cannot_be_is_refused)
{
    static const struct {
        const char *how, *words;
        bool together;
    } wrong[] = {{"fast", "WEFT_CUDA_CALLS=fast: expected persistent, graph or launches", true},
                 {"persistent", "cannot wait for each other", false}};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        weft_diag *dg = diag_create();
        device *d = NULL;
        fake_card card = fake_card_usual;
        card.together = wrong[i].together;
        fake_reset(&card);
        ck_assert_int_eq(fake_driver()->cuInit(0), CU_OK);
        ask(wrong[i].how);
        ck_assert_int_ne(cuda_device_open(dg, fake_driver(), &fake_kernels, NULL, 0, &d), WEFT_OK);
        ask(NULL);
        expect_one(dg, W1618, wrong[i].words);
        ck_assert(fake_holds_nothing());
        diag_destroy(dg);
    }
}
END_TEST

SUITE_MAIN("card_graph", results_have_the_same_bits, layers_are_few_nodes,
           other_phases_are_another_graph, measured_calls_are_none, what_cannot_be_is_refused)
