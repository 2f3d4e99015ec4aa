/* test_plan_file.c - the suite of plan_fields.c, plan_json.c and plan_read.c: a plan comes back from its file and runs the
 * same, and what is wrong with a file is told. */
#include "compiler/plan_check.h"
#include "compiler/plan_file.h"
#include "tests/exec/toy.h"

enum { N = 19 };

/* A plan of the toy for these kernels. */
static plan *make_plan(toy *t, const backend *be, dtype kv)
{
    plan *p;
    target to = {.be = be, .n_ctx = 32, .n_seq = 2, .n_tok_max = 8, .kv = kv, .may_fork = true};
    ck_assert_int_eq(plan_make(t->dg, t->g, &to, NULL, t->a, &p), WEFT_OK);
    return p;
}

static strbuf file_of(toy *t, const plan *p)
{
    strbuf text = {0};
    plan_json(p, model_file_hash(t->mf), &text);
    return text;
}

static weft_status read_text(toy *t, str text, plan **out)
{
    diag_reset(t->dg);
    return plan_read(t->dg, "p.json", text, model_file_hash(t->mf), t->a, out);
}

static void run(toy *t, const plan *p, float *logits, float *resid)
{
    session *s = NULL;
    session_options opt = {.n_ctx = 32, .n_seq = 2, .threads = 2};
    ck_assert_int_eq(session_create(t->dg, p, model_file_source(t->mf), &opt, &s), WEFT_OK);
    for (int i = 0, n; i < N; i += n) {
        batch_row rows[8];
        int64_t n_row, width;
        const float *data;
        n = i % 3 + 1 < N - i ? i % 3 + 1 : N - i;
        for (int k = 0; k < n; k++)
            rows[k] = (batch_row){.id = (i + k) * 7 % VOCAB, .pos = i + k, .out = true};
        ck_assert_int_eq(session_eval(t->dg, s, rows, n), WEFT_OK);
        ck_assert(session_output(s, "logits", -1, &data, &n_row, &width));
        memcpy(logits + i * VOCAB, data, (size_t)(n * VOCAB) * sizeof *data);
        ck_assert(session_output(s, "resid", 1, &data, &n_row, &width));
        memcpy(resid + i * D, data, (size_t)(n * D) * sizeof *data);
    }
    session_destroy(s);
}

START_TEST(a_plan_read_back_is_the_same)
{
    toy *t = toy_open();
    for (int i = 0; i < 3; i++) {
        plan *p = make_plan(t, i ? backend_cpu_find("c") : backend_reference(),
                            i == 2 ? DT_F16 : DT_F32),
             *back;
        strbuf text = file_of(t, p);
        ck_assert_int_eq(read_text(t, strbuf_view(&text), &back), WEFT_OK);
        strbuf again = file_of(t, back);
        ck_assert_str_eq(text.p, again.p); /* nothing is lost that is written */
        ck_assert_uint_eq(p->bucket[0].scratch_bytes, back->bucket[0].scratch_bytes);
        for (int b = 0; b < p->n_bucket; b++)
            for (int k = 0; k < p->bucket[b].n_step; k++) {
                plan_step x = p->bucket[b].step[k], y = back->bucket[b].step[k];
                x.loc = y.loc = WEFT_NOWHERE;
                ck_assert_mem_eq(x.n, y.n, sizeof x.n);
                ck_assert_mem_eq(x.f, y.f, sizeof x.f);
                for (int in = 0; in < K_IN_MAX; in++)
                    ck_assert(x.in[in].space == y.in[in].space && x.in[in].type == y.in[in].type &&
                              x.in[in].id == y.in[in].id && x.in[in].offset == y.in[in].offset);
                ck_assert_mem_eq(x.value, y.value, sizeof x.value);
                ck_assert_mem_eq(x.stride, y.stride, sizeof x.stride);
                ck_assert_mem_eq(&x.cost, &y.cost, sizeof x.cost);
                ck_assert_int_eq(x.kernel, y.kernel);
                ck_assert_int_eq(x.node, y.node);
                ck_assert_int_eq(x.layer, y.layer);
            }
        static float logits[2][N * VOCAB], resid[2][N * D];
        run(t, p, logits[0], resid[0]);
        run(t, back, logits[1], resid[1]);
        ck_assert_mem_eq(logits[0], logits[1], sizeof logits[0]);
        ck_assert_mem_eq(resid[0], resid[1], sizeof resid[0]);
        strbuf_free(&text);
        strbuf_free(&again);
    }
    toy_close(t);
}
END_TEST

