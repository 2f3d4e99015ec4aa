/* test_diag.c - the suite of runtime/base/diag.c. */
#include "runtime/base/mem.h"
#include "tests/base/suite.h"
#include <ctype.h>

START_TEST(codes_are_sorted_unique_and_well_formed)
{
    const char *last = "";
    for (int i = 0; i < DIAG_CODE_COUNT; i++) {
        const diag_row *row = diag_row_of((weft_code)i);
        const char *n = row->name;
        bool formed = strlen(n) == 5 && n[0] == 'W' && (n[1] == '0' || n[1] == '1') &&
                      isdigit((unsigned char)n[2]) && isdigit((unsigned char)n[3]) &&
                      isdigit((unsigned char)n[4]);
        if (!formed)
            ck_abort_msg("%s is not W and four digits", n);
        if (strcmp(last, n) >= 0)
            ck_abort_msg("%s does not come after %s", n, last);
        last = n;
        ck_assert_int_ne(row->status, WEFT_OK);
        ck_assert_int_lt(row->status, WEFT_STATUS_COUNT);
        ck_assert(row->severity == DIAG_ERROR || row->severity == DIAG_WARNING);
    }
}
END_TEST

/* Lower case but for names and abbreviations, no full stop, printable ASCII (STYLE section 4). */
static void expect_prose(const char *code, const char *text)
{
    size_t n = strlen(text);
    bool capital = isupper((unsigned char)text[0]) && islower((unsigned char)text[1]);
    if (n == 0 || text[n - 1] == '.' || (capital && !str_starts(str_of(text), STR("Weft "))))
        ck_abort_msg("%s: '%s' is empty, ends in a full stop or begins with a capital", code, text);
    for (size_t i = 0; i < n; i++)
        if (text[i] < ' ' || text[i] > '~')
            ck_abort_msg("%s: '%s' has a character that is not printable ASCII", code, text);
}

START_TEST(meanings_and_hints_follow_the_style)
{
    for (int i = 0; i < DIAG_CODE_COUNT; i++) {
        const diag_row *row = diag_row_of((weft_code)i);
        expect_prose(row->name, row->meaning);
        if (row->hint)
            expect_prose(row->name, row->hint);
    }
}
END_TEST

/* DSL.md section 12 and STYLE section 4 give each hundred its subject. */
START_TEST(codes_of_a_group_share_their_status)
{
    static const struct {
        const char *prefix;
        weft_status status;
    } groups[] = {
        {"W01", WEFT_ERR_SYNTAX},  {"W02", WEFT_ERR_NAME},      {"W03", WEFT_ERR_SHAPE},
        {"W04", WEFT_ERR_PARAM},   {"W05", WEFT_ERR_WEIGHT},    {"W06", WEFT_ERR_STATE},
        {"W07", WEFT_ERR_ADAPTER}, {"W08", WEFT_ERR_MATCH},     {"W09", WEFT_ERR_TARGET},
        {"W11", WEFT_ERR_LIMIT},   {"W12", WEFT_ERR_TOKENIZER}, {"W13", WEFT_ERR_TEMPLATE},
        {"W15", WEFT_ERR_PLAN},    {"W16", WEFT_ERR_DEVICE},    {"W19", WEFT_ERR_USAGE},
    };
    for (int i = 0; i < DIAG_CODE_COUNT; i++) {
        const diag_row *row = diag_row_of((weft_code)i);
        for (size_t g = 0; g < COUNT_OF(groups); g++)
            if (str_starts(str_of(row->name), str_of(groups[g].prefix)) &&
                row->status != groups[g].status)
                ck_abort_msg("%s has the status of another group", row->name);
    }
}
END_TEST

