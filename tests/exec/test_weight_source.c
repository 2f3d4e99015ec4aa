/* test_weight_source.c - weights from a source in memory that has all of them as the plan's kernels read them: interleaved,
 * converted and joined already, in place. Sessions give the same bits, and take no memory for weights. */
#include "compiler/plan_check.h"
#include "runtime/exec/weights_cpu.h"
#include "tests/exec/toy.h"

enum { N = 19, WEIGHTS_MAX = 64 };

static const int32_t ids[N] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8};

/* ---- the source ---- */

typedef struct {
    weight_source source;
    size_t n;
    weight_tensor tensor[WEIGHTS_MAX];
    char *bytes[WEIGHTS_MAX];
} memory_source;

static size_t source_count(const weight_source *s)
{
    return ((const memory_source *)(const void *)s)->n;
}

static weight_tensor source_tensor(const weight_source *s, size_t i)
{
    return ((const memory_source *)(const void *)s)->tensor[i];
}

static model_hash source_identity(const weight_source *s)
{
    (void)s;
    return (model_hash){1, 2};
}

static weft_status source_check(weft_diag *dg, const weight_source *s)
{
    (void)dg, (void)s;
    return WEFT_OK;
}

static const weight_source_kind memory_kind = {.count = source_count,
                                               .tensor = source_tensor,
                                               .identity = source_identity,
                                               .check = source_check};

/* ---- a plan whose weights all stay in place ---- */

/* The bytes of weight i of w as they were loaded, without gaps. */
static char *loaded_bytes(const weights *w, const plan_weight *pw, int32_t i)
{
    const void *at = cpu_weights_at(w, i);
    char *to = aligned_alloc(PLAN_ALIGN, weight_block_end(0, pw->bytes));
    return memcpy(to, pw->n_table ? *(const void *const *)at : at, pw->bytes);
}

static int32_t add_tensor(memory_source *s, const plan_weight *pw, char *bytes, size_t n)
{
    ck_assert_uint_lt(s->n, WEIGHTS_MAX);
    s->bytes[s->n] = bytes;
    s->tensor[s->n] =
        (weight_tensor){.name = str_of(pw->name), .type = pw->type, .bytes = n, .data = bytes};
    return (int32_t)s->n++;
}

static void put_in_place(memory_source *s, plan_weight *pw, plan_piece *piece, char *bytes)
{
    size_t row;
    ck_assert(dtype_bytes(pw->type, pw->dim[pw->rank - 1], &row));
    *piece = (plan_piece){.rows = pw->dim[0], .tensor = add_tensor(s, pw, bytes, pw->bytes)};
    pw->mode = WEIGHT_MAPPED;
    pw->align = PLAN_ALIGN;
    pw->stored = pw->type;
    pw->computed = NULL;
    pw->scales = NULL;
    pw->n_piece = 1;
    pw->piece = piece;
    pw->pitch = (int64_t)row * (pw->layout == LAYOUT_STORED ? 1 : LAYOUT_GROUP);
    const dtype_row *type = dtype_row_of(pw->type);
    int64_t stride = (int64_t)row;
    pw->stride[pw->rank - 1] = type->elems > 1 ? 0 : (int64_t)type->bytes;
    for (int axis = pw->rank - 2; axis >= 0; axis--) {
        pw->stride[axis] = stride;
        stride *= pw->dim[axis];
    }
}

/* One that is read in place stays as it is, gaps between its rows included: steps know their distance. */
static void copy_pieces(toy *t, memory_source *s, plan_weight *pw)
{
    plan_piece *piece = ARENA_ARRAY(t->a, plan_piece, (size_t)pw->n_piece);
    for (int i = 0; i < pw->n_piece; i++) {
        weight_piece v;
        ck_assert_int_eq(weight_find(t->dg, pw, i, model_file_source(t->mf), &v), WEFT_OK);
        char *bytes = aligned_alloc(PLAN_ALIGN, weight_block_end(0, v.bytes));
        memcpy(bytes, v.data, v.bytes);
        piece[i] =
            (plan_piece){.rows = pw->piece[i].rows, .tensor = add_tensor(s, pw, bytes, v.bytes)};
    }
    pw->align = PLAN_ALIGN;
    pw->piece = piece;
}

/* p with all its weights moved to `s`, in a. */
static plan *plan_in_place(toy *t, const plan *p, memory_source *s)
{
    weights *w;
    *s = (memory_source){.source = {.kind = &memory_kind, .path = ""}};
    ck_assert_int_eq(weights_create(t->dg, NULL, p, model_file_source(t->mf), NULL, &w), WEFT_OK);
    plan *q = ARENA_NEW(t->a, plan);
    *q = *p;
    plan_weight *list = ARENA_ARRAY(t->a, plan_weight, (size_t)p->n_weight);
    ck_assert_int_le(p->n_weight, WEIGHTS_MAX);
    q->weight = list;
    q->copied_bytes = q->interleaved_bytes = q->mapped_bytes = 0;
    for (int32_t i = 0; i < p->n_weight; i++) {
        list[i] = p->weight[i];
        if (list[i].mode == WEIGHT_MAPPED)
            copy_pieces(t, s, &list[i]);
        else
            put_in_place(s, &list[i], ARENA_NEW(t->a, plan_piece),
                         loaded_bytes(w, &p->weight[i], i));
        q->mapped_bytes += list[i].bytes;
    }
    weights_destroy(w);
    return q;
}

