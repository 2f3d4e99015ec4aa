/* test_cache_session.c - sessions on interleaved weights that are kept on disk: what they count, and what becomes of them when
 * the file is cut. */
#include "tests/exec/cache_kit.h"

enum { SMALL = 8 }; /* a vocabulary */

/* logits = w * embedding: a graph of one matrix. */
static plan *plan_matrix(kit *k, toy *t, const float *embd)
{
    gguf_writer *w = gguf_writer_create();
    uint8_t *data = random_rows(1);
    gguf_writer_key(w, STR("general.architecture"), value_of_str(STR("toy")));
    gguf_writer_tensor_data(w, STR("w"), DT_Q8_0, SHAPE(ROWS, COLS), data);
    gguf_writer_tensor_data(w, STR("embd"), DT_F32, SHAPE(SMALL, COLS), embd);
    ck_assert_int_eq(gguf_writer_write(k->dg, w, k->path.path), WEFT_OK);
    gguf_writer_destroy(w);
    free(data);
    reopen(k);
    t->mf = k->mf;
    t->g = graph_create();
    t->g->model = STR("matrix");
    t->g->entry = STR("decode");
    gref tokens = toy_input(t, "tokens", GRAPH_T);
    toy_input(t, "pos", GRAPH_T);
    gref rows = toy_input(t, "rows", GRAPH_R);
    gref x = NODE(t, embed, TYPE(GRAPH_T, COLS),
                  toy_weight(t, "embd", "embd", 0, DT_F32, SHAPE(SMALL, COLS)), tokens);
    x = NODE(t, take_rows, TYPE(GRAPH_R, COLS), x, rows);
    gref m = toy_weight(t, "w", "w", 0, DT_Q8_0, SHAPE(ROWS, COLS));
    toy_output(t, "logits", -1, NODE(t, linear, TYPE(GRAPH_R, ROWS), x, m));
    target limits = {.n_ctx = 4, .n_seq = 1, .n_tok_max = 4, .be = backend_cpu_best()};
    plan *p;
    ck_assert_int_eq(plan_make(k->dg, t->g, &limits, NULL, t->a, &p), WEFT_OK);
    return p;
}

/* The logits of three tokens, in order; the caller frees them. */
static float *run_matrix(kit *k, const plan *p, const session_options *how, session_memory *out_m)
{
    session *s = NULL;
    const float *data;
    int64_t n_row, width;
    batch_row rows[3] = {{.id = 5, .pos = 0, .out = true},
                         {.id = 0, .pos = 1, .out = true},
                         {.id = 7, .pos = 2, .out = true}};
    ck_assert_int_eq(session_create(k->dg, p, model_file_source(k->mf), how, &s), WEFT_OK);
    ck_assert_int_eq(session_eval(k->dg, s, rows, 3), WEFT_OK);
    ck_assert(session_output(s, "logits", -1, &data, &n_row, &width));
    ck_assert_int_eq(n_row, 3);
    ck_assert_int_eq(width, ROWS);
    float *copy = malloc(3 * ROWS * sizeof *copy);
    memcpy(copy, data, 3 * ROWS * sizeof *copy);
    *out_m = session_bytes(s);
    session_destroy(s);
    return copy;
}

START_TEST(a_session_counts_them_once)
{
    kit *k = kit_open();
    toy *t = calloc(1, sizeof *t);
    float *embd = calloc(SMALL * COLS, sizeof *embd);
    t->a = arena_create();
    t->dg = k->dg;
    t->seed = 3;
    toy_fill(t, DT_F32, embd, SMALL * COLS, 1);
    const plan *p = plan_matrix(k, t, embd);
    const bool interleaved = kernel_layout(KOP_linear, DT_Q8_0, kvariant_best()) != LAYOUT_STORED;
    const size_t embd_bytes = SMALL * COLS * sizeof(float);
    ck_assert_uint_eq(p->interleaved_bytes, interleaved ? rows8_bytes : 0);
    ck_assert_uint_eq(p->interleaved_bytes + p->mapped_bytes, rows8_bytes + embd_bytes);

    session_options how = {.n_ctx = 4, .n_seq = 1, .threads = 2};
    session_memory need, alone, made, found;
    ck_assert_int_eq(session_need(k->dg, p, model_file_source(k->mf), &how, &need), WEFT_OK);
    float *a = run_matrix(k, p, &how, &alone);
    ck_assert_int_eq(entries(k, NULL), 0);
    how.use_cache = true;
    float *b = run_matrix(k, p, &how, &made);
    ck_assert_int_eq(entries(k, NULL), interleaved);
    float *c = run_matrix(k, p, &how, &found);
    ck_assert_int_eq(entries(k, NULL), interleaved);
    ck_assert_int_eq(memcmp(a, b, 3 * ROWS * sizeof *a), 0);
    ck_assert_int_eq(memcmp(a, c, 3 * ROWS * sizeof *a), 0);
    ck_assert_uint_eq(need.weights_interleaved, p->interleaved_bytes);
    ck_assert_uint_eq(need.weights_mapped + need.weights_interleaved, rows8_bytes + embd_bytes);
    ck_assert_mem_eq(&need, &alone, sizeof need);
    ck_assert_int_eq(session_need(k->dg, p, model_file_source(k->mf), &how, &need), WEFT_OK);
    ck_assert_uint_eq(need.weights_cached, p->interleaved_bytes); /* in a file: no memory of ours */
    ck_assert_uint_eq(need.weights_interleaved, 0);
    ck_assert_uint_eq(session_memory_sum(&need), session_memory_sum(&alone));
    ck_assert_mem_eq(&need, &made, sizeof made);
    ck_assert_mem_eq(&need, &found, sizeof found);
    free(a);
    free(b);
    free(c);
    free(embd);
    graph_destroy(t->g);
    arena_destroy(t->a);
    free(t);
    kit_close(k);
}
END_TEST

