/* api_generate.c - the public interface: choosing tokens, and text that goes on. */
#include "runtime/api/api_impl.h"

#include "runtime/base/mem.h"

/* ---- choosing tokens ---- */

void weft_sampler_defaults(weft_sampler_options *options)
{
    sampler_options d = sampler_defaults();
#define NUMBER(name) .name = d.name,
    weft_sampler_options all = {SAMPLER_NUMBERS(NUMBER)};
#undef NUMBER
    size_t size = options ? options->size : 0;
    if (size < sizeof size)
        return;
    all.size = size;
    api_give(options, &all, sizeof all);
}

/* The options as the sampler has them; it copies what they point to. NULL: the usual ones. */
static weft_status sampler_take(weft_diag *dg, const char *call, const weft_sampler_options *given,
                                sampler_options *out)
{
    weft_sampler_options o;
    _Static_assert(sizeof(weft_bias) == sizeof(logit_bias) &&
                       offsetof(weft_bias, bias) == offsetof(logit_bias, bias),
                   "a public bias is a logit bias");
    *out = sampler_defaults();
    if (!given)
        return WEFT_OK;
    WEFT_TRY(api_take(dg, call, given, &o, sizeof o));
    if (o.n_bias && !o.bias)
        return api_lacks(dg, call, "the list of biases");
#define NUMBER(name) .name = o.name,
    *out = (sampler_options){SAMPLER_NUMBERS(NUMBER).bias = (const logit_bias *)o.bias,
                             .n_bias = o.n_bias, .samplers = o.samplers};
#undef NUMBER
    return WEFT_OK;
}

weft_status weft_sampler_create(weft_diag *dg, const weft_sampler_options *options, int64_t vocab,
                                int64_t past, weft_tokenizer *t, weft_sampler **out_sampler)
{
    API_SCOPE(dg);
    sampler_options o;
    int32_t breakers[DRY_BREAKERS];
    sampler *pick;
    if (!dg || !out_sampler)
        return api_lacks(dg, "weft_sampler_create", "a place for its result");
    if (vocab < 1 || vocab > INT32_MAX || past < 1 || past > INT32_MAX)
        return weft_fail(dg, W1406, WEFT_NOWHERE,
                         "a sampler for %lld tokens that remembers %lld is out of range",
                         (long long)vocab, (long long)past);
    WEFT_TRY(sampler_take(dg, "weft_sampler_create", options, &o));
    if (t) {
        o.n_breaker = dry_breakers(t->text, breakers);
        o.dry_breakers = breakers;
    }
    WEFT_TRY(sampler_create(dg, &o, vocab, past, &pick));
    weft_sampler *s = mem_alloc(sizeof *s);
    *s = (weft_sampler){pick};
    *out_sampler = s;
    return WEFT_OK;
}

void weft_sampler_destroy(weft_sampler *s)
{
    if (!s)
        return;
    sampler_destroy(s->pick);
    mem_free(s);
}

weft_status weft_sampler_choose(weft_diag *dg, weft_sampler *s, const float *logits,
                                int32_t *out_token)
{
    API_SCOPE(dg);
    if (!dg || !s || !logits || !out_token)
        return api_lacks(dg, "weft_sampler_choose", "a sampler or logits");
    int32_t token = sampler_choose(s->pick, logits);
    if (token < 0)
        return weft_fail(dg, W1410, WEFT_NOWHERE, "no logit is a number that can be chosen");
    *out_token = token;
    return WEFT_OK;
}

/* Where the host chooses. */
static weft_status choose_here(weft_diag *dg, session *run, const batch_row *rows, int64_t n,
                               weft_sampler *const *samplers, int64_t n_want, int32_t *out_tokens)
{
    const float *logits;
    int64_t n_row, width;
    WEFT_TRY(session_eval(dg, run, rows, n));
    bool there = session_output(run, "logits", -1, &logits, &n_row, &width);
    WEFT_ASSERT(there && n_row == n_want); /* check_choice */
    for (int64_t i = 0; i < n_want; i++)
        out_tokens[i] = sampler_choose(samplers[i]->pick, logits + i * width);
    return WEFT_OK;
}

