/* request.c - one text that goes on, apart from any session: what each token adds to it, and what ends it. */
#include "runtime/engine/request_impl.h"

#include "runtime/base/mem.h"
#include "runtime/base/mem_scope.h"
#include <math.h>
#include <string.h>

const char *gen_end_name(gen_end end)
{
    static const char *const name[] = {
#define GENEND(name, text, meaning) [GEN_##name] = text,
#include "runtime/engine/gen_end.def"
#undef GENEND
    };
    return name[end];
}

/* ---- creating ---- */

size_t dry_breakers(tok *text, int32_t out[DRY_BREAKERS])
{
    static const char *const texts[DRY_BREAKERS] = {"\n", ":", "\"", "*"};
    size_t n = 0;
    for (int i = 0; i < DRY_BREAKERS; i++) {
        tok_ids one = {0};
        weft_diag *quiet = diag_create(); /* a text without a token is no fault */
        if (tok_encode(quiet, text, str_of(texts[i]), (tok_encode_flags){0}, &one) == WEFT_OK &&
            one.n == 1)
            out[n++] = one.at[0];
        diag_destroy(quiet);
        VEC_FREE(&one);
    }
    return n;
}

static weft_status make_sampler(weft_diag *dg, const request *r, const sampler_options *given,
                                sampler **out_s)
{
    int32_t breakers[DRY_BREAKERS];
    sampler_options o = *given;
    if (o.dry_multiplier > 0 && !o.dry_breakers) {
        o.n_breaker = dry_breakers(r->text, breakers);
        o.dry_breakers = breakers;
    }
    return sampler_create(dg, &o, r->most.vocab, r->most.context, out_s);
}

/* What belongs to an answer goes; the text stays. */
static void drop_options(request *r)
{
    tok_stream_destroy(r->stream);
    stop_deinit(&r->stops);
    sampler_destroy(r->pick);
    if (r->filter)
        r->filter->kind->destroy(r->filter);
    mem_free(r->allowed);
    mem_free(r->top);
    arena_destroy(r->a);
}

weft_status request_change(weft_diag *dg, request *r, const request_options *o)
{
    sampler *pick;
    WEFT_TRY(make_sampler(dg, r, &o->pick, &pick));
    arena *a = arena_create();
    const char **stops = ARENA_ARRAY(a, const char *, o->n_stop + 1);
    for (size_t i = 0; i < o->n_stop; i++)
        stops[i] = arena_str(a, str_of(o->stops[i])).p;
    token_logprob *top =
        o->n_top > 0 ? mem_alloc(mem_product((size_t)o->n_top, sizeof *top)) : NULL;
    tok_stream *stream = tok_stream_create(r->text, !o->show_special);
    stop_watch watch;
    stop_init(&watch, stops, o->n_stop);
    token_filter *filter = o->filter ? o->filter->kind->copy(o->filter) : NULL;
    float *allowed = filter || o->min_tokens > 0
                         ? mem_alloc(mem_product((size_t)r->most.vocab, sizeof *allowed))
                         : NULL;
    drop_options(r); /* all memory is taken */
    r->o = *o;
    r->o.stops = stops;
    r->pick = pick;
    r->a = a;
    r->top = top;
    r->stream = stream;
    r->stops = watch;
    r->filter = filter;
    r->o.filter = NULL; /* the caller's */
    r->allowed = allowed;
    r->ended = GEN_CALLER;
    request_wait(r);
    return WEFT_OK;
}

weft_status request_create(weft_diag *dg, const request_limits *most, tok *text,
                           const request_options *o, request **out_r)
{
    request *r = mem_alloc(sizeof *r);
    *r = (request){.most = *most, .text = text};
    r->cap = (size_t)most->context + 1;
    r->ids = mem_alloc(mem_product(r->cap, sizeof *r->ids));
    strbuf_start(&r->decoded);
    strbuf_start(&r->shown);
    weft_status st = request_change(dg, r, o);
    if (st == WEFT_OK)
        *out_r = r;
    else
        request_destroy(r);
    return st;
}

void request_destroy(request *r)
{
    if (!r)
        return;
    drop_options(r);
    strbuf_free(&r->decoded);
    strbuf_free(&r->shown);
    mem_free(r->ids);
    mem_free(r);
}

/* ---- prompts ---- */

/* Nothing of an answer is left: decoder, stop texts, piece. */
static void begin_answer(request *r)
{
    tok_stream_reset(r->stream);
    stop_reset(&r->stops);
    strbuf_reset(&r->shown);
    if (r->filter)
        r->filter->kind->reset(r->filter);
    r->ended = r->o.max_tokens == 0 ? GEN_LENGTH : GEN_NONE;
    request_wait(r);
}

