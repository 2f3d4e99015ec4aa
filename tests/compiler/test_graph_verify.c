/* test_graph_verify.c - the suite of compiler/graph_verify.c and graph_shape.c. */
#include "tests/compiler/graph_samples.h"
#include <math.h>

static void expect_fault(const graph *g, const char *part)
{
    strbuf why = {0};
    ck_assert_msg(!graph_verify(g, &why), "nothing is wrong, but expected: %s", part);
    if (!strstr(why.p, part))
        ck_abort_msg("'%s' is not in '%s'", part, why.p);
    strbuf_free(&why);
    ck_assert(!graph_verify(g, NULL));
}

START_TEST(samples_are_legal)
{
    for (int layers = 0; layers < 5; layers++) {
        graph *g = sample_llama(layers, layers % 2);
        strbuf why = {0};
        ck_assert_msg(graph_verify(g, &why), "%s", why.p);
        graph_destroy(g);
    }
    for (uint64_t seed = 0; seed < 200; seed++) {
        graph *g = sample_random(seed);
        strbuf why = {0};
        ck_assert_msg(graph_verify(g, &why), "seed %d: %s", (int)seed, why.p);
        graph_destroy(g);
    }
}
END_TEST

START_TEST(faults_of_tables_and_nodes)
{
    graph *g = sample_llama(2, false);
    /* Nodes of a layer: 1 rms_norm, 2 linear q, 3 to_heads, 4 rope, .. 10 append, 11 attend. */
#define FAULT(field, other, part)                                                                  \
    do {                                                                                           \
        __typeof__(g->field) kept = g->field;                                                      \
        g->field = (other);                                                                        \
        expect_fault(g, part);                                                                     \
        g->field = kept;                                                                           \
    } while (0)
    FAULT(inputs.at[1].name, STR("tokens"), "two inputs are called tokens");
    FAULT(weights.at[2].name, STR("blk[0].attn_norm"), "two weights are called blk[0].attn_norm");
    FAULT(cells.at[1].name, STR("kv[0]"), "two cells are called kv[0]");
    FAULT(inputs.at[0].type.cell, 0, "input tokens has no tensor type");
    FAULT(inputs.at[0].type.dim[0], -4, "input tokens has no tensor type");
    FAULT(weights.at[1].rank, 7, "weight blk[0].attn_norm has a bad type");
    FAULT(weights.at[1].dim[0], GRAPH_T, "weight blk[0].attn_norm has a bad type");
    FAULT(weights.at[1].type, DT_COUNT, "weight blk[0].attn_norm has a bad type");
    FAULT(weights.at[1].piece, NULL, "weight blk[0].attn_norm has a bad type");
    FAULT(weights.at[2].dim[0], 9, "its pieces hold 8 of 9 rows");
    FAULT(consts.at[0].data, NULL, "const #0 has no data");
    FAULT(cells.at[0].arg[1], -1, "cell kv[0] has a bad kind");
    FAULT(cells.at[0].kind, CELL_KIND_COUNT, "cell kv[0] has a bad kind");
    FAULT(cells.at[0].keep, 4, "cell kv[0] has a bad kind");
    FAULT(cells.at[0].layout, CELL_RING + 1, "cell kv[0] has a bad kind");
    FAULT(nodes.at[1].op, OP_COUNT, "node 1 (no such op): no such op");
    FAULT(nodes.at[1].layer, -2, "bad layer");
    FAULT(nodes.at[1].map, -1, "map or chain is out of range");
    FAULT(nodes.at[1].chain, INT32_MAX, "map or chain is out of range");
    FAULT(nodes.at[1].recompute, true, "it is recomputed for no chain");
    FAULT(nodes.at[1].n_in, OP_OPERANDS_MAX + 1, "bad number of operands");
    FAULT(nodes.at[1].n_in, 3, "node 1 (rms_norm): 3 operands, but it takes 2");
    FAULT(nodes.at[2].n_in, 1, "node 2 (linear): 1 operands, but operand 1 is required");
    FAULT(nodes.at[2].in[0].kind, REF_NONE, "operand 0 is missing");
    FAULT(nodes.at[2].in[0].id, 2, "operand 0 is %2, which is not defined before it");
    FAULT(nodes.at[2].in[0].id, 4000, "operand 0 refers to nothing");
    FAULT(nodes.at[2].in[0].id, -1, "operand 0 refers to nothing");
    FAULT(nodes.at[2].in[1].id, 100, "operand 1 refers to nothing");
    FAULT(nodes.at[2].in[1], NUMBER(1), "operand 1 is not a stored weight or float tensor");
    FAULT(nodes.at[2].in[0], REF(INPUT, 0), "operand 0 is not a float tensor");
    FAULT(nodes.at[3].in[1], NUMBER(1.5), "operand 1 is not an integer");
    FAULT(nodes.at[4].in[1], REF(VALUE, 1), "operand 1 is not an i32 tensor");
    FAULT(nodes.at[4].in[2], REF(VALUE, 1), "operand 2 is not a rope table");
    FAULT(nodes.at[11].in[1], REF(VALUE, 1), "operand 1 is not a state cell");
    FAULT(nodes.at[11].in[1], REF(CELL, 0), "operand 1 is not the newest version of kv[0]");
    FAULT(nodes.at[1].attr[0].kind, GATTR_NONE, "attribute eps is required");
    FAULT(nodes.at[1].attr[0].kind, GATTR_INT, "attribute eps is of the wrong type");
    FAULT(nodes.at[1].attr[1].kind, GATTR_INT, "it has 1 attributes, but number 1 is set");
    FAULT(nodes.at[1].attr[0].number, -1e-5, "attribute eps must be a finite number from 0");
    FAULT(nodes.at[1].attr[0].number, NAN, "attribute eps must be a finite number from 0");
    FAULT(nodes.at[4].attr[0].word, STR("thirds"), "attribute pairs cannot be thirds");
    FAULT(nodes.at[1].first, 0, "%0 belongs to node 0");
    FAULT(nodes.at[1].first, 4000, "its results are not in the table of values");
    FAULT(nodes.at[1].n_out, 0, "its results are not in the table of values");
    FAULT(values.at[1].type.rank, 7, "%1 has a bad type");
    FAULT(values.at[1].type.pairs, 3, "%1 has a bad type");
    FAULT(values.at[10].type.cell, 2, "%10 has a bad type");
    FAULT(values.n, g->values.n - 1, "its results are not in the table of values");
    FAULT(outputs.at[0].value, -1, "output resid is not a tensor of the graph");
    FAULT(outputs.at[0].value, 10, "output resid is not a tensor of the graph");
    graph_destroy(g);
}
END_TEST