START_TEST(collects_and_returns_the_status)
{
    arena *a = arena_create();
    weft_diag *dg = diag_create();
    source *s = source_from_text(a, "f", STR("text"));
    ck_assert_int_eq(weft_fail(dg, W0302, (weft_loc){s, 1, 2}, "is %d", 7), WEFT_ERR_SHAPE);
    ck_assert_int_eq(weft_fail(dg, W0410, WEFT_NOWHERE, "beware"), WEFT_ERR_PARAM);
    ck_assert_uint_eq(diag_errors(dg), 1);
    ck_assert_uint_eq(diag_warnings(dg), 1);
    ck_assert_uint_eq(diag_count(dg), 2);
    ck_assert(str_eqz(diag_at(dg, 0).message, "is 7"));
    ck_assert_ptr_eq(diag_at(dg, 0).loc.src, s);
    ck_assert_int_eq(diag_at(dg, 1).code, W0410);
    diag_reset(dg);
    ck_assert_uint_eq(diag_count(dg) + diag_errors(dg) + diag_warnings(dg), 0);
    weft_fail(dg, W0302, (weft_loc){s, 1, 2}, "again"); /* forgotten, so reported again */
    ck_assert_uint_eq(diag_count(dg), 1);
    diag_destroy(dg);
    diag_destroy(NULL);
    arena_destroy(a);
}
END_TEST

START_TEST(the_same_is_told_once)
{
    arena *a = arena_create();
    weft_diag *dg = diag_create();
    source *s = source_from_text(a, "f", STR("some text")), *t = source_from_text(a, "g", STR("x"));
    for (int i = 0; i < 3; i++) {
        weft_fail(dg, W0201, (weft_loc){s, 1, 2}, "message %d", i);
        weft_note(dg, "note %d", i);
        weft_fail(dg, W0202, (weft_loc){s, 1, 2}, "other code");
        weft_fail(dg, W0201, (weft_loc){s, 1, 3}, "other range");
        weft_fail(dg, W0201, (weft_loc){t, 1, 2}, "other file");
        weft_fail(dg, W1001, WEFT_NOWHERE, "cannot open a"); /* no place: the message decides */
        weft_fail(dg, W1001, WEFT_NOWHERE, "cannot open b");
    }
    ck_assert_uint_eq(diag_errors(dg), 6);
    ck_assert_uint_eq(diag_count(dg), 6);
    ck_assert(str_eqz(diag_at(dg, 0).message, "message 0"));
    char *text = printed(dg, false);
    ck_assert_ptr_nonnull(strstr(text, "note: note 0"));
    ck_assert_ptr_null(strstr(text, "note: note 1")); /* dropped with its diagnostic */
    free(text);
    diag_destroy(dg);
    arena_destroy(a);
}
END_TEST

START_TEST(an_error_may_be_recorded_as_a_warning)
{
    weft_diag *dg = diag_create();
    weft_warn(dg, W0901, WEFT_NOWHERE, "pool: no kernel");
    ck_assert_uint_eq(diag_errors(dg), 0);
    ck_assert_uint_eq(diag_failed(dg), 0);
    ck_assert_uint_eq(diag_warnings(dg), 1);
    ck_assert_int_eq(diag_status(dg, 0), WEFT_OK);
    ck_assert_int_eq(weft_fail(dg, W0901, WEFT_NOWHERE, "pool: no kernel"), WEFT_ERR_TARGET);
    ck_assert_uint_eq(diag_errors(dg), 1); /* the warning does not hide it */
    ck_assert_int_eq(diag_status(dg, 0), WEFT_ERR_TARGET);
    char *said = printed(dg, false);
    ck_assert_ptr_nonnull(strstr(said, "weft: warning[W0901]: pool"));
    ck_assert_ptr_nonnull(strstr(said, "weft: error[W0901]: pool"));
    free(said);
    diag_destroy(dg);
}
END_TEST

/* A text of its own arena, which is overwritten and gone afterwards. */
static void fail_in(weft_diag *dg, const char *name, str text)
{
    arena *a = arena_create();
    source *s = source_from_text(a, name, text);
    weft_fail(dg, W0302, (weft_loc){s, 5, 8}, "wrong");
    weft_note_at(dg, (weft_loc){s, 0, 4}, "same line");
    weft_note_at(dg, (weft_loc){s, 10, 13}, "other line");
    memset((char *)s->text.p, '#', s->text.n);
    memset((char *)s->name, '#', strlen(s->name));
    arena_destroy(a);
}

