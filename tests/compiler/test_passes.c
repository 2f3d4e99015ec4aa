/* test_passes.c - the suite of compiler/passes.c and what all passes must hold to, on random graphs;
 * passes/ has what each of them does. */
#include "compiler/passes.h"
#include "compiler/plan_check.h"
#include "compiler/plan_make.h"
#include "tests/compiler/graph_samples.h"

static target for_c(void)
{
    return (target){.be = backend_cpu_find("c"),
                    .n_ctx = 256,
                    .n_seq = 2,
                    .n_tok_max = 8,
                    .kv = DT_F32,
                    .may_fork = true};
}

/* ---- the driver ---- */

typedef struct {
    int before, after, changed;
    const char *last;
} seen;

static void see_before(void *ctx, const pass_row *p, const graph *g)
{
    seen *s = ctx;
    ck_assert_ptr_nonnull(g);
    s->before++;
    s->last = p->name;
}

static void see_after(void *ctx, const pass_row *p, const graph *g, bool changed, uint64_t ns)
{
    seen *s = ctx;
    (void)g, (void)ns;
    ck_assert_str_eq(s->last, p->name);
    s->after++;
    s->changed += changed;
}

START_TEST(the_driver_tells_what_it_does)
{
    weft_diag *dg = diag_create();
    graph *g = sample_llama(2, false);
    target t = for_c();
    seen s = {0};
    pass_watch w = {see_before, see_after, &s};
    int n;
    pass_rows(&n);
    ck_assert_int_eq(passes_run(dg, g, &t, &w), WEFT_OK);
    ck_assert_int_eq(s.before, n);
    ck_assert_int_eq(s.after, n);
    ck_assert_int_gt(s.changed, 3);
    s = (seen){0};
    ck_assert_int_eq(passes_run(dg, g, &t, &w), WEFT_OK);
    ck_assert_int_eq(s.changed, 0);
    graph_destroy(g);
    diag_destroy(dg);
}
END_TEST

START_TEST(passes_are_skipped_by_name)
{
    weft_diag *dg = diag_create();
    graph *g = sample_llama(2, false);
    target t = for_c();
    const char *skip[] = {"fuse_map", "lower_kv"};
    seen s = {0};
    pass_watch w = {see_before, see_after, &s};
    int n;
    pass_rows(&n);
    t.skip = skip;
    t.n_skip = 2;
    ck_assert_int_eq(passes_run(dg, g, &t, &w), WEFT_OK);
    ck_assert_int_eq(s.after, n - 2);
    for (size_t i = 0; i < g->nodes.n; i++)
        ck_assert_int_eq(g->nodes.at[i].map, 0);
    ck_assert_int_eq(g->cells.at[0].layout, CELL_UNDECIDED);
    skip[1] = "fuse_maps";
    s = (seen){0};
    ck_assert_int_ne(passes_run(dg, g, &t, &w), WEFT_OK);
    expect_one(dg, W1903, "there is no pass 'fuse_maps'; there are simplify, ");
    ck_assert_int_eq(s.before, 0);
    ck_assert_ptr_null(pass_find("fuse"));
    ck_assert_ptr_nonnull(pass_find("simplify"));
    graph_destroy(g);
    diag_destroy(dg);
}
END_TEST

START_TEST(the_reference_is_left_alone)
{
    weft_diag *dg = diag_create();
    graph *g = sample_llama(2, false), *same = graph_copy(g);
    target t = for_c();
    t.be = backend_reference();
    ck_assert_int_eq(passes_run(dg, g, &t, NULL), WEFT_OK);
    ck_assert(graph_equal(g, same));
    graph_destroy(g);
    graph_destroy(same);
    diag_destroy(dg);
}
END_TEST

/* ---- random graphs ---- */

