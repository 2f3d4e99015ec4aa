/* test_text_parts.c - the suite of text_parts.h: a program that was linked without Unicode's tables and without templates, as
 * this one is, opens what needs neither and says why it opens nothing else. */
#include "runtime/text/text_parts.h"

#include "runtime/text/chat_image.h"
#include "runtime/text/tok_image.h"
#include "tests/base/suite.h"

const uni_tables *uni_tables_here(void)
{
    return NULL;
}

const jinja_engine *jinja_here(void)
{
    return NULL;
}

#define WITH(normalizer, pre, added)                                                               \
    "{\"added_tokens\":[" added "],\"normalizer\":" normalizer ",\"pre_tokenizer\":" pre           \
    ",\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[\"a b\"]}}"
#define TOKEN(single)                                                                              \
    "{\"id\":3,\"content\":\"word\",\"single_word\":" single                                       \
    ",\"lstrip\":false,\"rstrip\":false,\"normalized\":false,\"special\":false}"

/* clang-format off */
static const struct {
    const char *json;
    bool needs;
} cases[] = {
    {WITH("null", "null", ""), false},
    {WITH("null", "null", TOKEN("false")), false},
    {WITH("null", "null", TOKEN("true")), true},
    {WITH("{\"type\":\"Prepend\",\"prepend\":\"a\"}", "{\"type\":\"WhitespaceSplit\"}", ""), false},
    {WITH("null", "{\"type\":\"ByteLevel\",\"add_prefix_space\":false}", ""), false},
    {WITH("{\"type\":\"NFC\"}", "null", ""), true},
    {WITH("{\"type\":\"Lowercase\"}", "null", ""), true},
    {WITH("{\"type\":\"StripAccents\"}", "null", ""), true},
    {WITH("{\"type\":\"BertNormalizer\"}", "null", ""), true},
    {WITH("null", "{\"type\":\"Digits\"}", ""), true},
    {WITH("null", "{\"type\":\"Punctuation\"}", ""), true},
    {WITH("null", "{\"type\":\"Whitespace\"}", ""), true},
};
/* clang-format on */

static void try_tokenizer(const char *json, bool needs)
{
    weft_diag *dg = diag_create();
    tok *t, *back = NULL;
    strbuf image = {0};
    ck_assert_int_eq(tok_open_text(dg, "a file", str_of(json), &t), WEFT_OK);
    ck_assert(tok_needs_tables(t) == needs);
    tok_image_write(t, &image);
    tok_close(t);
    weft_status st = tok_image_open(dg, "a program", strbuf_view(&image), &back);
    ck_assert_int_eq(st, needs ? WEFT_ERR_TOKENIZER : WEFT_OK);
    if (needs)
        ck_assert_ptr_nonnull(strstr(diag_at(dg, 0).message.p, "needs Unicode's tables"));
    else {
        tok_ids ids = {0}; /* works without them, with characters of all kinds */
        st = tok_encode(dg, back, STR("ab \xc3\xa9 \xe4\xb8\xad\xf0\x9f\x98\x80 word"),
                        TOK_ENCODE_DEFAULT, &ids);
        ck_assert(st == WEFT_OK || diag_at(dg, 0).code == W1208);
        VEC_FREE(&ids);
    }
    tok_close(back);
    strbuf_free(&image);
    diag_destroy(dg);
}

START_TEST(tokenizers)
{
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        try_tokenizer(cases[i].json, cases[i].needs);
}
END_TEST

START_TEST(templates)
{
    static const char *const choices[] = {NULL, "chatml", "no such file"};
    for (size_t i = 0; i < COUNT_OF(choices); i++) {
        weft_diag *dg = diag_create();
        chat_template *ct;
        ck_assert_int_eq(chat_image_open(dg, "a program", (str){0}, choices[i], &ct),
                         WEFT_ERR_TEMPLATE);
        ck_assert_int_eq(diag_at(dg, 0).code, W1308);
        diag_destroy(dg);
    }
}
END_TEST

SUITE_MAIN("text_parts", tokenizers, templates)
