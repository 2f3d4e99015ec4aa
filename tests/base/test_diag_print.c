/* test_diag_print.c - the suite of runtime/base/diag_print.c. */
#include "tests/base/suite.h"

static arena *mem;
static weft_diag *dg;

static void start(void)
{
    mem = arena_create();
    dg = diag_create();
}

static void expect_text(const char *want)
{
    char *got = printed(dg, false);
    ck_assert_str_eq(got, want);
    free(got);
    diag_destroy(dg);
    arena_destroy(mem);
}

/* The range of `part` within the text of s. */
static weft_loc loc_of(const source *s, const char *part)
{
    const char *p = memmem(s->text.p, s->text.n, part, strlen(part));
    ck_assert_ptr_nonnull(p);
    uint32_t begin = (uint32_t)(p - s->text.p);
    return (weft_loc){s, begin, begin + (uint32_t)strlen(part)};
}

START_TEST(prints_the_line_and_the_notes)
{
    start();
    strbuf text = {0};
    for (int i = 1; i < 60; i++)
        strbuf_putc(&text, '\n');
    strbuf_put(&text, STR("      x = x + o_proj(a)\n"));
    source *s = source_from_text(mem, "llama.weft", strbuf_view(&text));
    strbuf_free(&text);
    weft_fail(dg, W0302, loc_of(s, "o_proj(a)"),
              "o_proj expects a last dimension of heads*head_dim, but its operand is "
              "[T, heads, head_dim]");
    weft_note(dg, "attend returns one row per head; from_heads(a) joins them");
    expect_text("llama.weft:60:15: error[W0302]: o_proj expects a last dimension of "
                "heads*head_dim, but its operand is [T, heads, head_dim]\n"
                "   60 |       x = x + o_proj(a)\n"
                "      |               ^~~~~~~~~\n"
                "      = note: attend returns one row per head; from_heads(a) joins them\n");
}
END_TEST

START_TEST(prints_without_a_place)
{
    start();
    weft_fail(dg, W1001, WEFT_NOWHERE, "cannot open x");
    weft_fail(dg, W1901, WEFT_NOWHERE, "unknown verb ckeck"); /* its row has a hint */
    weft_fail(dg, W0410, (weft_loc){source_from_text(mem, "empty.weft", STR("")), 0, 0}, "m");
    expect_text("weft: error[W1001]: cannot open x\n"
                "weft: error[W1901]: unknown verb ckeck\n"
                "      = note: `weft help` lists the verbs\n"
                "empty.weft: warning[W0410]: m\n");
}
END_TEST

START_TEST(notes_replace_the_hint)
{
    start();
    weft_fail(dg, W1901, WEFT_NOWHERE, "unknown verb ckeck");
    weft_note(dg, "did you mean check");
    expect_text("weft: error[W1901]: unknown verb ckeck\n"
                "      = note: did you mean check\n");
}
END_TEST

START_TEST(notes_quote_other_lines)
{
    start();
    source *s = source_from_text(mem, "m.weft", STR("linear k_proj\nx = k_prj(h)\n"));
    weft_fail(dg, W0201, loc_of(s, "k_prj"), "unknown name k_prj");
    weft_note_at(dg, loc_of(s, "k_proj"), "k_proj is declared here");
    weft_note_at(dg, loc_of(s, "(h)"), "called here");
    expect_text("m.weft:2:5: error[W0201]: unknown name k_prj\n"
                "    2 | x = k_prj(h)\n"
                "      |     ^~~~~\n"
                "      = note: k_proj is declared here: m.weft:1:8\n"
                "    1 | linear k_proj\n"
                "      |        ^~~~~~\n"
                "      = note: called here: m.weft:2:10\n");
}
END_TEST

