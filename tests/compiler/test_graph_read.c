/* test_graph_read.c - the suite of compiler/graph_read*.c and graph_scan.c: texts that are not graphs. */
#include "tests/compiler/graph_samples.h"

#define HEAD "graph t entry e "

static const struct {
    const char *text, *part;
} bad[] = {
    {"", "begins with `graph NAME entry NAME`"},
    {"digraph {}", "begins with"},
    {"graph", "expected a name"},
    {"graph t", "expected `entry`"},
    {"graph t entry", "expected a name"},
    {"graph \"t", "does not end on its line"},
    {"graph \"a\\q\" entry e", "the escapes in a string"},
    {HEAD "nonsense", "expected file, input"},
    {HEAD "\x01", "expected file, input"},
    {HEAD "input x", "the text ends where `:` is expected"},
    {HEAD "input x f", "expected `:` here"},
    {HEAD "input x: g[T]", "a type is f[..], i32[..] or a cell"},
    {HEAD "input x: f[T", "the text ends where `,` is expected"},
    {HEAD "input x: f[1, 2, 3, 4, 5, 6, 7]", "more than 6 dimensions"},
    {HEAD "input x: f[-1]", "is not in 0 .."},
    {HEAD "input x: f[99999999999999999999]", "is not in 0 .."},
    {HEAD "input x: f[T] input x: f[T]", "for the second time"},
    {HEAD "input x: $kv", "there is no cell kv"},
    {HEAD "const #1: f[0] = []", "#0 is next"},
    {HEAD "const #0: g[0] = []", "a constant is f[..] or table[..]"},
    {HEAD "const #0: f[2] = [1]", "1 numbers, but the constant has 2"},
    {HEAD "const #0: f[1] = [1e]", "expected a number"},
    {HEAD "const #0: f[1] = [0x10]", "expected `,`"},
    {HEAD "const #0: f[1] = [1,,]", "expected a number"},
    {HEAD "const #0: f[9] = [1, .. 2]", "shortened for people"},
    {HEAD "const #0: f[9223372036854775807] = []", "0 numbers"},
    {HEAD "weight w: F32[1]", "expected `@`"},
    {HEAD "weight @w: F99[1]", "there is no storage type F99"},
    {HEAD "weight @w: F32[T]", "expected an integer"},
    {HEAD "weight @w: F32[2] stride [1, 2]", "2 strides for 1 dimensions"},
    {HEAD "weight @w: F32[2] in x", "expected an integer"},
    {HEAD "weight @w: F32[2] in 3 and 7 more", "shortened for people"},
    {HEAD "weight @w: F32[2] in 3, 4 scales 5", "2 pieces, but scales for 1"},
    {HEAD "weight @w: F32[2] scales 5", "0 pieces, but scales for 1"},
    {HEAD "weight @w: F32[3] in 3, 4", "hold 2 of 3 rows"},
    {HEAD "weight @w: F32[3] in 3 rows 9223372036854775807, 4 rows 5", "piece 1 is bad"},
    {HEAD "weight @w: F32[2] = [1]", "do not fill this weight"},
    {HEAD "weight @w: F32[9223372036854775807, 9] = []", "do not fill this weight"},
    {HEAD "weight @w: F32[1] layer 65536", "is not in 0 .. 65535"},
    {HEAD "cell $c: heap(n = 1)", "there is no cell kind heap"},
    {HEAD "cell $c: kv_cache(k = 1)", "expected heads = .."},
    {HEAD "cell $c: kv_cache(heads = 1)", "expected `,`"},
    {HEAD "output y = %0", "%0 is not defined before it is used"},
    {HEAD "output y[1 = %0", "expected `]`"},
    {HEAD "input x: f[T] %0: f[T] = nag(x)", "there is no op nag"},
    {HEAD "input x: f[T] %0: f[T] = neg(%0)", "%0, which is not defined before"},
    {HEAD "input x: f[T] %0: f[T] = neg(y)", "there is no input y"},
    {HEAD "input x: f[T] %0: f[T] = neg(@y)", "there is no weight y"},
    {HEAD "input x: f[T] %0: f[T] = neg($y)", "there is no cell y"},
    {HEAD "input x: f[T] %0: f[T] = neg(#0)", "there is no constant #0"},
    {HEAD "input x: f[T] %0: f[T] = neg(x, eps = 1)", "neg has no attribute eps"},
    {HEAD "input x: f[T] %0: f[T] = gelu(x, form = erf, form = erf)",
     "form stands here for the second"},
    {HEAD "input x: f[T] %0: f[T] = gelu(form = erf, x)", "stands before the attributes"},
    {HEAD "input x: f[T] %0: f[T] = gelu(x, form = 3)", "expected a word"},
    {HEAD "input x: f[T] %0: f[T] = gelu(x, form = cubic)", "attribute form cannot be cubic"},
    {HEAD "input x: f[T] %0: f[T] = neg(x,x,x,x,x,x,x,x,x)", "more than 8 operands"},
    {HEAD "input x: f[T] %0: f[T] = neg(x,x)", "2 operands, but it takes 1"},
    {HEAD "input x: f[T] %0: f[T] = neg", "the text ends where `(`"},
    {HEAD "input x: f[T] %1: f[T] = neg(x)", "value %0 is never defined"},
    {HEAD "input x: f[T] %1048576: f[T] = neg(x)", "is not in 0 .. 1048575"},
    {HEAD "input x: f[T] %0: f[T] = neg(x) %0: f[T] = neg(x)", "%0 is defined twice"},
    {HEAD "input x: f[T] %0: f[T], %2: f[T] = split(x)", "%1 is next"},
    {HEAD "input x: f[T] %0: f[T] = neg(x) loc(a:1:1)", "there is no file a"},
    {HEAD "file a \"b\" file a \"c\"", "two files are called a"},
    {HEAD "file a \"b\\x00\"", "holds a NUL"},
    {HEAD "file a \"b\" input x: f[T] %0: f[T] = neg(x) loc(a:0:1)", "is not in 1 .."},
    {HEAD "file a \"b\" input x: f[T] %0: f[T] = neg(x) loc(a:1)", "expected `:`"},
    {HEAD "file a \"b\" input x: f[T] %0: f[T] = neg(x) loc(a:4194304:9)", "reach too far"},
    {HEAD "file a \"b\" file c \"d\" input x: f[T] %0: f[T] = neg(x) loc(a:1:4194304) layer 1\n"
          "%1: f[T] = neg(x) loc(c:2:3)",
     "reach too far"},
    {HEAD "layers 1..3 as layer 0", "folded text leaves layers out"},
};