START_TEST(what_is_shown_outlives_its_source)
{
    weft_diag *dg = diag_create();
    fail_in(dg, "first", STR("some text\nand more\n"));
    fail_in(dg, "second", STR("some text\nand more\n")); /* perhaps at the same address */
    strbuf json = {0};
    char *text = printed(dg, false);
    ck_assert_str_eq(text, "first:1:6: error[W0302]: wrong\n"
                           "    1 | some text\n"
                           "      |      ^~~\n"
                           "      = note: same line: first:1:1\n"
                           "      = note: other line: first:2:1\n"
                           "    2 | and more\n"
                           "      | ^~~\n"
                           "second:1:6: error[W0302]: wrong\n"
                           "    1 | some text\n"
                           "      |      ^~~\n"
                           "      = note: same line: second:1:1\n"
                           "      = note: other line: second:2:1\n"
                           "    2 | and more\n"
                           "      | ^~~\n");
    diag_json(dg, &json);
    ck_assert_ptr_nonnull(strstr(json.p, "\"file\":\"second\",\"line\":1,\"column\":6,"
                                         "\"end_line\":1,\"end_column\":9"));
    ck_assert_str_eq(diag_shown(dg), text);
    free(text);
    strbuf_free(&json);
    diag_destroy(dg);
}
END_TEST

/* Characters without a width of their own do not make a quote as long as the text. */
START_TEST(a_quote_has_a_limit)
{
    arena *a = arena_create();
    weft_diag *dg = diag_create();
    strbuf line = {0};
    strbuf_putc(&line, 'a');
    for (int i = 0; i < 1 << 20; i++)
        strbuf_put(&line, STR("\xcc\x81"));
    source *s = source_from_text(a, "f", strbuf_view(&line));
    weft_fail(dg, W0302, (weft_loc){s, 0, 1}, "wrong");
    ck_assert_uint_lt(strlen(diag_shown(dg)), 5000);
    diag_destroy(dg);
    arena_destroy(a);
    strbuf_free(&line);
}
END_TEST

START_TEST(short_memory_is_reported_without_memory)
{
    weft_diag *dg = diag_create();
    for (int i = 0; i < 60; i++) {
        weft_fail(dg, W1001, WEFT_NOWHERE, "cannot open %d", i);
        weft_fail(dg, W0410, WEFT_NOWHERE, "beware of %d", i);
    }
    mem_fail_after(1, true);
    ck_assert_int_eq(diag_fail_memory(dg, 100), WEFT_ERR_LIMIT);
    ck_assert_int_eq(diag_fail_memory(dg, 7), WEFT_ERR_LIMIT);
    weft_note(dg, "dropped");
    ck_assert(!mem_fail_came());
    mem_fail_after(0, false);
    ck_assert_uint_eq(diag_count(dg), 2 * DIAG_ERRORS_MAX + 1);
    ck_assert_uint_eq(diag_errors(dg), 61);
    ck_assert_ptr_nonnull(strstr(
        diag_shown(dg), "weft: error[W1110]: not enough memory: 7 bytes are not available\n"));
    diag_reset(dg);
    ck_assert_uint_eq(diag_count(dg), 0);
    diag_fail_memory(dg, SIZE_MAX);
    ck_assert_str_eq(diag_shown(dg), "weft: error[W1110]: not enough memory: more bytes than a "
                                     "process can have\n");
    diag_destroy(dg);
}
END_TEST