/* Has every row that asks a sampler for the logits that there will be? */
static weft_status check_choice(weft_diag *dg, const session *run, const batch_row *rows, int64_t n,
                                weft_sampler *const *samplers, int64_t *out_n)
{
    const plan *p = session_plan_of(run);
    int32_t logits = -1;
    int64_t n_want = 0;
    for (int32_t i = 0; i < p->n_output; i++)
        if (strcmp(p->output[i].name, "logits") == 0 && p->output[i].index < 0 &&
            p->output[i].rows == ROWS_R)
            logits = i;
    if (logits < 0)
        return weft_fail(dg, W1406, WEFT_NOWHERE,
                         "the session has no output logits to choose tokens from");
    for (int64_t i = 0; i < n; i++)
        n_want += rows[i].out;
    if (n_want < 1 || n_want > session_most(run).wants)
        return weft_fail(dg, W1406, WEFT_NOWHERE,
                         "%lld rows ask for a token; 1 to %lld are possible", (long long)n_want,
                         (long long)session_most(run).wants);
    for (int64_t i = 0; i < n_want; i++) {
        if (!samplers[i])
            return api_lacks(dg, "weft_eval_choose", "a sampler");
        if (sampler_vocab(samplers[i]->pick) != p->output[logits].width)
            return weft_fail(dg, W1406, WEFT_NOWHERE,
                             "sampler %lld is for %lld logits; there are %lld", (long long)i,
                             (long long)sampler_vocab(samplers[i]->pick),
                             (long long)p->output[logits].width);
        for (int64_t k = 0; k < i; k++)
            if (samplers[k] == samplers[i])
                return weft_fail(dg, W1406, WEFT_NOWHERE, "rows %lld and %lld have one sampler",
                                 (long long)k, (long long)i);
    }
    *out_n = n_want;
    return WEFT_OK;
}

/* The chooser of a session is made with its first call. */
static weft_status session_chooser(weft_diag *dg, weft_session *s)
{
    if (s->pick.run)
        return WEFT_OK;
    API_SCOPE(dg); /* of its own: it stays, whatever becomes of the call */
    chooser c;
    chooser_init(&c, s->run);
    s->pick = c;
    return WEFT_OK;
}

static weft_status choose_there(weft_diag *dg, weft_session *s, const batch_row *rows, int64_t n,
                                weft_sampler *const *samplers, const bool *more, int64_t n_want,
                                int32_t *out_tokens)
{
    enum { FEW = 64 };
    sampler *few[FEW], **pick = few;
    bool none[FEW] = {false}, *go_on = none;
    WEFT_TRY(session_chooser(dg, s));
    if (n_want > FEW) {
        pick = mem_alloc(mem_product((size_t)n_want, sizeof *pick));
        go_on = mem_alloc(mem_product((size_t)n_want, sizeof *go_on));
    }
    for (int64_t i = 0; i < n_want; i++) {
        pick[i] = samplers[i]->pick;
        go_on[i] = more && more[i];
    }
    weft_status st = chooser_run(dg, &s->pick, rows, n, pick, go_on, out_tokens);
    if (n_want > FEW) {
        mem_free(pick);
        mem_free(go_on);
    }
    return st;
}

weft_status weft_eval_choose(weft_diag *dg, weft_session *s, const weft_row *rows, int64_t n,
                             weft_sampler *const *samplers, const bool *more, int32_t *out_tokens)
{
    API_SCOPE(dg);
    int64_t n_want = 0;
    ksample how;
    if (!dg || !s || (!rows && n > 0) || !samplers || !out_tokens)
        return api_lacks(dg, "weft_eval_choose", "a session, rows or samplers");
    const batch_row *all = (const batch_row *)rows; /* weft_eval says why */
    WEFT_TRY(check_choice(dg, s->run, all, n, samplers, &n_want));
    bool there = session_chooses(s->run);
    for (int64_t i = 0; i < n_want; i++)
        there = there && !sampler_for_device(samplers[i]->pick, &how);
    if (there)
        WEFT_TRY(choose_there(dg, s, all, n, samplers, more, n_want, out_tokens));
    else
        WEFT_TRY(choose_here(dg, s->run, all, n, samplers, n_want, out_tokens));
    for (int64_t i = 0; i < n_want; i++)
        if (out_tokens[i] < 0)
            return weft_fail(dg, W1410, WEFT_NOWHERE,
                             "no logit of row %lld that asks is a number that can be chosen",
                             (long long)i);
    return WEFT_OK;
}

void weft_sampler_accept(weft_sampler *s, int32_t token)
{
    sampler_accept(s->pick, token);
}

void weft_sampler_reset(weft_sampler *s)
{
    sampler_reset(s->pick);
}