/* One line of text for each rule: f is its result, which is wrong. */
static const struct {
    const char *text, *part;
} shapes[] = {
    {"%0: f[T, 9] = neg(x)", "does not follow"},
    {"%0: i32[T, 8] = neg(x)", "does not follow"},
    {"%0: f[T, 8] = add(x, y)", "differ in shape"},
    {"%0: f[T, 8] = add(1, 2)", "none of its operands is a tensor"},
    {"%0: f[T, 8], %1: f[T, 8] = neg(x)", "another number of results"},
    {"%0: f[T, 8] = embed(@v, ids)", "not [V, d]"},
    {"%0: f[T, 3] = embed(@m, ids)", "does not follow"},
    {"%0: f[T, 4] = linear(y, @m)", "last dimension"},
    {"%0: f[T, 4] = linear(x, @m, @v)", "bias does not fit"},
    {"%0: f[T, 8] = linear(x, @m)", "does not follow"},
    {"%0: f[T, 2, 4] = head_linear(x, @e)", "do not take [T, H, n]"},
    {"%0: f[T, 2, 4] = experts(y, @e, ks)", "do not take [T, n]"},
    {"%0: f[T, 2, 4] = experts(x, @e, ids)", "ids are not [T, K]"},
    {"%0: f[T, 8] = combine(x, y)", "not [T, K, d] and [T, K]"},
    {"%0: i32[T, 9], %1: f[T, 9] = route(x, k = 9)", "cannot choose k"},
    {"%0: i32[T, 2], %1: f[T, 2] = route(x, k = 2, select_bias = @w)", "select_bias is not [E]"},
    {"%0: f[T, 2], %1: f[T, 2] = route(x, k = 2)", "does not follow"},
    {"%0: f[T, 4] = delta(@m, y)", "site does not take"},
    {"%0: f[T, 8] = rms_norm(x, @w, eps = 1e-5)", "weight does not fit"},
    {"%0: f[T, 8] = rope(x, ids, #0, pairs = half)", "not [T, H, D] and [T]"},
    {"%0: f[T, 2, 4] = rope(h, ids, #1, pairs = half)", "more pairs than a head"},
    {"%0: f[R, 8] = take_rows(x, ks)", "not [T, ..] and [R]"},
    {"%0: f[T, 8] = pool(h, kind = mean)", "not [T, d]"},
    {"%0: f[T, 3, 3] = to_heads(x, 3)", "cut into heads"},
    {"%0: f[T, 2, 4] = to_heads(x, 4)", "cut into heads"},
    {"%0: f[T, 8] = from_heads(x)", "not [.., H, D]"},
    {"%0: f[T, 3], %1: f[T, 4] = split(x)", "do not make up"},
    {"%0: f[T, 3], %1: f[R, 5] = split(x)", "not parts"},
    {"%0: f[T, 3], %1: f[T, 5] = split(x, 5, 3)", "not parts"},
    {"%0: f[T, 11] = concat(x, h)", "differ in shape"},
    {"%0: $kv = append($kv, x, x)", "rows do not fit the cell"},
    {"%0: $lat = append($lat, x, x)", "rows do not fit the cell"},
    {"%0: f[T, 2, 4] = attend($kv, h, scale = 1)", "not a float tensor"},
    {"%0: f[T, 2, 4] = attend(h, $conv, scale = 1)", "cannot read this kind"},
    {"%0: f[T, 2, 4] = attend(h, $lat, scale = 1)", "queries do not fit"},
    {"%0: f[T, 2, 4] = attend(h, $kv, scale = 1, sinks = @v)", "sinks and slopes"},
    {"%0: f[T, 2, 4] = attend(h, $kv, scale = 1)", "does not follow"},
    {"%0: f[T, 2, 4] = attend_all(h, h, x, scale = 1)", "do not fit together"},
    {"%0: f[T, 8] = conv1d(x, @w2, _, $conv)", "not [T, c] and [c, k]"},
};

