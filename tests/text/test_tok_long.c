/* test_tok_long.c - texts of megabytes that are hard in one way each, through every family of
 * tokenizers: encoding, decoding and decoding as a stream take time in proportion to the text.
 *
 * The time of a text is held against that of a quarter of it: work that is quadratic takes sixteen
 * times as long, work of n log n little more than four times. Processor time, the least of a few. */
#include "runtime/base/utf8.h"
#include "runtime/text/tok_gguf.h"
#include "tests/base/suite.h"

#include <time.h>

enum { SMALL = 1 << 15, LARGE = 1 << 17, TRIES = 5 };

static const double growth_max = 7;  /* of four times the text */
static const double floor_s = 0.1;   /* what is quicker than this is not compared */
static const double seconds_max = 5; /* for a text of LARGE bytes */

/* A text is head, then parts in turn up to n bytes, then tail. */
typedef struct {
    const char *name, *head, *tail;
    const char *part[8];
} shape;

/* clang-format off */
static const shape shapes[] = {
    {"marks of one class",       "a", "",  {"\u0301"}},
    {"marks in falling order",   "a", "",  {"\u0345", "\u035c", "\u0301", "\u0316", "\u0321", "\u05b0", "\u0334"}},
    {"marks of two classes",     "a", "",  {"\u0301", "\u0316"}},
    {"marks without base",       "",  "",  {"\u0316", "\u0301", "\u0327"}},
    {"letters with marks",       "",  "",  {"e\u0301", "o\u0316\u0302", "\u1e9b\u0323"}},
    {"jamo",                     "",  "",  {"\u1100", "\u1161", "\u11a8"}},
    {"leading jamo",             "",  "",  {"\u1100"}},
    {"compatibility",            "",  "",  {"\ufdfa", "\ufb03", "\u3300"}},
    {"spaces",                   "",  "",  {" "}},
    {"spaces, then a digit",     "",  "1", {" "}},
    {"spaces, then a letter",    "",  "x", {" "}},
    {"a letter, then spaces",    "x", "",  {" "}},
    {"odd spaces, then a mark",  "",  "!", {"\u3000", "\u2003", "\u00a0"}},
    {"line feeds",               "",  "",  {"\n"}},
    {"line feeds, then a letter", "", "x", {"\n"}},
    {"spaces and line feeds",    "",  "x", {" ", "\n", " ", " "}},
    {"carriage returns",         "",  "1", {"\r\n", "\t"}},
    {"one letter",               "",  "",  {"a"}},
    {"two letters",              "",  "",  {"ab"}},
    {"capitals",                 "",  "",  {"A"}},
    {"capitals and small",       "",  "",  {"aA"}},
    {"capitals, then a digit",   "",  "1", {"A", "\u4e00", "\u0301"}},
    {"digits",                   "",  "",  {"1"}},
    {"digits, then a letter",    "",  "x", {"0"}},
    {"punctuation",              "",  "",  {"!"}},
    {"brackets",                 "",  "",  {"<|"}},
    {"half of a special token",  "",  "",  {"<|im_start", "<unused", "<s", "[gMASK"}},
    {"special tokens",           "",  "",  {"<s>", "</s>", "<|endoftext|>", "<|im_start|>"}},
    {"spaced special tokens",    "",  "",  {" <s> ", " </s> ", " <|endoftext|> "}},
    {"apostrophes",              "",  "",  {"'"}},
    {"contractions",             "",  "",  {"'s"}},
    {"han",                      "",  "",  {"\u4e00", "\u4e8c"}},
    {"lower blocks",             "",  "",  {"\u2581"}},
    {"lower blocks and letters", "",  "",  {"\u2581", "a"}},
    {"emoji",                    "",  "",  {"\U0001f468\u200d"}},
    {"byte tokens",              "",  "",  {"<0x41>", "<0x"}},
    {"unassigned",               "",  "",  {"\u0378", "\U0003fffd"}},
    {"controls",                 "",  "1", {"\x01", "\x1f", "\xc2\x85"}},
    {"words",                    "",  "",  {"the ", "quick ", "brown ", "fox "}},
};
/* clang-format on */

