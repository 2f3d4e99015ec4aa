/* test_graph_text.c - the suite of compiler/graph_text.c, graph_print.c and graph_fold.c. */
#include "tests/compiler/graph_samples.h"

/* What every field looks like. */
static const char golden[] =
    "graph tiny entry decode\n"
    "file tiny.weft \"models/tiny.weft\"\n"
    "file std.weft \"<weft>/std.weft\"\n"
    "input tokens: i32[T]\n"
    "input \"two words\": f[T, 8]\n"
    "\n"
    "const #0: table[2] factor 0.5 = [1, 0.1]\n"
    "const #1: f[8] = [\n"
    "  0, -0, inf, -inf, nan, 4.94065645841247e-324,\n"
    "  0.3333333333333333, 1e+22\n"
    "]\n"
    "weight @tok_embd: Q8_0[16, 32] lora in 3  loc(tiny.weft:2:3)\n"
    "weight @blk[0].q: F16[8, 8] half stride [2, 16] in 4+128  loc(tiny.weft:3:1) layer 0\n"
    "weight @blk[0].q.bias: F32[8] in 5 rows 2, 6+64 rows 6 line q layer 0\n"
    "weight @exps: MXFP4_HF[4, 8, 32] stride [0, 17, 0] in 7, 8, 9, 10 scales 11, 12, 13, 14\n"
    "weight @scale: F32[4] in 15 = [1, 1.5, 0.1, 3.4028235e+38]\n"
    "weight @\"odd \\\"name\\\"\\x0a\": F32[2]\n"
    "cell $kv[0]: kv_cache(heads = 1, k = 4, v = 4) window 64 ring 127  loc(tiny.weft:4:1)\n"
    "cell $lat: latent_cache(dim = 8, v = 6) contiguous\n"
    "\n"
    "%0: f[T, 32] = embed(@tok_embd, tokens)  loc(tiny.weft:5:5)\n"
    "%1: f[T, 8] half = linear(\"two words\", @blk[0].q, @blk[0].q.bias, prec = f32) chain 1"
    "  loc(std.weft:1:1) layer 0\n"
    "%2: f[T, 3], %3: f[T, 5] = split(%1) layer 0\n"
    "%4: f[T, 2, 4] = to_heads(%1, 2) layer 0\n"
    "%5: f[T, 2, 4] = layer_norm(%4, _, @scale, eps = 1e-05) layer 0\n"
    "%6: $lat = append($lat, %1) layer 0\n"
    "%7: f[T, 8] = add(%1, -0.125) map 1 chain 1\n"
    "%8: f[T, 8] = rms_norm(%7, eps = 1) recompute 2\n"
    "%9: f[T, 8] = linear(%8, @blk[0].q) chain 2\n"
    "\n"
    "output resid[0] = %7  loc(tiny.weft:6:1)\n"
    "output \"odd[\" = %0\n";

START_TEST(golden_text)
{
    arena *a = arena_create();
    weft_diag *dg = diag_create();
    graph *g = graph_from(dg, a, str_of(golden));
    if (!g)
        ck_abort_msg("%s", diag_at(dg, 0).message.p);
    strbuf out = {0};
    graph_print(g, false, &out);
    ck_assert_str_eq(out.p, golden);
    const gweight *w = &g->weights.at[2];
    ck_assert(str_eqz(w->line, "q"));
    ck_assert_int_eq(w->n_piece, 2);
    ck_assert_int_eq(w->piece[1].offset, 64);
    ck_assert_int_eq(w->piece[1].rows, 6);
    ck_assert_int_eq(g->weights.at[0].stride[0], 34);
    ck_assert_int_eq(g->weights.at[3].scales[3].tensor, 14);
    ck_assert_int_eq(g->weights.at[3].scales[3].rows, 1);
    ck_assert(g->weights.at[4].computed[3] == 3.4028235e+38f);
    source_place at = source_find(g->nodes.at[0].loc.src, g->nodes.at[0].loc.begin);
    ck_assert_uint_eq(at.line, 5);
    ck_assert_uint_eq(at.column, 5);
    ck_assert_str_eq(g->nodes.at[0].loc.src->name, "models/tiny.weft");
    strbuf_free(&out);
    graph_destroy(g);
    diag_destroy(dg);
    arena_destroy(a);
}
END_TEST