/* Marks: numbers, maps of one shape, chains with a contraction, nobody waiting for himself. */
static const struct {
    const char *text, *part;
} marks[] = {
    {"%0: f[T, 8] = softmax(x) map 1", "not element-wise"},
    {"%0: f[T, 8] = neg(x) map 1 %1: f[T, 5] = neg(y) map 1", "another shape"},
    {"%0: f[T, 8] = neg(x) chain 1", "its chain has no contraction"},
    {"%0: f[T, 8] = neg(x) recompute 1", "its chain has no contraction"},
    {"%0: f[T, 4] = linear(x, @m) chain 1 %1: f[T, 4] = neg(%0) map 1 chain 1\n"
     "%2: f[T, 4] = neg(%1) map 1",
     "in another chain than the rest"},
    {"%0: f[T, 4] = linear(x, @m) chain 1 %1: f[T, 8] = neg(x) map 1 recompute 1\n"
     "%2: f[T, 8] = neg(x) map 1 chain 1",
     "in another chain than the rest"},
    {"%0: f[T, 8] = neg(x) map 1 %1: f[T, 8] = softmax(%0) %2: f[T, 8] = neg(%1) map 1",
     "waits for itself"},
    {"%0: f[T, 4] = linear(x, @m) chain 1 %1: f[T, 4] = softmax(%0)\n"
     "%2: f[T, 4] = neg(%1) chain 1",
     "waits for itself"},
    {"%0: f[T, 8] = neg(x) map 1 %1: f[T, 8] = exp(x) map 2\n"
     "%2: f[T, 8] = add(x, %1) map 1 %3: f[T, 8] = add(x, %0) map 2",
     "waits for itself"},
};

static const char tables[] =
    "graph t entry e\n"
    "input x: f[T, 8] input y: f[T, 5] input h: f[T, 2, 4] input ids: i32[T] input ks: i32[R, 2]\n"
    "const #0: table[2] factor 1 = [1, 0.1] const #1: table[3] factor 1 = [1, 0.1, 0.01]\n"
    "weight @m: F32[4, 8] in 0 weight @v: F32[8] in 0 weight @w: F32[5] in 0\n"
    "weight @e: F32[3, 4, 8] in 0 weight @w2: F32[5, 2] in 0\n"
    "cell $kv: kv_cache(heads = 2, k = 4, v = 3) cell $lat: latent_cache(dim = 8, v = 6)\n"
    "cell $conv: shift_state(width = 3, dim = 8)\n";

