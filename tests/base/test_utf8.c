/* test_utf8.c - the suite of runtime/base/utf8.c. */
#include "runtime/base/utf8.h"
#include "tests/base/suite.h"

/* The encoder that the decoder is held against. */
static str encode(uint32_t cp, char *buf)
{
    if (cp < 0x80) {
        buf[0] = (char)cp;
        return (str){buf, 1};
    }
    if (cp < 0x800) {
        buf[0] = (char)(0xC0 | cp >> 6);
        buf[1] = (char)(0x80 | (cp & 0x3F));
        return (str){buf, 2};
    }
    if (cp < 0x10000) {
        buf[0] = (char)(0xE0 | cp >> 12);
        buf[1] = (char)(0x80 | (cp >> 6 & 0x3F));
        buf[2] = (char)(0x80 | (cp & 0x3F));
        return (str){buf, 3};
    }
    buf[0] = (char)(0xF0 | cp >> 18);
    buf[1] = (char)(0x80 | (cp >> 12 & 0x3F));
    buf[2] = (char)(0x80 | (cp >> 6 & 0x3F));
    buf[3] = (char)(0x80 | (cp & 0x3F));
    return (str){buf, 4};
}

START_TEST(decodes_every_code_point)
{
    char buf[4];
    for (uint32_t cp = 0; cp < 0x120000; cp++) {
        str s = encode(cp, buf);
        uint32_t got = 0xDEAD;
        size_t n = utf8_decode(s, &got);
        bool legal = cp <= 0x10FFFF && !(cp >= 0xD800 && cp <= 0xDFFF);
        if (legal ? (n != s.n || got != cp) : n != 0)
            ck_abort_msg("U+%04X decodes to U+%04X, %zu bytes", (unsigned)cp, (unsigned)got, n);
        for (size_t cut = 0; cut < s.n; cut++)
            if (utf8_decode((str){s.p, cut}, &got) != 0)
                ck_abort_msg("U+%04X cut to %zu bytes decodes", (unsigned)cp, cut);
    }
}
END_TEST

START_TEST(refuses_ill_formed_bytes)
{
    static const char *const bad[] = {
        "\x80",
        "\xBF",
        "\xC0\x80",
        "\xC1\xBF",
        "\xC3\x28",
        "\xE0\x80\x80",
        "\xE0\x9F\xBF",
        "\xED\xA0\x80",
        "\xE2\x28\xA1",
        "\xE2\x82\x28",
        "\xF5\x80\x80\x80",
        "\xF0\x80\x80\x80",
        "\xF4\x90\x80\x80",
        "\xF0\x9F\x98\x28",
        "\xFF",
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        uint32_t cp;
        ck_assert_uint_eq(utf8_decode(str_of(bad[i]), &cp), 0);
    }
}
END_TEST

START_TEST(counts_stray_bytes_as_characters)
{
    ck_assert_uint_eq(utf8_count(STR("")), 0);
    ck_assert_uint_eq(utf8_count(STR("a\xC3\xA9\xE6\xBC\xA2")), 3);
    ck_assert_uint_eq(utf8_count(STR("\xFF\xFEz")), 3);
    ck_assert_uint_eq(utf8_count(STR("\xE6\xBC")), 2);
}
END_TEST

START_TEST(knows_cell_widths)
{
    static const struct {
        uint32_t cp;
        int cells;
    } rows[] = {
        {'a', 1},      {0xE9, 1},    {0xAD, 1},    {0x0301, 0}, {0x200D, 0},  {0xFE0F, 0},
        {0x1100, 2},   {0x1161, 0},  {0x3042, 2},  {0x6F22, 2}, {0xAC00, 2},  {0xFF21, 2},
        {0xFF71, 1},   {0x1F600, 2}, {0x1F680, 2}, {0x2705, 2}, {0x20000, 2}, {0x2192, 1},
        {0x10FFFF, 1}, {0x0410, 1},  {0x05D0, 1},  {0x303F, 1},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (utf8_cells(rows[i].cp) != rows[i].cells)
            ck_abort_msg("U+%04X takes %d cells", (unsigned)rows[i].cp, utf8_cells(rows[i].cp));
}
END_TEST

START_TEST(spells_out_what_steers_a_terminal)
{
    strbuf b = {0};
    utf8_put_safe(&b, STR("a\x1b[31m\n\x7f\xC2\x9b\xE2\x80\xAE\xff\xC3\xA9\0z"));
    ck_assert_str_eq(b.p, "a\\x1b[31m\\x0a\\x7f\\xc2\\x9b\\xe2\\x80\\xae\\xff\xC3\xA9\\x00z");
    strbuf_free(&b);
}
END_TEST

SUITE_MAIN("utf8", decodes_every_code_point, refuses_ill_formed_bytes,
           counts_stray_bytes_as_characters, knows_cell_widths, spells_out_what_steers_a_terminal)
