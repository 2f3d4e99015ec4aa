/* fuzz_prompt.c - any bytes as a prompt, for a tokenizer that the first byte chooses.
 *
 * Text that is not UTF-8 is refused by name, other text never. The ids are tokens, the same a second
 * time; their text is UTF-8, the same decoded whole and as a stream, and the prompt itself where the
 * tokenizer loses nothing. A chat template puts the prompt into a message as it is. */
#include "runtime/base/json_write.h"
#include "runtime/text/chat.h"
#include "runtime/text/tok_unicode.h"
#include "tests/fuzz/fuzz_tok.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PATTERN_QWEN2                                                                              \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}| "              \
    "?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"
#define SPLIT(pattern)                                                                             \
    "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"" pattern "\"}, \"behavior\": \"Isolated\"}"
#define BYTES "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"use_regex\": false}"
#define SEQUENCE(name, steps) "{\"type\": \"Sequence\", \"" name "\": [" steps "]}"
#define LLAMA_DECODER                                                                              \
    SEQUENCE("decoders",                                                                           \
             "{\"type\": \"Replace\", \"pattern\": {\"String\": \"\u2581\"}, \"content\": \" \"}," \
             "{\"type\": \"ByteFallback\"}, {\"type\": \"Fuse\"},"                                 \
             "{\"type\": \"Strip\", \"content\": \" \", \"start\": 1, \"stop\": 0}")
#define ADDED                                                                                      \
    "\"added_tokens\": ["                                                                          \
    "{\"id\": 900, \"content\": \"<s>\", \"special\": true, \"normalized\": false},"               \
    "{\"id\": 901, \"content\": \"<|im_end|>\", \"special\": true, \"normalized\": false, "        \
    "\"lstrip\": true, \"rstrip\": true},"                                                         \
    "{\"id\": 902, \"content\": \"tool\", \"single_word\": true, \"normalized\": true}]"

typedef enum { VOCAB_BYTE_LEVEL, VOCAB_FALLBACK, VOCAB_SCORED, VOCAB_WORDS } vocab_kind;

/* clang-format off */
static const struct {
    vocab_kind vocab;
    bool exact;        /* decodes to the text that went in */
    const char *rest;  /* of the file */
} families[] = {
    {VOCAB_BYTE_LEVEL, true,  "\"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false}, \"decoder\": {\"type\": \"ByteLevel\"}"},
    {VOCAB_BYTE_LEVEL, false, "\"normalizer\": {\"type\": \"NFC\"}, \"pre_tokenizer\": " SEQUENCE("pretokenizers", SPLIT(PATTERN_QWEN2) ", " BYTES) ", \"decoder\": {\"type\": \"ByteLevel\"}, " ADDED},
    {VOCAB_BYTE_LEVEL, true,  "\"pre_tokenizer\": " SEQUENCE("pretokenizers", SPLIT("[\\r\\n]") ", " SPLIT("\\\\s?\\\\p{L}+") ", " SPLIT("\\\\s+$") ", {\"type\": \"Digits\", \"individual_digits\": true}, " BYTES) ", \"decoder\": {\"type\": \"ByteLevel\"}"},
    {VOCAB_FALLBACK,   false, "\"normalizer\": " SEQUENCE("normalizers", "{\"type\": \"Prepend\", \"prepend\": \"\u2581\"}, {\"type\": \"Replace\", \"pattern\": {\"String\": \" \"}, \"content\": \"\u2581\"}") ", \"decoder\": " LLAMA_DECODER ", " ADDED},
    {VOCAB_FALLBACK,   false, "\"normalizer\": {\"type\": \"Replace\", \"pattern\": {\"Regex\": \" {2,}|\\\\t+$\"}, \"content\": \"\u2581\"}, \"pre_tokenizer\": {\"type\": \"Metaspace\", \"prepend_scheme\": \"first\"}, \"decoder\": " LLAMA_DECODER},
    {VOCAB_SCORED,     false, "\"normalizer\": " SEQUENCE("normalizers", "{\"type\": \"NFKD\"}, {\"type\": \"StripAccents\"}, {\"type\": \"Lowercase\"}, {\"type\": \"Strip\"}") ", \"pre_tokenizer\": {\"type\": \"Metaspace\"}, \"decoder\": {\"type\": \"Metaspace\"}, " ADDED},
    {VOCAB_WORDS,      false, "\"normalizer\": {\"type\": \"BertNormalizer\"}, \"pre_tokenizer\": {\"type\": \"BertPreTokenizer\"}, \"decoder\": {\"type\": \"WordPiece\", \"prefix\": \"##\"}"},
    {VOCAB_WORDS,      false, "\"normalizer\": {\"type\": \"NFKC\"}, \"pre_tokenizer\": {\"type\": \"Whitespace\"}, \"decoder\": {\"type\": \"WordPiece\", \"prefix\": \"##\", \"cleanup\": false}, " ADDED},
};
/* clang-format on */
enum { N_FAMILY = sizeof families / sizeof *families };