START_TEST(carets_align_in_cells)
{
    start();
    source *s = source_from_text(mem, "w",
                                 STR("\tk = bad1\n"
                                     "ab\tbad2\n"
                                     "\xE6\xBC\xA2\xE5\xAD\x97 = \xF0\x9F\x98\x80 bad3\n"
                                     "e\xCC\x81 = bad4\n"
                                     "x = \xE6\xBC\xA2\xE5\xAD\x97\n"));
    weft_fail(dg, W0201, loc_of(s, "bad1"), "tab");
    weft_fail(dg, W0201, loc_of(s, "bad2"), "tab within");
    weft_fail(dg, W0201, loc_of(s, "bad3"), "wide");
    weft_fail(dg, W0201, loc_of(s, "bad4"), "combining");
    weft_fail(dg, W0201, (weft_loc){s, loc_of(s, "x = ").begin + 4, loc_of(s, "x = ").begin + 10},
              "wide below");
    expect_text("w:1:6: error[W0201]: tab\n"
                "    1 |     k = bad1\n"
                "      |         ^~~~\n"
                "w:2:4: error[W0201]: tab within\n"
                "    2 | ab  bad2\n"
                "      |     ^~~~\n"
                "w:3:8: error[W0201]: wide\n"
                "    3 | \xE6\xBC\xA2\xE5\xAD\x97 = \xF0\x9F\x98\x80 bad3\n"
                "      |           ^~~~\n"
                "w:4:6: error[W0201]: combining\n"
                "    4 | e\xCC\x81 = bad4\n"
                "      |     ^~~~\n"
                "w:5:5: error[W0201]: wide below\n"
                "    5 | x = \xE6\xBC\xA2\xE5\xAD\x97\n"
                "      |     ^~~~\n");
}
END_TEST

START_TEST(no_control_reaches_the_terminal)
{
    start();
    source *s = source_from_text(mem, "evil\x1b[2J.weft",
                                 STR("a \x1b[31m\x07 \xff\xC2\x9b\xE2\x80\xAE\0 bad\r\n"));
    uint32_t at = (uint32_t)s->text.n - 5;
    weft_fail(dg, W0001, (weft_loc){s, at, at + 3}, "odd \x1b]0;name\x07 %s", "two\nlines");
    weft_note(dg, "see \x1b[0m");
    expect_text("evil\\x1b[2J.weft:1:15: error[W0001]: odd \\x1b]0;name\\x07 two\\x0alines\n"
                "    1 | a \\x1b[31m\\x07 \\xff\\xc2\\x9b\\xe2\\x80\\xae\\x00 bad\n"
                "      |                                             ^~~\n"
                "      = note: see \\x1b[0m\n");
}
END_TEST

START_TEST(ranges_of_all_kinds)
{
    start();
    source *s = source_from_text(mem, "r", STR("one two\nthree\n"));
    weft_fail(dg, W0101, (weft_loc){s, 4, 4}, "empty range");
    weft_fail(dg, W0101, (weft_loc){s, 4, 13}, "several lines");
    weft_fail(dg, W0101, (weft_loc){s, 7, 8}, "the line end");
    weft_fail(dg, W0101, (weft_loc){s, 14, 14}, "the end of the file");
    weft_fail(dg, W0101, (weft_loc){s, 999, 9999}, "past the end");
    weft_fail(dg, W0101, (weft_loc){s, 2, 1}, "backwards");
    expect_text("r:1:5: error[W0101]: empty range\n"
                "    1 | one two\n"
                "      |     ^\n"
                "r:1:5: error[W0101]: several lines\n"
                "    1 | one two\n"
                "      |     ^~~\n"
                "r:1:8: error[W0101]: the line end\n"
                "    1 | one two\n"
                "      |        ^\n"
                "r:3:1: error[W0101]: the end of the file\n"
                "    3 |\n"
                "      | ^\n"
                "r:3:1: error[W0101]: past the end\n"
                "    3 |\n"
                "      | ^\n"
                "r:1:3: error[W0101]: backwards\n"
                "    1 | one two\n"
                "      |   ^\n");
}
END_TEST

