/* fuzz_gguf_tokenizer.c - tokenizers as GGUF files carry them, which then encode and decode a text.
 *
 * Bytes that begin with GGUF are a file. Others are made into one, so that a change does not break
 * the lengths of everything behind it: the first byte chooses the family, the second the pattern, the third
 * the flags; then lines, of tokens up to an empty one, of merges behind it. The first byte of a token's line
 * is its type, the second its score. */
#include "tests/formats/gguf_bytes.h"
#include "tests/fuzz/fuzz_tok.h"

#include <math.h>

enum { ARRAY = 9, TEXT = 8, I32 = 5, F32 = 6, BOOL = 7, LINES_MAX = 400 };
enum { N_KEY = 12, HEAD = 3 };

static const char *const families[] = {"gpt2", "llama", "t5", "bert", "none"};
static const char *const pres[] = {"default", "gpt-2",     "llama-bpe", "qwen2", "deepseek-llm",
                                   "tekken",  "starcoder", "falcon",    "none"};

typedef struct {
    str at[LINES_MAX];
    size_t n;
} lines;

/* Lines up to an empty one or the end; what is left stays in text. */
static void take_lines(str *text, lines *out)
{
    out->n = 0;
    while (text->n && out->n < LINES_MAX) {
        const char *end = memchr(text->p, '\n', text->n);
        size_t n = end ? (size_t)(end - text->p) : text->n;
        str line = {text->p, n};
        n += end != NULL;
        *text = (str){text->p + n, text->n - n};
        if (!line.n)
            return;
        out->at[out->n++] = line;
    }
}

static void put_array(strbuf *b, const char *name, uint32_t type, size_t n)
{
    put_text(b, name);
    put_u32(b, ARRAY);
    put_u32(b, type);
    put_u64(b, n);
}

static void put_str(strbuf *b, str s)
{
    put_u64(b, s.n);
    strbuf_put(b, s);
}

static void put_bool(strbuf *b, const char *name, bool x)
{
    put_text(b, name);
    put_u32(b, BOOL);
    strbuf_putc(b, x ? 1 : 0);
}

static uint32_t byte_of(str line, size_t i)
{
    return i < line.n ? (unsigned char)line.p[i] : 0;
}

static float score_of(uint32_t byte)
{
    static const float odd[] = {NAN, INFINITY, -INFINITY, 0, 1e38f};
    return byte < sizeof odd / sizeof *odd ? odd[byte] : -(float)byte;
}

static void put_tokens(strbuf *b, const lines *tokens)
{
    put_array(b, "tokenizer.ggml.tokens", TEXT, tokens->n);
    for (size_t i = 0; i < tokens->n; i++) {
        str s = tokens->at[i];
        put_str(b, s.n > 2 ? (str){s.p + 2, s.n - 2} : (str){s.p, 0});
    }
    put_array(b, "tokenizer.ggml.token_type", I32, tokens->n);
    for (size_t i = 0; i < tokens->n; i++)
        put_u32(b, byte_of(tokens->at[i], 0) % 8);
    put_array(b, "tokenizer.ggml.scores", F32, tokens->n);
    for (size_t i = 0; i < tokens->n; i++) {
        float score = score_of(byte_of(tokens->at[i], 1));
        strbuf_put(b, (str){(const char *)&score, sizeof score});
    }
}

static void put_file(strbuf *b, str text)
{
    static lines tokens, merges;
    uint32_t flags = (unsigned char)text.p[2];
    put_head(b, 3, 0, N_KEY);
    put_key_str(b, "general.architecture", "toy");
    put_key_str(b, "general.name", flags & 1 ? "Phi-3" : "toy");
    put_key_str(b, "tokenizer.ggml.model",
                families[(unsigned char)text.p[0] % (sizeof families / sizeof *families)]);
    put_key_str(b, "tokenizer.ggml.pre",
                pres[(unsigned char)text.p[1] % (sizeof pres / sizeof *pres)]);
    put_bool(b, "tokenizer.ggml.add_bos_token", flags & 2);
    put_bool(b, "tokenizer.ggml.add_space_prefix", flags & 4);
    put_bool(b, "tokenizer.ggml.remove_extra_whitespaces", flags & 8);
    put_key_u32(b, "tokenizer.ggml.unknown_token_id", flags >> 4);
    text = (str){text.p + HEAD, text.n - HEAD};
    take_lines(&text, &tokens);
    take_lines(&text, &merges);
    put_tokens(b, &tokens);
    put_array(b, "tokenizer.ggml.merges", TEXT, merges.n);
    for (size_t i = 0; i < merges.n; i++)
        put_str(b, merges.at[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    strbuf b = {0};
    if (size < 4)
        return 0;
    if (memcmp(data, "GGUF", 4) == 0)
        strbuf_put(&b, (str){(const char *)data, size});
    else
        put_file(&b, (str){(const char *)data, size});
    weft_diag *dg = diag_create();
    model_file *mf = NULL;
    tok *t = NULL;
    weft_status status = model_file_open_memory(dg, b.p, b.n, "fuzz.gguf", &mf);
    if (status == WEFT_OK)
        status = tok_open_model(dg, mf, &t);
    fuzz_check(dg, status);
    model_file_close(mf);
    if (status == WEFT_OK)
        fuzz_use_tok(dg, t);
    tok_close(t);
    diag_destroy(dg);
    strbuf_free(&b);
    return 0;
}
