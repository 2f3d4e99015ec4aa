/* test_tok.c - tokenizers on what recorded cases do not show: there and back, streams, bad files. */
#include "runtime/base/utf8.h"
#include "runtime/text/tok.h"
#include "tests/base/suite.h"

#define DATA WEFT_SOURCE_DIR "/tests/text/data/"

static tok *open_path(const char *path)
{
    weft_diag *dg = diag_create();
    tok *t = NULL;
    if (tok_open(dg, path, &t) != WEFT_OK)
        diag_print(dg, stderr, false);
    ck_assert_ptr_nonnull(t);
    diag_destroy(dg);
    return t;
}

static tok *open_text(const char *json)
{
    weft_diag *dg = diag_create();
    tok *t = NULL;
    if (tok_open_text(dg, "test", str_of(json), &t) != WEFT_OK)
        diag_print(dg, stderr, false);
    ck_assert_ptr_nonnull(t);
    diag_destroy(dg);
    return t;
}

/* The only diagnostic of opening json; its message holds `part`. */
static void refuses(const char *json, weft_code code, const char *part)
{
    weft_diag *dg = diag_create();
    tok *t = NULL;
    ck_assert_int_ne(tok_open_text(dg, "test", str_of(json), &t), WEFT_OK);
    ck_assert_ptr_null(t);
    ck_assert_uint_eq(diag_count(dg), 1);
    diag_entry e = diag_at(dg, 0);
    ck_assert_msg(e.code == code && memmem(e.message.p, e.message.n, part, strlen(part)),
                  "%s: %.*s", diag_row_of(e.code)->name, STR_ARG(e.message));
    diag_destroy(dg);
}

static weft_code encode_fails(tok *t, str text)
{
    weft_diag *dg = diag_create();
    tok_ids ids = {0};
    VEC_PUSH(&ids, 7);
    ck_assert_int_ne(tok_encode(dg, t, text, TOK_ENCODE_DEFAULT, &ids), WEFT_OK);
    ck_assert_uint_eq(ids.n, 1);
    weft_code code = diag_at(dg, 0).code;
    VEC_FREE(&ids);
    diag_destroy(dg);
    return code;
}

/* Encodes and compares with ids, which -1 ends. */
static void gives(tok *t, const char *text, const int32_t *want)
{
    weft_diag *dg = diag_create();
    tok_ids ids = {0};
    ck_assert_int_eq(tok_encode(dg, t, str_of(text), TOK_ENCODE_DEFAULT, &ids), WEFT_OK);
    for (size_t i = 0; i < ids.n; i++)
        ck_assert_int_eq(ids.at[i], want[i]);
    ck_assert_int_eq(want[ids.n], -1);
    VEC_FREE(&ids);
    diag_destroy(dg);
}

#define IDS(...) ((const int32_t[]){__VA_ARGS__, -1})

static uint64_t random_state = 1;
static uint32_t random_below(uint32_t n)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((random_state >> 33) % n);
}

static void random_text(strbuf *out)
{
    static const struct {
        uint32_t first, n;
    } blocks[] = {{0, 0x80},       {0x20, 0x5f},     {0x80, 0x780},    {0x900, 0x500},
                  {0x2000, 0x300}, {0x3040, 0x6000}, {0x1f300, 0x400}, {0xe000, 0x102000}};
    strbuf_reset(out);
    for (uint32_t i = random_below(60); i-- > 0;) {
        uint32_t b = random_below(sizeof blocks / sizeof *blocks);
        uint32_t cp = blocks[b].first + random_below(blocks[b].n);
        char bytes[4];
        size_t n = cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
        static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
        for (size_t k = n; k-- > 1; cp >>= 6)
            bytes[k] = (char)(0x80 | (cp & 0x3f));
        bytes[0] = (char)(lead[n] | cp);
        strbuf_put(out, (str){bytes, n});
    }
}

static void there_and_back(const char *path)
{
    weft_diag *dg = diag_create();
    tok *t = open_path(path);
    tok_ids ids = {0};
    strbuf text = {0}, back = {0}, streamed = {0};
    tok_stream *s = tok_stream_create(t, true);
    for (int i = 0; i < 10000; i++) {
        random_text(&text);
        ids.n = 0;
        strbuf_reset(&back);
        strbuf_reset(&streamed);
        ck_assert_int_eq(tok_encode(dg, t, strbuf_view(&text), TOK_ENCODE_DEFAULT, &ids), WEFT_OK);
        ck_assert_int_eq(tok_decode(dg, t, ids.at, ids.n, true, &back), WEFT_OK);
        ck_assert(str_eq(strbuf_view(&text), strbuf_view(&back)));
        for (size_t k = 0; k < ids.n; k++)
            tok_stream_put(s, ids.at[k], &streamed);
        tok_stream_flush(s, &streamed);
        ck_assert(str_eq(strbuf_view(&text), strbuf_view(&streamed)));
    }
    tok_stream_destroy(s);
    strbuf_free(&text);
    strbuf_free(&back);
    strbuf_free(&streamed);
    VEC_FREE(&ids);
    tok_close(t);
    diag_destroy(dg);
}

