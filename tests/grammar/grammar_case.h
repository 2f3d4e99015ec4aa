/* grammar_case.h - a small vocabulary, and what every grammar must do with it: masks that say what accepting does. */
#ifndef WEFT_TESTS_GRAMMAR_GRAMMAR_CASE_H
#define WEFT_TESTS_GRAMMAR_GRAMMAR_CASE_H

#include "runtime/grammar/grammar.h"

#include <stdlib.h>

/* Tokens 0 to 255 are single bytes, then these, then one without bytes and the end. */
static const char *const case_words[] = {
    "{\"",   "\":",  "\": ",  "\",\"", "\", \"",   "\"}",  "},",  "}]",       "]}",       "true",
    "false", "null", " \"",   "name",  "value",    "abc",  "12",  "00",       "1,",       ", ",
    "\n  ",  "a\"",  "b\": ", "hello", "\\u",      "\\\"", "\\n", "\xc3\xa9", "\xe2\x82", "\xac\"",
    "[1",    "]]",   "aa",    "aaaa",  "aaaaaaaa", "a1",   "1a",  "  ",       "-1",       ".5",
    "e1",    "yes",  "no",    "\"\"",  "[]",       "{}",
};
enum {
    CASE_WORDS = sizeof case_words / sizeof *case_words,
    CASE_EMPTY = 256 + CASE_WORDS,
    CASE_END,
    CASE_TOKENS,
};

static inline grammar_vocab *case_vocab(void)
{
    static char bytes[256];
    str text[CASE_TOKENS] = {{0}};
    int32_t end = CASE_END;
    for (int i = 0; i < 256; i++) {
        bytes[i] = (char)i;
        text[i] = (str){&bytes[i], 1};
    }
    for (int i = 0; i < CASE_WORDS; i++)
        text[256 + i] = str_of(case_words[i]);
    text[CASE_END] = STR("</s>");
    return grammar_vocab_of(text, CASE_TOKENS, &end, 1);
}

static inline str case_text(int32_t id)
{
    static char byte[1];
    byte[0] = (char)id;
    return id < 256 ? (str){byte, 1} : id < CASE_EMPTY ? str_of(case_words[id - 256]) : STR("");
}

static inline bool case_has(const uint64_t *mask, int32_t id)
{
    return mask[id / 64] >> (id % 64) & 1;
}

/* A text of allowed tokens, chosen by a generator; at every step the mask is what matcher_accept takes. True if it ended. What was
 * written is added to out. */
static inline bool case_walk(weft_diag *dg, grammar *g, uint64_t seed, int tokens, strbuf *out)
{
    matcher *m = matcher_create(g);
    bool ended = false;
    for (int i = 0; i < tokens && !ended; i++) {
        const uint64_t *mask;
        if (matcher_mask(dg, m, &mask) != WEFT_OK)
            break;
        int32_t allowed[CASE_TOKENS], n = 0;
        for (int32_t id = 0; id < CASE_TOKENS; id++)
            if (case_has(mask, id))
                allowed[n++] = id;
        if (case_has(mask, CASE_END) != matcher_may_end(m) || case_has(mask, CASE_EMPTY) || n == 0)
            abort();
        for (int32_t id = 0, k = 0; id < CASE_TOKENS; id++) {
            matcher *one = matcher_fork(m);
            bool takes = matcher_accept(dg, one, id) == WEFT_OK, is = k < n && allowed[k] == id;
            if (takes != is)
                abort();
            k += is;
            matcher_destroy(one);
        }
        diag_reset(dg);
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        int32_t id = allowed[(seed >> 33) % (uint64_t)n];
        if (i > tokens / 2 && matcher_may_end(m))
            id = CASE_END;
        if (matcher_accept(dg, m, id) != WEFT_OK)
            abort();
        strbuf_put(out, case_text(id));
        ended = id == CASE_END;
    }
    matcher_destroy(m);
    return ended;
}

#endif
