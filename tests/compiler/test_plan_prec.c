/* test_plan_prec.c - products that are marked prec = f32 read activations that nothing rounded: every op, every type of
 * weight, every kind of kernels of this machine and every bucket, also beside one that rounds. */
#include "compiler/plan_check.h"
#include "compiler/plan_make.h"
#include "tests/base/suite.h"

enum { N_TOK = 64 };

static int attr_of(op_code op, const char *name)
{
    int n;
    const attr_row *row = op_attrs(op, &n);
    for (int i = 0; i < n; i++)
        if (strcmp(row[i].name, name) == 0)
            return i;
    return -1;
}

static bool is_marked(const graph *g, int32_t value)
{
    const gnode *n = &g->nodes.at[g->values.at[value].node];
    int at = attr_of(n->op, "prec");
    return at >= 0 && n->attr[at].kind == GATTR_WORD && str_eqz(n->attr[at].word, "f32");
}

/* A gate that asks for f32 and an up that does not share operand, columns and chain; so do experts. */
static const char *const text =
    "graph g entry decode\ninput tokens: i32[T]\ninput pos: i32[T]\ninput rows: i32[R]\n"
    "weight @tok: F32[40, 256] in 9\nweight @wide: F32[40, 512] in 10\n"
    "weight @norm: F32[256] in 0\n"
    "weight @router: %s[8, 256] in 1\n"
    "weight @gate: %s[512, 256] in 2\nweight @up: %s[512, 256] in 3\nweight @down: %s[256, 512] in "
    "4\n"
    "weight @egate: %s[8, 512, 256] in 5\nweight @eup: %s[8, 512, 256] in 6\n"
    "weight @edown: %s[8, 256, 512] in 7\n"
    "weight @kb: %s[2, 256, 256] in 8\n"
    "%%19: f[T, 256] = embed(@tok, tokens)\n%%20: f[T, 512] = embed(@wide, tokens)\n"
    "%%21: f[T, 2, 256] = to_heads(%%20, 2)\n"
    "%%0: f[T, 256] = rms_norm(%%19, @norm, eps = 1e-06)\n"
    "%%1: f[T, 8] = linear(%%0, @router, prec = f32)\n"
    "%%2: i32[T, 2], %%3: f[T, 2] = route(%%1, k = 2, renorm = true)\n"
    "%%4: f[T, 2, 512] = experts(%%0, @egate, %%2, prec = f32)\n"
    "%%5: f[T, 2, 512] = silu(%%4)\n"
    "%%6: f[T, 2, 512] = experts(%%0, @eup, %%2)\n"
    "%%7: f[T, 2, 512] = mul(%%5, %%6)\n"
    "%%8: f[T, 2, 256] = experts(%%7, @edown, %%2, prec = f32)\n"
    "%%9: f[T, 256] = combine(%%8, %%3)\n"
    "%%10: f[T, 512] = linear(%%0, @gate, prec = f32)\n"
    "%%11: f[T, 512] = silu(%%10)\n"
    "%%12: f[T, 512] = linear(%%0, @up, prec = auto)\n"
    "%%13: f[T, 512] = mul(%%11, %%12)\n"
    "%%14: f[T, 256] = linear(%%13, @down, prec = f32)\n"
    "%%15: f[T, 256] = add(%%9, %%14)\n"
    "%%16: f[T, 2, 256] = head_linear(%%21, @kb, prec = f32)\n"
    "%%17: f[R, 256] = take_rows(%%15, rows)\n"
    "%%18: f[R, 512] = linear(%%17, @gate, prec = f32)\n"
    "output out = %%15\noutput heads = %%16\noutput last = %%18\n";

/* How many marked products a bucket has; each is asserted to round nothing. */
static int count_marked(const graph *g, const plan *p, const plan_bucket *b, int *out_rounding)
{
    int n = 0;
    for (int32_t i = 0; i < b->n_step; i++) {
        const plan_step *s = &b->step[i];
        bool marked = s->n_out > 0 && s->value[0] >= 0 && is_marked(g, s->value[0]);
        *out_rounding += act_rounds(plan_kernel_of(p, s)->act);
        ck_assert_int_eq(s->prec_f32, marked);
        if (!marked)
            continue;
        n++;
        ck_assert_msg(!act_rounds(plan_kernel_of(p, s)->act), "%s rounds what it multiplies",
                      plan_kernel_of(p, s)->name);
    }
    return n;
}