static void round_trip(const graph *g, const char *what, int seed)
{
    arena *a = arena_create();
    weft_diag *dg = diag_create();
    strbuf first = {0}, second = {0};
    graph_print(g, false, &first);
    graph *back = graph_from(dg, a, strbuf_view(&first));
    if (!back)
        ck_abort_msg("%s %d: %s", what, seed, diag_at(dg, 0).message.p);
    graph_print(back, false, &second);
    ck_assert_msg(strcmp(second.p, first.p) == 0, "%s %d prints differently", what, seed);
    ck_assert_msg(graph_equal(g, back), "%s %d is not equal", what, seed);
    graph_destroy(back);
    strbuf_free(&first);
    strbuf_free(&second);
    diag_destroy(dg);
    arena_destroy(a);
}

START_TEST(text_comes_back)
{
    for (int layers = 0; layers < 4; layers++) {
        graph *g = sample_llama(layers, layers % 2);
        round_trip(g, "llama", layers);
        graph_destroy(g);
    }
    for (int seed = 0; seed < 200; seed++) {
        graph *g = sample_random((uint64_t)seed);
        round_trip(g, "seed", seed);
        graph_destroy(g);
    }
}
END_TEST

/* A pass that inserts a node leaves values numbered out of order. */
START_TEST(values_in_any_order_come_back)
{
    arena *a = arena_create();
    weft_diag *dg = diag_create();
    graph *g = graph_from(dg, a,
                          STR("graph t entry e input x: f[T, 4]\n"
                              "%2: f[T, 4] = neg(x) %0: f[T, 2], %1: f[T, 2] = split(%2)\n"
                              "%3: f[T, 4] = concat(%0, %1)\n"));
    ck_assert_ptr_nonnull(g);
    round_trip(g, "order", 0);
    graph_destroy(g);
    diag_destroy(dg);
    arena_destroy(a);
}
END_TEST

/* ---- folding ---- */

static void expect_folds(const graph *g, const char *const *lines, size_t n)
{
    strbuf out = {0};
    graph_print(g, true, &out);
    for (size_t i = 0; i < n; i++)
        if (!strstr(out.p, lines[i]))
            ck_abort_msg("'%s' is missing", lines[i]);
    size_t found = 0;
    for (const char *p = out.p; (p = strstr(p, " as layer ")); p++)
        found++;
    ck_assert_uint_eq(found, n);
    strbuf_free(&out);
}
#define EXPECT_FOLDS(g, ...)                                                                       \
    expect_folds(g, (const char *const[]){__VA_ARGS__},                                            \
                 COUNT_OF(((const char *const[]){__VA_ARGS__})))

START_TEST(equal_layers_fold)
{
    graph *g = sample_llama(32, false);
    EXPECT_FOLDS(g, "\nlayers 1..31 as layer 0\n");
    strbuf out = {0};
    graph_print(g, true, &out);
    ck_assert_ptr_null(strstr(out.p, "layer 1\n"));
    ck_assert_ptr_null(strstr(out.p, "blk[1]"));
    ck_assert_ptr_null(strstr(out.p, "kv[1]"));
    ck_assert_ptr_null(strstr(out.p, "resid[1]"));
    ck_assert_ptr_nonnull(strstr(out.p, "output resid[0]"));
    ck_assert_ptr_nonnull(strstr(out.p, "output logits"));
    /* Only one layer is there to be read, so it is refused. */
    arena *a = arena_create();
    weft_diag *dg = diag_create();
    ck_assert_ptr_null(graph_from(dg, a, strbuf_view(&out)));
    expect_one(dg, W1502, "folded text leaves layers out");
    diag_destroy(dg);
    arena_destroy(a);
    strbuf_free(&out);
    graph_destroy(g);
    g = sample_llama(1, false);
    expect_folds(g, NULL, 0);
    graph_destroy(g);
    g = sample_llama(2, false);
    EXPECT_FOLDS(g, "\nlayer 1 as layer 0\n");
    graph_destroy(g);
}
END_TEST

START_TEST(alternating_layers_fold_in_two)
{
    graph *g = sample_llama(10, true);
    EXPECT_FOLDS(g, "\nlayers 2, 4, .. 8 as layer 0\n", "\nlayers 3, 5, .. 9 as layer 1\n");
    graph_destroy(g);
}
END_TEST

