/* bench_grammar.c - how long does it take to know which tokens may come next, over the largest vocabularies in use?
 *
 *     bench_grammar [TOKENIZER [CASE|SCHEMAS.jsonl]]
 *
 * TOKENIZER is a tokenizer's folder or file, or a list of tokens as Qwen publishes it: X.tiktoken, bytes in base 64 a line.
 * A text that matches is cut into tokens, the longest first; for each the mask is asked for and the token accepted. `cold`
 * begins with a grammar that was just compiled and includes all that is worked out on the way: its mean over the text is
 * what the target is for. `warm` is the same grammar once more. Without a tokenizer the vocabulary is made up: 151 936 tokens of
 * bytes, words with and without a blank, numbers, punctuation, white space and other scripts. */
#include "bench/bench.h"
#include "runtime/base/clock.h"
#include "runtime/base/mem.h"
#include "runtime/base/json_write.h"
#include "runtime/base/vec.h"
#include "runtime/formats/json_read.h"
#include "runtime/grammar/grammar.h"
#include "runtime/text/tok.h"

#include <stdio.h>
#include <stdlib.h>

enum { N_TOKEN = 151936, N_RUN = 21 };
static const double target_ns = 50e3;

static strbuf bytes;
static size_t begin[N_TOKEN + 1];
static str text[N_TOKEN];
static int32_t n_text;

static void put(str s)
{
    if (n_text >= N_TOKEN - 1)
        return;
    begin[n_text++] = bytes.n;
    strbuf_put(&bytes, s);
}

static uint64_t seed = 42;
static unsigned draw(unsigned n)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(seed >> 33) % n;
}

static void make_word(strbuf *w)
{
    static const char *const part[] = {"a",  "e",  "i",  "o",  "u",   "an", "er", "in", "re", "st",
                                       "th", "on", "ti", "al", "ent", "ch", "pr", "qu", "sh", "ly"};
    strbuf_reset(w);
    if (draw(2))
        strbuf_putc(w, ' ');
    for (unsigned n = 2 + draw(4); n > 0; n--)
        strbuf_add(w, "%s", part[draw(20)]);
    if (draw(8) == 0 && w->p[0] != ' ')
        w->p[0] = (char)(w->p[0] - 'a' + 'A');
}

/* What was put, and an end token; logits past it have no bytes. */
static grammar_vocab *finish_vocab(void)
{
    begin[n_text] = bytes.n;
    for (int32_t i = 0; i < n_text; i++)
        text[i] = (str){bytes.p + begin[i], begin[i + 1] - begin[i]};
    text[n_text] = STR("</s>");
    return grammar_vocab_of(text, N_TOKEN, &(int32_t){n_text}, 1);
}

static grammar_vocab *make_vocab(void)
{
    static const char *const marks[] = {
        "\"",  "\":", "\",",  "\"}", "\"]", "\",\"", "\":\"", "\": \"", "\", \"",
        "{\"", "[\"", "[{",   "}]",  "},",  "},{\"", "\"},",  "\"}]",   ".\"",
        "!\"", "?\"", ".\",", ")\"", "'\"", "():",   "();",   "//",     "/*",
        "==",  "->",  "::",   "...", "--",  "],",    "]]",    "}}",     "{}"};
    strbuf w = {0};
    for (int i = 0; i < 256; i++)
        put((str){(char[]){(char)i}, 1});
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        put(str_of(marks[i]));
    for (int i = 0; i < 1000; i++) {
        strbuf_reset(&w);
        strbuf_add(&w, "%d", i);
        put(strbuf_view(&w));
    }
    for (size_t n = 2; n < 64; n++) {
        strbuf_reset(&w);
        strbuf_fill(&w, ' ', n);
        put(strbuf_view(&w));
        strbuf_reset(&w);
        strbuf_putc(&w, '\n');
        strbuf_fill(&w, ' ', n);
        put(strbuf_view(&w));
    }
    for (unsigned i = 0; i < 20000; i++) { /* Chinese: one or two characters */
        strbuf_reset(&w);
        for (unsigned k = 0; k <= i % 2; k++) {
            unsigned c = 0x4e00 + draw(20000);
            strbuf_putc(&w, (char)(0xe0 | c >> 12));
            strbuf_putc(&w, (char)(0x80 | (c >> 6 & 63)));
            strbuf_putc(&w, (char)(0x80 | (c & 63)));
        }
        put(strbuf_view(&w));
    }
    while (n_text < N_TOKEN - 1) {
        make_word(&w);
        if (draw(64) == 0)
            strbuf_add(&w, "%s", marks[draw(20)]);
        put(strbuf_view(&w));
    }
    strbuf_free(&w);
    return finish_vocab();
}