/* ---- where memory is short ---- */

static weft_status small_room(weft_diag *dg, device *d, memory_room *out_room)
{
    (void)dg, (void)d;
    *out_room = (memory_room){rows8_bytes / 2, "in this test"};
    return WEFT_OK;
}

static weft_status open_small(kit *k, const plan *p, bool keep)
{
    device_kind kind = device_kind_cpu;
    device small = {&kind};
    kind.room = small_room;
    session *s = NULL;
    session_options how = {.n_ctx = 4, .threads = 2, .use_cache = keep, .dev = &small};
    weft_status status = session_create(k->dg, p, model_file_source(k->mf), &how, &s);
    session_destroy(s);
    return status;
}

/* Half of what the interleaved weights take is there: enough where a file holds them. */
START_TEST(interleaved_weights_in_a_file_need_no_memory)
{
    kit *k = kit_open();
    toy *t = calloc(1, sizeof *t);
    float *embd = calloc(SMALL * COLS, sizeof *embd);
    t->a = arena_create();
    t->dg = k->dg;
    const plan *p = plan_matrix(k, t, embd);
    if (p->interleaved_bytes) {
        ck_assert_int_eq(open_small(k, p, false), WEFT_ERR_TARGET);
        expect_one(k->dg, W0902, "available in this test");
        strbuf text = {0};
        diag_json(k->dg, &text);
        ck_assert_ptr_nonnull(strstr(text.p, "no_repack"));
        strbuf_free(&text);
        diag_reset(k->dg);
    }
    ck_assert_int_eq(open_small(k, p, true), WEFT_OK); /* made */
    ck_assert_int_eq(open_small(k, p, true), WEFT_OK); /* found */
    if (p->interleaved_bytes) {
        use_cache("/dev/null/nowhere");
        ck_assert_int_eq(open_small(k, p, true), WEFT_ERR_TARGET);
        expect_one(k->dg, W0902, "available in this test");
    }
    free(embd);
    graph_destroy(t->g);
    arena_destroy(t->a);
    free(t);
    kit_close(k);
}
END_TEST

/* The file is cut between two calls: the call that reads zeros says so. */
START_TEST(a_session_reports_a_file_that_was_cut)
{
    kit *k = kit_open();
    toy *t = calloc(1, sizeof *t);
    float *embd = calloc(SMALL * COLS, sizeof *embd);
    t->a = arena_create();
    t->dg = k->dg;
    const plan *p = plan_matrix(k, t, embd);
    model_file_close(k->mf);
    ck_assert_int_eq(
        model_file_open(k->dg, k->path.path, &(model_file_options){.guard = true}, &k->mf),
        WEFT_OK);
    session *s;
    session_options how = {.n_ctx = 4, .n_seq = 1, .use_cache = true};
    batch_row row = {.id = 5, .out = true};
    if (p->interleaved_bytes) { /* these kernels want it */
        ck_assert_int_eq(session_create(k->dg, p, model_file_source(k->mf), &how, &s), WEFT_OK);
        ck_assert_int_eq(session_eval(k->dg, s, &row, 1), WEFT_OK);
        ck_assert_int_eq(truncate(only_file(k).path, HEAD), 0);
        row.pos = 1;
        ck_assert_int_eq(session_eval(k->dg, s, &row, 1), WEFT_ERR_FILE);
        expect_one(k->dg, W1012, only_file(k).path);
        ck_assert_int_eq(session_length(s, 0), 1);
        session_destroy(s);
    }
    free(embd);
    graph_destroy(t->g);
    arena_destroy(t->a);
    free(t);
    kit_close(k);
}
END_TEST

SUITE_MAIN("cache_session", interleaved_weights_in_a_file_need_no_memory,
           a_session_counts_them_once, a_session_reports_a_file_that_was_cut)