/* Numbers of maps and chains go on from layer to layer; they pair up like values. */
START_TEST(marked_layers_fold)
{
    enum { NODES = 18 };
    graph *g = sample_llama(8, false);
    for (int i = 1; i <= 8 * NODES; i++) {
        int l = (i - 1) / NODES, place = (i - 1) % NODES;
        if (g->nodes.at[i].op == OP_add || g->nodes.at[i].op == OP_silu)
            g->nodes.at[i].map = i;
        if (g->nodes.at[i].op == OP_linear)
            g->nodes.at[i].chain = 1 + l * NODES + place;
        if (place == NODES - 1) { /* the next layer's first linear */
            g->nodes.at[i].chain = l < 7 ? 1 + (l + 1) * NODES + 1 : 1 + 8 * NODES;
            g->nodes.at[i].recompute = true;
        }
    }
    g->nodes.at[1 + 8 * NODES].chain = 1 + 8 * NODES;
    strbuf why = {0};
    ck_assert_msg(graph_verify(g, &why), "%s", why.p);
    EXPECT_FOLDS(g, "layers 1..7 as layer 0");
    int silu = 1 + 3 * NODES + 15;
    ck_assert_int_eq(g->nodes.at[silu].op, OP_silu);
    g->nodes.at[silu].map = 0;
    EXPECT_FOLDS(g, "layers 1..2, 4..7 as layer 0");
    g->nodes.at[silu].map = silu;
    g->nodes.at[silu].chain = g->nodes.at[silu - 1].chain;
    EXPECT_FOLDS(g, "layers 1..2, 4..7 as layer 0");
    g->nodes.at[silu].chain = 0;
    g->cells.at[3].layout = CELL_PAGED;
    EXPECT_FOLDS(g, "layers 1..2, 4..7 as layer 0");
    graph_destroy(g);
}
END_TEST

START_TEST(differences_keep_layers_apart)
{
    enum { NODES = 18 }; /* in a layer */
    graph *g = sample_llama(6, false);
    ck_assert_int_eq(g->nodes.at[1 + 3 * NODES].layer, 3);
    ck_assert_int_eq(g->nodes.at[1 + 3 * NODES].op, OP_rms_norm);
    gnode *n = &g->nodes.at[1 + 3 * NODES];
    n->attr[0].number = 1e-6; /* an attribute */
    EXPECT_FOLDS(g, "layers 1..2, 4..5 as layer 0");
    n->attr[0].number = 1e-5;

    gweight *w = &g->weights.at[1 + 3 * 7 + 1];
    ck_assert(str_eqz(w->name, "blk[3].q_proj"));
    w->type = DT_F16; /* a stored type */
    EXPECT_FOLDS(g, "layers 1..2, 4..5 as layer 0");
    w->type = DT_F32;
    w->layer = 2; /* a weight of another layer */
    EXPECT_FOLDS(g, "layers 1..2, 4..5 as layer 0");
    w->layer = 3;

    n->in[0].id = 0; /* the embedding instead of the layer before */
    EXPECT_FOLDS(g, "layers 1..2, 4..5 as layer 0");
    n->in[0].id = g->nodes.at[1 + 3 * NODES].first - 1;

    /* Layers 2 to 5 read from two layers before. */
    for (int l = 2; l < 6; l++)
        g->nodes.at[1 + l * NODES].in[0].id = g->nodes.at[1 + (l - 1) * NODES].first - 1;
    EXPECT_FOLDS(g, "layer 1 as layer 0", "layers 3..5 as layer 2");
    graph_destroy(g);
}
END_TEST

START_TEST(odd_layer_numbers_fold)
{
    arena *a = arena_create();
    weft_diag *dg = diag_create();
    /* No layer 0, layers out of order, and one that stands in two places. */
    graph *g = graph_from(dg, a,
                          STR("graph t entry e input x: f[T, 4]\n"
                              "%0: f[T, 4] = neg(x) layer 5 %1: f[T, 4] = neg(x) layer 3\n"
                              "%2: f[T, 4] = neg(%0) layer 9 %3: f[T, 4] = neg(x) layer 65535\n"
                              "%4: f[T, 4] = silu(%3) layer 5\n"));
    ck_assert_ptr_nonnull(g);
    EXPECT_FOLDS(g, "layer 65535 as layer 3");
    graph_destroy(g);
    diag_destroy(dg);
    arena_destroy(a);
}
END_TEST

START_TEST(random_graphs_fold)
{
    for (int seed = 0; seed < 100; seed++) {
        graph *g = sample_random((uint64_t)seed);
        strbuf out = {0};
        graph_print(g, true, &out);
        ck_assert_uint_gt(out.n, 0);
        strbuf_free(&out);
        graph_destroy(g);
    }
}
END_TEST

SUITE_MAIN("graph_text", golden_text, text_comes_back, values_in_any_order_come_back,
           equal_layers_fold, alternating_layers_fold_in_two, marked_layers_fold,
           differences_keep_layers_apart, odd_layer_numbers_fold, random_graphs_fold)