static const struct {
    const char *name;
    grammar_kind kind;
    const char *grammar, *text;
} cases[] = {
    {"json_object", GRAMMAR_JSON_SCHEMA, "{\"type\":\"object\"}",
     "{\"name\": \"Ada Lovelace\", \"born\": 1815, \"works\": [\"Notes on the engine\", "
     "\"Letters\"], "
     "\"place\": {\"city\": \"London\", \"country\": \"England\", \"alive\": false, \"score\": "
     "1.5e3}}"},
    {"person", GRAMMAR_JSON_SCHEMA,
     "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"},\"age\":{\"type\":"
     "\"integer\",\"minimum\":0,"
     "\"maximum\":150},\"mail\":{\"type\":\"string\",\"format\":\"email\"},\"tags\":{\"type\":"
     "\"array\",\"items\":{\"type\":"
     "\"string\",\"maxLength\":200},\"maxItems\":8},\"kind\":{\"enum\":[\"reader\",\"writer\","
     "\"editor\"]},\"notes\":{\"type\":"
     "\"string\"}},\"required\":[\"name\",\"age\",\"kind\"],\"additionalProperties\":false}",
     "{\"name\": \"Ada Lovelace\", \"age\": 36, \"mail\": \"ada@engine.org\", \"tags\": [\"first "
     "of them all\", "
     "\"programs and letters\", \"the rest of it\"], \"kind\": \"writer\", \"notes\": \"She wrote "
     "the first program, and "
     "the notes are longer than the paper that they explain; there is more to tell than fits "
     "here.\"}"},
    {"ticket",
     GRAMMAR_JSON_SCHEMA, /* short texts of bounded length: every mask inside them is another */
     "{\"type\":\"object\",\"properties\":{\"title\":{\"type\":\"string\",\"minLength\":1,"
     "\"maxLength\":80},"
     "\"summary\":{\"type\":\"string\",\"minLength\":20,\"maxLength\":160},\"assignee\":{\"type\":"
     "\"string\","
     "\"maxLength\":32},\"labels\":{\"type\":\"array\",\"items\":{\"type\":\"string\","
     "\"maxLength\":20},"
     "\"minItems\":1,\"maxItems\":5},\"created\":{\"type\":\"string\",\"format\":\"date-time\"},"
     "\"id\":{"
     "\"type\":\"string\",\"format\":\"uuid\"},\"url\":{\"type\":\"string\",\"format\":\"uri\"},"
     "\"code\":{"
     "\"type\":\"string\",\"pattern\":\"^[A-Z]{3}-[0-9]{1,6}$\"},\"priority\":{\"type\":"
     "\"integer\","
     "\"minimum\":1,\"maximum\":5},\"score\":{\"type\":\"number\",\"minimum\":0,\"maximum\":1},"
     "\"done\":{"
     "\"type\":\"boolean\"}},\"required\":[\"title\",\"summary\",\"assignee\",\"labels\","
     "\"created\",\"id\","
     "\"url\",\"code\",\"priority\",\"score\",\"done\"],\"additionalProperties\":false}",
     "{\"title\": \"Printer on the second floor is on fire\", \"summary\": \"Smoke was seen at "
     "nine; it went out by "
     "itself.\", \"assignee\": \"Grace Hopper\", \"labels\": [\"hardware\", \"urgent\", \"second "
     "floor\"], "
     "\"created\": \"2024-05-17T09:12:45Z\", \"id\": \"3f2504e0-4f89-41d3-9a0c-0305e82c3301\", "
     "\"url\": "
     "\"https://tickets.example.org/view/1234\", \"code\": \"PRN-1234\", \"priority\": 1, "
     "\"score\": 0.875, "
     "\"done\": false}"},
    {"steps", GRAMMAR_JSON_SCHEMA, /* as OpenAI's documentation has it: nested, all required */
     "{\"type\":\"object\",\"properties\":{\"steps\":{\"type\":\"array\",\"items\":{\"$ref\":\"#/"
     "$defs/step\"}},"
     "\"final_answer\":{\"type\":\"string\"}},\"$defs\":{\"step\":{\"type\":\"object\","
     "\"properties\":{"
     "\"explanation\":{\"type\":\"string\"},\"output\":{\"type\":\"string\"}},\"required\":["
     "\"explanation\","
     "\"output\"],\"additionalProperties\":false}},\"required\":[\"steps\",\"final_answer\"],"
     "\"additionalProperties\":false}",
     "{\"steps\":[{\"explanation\":\"Subtract 7 from both sides.\",\"output\":\"8x = "
     "-30\"},{\"explanation\":"
     "\"Divide both sides by 8.\",\"output\":\"x = -30/8\"}],\"final_answer\":\"x = -3.75\"}"},
    {"call", GRAMMAR_JSON_SCHEMA, /* a function's parameters; the answer is short */
     "{\"type\":\"object\",\"properties\":{\"location\":{\"type\":\"string\",\"description\":"
     "\"City\"},\"unit\":{"
     "\"type\":\"string\",\"enum\":[\"celsius\",\"fahrenheit\"]}},\"required\":[\"location\","
     "\"unit\"],"
     "\"additionalProperties\":false}",
     "{\"location\": \"San Francisco, CA\", \"unit\": \"celsius\"}"},
    {"regex", GRAMMAR_REGEX, "([A-Z][a-z]+ ){2,20}[0-9]{4}-[0-9]{2}-[0-9]{2}",
     "The Quick Brown Fox Jumps Over Lazy Dogs And Then Some More 2024-01-31"},
    {"gbnf", GRAMMAR_GBNF,
     "root ::= expr \"\\n\"\nexpr ::= term ([-+*/] term)*\nterm ::= [0-9]+ | name | \"(\" expr "
     "\")\"\nname ::= [a-z]+\n",
     "(1+2)*(three+four*(five-6))/seven+(((8)))-nine*(ten+11)\n"},
};