static const char *const words[] = {"th", "he", "in", "er", "an", "re", "ab", "aa", "11"};
enum { N_WORD = sizeof words / sizeof *words };

/* A vocabulary as JSON: an object of ids, or for Unigram a list of texts with scores. */
typedef struct {
    strbuf *out;
    bool scored;
    int n;
} vocab_text;

static void put_token(vocab_text *v, str text)
{
    json_writer w = {.out = v->out};
    if (v->n)
        strbuf_putc(v->out, ',');
    strbuf_put(v->out, v->scored ? STR("[") : STR(""));
    json_str(&w, text);
    if (v->scored)
        strbuf_add(v->out, ",-%d]", 1 + v->n % 13);
    else
        strbuf_add(v->out, ":%d", v->n);
    v->n++;
}

static void put_chars(vocab_text *v, const char *prefix)
{
    static const char *const more[] = {"\u00e9", "\u2581", "\u6f22", "e\u0301", "\u0301"};
    strbuf text = {0};
    for (int c = '!'; c < 0x7f; c++) {
        strbuf_reset(&text);
        strbuf_add(&text, "%s%c", prefix, c);
        put_token(v, strbuf_view(&text));
    }
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        strbuf_reset(&text);
        strbuf_add(&text, "%s%s", prefix, more[i]);
        put_token(v, strbuf_view(&text));
    }
    for (size_t i = 0; i < N_WORD; i++) {
        strbuf_reset(&text);
        strbuf_add(&text, "%s%s", prefix, words[i]);
        put_token(v, strbuf_view(&text));
    }
    strbuf_free(&text);
}

static void put_model(strbuf *out, vocab_kind kind)
{
    static const char *const types[] = {"BPE", "BPE", "Unigram", "WordPiece"};
    vocab_text v = {.out = out, .scored = kind == VOCAB_SCORED};
    strbuf text = {0};
    strbuf_add(out, "\"model\": {\"type\": \"%s\", \"vocab\": %c", types[kind],
               v.scored ? '[' : '{');
    put_token(&v, STR("[UNK]"));
    for (unsigned b = 0; b < 256 && (kind == VOCAB_BYTE_LEVEL || kind == VOCAB_FALLBACK); b++) {
        strbuf_reset(&text);
        if (kind == VOCAB_BYTE_LEVEL)
            uni_add(&text, uni_of_byte((unsigned char)b));
        else
            strbuf_add(&text, "<0x%02X>", b);
        put_token(&v, strbuf_view(&text));
    }
    if (kind != VOCAB_BYTE_LEVEL)
        put_chars(&v, "");
    if (kind == VOCAB_WORDS)
        put_chars(&v, "##");
    for (size_t i = 0; kind == VOCAB_BYTE_LEVEL && i < N_WORD; i++)
        put_token(&v, str_of(words[i]));
    strbuf_putc(out, v.scored ? ']' : '}');
    if (kind == VOCAB_SCORED)
        strbuf_add(out, ", \"unk_id\": 0");
    else
        strbuf_add(out, ", \"unk_token\": \"[UNK]\"");
    if (kind == VOCAB_FALLBACK)
        strbuf_add(out, ", \"byte_fallback\": true, \"fuse_unk\": true");
    strbuf_add(out, ", \"merges\": [");
    for (size_t i = 0; i < N_WORD; i++)
        strbuf_add(out, "%s\"%c %c\"", i ? "," : "", words[i][0], words[i][1]);
    strbuf_add(out, "]}");
    strbuf_free(&text);
}

