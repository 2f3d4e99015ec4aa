/* test_plan_file.c - the suite of plan_fields.c, plan_write.c, plan_read.c and plan_places.c: a plan comes back from its file and
 * runs the same, and what is wrong with a file is told. */
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
    plan_write(p, model_file_hash(t->mf), &text);
    return text;
}

static weft_status read_bytes(toy *t, str bytes, arena *a, plan **out)
{
    diag_reset(t->dg);
    return plan_read(t->dg, "p.plan", bytes, model_file_hash(t->mf), a, out);
}

static weft_status read_text(toy *t, str text, plan **out)
{
    return read_bytes(t, text, t->a, out);
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
        ck_assert_uint_eq(text.n, again.n);
        ck_assert_mem_eq(text.p, again.p, text.n); /* nothing is lost that is written */
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
    for (size_t i = 0; i < text.n; i++) {
        text.p[i] ^= 1;
        weft_status st = read_text(t, strbuf_view(&text), &back);
        ck_assert_msg(st == WEFT_ERR_PLAN, "byte %zu", i);
        weft_code code = diag_at(t->dg, 0).code;
        ck_assert_msg(code == (i < 16 ? W1504 : W1507), "byte %zu", i);
        text.p[i] ^= 1;
    }
    for (size_t n = 0; n < text.n; n++)
        ck_assert_int_eq(read_text(t, (str){text.p, n}, &back), WEFT_ERR_PLAN);
    ck_assert_ptr_null(back);
    strbuf_free(&text);
    toy_close(t);
}
END_TEST

/* Whoever makes the checksum right again meets the reader and the proof: every byte changed gives an error that says
 * something or a plan that may be run, and no part of a file is a file. */
START_TEST(every_changed_byte_is_read_or_told)
{
    static const uint8_t masks[] = {1, 0x80, 0x7f};
    toy *t = toy_open();
    plan *p = make_plan(t, backend_cpu_find("c"), DT_F32), *back = NULL;
    strbuf text = file_of(t, p);
    int proven = 0;
    for (size_t i = 40; i < text.n; i++) {
        char *byte = &text.p[i], was = *byte;
        arena *a = arena_create();
        *byte = (char)(was ^ masks[i % COUNT_OF(masks)]);
        plan_file_seal(text.p, text.n);
        back = NULL;
        weft_status st = read_bytes(t, strbuf_view(&text), a, &back);
        ck_assert_msg((st == WEFT_OK) == (back != NULL), "byte %zu", i);
        ck_assert_msg((st == WEFT_OK) == (diag_errors(t->dg) == 0), "byte %zu", i);
        proven += st == WEFT_OK;
        *byte = was;
        arena_destroy(a);
    }
    ck_assert_int_gt(proven, 0); /* names and costs may be others */
    back = NULL;
    for (size_t n = text.n - 1; n > 0; n--) {
        plan_file_seal(text.p, n);
        ck_assert_int_eq(read_text(t, (str){text.p, n}, &back), WEFT_ERR_PLAN);
    }
    ck_assert_ptr_null(back);
    strbuf_free(&text);
    toy_close(t);
}
END_TEST

/* The arena's copy of a table, to be changed. */
#define OWN(a, T, list, n)                                                                         \
    ((T *)memcpy(ARENA_ARRAY(a, T, (size_t)(n)), list, (size_t)(n) * sizeof(T)))

static plan_weight *own_weights(arena *a, plan *p)
{
    plan_weight *w = OWN(a, plan_weight, p->weight, p->n_weight);
    p->weight = w;
    return w;
}

static plan_bucket *own_bucket(arena *a, plan *p)
{
    plan_bucket *b = OWN(a, plan_bucket, p->bucket, p->n_bucket);
    p->bucket = b;
    return b;
}

static plan_step *own_steps(arena *a, plan *p)
{
    plan_bucket *b = own_bucket(a, p);
    plan_step *s = OWN(a, plan_step, b->step, b->n_step);
    b->step = s;
    return s;
}