START_TEST(places_survive)
{
    toy *t = toy_open();
    source *src = source_from_text(t->a, "models/toy.weft", STR("a\n  bc\n\n    x = y\n"));
    for (size_t i = 0; i < t->g->nodes.n; i++)
        t->g->nodes.at[i].loc = (weft_loc){src, i % 2 ? 4 : 13, 14};
    plan *p = make_plan(t, backend_cpu_find("c"), DT_F32), *back;
    strbuf text = file_of(t, p);
    ck_assert_int_eq(read_text(t, strbuf_view(&text), &back), WEFT_OK);
    for (int i = 0; i < p->bucket[0].n_step; i++) {
        weft_loc a = p->bucket[0].step[i].loc, b = back->bucket[0].step[i].loc;
        ck_assert_str_eq(a.src->name, b.src->name);
        ck_assert_uint_eq(source_find(a.src, a.begin).line, source_find(b.src, b.begin).line);
        ck_assert_uint_eq(source_find(a.src, a.begin).column, source_find(b.src, b.begin).column);
    }
    strbuf_free(&text);
    toy_close(t);
}
END_TEST

/* ---- damage ---- */

START_TEST(every_changed_byte_is_found)
{
    toy *t = toy_open();
    plan *p = make_plan(t, backend_cpu_find("c"), DT_F32), *back = NULL;
    strbuf text = file_of(t, p);
    for (size_t i = 0; i < text.n; i += i < 200 ? 1 : 97) {
        text.p[i] ^= 1;
        weft_status st = read_text(t, strbuf_view(&text), &back);
        ck_assert_msg(st == WEFT_ERR_PLAN, "byte %zu", i);
        weft_code code = diag_at(t->dg, 0).code;
        ck_assert_msg(code == W1507 || (i < 64 && code == W1504), "byte %zu", i);
        text.p[i] ^= 1;
    }
    for (size_t n = 0; n < text.n; n += 1009)
        ck_assert_int_eq(read_text(t, (str){text.p, n}, &back), WEFT_ERR_PLAN);
    ck_assert_ptr_null(back);
    strbuf_free(&text);
    toy_close(t);
}
END_TEST

/* The text with the first `from` replaced, sealed again. */
static str edited(toy *t, str text, const char *from, const char *to)
{
    const char *at = strstr(text.p, from);
    ck_assert_msg(at, "no '%s' in the file", from);
    size_t before = (size_t)(at - text.p), n_from = strlen(from), n_to = strlen(to);
    str r = {.n = text.n - n_from + n_to};
    char *p = arena_alloc(t->a, r.n + 1);
    memcpy(p, text.p, before);
    memcpy(p + before, to, n_to);
    memcpy(p + before + n_to, at + n_from, text.n - before - n_from);
    plan_file_seal(p, r.n);
    r.p = p;
    return r;
}

static const struct {
    const char *from, *to;
    weft_code code;
    const char *says;
} edits[] = {
    {"{\"weft_plan\":3", "{\"weft_plan\":1", W1504, "version 1; this Weft reads version 3"},
    {"{\"weft_plan\":3", "{\"weft_plan\":x", W1504, "version 0"},
    {"{\"weft_plan\":", "{\"graph\":", W1504, "is not a plan file"},
    {"\"weft\":\"", "\"weft\":\"9", W1504, "was made by Weft 9"},
    {"\"hash\":\"", "\"hash\":\"0", W1505, "for another checkpoint (a toy"},
    {"\"arch\":\"", "\"arch\":\"z", W1506, "this machine is"},
    {"\"level\":\"c\"", "\"level\":\"avx9\"", W1506, "avx9 kernels"},
    {"\"backend\":\"cpu\"", "\"backend\":\"npu\"", W1506, "of a npu"},
    {"\"k_embed_c\"", "\"k_embed_avx9\"", W1506, "k_embed_avx9"},
    {"\"k_embed_c\"", "\"k_softmax_c\"", W1503, "step 0 (k_softmax_c)"},
    {"\"kv\":\"F32\"", "\"kv\":\"Q4_K\"", W1503, "do not store Q4_K"},
    {"\"kv\":\"F32\"", "\"kv\":\"F31\"", W1507, "`kv` is not a storage type"},
    {"\"kv\":\"F32\"", "\"k\":\"F32\"", W1507, "`kv`, a storage type, is missing"},
    {"\"n_tok_max\":8", "\"n_tok_max\":\"8\"", W1507, "`n_tok_max` is not a number"},
    {"\"n_tok_max\":8", "\"n_tok_max\":8.5", W1507, "`n_tok_max` is not a number"},
    {"\"n_tok_max\":8", "\"n_tok_max\":9", W1503, "bucket"},
    {"\"weights\":[", "\"weights\":{},\"w\":[", W1507, "`weights` is not a list"},
    {"\"weights\":[", "\"weights\":[7,", W1507, "weights 0: item 0"},
    {"\"mode\":\"mapped\"", "\"mode\":\"mopped\"", W1507, "weights 0: `mode`"},
    {"\"stored\":\"Q8_0\"", "\"stored\":\"Q4_0\"", W1503, "weight 0"},
    {"\"buckets\":[", "\"buckets\":[],\"b\":[", W1507, "0 buckets"},
    {"\"steps\":[", "\"steps\":[null,", W1507, "bucket 0, step 0"},
    {"\"kernel\":1", "\"kernel\":99999", W1507, "bucket 0, step 2: `kernel`"},
    {"\"rows\":\"T\",\"pitch\"", "\"rows\":\"Z\",\"pitch\"", W1507, "`rows`"},
    {"\"consts\":\"", "\"consts\":\"f", W1507, "hexadecimal"},
    {"\"consts\":\"0", "\"consts\":\"g", W1507, "hexadecimal"},
    {"\"files\":[]", "\"files\":3", W1507, "`files` is not a list"},
    {"\"places\":[]", "\"places\":[[0,1,1]]", W1507, "item 0"},
    {"\"table_bytes\":", "\"table_bytes\":1", W1503, "of tables"},
    {"\"arena_bytes\":", "\"arena_bytes\":-", W1507, "`arena_bytes`"},
    {"[\"arena\",0,", "[\"arena\",0,9", W1503, "outside the arena"},
    {"[\"arena\",0,", "[\"arenas\",0,", W1507, "words"},
    {"\"cells\":[{", "\"cells\":[{},{", W1507, "cells 0: `name`, a text, is missing"},
    {"}\n", "}}\n", W1014, "p.json"},
};

