/* test_source.c - the suite of runtime/base/source.c. */
#include "tests/base/suite.h"
#include <fcntl.h>

static arena *mem;
static weft_diag *dg;

static void expect_place(const source *src, uint32_t offset, uint32_t line, uint32_t column,
                         const char *text, uint32_t at)
{
    source_place p = source_find(src, offset);
    ck_assert_uint_eq(p.line, line);
    ck_assert_uint_eq(p.column, column);
    ck_assert_uint_eq(p.at, at);
    if (!str_eqz(p.text, text))
        ck_abort_msg("offset %u is on line '" STR_FMT "', not '%s'", (unsigned)offset,
                     STR_ARG(p.text), text);
}

START_TEST(finds_lines_and_columns)
{
    mem = arena_create();
    source *s = source_from_text(mem, "x", STR("ab\n\n\xC3\xA9z\r\nlast"));
    ck_assert_uint_eq(s->line_n, 4);
    expect_place(s, 0, 1, 1, "ab", 0);
    expect_place(s, 2, 1, 3, "ab", 2); /* the line end belongs to its line */
    expect_place(s, 3, 2, 1, "", 0);
    expect_place(s, 4, 3, 1, "\xC3\xA9z", 0);
    expect_place(s, 6, 3, 2, "\xC3\xA9z", 2);
    expect_place(s, 7, 3, 3, "\xC3\xA9z", 3);
    expect_place(s, 8, 3, 3, "\xC3\xA9z", 3); /* within CR LF */
    expect_place(s, 9, 4, 1, "last", 0);
    expect_place(s, 13, 4, 5, "last", 4);
    expect_place(s, 4000000000u, 4, 5, "last", 4);
    arena_destroy(mem);
}
END_TEST

START_TEST(handles_odd_texts)
{
    mem = arena_create();
    expect_place(source_from_text(mem, "x", STR("")), 0, 1, 1, "", 0);
    expect_place(source_from_text(mem, "x", STR("\n")), 1, 2, 1, "", 0);
    expect_place(source_from_text(mem, "x", STR("\r\n")), 0, 1, 1, "", 0);
    expect_place(source_from_text(mem, "x", STR("a\r")), 2, 1, 3, "a\r", 2); /* no line end */
    expect_place(source_from_text(mem, "x", STR("\xFF\xFE\xFDz")), 3, 1, 4, "\xFF\xFE\xFDz", 3);
    source *s = source_from_text(mem, "x", STR("a\0b\nc"));
    ck_assert_uint_eq(s->text.n, 5);
    ck_assert_uint_eq(source_find(s, 2).text.n, 3);
    ck_assert_uint_eq(source_find(s, 4).line, 2);
    ck_assert_int_eq(s->text.p[s->text.n], 0);
    arena_destroy(mem);
}
END_TEST

static void start(void)
{
    mem = arena_create();
    dg = diag_create();
}

static void stop(void)
{
    diag_destroy(dg);
    arena_destroy(mem);
}

START_TEST(reads_a_file_whole)
{
    start();
    temp_dir d = temp_dir_create();
    strbuf big = {0};
    for (int i = 0; i < 20000; i++)
        strbuf_add(&big, "%d\n", i);
    temp_path p = temp_file(&d, "big.weft", strbuf_view(&big));
    source *s = NULL;
    ck_assert_int_eq(source_open(dg, mem, p.path, big.n, &s), WEFT_OK); /* just within the limit */
    ck_assert_str_eq(s->name, p.path);
    ck_assert(str_eq(s->text, strbuf_view(&big)));
    ck_assert_uint_eq(s->line_n, 20001);

    source *untouched = s;
    ck_assert_int_eq(source_open(dg, mem, p.path, big.n - 1, &s), WEFT_ERR_LIMIT);
    expect_one(dg, W1101, "has 108890 bytes, and the limit is 108889");
    ck_assert_ptr_eq(s, untouched);

    temp_path e = temp_file(&d, "empty.weft", STR(""));
    ck_assert_int_eq(source_open(dg, mem, e.path, 0, &s), WEFT_OK);
    ck_assert_uint_eq(s->text.n, 0);
    unlink(p.path);
    unlink(e.path);
    rmdir(d.path);
    strbuf_free(&big);
    stop();
}
END_TEST

START_TEST(size_is_not_trusted)
{
    /* /proc files claim to be empty. */
    start();
    source *s = NULL;
    if (access("/proc/self/status", R_OK) == 0) {
        ck_assert_int_eq(source_open(dg, mem, "/proc/self/status", 1 << 20, &s), WEFT_OK);
        ck_assert_uint_gt(s->text.n, 100);
        ck_assert_int_eq(source_open(dg, mem, "/proc/self/status", 10, &s), WEFT_ERR_LIMIT);
        expect_one(dg, W1101, "has more than 10 bytes, and the limit is 10");
    }
    stop();
}
END_TEST

START_TEST(bad_paths_are_diagnosed)
{
    start();
    source *s = NULL;
    ck_assert_int_eq(source_open(dg, mem, "/no/such.weft", 100, &s), WEFT_ERR_FILE);
    ck_assert_int_eq(source_open(dg, mem, "/", 100, &s), WEFT_ERR_FILE);
    ck_assert_ptr_null(s);
    ck_assert_uint_eq(diag_errors(dg), 2);
    stop();
}
END_TEST

/* A pipe with text in it takes the place of standard input. */
static weft_status read_piped(str text, size_t bytes_max, source **out)
{
    int ends[2];
    int saved = dup(STDIN_FILENO);
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(write(ends[1], text.p, text.n), (int)text.n);
    close(ends[1]);
    dup2(ends[0], STDIN_FILENO);
    close(ends[0]);
    weft_status status = source_read_stdin(dg, mem, bytes_max, out);
    dup2(saved, STDIN_FILENO);
    close(saved);
    return status;
}

START_TEST(reads_standard_input)
{
    start();
    source *s = NULL;
    ck_assert_int_eq(read_piped(STR("model\n"), 6, &s), WEFT_OK);
    ck_assert_str_eq(s->name, "<stdin>");
    ck_assert(str_eqz(s->text, "model\n"));
    ck_assert_int_eq(read_piped(STR(""), 0, &s), WEFT_OK);
    ck_assert_uint_eq(s->text.n, 0);
    strbuf big = {0};
    strbuf_fill(&big, 'x', 50000);
    ck_assert_int_eq(read_piped(strbuf_view(&big), 60000, &s), WEFT_OK);
    ck_assert_uint_eq(s->text.n, 50000);
    ck_assert_int_eq(read_piped(strbuf_view(&big), 49999, &s), WEFT_ERR_LIMIT);
    expect_one(dg, W1101, "<stdin> has more than 49999 bytes");
    strbuf_free(&big);
    stop();
}
END_TEST

SUITE_MAIN("source", finds_lines_and_columns, handles_odd_texts, reads_a_file_whole,
           size_is_not_trusted, bad_paths_are_diagnosed, reads_standard_input)