static void check_plans(weft_diag *dg, const graph *g, const backend *be, dtype type, arena *a)
{
    for (int deterministic = 0; deterministic < 2; deterministic++) {
        target t = {.be = be,
                    .n_ctx = N_TOK,
                    .n_seq = 1,
                    .n_tok_max = N_TOK,
                    .kv = DT_F32,
                    .deterministic = deterministic};
        graph *fused;
        plan *p;
        int rounding = 0;
        ck_assert_int_eq(plan_graph(dg, g, &t, NULL, &fused), WEFT_OK);
        ck_assert_int_eq(plan_make(dg, g, &t, NULL, a, &p), WEFT_OK);
        ck_assert_int_eq(plan_check(dg, t.be, p), WEFT_OK);
        for (int32_t b = 0; b < p->n_bucket; b++)
            ck_assert_int_eq(count_marked(fused, p, &p->bucket[b], &rounding), 7);
        /* Where nobody asks, these are faster; but none of a card's that take any number of rows. */
        const bool rounds =
            type == DT_Q8_0 || type == DT_Q4_K ||
            (be->launches && be != backend_cuda_exact() && (type == DT_BF16 || type == DT_F16));
        if (rounds && !(be->launches && deterministic))
            ck_assert_int_gt(rounding, 0);
        if (be == backend_cuda_exact() && (type == DT_BF16 || type == DT_F16))
            ck_assert_int_eq(rounding, 0);
        graph_destroy(fused);
    }
}

START_TEST(nothing_is_rounded)
{
    weft_diag *dg = diag_create();
    for (dtype type = 0; type < DT_COUNT; type++) {
        const char *w = dtype_row_of(type)->name;
        int n;
        const kernel_row *rows = kernel_rows(&n);
        bool multiplied = false;
        for (int i = 0; i < n; i++)
            multiplied |= rows[i].type == type && rows[i].op == KOP_linear;
        if (!multiplied)
            continue;
        arena *a = arena_create();
        graph *g = NULL;
        str of = arena_printf(a, text, w, w, w, w, w, w, w, w);
        ck_assert_int_eq(graph_parse(dg, source_from_text(a, "g", of), &g), WEFT_OK);
        for (kvariant v = VARIANT_c; v < VARIANT_COUNT; v++)
            if (kvariant_runs(v))
                check_plans(dg, g, backend_cpu_find(kvariant_name(v)), type, a);
        check_plans(dg, g, backend_cuda(), type, a); /* which rounds for BF16 and F16 too */
        check_plans(dg, g, backend_cuda_rounding(), type, a);
        check_plans(dg, g, backend_cuda_exact(), type, a);
        graph_destroy(g);
        arena_destroy(a);
    }
    diag_destroy(dg);
}
END_TEST

/* A plan from elsewhere cannot say that a product is f32 and name a kernel that rounds. */
START_TEST(a_plan_that_rounds_is_refused)
{
    weft_diag *dg = diag_create();
    arena *a = arena_create();
    graph *g = NULL;
    const char *w = "Q8_0";
    str of = arena_printf(a, text, w, w, w, w, w, w, w, w);
    ck_assert_int_eq(graph_parse(dg, source_from_text(a, "g", of), &g), WEFT_OK);
    target t = {.be = backend_cpu_find("c"), .n_ctx = 8, .n_seq = 1, .n_tok_max = 8, .kv = DT_F32};
    plan *p;
    ck_assert_int_eq(plan_make(dg, g, &t, NULL, a, &p), WEFT_OK);
    for (int32_t i = 0; i < p->bucket[0].n_step; i++) {
        plan_step *s = (plan_step *)(uintptr_t)&p->bucket[0].step[i];
        if (act_rounds(plan_kernel_of(p, s)->act))
            s->prec_f32 = true;
    }
    ck_assert_int_eq(plan_check(dg, t.be, p), WEFT_ERR_PLAN);
    ck_assert_ptr_nonnull(strstr(diag_at(dg, 0).message.p, "rounds its activations"));
    graph_destroy(g);
    arena_destroy(a);
    diag_destroy(dg);
}
END_TEST

SUITE_MAIN("plan_prec", nothing_is_rounded, a_plan_that_rounds_is_refused)