START_TEST(line_numbers_may_be_wide)
{
    start();
    strbuf text = {0};
    strbuf_fill(&text, '\n', 123455);
    strbuf_put(&text, STR("here\nthere\n"));
    source *s = source_from_text(mem, "n", strbuf_view(&text));
    strbuf_free(&text);
    weft_fail(dg, W0101, loc_of(s, "here"), "m");
    weft_note_at(dg, loc_of(s, "there"), "and");
    expect_text("n:123456:1: error[W0101]: m\n"
                "123456 | here\n"
                "       | ^~~~\n"
                "       = note: and: n:123457:1\n"
                "123457 | there\n"
                "       | ^~~~~\n");
}
END_TEST

static size_t line_len(const char *text, int line)
{
    while (line-- > 0)
        text = strchr(text, '\n') + 1;
    return strcspn(text, "\n");
}

START_TEST(long_lines_are_cut_around_the_caret)
{
    start();
    strbuf text = {0};
    strbuf_fill(&text, 'a', 5000);
    strbuf_put(&text, STR(" bad "));
    strbuf_fill(&text, 'z', 5000);
    source *s = source_from_text(mem, "long", strbuf_view(&text));
    weft_fail(dg, W0101, loc_of(s, "bad"), "middle");
    char *got = printed(dg, false);
    ck_assert_uint_le(line_len(got, 1), 8 + 160 + 6);
    const char *quoted = strchr(got, '\n') + 1, *caret = strchr(quoted, '\n') + 1;
    ck_assert_ptr_nonnull(strstr(quoted, "| ...aaa"));
    ck_assert_ptr_nonnull(strstr(quoted, "zzz...\n"));
    ck_assert_int_eq(strstr(quoted, "bad") - quoted, strchr(caret, '^') - caret);
    ck_assert_int_eq(strstr(caret, "^~~\n") - caret, strchr(caret, '^') - caret);
    free(got);
    diag_reset(dg);

    weft_fail(dg, W0101, (weft_loc){s, 0, (uint32_t)s->text.n}, "all of it");
    got = printed(dg, false);
    ck_assert_ptr_nonnull(strstr(got, "    1 | aaaa"));
    ck_assert_uint_eq(line_len(got, 2), 8 + 160); /* the underline ends with the window */
    free(got);
    diag_reset(dg);

    weft_fail(dg, W0101, (weft_loc){s, (uint32_t)s->text.n, (uint32_t)s->text.n}, "its end");
    got = printed(dg, false);
    ck_assert_ptr_nonnull(strstr(got, "zzz\n")); /* nothing cut on the right */
    quoted = strchr(got, '\n') + 1;
    ck_assert_uint_eq(line_len(got, 2), line_len(got, 1) + 1);
    free(got);
    strbuf_free(&text);
    diag_destroy(dg);
    arena_destroy(mem);
}
END_TEST

START_TEST(wide_characters_may_straddle_the_cut)
{
    start();
    strbuf text = {0};
    strbuf_put(&text, STR("x"));
    for (int i = 0; i < 500; i++)
        strbuf_put(&text, STR("\xE6\xBC\xA2"));
    strbuf_put(&text, STR("bad"));
    for (int i = 0; i < 500; i++)
        strbuf_put(&text, STR("\xE6\xBC\xA2"));
    source *s = source_from_text(mem, "wide", strbuf_view(&text));
    strbuf_free(&text);
    weft_fail(dg, W0101, loc_of(s, "bad"), "m");
    char *got = printed(dg, false);
    const char *quoted = strchr(got, '\n') + 1, *caret = strchr(quoted, '\n') + 1;
    const char *bad = strstr(quoted, "bad");
    /* Before `bad`: the gutter, dots, and 30 characters of three bytes and two cells. */
    size_t wide = 0;
    for (const char *p = quoted; p < bad; p++)
        wide += *p == '\xE6';
    ck_assert_uint_eq((size_t)(bad - quoted) - wide, (size_t)(strchr(caret, '^') - caret));
    ck_assert_ptr_null(strstr(got, "\\x"));
    free(got);
    diag_destroy(dg);
    arena_destroy(mem);
}
END_TEST

