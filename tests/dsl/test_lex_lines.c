/* test_lex_lines.c - tokens, and which line breaks end a statement. */
#include "dsl/dsl.h"
#include "dsl/parse.h"
#include "parser.tab.h"
#include "tests/base/suite.h"

/* The tokens of a text as one line: names and signs as written, `;` for an end of line, `.` for the
 * end of the text. */
static void expect_tokens(const char *text, const char *want)
{
    arena *a = arena_create();
    weft_diag *dg = diag_create();
    parse_state *ps = ARENA_NEW(a, parse_state);
    strbuf got = {0};
    *ps = (parse_state){.dg = dg, .a = a, .src = source_from_text(a, "t.weft", str_of(text))};
    lex_begin(ps);
    for (;;) {
        PARSE_STYPE value;
        parse_range at;
        int token = parse_lex(&value, &at, ps);
        strbuf_add(&got, got.n ? " " : "");
        if (token == END)
            break;
        if (token == EOL)
            strbuf_putc(&got, ';');
        else
            strbuf_put(&got, parse_text(ps, at));
    }
    strbuf_putc(&got, '.');
    lex_end(ps);
    ck_assert_str_eq(got.p, want);
    strbuf_free(&got);
    diag_destroy(dg);
    arena_destroy(a);
}

START_TEST(tokens)
{
    expect_tokens("", ".");
    expect_tokens("a", "a ; .");
    expect_tokens("a->b=>c??d..e||f&&g==h!=i<=j>=k",
                  "a -> b => c ?? d .. e || f && g == h != i <= j "
                  ">= k ; .");
    expect_tokens("1 0.5 1e-6 2.0e3 1.x", "1 0.5 1e-6 2.0e3 1 . x ; .");
    expect_tokens("\"a \\\" b\" # \"c\n", "\"a \\\" b\" ; .");
    expect_tokens("weft weft1 _if if_", "weft weft1 _if if_ ; .");
}
END_TEST

START_TEST(a_break_ends_a_statement)
{
    expect_tokens("a = b\nc = d\n", "a = b ; c = d ; .");
    expect_tokens("\n\n  a\n\n\n  b\n\n", "a ; b ; .");
    expect_tokens("f(a)\nl[1]\n\"s\"\ntrue\nnone\nx ?\nrepeat",
                  "f ( a ) ; l [ 1 ] \"s\" true none ; "
                  "x ? ; repeat ; .");
    expect_tokens("a # comment\nb", "a ; b ; .");
    expect_tokens("a\r\nb\r\n", "a ; b ; .");
}
END_TEST

START_TEST(a_break_after_what_cannot_end_one_is_none)
{
    expect_tokens("a =\nb", "a = b ; .");
    expect_tokens("a +\n b *\n c", "a + b * c ; .");
    expect_tokens("a,\nb = c", "a , b = c ; .");
    expect_tokens("import\nstd", "import std ; .");
}
END_TEST

START_TEST(a_line_that_cannot_begin_one_goes_on)
{
    expect_tokens("d : int\n  gguf \"d\"\n  hf \"d\"\n  ?? 4",
                  "d : int gguf \"d\" hf \"d\" ?? 4 ; .");
    expect_tokens("a\n| b\n=> c\n? d\n: e\nwhen f\n+ g\n. h\n) i",
                  "a | b => c ? d : e when f + g . h ) "
                  "i ; .");
    expect_tokens("}\nelse {", "} else { .");
    expect_tokens("a\n(b)", "a ( b ) ; .");
}
END_TEST

START_TEST(inside_brackets_there_are_no_ends)
{
    expect_tokens("f(\na\n,\nb\n)\nc", "f ( a , b ) ; c ; .");
    expect_tokens("[\n1,\n2\n]", "[ 1 , 2 ] ; .");
    expect_tokens("f([(\na\nb\n)])", "f ( [ ( a b ) ] ) ; .");
    /* a brace opens lines of its own */
    expect_tokens("f(\n{\na\nb\n}", "f ( { a ; b ; } ; .");
}
END_TEST

START_TEST(a_brace_ends_what_stands_before_it)
{
    expect_tokens("{ a = b }", "{ a = b ; } ; .");
    expect_tokens("{ a\nb }\nc", "{ a ; b ; } ; c ; .");
    expect_tokens("{ }", "{ } ; .");
    expect_tokens("{ a + }", "{ a + ; } ; .");
}
END_TEST

START_TEST(a_word_that_begins_a_statement_closes_brackets)
{
    expect_tokens("x = (a\noutput b", "x = ( a ; output b ; .");
    expect_tokens("f([a\nreturn b", "f ( [ a ; return b ; .");
    expect_tokens("f(a\nb", "f ( a b ; .");
}
END_TEST

START_TEST(too_many_brackets)
{
    arena *a = arena_create();
    weft_diag *dg = diag_create();
    strbuf text = {0};
    ast *file;
    strbuf_add(&text, "weft 1\nblock b(x) { return ");
    strbuf_fill(&text, '(', 100000);
    source *src = source_from_text(a, "t.weft", strbuf_view(&text));
    ck_assert_int_ne(dsl_parse(dg, a, src, &file), WEFT_OK);
    expect_one(dg, W1102, "256");
    strbuf_free(&text);
    diag_destroy(dg);
    arena_destroy(a);
}
END_TEST

SUITE_MAIN("lex_lines", tokens, a_break_ends_a_statement, a_break_after_what_cannot_end_one_is_none,
           a_line_that_cannot_begin_one_goes_on, inside_brackets_there_are_no_ends,
           a_brace_ends_what_stands_before_it, a_word_that_begins_a_statement_closes_brackets,
           too_many_brackets)
