/* test_lora.c - adapters as nodes of the graph: made in memory, held against W + s B A computed plainly, with the
 * reference and with plans of every level; mixes in one batch, switching, what a session without slots has. */
#include "compiler/plan_file.h"
#include "tests/exec/toy.h"

enum { N_PART = 20, RANK = 5, LEN = 6, SEQS = 4 };

/* The sites of the toy, with their sizes; experts have a part each. */
static const struct {
    const char *weight;
    int out, in, parts;
} sites[] = {
    {"embd", D, VOCAB, 1}, /* looked up */
    {"embd", VOCAB, D, 1}, /* the head */
    {"qkv.0", Q + 2 * K, D, 1}, {"q.1", Q, D, 1},           {"k.1", K, D, 1},
    {"v.1", K, D, 1},           {"o.0", D, Q, 1},           {"o.1", D, Q, 1},
    {"gate", FF, D, 1},         {"up", FF, D, 1},           {"down", D, FF, 1},
    {"router", EXPERTS, D, 1},  {"exp_up", FF, D, EXPERTS}, {"exp_down", D, FF, EXPERTS},
};
enum { EMBEDS, HEAD };

typedef struct {
    adapter_source src;
    adapter_part part[N_PART];
    float *data[2 * N_PART];
} adapter_kit;

static float *numbers(toy *t, int64_t n, double size)
{
    float *x = malloc((size_t)n * sizeof *x);
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(toy_random(t) * size);
    return x;
}

/* An adapter of this rank on those sites whose bit is set, its parts in an order that nobody else has. */
static void kit_make(toy *t, adapter_kit *k, const char *name, int rank, unsigned on, double scale)
{
    *k = (adapter_kit){.src = {.name = name, .hash = (uint64_t)rank * 77 + on, .part = k->part}};
    for (size_t i = 0; i < COUNT_OF(sites); i++)
        for (int part = 0; part < sites[i].parts && (on >> i & 1); part++) {
            if (sites[i].parts > 1 && part == 1)
                continue; /* an expert that it leaves alone */
            size_t n = k->src.n_part++;
            ck_assert_uint_lt(n, N_PART);
            k->data[2 * n] = numbers(t, (int64_t)rank * sites[i].in, 0.3);
            k->data[2 * n + 1] = numbers(t, (int64_t)rank * sites[i].out, 0.3);
            k->part[n] = (adapter_part){.weight = sites[i].weight,
                                        .index = sites[i].parts > 1 ? part : -1,
                                        .rank = rank,
                                        .in = sites[i].in,
                                        .out = sites[i].out,
                                        .a = k->data[2 * n],
                                        .b = k->data[2 * n + 1],
                                        .scale = scale};
        }
    for (size_t i = 0; i < k->src.n_part / 2; i++) {
        adapter_part *other = &k->part[k->src.n_part - 1 - i], was = *other;
        *other = k->part[i];
        k->part[i] = was;
    }
}

static void kit_free(adapter_kit *k)
{
    for (size_t i = 0; i < COUNT_OF(k->data); i++)
        free(k->data[i]);
}

/* ---- the same, merged ---- */

/* Add rows [first, first + n) of s B A to a matrix of n rows. */
static void merge(const adapter_part *m, double scale, int first, int n, float *w)
{
    for (int i = 0; i < n; i++)
        for (int64_t j = 0; j < m->in; j++) {
            double sum = 0;
            for (int64_t r = 0; r < m->rank; r++)
                sum += (double)m->b[(first + i) * m->rank + r] * m->a[r * m->in + j];
            w[i * m->in + j] = (float)(w[i * m->in + j] + scale * m->scale * sum);
        }
}

typedef struct {
    toy_weights w;
    float head[VOCAB * D];
} merged;

static void merge_part(merged *to, const adapter_part *m, double scale)
{
    toy_weights *w = &to->w;
    const struct {
        const char *name;
        float *rows;
        int first, n;
    } parts[] = {
        {"qkv.0", w->q[0], 0, Q},     {"qkv.0", w->k[0], Q, K},
        {"qkv.0", w->v[0], Q + K, K}, {"q.1", w->q[1], 0, Q},
        {"k.1", w->k[1], 0, K},       {"v.1", w->v[1], 0, K},
        {"o.0", w->o[0], 0, D},       {"o.1", w->o[1], 0, D},
        {"gate", w->gate, 0, FF},     {"up", w->up, 0, FF},
        {"down", w->down, 0, D},      {"router", w->router, 0, EXPERTS},
        {"exp_up", w->exp_up, 0, FF}, {"exp_down", w->exp_down, 0, D},
    };
    if (strcmp(m->weight, "embd") == 0 && m->in == D)
        merge(m, scale, 0, VOCAB, to->head);
    for (int id = 0; strcmp(m->weight, "embd") == 0 && m->in == VOCAB && id < VOCAB; id++)
        for (int i = 0; i < D; i++) {
            double sum = 0;
            for (int64_t r = 0; r < m->rank; r++)
                sum += (double)m->b[i * m->rank + r] * m->a[r * VOCAB + id];
            w->embd[id * D + i] = (float)(w->embd[id * D + i] + scale * m->scale * sum);
        }
    for (size_t i = 0; i < COUNT_OF(parts); i++)
        if (strcmp(parts[i].name, m->weight) == 0)
            merge(m, scale, parts[i].first, parts[i].n,
                  parts[i].rows + (m->index > 0 ? m->index * FF * D : 0));
}

