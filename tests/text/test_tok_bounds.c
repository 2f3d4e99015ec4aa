/* test_tok_bounds.c - tokenizer files that multiply a text: refused, or stopped at the bound of tok.h. */
#include "runtime/text/tok.h"
#include "tests/base/suite.h"

#include <sys/resource.h>

#define VOCAB "\"vocab\": {\"a\": 0, \"b\": 1, \"<unk>\": 2, \"<0x61>\": 3}"
#define MODEL "\"model\": {\"type\": \"BPE\", " VOCAB ", \"merges\": [], \"unk_token\": \"<unk>\"}"
#define REPLACE(from, to)                                                                          \
    "{\"type\": \"Replace\", \"pattern\": {\"String\": \"" from "\"}, \"content\": \"" to "\"}"
#define TWICE REPLACE("a", "aa")
#define FOUR(x) x ", " x ", " x ", " x
#define SEQUENCE(name, steps) "{\"type\": \"Sequence\", \"" name "\": [" steps "]}"

/* What the bounds keep from happening takes gigabytes: the process may not. */
static void allow_one_gigabyte(void)
{
#if !defined(SUITE_ASAN)
    struct rlimit limit = {(rlim_t)1 << 30, (rlim_t)1 << 30};
    setrlimit(RLIMIT_AS, &limit);
#endif
}

static weft_status open_json(weft_diag *dg, const char *json, tok **out_tok)
{
    return tok_open_text(dg, "test", str_of(json), out_tok);
}

static void says(const weft_diag *dg, weft_code code, const char *part)
{
    ck_assert_uint_ge(diag_count(dg), 1);
    diag_entry e = diag_at(dg, 0);
    ck_assert_msg(e.code == code && memmem(e.message.p, e.message.n, part, strlen(part)),
                  "%s: %.*s", diag_row_of(e.code)->name, STR_ARG(e.message));
}

static void refuses(const char *json, weft_code code, const char *part)
{
    weft_diag *dg = diag_create();
    tok *t = NULL;
    ck_assert_int_ne(open_json(dg, json, &t), WEFT_OK);
    says(dg, code, part);
    diag_destroy(dg);
}

/* Opens, but n times c is too much for it. */
static void stops(const char *json, char c, size_t n, const char *part)
{
    weft_diag *dg = diag_create();
    tok *t = NULL;
    tok_ids ids = {0};
    strbuf text = {0};
    ck_assert_int_eq(open_json(dg, json, &t), WEFT_OK);
    strbuf_fill(&text, c, n);
    ck_assert_int_ne(tok_encode(dg, t, strbuf_view(&text), TOK_ENCODE_DEFAULT, &ids), WEFT_OK);
    ck_assert_uint_eq(ids.n, 0);
    says(dg, W1214, part);
    strbuf_free(&text);
    VEC_FREE(&ids);
    tok_close(t);
    diag_destroy(dg);
}

START_TEST(normalizers)
{
    allow_one_gigabyte();
    stops("{" MODEL ", \"normalizer\": " SEQUENCE(
              "normalizers", FOUR(TWICE) ", " FOUR(TWICE) ", " FOUR(FOUR(TWICE))) "}",
          'a', 100000, "normalizer Replace makes the text longer than");
    stops("{" MODEL
          ", \"normalizer\": " SEQUENCE("normalizers", REPLACE("a", "\u00e9\u00e9") ", " FOUR(
                                                           FOUR("{\"type\": \"ByteLevel\"}"))) "}",
          'a', 100000, "normalizer ByteLevel makes the text longer than");
    stops(
        "{" MODEL ", \"normalizer\": {\"type\": \"Replace\", \"pattern\": {\"Regex\": \"\"}, "
        "\"content\": \"0123456789012345678901234567890123456789012345678901234567890123456789\"}}",
        'a', 1000000, "normalizer Replace");
    strbuf json = {0};
    strbuf_add(&json,
               "{" MODEL ", \"added_tokens\": [{\"id\": 4, \"content\": \"x\", \"special\": true, "
               "\"normalized\": false}], \"normalizer\": {\"type\": \"Prepend\", \"prepend\": \"");
    strbuf_fill(&json, 'b', 4096);
    strbuf_add(&json, "\"}}");
    weft_diag *dg = diag_create();
    tok *t = NULL;
    tok_ids ids = {0};
    strbuf text = {0};
    ck_assert_int_eq(open_json(dg, json.p, &t), WEFT_OK);
    for (int i = 0; i < 100000; i++)
        strbuf_put(&text, STR("ax")); /* Prepend works before each a */
    ck_assert_int_ne(tok_encode(dg, t, strbuf_view(&text), TOK_ENCODE_DEFAULT, &ids), WEFT_OK);
    says(dg, W1214, "normalizer Prepend");
    tok_close(t);
    VEC_FREE(&ids);
    strbuf_free(&text);
    strbuf_free(&json);
    diag_destroy(dg);
}
END_TEST