static void fill(strbuf *out, const shape *s, size_t n)
{
    strbuf_put(out, str_of(s->head));
    for (size_t k = 0; out->n < n; k = s->part[k + 1] && k < 7 ? k + 1 : 0)
        strbuf_put(out, str_of(s->part[k]));
    strbuf_put(out, str_of(s->tail));
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* There and back, whole and as a stream; the seconds it takes. */
static double there_and_back(tok *t, str text)
{
    weft_diag *dg = diag_create();
    tok_ids ids = {0};
    strbuf whole = {0}, streamed = {0};
    double begin = now_s();
    weft_status status = tok_encode(dg, t, text, TOK_ENCODE_DEFAULT, &ids);
    if (status != WEFT_OK)
        diag_print(dg, stderr, false);
    ck_assert_int_eq(status, WEFT_OK);
    ck_assert_int_eq(tok_decode(dg, t, ids.at, ids.n, false, &whole), WEFT_OK);
    tok_stream *s = tok_stream_create(t, false);
    for (size_t i = 0; i < ids.n; i++)
        tok_stream_put(s, ids.at[i], &streamed);
    tok_stream_flush(s, &streamed);
    double seconds = now_s() - begin;
    tok_stream_destroy(s);
    strbuf_free(&whole);
    strbuf_free(&streamed);
    VEC_FREE(&ids);
    diag_destroy(dg);
    return seconds;
}

static void one_shape(const char *name, tok *t, const shape *s)
{
    strbuf small = {0}, large = {0};
    fill(&small, s, SMALL);
    fill(&large, s, LARGE);
    double a = there_and_back(t, strbuf_view(&small)), b = there_and_back(t, strbuf_view(&large));
    for (int i = 1; i < TRIES && b > floor_s && b > a * growth_max; i++) { /* noise, or is it? */
        double again = there_and_back(t, strbuf_view(&large));
        b = again < b ? again : b;
    }
    ck_assert_msg(b < seconds_max, "%s: %s: %.2f s for %d bytes", name, s->name, b, LARGE);
    ck_assert_msg(b < floor_s || b < a * growth_max, "%s: %s: %.3f s for %d bytes, %.3f s for %d",
                  name, s->name, a, SMALL, b, LARGE);
    strbuf_free(&small);
    strbuf_free(&large);
}

static const char *const families[] = {
    "albert", "deepseek-llm",      "deepseek-v3", "gemma", "gpt2",   "llama2",
    "llama3", "mistral-metaspace", "phi3",        "qwen2", "smollm", "t5",
    "tekken",
};

START_TEST(every_family_takes_long_texts)
{
    weft_diag *dg = diag_create();
    strbuf path = {0};
    tok *t = NULL;
    strbuf_add(&path, "%s/tokenizers/%s/tokenizer.json", WEFT_SHARED, families[_i]);
    if (tok_open(dg, path.p, &t) == WEFT_OK) /* ../shared may be missing */
        for (size_t i = 0; i < COUNT_OF(shapes); i++)
            one_shape(families[_i], t, &shapes[i]);
    tok_close(t);
    strbuf_free(&path);
    diag_destroy(dg);
}
END_TEST

static weft_status ignore_piece(void *to, str piece)
{
    (void)to, (void)piece;
    return WEFT_OK;
}

static double split_s(pre_list *steps, str text)
{
    weft_diag *dg = diag_create();
    pre_run r = {dg, steps, ignore_piece, NULL, SIZE_MAX};
    double begin = now_s();
    ck_assert_int_eq(pre_split(&r, text, true), WEFT_OK);
    double seconds = now_s() - begin;
    diag_destroy(dg);
    return seconds;
}

/* The patterns of every row of tok_gguf_pre.def, without a vocabulary. */
START_TEST(every_pattern_splits_long_texts)
{
    static const char *const names[] = {
#define PRE(name, flags, ...) name,
#include "runtime/text/tok_gguf_pre.def"
#undef PRE
    };
    for (size_t k = 0; k < COUNT_OF(names); k++) {
        pre_list steps = {0};
        weft_diag *dg = diag_create();
        ck_assert_int_eq(gguf_pre_add(dg, gguf_pre_named(str_of(names[k])), &steps), WEFT_OK);
        for (size_t i = 0; i < COUNT_OF(shapes); i++) {
            strbuf small = {0}, large = {0};
            fill(&small, &shapes[i], SMALL / 4);
            fill(&large, &shapes[i], SMALL);
            double a = split_s(&steps, strbuf_view(&small)),
                   b = split_s(&steps, strbuf_view(&large));
            for (int n = 1; n < TRIES && b > floor_s / 2 && b > a * growth_max; n++) {
                double again = split_s(&steps, strbuf_view(&large));
                b = again < b ? again : b;
            }
            ck_assert_msg(b < floor_s / 2 || b < a * growth_max, "%s: %s: %.3f s, then %.3f s",
                          names[k], shapes[i].name, a, b);
            strbuf_free(&small);
            strbuf_free(&large);
        }
        pre_free(&steps);
        diag_destroy(dg);
    }
}
END_TEST

/* The prompt that a stock Qwen2 took minutes for, in all four forms. */
START_TEST(megabytes_of_marks)
{
    static const char *const forms[] = {"NFC", "NFD", "NFKC", "NFKD"};
    strbuf json = {0}, text = {0};
    weft_diag *dg = diag_create();
    tok *t = NULL;
    strbuf_add(&json,
               "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"u\": 1}, \"merges\": [], "
               "\"unk_token\": \"u\", \"fuse_unk\": true}, \"normalizer\": {\"type\": \"%s\"}}",
               forms[_i]);
    ck_assert_int_eq(tok_open_text(dg, "test", strbuf_view(&json), &t), WEFT_OK);
    fill(&text, &shapes[1], 4 << 20);
    double seconds = there_and_back(t, strbuf_view(&text));
    ck_assert_msg(seconds < seconds_max, "%s: %.2f s", forms[_i], seconds);
    tok_close(t);
    strbuf_free(&json);
    strbuf_free(&text);
    diag_destroy(dg);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("tok_long");
    tcase_set_timeout(tc, 600);
    tcase_add_loop_test(tc, every_family_takes_long_texts, 0, COUNT_OF(families));
    tcase_add_test(tc, every_pattern_splits_long_texts);
    tcase_add_loop_test(tc, megabytes_of_marks, 0, 4);
    return suite_run("tok_long", tc, SUITE_FORK);
}