static void must(weft_diag *dg, weft_status st)
{
    if (st == WEFT_OK)
        return;
    diag_print(dg, stderr, false);
    exit(1);
}

/* The bytes of a line of base 64 up to the blank behind it. */
static void put_base64(str line)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char out[1024];
    size_t n = 0;
    unsigned bits = 0, held = 0;
    for (size_t i = 0; i < line.n && line.p[i] != ' ' && line.p[i] != '=' && n < sizeof out; i++) {
        const char *d = line.p[i] ? strchr(digits, line.p[i]) : NULL;
        if (!d)
            continue;
        held = held << 6 | (unsigned)(d - digits);
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            out[n++] = (char)(held >> bits & 255);
        }
    }
    put((str){out, n});
}

static grammar_vocab *read_tiktoken(weft_diag *dg, const char *path)
{
    arena *a = arena_create();
    source *src;
    must(dg, source_open(dg, a, path, 64 << 20, &src));
    for (size_t at = 0; at < src->text.n;) {
        const char *line = src->text.p + at, *end = memchr(line, '\n', src->text.n - at);
        size_t len = end ? (size_t)(end - line) : src->text.n - at;
        put_base64((str){line, len});
        at += len + 1;
    }
    arena_destroy(a);
    return finish_vocab();
}

/* The longest token that the rest begins with and that is allowed. */
static int32_t next_token(str rest, const uint64_t *mask, const str *tokens, int32_t n)
{
    int32_t best = -1;
    for (int32_t i = 0; i < n; i++)
        if ((mask[i / 64] >> (i % 64) & 1) && tokens[i].n && str_starts(rest, tokens[i]) &&
            (best < 0 || tokens[i].n > tokens[best].n))
            best = i;
    return best;
}

typedef VEC(int32_t) id_list;

