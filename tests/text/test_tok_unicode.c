/* test_tok_unicode.c - normal forms: the same as utf8proc's own, on texts that it is quick with. */
#include "runtime/base/mem.h"
#include "runtime/text/tok_unicode.h"
#include "tests/base/suite.h"

#include <utf8proc.h>

static uint64_t random_state = 1;
static uint32_t random_below(uint32_t n)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((random_state >> 33) % n);
}

/* A character, more often a mark, jamo or something with a decomposition than in any real text. */
static uint32_t random_char(void)
{
    static const struct {
        uint32_t first, last;
    } spans[] = {
        {0x61, 0x7a},     {0xc0, 0x17f},    {0x300, 0x36f},     {0x300, 0x36f},
        {0x591, 0x5c7},   {0x610, 0x65f},   {0x900, 0x9ff},     {0xe00, 0xeff},
        {0x1100, 0x11ff}, {0x1e00, 0x1fff}, {0x20d0, 0x20ff},   {0x2100, 0x21ff},
        {0x3040, 0x33ff}, {0xac00, 0xd7a3}, {0xf900, 0xfdff},   {0xfe20, 0xffef},
        {0x1, 0x7f},      {0x80, 0xd7ff},   {0xe000, 0x10ffff}, {0x1d15e, 0x1d1e8},
    };
    size_t k = random_below((uint32_t)COUNT_OF(spans));
    return spans[k].first + random_below(spans[k].last - spans[k].first + 1);
}

START_TEST(forms_are_those_of_utf8proc)
{
    static const utf8proc_option_t options[] = {
        [UNI_NFC] = UTF8PROC_COMPOSE,
        [UNI_NFD] = UTF8PROC_DECOMPOSE,
        [UNI_NFKC] = UTF8PROC_COMPOSE | UTF8PROC_COMPAT,
        [UNI_NFKD] = UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT,
    };
    strbuf text = {0}, mine = {0};
    for (int round = 0; round < 20000; round++) {
        uni_form form = (uni_form)random_below(4);
        size_t n = random_below(round % 100 ? 12 : 300);
        utf8proc_uint8_t *theirs = NULL;
        strbuf_reset(&text);
        strbuf_reset(&mine);
        bool marks = random_below(2);
        for (size_t i = 0; i < n; i++)
            uni_add(&text, marks && i ? 0x300 + random_below(0x50) : random_char());
        utf8proc_ssize_t n_theirs =
            utf8proc_map((const utf8proc_uint8_t *)text.p, (utf8proc_ssize_t)text.n, &theirs,
                         UTF8PROC_STABLE | options[form]);
        uni_normalize(&mine, strbuf_view(&text), form);
        ck_assert_msg(n_theirs == (utf8proc_ssize_t)mine.n &&
                          (!mine.n || memcmp(theirs, mine.p, mine.n) == 0),
                      "form %d differs in round %d", (int)form, round);
        free(theirs);
    }
    strbuf_free(&text);
    strbuf_free(&mine);
}
END_TEST

SUITE_MAIN("tok_unicode", forms_are_those_of_utf8proc)