static void source_free(memory_source *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->bytes[i]);
}

static plan *plan_for(toy *t, const backend *be)
{
    plan *p;
    target limits = {.be = be, .n_tok_max = TOY_TOKENS};
    ck_assert_int_eq(plan_make(t->dg, t->g, &limits, NULL, t->a, &p), WEFT_OK);
    return p;
}

/* ---- what it computes ---- */

static session *run(toy *t, const plan *p, const weight_source *src, float *logits)
{
    session *s;
    batch_row rows[N];
    const float *data;
    int64_t n_row, width;
    session_options opt = {.n_ctx = N, .n_seq = 1};
    weft_status st = session_create(t->dg, p, src, &opt, &s);
    if (st != WEFT_OK)
        diag_print(t->dg, stderr, false);
    ck_assert_int_eq(st, WEFT_OK);
    for (int i = 0; i < N; i++)
        rows[i] = (batch_row){.id = ids[i], .pos = i, .out = true};
    ck_assert_int_eq(session_eval(t->dg, s, rows, N), WEFT_OK);
    ck_assert(session_output(s, "logits", -1, &data, &n_row, &width));
    memcpy(logits, data, N * VOCAB * sizeof(float));
    return s;
}

START_TEST(weights_in_place_give_the_same_bits)
{
    toy *t = toy_open();
    const backend *backends[] = {backend_reference(), backend_cpu_best()};
    for (int i = 0; i < 2; i++) {
        static float want[N * VOCAB], got[N * VOCAB];
        memory_source s;
        plan *p = plan_for(t, backends[i]), *q = plan_in_place(t, p, &s);
        weft_status proof = plan_check(t->dg, backends[i], q);
        if (proof != WEFT_OK)
            diag_print(t->dg, stderr, false);
        ck_assert_int_eq(proof, WEFT_OK);
        session *a = run(t, p, model_file_source(t->mf), want);
        session *b = run(t, q, &s.source, got);
        ck_assert_mem_eq(got, want, sizeof got);
        session_memory m = session_bytes(b);
        ck_assert_uint_eq(m.weights_copied + m.weights_interleaved + m.weights_cached, 0);
        ck_assert_uint_eq(m.weights_mapped, q->mapped_bytes);
        session_destroy(a);
        session_destroy(b);
        source_free(&s);
    }
    toy_close(t);
}
END_TEST

/* A layout that the plan says and the source cannot have: each is refused before it is read. */
START_TEST(what_does_not_fit_is_refused)
{
    toy *t = toy_open();
    memory_source s;
    const backend *be = backend_cpu_best();
    plan *q = plan_in_place(t, plan_for(t, be), &s);
    int32_t rows8 = -1;
    plan_weight *list = (plan_weight *)(uintptr_t)q->weight;
    weights *w;
    for (int32_t i = 0; i < q->n_weight; i++)
        if (q->weight[i].layout != LAYOUT_STORED)
            rows8 = i;
    if (rows8 < 0) {
        /* None here: "c" interleaves nothing, and of the toy's weights only those of BF16 have whole groups of rows, which some
         * processors read as they are. */
        ck_assert(strcmp(be->level, "c") == 0 ||
                  be->layout(be, KOP_linear, DT_BF16, false) == LAYOUT_STORED);
    } else {
        plan_weight was = list[rows8];
        int32_t at = was.piece[0].tensor;
        list[rows8].stride[was.rank - 2] += 64;
        ck_assert_int_eq(plan_check(t->dg, be, q), WEFT_ERR_PLAN);
        list[rows8] = was;
        list[rows8].pitch /= LAYOUT_GROUP;
        ck_assert_int_eq(plan_check(t->dg, be, q), WEFT_ERR_PLAN);
        list[rows8] = was;
        s.tensor[at].bytes--;
        ck_assert_int_eq(weights_create(t->dg, NULL, q, &s.source, NULL, &w), WEFT_ERR_PLAN);
        s.tensor[at].bytes++;
    }
    list[0].align = 3;
    ck_assert_int_eq(plan_check(t->dg, be, q), WEFT_ERR_PLAN);
    list[0].align = PLAN_ALIGN;
    ck_assert_int_eq(plan_check(t->dg, be, q), WEFT_OK);
    const void *data = s.tensor[0].data;
    s.tensor[0].data = (const char *)data + 1;
    ck_assert_int_eq(weights_create(t->dg, NULL, q, &s.source, NULL, &w), WEFT_ERR_PLAN);
    ck_assert_ptr_nonnull(strstr(diag_shown(t->dg), "does not begin where"));
    s.tensor[0].data = data;
    ck_assert_int_eq(weights_create(t->dg, NULL, q, &s.source, NULL, &w), WEFT_OK);
    weights_destroy(w);
    source_free(&s);
    toy_close(t);
}
END_TEST

SUITE_MAIN("weight_source", weights_in_place_give_the_same_bits, what_does_not_fit_is_refused)