weft_status request_check(weft_diag *dg, const request_limits *most, const int32_t *ids, size_t n)
{
    if (n == 0)
        return weft_fail(dg, W1406, WEFT_NOWHERE,
                         "there is nothing to continue: the text has no tokens");
    if (n >= (size_t)most->context)
        return weft_fail(dg, W1404, WEFT_NOWHERE,
                         "the text has %zu tokens, the context holds %lld and one more is to come",
                         n, (long long)most->context);
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || (most->n_vocab > 0 && ids[i] >= most->n_vocab))
            return weft_fail(dg, W1405, WEFT_NOWHERE,
                             "token %zu of the text is %d; the model has tokens 0 to %lld", i,
                             (int)ids[i], (long long)most->n_vocab - 1);
    return WEFT_OK;
}

static void accept_all(request *r)
{
    sampler_reset(r->pick);
    for (size_t i = 0; i < r->n_id; i++)
        sampler_accept(r->pick, r->ids[i]);
}

void request_prompt(request *r, const int32_t *ids, size_t n)
{
    WEFT_ASSERT(n > 0 && n < r->cap);
    memmove(r->ids, ids, n * sizeof *ids);
    r->n_id = r->n_prompt = n;
    accept_all(r);
    begin_answer(r);
}

void request_set(request *r, const int32_t *ids, size_t n)
{
    WEFT_ASSERT(n <= r->cap);
    memmove(r->ids, ids, n * sizeof *ids);
    r->n_id = r->n_prompt = n;
    r->ended = GEN_CALLER;
    request_wait(r);
}

/* Memory was short when the sequence had gone on: the text cannot follow it. */
static weft_status fail_memory(weft_diag *dg, request *r, const mem_scope *scope)
{
    r->ended = GEN_FAILED;
    request_wait(r);
    return diag_fail_memory(dg, scope->bytes);
}

/* The filter, if there is one, goes on with a token; the request has failed where it may not come. */
static weft_status accept(weft_diag *dg, request *r, int32_t id)
{
    weft_status st = r->filter ? r->filter->kind->accept(dg, r->filter, id) : WEFT_OK;
    if (st != WEFT_OK)
        r->ended = r->piece.end = GEN_FAILED;
    return st;
}

/* What was decoded of the answer so far. */
static weft_status decode_again(weft_diag *dg, request *r)
{
    MEM_SCOPE(scope);
    if (sigsetjmp(scope.env, 0) != 0)
        return fail_memory(dg, r, &scope);
    for (size_t i = r->n_prompt; i < r->n_id; i++) {
        strbuf_reset(&r->decoded);
        tok_stream_put(r->stream, r->ids[i], &r->decoded);
        stop_put(&r->stops, strbuf_view(&r->decoded), &r->shown);
        WEFT_TRY(accept(dg, r, r->ids[i]));
    }
    return WEFT_OK;
}

static int64_t n_generated(const request *r)
{
    return (int64_t)(r->n_id - r->n_prompt);
}

/* Where a text that was taken over stands, by its own options. */
static gen_end end_so_far(const request *r, gen_end of_other)
{
    bool length = r->o.max_tokens >= 0 && n_generated(r) >= r->o.max_tokens;
    if (of_other == GEN_MODEL || of_other == GEN_CONTEXT || of_other == GEN_FAILED)
        return of_other;
    return r->stops.found >= 0 ? GEN_STOP : length ? GEN_LENGTH : GEN_NONE;
}

weft_status request_copy(weft_diag *dg, const request *from, request *to, bool prompt_only)
{
    to->n_id = prompt_only ? from->n_prompt : from->n_id;
    memcpy(to->ids, from->ids, to->n_id * sizeof *to->ids);
    to->n_prompt = from->n_prompt;
    accept_all(to);
    begin_answer(to);
    WEFT_TRY(decode_again(dg, to)); /* it has ended otherwise */
    to->ended = end_so_far(to, prompt_only ? GEN_NONE : from->ended);
    request_wait(to);
    return WEFT_OK;
}

/* ---- tokens ---- */

/* What a token adds to the text, or what is left of it when id is TOK_NONE; true: a stop text came. */
static bool add_text(request *r, int32_t id)
{
    strbuf_reset(&r->decoded);
    if (id == TOK_NONE)
        tok_stream_flush(r->stream, &r->decoded);
    else
        tok_stream_put(r->stream, id, &r->decoded);
    bool stopped = stop_put(&r->stops, strbuf_view(&r->decoded), &r->shown);
    if (id == TOK_NONE && !stopped)
        stop_flush(&r->stops, &r->shown);
    return stopped;
}

/* What ends it behind the token that was added last; GEN_NONE: nothing. */
static gen_end end_of(request *r, int32_t id)
{
    if (tok_is_end(r->text, id) && (!r->o.ignore_end || r->filter))
        return GEN_MODEL;
    if (add_text(r, id))
        return GEN_STOP;
    if (r->filter && r->filter->kind->must_end(r->filter))
        return GEN_MODEL; /* all that it could say is that it ends */
    if (r->o.max_tokens >= 0 && n_generated(r) >= r->o.max_tokens)
        return GEN_LENGTH;
    return (int64_t)r->n_id > r->most.context ? GEN_CONTEXT : GEN_NONE;
}