static void kernel_named(arena *a, plan *p, const char *from, const char *to)
{
    plan_kernel *k = OWN(a, plan_kernel, p->kernel, p->n_kernel);
    for (int i = 0; i < p->n_kernel; i++)
        if (strcmp(k[i].name, from) == 0)
            k[i].name = to;
    p->kernel = k;
}

static void first_arena_operand(plan_step *s, int n, int64_t offset, plan_space space)
{
    for (int i = 0; i < n; i++)
        if (s[i].out[0].space == SPACE_ARENA) {
            s[i].out[0].offset += offset;
            s[i].out[0].space = space;
            return;
        }
    ck_abort_msg("no step writes to the arena");
}

/* Changes of a plan before it is written: what is out of range is told by the reader, the rest by the proof. */
#define EDIT(name, body)                                                                           \
    static void edit_##name(arena *a, plan *p)                                                     \
    {                                                                                              \
        (void)a;                                                                                   \
        body;                                                                                      \
    }
EDIT(arch, p->arch = p->arch == KARCH_AARCH64 ? KARCH_X86_64 : KARCH_AARCH64)
EDIT(level, p->level = "avx9")
EDIT(level_lacking, p->level = KARCH_HERE == KARCH_AARCH64 ? "amx" : "i8mm")
EDIT(backend, p->backend = "npu")
EDIT(kernel, kernel_named(a, p, "k_embed_c", "k_embed_avx9"))
EDIT(kernel_other, kernel_named(a, p, "k_embed_c", "k_softmax_c"))
EDIT(kv_kind, p->kv = DT_Q4_K)
EDIT(kv, p->kv = DT_COUNT)
EDIT(rows_none, p->n_tok_max = 0)
EDIT(rows_more, p->n_tok_max = 9)
EDIT(mode, own_weights(a, p)->mode = 9)
EDIT(stored, own_weights(a, p)->stored = DT_Q4_0)
EDIT(rank, own_weights(a, p)->rank = K_AXES_MAX + 1)
EDIT(no_buckets, p->n_bucket = 0)
EDIT(step_kernel, own_steps(a, p)[2].kernel = 99999)
EDIT(step_rows, own_steps(a, p)[2].rows = 9)
EDIT(step_prec, p->deterministic = false; memset(&own_steps(a, p)->prec_f32, 7, 1))
EDIT(phases, own_bucket(a, p)->n_phase = -1)
EDIT(tables, p->table_bytes++)
EDIT(arena_less, p->arena_bytes = (size_t)-1)
EDIT(outside, first_arena_operand(own_steps(a, p), 8, (int64_t)1 << 40, SPACE_ARENA))
EDIT(space, first_arena_operand(own_steps(a, p), 8, 0, 99))

static const struct {
    void (*change)(arena *a, plan *p);
    weft_code code;
    const char *says;
} edits[] = {
    {edit_arch, W1506, "this machine is"},
    {edit_level, W1506, "avx9 kernels"},
    {edit_level_lacking, W1506, "this processor lacks"},
    {edit_backend, W1506, "of a npu"},
    {edit_kernel, W1506, "k_embed_avx9"},
    {edit_kernel_other, W1503, "step 0 (k_softmax_c)"},
    {edit_kv_kind, W1503, "do not store Q4_K"},
    {edit_kv, W1507, "`kv` is not a storage type"},
    {edit_rows_none, W1507, "`n_tok_max` is not a number in range"},
    {edit_rows_more, W1503, "bucket"},
    {edit_mode, W1507, "weights 0: `mode` is not one of its words"},
    {edit_stored, W1503, "weight 0"},
    {edit_rank, W1507, "weights 0: `dim` has more than 6 items"},
    {edit_no_buckets, W1507, "it has 0 buckets"},
    {edit_step_kernel, W1507, "bucket 0, step 2: `kernel`"},
    {edit_step_rows, W1507, "bucket 0, step 2: `rows`"},
    {edit_step_prec, W1507, "bucket 0, step 0: `prec_f32`"},
    {edit_phases, W1507, "bucket 0: `n_phase`"},
    {edit_tables, W1503, "of tables"},
    {edit_arena_less, W1507, "`arena_bytes`"},
    {edit_outside, W1503, "reaches to byte"},
    {edit_space, W1507, "`space` is not one of its words"},
};

