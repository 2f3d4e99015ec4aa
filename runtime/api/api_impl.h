/* api_impl.h - what Weft's own programs and the files of runtime/api share behind weft.h; not for others. */
#ifndef WEFT_RUNTIME_API_API_IMPL_H
#define WEFT_RUNTIME_API_API_IMPL_H

#include "runtime/api/api_model.h"
#include "runtime/base/cancel.h"
#include "runtime/base/mem_scope.h"
#include "runtime/engine/generation.h"

struct weft_session {
    api_plan plan;
    session *run;
    engine text;  /* what its generations share; run is NULL before the first */
    chooser pick; /* of weft_eval_choose; run is NULL before the first */
    model_hash model;
};

struct weft_adapter {
    adapter_source from; /* borrows from keep */
    int64_t rank_max;
    model_hash model; /* that it was opened for */
    void *keep;
    void (*keep_close)(void *keep);
};

struct weft_cancel {
    cancel_flag flag;
};

struct weft_tokenizer {
    tok *text;
};

struct weft_decoder {
    tok_stream *stream;
    tok *text;
    strbuf out;
};

struct weft_template {
    chat_template *chat;
};

struct weft_sampler {
    sampler *pick;
};

struct weft_grammar {
    token_filter *form; /* for copies of it */
    int64_t vocab;      /* the logits that it is for */
    struct grammar_vocab *v;
};

struct weft_generation {
    generation *g;
    weft_session *s;
    weft_piece piece; /* what weft_generation_piece gave */
};

/* A tokenizer for the caller, if st is WEFT_OK. */
weft_status api_tokenizer_made(weft_status st, tok *text, weft_tokenizer **out_tokenizer);
/* The buffer goes to the caller, who releases it with weft_free; or is released if st is not WEFT_OK. */
weft_status api_give_text(weft_status st, strbuf *text, char **out_text, size_t *out_bytes);
/* What the state of a session with these options, all of them set, takes; UINT64_MAX where there can be none such. */
uint64_t api_state_bytes(const weft_model *m, const weft_session_options *o);
/* weft_session_create for a session that is watched: see api_wanted. */
weft_status api_session_create_watched(weft_diag *dg, const weft_model *m,
                                       const weft_session_options *options,
                                       weft_session **out_session) WEFT_MUST_USE;

/* The first line of every function of weft.h that can run out of memory: then it returns WEFT_ERR_LIMIT with W1110 in dg, and what it has taken
 * so far is released (runtime/base/mem_scope.h). dg may be NULL. A function that calls back, or calls another of weft.h, has ended up in
 * nested scopes: what the inner call gave belongs to its caller, so hand it to mem_scope_on_fail until it has an owner. */
#define API_SCOPE(dg)                                                                              \
    MEM_SCOPE(scope_);                                                                             \
    if (sigsetjmp(scope_.env, 0) != 0)                                                             \
    return api_no_memory((dg), &scope_)
/* The same for one that returns something else, which is `value` then. */
#define API_SCOPE_OR(value)                                                                        \
    MEM_SCOPE(scope_);                                                                             \
    if (sigsetjmp(scope_.env, 0) != 0)                                                             \
    return (value)
weft_status api_no_memory(weft_diag *dg, const mem_scope *scope);

/* Fill a struct of the caller, which begins with its size: as much of `from` as it has, which has the same size in front. */
void api_give(void *to, const void *from, size_t from_size);
/* A call without something it cannot do without: W1904. dg may be what is missing. */
weft_status api_lacks(weft_diag *dg, const char *call, const char *what);
/* The options at `from`, which begin with their size, as the struct of to_size bytes that this library knows. What the caller's
 * weft.h does not have yet is 0; what it has and this library does not must be 0. NULL: all 0. W1904. */
weft_status api_take(weft_diag *dg, const char *call, const void *from, void *to,
                     size_t to_size) WEFT_MUST_USE;

#endif