START_TEST(pre_tokenizers)
{
    allow_one_gigabyte();
    stops("{" MODEL ", \"normalizer\": " REPLACE("a", "\u00e9") ", \"pre_tokenizer\": " SEQUENCE(
              "pretokenizers", FOUR(FOUR("{\"type\": \"ByteLevel\", \"add_prefix_space\": false, "
                                         "\"use_regex\": false}"))) "}",
          'a', 100000, "pre_tokenizer");
}
END_TEST

START_TEST(decoders)
{
    allow_one_gigabyte();
    refuses("{" MODEL ", \"decoder\": " SEQUENCE("decoders", FOUR(TWICE) ", " FOUR(TWICE)) "}",
            W1214,
            "decoder Replace can make a text 128 times as long, at most 64 times is allowed");
    refuses(
        "{" MODEL ", \"decoder\": {\"type\": \"Replace\", \"pattern\": {\"Regex\": \"b*\"}, "
        "\"content\": \"0123456789012345678901234567890123456789012345678901234567890123456789\"}}",
        W1214, "decoder Replace");
    weft_diag *dg = diag_create();
    tok *t = NULL;
    strbuf whole = {0}, streamed = {0};
    const int32_t ids[] = {0, 1, 0};
    ck_assert_int_eq(
        open_json(dg, "{" MODEL ", \"decoder\": " SEQUENCE("decoders", FOUR(TWICE)) "}", &t),
        WEFT_OK);
    ck_assert_int_eq(tok_decode(dg, t, ids, 3, false, &whole), WEFT_OK);
    tok_stream *s = tok_stream_create(t, false);
    for (size_t i = 0; i < 3; i++)
        tok_stream_put(s, ids[i], &streamed);
    tok_stream_flush(s, &streamed);
    ck_assert_uint_eq(whole.n, 16 + 1 + 16);
    ck_assert_str_eq(whole.p, streamed.p);
    tok_stream_destroy(s);
    tok_close(t);
    strbuf_free(&whole);
    strbuf_free(&streamed);
    diag_destroy(dg);
}
END_TEST

/* json with %s in it, and n bytes there. */
static void refuses_long(const char *json, size_t n, weft_code code, const char *part)
{
    strbuf text = {0}, all = {0};
    strbuf_fill(&text, 'x', n);
    strbuf_add(&all, json, text.p);
    refuses(all.p, code, part);
    strbuf_free(&text);
    strbuf_free(&all);
}

