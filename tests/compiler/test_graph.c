/* test_graph.c - the suite of compiler/graph.c and graph_equal.c. */
#include "tests/compiler/graph_samples.h"

START_TEST(nodes_number_their_values)
{
    graph *g = graph_create();
    gtype row = F(GRAPH_T, 8), parts[2] = {F(GRAPH_T, 3), F(GRAPH_T, 5)};
    int in = add_input(g, "h", row, false);
    ck_assert_int_eq(OP_ADD(g, neg, -1, row, REF(INPUT, in)), 0);
    gnode split = {.op = OP_split, .layer = 2, .n_in = 1, .in = {REF(VALUE, 0)}};
    ck_assert_int_eq(graph_add(g, &split, parts, 2), 1);
    ck_assert_int_eq(OP_ADD(g, neg, -1, parts[1], REF(VALUE, 2)), 3);
    ck_assert_uint_eq(g->values.n, 4);
    ck_assert_int_eq(g->values.at[2].node, 1);
    ck_assert_int_eq(g->nodes.at[1].first, 1);
    ck_assert_int_eq(g->nodes.at[1].n_out, 2);
    ck_assert(graph_verify(g, NULL));
    graph_destroy(g);
}
END_TEST

START_TEST(types_of_operands)
{
    graph *g = sample_llama(1, false);
    const gtype *t = graph_type(g, REF(WEIGHT, 0));
    ck_assert_int_eq(t->rank, 2);
    ck_assert_int_eq(t->dim[0], 16);
    ck_assert_int_eq(t->cell, -1);
    ck_assert_int_eq(graph_type(g, REF(CONST, 0))->dim[0], 2);
    ck_assert_int_eq(graph_type(g, REF(CELL, 0))->cell, 0);
    ck_assert(graph_type(g, REF(INPUT, 0))->ids);
    ck_assert_int_eq(graph_type(g, REF(VALUE, 0))->dim[0], GRAPH_T);
    ck_assert_ptr_null(graph_type(g, NUMBER(2)));
    ck_assert_ptr_null(graph_type(g, REF(NONE, 0)));
    ck_assert_ptr_null(graph_type(g, REF(VALUE, 999)));
    ck_assert_ptr_null(graph_type(g, REF(WEIGHT, -1)));
    graph_destroy(g);
    graph_destroy(NULL);
}
END_TEST

START_TEST(words_are_copied)
{
    graph *g = graph_create();
    int in = add_input(g, "h", F(GRAPH_T, 8), false);
    char word[] = "tanh";
    gnode n = {.op = OP_gelu, .layer = -1, .n_in = 1, .in = {REF(INPUT, in)}};
    n.attr[0] = (gattr){.kind = GATTR_WORD, .word = {word, 4}};
    gtype t = F(GRAPH_T, 8);
    graph_add(g, &n, &t, 1);
    word[0] = 'x';
    ck_assert(str_eqz(g->nodes.at[0].attr[0].word, "tanh"));
    graph_destroy(g);
}
END_TEST

/* Each change to one of two equal graphs is seen. */
START_TEST(equal_sees_every_field)
{
    graph *a = sample_llama(2, false), *b = sample_llama(2, false);
    ck_assert(graph_equal(a, b));
#define SEEN(field, other)                                                                         \
    do {                                                                                           \
        __typeof__(b->field) kept = b->field;                                                      \
        b->field = (other);                                                                        \
        ck_assert_msg(!graph_equal(a, b) && !graph_equal(b, a), "%s", #field);                     \
        b->field = kept;                                                                           \
        ck_assert(graph_equal(a, b));                                                              \
    } while (0)
    static const double data[] = {1.0, 0.2};
    static const gpiece piece = {.tensor = 1, .rows = 8};
    SEEN(model, STR("other"));
    SEEN(entry, STR("other"));
    SEEN(nodes.n, 3);
    SEEN(nodes.at[3].op, OP_neg);
    SEEN(nodes.at[3].layer, 1);
    SEEN(nodes.at[3].map, 1);
    SEEN(nodes.at[3].chain, 1);
    SEEN(nodes.at[3].recompute, true);
    SEEN(nodes.at[3].in[0].id, 0);
    SEEN(nodes.at[3].in[1].kind, REF_NONE);
    SEEN(nodes.at[3].in[1].number, 3.0);
    SEEN(nodes.at[1].attr[0].number, 1e-6);
    SEEN(nodes.at[1].attr[0].kind, GATTR_NONE);
    SEEN(nodes.at[4].attr[0].word, STR("interleaved"));
    SEEN(values.at[2].type.pairs, 1);
    SEEN(values.at[2].type.dim[1], 7);
    SEEN(weights.at[1].name, STR("x"));
    SEEN(weights.at[1].line, STR("x"));
    SEEN(weights.at[1].type, DT_F16);
    SEEN(weights.at[1].dim[0], 9);
    SEEN(weights.at[1].stride[0], 9);
    SEEN(weights.at[1].lora, true);
    SEEN(weights.at[2].piece, &piece);
    SEEN(weights.at[2].scales, &piece);
    SEEN(weights.at[2].n_piece, 0);
    SEEN(consts.at[0].data, data);
    SEEN(consts.at[0].factor, 2);
    SEEN(consts.at[0].table, false);
    SEEN(cells.at[1].window, 5);
    SEEN(cells.at[1].arg[2], 5);
    SEEN(cells.at[1].layout, CELL_PAGED);
    SEEN(cells.at[1].keep, 5);
    SEEN(inputs.at[1].type.ids, false);
    SEEN(outputs.at[0].value, 3);
    SEEN(outputs.at[0].index, 3);
    /* Operands that are absent need not be counted. */
    b->nodes.at[2].n_in = 2;
    ck_assert(graph_equal(a, b));
    graph_destroy(a);
    graph_destroy(b);
}
END_TEST

START_TEST(places_are_equal_by_line_and_column)
{
    arena *m = arena_create();
    graph *a = sample_llama(1, false), *b = sample_llama(1, false);
    const source *one = source_from_text(m, "m.weft", STR("ab\ncd"));
    const source *two = source_from_text(m, "m.weft", STR("\xC3\xA9\xC3\xA9 longer\ncd"));
    const source *other = source_from_text(m, "n.weft", STR("ab\ncd"));
    a->nodes.at[1].loc = (weft_loc){one, 4, 5};
    b->nodes.at[1].loc = (weft_loc){two, 13, 13};
    ck_assert(graph_equal(a, b)); /* line 2, column 2 */
    b->nodes.at[1].loc = (weft_loc){two, 12, 13};
    ck_assert(!graph_equal(a, b));
    b->nodes.at[1].loc = (weft_loc){other, 4, 5};
    ck_assert(!graph_equal(a, b));
    b->nodes.at[1].loc = WEFT_NOWHERE;
    ck_assert(!graph_equal(a, b));
    graph_destroy(a);
    graph_destroy(b);
    arena_destroy(m);
}
END_TEST

SUITE_MAIN("graph", nodes_number_their_values, types_of_operands, words_are_copied,
           equal_sees_every_field, places_are_equal_by_line_and_column)