static grammar *compiled(weft_diag *dg, const grammar_vocab *v, size_t c)
{
    grammar *g;
    must(dg, grammar_compile(dg, v, cases[c].kind, cases[c].name, str_of(cases[c].grammar),
                             GRAMMAR_LIMITS_DEFAULT, &g));
    return g;
}

/* Nanoseconds of a token, on average over the text. */
static uint64_t read_text(weft_diag *dg, grammar *g, const id_list *ids, uint64_t *worst)
{
    matcher *m = matcher_create(g);
    const uint64_t *mask;
    uint64_t all = 0;
    *worst = 0;
    for (size_t i = 0; i < ids->n; i++) {
        uint64_t start = clock_ns();
        must(dg, matcher_mask(dg, m, &mask));
        must(dg, matcher_accept(dg, m, ids->at[i]));
        uint64_t ns = clock_ns() - start;
        all += ns;
        *worst = ns > *worst ? ns : *worst;
    }
    matcher_destroy(m);
    return all / ids->n;
}

/* The text as tokens: the longest that is allowed, each time. */
static id_list tokens_of(weft_diag *dg, grammar *g, const char *name, str rest, const str *tokens,
                         int32_t n)
{
    id_list ids = {0};
    matcher *m = matcher_create(g);
    while (rest.n) {
        const uint64_t *mask;
        must(dg, matcher_mask(dg, m, &mask));
        int32_t id = next_token(rest, mask, tokens, n);
        if (id < 0) {
            fprintf(stderr, "%s: nothing fits `%.*s`\n", name, (int)rest.n, rest.p);
            exit(1);
        }
        must(dg, matcher_accept(dg, m, id));
        VEC_PUSH(&ids, id);
        rest = (str){rest.p + tokens[id].n, rest.n - tokens[id].n};
    }
    matcher_destroy(m);
    return ids;
}