/* Reading it must fail with this, at the place of a node. */
static void expect_refused(const char *line, const char *part)
{
    arena *a = arena_create();
    weft_diag *dg = diag_create();
    graph *g = graph_from(dg, a, arena_printf(a, "%s%s\n", tables, line));
    ck_assert_msg(!g, "accepted: %s", line);
    if (!strstr(diag_at(dg, 0).message.p, part))
        ck_abort_msg("%s: '%s'", line, diag_at(dg, 0).message.p);
    ck_assert_uint_ge(source_find(diag_at(dg, 0).loc.src, diag_at(dg, 0).loc.begin).line, 8);
    diag_destroy(dg);
    arena_destroy(a);
}

START_TEST(results_follow_from_operands)
{
    for (size_t i = 0; i < COUNT_OF(shapes); i++)
        expect_refused(shapes[i].text, shapes[i].part);
}
END_TEST

START_TEST(marks_make_sense)
{
    for (size_t i = 0; i < COUNT_OF(marks); i++)
        expect_refused(marks[i].text, marks[i].part);
}
END_TEST

START_TEST(every_rule_has_a_legal_form)
{
    static const char *const good[] = {
        "%0: f[T, 8] = neg(x)",
        "%0: f[T, 8] = add(x, @v)",
        "%0: f[T, 8] = select(x, 1, y8)",
        "%0: f[T, 8] = div(x, 2)",
        "%0: f[T, 8] = embed(@m, ids)",
        "%0: f[T, 4] = linear(x, @m, @b)",
        "%0: f[T, 8] = rms_norm(x, @v, eps = 1e-5)",
        "%0: f[T, 8] = rms_norm(x, eps = 1e-5)",
        "%0: f[T, 2, 4] = rope(h, ids, #0, pairs = half)",
        "%0: f[T, 2, 4] = to_heads(x)",
        "%0: f[T, 8] = from_heads(h)",
        "%0: f[T, 3], %1: f[T, 5] = split(x, 3, 5)",
        "%0: f[T, 13] = concat(x, y)",
        "%0: $lat = append($lat, x) %1: f[T, 2, 6] = attend(h8, %0, scale = 1)",
        "%0: f[R, 8] = take_rows(x, rs)",
        "%0: f[T, 4] = lora(x, @m)",
        "%0: f[T, 4] = delta(@m, x)",
        "%0: i32[T, 2], %1: f[T, 2] = route(x, k = 2, renorm = true, select_bias = @v)",
        "%0: f[T, 2, 4] = experts(x, @e, ts) %1: f[T, 4] = combine(%0, x2)",
        "%0: f[T, 2, 4] = head_linear(h8, @e2)",
        "%0: f[T] = at_pos(@v, ids) %1: f[T, 2, 4] = mul(h, %0)",
        "%0: f[T, 2, 4] = attend_all(h, h, h, scale = 1, spread = causal)",
        "%0: f[S, 8] = pool(x, kind = last)",
        "%0: f[T, 8] = neg(x) map 7 recompute 2 %1: f[T, 4] = linear(%0, @m) chain 2 "
        "%2: f[T, 4] = exp(%1) map 1 chain 2",
        "%0: f[T, 8] = conv1d(x, @c, _, $conv)",
        "%0: f[T, 2, 4] = ssm_scan(h, x2, @v, h, h, $mat)",
        "%0: f[T, 2, 4] = delta_rule(h, h, h, x2, x2, $mat)",
    };
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        arena *a = arena_create();
        weft_diag *dg = diag_create();
        str text = arena_printf(
            a,
            "%sinput y8: f[1, 8] input h8: f[T, 2, 8] input rs: i32[R] input ts: i32[T, 2]\n"
            "input x2: f[T, 2] weight @b: F32[4] in 0 weight @c: F32[8, 3] in 0\n"
            "weight @e2: F32[2, 4, 8] in 0\n"
            "cell $mat: matrix_state(heads = 2, rows = 4, cols = 4)\n%s\n",
            tables, good[i]);
        graph *g = graph_from(dg, a, text);
        if (!g)
            ck_abort_msg("%s: %s", good[i], diag_at(dg, 0).message.p);
        graph_destroy(g);
        diag_destroy(dg);
        arena_destroy(a);
    }
}
END_TEST

SUITE_MAIN("graph_verify", samples_are_legal, faults_of_tables_and_nodes,
           results_follow_from_operands, marks_make_sense, every_rule_has_a_legal_form)