START_TEST(colour_paints_the_parts)
{
    start();
    source *s = source_from_text(mem, "c", STR("abc\n"));
    weft_fail(dg, W0201, loc_of(s, "b"), "m");
    weft_note(dg, "n");
    weft_fail(dg, W0410, WEFT_NOWHERE, "w");
    char *got = printed(dg, true);
    ck_assert_str_eq(got, "\033[1mc:1:2:\033[0m \033[1;31merror[W0201]:\033[0m m\n"
                          "    1 | abc\n"
                          "      |  \033[1;32m^\033[0m\n"
                          "      = \033[1;36mnote:\033[0m n\n"
                          "\033[1mweft:\033[0m \033[1;33mwarning[W0410]:\033[0m w\n");
    free(got);
    diag_destroy(dg);
    arena_destroy(mem);
}
END_TEST

START_TEST(json_tells_the_same)
{
    start();
    source *s = source_from_text(mem, "a\"b", STR("one\ntwo \xC3\xA9 x\n"));
    weft_fail(dg, W0201, (weft_loc){s, 1, 11}, "unknown \"%s\"", "n\xFFm");
    weft_note_at(dg, loc_of(s, "x"), "here");
    weft_note(dg, "plain");
    weft_fail(dg, W1901, WEFT_NOWHERE, "verb");
    strbuf out = {0};
    diag_json(dg, &out);
    ck_assert_str_eq(
        out.p,
        "[{\"code\":\"W0201\",\"severity\":\"error\",\"message\":\"unknown "
        "\\\"n\xEF\xBF\xBDm\\\"\","
        "\"file\":\"a\\\"b\",\"line\":1,\"column\":2,\"end_line\":2,\"end_column\":7,\"hint\":null,"
        "\"notes\":[{\"message\":\"here\",\"file\":\"a\\\"b\",\"line\":2,\"column\":7,"
        "\"end_line\":2,\"end_column\":8},{\"message\":\"plain\",\"file\":null,\"line\":null,"
        "\"column\":null,\"end_line\":null,\"end_column\":null}]},"
        "{\"code\":\"W1901\",\"severity\":\"error\",\"message\":\"verb\",\"file\":null,"
        "\"line\":null,\"column\":null,\"end_line\":null,\"end_column\":null,"
        "\"hint\":\"`weft help` lists the verbs\",\"notes\":[]}]");
    strbuf_reset(&out);
    diag_reset(dg);
    diag_json(dg, &out);
    ck_assert_str_eq(out.p, "[]");
    strbuf_free(&out);
    diag_destroy(dg);
    arena_destroy(mem);
}
END_TEST

/* Any bytes, any range: the printers neither crash nor let a control character through. */
START_TEST(random_bytes_print)
{
    uint32_t seed = 1;
    for (int round = 0; round < 2000; round++) {
        start();
        char bytes[300];
        for (size_t i = 0; i < sizeof bytes; i++) {
            seed = seed * 1664525u + 1013904223u;
            bytes[i] = (char)(seed >> 24);
        }
        seed = seed * 1664525u + 1013904223u;
        source *s = source_from_text(mem, "random", (str){bytes, seed >> 24});
        weft_fail(dg, W0001, (weft_loc){s, seed >> 8 & 0xFF, seed & 0xFF}, "%.20s", bytes);
        char *got = printed(dg, false);
        for (const char *p = got; *p; p++)
            ck_assert((unsigned char)*p >= 0x20 || *p == '\n');
        free(got);
        strbuf json = {0};
        diag_json(dg, &json);
        strbuf_free(&json);
        diag_destroy(dg);
        arena_destroy(mem);
    }
}
END_TEST

SUITE_MAIN("diag_print", prints_the_line_and_the_notes, prints_without_a_place,
           notes_replace_the_hint, notes_quote_other_lines, carets_align_in_cells,
           no_control_reaches_the_terminal, ranges_of_all_kinds, line_numbers_may_be_wide,
           long_lines_are_cut_around_the_caret, wide_characters_may_straddle_the_cut,
           colour_paints_the_parts, json_tells_the_same, random_bytes_print)