_Static_assert(sizeof(weft_logprob) == sizeof(token_logprob) &&
                   offsetof(weft_logprob, logprob) == offsetof(token_logprob, logprob),
               "a public log-probability is the sampler's");

int64_t weft_logprobs(const float *logits, int64_t vocab, weft_logprob *out, int64_t n)
{
    API_SCOPE_OR(0);
    if (!logits || !out || vocab < 1 || n < 1)
        return 0;
    return logprobs_top(logits, vocab, (token_logprob *)out, n);
}

/* ---- generating text ---- */

enum { TOP_MAX = 1 << 20 }; /* log-probabilities of one token */

_Static_assert((int)WEFT_END_FAILED == GEN_FAILED && (int)WEFT_END_LENGTH == GEN_LENGTH &&
                   (int)WEFT_END_FAILED + 1 == GEN_END_COUNT,
               "weft_end has the rows of gen_end.def");

const char *weft_end_name(weft_end end)
{
    return (unsigned)end < GEN_END_COUNT ? gen_end_name((gen_end)end) : "unknown";
}

/* The engine of a session is made with its first generation. */
static weft_status session_engine(weft_diag *dg, weft_session *s)
{
    if (s->text.run)
        return WEFT_OK;
    API_SCOPE(dg); /* of its own: the engine stays, whatever becomes of the generation */
    engine e;
    WEFT_TRY(engine_init(dg, &e, s->run));
    s->text = e;
    return WEFT_OK;
}

static weft_status generation_take_options(weft_diag *dg, const char *call,
                                           const weft_generation_options *given, const engine *e,
                                           generation_options *out)
{
    weft_generation_options o;
    WEFT_TRY(api_take(dg, call, given, &o, sizeof o));
    if (o.grammar && o.grammar->vocab != e->vocab)
        return weft_fail(dg, W1903, WEFT_NOWHERE,
                         "the grammar is for %lld tokens, the model has %lld",
                         (long long)o.grammar->vocab, (long long)e->vocab);
    for (size_t i = 0; i < o.n_stop; i++)
        if (!o.stops || !o.stops[i])
            return api_lacks(dg, call, "its stop texts");
    if (o.max_tokens < 0 || o.top_logprobs < 0 || o.top_logprobs > TOP_MAX)
        return weft_fail(dg, W1406, WEFT_NOWHERE,
                         "%lld tokens and %lld log-probabilities for each are out of range",
                         (long long)o.max_tokens, (long long)o.top_logprobs);
    *out =
        (generation_options){.seq = o.seq,
                             .how = {.max_tokens = o.max_tokens ? o.max_tokens : -1,
                                     .stops = o.stops,
                                     .n_stop = o.n_stop,
                                     .ignore_end = o.ignore_end,
                                     .show_special = o.show_special,
                                     .filter = o.grammar ? o.grammar->form : NULL,
                                     .n_top = o.logprobs || o.top_logprobs ? o.top_logprobs : -1}};
    return sampler_take(dg, call, o.sampler, &out->how.pick);
}

weft_status weft_generation_create(weft_diag *dg, weft_session *s, weft_tokenizer *t,
                                   const weft_generation_options *options,
                                   weft_generation **out_generation)
{
    API_SCOPE(dg);
    generation_options how;
    generation *g;
    if (!dg || !s || !t || !out_generation)
        return api_lacks(dg, "weft_generation_create", "a session or a tokenizer");
    WEFT_TRY(session_engine(dg, s));
    WEFT_TRY(generation_take_options(dg, "weft_generation_create", options, &s->text, &how));
    if (how.seq < 0) /* GENERATION_NOWHERE is for schedulers */
        return weft_fail(dg, W1403, WEFT_NOWHERE, "there is no sequence %lld", (long long)how.seq);
    WEFT_TRY(generation_create(dg, &s->text, t->text, &how, &g));
    weft_generation *made = mem_alloc(sizeof *made);
    *made = (weft_generation){.g = g, .s = s};
    *out_generation = made;
    return WEFT_OK;
}

void weft_generation_destroy(weft_generation *g)
{
    if (!g)
        return;
    generation_destroy(g->g);
    mem_free(g);
}

weft_status weft_generation_prompt(weft_diag *dg, weft_generation *g, const int32_t *ids, size_t n)
{
    API_SCOPE(dg);
    if (!dg || !g || (!ids && n))
        return api_lacks(dg, "weft_generation_prompt", "a generation or ids");
    return generation_prompt(dg, g->g, ids, n);
}

