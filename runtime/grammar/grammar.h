/* grammar.h - texts of a given form: which tokens may come next.
 *
 *     grammar_vocab *v;  grammar *g;  matcher *m;
 *     grammar_vocab_create(dg, tokenizer, n_logits, &v);
 *     grammar_compile(dg, v, GRAMMAR_JSON_SCHEMA, "schema.json", text, GRAMMAR_LIMITS_DEFAULT, &g);
 *     matcher_create(g, &m);
 *     loop: matcher_mask(dg, m, &mask);  ... choose id among the bits of mask ...  matcher_accept(dg, m, id);
 *
 * A JSON schema, a regular expression or a GBNF grammar becomes rules over bytes, run as a pushdown automaton. A mask has
 * a bit for every token after which the text can still be completed, and end tokens exactly where it is complete. So a
 * text that was made of allowed tokens and ended by an end token matches, always. Special tokens are never inside it.
 *
 * A vocabulary never changes and threads may share it. A grammar and its matchers keep caches: one thread at a time uses
 * a grammar and all matchers of it. Vocabularies outlive their grammars, grammars their matchers. */
#ifndef WEFT_RUNTIME_GRAMMAR_GRAMMAR_H
#define WEFT_RUNTIME_GRAMMAR_GRAMMAR_H

#include "runtime/base/diag.h"

typedef struct tok tok;
typedef struct grammar_vocab grammar_vocab;
typedef struct grammar grammar;
typedef struct matcher matcher;

/* ---- the tokens of a model, as bytes ---- */

/* n_token: how many logits there are, at least one; tokens past it are left out, and logits past the tokenizer's are never
 * allowed. t is not used afterwards. */
weft_status grammar_vocab_create(weft_diag *dg, tok *t, int64_t n_token,
                                 grammar_vocab **out_v) WEFT_MUST_USE;
/* The same from a list, for tests and benchmarks: text[i] are the bytes of token i, which is never allowed where they
 * are empty; ends are allowed where a text may end, whatever their bytes. */
grammar_vocab *grammar_vocab_of(const str *text, int64_t n_token, const int32_t *ends,
                                size_t n_end);
void grammar_vocab_destroy(grammar_vocab *v); /* NULL is fine */
int64_t grammar_vocab_size(const grammar_vocab *v);

/* ---- compiling ---- */

typedef enum {
#define GRAMMAR_KIND(name, text, meaning) GRAMMAR_##name,
#include "runtime/grammar/grammar_kinds.def"
#undef GRAMMAR_KIND
    GRAMMAR_KIND_COUNT
} grammar_kind;
const char *grammar_kind_name(grammar_kind k);

/* A text from a stranger takes no more than this. */
typedef struct {
    size_t bytes_max;  /* of the text; W1803 */
    size_t parts_max;  /* of the rules, after references and repetitions are written out; W1803 */
    size_t states_max; /* of the automaton, and 8 times as many edges; W1803 */
    int depth_max;     /* brackets in the text of a grammar; W1803 */
    int stack_max; /* calls of rules inside one another in a generated text: no token goes deeper */
    size_t paths_max; /* readings of one text at a time: no token leads to more */
    size_t
        cache_bytes; /* masks and states kept for tokens to come; twice this is the most that is used */
} grammar_limits;

#define GRAMMAR_LIMITS_DEFAULT                                                                     \
    ((grammar_limits){.bytes_max = 1 << 20,                                                        \
                      .parts_max = 1 << 18,                                                        \
                      .states_max = 1 << 17,                                                       \
                      .depth_max = 64,                                                             \
                      .stack_max = 256,                                                            \
                      .paths_max = 512,                                                            \
                      .cache_bytes = 64 << 20})

/* name is for messages. W1801: not well formed, with its place; W1802: something that is not supported, by name and place;
 * W1803: a limit; W1804: no text matches. Also what json_read says of a schema. */
weft_status grammar_compile(weft_diag *dg, const grammar_vocab *v, grammar_kind kind,
                            const char *name, str text, grammar_limits limits,
                            grammar **out_g) WEFT_MUST_USE;
/* Any JSON object: {"type": "json_object"} of OpenAI's interface. */
weft_status grammar_compile_json_object(weft_diag *dg, const grammar_vocab *v,
                                        grammar_limits limits, grammar **out_g) WEFT_MUST_USE;
int64_t grammar_tokens(const grammar *g); /* of its vocabulary */
grammar *grammar_hold(grammar *g);        /* it goes with the last of its holders; any thread */
void grammar_destroy(grammar *g);         /* a holder less; NULL is fine */
size_t grammar_bytes(const grammar *g);   /* that it holds now, caches included */

/* ---- matching ---- */

/* At the beginning of a text. */
matcher *matcher_create(grammar *g);
matcher *matcher_fork(const matcher *m); /* another text that has begun like this one */
void matcher_destroy(matcher *m);        /* NULL is fine */
void matcher_reset(matcher *m);

/* A bit for each of the vocabulary's tokens, token i in word i / 64; valid until the grammar is used again. Never empty: W1805
 * where no token can follow, which a vocabulary without some bytes, or the limits stack_max and paths_max, can lead to. */
weft_status matcher_mask(weft_diag *dg, matcher *m, const uint64_t **out_mask) WEFT_MUST_USE;
/* The text goes on with a token; W1805 if it may not, and nothing has changed. After an end token only ends follow. */
weft_status matcher_accept(weft_diag *dg, matcher *m, int32_t id) WEFT_MUST_USE;
bool matcher_may_end(const matcher *m);  /* the text is complete */
bool matcher_must_end(const matcher *m); /* and nothing more can come */

/* Whether a whole text matches; for tests, and for checking what was not generated. W1805 if not, with how far it does. */
weft_status grammar_match(weft_diag *dg, grammar *g, str text) WEFT_MUST_USE;

#endif