/* The next token, and logits if it was chosen from them here. */
static weft_status take(weft_diag *dg, request *r, int32_t id, const float *logits)
{
    MEM_SCOPE(scope);
    if (sigsetjmp(scope.env, 0) != 0)
        return fail_memory(dg, r, &scope);
    if (id < 0) {
        r->ended = r->piece.end = GEN_FAILED;
        return weft_fail(dg, W1410, WEFT_NOWHERE,
                         "no logit behind token %zu is a number that can be chosen", r->n_id);
    }
    gen_piece p = {.id = id};
    WEFT_TRY(accept(dg, r, id));
    sampler_accept(r->pick, id);
    r->ids[r->n_id++] = id;
    if (r->o.n_top >= 0 && logits) {
        p.logprob = logprob_of(logits, r->most.vocab, id);
        p.n_top = r->o.n_top ? logprobs_top(logits, r->most.vocab, r->top, r->o.n_top) : 0;
        p.top = r->top;
    }
    strbuf_reset(&r->shown);
    p.end = end_of(r, id);
    if (p.end && p.end != GEN_STOP && add_text(r, TOK_NONE))
        p.end = GEN_STOP;
    p.text = strbuf_view(&r->shown);
    r->ended = p.end;
    r->piece = p;
    return WEFT_OK;
}

static bool too_short(const request *r)
{
    return n_generated(r) < r->o.min_tokens && !r->o.ignore_end;
}

/* Logits of tokens that may come; those of others are gone. */
static void keep_allowed(const uint64_t *mask, const float *logits, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i += 64) {
        int64_t end = i + 64 < n ? i + 64 : n;
        uint64_t word = mask[i / 64];
        for (int64_t k = i; k < end; k++, word >>= 1)
            out[k] = word & 1 ? logits[k] : -INFINITY;
    }
}

/* The logits of those tokens that may come, where not all may. */
static weft_status allowed_of(weft_diag *dg, request *r, const float *logits, const float **out)
{
    int64_t n = r->most.vocab;
    *out = r->filter || too_short(r) ? r->allowed : logits;
    if (r->filter) {
        const uint64_t *mask;
        WEFT_TRY(r->filter->kind->mask(dg, r->filter, &mask));
        keep_allowed(mask, logits, n, r->allowed);
    } else if (too_short(r)) {
        memcpy(r->allowed, logits, (size_t)n * sizeof *logits);
    }
    size_t n_end = 0;
    const int32_t *ends = tok_ends(r->text, &n_end);
    for (size_t i = 0; too_short(r) && i < n_end; i++)
        if (ends[i] >= 0 && ends[i] < n)
            r->allowed[ends[i]] = -INFINITY;
    return WEFT_OK;
}

/* -1: there is none. A filter may need memory. */
static weft_status choose(weft_diag *dg, request *r, const float *logits, int32_t *out_id)
{
    MEM_SCOPE(scope);
    if (sigsetjmp(scope.env, 0) != 0)
        return fail_memory(dg, r, &scope);
    const float *allowed;
    weft_status st = allowed_of(dg, r, logits, &allowed);
    if (st != WEFT_OK) {
        r->ended = r->piece.end = GEN_FAILED;
        return st;
    }
    int32_t id = sampler_choose(r->pick, allowed);
    /* Where all that may come is impossible, one that may not must not come either. */
    *out_id = id >= 0 && allowed != logits && allowed[id] == -INFINITY ? -1 : id;
    return WEFT_OK;
}

weft_status request_take(weft_diag *dg, request *r, const float *logits)
{
    int32_t id;
    WEFT_TRY(choose(dg, r, logits, &id));
    return take(dg, r, id, logits);
}

weft_status request_take_id(weft_diag *dg, request *r, int32_t id)
{
    return take(dg, r, id, NULL);
}

const char *request_host_why(const request *r)
{
    ksample how;
    if (r->filter)
        return "the form of the answer";
    if (r->o.min_tokens > 0)
        return "a least number of tokens";
    return r->o.n_top >= 0 ? "log-probabilities" : sampler_for_device(r->pick, &how);
}

void request_stop(request *r, gen_end end)
{
    strbuf_reset(&r->shown);
    if (r->ended == GEN_NONE)
        r->ended = add_text(r, TOK_NONE) ? GEN_STOP : end;
    request_wait(r);
    r->piece.text = strbuf_view(&r->shown);
}

void request_wait(request *r)
{
    r->piece = (gen_piece){.id = TOK_NONE, .end = r->ended};
}

const gen_piece *request_piece(const request *r)
{
    return &r->piece;
}

gen_end request_end(const request *r)
{
    return r->ended;
}

int request_stop_found(const request *r)
{
    return r->stops.found;
}

const int32_t *request_ids(const request *r, size_t *out_n)
{
    *out_n = r->n_id;
    return r->ids;
}

size_t request_prompt_len(const request *r)
{
    return r->n_prompt;
}
