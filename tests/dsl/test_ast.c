/* test_ast.c - equality of programs, and the tree as JSON. */
#include "dsl/dsl.h"
#include "tests/base/suite.h"

static bool same(const char *x, const char *y)
{
    arena *a = arena_create();
    weft_diag *dg = diag_create();
    ast *one, *two;
    ck_assert_int_eq(dsl_parse(dg, a, source_from_text(a, "x.weft", str_of(x)), &one), WEFT_OK);
    ck_assert_int_eq(dsl_parse(dg, a, source_from_text(a, "y.weft", str_of(y)), &two), WEFT_OK);
    bool equal = ast_equal(one, two);
    ck_assert_int_eq(ast_equal(two, one), equal);
    ck_assert(ast_equal(one, one) && ast_equal(two, two));
    diag_destroy(dg);
    arena_destroy(a);
    return equal;
}

START_TEST(layout_does_not_count)
{
    ck_assert(same("weft 1\nblock b(x) { return x + 1 }\n",
                   "# c\nweft 1\n\nblock b( x )\n{\n  return (x\n + 1)   # d\n}\n"));
    ck_assert(same("weft 1\nblock b(x) { return (x * 2) + 1 }\n",
                   "weft 1\nblock b(x) { return x * 2 + 1 }\n"));
}
END_TEST

START_TEST(everything_else_does)
{
    static const char *const texts[] = {
        "weft 1\nblock b(x) { return x + 1 }\n",
        "weft 1\nblock c(x) { return x + 1 }\n",
        "weft 1\nblock b(y) { return x + 1 }\n",
        "weft 1\nblock b(x) { return x - 1 }\n",
        "weft 1\nblock b(x) { return x + 2 }\n",
        "weft 1\nblock b(x) { return x + 1.0 }\n",
        "weft 1\nblock b(x) { return 1 + x }\n",
        "weft 1\nblock b(x) { return x }\n",
        "weft 1\nblock b(x) { return x, x }\n",
        "weft 1\nblock b(x) { return f(x) }\n",
        "weft 1\nblock b(x) { return f(x, a = 1) }\n",
        "weft 1\nblock b(x) { return f(x, b = 1) }\n",
        "weft 1\nblock b(x) { return f(x, 1) }\n",
        "weft 1\nblock b(x) { return true }\n",
        "weft 1\nblock b(x) { return false }\n",
        "weft 1\nblock b(x) { return none }\n",
        "weft 1\nblock b(x) { return \"x\" }\n",
        "weft 1\nblock b(x: int) { return x }\n",
        "weft 1\nblock b(x: int?) { return x }\n",
        "weft 1\nblock b(x = 1) { return x }\n",
        "weft 1\nblock b(x) { }\n",
        "weft 1\nfragment b(x) { }\n",
        "weft 1\n",
        "weft 1\nimport b\n",
        "weft 1\nimport b as c\n",
    };
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        for (size_t k = 0; k < COUNT_OF(texts); k++)
            ck_assert_msg(same(texts[i], texts[k]) == (i == k), "%zu and %zu", i, k);
}
END_TEST

START_TEST(json_tells_where)
{
    arena *a = arena_create();
    weft_diag *dg = diag_create();
    strbuf out = {0};
    ast *file;
    source *src = source_from_text(a, "x.weft", STR("weft 1\nblock b(x?) { return x }\n"));
    ck_assert_int_ne(dsl_parse(dg, a, src, &file), WEFT_OK);
    diag_reset(dg);
    src = source_from_text(a, "x.weft", STR("weft 1\nblock b(x: int?) { return !x }\n"));
    ck_assert_int_eq(dsl_parse(dg, a, src, &file), WEFT_OK);
    ast_json(file, &out);
    ck_assert_ptr_nonnull(
        strstr(out.p, "\"kind\":\"block\",\"name\":\"b\",\"line\":2,\"column\":1"));
    ck_assert_ptr_nonnull(strstr(out.p, "\"kind\":\"type\",\"name\":\"int\",\"optional\":true"));
    ck_assert_ptr_nonnull(strstr(out.p, "\"operand\":{\"kind\":\"name\",\"name\":\"x\""));
    ck_assert_ptr_nonnull(strstr(out.p, "\"default\":null"));
    strbuf_free(&out);
    diag_destroy(dg);
    arena_destroy(a);
}
END_TEST

START_TEST(every_kind_has_a_name)
{
    for (int k = 0; k < AST_KIND_COUNT; k++) {
        ck_assert_ptr_nonnull(ast_kind_name((ast_kind)k));
        for (int i = 0; i < k; i++)
            ck_assert_str_ne(ast_kind_name((ast_kind)k), ast_kind_name((ast_kind)i));
    }
}
END_TEST

SUITE_MAIN("ast", layout_does_not_count, everything_else_does, json_tells_where,
           every_kind_has_a_name)