START_TEST(what_is_wrong_is_told)
{
    toy *t = toy_open();
    plan *p = make_plan(t, backend_cpu_find("c"), DT_F32), *back = NULL;
    strbuf text = file_of(t, p);
    for (size_t i = 0; i < COUNT_OF(edits); i++) {
        str bad = edited(t, strbuf_view(&text), edits[i].from, edits[i].to);
        weft_status st = read_text(t, bad, &back);
        ck_assert_msg(st != WEFT_OK, "edit %zu, %s, went through", i, edits[i].to);
        diag_entry e = diag_at(t->dg, 0);
        ck_assert_msg(e.code == edits[i].code && strstr(e.message.p, edits[i].says),
                      "edit %zu, %s: %s %s", i, edits[i].to, diag_row_of(e.code)->name,
                      e.message.p);
        ck_assert_ptr_null(back);
    }
    strbuf_free(&text);
    toy_close(t);
}
END_TEST

START_TEST(files_are_read)
{
    toy *t = toy_open();
    plan *p = make_plan(t, backend_cpu_find("c"), DT_F32), *back = NULL;
    strbuf text = file_of(t, p);
    temp_path path = temp_file(&t->dir, "plan.json", strbuf_view(&text));
    model_hash hash = model_file_hash(t->mf);
    ck_assert_int_eq(plan_read_file(t->dg, path.path, hash, t->a, &back), WEFT_OK);
    ck_assert_int_eq(back->n_bucket, p->n_bucket);
    unlink(path.path);
    ck_assert_int_eq(plan_read_file(t->dg, path.path, hash, t->a, &back), WEFT_ERR_FILE);
    diag_reset(t->dg);
    ck_assert_int_eq(plan_read_file(t->dg, t->path.path, hash, t->a, &back), WEFT_ERR_PLAN);
    expect_one(t->dg, W1504, "is not a plan file"); /* it is the checkpoint */
    strbuf_free(&text);
    toy_close(t);
}
END_TEST

START_TEST(text_tells_every_step)
{
    toy *t = toy_open();
    const plan *p = make_plan(t, backend_cpu_find("c"), DT_F16);
    strbuf text = {0};
    plan_text(p, 1, true, &text);
    int lines = 0;
    for (size_t i = 0; i < text.n; i++)
        lines += text.p[i] == '\n';
    ck_assert_int_eq(lines, 3 + p->bucket[0].n_phase + p->bucket[0].n_step + p->n_output);
    for (int i = 0; i < p->bucket[0].n_step; i++)
        ck_assert_ptr_nonnull(strstr(text.p, plan_kernel_of(p, &p->bucket[0].step[i])->name));
    ck_assert_ptr_nonnull(strstr(text.p, "bucket of 1 rows"));
    ck_assert_ptr_nonnull(strstr(text.p, "@embd"));
    strbuf_reset(&text);
    plan_text(p, 5, false, &text);
    ck_assert_ptr_nonnull(strstr(text.p, "bucket of 8 rows"));
    strbuf_free(&text);
    toy_close(t);
}
END_TEST

SUITE_MAIN("plan_file", a_plan_read_back_is_the_same, places_survive, every_changed_byte_is_found,
           what_is_wrong_is_told, files_are_read, text_tells_every_step)
