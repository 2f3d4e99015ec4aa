/* request.h - one text being generated, apart from any session: its ids, sampler, stop texts, and what each token adds to it.
 *
 *     request_create(dg, &limits, text, &(request_options){.max_tokens = 100, .pick = sampler_defaults()}, &r);
 *     request_prompt(dg, r, ids, n);
 *     ... logits of the last id come from somewhere ...
 *     request_take(dg, r, logits);              a token more, or the end
 *     request_piece(r)                          what can be shown of it
 *
 * It never waits and never runs anything: whoever evaluates its ids hands in logits, or the token that a device chose. Where those
 * ids are in a session, if at all, is a generation's to know (generation.h). One thread at a time uses a request. */
#ifndef WEFT_RUNTIME_ENGINE_REQUEST_H
#define WEFT_RUNTIME_ENGINE_REQUEST_H

#include "runtime/sample/sample.h"
#include "runtime/text/tok.h"

typedef struct request request;

typedef enum {
#define GENEND(name, text, meaning) GEN_##name,
#include "runtime/engine/gen_end.def"
#undef GENEND
    GEN_END_COUNT
} gen_end;
const char *gen_end_name(gen_end end);

/* Which tokens may come next, such as those of a grammar: a struct that begins with one of these. It has seen the tokens that were accepted. */
typedef struct token_filter token_filter;
typedef struct {
    /* Bit i % 64 of word i / 64 says that token i may come, tokens that end the text included; [(vocab + 63) / 64], valid until
     * the filter is used again. The request fails where this does. */
    weft_status (*mask)(weft_diag *dg, token_filter *f, const uint64_t **out_mask);
    /* The text goes on with a token; on failure nothing has changed. */
    weft_status (*accept)(weft_diag *dg, token_filter *f, int32_t id);
    bool (*must_end)(const token_filter *f);      /* only an end token can come */
    token_filter *(*copy)(const token_filter *f); /* another one, at the beginning of an answer */
    void (*reset)(token_filter *f);               /* another answer begins */
    void (*destroy)(token_filter *f);
} token_filter_kind;
struct token_filter {
    const token_filter_kind *kind;
};

/* Of the model that it is for. */
typedef struct {
    int64_t vocab;   /* width of the logits */
    int64_t n_vocab; /* ids of prompts are below it; 0: any */
    int64_t context; /* tokens that a sequence holds */
} request_limits;

typedef struct {
    int64_t max_tokens;       /* -1: until something else ends it */
    int64_t min_tokens;       /* no end token before that many */
    const char *const *stops; /* texts that end it and are not shown; copied */
    size_t n_stop;
    bool ignore_end;   /* go on after an end token */
    bool show_special; /* special tokens appear in the text */
    int64_t
        n_top; /* log-probabilities of this many of the likeliest, and of the one chosen; -1: of none */
    const token_filter *filter; /* what may come; copied. NULL: anything */
    sampler_options pick; /* its lists and strings are copied; no breakers: those of dry_breakers */
} request_options;

/* The tokens that a run does not extend over for dry, as everybody has them: line break, colon, quote, star, where each is one
 * token. Returns how many. */
enum { DRY_BREAKERS = 4 };
size_t dry_breakers(tok *text, int32_t out[DRY_BREAKERS]);

/* What a token brought; valid until the request is used again. */
typedef struct {
    int32_t id; /* TOK_NONE: no token yet, the prompt is still being evaluated */
    str text;   /* what can be shown now: whole characters, no part of a stop text */
    float logprob;
    const token_logprob *top; /* [n_top], best first */
    int64_t n_top;
    gen_end end; /* GEN_NONE: it goes on */
} gen_piece;

/* text must outlive it. W1903 names a wrong option. */
weft_status request_create(weft_diag *dg, const request_limits *most, tok *text,
                           const request_options *o, request **out_r) WEFT_MUST_USE;
void request_destroy(request *r); /* NULL is fine */
/* Other options from the next prompt on; an answer that was going on has ended. On failure nothing has changed. */
weft_status request_change(weft_diag *dg, request *r, const request_options *o) WEFT_MUST_USE;

/* Could these ids be a prompt? W1404 if they and one more token do not fit the context, W1405, W1406 if there is none. */
weft_status request_check(weft_diag *dg, const request_limits *most, const int32_t *ids,
                          size_t n) WEFT_MUST_USE;
/* Begin with this prompt, which request_check has passed. */
void request_prompt(request *r, const int32_t *ids, size_t n);
/* Let `to` have the text of `from`, with its own options: all of it, or the prompt alone. W1110: `to` has ended. */
weft_status request_copy(weft_diag *dg, const request *from, request *to,
                         bool prompt_only) WEFT_MUST_USE;

/* Choose the next token from logits [vocab], or take the one that a device chose (-1: none), and make the piece of it. W1410 where none can be
 * chosen, W1110 where memory is short: it has ended. */
weft_status request_take(weft_diag *dg, request *r, const float *logits) WEFT_MUST_USE;
weft_status request_take_id(weft_diag *dg, request *r, int32_t id) WEFT_MUST_USE;
/* End it from outside; what was held back of its text is the last piece. */
void request_stop(request *r, gen_end end);

/* Why its tokens are chosen on the host, by a device that chooses; NULL: the device can. */
const char *request_host_why(const request *r);
const gen_piece *request_piece(const request *r);
gen_end request_end(const request *r);
int request_stop_found(const request *r); /* which of the stop texts came; -1: none */
/* The whole text, and how much of it is the prompt. */
const int32_t *request_ids(const request *r, size_t *out_n);
size_t request_prompt_len(const request *r);

#endif