START_TEST(what_is_wrong_is_told)
{
    toy *t = toy_open();
    plan *p = make_plan(t, backend_cpu_find("c"), DT_F32), *back = NULL;
    for (size_t i = 0; i < COUNT_OF(edits); i++) {
        plan q = *p;
        edits[i].change(t->a, &q);
        strbuf bad = file_of(t, &q);
        weft_status st = read_text(t, strbuf_view(&bad), &back);
        ck_assert_msg(st != WEFT_OK, "edit %zu, %s, went through", i, edits[i].says);
        diag_entry e = diag_at(t->dg, 0);
        ck_assert_msg(e.code == edits[i].code && strstr(e.message.p, edits[i].says),
                      "edit %zu, %s: %s %s", i, edits[i].says, diag_row_of(e.code)->name,
                      e.message.p);
        ck_assert_ptr_null(back);
        strbuf_free(&bad);
    }
    toy_close(t);
}
END_TEST

/* Where `what` is in the file, counted from its end. */
static char *bytes_at(strbuf *file, const char *what)
{
    char *at = memmem(file->p, file->n, what, strlen(what));
    ck_assert_msg(at, "no '%s' in the file", what);
    return at + strlen(what);
}

static void expect_told(toy *t, strbuf *file, weft_code code, const char *says)
{
    plan *back = NULL;
    ck_assert(plan_file_seal(file->p, file->n));
    ck_assert_int_ne(read_text(t, strbuf_view(file), &back), WEFT_OK);
    expect_one(t->dg, code, says);
    ck_assert_ptr_null(back);
    strbuf_free(file);
    toy_close(t);
}

static plan *placed_plan(toy *t, const source *a, uint32_t a_at, const source *b, uint32_t b_at)
{
    for (size_t i = 0; i < t->g->nodes.n; i++)
        t->g->nodes.at[i].loc = i % 2 ? (weft_loc){a, a_at, a_at} : (weft_loc){b, b_at, b_at};
    return make_plan(t, backend_cpu_find("c"), DT_F32);
}