/* A chain of up to 60 nodes on rows of 32: every class of op, operands from anywhere before. */
static graph *random_graph(uint64_t seed)
{
    dice d = {seed * 2 + 1};
    graph *g = graph_create();
    gtype row = F(GRAPH_T, 32), heads = F(GRAPH_T, 4, 8),
          half[2] = {F(GRAPH_T, 16), F(GRAPH_T, 16)};
    static const double freqs[] = {1.0, 0.125};
    gconst table = {.n = 2, .data = freqs, .table = true, .factor = 1};
    g->model = STR("random");
    g->entry = STR("decode");
    VEC_PUSH(&g->consts, table);
    int in = add_input(g, "tokens", F(GRAPH_T), true), pos = add_input(g, "pos", F(GRAPH_T), true);
    int rows = add_input(g, "rows", F(GRAPH_R), true);
    int w[3], vector = add_weight(g, STR("v"), -1, F(32));
    for (int i = 0; i < 3; i++)
        w[i] = add_weight(g, arena_printf(g->a, "w%d", i), -1, F(32, 32));
    int table_of_rows = add_weight(g, STR("rows"), -1, F(40, 32));
    int made[80] = {OP_ADD(g, embed, -1, row, REF(WEIGHT, table_of_rows), REF(INPUT, in))}, n = 1;
    gcell shared = {.name = STR("kv"), .kind = CELL_kv_cache, .arg = {4, 8, 8}};
    VEC_PUSH(&g->cells, shared);
    gref kv = REF(CELL, 0); /* read and written again and again */
    for (int k = 0, n_node = 1 + (int)roll(&d, 60); k < n_node; k++) {
        /* Mostly recent values, as in models. */
        gref x = REF(VALUE, made[roll(&d, 4) ? n - 1 : (int)roll(&d, (uint64_t)n)]);
        gref y = REF(VALUE, made[roll(&d, 2) ? n - 1 - (n > 1) : (int)roll(&d, (uint64_t)n)]);
        int v = 0;
        switch (roll(&d, 15)) {
        case 0:
        case 1:
            v = OP_ADD(g, linear, -1, row, x, REF(WEIGHT, w[roll(&d, 3)]));
            break;
        case 2:
            v = OP_ADD(g, rms_norm, -1, row, x, REF(WEIGHT, vector));
            break;
        case 3:
            v = OP_ADD(g, softmax, -1, row, x);
            break;
        case 4:
            v = OP_ADD(g, to_heads, -1, heads, x, NUMBER(4));
            if (roll(&d, 2))
                v = OP_ADD(g, rope, -1, heads, REF(VALUE, v), REF(INPUT, pos), REF(CONST, 0));
            v = OP_ADD(g, from_heads, -1, row, REF(VALUE, v));
            break;
        case 5: {
            gnode split = {.op = OP_split, .layer = -1, .n_in = 1, .in = {x}};
            v = graph_add(g, &split, half, 2);
            int swap = (int)roll(&d, 2);
            v = OP_ADD(g, concat, -1, row, REF(VALUE, v + swap), REF(VALUE, v + 1 - swap));
            break;
        }
        case 6: {
            gcell cell = {.kind = CELL_latent_cache, .arg = {32, 32}};
            cell.name = arena_printf(g->a, "c%zu", g->cells.n);
            VEC_PUSH(&g->cells, cell);
            gtype c = {.cell = (int)g->cells.n - 1};
            OP_ADD(g, append, -1, c, REF(CELL, c.cell), x);
            continue;
        }
        case 13:
        case 14: {
            bool writes = roll(&d, 2);
            gtype c = {.cell = 0};
            int a = OP_ADD(g, to_heads, -1, heads, x, NUMBER(4));
            int b = writes ? OP_ADD(g, to_heads, -1, heads, y, NUMBER(4)) : 0;
            if (writes) {
                kv = REF(VALUE, OP_ADD(g, append, -1, c, kv, REF(VALUE, a), REF(VALUE, b)));
                continue;
            }
            v = OP_ADD(g, attend, -1, heads, REF(VALUE, a), kv);
            g->nodes.at[g->nodes.n - 1].attr[0] = (gattr){.kind = GATTR_FLOAT, .number = 0.5};
            v = OP_ADD(g, from_heads, -1, row, REF(VALUE, v));
            break;
        }
        case 7:
            v = OP_ADD(g, mul, -1, row, x, NUMBER(roll(&d, 2) ? 1 : 3));
            break;
        case 8:
            v = OP_ADD(g, silu, -1, row, x);
            break;
        default:
            v = OP_ADD(g, add, -1, row, x, y);
        }
        made[n++] = v;
    }
    goutput o = {.name = STR("all"), .index = -1, .value = made[roll(&d, (uint64_t)n)]};
    if (roll(&d, 2))
        VEC_PUSH(&g->outputs, o);
    o.name = STR("some");
    o.value = OP_ADD(g, take_rows, -1, F(GRAPH_R, 32), REF(VALUE, made[n - 1]), REF(INPUT, rows));
    VEC_PUSH(&g->outputs, o);
    return g;
}

/* Whatever the passes joined, it can be computed. */
static void plan_safely(const graph *g, const target *t, uint64_t seed)
{
    weft_diag *dg = diag_create();
    arena *a = arena_create();
    target without = *t;
    const char *skip = pass_rows(&(int){0})[seed % 8].name;
    plan *p;
    for (int i = 0; i < 2; i++) {
        bool good = plan_make(dg, g, i ? &without : t, NULL, a, &p) == WEFT_OK &&
                    plan_check(dg, t->be, p) == WEFT_OK;
        ck_assert_msg(good, "seed %d: %s", (int)seed, good ? "" : diag_at(dg, 0).message.p);
        without.skip = &skip;
        without.n_skip = 1;
    }
    arena_destroy(a);
    diag_destroy(dg);
}

START_TEST(random_graphs_stay_legal)
{
    int n, fused = 0;
    const pass_row *rows = pass_rows(&n);
    target t = for_c();
    for (uint64_t seed = 0; seed < 2000; seed++) {
        graph *g = random_graph(seed);
        strbuf why = {0};
        ck_assert_msg(graph_verify(g, &why), "seed %d: %s", (int)seed, why.p);
        size_t n_output = g->outputs.n;
        plan_safely(g, &t, seed);
        for (int i = 0; i < n; i++) {
            if (seed % 10 == (uint64_t)i) /* without it */
                continue;
            graph *was = graph_copy(g);
            ck_assert(graph_equal(g, was));
            bool changed = rows[i].run(g, &t);
            bool good = graph_verify(g, &why);
            ck_assert_msg(good, "seed %d after %s: %s", (int)seed, rows[i].name, why.p);
            ck_assert_msg(changed == !graph_equal(g, was), "seed %d: %s does not tell the truth",
                          (int)seed, rows[i].name);
            ck_assert_msg(!rows[i].run(g, &t), "seed %d: %s changes it again", (int)seed,
                          rows[i].name);
            graph_destroy(was);
        }
        ck_assert_uint_eq(g->outputs.n, n_output);
        for (size_t i = 0; i < g->nodes.n; i++)
            fused += g->nodes.at[i].map > 0 && g->nodes.at[i].chain > 0;
        graph_destroy(g);
    }
    ck_assert_int_gt(fused, 2000); /* or these graphs say little */
}
END_TEST

SUITE_MAIN("passes", the_driver_tells_what_it_does, passes_are_skipped_by_name,
           the_reference_is_left_alone, random_graphs_stay_legal)