static int by_time(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Many schemas, each with its longest text: what a token costs cold, over all tokens and in the slowest text. */
static void measure_schemas(weft_diag *dg, const grammar_vocab *v, const char *path,
                            const str *tokens, int32_t n)
{
    arena *a = arena_create();
    source *src;
    json_limits most = {
        .bytes_max = 1 << 20, .values_max = 1 << 16, .depth_max = 200, .exact = true};
    VEC(uint64_t) mean = {0};
    uint64_t all = 0, n_all = 0;
    must(dg, source_open(dg, a, path, 64 << 20, &src));
    for (size_t at = 0; at < src->text.n;) {
        const char *line = src->text.p + at, *end = memchr(line, '\n', src->text.n - at);
        size_t len = end ? (size_t)(end - line) : src->text.n - at;
        value row, one;
        str best = {0}, t, name = {0};
        strbuf schema = {0};
        json_writer w = {.out = &schema};
        must(dg, json_read(dg, a, path, (str){line, len}, most, &row));
        at += len + 1;
        value_str(value_get(&row, STR("name")), &name);
        value_json(&w, value_get(&row, STR("schema")), SIZE_MAX);
        const value *yes = value_get(&row, STR("yes"));
        for (size_t i = 0; i < value_count(yes); i++) {
            one = value_at(yes, i);
            if (value_str(&one, &t) && t.n > best.n)
                best = t;
        }
        uint64_t runs[3], worst, n_id = 0;
        for (int i = 0; i < 3; i++) {
            grammar *g, *cold;
            must(dg, grammar_compile(dg, v, GRAMMAR_JSON_SCHEMA, path, strbuf_view(&schema),
                                     GRAMMAR_LIMITS_DEFAULT, &g));
            must(dg, grammar_compile(dg, v, GRAMMAR_JSON_SCHEMA, path, strbuf_view(&schema),
                                     GRAMMAR_LIMITS_DEFAULT, &cold));
            id_list ids = tokens_of(dg, g, path, best, tokens, n);
            runs[i] = read_text(dg, cold, &ids, &worst);
            n_id = ids.n;
            VEC_FREE(&ids);
            grammar_destroy(g);
            grammar_destroy(cold);
        }
        qsort(runs, 3, sizeof *runs, by_time);
        all += runs[0] * n_id; /* the least: on a busy machine the others are of other programs */
        n_all += n_id;
        VEC_PUSH(&mean, runs[0]);
        if ((double)runs[0] > target_ns)
            printf("%.*s: %.1f us a token, %llu tokens\n", (int)name.n, name.p,
                   (double)runs[0] / 1e3, (unsigned long long)n_id);
        strbuf_free(&schema);
    }
    qsort(mean.at, mean.n, sizeof *mean.at, by_time);
    printf("%zu schemas, cold: %.1f us a token over all %llu tokens; by text: median %.1f us, "
           "slowest %.1f us\n",
           mean.n, (double)all / (double)n_all / 1e3, (unsigned long long)n_all,
           (double)mean.at[mean.n / 2] / 1e3, (double)mean.at[mean.n - 1] / 1e3);
    VEC_FREE(&mean);
    arena_destroy(a);
}

static void measure(weft_diag *dg, const grammar_vocab *v, size_t c, const str *tokens, int32_t n)
{
    grammar *g = compiled(dg, v, c);
    id_list ids = tokens_of(dg, g, cases[c].name, str_of(cases[c].text), tokens, n);
    grammar_destroy(g);
    uint64_t compile_ns[N_RUN], cold[N_RUN], warm[N_RUN], worst[N_RUN], w;
    for (int i = 0; i < N_RUN; i++) {
        uint64_t start = clock_ns();
        g = compiled(dg, v, c);
        compile_ns[i] = clock_ns() - start;
        cold[i] = read_text(dg, g, &ids, &worst[i]);
        warm[i] = read_text(dg, g, &ids, &w);
        grammar_destroy(g);
    }
    char shape[64];
    snprintf(shape, sizeof shape, "%lldx%zu", (long long)grammar_vocab_size(v), ids.n);
    char name[64];
    snprintf(name, sizeof name, "grammar %s", cases[c].name);
    bench_print(name, "compile", shape, bench_sum_up(compile_ns, N_RUN), 0);
    bench_print(name, "cold", shape, bench_sum_up(cold, N_RUN), target_ns);
    bench_print(name, "worst", shape, bench_sum_up(worst, N_RUN), 0);
    bench_print(name, "warm", shape, bench_sum_up(warm, N_RUN), target_ns);
    VEC_FREE(&ids);
}

int main(int argc, char **argv)
{
    weft_diag *dg = diag_create();
    grammar_vocab *v;
    const str *tokens = text;
    int32_t n = N_TOKEN - 1;
    uint64_t start = clock_ns(), made;
    if (argc > 1 && str_ends(str_of(argv[1]), STR(".tiktoken"))) {
        v = read_tiktoken(dg, argv[1]);
        start = clock_ns();
        grammar_vocab_destroy(v);
        v = finish_vocab();
    } else if (argc > 1) {
        tok *t;
        must(dg, tok_open(dg, argv[1], &t));
        n = tok_vocab_size(t);
        str *own = mem_alloc(mem_product((size_t)n, sizeof *own));
        tok_stream *s = tok_stream_create(t, false);
        for (int32_t i = 0; i < n; i++) {
            strbuf b = {0}; /* kept until the program ends */
            tok_stream_bytes(s, i, false, &b);
            own[i] = strbuf_view(&b);
        }
        tok_stream_destroy(s);
        tokens = own;
        start = clock_ns();
        must(dg, grammar_vocab_create(dg, t, n, &v));
    } else {
        v = make_vocab();
        start = clock_ns();
        grammar_vocab_destroy(v);
        v = finish_vocab();
    }
    made = clock_ns() - start;
    bench_print_heading();
    char shape[32];
    snprintf(shape, sizeof shape, "%lld", (long long)grammar_vocab_size(v));
    bench_print("grammar", "vocab", shape, bench_sum_up(&made, 1), 0);
    bool many = argc > 2 && str_ends(str_of(argv[2]), STR(".jsonl"));
    if (many)
        measure_schemas(dg, v, argv[2], tokens, n);
    for (size_t c = 0; c < sizeof cases / sizeof *cases && !many; c++)
        if (argc < 3 || strcmp(argv[2], cases[c].name) == 0)
            measure(dg, v, c, tokens, n);
    grammar_vocab_destroy(v);
    diag_destroy(dg);
    return 0;
}