/* What no plan can say: changes of the bytes themselves. */
START_TEST(what_is_wrong_with_bytes_is_told)
{
    static const struct {
        int64_t at; /* in the file; -1: behind the text */
        const char *text;
        char to;
        weft_code code;
        const char *says;
    } cases[] = {
        {8, NULL, 3, W1504, "version 3; this Weft reads version 4"},
        {32, NULL, 0, W1504, "made by another build"},
        {-1, "0.1.", '9', W1504, "was made by Weft 0.1.9"},
        {-1, "models/toy.weft", 3, W1507, "`places` is not a list"},
        {-1, "models/toy.weft\4", 2, W1507, "item 0 of `places` is in none of the files"},
        {-1, "models/toy.weft\4\0", 0, W1507, "`line` is not a number in range"},
        {-1, "k_embed", 0, W1507, "`kernels` is not a text"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        toy *t = toy_open();
        source *src = source_from_text(t->a, "models/toy.weft", STR("a\n  bc\n\n    x = y\n"));
        plan *p = placed_plan(t, src, 4, src, 13);
        strbuf file = file_of(t, p);
        char *at = cases[i].at >= 0 ? file.p + cases[i].at : bytes_at(&file, cases[i].text);
        *(i == 5 ? at + 1 : at) = cases[i].to;
        expect_told(t, &file, cases[i].code, cases[i].says);
    }
    toy *t = toy_open();
    strbuf file = file_of(t, make_plan(t, backend_cpu_find("c"), DT_F32));
    strbuf_putc(&file, 0);
    expect_told(t, &file, W1507, "1 bytes follow its end");
    t = toy_open();
    file = file_of(t, make_plan(t, backend_cpu_find("c"), DT_F32));
    plan *back = NULL;
    diag_reset(t->dg);
    model_hash other = model_file_hash(t->mf);
    other.lo ^= 1;
    ck_assert_int_eq(plan_read(t->dg, "p.plan", strbuf_view(&file), other, t->a, &back),
                     WEFT_ERR_PLAN);
    expect_one(t->dg, W1505, "for another checkpoint (a toy");
    strbuf_free(&file);
    toy_close(t);
}
END_TEST

/* Places are read back as blanks, so how many is bounded. */
START_TEST(places_are_bounded)
{
    toy *t = toy_open();
    strbuf blank = {0};
    strbuf_fill(&blank, ' ', 3 << 20);
    source *a = source_from_text(t->a, "a.weft", strbuf_view(&blank));
    source *b = source_from_text(t->a, "b.weft", strbuf_view(&blank));
    strbuf file = file_of(t, placed_plan(t, a, 3 << 20, b, 3 << 20));
    expect_told(t, &file, W1507, "its places reach too far");
    t = toy_open();
    strbuf_fill(&blank, ' ', 3 << 20);
    a = source_from_text(t->a, "a.weft", strbuf_view(&blank));
    file = file_of(t, placed_plan(t, a, 6 << 20, a, 0));
    expect_told(t, &file, W1507, "`column` is not a number in range");
    strbuf_free(&blank);
}
END_TEST

/* For a machine that need not be this one. */
START_TEST(plans_for_other_machines)
{
    toy *t = toy_open();
    static const struct {
        karch arch;
        const char *level;
    } of[] = {{KARCH_AARCH64, "i8mm"}, {KARCH_X86_64, "amx"}, {KARCH_AARCH64, "c"}};
    for (size_t i = 0; i < COUNT_OF(of); i++) {
        const backend *be = backend_cpu_for(of[i].arch, of[i].level);
        plan *p = make_plan(t, be, DT_F16), *back = NULL;
        strbuf file = file_of(t, p), again = {0};
        model_hash hash = model_file_hash(t->mf);
        ck_assert_int_eq(p->arch, of[i].arch);
        ck_assert_int_eq(plan_read_for(t->dg, "p.plan", strbuf_view(&file), hash, be, t->a, &back),
                         WEFT_OK);
        plan_write(back, hash, &again);
        ck_assert_uint_eq(file.n, again.n);
        ck_assert_mem_eq(file.p, again.p, file.n);
        back = NULL;
        be = backend_cpu_for(of[i].arch, "ref");
        ck_assert_int_eq(plan_read_for(t->dg, "p.plan", strbuf_view(&file), hash, be, t->a, &back),
                         WEFT_ERR_PLAN);
        expect_one(t->dg, W1506, "not ref ones of a cpu");
        diag_reset(t->dg);
        strbuf_free(&file);
        strbuf_free(&again);
    }
    ck_assert_ptr_null(backend_cpu_for(KARCH_AARCH64, "avx2"));
    ck_assert_ptr_null(backend_cpu_for(KARCH_X86_64, "neon"));
    ck_assert_ptr_null(backend_cpu_for(KARCH_OTHER, "c"));
    ck_assert_ptr_null(backend_cpu_for(KARCH_X86_64, "abacus"));
    toy_close(t);
}
END_TEST

START_TEST(files_are_read)
{
    toy *t = toy_open();
    plan *p = make_plan(t, backend_cpu_find("c"), DT_F32), *back = NULL;
    strbuf text = file_of(t, p);
    temp_path path = temp_file(&t->dir, "p.plan", strbuf_view(&text));
    model_hash hash = model_file_hash(t->mf);
    ck_assert_int_eq(plan_read_file(t->dg, path.path, hash, NULL, t->a, &back), WEFT_OK);
    ck_assert_int_eq(back->n_bucket, p->n_bucket);
    unlink(path.path);
    ck_assert_int_eq(plan_read_file(t->dg, path.path, hash, NULL, t->a, &back), WEFT_ERR_FILE);
    diag_reset(t->dg);
    ck_assert_int_eq(plan_read_file(t->dg, t->path.path, hash, NULL, t->a, &back), WEFT_ERR_PLAN);
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
           every_changed_byte_is_read_or_told, what_is_wrong_is_told,
           what_is_wrong_with_bytes_is_told, places_are_bounded, plans_for_other_machines,
           files_are_read, text_tells_every_step)