START_TEST(random_texts_come_back)
{
    there_and_back(DATA "llama3/tokenizer.json");
    there_and_back(DATA "llama2/tokenizer.json");
}
END_TEST

START_TEST(text_that_is_not_utf8)
{
    tok *t = open_path(DATA "llama3/tokenizer.json");
    ck_assert_int_eq(encode_fails(t, STR("a\xff")), W1207);
    ck_assert_int_eq(encode_fails(t, STR("\xed\xa0\x80")), W1207);
    ck_assert_int_eq(encode_fails(t, STR("a\xe2\x82")), W1207);
    tok_close(t);
}
END_TEST

START_TEST(special_tokens)
{
    tok *t = open_path(DATA "llama3/tokenizer.json");
    weft_diag *dg = diag_create();
    tok_ids ids = {0};
    str text = STR("<|eot_id|>");
    int32_t eot = tok_find(t, text);
    ck_assert(tok_is_special(t, eot) && tok_is_end(t, eot));
    ck_assert_int_eq(tok_encode(dg, t, text, (tok_encode_flags){.parse_special = true}, &ids), 0);
    ck_assert_uint_eq(ids.n, 1);
    ck_assert_int_eq(ids.at[0], eot);
    ids.n = 0;
    ck_assert_int_eq(tok_encode(dg, t, text, (tok_encode_flags){0}, &ids), WEFT_OK);
    ck_assert_uint_gt(ids.n, 1);
    ck_assert_uint_eq(tok_text(t, tok_vocab_size(t)).n, 0);
    ck_assert_int_eq(tok_find(t, STR("no such token")), TOK_NONE);
    VEC_FREE(&ids);
    diag_destroy(dg);
    tok_close(t);
}
END_TEST

/* One character for each token, with a hole at 3. */
#define LETTERS "\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"c\":4,\"abc\":5}"

START_TEST(holes_in_the_vocabulary)
{
    tok *t = open_text("{\"model\":{\"type\":\"BPE\"," LETTERS ",\"merges\":[\"a b\",\"ab c\"]},"
                       "\"decoder\":{\"type\":\"Fuse\"}}");
    weft_diag *dg = diag_create();
    strbuf out = {0};
    gives(t, "abcab", IDS(5, 2));
    gives(t, "axb", IDS(2)); /* what has no token is dropped */
    ck_assert_int_eq(tok_decode(dg, t, (const int32_t[]){3, 5, 99, -4, 0}, 5, false, &out), 0);
    ck_assert(str_eqz(strbuf_view(&out), "abca"));
    strbuf_free(&out);
    diag_destroy(dg);
    tok_close(t);
}
END_TEST

START_TEST(what_is_unknown_is_named)
{
    static const char model[] = "\"model\":{\"type\":\"BPE\"," LETTERS ",\"merges\":[]}";
    static const struct {
        const char *member, *name;
    } rows[] = {
        {"\"normalizer\":{\"type\":\"Rot13\"}", "normalizer 'Rot13'"},
        {"\"pre_tokenizer\":{\"type\":\"UnicodeScripts\"}", "pre_tokenizer 'UnicodeScripts'"},
        {"\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"String\":\"a\"},\"behavior\":\"X\"}",
         "behavior 'X'"},
        {"\"post_processor\":{\"type\":\"Sequence\",\"processors\":[{\"type\":\"P\"}]}", "'P'"},
        {"\"decoder\":{\"type\":\"CTC\"}", "decoder 'CTC'"},
    };
    char json[1024];
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        snprintf(json, sizeof json, "{%s,%s}", model, rows[i].member);
        refuses(json, W1202, rows[i].name);
    }
    refuses("{\"model\":{\"type\":\"WordLevel\",\"vocab\":{}}}", W1202, "model 'WordLevel'");
}
END_TEST