START_TEST(long_texts_in_the_file)
{
    static const struct {
        const char *json, *part;
    } cases[] = {
        {"{\"model\": {\"type\": \"BPE\", " VOCAB ", \"merges\": [], \"byte_fallback\": true, "
         "\"continuing_subword_prefix\": \"%s\"}}",
         "BPE: 'continuing_subword_prefix' has 1000000 bytes, at most 64"},
        {"{\"model\": {\"type\": \"BPE\", " VOCAB
         ", \"merges\": [], \"end_of_word_suffix\": \"%s\"}}",
         "BPE: 'end_of_word_suffix'"},
        {"{\"model\": {\"type\": \"WordPiece\", " VOCAB ", \"continuing_subword_prefix\": \"%s\"}}",
         "WordPiece: 'continuing_subword_prefix'"},
        {"{\"model\": {\"type\": \"BPE\", \"vocab\": {\"%s\": 0}, \"merges\": []}}",
         "BPE: a token has 1000000 bytes"},
        {"{\"model\": {\"type\": \"Unigram\", \"vocab\": [[\"%s\", 0]]}}",
         "Unigram: a token has 1000000 bytes"},
        {"{" MODEL ", \"added_tokens\": [{\"id\": 4, \"content\": \"%s\"}]}",
         "added_tokens: 'content'"},
        {"{" MODEL ", \"normalizer\": {\"type\": \"Prepend\", \"prepend\": \"%s\"}}",
         "Prepend: 'prepend'"},
        {"{" MODEL ", \"normalizer\": {\"type\": \"Replace\", \"pattern\": {\"String\": \"a\"}, "
         "\"content\": \"%s\"}}",
         "Replace: 'content'"},
        {"{" MODEL ", \"decoder\": {\"type\": \"Replace\", \"pattern\": {\"String\": \"a\"}, "
         "\"content\": \"%s\"}}",
         "Replace: 'content'"},
        {"{" MODEL ", \"decoder\": {\"type\": \"WordPiece\", \"prefix\": \"%s\"}}",
         "WordPiece: 'prefix'"},
        {"{" MODEL ", \"decoder\": {\"type\": \"BPEDecoder\", \"suffix\": \"%s\"}}",
         "BPEDecoder: 'suffix'"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        refuses_long(cases[i].json, 1000000, W1209, cases[i].part);
}
END_TEST

START_TEST(templates_in_a_sequence)
{
    strbuf json = {0};
    strbuf_add(&json, "{" MODEL ", \"post_processor\": {\"type\": \"Sequence\", \"processors\": [");
    for (int i = 0; i < 1000; i++)
        strbuf_add(&json,
                   "%s{\"type\": \"BertProcessing\", \"sep\": [\"a\", 0], \"cls\": [\"a\", 0]}",
                   i ? ", " : "");
    strbuf_add(&json, "]}}");
    refuses(json.p, W1209, "post_processor: more than 256 tokens");
    strbuf_free(&json);
}
END_TEST

/* A prefix of the longest kind before every byte of a long word: as many tokens as that makes, no more memory. */
START_TEST(prefixes_of_bytes)
{
    allow_one_gigabyte();
    weft_diag *dg = diag_create();
    tok *t = NULL;
    tok_ids ids = {0};
    strbuf text = {0};
    strbuf_fill(&text, 'b', 100000);
    ck_assert_int_eq(
        open_json(
            dg,
            "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"b\": 0, \"<0x61>\": 1, \"<0x62>\": 2}, "
            "\"merges\": [], \"byte_fallback\": true, \"continuing_subword_prefix\": "
            "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}}",
            &t),
        WEFT_OK);
    ck_assert_int_eq(tok_encode(dg, t, strbuf_view(&text), TOK_ENCODE_DEFAULT, &ids), WEFT_OK);
    ck_assert_uint_eq(ids.n, 1 + (text.n - 1) * 65);
    VEC_FREE(&ids);
    strbuf_free(&text);
    tok_close(t);
    diag_destroy(dg);
}
END_TEST

/* Words as long as a file may ask for, of tokens that are as long. */
START_TEST(long_word_pieces)
{
    weft_diag *dg = diag_create();
    tok *t = NULL;
    tok_ids ids = {0};
    strbuf json = {0}, text = {0}, token = {0};
    strbuf_fill(&token, 'a', 60000);
    strbuf_add(&json,
               "{\"model\": {\"type\": \"WordPiece\", \"max_input_chars_per_word\": 65536, "
               "\"vocab\": {\"u\": 0, \"a\": 1, \"##a\": 2, \"##%sb\": 3}, \"unk_token\": \"u\"}}",
               token.p);
    strbuf_fill(&text, 'a', 8000);
    ck_assert_int_eq(open_json(dg, json.p, &t), WEFT_OK);
    ck_assert_int_eq(tok_encode(dg, t, strbuf_view(&text), TOK_ENCODE_DEFAULT, &ids), WEFT_OK);
    ck_assert_uint_eq(ids.n, text.n);
    ck_assert_int_eq(ids.at[0], 1);
    ck_assert_int_eq(ids.at[ids.n - 1], 2);
    VEC_FREE(&ids);
    strbuf_free(&json);
    strbuf_free(&text);
    strbuf_free(&token);
    tok_close(t);
    diag_destroy(dg);
}
END_TEST

SUITE_MAIN("tok_bounds", normalizers, pre_tokenizers, decoders, long_texts_in_the_file,
           templates_in_a_sequence, prefixes_of_bytes, long_word_pieces)