/* What the toy says with a mix of adapters merged into its weights. */
static void forward(const toy *t, const adapter_kit *const *kit, const float *scale, int n_kit,
                    const int32_t *ids, int n, toy_result *r)
{
    merged *m = malloc(sizeof *m);
    m->w = t->w;
    memcpy(m->head, t->w.embd, sizeof m->head);
    for (int k = 0; k < n_kit; k++)
        for (size_t i = 0; i < kit[k]->src.n_part; i++)
            merge_part(m, &kit[k]->part[i], (double)scale[k]);
    toy_forward(&m->w, ids, n, r);
    for (int i = 0; i < n; i++)
        plain_matrix(m->head, r->hidden[i], VOCAB, D, r->logits[i]);
    free(m);
}

/* ---- sessions ---- */

/* With prec(f32), so that all levels are as near as sums of floats are. */
static void mark_sites(toy *t)
{
    for (size_t i = 0; i < t->g->nodes.n; i++) {
        gnode *n = &t->g->nodes.at[i];
        if (n->op == OP_linear || n->op == OP_experts)
            n->attr[0] = (gattr){.kind = GATTR_WORD, .word = STR("f32")};
    }
    for (size_t i = 0; i < t->g->weights.n; i++)
        for (size_t k = 0; k < COUNT_OF(sites); k++)
            if (str_eqz(t->g->weights.at[i].name, sites[k].weight))
                t->g->weights.at[i].lora = true;
}

static target target_of(const backend *be, int64_t slots)
{
    return (target){.be = be,
                    .n_ctx = TOY_TOKENS,
                    .n_seq = SEQS,
                    .n_tok_max = TOY_TOKENS,
                    .kv = DT_F32,
                    .lora_slots = slots,
                    .lora_rank = slots ? RANK : 0};
}

static session *open_with(toy *t, const backend *be, int64_t slots, arena *a)
{
    plan *p;
    session *s;
    target limits = target_of(be, slots);
    if (plan_make(t->dg, t->g, &limits, NULL, a, &p) != WEFT_OK)
        ck_abort_msg("%s", diag_at(t->dg, 0).message.p);
    session_options opt = {.n_ctx = TOY_TOKENS, .n_seq = SEQS, .page_tok = 4, .threads = 2};
    session_memory need, got;
    ck_assert_int_eq(session_need(t->dg, p, model_file_source(t->mf), &opt, &need), WEFT_OK);
    ck_assert_int_eq(session_create(t->dg, p, model_file_source(t->mf), &opt, &s), WEFT_OK);
    got = session_bytes(s);
    ck_assert_uint_eq(need.adapters, p->adapter_bytes);
    ck_assert_uint_eq(session_memory_sum(&need), session_memory_sum(&got));
    return s;
}

static void expect_rows(const session *s, const char *name, const double *want, int row, int width,
                        const char *where)
{
    const float *got;
    int64_t n_row, got_width;
    ck_assert(
        session_output(s, name, strcmp(name, "resid") == 0 ? 1 : -1, &got, &n_row, &got_width));
    ck_assert_int_eq(got_width, width);
    ck_assert_int_lt(row, n_row);
    for (int i = 0; i < width; i++) {
        double x = (double)got[row * width + i];
        if (!(fabs(x - want[i]) <= 1e-5 + 1e-5 * fabs(want[i])))
            ck_abort_msg("%s: %s row %d element %d is %g, expected %g", where, name, row, i, x,
                         want[i]);
    }
}

static const int32_t ids[SEQS][LEN] = {
    {3, 1, 4, 1, 5, 9}, {28, 0, 27, 1, 26, 2}, {7, 7, 8, 20, 11, 12}, {3, 1, 4, 1, 5, 9}};