START_TEST(damaged_files)
{
    refuses("{", W1014, "");
    refuses("{}", W1203, "'model'");
    refuses("{\"model\":{\"type\":\"BPE\",\"vocab\":{},\"merges\":[]}}", W1203, "without tokens");
    refuses("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":-1},\"merges\":[]}}", W1203, "'a'");
    refuses("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":1,\"b\":1},\"merges\":[]}}", W1203,
            "same id");
    refuses("{\"model\":{\"type\":\"BPE\"," LETTERS ",\"merges\":[\"a x\"]}}", W1206, "'x'");
    refuses("{\"model\":{\"type\":\"BPE\"," LETTERS ",\"merges\":[\"b a\"]}}", W1206, "'ba'");
    refuses("{\"model\":{\"type\":\"BPE\"," LETTERS ",\"merges\":[\"a\"]}}", W1203, "merge 0");
    refuses("{\"model\":{\"type\":\"BPE\"," LETTERS ",\"merges\":[],\"dropout\":0.5}}", W1202,
            "dropout");
    refuses("{\"model\":{\"type\":\"BPE\"," LETTERS ",\"merges\":[],\"unk_token\":\"?\"}}", W1203,
            "'?'");
    refuses("{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\"]]}}", W1203, "token 0");
    refuses("{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\",0]],\"unk_id\":4}}", W1203,
            "unk_id");
    refuses("{\"model\":{\"type\":\"BPE\"," LETTERS ",\"merges\":[]},\"normalizer\":"
            "{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"/////w==\"}}",
            W1203, "precompiled_charsmap");
    refuses("{\"model\":{\"type\":\"BPE\"," LETTERS ",\"merges\":[]},\"pre_tokenizer\":"
            "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(?~a)\"},\"behavior\":\"Isolated\"}}",
            W1204, "absent operator");
}
END_TEST

START_TEST(text_without_tokens)
{
    tok *t = open_text("{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\",-1]]}}");
    gives(t, "aa", IDS(0, 0));
    ck_assert_int_eq(encode_fails(t, STR("ab")), W1208);
    tok_close(t);
}
END_TEST

START_TEST(endless_backtracking)
{
    tok *t = open_text("{\"model\":{\"type\":\"BPE\"," LETTERS ",\"merges\":[]},\"pre_tokenizer\":"
                       "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(?:(?:a+)+)+[XY]\"},"
                       "\"behavior\":\"Isolated\"}}");
    ck_assert_int_eq(encode_fails(t, STR("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")),
                     W1205);
    gives(t, "ab", IDS(0, 1));
    tok_close(t);
}
END_TEST

START_TEST(long_words)
{
    tok *t = open_path(DATA "llama2/tokenizer.json");
    weft_diag *dg = diag_create();
    tok_ids ids = {0};
    strbuf text = {0}, back = {0};
    for (size_t n = 1; n <= 3 << 20; n = n * 7 + 1) {
        strbuf_fill(&text, "ab e"[n % 4], n);
        ids.n = 0;
        strbuf_reset(&back);
        ck_assert_int_eq(tok_encode(dg, t, strbuf_view(&text), TOK_ENCODE_DEFAULT, &ids), WEFT_OK);
        ck_assert_int_eq(tok_decode(dg, t, ids.at, ids.n, true, &back), WEFT_OK);
        ck_assert(str_eq(strbuf_view(&text), strbuf_view(&back)));
    }
    strbuf_free(&text);
    strbuf_free(&back);
    VEC_FREE(&ids);
    diag_destroy(dg);
    tok_close(t);
}
END_TEST

START_TEST(word_pieces)
{
    tok *t = open_text(
        "{\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\",\"vocab\":{\"[UNK]\":0,"
        "\"un\":1,\"##able\":2,\"##a\":3,\",\":4,\"cafe\":5}},\"normalizer\":{\"type\":"
        "\"BertNormalizer\"},\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},\"decoder\":"
        "{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true}}");
    weft_diag *dg = diag_create();
    strbuf out = {0};
    gives(t, "Unable, CAF\u00c9 unx", IDS(1, 2, 4, 5, 0));
    ck_assert_int_eq(tok_decode(dg, t, (const int32_t[]){1, 2, 4, 5}, 4, false, &out), WEFT_OK);
    ck_assert(str_eqz(strbuf_view(&out), "unable, cafe"));
    strbuf_free(&out);
    diag_destroy(dg);
    tok_close(t);
}
END_TEST