START_TEST(past_the_limit_only_the_count_goes_on)
{
    weft_diag *dg = diag_create();
    for (int i = 0; i < 63; i++) {
        weft_fail(dg, W1001, WEFT_NOWHERE, "cannot open %d", i);
        weft_note(dg, "note of %d", i);
    }
    ck_assert_uint_eq(diag_errors(dg), 63);
    ck_assert_uint_eq(diag_count(dg), DIAG_ERRORS_MAX);
    weft_fail(dg, W1001, WEFT_NOWHERE, "cannot open 62"); /* repeats are not counted there either */
    ck_assert_uint_eq(diag_errors(dg), 63);
    weft_fail(dg, W0410, WEFT_NOWHERE, "warnings have their own limit");
    ck_assert_uint_eq(diag_count(dg), DIAG_ERRORS_MAX + 1);
    char *text = printed(dg, false);
    ck_assert_ptr_nonnull(strstr(text, "note of 49\n"));
    ck_assert_ptr_null(strstr(text, "note of 50\n"));
    ck_assert_ptr_nonnull(strstr(text, "\n63 errors, 50 shown\n"));
    free(text);
    diag_destroy(dg);
}
END_TEST

START_TEST(a_flood_stays_small)
{
    weft_diag *dg = diag_create();
    for (int i = 0; i < 300000; i++)
        weft_fail(dg, W1001, WEFT_NOWHERE, "cannot open %d", i);
    ck_assert_uint_eq(diag_errors(dg), 300000);
    ck_assert_uint_eq(diag_count(dg), DIAG_ERRORS_MAX);
    diag_destroy(dg);
}
END_TEST

START_TEST(long_messages_lose_their_middle)
{
    weft_diag *dg = diag_create();
    strbuf name = {0};
    for (int i = 0; i < 500000; i++)
        strbuf_put(&name, STR("\xC3\xA9"));
    weft_fail(dg, W0201, WEFT_NOWHERE, "unknown name %s here", name.p);
    str m = diag_at(dg, 0).message;
    ck_assert_uint_lt(m.n, 1100);
    ck_assert(str_starts(m, STR("unknown name \xC3\xA9\xC3\xA9")));
    ck_assert(str_ends(m, STR("\xC3\xA9\xC3\xA9 here")));
    char *text = printed(dg, false);
    ck_assert_ptr_null(strstr(text, "\\x")); /* no character was torn */
    ck_assert_ptr_nonnull(strstr(text, "..."));
    free(text);
    strbuf_free(&name);
    diag_destroy(dg);
}
END_TEST

START_TEST(notes_are_bounded_and_need_a_diagnostic)
{
    weft_diag *dg = diag_create();
    weft_note(dg, "about nothing");
    ck_assert_uint_eq(diag_count(dg), 0);
    weft_fail(dg, W0201, WEFT_NOWHERE, "x");
    for (int i = 0; i < 1000; i++)
        weft_note(dg, "while in %d", i);
    char *text = printed(dg, false);
    ck_assert_ptr_nonnull(strstr(text, "while in 0\n"));
    ck_assert_ptr_null(strstr(text, "while in 100\n"));
    free(text);
    diag_destroy(dg);
}
END_TEST

/* Messages are the library's too: a flag appears only within a command between backquotes. */
START_TEST(hints_speak_of_no_flags)
{
    for (int code = 0; code < DIAG_CODE_COUNT; code++) {
        const diag_row *row = diag_row_of((weft_code)code);
        bool command = false;
        for (const char *p = row->hint; p && *p; p++) {
            command ^= *p == '`';
            bool begins = p == row->hint || strchr(" (", p[-1]);
            ck_assert_msg(command || !begins || *p != '-' || p[1] == ' ', "%s: %s", row->name,
                          row->hint);
        }
    }
}
END_TEST

SUITE_MAIN("diag", hints_speak_of_no_flags, codes_are_sorted_unique_and_well_formed,
           meanings_and_hints_follow_the_style, codes_of_a_group_share_their_status,
           collects_and_returns_the_status, the_same_is_told_once,
           an_error_may_be_recorded_as_a_warning, what_is_shown_outlives_its_source,
           a_quote_has_a_limit, short_memory_is_reported_without_memory,
           past_the_limit_only_the_count_goes_on, a_flood_stays_small,
           long_messages_lose_their_middle, notes_are_bounded_and_need_a_diagnostic)