START_TEST(bad_texts)
{
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        arena *a = arena_create();
        weft_diag *dg = diag_create();
        graph *g = graph_from(dg, a, str_of(bad[i].text));
        ck_assert_msg(!g, "accepted: %s", bad[i].text);
        if (diag_at(dg, 0).code != W1502 || !strstr(diag_at(dg, 0).message.p, bad[i].part))
            ck_abort_msg("%s: %s", bad[i].text, diag_at(dg, 0).message.p);
        ck_assert_ptr_nonnull(diag_at(dg, 0).loc.src);
        diag_destroy(dg);
        arena_destroy(a);
    }
}
END_TEST

START_TEST(layout_is_free)
{
    arena *a = arena_create();
    weft_diag *dg = diag_create();
    graph *g =
        graph_from(dg, a,
                   STR("; a comment\ngraph\tt\r\nentry e;no blank\ninput x:f[T,4]input y"
                       ":f [ T , 4 ]%0:f[T,4]=add(x,y)%1 : f[T, 4] =\n\nmul ( %0 , -2.5e0 )\n"
                       "output z=%1 ; the end"));
    if (!g)
        ck_abort_msg("%s", diag_at(dg, 0).message.p);
    ck_assert_uint_eq(g->nodes.n, 2);
    ck_assert(g->nodes.at[1].in[1].number == -2.5);
    graph_destroy(g);
    diag_destroy(dg);
    arena_destroy(a);
}
END_TEST

static void read_anything(str text)
{
    arena *a = arena_create();
    weft_diag *dg = diag_create();
    graph_destroy(graph_from(dg, a, text));
    diag_destroy(dg);
    arena_destroy(a);
}

static void sample_text(strbuf *out)
{
    graph *g = sample_llama(1, true);
    graph_print(g, false, out);
    graph_destroy(g);
    for (uint64_t seed = 0; seed < 4; seed++) {
        g = sample_random(seed);
        strbuf_putc(out, '\0');
        graph_print(g, false, out);
        graph_destroy(g);
    }
}

/* The end is cut off at every byte, of a copy that ends there. */
START_TEST(truncated_texts)
{
    strbuf all = {0};
    sample_text(&all);
    for (const char *p = all.p; p < all.p + all.n; p += strlen(p) + 1)
        for (size_t n = 0; n < strlen(p); n++)
            read_anything((str){p, n});
    strbuf_free(&all);
}
END_TEST

START_TEST(damaged_texts)
{
    static const char odd[] = "%@#$_[](),:;=\"\\ \n0129-.+axfTRS\xff";
    dice d = {77};
    strbuf all = {0};
    sample_text(&all);
    for (int turn = 0; turn < 1500; turn++) {
        const char *p = all.p;
        for (uint64_t skip = roll(&d, 5); skip > 0; skip--)
            p += strlen(p) + 1;
        strbuf text = {0};
        strbuf_put(&text, str_of(p));
        for (uint64_t hit = roll(&d, 3) + 1; hit > 0; hit--) {
            size_t at = (size_t)roll(&d, text.n), from = (size_t)roll(&d, text.n);
            size_t most = text.n - (at > from ? at : from);
            if (roll(&d, 3) > 0)
                text.p[at] = odd[roll(&d, sizeof odd)];
            else
                memmove(text.p + at, text.p + from, (size_t)roll(&d, most / 2 + 1));
        }
        read_anything(strbuf_view(&text));
        strbuf_free(&text);
    }
    strbuf_free(&all);
}
END_TEST

SUITE_MAIN("graph_read", bad_texts, layout_is_free, truncated_texts, damaged_texts)