/* All sequences in one call, rows taking turns. */
static void eval_all(toy *t, session *s, int from, int to)
{
    batch_row rows[SEQS * LEN];
    int n = 0;
    for (int i = from; i < to; i++)
        for (int q = 0; q < SEQS; q++)
            rows[n++] = (batch_row){.id = ids[q][i], .pos = i, .seq = q, .out = true};
    if (session_eval(t->dg, s, rows, n) != WEFT_OK)
        ck_abort_msg("%s", diag_at(t->dg, 0).message.p);
}

static const backend *level_at(int i)
{
    return i == 0 ? backend_reference() : backend_cpu_at(i - 1);
}

/* Rows of four sequences in one batch: none, one adapter, a mix of two, another one; then decoded together. */
START_TEST(mixes_in_one_batch)
{
    toy *t = toy_open();
    adapter_kit a, b, c;
    toy_result *r = malloc(sizeof *r);
    mark_sites(t);
    kit_make(t, &a, "a", RANK, 0x3fff, 1.5);
    kit_make(t, &b, "b", 2, 0x1b5c, 2);
    kit_make(t, &c, "c", 3, 1u << HEAD | 1u << EMBEDS, 1);
    for (int i = 0; level_at(i); i++) {
        arena *home = arena_create();
        session *s = open_with(t, level_at(i), 3, home);
        char where[64];
        ck_assert_int_eq(session_lora_load(t->dg, s, 1, &a.src), WEFT_OK);
        ck_assert_int_eq(session_lora_load(t->dg, s, 3, &b.src), WEFT_OK);
        ck_assert_int_eq(session_lora_load(t->dg, s, 2, &c.src), WEFT_OK);
        const adapter_use one[] = {{1, 1}}, two[] = {{3, -0.5f}, {1, 0.25f}}, other[] = {{2, 1}};
        ck_assert_int_eq(session_lora_attach(t->dg, s, 1, one, 1), WEFT_OK);
        ck_assert_int_eq(session_lora_attach(t->dg, s, 2, two, 2), WEFT_OK);
        ck_assert_int_eq(session_lora_attach(t->dg, s, 3, other, 1), WEFT_OK);
        const adapter_kit *mix[SEQS][2] = {{0}, {&a}, {&b, &a}, {&c}};
        const float scale[SEQS][2] = {{0}, {1}, {-0.5f, 0.25f}, {1}};
        const int n_mix[SEQS] = {0, 1, 2, 1};
        for (int from = 0; from < LEN; from = from ? from + 1 : LEN - 2) {
            int to = from ? from + 1 : LEN - 2;
            eval_all(t, s, from, to);
            for (int q = 0; q < SEQS; q++) {
                snprintf(where, sizeof where, "%s, sequence %d", level_at(i)->level, q);
                forward(t, mix[q], scale[q], n_mix[q], ids[q], to, r);
                for (int p = from; p < to; p++) {
                    int row = (p - from) * SEQS + q;
                    expect_rows(s, "resid", r->resid[1][p], row, D, where);
                    expect_rows(s, "logits", r->logits[p], row, VOCAB, where);
                }
            }
        }
        session_destroy(s);
        arena_destroy(home);
    }
    free(r);
    kit_free(&a);
    kit_free(&b);
    kit_free(&c);
    toy_close(t);
}
END_TEST

/* Logits of the rows of the last call, copied. */
static void take_logits(const session *s, float *to, int n)
{
    const float *got;
    int64_t n_row, width;
    ck_assert(session_output(s, "logits", -1, &got, &n_row, &width));
    ck_assert(n_row == n && width == VOCAB);
    memcpy(to, got, (size_t)n * VOCAB * sizeof *to);
}

static void eval_seq(toy *t, session *s, int seq, const int32_t *text, int n, int slot,
                     float *logits)
{
    batch_row rows[TOY_TOKENS];
    for (int i = 0; i < n; i++)
        rows[i] = (batch_row){.id = text[i], .pos = i, .seq = seq, .slot = slot, .out = true};
    ck_assert_int_eq(session_truncate(t->dg, s, seq, 0), WEFT_OK);
    if (session_eval(t->dg, s, rows, n) != WEFT_OK)
        ck_abort_msg("%s", diag_at(t->dg, 0).message.p);
    take_logits(s, logits, n);
}

/* Where nobody uses an adapter, a session with slots gives the bits of one without; and switching back and forth
 * leaves no trace. A row has the same bits alone and in company. */