weft_status weft_generation_change(weft_diag *dg, weft_generation *g,
                                   const weft_generation_options *options)
{
    API_SCOPE(dg);
    generation_options how;
    if (!dg || !g)
        return api_lacks(dg, "weft_generation_change", "a generation");
    WEFT_TRY(generation_take_options(dg, "weft_generation_change", options, &g->s->text, &how));
    return generation_change(dg, g->g, &how);
}

weft_status weft_generation_fork(weft_diag *dg, const weft_generation *from, weft_generation *to,
                                 bool prompt_only)
{
    API_SCOPE(dg);
    if (!dg || !from || !to)
        return api_lacks(dg, "weft_generation_fork", "a generation");
    return generation_fork(dg, from->g, to->g, prompt_only);
}

weft_status weft_generation_save(weft_diag *dg, const weft_generation *g, const char *path)
{
    API_SCOPE(dg);
    if (!dg || !g || !path)
        return api_lacks(dg, "weft_generation_save", "a generation or a path");
    return generation_save(dg, g->g, path);
}

weft_status weft_generation_load(weft_diag *dg, weft_generation *g, const char *path)
{
    API_SCOPE(dg);
    if (!dg || !g || !path)
        return api_lacks(dg, "weft_generation_load", "a generation or a path");
    return generation_load(dg, g->g, path);
}

weft_status weft_step(weft_diag *dg, weft_session *s, weft_generation *const *list, size_t n)
{
    API_SCOPE(dg);
    enum { FEW = 64 };
    generation *few[FEW], **all = few;
    if (!dg || !s || (!list && n))
        return api_lacks(dg, "weft_step", "a session or generations");
    for (size_t i = 0; i < n; i++)
        if (!list[i])
            return api_lacks(dg, "weft_step", "a generation of its list");
    if (n == 0)
        return WEFT_OK;
    if (n > FEW)
        all = mem_alloc(mem_product(n, sizeof *all));
    for (size_t i = 0; i < n; i++)
        all[i] = list[i]->g;
    weft_status st = engine_step(dg, &s->text, all, n);
    if (all != few)
        mem_free(all);
    return st;
}

const char *weft_generation_host_why(const weft_generation *g)
{
    return g ? generation_host_why(g->g) : "there is none";
}

const weft_piece *weft_generation_piece(weft_generation *g)
{
    const gen_piece *p = generation_piece(g->g);
    g->piece = (weft_piece){.token = p->id,
                            .text = p->text.n ? p->text.p : "",
                            .bytes = p->text.n,
                            .logprob = p->logprob,
                            .top = (const weft_logprob *)p->top,
                            .n_top = p->n_top,
                            .end = (weft_end)p->end};
    generation_progress(g->g, &g->piece.prompt_done, &g->piece.prompt_total);
    return &g->piece;
}

const int32_t *weft_generation_ids(const weft_generation *g, size_t *out_n)
{
    return generation_ids(g->g, out_n);
}

const int32_t *weft_generation_text(const weft_generation *g, size_t *out_n)
{
    return generation_text(g->g, out_n);
}

static weft_status stop(weft_diag *dg, weft_generation *g, gen_end end)
{
    API_SCOPE(dg);
    generation_stop(g->g, end);
    return WEFT_OK;
}

weft_status weft_generate(weft_diag *dg, weft_generation *g,
                          bool (*on_piece)(void *ctx, const weft_piece *piece), void *ctx,
                          weft_end *out_end)
{
    if (!dg || !g || !out_end) {
        API_SCOPE(dg);
        return api_lacks(dg, "weft_generate", "a generation");
    }
    weft_end end = WEFT_END_NONE;
    while (end == WEFT_END_NONE) {
        size_t n_before = diag_count(dg);
        weft_status st = weft_step(dg, g->s, &g, 1);
        if (st == WEFT_ERR_CANCELLED) {
            diag_keep_first(dg, n_before); /* an end like any other */
            WEFT_TRY(stop(dg, g, GEN_CANCELLED));
        } else {
            WEFT_TRY(st);
        }
        const weft_piece *piece = weft_generation_piece(g);
        end = piece->end;
        if (on_piece && !on_piece(ctx, piece) && end == WEFT_END_NONE) {
            WEFT_TRY(stop(dg, g, GEN_CALLER));
            end = weft_generation_piece(g)->end; /* the text held back may have a stop text in it */
        }
    }
    *out_end = end;
    return WEFT_OK;
}