/* Two patterns are not run as patterns: what they give is that of the same in brackets, which is. */
START_TEST(digits_by_threes)
{
    static const char *const patterns[] = {"\\\\d{1,3}(?=(?:\\\\d{3})*\\\\b)",
                                           "(?=(\\\\d{3})+(?!\\\\d))"};
    static const char *const parts[] = {"1", "23",     "456",    "a", " ",
                                        "_", "\u0663", "\u00bd", ".", "\u00e9"};
    weft_diag *dg = diag_create();
    for (size_t k = 0; k < COUNT_OF(patterns); k++) {
        tok *t[2];
        for (int i = 0; i < 2; i++) {
            strbuf json = {0};
            /* every piece is one unknown token, so that the ids show where the cuts are */
            strbuf_add(
                &json,
                "{\"model\": {\"type\": \"WordPiece\", \"unk_token\": \"u\", "
                "\"continuing_subword_prefix\": \"#\", \"vocab\": {\"u\": 0, \"1\": 1, "
                "\"#1\": 2, \"2\": 3, \"#2\": 4, \"3\": 5, \"#3\": 6, \"#a\": 7, \"a\": 8}}, "
                "\"pre_tokenizer\": {\"type\": \"Split\", \"behavior\": \"Isolated\", "
                "\"pattern\": {\"Regex\": \"%s%s%s\"}}}",
                i ? "(?:" : "", patterns[k], i ? ")" : "");
            t[i] = open_text(json.p);
            strbuf_free(&json);
        }
        for (int round = 0; round < 3000; round++) {
            strbuf text = {0};
            tok_ids ids[2] = {{0}};
            for (uint32_t n = random_below(12); n > 0; n--)
                strbuf_put(&text, str_of(parts[random_below((uint32_t)COUNT_OF(parts))]));
            for (int i = 0; i < 2; i++)
                ck_assert_int_eq(
                    tok_encode(dg, t[i], strbuf_view(&text), TOK_ENCODE_DEFAULT, &ids[i]), WEFT_OK);
            ck_assert_msg(
                ids[0].n == ids[1].n &&
                    (!ids[0].n || memcmp(ids[0].at, ids[1].at, ids[0].n * sizeof *ids[0].at) == 0),
                "%s: %.*s", patterns[k], STR_ARG(text));
            VEC_FREE(&ids[0]);
            VEC_FREE(&ids[1]);
            strbuf_free(&text);
        }
        strbuf text = {0};
        strbuf_fill(&text, '1', 1 << 20); /* an hour, as a pattern */
        strbuf_putc(&text, 'a');
        tok_ids ids = {0};
        ck_assert_int_eq(tok_encode(dg, t[0], strbuf_view(&text), TOK_ENCODE_DEFAULT, &ids),
                         WEFT_OK);
        VEC_FREE(&ids);
        strbuf_free(&text);
        tok_close(t[0]);
        tok_close(t[1]);
    }
    diag_destroy(dg);
}
END_TEST

START_TEST(beside_the_tokenizer)
{
    temp_dir d = temp_dir_create();
    temp_path paths[] = {
        temp_file(&d, "tokenizer.json",
                  STR("{\"model\":{\"type\":\"BPE\"," LETTERS ",\"merges\":[]}}")),
        temp_file(&d, "tokenizer_config.json",
                  STR("{\"bos_token\":{\"content\":\"a\"},\"eos_token\":\"b\",\"chat_template\":"
                      "[{\"name\":\"rag\",\"template\":\"R\"},"
                      "{\"name\":\"default\",\"template\":\"D\"}]}")),
        temp_file(&d, "generation_config.json", STR("{\"eos_token_id\":[1,4,77]}")),
    };
    tok *t = open_path(d.path);
    size_t n;
    const int32_t *ends = tok_ends(t, &n);
    ck_assert_int_eq(tok_bos(t), 0);
    ck_assert_int_eq(tok_eos(t), 1);
    ck_assert_uint_eq(n, 2);
    ck_assert(ends[0] == 1 && ends[1] == 4 && tok_is_end(t, 4) && !tok_is_end(t, 77));
    ck_assert(str_eqz(tok_chat_template(t), "D"));
    ck_assert(str_eqz(tok_named_text(t, "bos_token"), "a"));
    ck_assert(str_eqz(tok_named_text(t, "pad_token"), ""));
    tok_close(t);
    for (size_t i = 0; i < COUNT_OF(paths); i++)
        unlink(paths[i].path);
    rmdir(d.path);
}
END_TEST

SUITE_MAIN("tok", random_texts_come_back, text_that_is_not_utf8, special_tokens,
           holes_in_the_vocabulary, what_is_unknown_is_named, damaged_files, text_without_tokens,
           endless_backtracking, long_words, word_pieces, beside_the_tokenizer, digits_by_threes)