START_TEST(no_trace)
{
    toy *t = toy_open();
    adapter_kit a;
    float plain[LEN * VOCAB], with[LEN * VOCAB], first[LEN * VOCAB];
    mark_sites(t);
    kit_make(t, &a, "a", RANK, 0x3fff, 1);
    for (int i = 0; level_at(i); i++) {
        arena *home = arena_create();
        session *none = open_with(t, level_at(i), 0, home), *s = open_with(t, level_at(i), 2, home);
        eval_seq(t, none, 0, ids[0], LEN, 0, plain);
        eval_seq(t, s, 0, ids[0], LEN, 0, with);
        ck_assert_mem_eq(plain, with, sizeof plain);
        ck_assert_int_eq(session_lora_load(t->dg, s, 2, &a.src), WEFT_OK);
        eval_seq(t, s, 0, ids[0], LEN, 0, with);
        ck_assert_mem_eq(plain, with, sizeof plain);
        eval_seq(t, s, 0, ids[0], LEN, 2, first);
        ck_assert_mem_ne(plain, first, sizeof plain);
        const adapter_use use[] = {{2, 1}};
        ck_assert_int_eq(session_lora_attach(t->dg, s, 0, use, 1), WEFT_OK);
        eval_seq(t, s, 0, ids[0], LEN, 0, with);
        ck_assert_mem_eq(first, with, sizeof first);
        ck_assert_int_eq(session_lora_attach(t->dg, s, 0, NULL, 0), WEFT_OK);
        eval_seq(t, s, 0, ids[0], LEN, 0, with);
        ck_assert_mem_eq(plain, with, sizeof plain);
        session_destroy(s);
        session_destroy(none);
        arena_destroy(home);
    }
    kit_free(&a);
    toy_close(t);
}
END_TEST

static char *plan_text_of(toy *t, const target *limits, arena *a)
{
    plan *p;
    strbuf out = {0};
    ck_assert_int_eq(plan_make(t->dg, t->g, limits, NULL, a, &p), WEFT_OK);
    plan_json(p, (model_hash){1, 2}, &out);
    char *text = strdup(out.p);
    strbuf_free(&out);
    return text;
}

/* Without slots a plan is the one that a model without sites has, to the byte. */
START_TEST(without_slots_the_same_plan)
{
    toy *plain = toy_open(), *t = toy_open();
    mark_sites(t);
    mark_sites(plain);
    for (size_t i = 0; i < plain->g->weights.n; i++)
        plain->g->weights.at[i].lora = false;
    for (int i = 0; level_at(i); i++) {
        arena *a = arena_create();
        target limits = target_of(level_at(i), 0), with = target_of(level_at(i), 1);
        char *want = plan_text_of(plain, &limits, a), *got = plan_text_of(t, &limits, a),
             *other = plan_text_of(t, &with, a);
        ck_assert_str_eq(want, got);
        ck_assert_ptr_null(strstr(got, "lora"));
        ck_assert_ptr_nonnull(strstr(other, "lora_up"));
        free(want);
        free(got);
        free(other);
        arena_destroy(a);
    }
    toy_close(t);
    toy_close(plain);
}
END_TEST

static void expect_code(const weft_diag *dg, weft_status got, weft_code code, const char *part)
{
    ck_assert_int_ne(got, WEFT_OK);
    ck_assert_uint_eq(diag_count(dg), 1);
    diag_entry d = diag_at(dg, 0);
    if (d.code != code || !strstr(d.message.p, part))
        ck_abort_msg("expected '%s', got: %s", part, d.message.p);
}

/* `call` says what is wrong to dg. */
#define REFUSED(call, code, part)                                                                  \
    do {                                                                                           \
        weft_diag *dg = diag_create();                                                             \
        expect_code(dg, call, code, part);                                                         \
        diag_destroy(dg);                                                                          \
    } while (0)