static tok *made[N_FAMILY];
static chat_template *chat;

static tok *family(weft_diag *dg, size_t k)
{
    strbuf json = {0};
    if (made[k])
        return made[k];
    strbuf_putc(&json, '{');
    put_model(&json, families[k].vocab);
    strbuf_add(&json, ", %s}", families[k].rest);
    weft_status status = tok_open_text(dg, "family", strbuf_view(&json), &made[k]);
    if (status != WEFT_OK)
        diag_print(dg, stderr, false);
    WEFT_ASSERT(status == WEFT_OK);
    strbuf_free(&json);
    return made[k];
}

static void check_ids(weft_diag *dg, tok *t, str text, tok_encode_flags flags, tok_ids *ids)
{
    tok_ids again = {0};
    weft_status status = tok_encode(dg, t, text, flags, ids);
    if (status != WEFT_OK)
        diag_print(dg, stderr, false);
    WEFT_ASSERT(status == WEFT_OK);
    WEFT_ASSERT(tok_encode(dg, t, text, flags, &again) == WEFT_OK);
    WEFT_ASSERT(again.n == ids->n);
    for (size_t i = 0; i < ids->n; i++)
        WEFT_ASSERT(tok_has(t, ids->at[i]) && ids->at[i] == again.at[i]);
    VEC_FREE(&again);
}

static void check_decoding(weft_diag *dg, tok *t, const tok_ids *ids, bool skip, strbuf *whole)
{
    strbuf streamed = {0};
    tok_stream *s = tok_stream_create(t, skip);
    WEFT_ASSERT(tok_decode(dg, t, ids->at, ids->n, skip, whole) == WEFT_OK);
    fuzz_check_utf8(whole);
    for (size_t i = 0; i < ids->n; i++) {
        tok_stream_put(s, ids->at[i], &streamed);
        fuzz_check_utf8(&streamed);
    }
    tok_stream_flush(s, &streamed);
    fuzz_check_utf8(&streamed);
    WEFT_ASSERT(str_eq(strbuf_view(whole), strbuf_view(&streamed)));
    tok_stream_destroy(s);
    strbuf_free(&streamed);
}

static void check_chat(weft_diag *dg, tok *t, str text, bool valid)
{
    arena *a = arena_create();
    strbuf out = {0};
    tok_ids ids = {0};
    chat_message turn = {STR("user"), text};
    value messages = chat_messages(a, &turn, 1);
    if (!chat)
        WEFT_ASSERT(chat_open(dg, NULL, "chatml", &chat) == WEFT_OK);
    weft_status status =
        chat_render(dg, chat, &(chat_request){.messages = &messages, .generate = true}, &out);
    WEFT_ASSERT((status == WEFT_OK) == valid);
    if (valid) {
        WEFT_ASSERT(!text.n || memmem(out.p, out.n, text.p, text.n));
        fuzz_check_utf8(&out);
        check_ids(dg, t, strbuf_view(&out), (tok_encode_flags){.parse_special = true}, &ids);
    }
    VEC_FREE(&ids);
    strbuf_free(&out);
    arena_destroy(a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    weft_diag *dg = diag_create();
    size_t k = data[0] % N_FAMILY, bad;
    tok_encode_flags flags = {.add_special = data[1] & 1, .parse_special = data[1] & 2};
    str text = {(const char *)data + 2, size - 2};
    tok *t = family(dg, k);
    tok_ids ids = {0};
    strbuf whole = {0};
    bool valid = uni_check(text, &bad);
    if (valid) {
        check_ids(dg, t, text, flags, &ids);
        check_decoding(dg, t, &ids, data[1] & 4, &whole);
        if (families[k].exact)
            WEFT_ASSERT(str_eq(strbuf_view(&whole), text));
    } else {
        WEFT_ASSERT(tok_encode(dg, t, text, flags, &ids) != WEFT_OK && ids.n == 0);
        WEFT_ASSERT(diag_at(dg, 0).code == W1207);
        diag_reset(dg);
    }
    check_chat(dg, t, text, valid);
    VEC_FREE(&ids);
    strbuf_free(&whole);
    diag_destroy(dg);
    return 0;
}
