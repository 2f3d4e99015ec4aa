/* test_plan_order.c - graphs whose steps cannot stand in the order of their nodes, or whose chains would wait for
 * themselves through a cell, become plans that are proven safe. */
#include "compiler/plan_check.h"
#include "compiler/plan_make.h"
#include "tests/base/suite.h"

#define HEAD                                                                                       \
    "graph g entry decode\ninput tokens: i32[T]\ninput pos: i32[T]\ninput rows: i32[R]\n"          \
    "weight @tok: F32[40, 32] in 0\nweight @a: F32[32, 32] in 1\nweight @n: F32[32] in 2\n"

static void expect_plan(const char *text)
{
    arena *a = arena_create();
    weft_diag *dg = diag_create();
    graph *g = NULL;
    ck_assert_int_eq(graph_parse(dg, source_from_text(a, "g", str_of(text)), &g), WEFT_OK);
    for (int64_t n = 1; n <= 64; n *= 8) {
        target t = {
            .be = backend_cpu_find("c"), .n_ctx = 64, .n_seq = 1, .n_tok_max = n, .kv = DT_F32};
        plan *p;
        ck_assert_int_eq(plan_make(dg, g, &t, NULL, a, &p), WEFT_OK);
        ck_assert_int_eq(plan_check(dg, t.be, p), WEFT_OK);
    }
    graph_destroy(g);
    diag_destroy(dg);
    arena_destroy(a);
}

/* The cell is read before it is written, with queries from the chain that makes its keys. */
START_TEST(circle_through_cell)
{
    expect_plan(HEAD "cell $kv: kv_cache(heads = 4, k = 8, v = 8)\n"
                     "%0: f[T, 32] = embed(@tok, tokens)\n"
                     "%1: f[T, 32] = linear(%0, @a)\n"
                     "%2: f[T, 32] = silu(%1)\n"
                     "%3: f[T, 4, 8] = to_heads(%2, 4)\n"
                     "%4: f[T, 4, 8] = attend(%3, $kv, scale = 0.3)\n"
                     "%5: f[T, 4, 8] = to_heads(%1, 4)\n"
                     "%6: $kv = append($kv, %5, %5)\n"
                     "%7: f[T, 4, 8] = attend(%3, %6, scale = 0.3)\n"
                     "%8: f[T, 4, 8] = add(%4, %7)\n"
                     "%9: f[T, 32] = from_heads(%8)\n"
                     "%10: f[T, 40] = linear(%9, @tok)\noutput logits = %10\n");
}
END_TEST

/* %8 and %10 become one map; %9, which stands between, reads it. Many ways lead back from %30 to %0. */
START_TEST(map_behind_reader)
{
    strbuf text = {0};
    int v = 1;
    strbuf_add(&text,
               HEAD "%%0: f[T, 32] = embed(@tok, tokens)\n%%1: f[T, 32] = linear(%%0, @a)\n");
    for (int i = 0, z = 0; i < 60; i++, z = v) {
        strbuf_add(&text, "%%%d: f[T, 32] = softmax(%%%d)\n", v + 1, z);
        strbuf_add(&text, "%%%d: f[T, 32] = mul(%%%d, 0.5)\n", v + 2, z);
        strbuf_add(&text, "%%%d: f[T, 32] = softmax(%%%d)\n", v + 3, v + 2);
        strbuf_add(&text, "%%%d: f[T, 32] = add(%%%d, %%%d)\n", v + 4, v + 1, v + 3);
        strbuf_add(&text, "%%%d: f[T, 32] = rms_norm(%%%d, @n, eps = 1e-05)\n", v + 5, v + 4);
        strbuf_add(&text, "%%%d: f[T, 32] = add(%%%d, %%%d)\n", v + 6, v + 5, v + 1);
        v += 6;
    }
    strbuf_add(&text, "%%%d: f[T, 32] = mul(%%1, %%%d)\n", v + 1, v);
    strbuf_add(&text, "%%%d: f[T, 40] = linear(%%%d, @tok)\noutput logits = %%%d\n", v + 2, v + 1,
               v + 2);
    expect_plan(text.p);
    strbuf_free(&text);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {circle_through_cell, map_behind_reader};
    return suite_main("plan_order", tests, COUNT_OF(tests));
}