START_TEST(refused)
{
    toy *t = toy_open();
    adapter_kit a, large, wrong;
    float before[LEN * VOCAB], after[LEN * VOCAB];
    arena *home = arena_create();
    mark_sites(t);
    kit_make(t, &a, "a", RANK, 0x3fff, 1);
    kit_make(t, &large, "large", RANK + 1, 0x3fff, 1);
    kit_make(t, &wrong, "wrong", RANK, 1u << 8, 1);
    wrong.part[0].in--;
    session *s = open_with(t, backend_cpu_best(), 2, home),
            *none = open_with(t, backend_cpu_best(), 0, home);
    const adapter_use use[] = {{1, 1}}, empty[] = {{2, 1}}, far[] = {{3, 1}}, nan[] = {{1, NAN}},
                      much[] = {{1, 3e38f}, {1, 3e38f}};
    REFUSED(session_lora_load(dg, none, 1, &a.src), W1407, "has no slots");
    REFUSED(session_lora_attach(dg, none, 0, use, 1), W1407, "has no slots");
    REFUSED(session_lora_load(dg, s, 0, &a.src), W1407, "no adapter slot 0");
    REFUSED(session_lora_load(dg, s, 3, &a.src), W1407, "numbered 1 to 2");
    REFUSED(session_lora_attach(dg, s, 0, use, 1), W1407, "slot 1 is empty");
    ck_assert_int_eq(session_lora_load(t->dg, s, 1, &a.src), WEFT_OK);
    ck_assert_int_eq(session_lora_attach(t->dg, s, 0, use, 1), WEFT_OK);
    eval_seq(t, s, 0, ids[0], LEN, 0, before);
    REFUSED(session_lora_load(dg, s, 2, &large.src), W0702,
            "has rank 6, the session's slots have room for 5");
    REFUSED(session_lora_load(dg, s, 2, &wrong.src), W0702,
            "is for a matrix [20, 31], the model's is [20, 32]");
    REFUSED(session_lora_load(dg, s, 1, &a.src), W1417, "in use by sequence 0");
    REFUSED(session_lora_unload(dg, s, 1), W1417, "in use by sequence 0");
    REFUSED(session_lora_attach(dg, s, 0, empty, 1), W1407, "slot 2 is empty");
    REFUSED(session_lora_attach(dg, s, 0, far, 1), W1407, "no adapter slot 3");
    REFUSED(session_lora_attach(dg, s, 0, nan, 1), W1406, "no number");
    REFUSED(session_lora_attach(dg, s, 0, much, 2), W1406, "scale of adapter slot 1 is no number");
    REFUSED(session_lora_attach(dg, s, SEQS, use, 1), W1403, "no sequence 4");
    batch_row row = {.id = 1, .pos = 0, .seq = 1, .slot = 2};
    REFUSED(session_eval(dg, s, &row, 1), W1407, "adapter slot 2");
    row.slot = -1;
    REFUSED(session_eval(dg, s, &row, 1), W1407, "adapter slot -1");
    eval_seq(t, s, 0, ids[0], LEN, 0, after);
    ck_assert_mem_eq(before, after, sizeof before);
    /* A fork has the mix of what it came from; then both let go. */
    ck_assert_uint_ne(session_lora_key(s, 0), 0);
    ck_assert_uint_eq(session_lora_key(s, 1), 0);
    ck_assert_int_eq(session_fork(t->dg, s, 0, 1, 2), WEFT_OK);
    ck_assert_uint_eq(session_lora_key(s, 0), session_lora_key(s, 1));
    ck_assert_int_eq(session_lora_attach(t->dg, s, 0, NULL, 0), WEFT_OK);
    REFUSED(session_lora_unload(dg, s, 1), W1417, "in use by sequence 1");
    ck_assert_int_eq(session_lora_attach(t->dg, s, 1, NULL, 0), WEFT_OK);
    ck_assert_int_eq(session_lora_unload(t->dg, s, 1), WEFT_OK);
    session_destroy(s);
    session_destroy(none);
    arena_destroy(home);
    kit_free(&a);
    kit_free(&large);
    kit_free(&wrong);
    toy_close(t);
}
END_TEST

/* Barriers of a decoded token: those of a session without slots while nobody uses an adapter, whatever is loaded. */
START_TEST(no_barrier_for_nobody)
{
    toy *t = toy_open();
    adapter_kit a;
    arena *home = arena_create();
    mark_sites(t);
    kit_make(t, &a, "a", RANK, 0x3fff, 1);
    session *none = open_with(t, backend_cpu_best(), 0, home),
            *s = open_with(t, backend_cpu_best(), 2, home);
    ck_assert_int_eq(session_lora_load(t->dg, s, 1, &a.src), WEFT_OK);
    float logits[VOCAB];
    eval_seq(t, none, 0, ids[0], 1, 0, logits);
    eval_seq(t, s, 0, ids[0], 1, 0, logits);
    uint64_t base = session_barriers(none);
    ck_assert_uint_eq(session_barriers(s), base);
    eval_seq(t, s, 0, ids[0], 1, 1, logits);
    ck_assert_uint_gt(session_barriers(s), base);
    eval_seq(t, s, 0, ids[0], 1, 0, logits);
    ck_assert_uint_eq(session_barriers(s), base);
    session_destroy(s);
    session_destroy(none);
    arena_destroy(home);
    kit_free(&a);
    toy_close(t);
}
END_TEST

SUITE_MAIN("lora", mixes_in_one_batch, no_trace, without_slots_the_same_plan, refused,
           no_barrier_for_nobody)
